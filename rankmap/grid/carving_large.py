"""Carve a large grid: all parts of a generation are cut at once, without weighing the ways.

Every part is cut across the side that is longest for what a cut there costs,
at the boundary nearest to its middle (`rankmap.grid.carving` tries more).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rankmap.grid.coarse import Coarse

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["carve_fast"]


def carve_fast(pattern: Coarse, levels: Sequence[Ints]) -> Ints:
    """Return the cells of a grid in an order whose stretches are compact parts.

    Parameters
    ----------
    pattern, levels
        See `rankmap.grid.carving.carve`.

    Examples
    --------
    >>> from rankmap.grid.coarse import Coarse
    >>> grid = Coarse((2, 4), (((0, 1), 1.0), ((1, 0), 1.0)))
    >>> carve_fast(grid, [np.array([0, 4, 8])]).tolist()
    [0, 4, 1, 5, 2, 6, 3, 7]
    """
    count = math.prod(pattern.grid)
    cells = np.arange(count, dtype=np.int64)
    starts = np.array([0, count])
    price = _prices(pattern)
    columns = [c.astype(np.int32) for c in np.unravel_index(cells, pattern.grid)]
    while True:
        places = _places(levels, starts[:-1], starts[1:])
        cut = places > starts[:-1]
        if not cut.any():
            return cells
        low = np.repeat(starts[:-1], np.diff(starts))
        sides = _sides(columns, cells, starts)
        axis = np.argmax(sides * price[:, None], axis=0)
        along = np.repeat(axis, np.diff(starts))
        key = low
        for k, column in enumerate(columns):
            key = np.where(along == k, low * (max(pattern.grid) + 1) + column[cells], key)
        # The sort is stable: within a layer the cells keep the order of the cuts before.
        cells = cells[np.argsort(key, kind="stable")]
        starts = np.unique(np.concatenate([starts, places]))


def _prices(pattern: Coarse) -> Floats:
    """Return for each dimension how cheap a cut across it is: one by its weight a cell."""
    weights = np.zeros(len(pattern.grid))
    for offset, weight in pattern.steps:
        weights += weight * np.array([bool(step) for step in offset])
    if pattern.lines:
        weights += np.array(pattern.lines)
    return np.asarray(1 / np.maximum(weights, 1e-300))


def _sides(columns: list[NDArray[np.int32]], cells: Ints, starts: Ints) -> Floats:
    """Return the extents of every part along each dimension, less one, float64 (d, parts)."""
    found = []
    for column in columns:
        here = column[cells]
        high = np.maximum.reduceat(here, starts[:-1])
        found.append(high - np.minimum.reduceat(here, starts[:-1]))
    return np.array(found, dtype=np.float64)


def _places(levels: Sequence[Ints], low: Ints, high: Ints) -> Ints:
    """Return where each stretch is cut: at its outermost boundary nearest to the middle, or low."""
    found = low.copy()
    for level in reversed(levels):
        after = np.searchsorted(level, (low + high) // 2, side="left")
        best = np.full(len(low), -1)
        for at in (after, after - 1):
            place = level[np.clip(at, 0, len(level) - 1)]
            fits = (place > low) & (place < high)
            nearer = np.abs(2 * place - low - high) < np.abs(2 * best - low - high)
            best = np.where(fits & ((best < 0) | nearer), place, best)
        found = np.where((found == low) & (best >= 0), best, found)
    return found
