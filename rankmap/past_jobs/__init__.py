"""Jobs that ran, held against the best that they could have had when they began."""
