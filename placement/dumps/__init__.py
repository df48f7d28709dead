"""From the records of one or more dumps to a machine, and what contradicts itself in them."""
