"""Process grids: their extents, boxes in them, and grids laid on tori."""
