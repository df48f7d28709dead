"""Boxes in a process grid: the weight that stays inside them, and their cells in order."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from rankmap.pattern.structured import Lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rankmap.pattern.structured import GridPattern

    Shape = tuple[int, ...]
    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["cells", "cells_in", "inside"]


def inside(pattern: GridPattern, boxes: Ints) -> Floats:
    """Return the weight of the edges inside one box of each shape, float64 (boxes,).

    A box that reaches all along a periodic dimension keeps the wrap inside.

    Parameters
    ----------
    pattern : GridPattern
    boxes : int64 (boxes, dimensions)

    Examples
    --------
    >>> from rankmap.pattern.structured import Stencil
    >>> inside(Stencil((24, 24, 16)), np.array([[4, 3, 2], [24, 1, 1]])).tolist()
    [46.0, 23.0]
    >>> inside(Lines("fft", (64, 64)), np.array([[1, 24], [4, 6]])).tolist()
    [276.0, 96.0]
    """
    total = np.zeros(len(boxes))
    volume = boxes.prod(axis=1)
    if isinstance(pattern, Lines):
        pairs = (volume[:, None] * (boxes - 1)).sum(axis=1) / 2
        return np.asarray(pattern.weight * pairs)
    for offset, weight in pattern.steps():
        total += weight * _pairs(pattern, boxes, offset)
    return total


def _pairs(pattern: GridPattern, boxes: Ints, offset: Shape) -> Floats:
    """Return the cells of each box whose neighbour at `offset` is in the box too."""
    dims = pattern.dims or ()
    pairs = np.ones(len(boxes))
    moves = False
    for column, extent, wraps, step in zip(boxes.T, dims, pattern.periodic, offset, strict=True):
        short = np.maximum(column - abs(step), 0)
        pairs *= np.where(column == extent, extent, short) if wraps else short
        moves |= bool(step % extent if wraps else step)
    return pairs if moves else np.zeros(len(boxes))


def cells(grid: Sequence[int]) -> Ints:
    """Return the numbers of a grid's cells as an array of its shape, row-major."""
    return np.arange(math.prod(grid), dtype=np.int64).reshape(tuple(grid))


def cells_in(grid: Sequence[int], chain: Sequence[Shape]) -> Ints:
    """Return a grid's cells in the order in which nested boxes hold them.

    Parameters
    ----------
    grid : sequence of int
    chain : sequence of tuples of int
        Boxes, the smallest first; each divides the next, the last the grid.

    Returns
    -------
    int64 (cells,)
        Row-major numbers: box by box of the largest, within it of the next …

    Examples
    --------
    >>> cells_in((2, 4), [(2, 1), (2, 2)]).tolist()
    [0, 4, 1, 5, 2, 6, 3, 7]
    """
    split, axes = _split(tuple(grid), [b for b in chain if math.prod(b) > 1])
    return cells(split).transpose(axes).ravel()


def _split(grid: Shape, chain: list[Shape]) -> tuple[list[int], list[int]]:
    """Return the extents of every dimension cut by the boxes, and the axes outermost box first."""
    ladder = [(1,) * len(grid), *chain, grid]
    levels = len(ladder) - 1
    factors = [
        [ladder[level + 1][k] // ladder[level][k] for level in reversed(range(levels))]
        for k in range(len(grid))
    ]
    # A factor of 1 is no axis: numpy has only so many.
    kept = [k * levels + n for k in range(len(grid)) for n in range(levels) if factors[k][n] > 1]
    place = {axis: at for at, axis in enumerate(kept)}
    axes = [k * levels + n for n in range(levels) for k in range(len(grid))]
    flat = list(itertools.chain.from_iterable(factors))
    return [flat[axis] for axis in kept], [place[axis] for axis in axes if axis in place]
