"""Orderings along a space-filling curve through the process grid.

Consecutive slots go to consecutive cells of the curve: the cell that the
curve visits k-th gets slot k, and the rank of that cell (row-major) with it.
A node's slots are thus a stretch of the curve, a compact patch of the grid.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError
from rankmap.order import Order
from rankmap.orders import ordering
from rankmap.permutation import inverse

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

    Key = Callable[[NDArray[np.int32], tuple[int, ...]], NDArray[np.int64]]

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


def _along(key: Key, pattern: Pattern, slots: Slots, name: str) -> Order:
    """Return the order whose slots follow the curve that `key` gives the grid's cells."""
    dims = pattern.dims
    if dims is None:
        raise UsageError(f"strategy {name} needs a process grid, pattern {pattern.spec} has none")
    # An extent of 1 has no direction for a curve to go in.
    extents = tuple(e for e in dims if e > 1) or (1,)
    keys = key(_cells(extents), extents)
    return Order(_positions(keys), slots)


def _cells(extents: tuple[int, ...]) -> NDArray[np.int32]:
    """Return the coordinates of the cells in row-major order, int32 (cells, dimensions)."""
    cells = np.empty((math.prod(extents), len(extents)), dtype=np.int32)
    for axis, extent in enumerate(extents):
        inner = math.prod(extents[axis + 1 :])
        column = np.repeat(np.arange(extent, dtype=np.int32), inner)
        cells[:, axis] = np.tile(column, len(cells) // len(column))
    return cells


def _positions(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each cell's place along the curve; keys on cut-off curves leave gaps."""
    if int(keys.max()) == len(keys) - 1:
        return keys
    return inverse(np.argsort(keys, kind="stable"))
