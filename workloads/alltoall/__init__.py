"""All-to-all bandwidth by message size: per process and per node, as mpiBench measures it."""
