"""Orderings along a space-filling curve through the process grid.

Consecutive slots go to consecutive cells of the curve: the cell that the
curve visits k-th gets slot k, and the rank of that cell (row-major) with it.
A node's slots are thus a stretch of the curve, a compact patch of the grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.order import Order
from rankmap.orders import grid_of, ordering
from rankmap.permutation import inverse

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankmap.arrays import Array, Ints, Shape
    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

__all__ = ["hilbert", "morton"]


@ordering("morton")
def morton(pattern: Pattern, slots: Slots) -> Order:
    """Follow the Morton (Z) curve, the last dimension first.

    On a 4x4 grid these are the numbers of Table II of the FFT job placement
    paper, read as the slot of the rank that row-major numbering has there.
    """
    from placement.curves import morton_key

    return _along(morton_key, pattern, slots, "morton")


@ordering("hilbert")
def hilbert(pattern: Pattern, slots: Slots) -> Order:
    """Follow the Hilbert curve, generalised to any extents."""
    from placement.curves import hilbert_key

    return _along(hilbert_key, pattern, slots, "hilbert")


def _along(key: Callable[[Array, Shape], Ints], pattern: Pattern, slots: Slots, name: str) -> Order:
    """Return the order whose slots follow the curve that `key` gives the grid's cells."""
    # An extent of 1 has no direction for a curve to go in.
    extents = tuple(extent for extent in grid_of(pattern, name) if extent > 1) or (1,)
    cells = np.indices(extents, dtype=np.int32).reshape(len(extents), -1)
    keys = key(np.ascontiguousarray(cells.T), extents)
    if int(keys.max()) < len(keys):
        return Order(keys, slots)
    # Keys on a curve that is cut off leave gaps.
    return Order(inverse(np.argsort(keys, kind="stable")), slots)
