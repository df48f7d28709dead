"""A pattern between boxes: what the boxes of a tiled process grid send to each other."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankmap.pattern.structured import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rankmap.pattern.structured import GridPattern

    Shape = tuple[int, ...]
    Mask = NDArray[np.bool_]

__all__ = ["Coarse", "coarse"]


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """A pattern between the boxes of a tiled grid.

    Attributes
    ----------
    grid : tuple of int
        Boxes along each dimension.
    steps : tuple of (offset, weight)
        Weight between a box and its neighbour at each offset.
    lines : tuple of float
        Weight between any two boxes of one line along each dimension.
    """

    grid: Shape
    steps: tuple[tuple[Shape, float], ...] = ()
    lines: tuple[float, ...] = ()

    def cut(self, a: Mask, b: Mask) -> float:
        """Return the weight between two sets of cells of one window of the grid."""
        total = 0.0
        for offset, weight in self.steps:
            here, there = _window(offset)
            total += weight * np.count_nonzero(a[here] & b[there])
            total += weight * np.count_nonzero(b[here] & a[there])
        for axis, weight in enumerate(self.lines):
            total += weight * float((a.sum(axis=axis) * b.sum(axis=axis)).sum())
        return total


def coarse(pattern: GridPattern, box: Shape) -> Coarse:
    """Return a pattern as the boxes of one shape see it.

    Examples
    --------
    >>> from rankmap.pattern.structured import Stencil
    >>> coarse(Stencil((8, 8)), (4, 2)).steps
    (((0, 1), 4.0), ((1, 0), 2.0))
    """
    dims = pattern.dims or ()
    grid = tuple(extent // side for extent, side in zip(dims, box, strict=True))
    if isinstance(pattern, Lines):
        volume = math.prod(box)
        return Coarse(grid, lines=tuple(pattern.weight * volume * side for side in box))
    found: dict[Shape, float] = {}
    for offset, weight in pattern.steps():
        for step, pairs in _between(offset, box):
            found[step] = found.get(step, 0.0) + weight * pairs
    kept = ((s, w) for s, w in sorted(found.items()) if w and any(s) and _fits(s, grid))
    return Coarse(grid, tuple(kept))


def _between(offset: Shape, box: Shape) -> Iterator[tuple[Shape, float]]:
    """Yield each step between boxes that an offset between cells may be, and for how many cells."""
    for leaves in itertools.product((False, True), repeat=len(offset)):
        if any(leave and not step for leave, step in zip(leaves, offset, strict=True)):
            continue
        step = tuple((s > 0) - (s < 0) if out else 0 for out, s in zip(leaves, offset, strict=True))
        pairs = math.prod(
            abs(s) if out else side - abs(s)
            for out, s, side in zip(leaves, offset, box, strict=True)
        )
        yield step, float(pairs)


def _fits(step: Shape, grid: Shape) -> bool:
    return all(abs(s) < extent for s, extent in zip(step, grid, strict=True))


def _window(offset: Shape) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    here = tuple(slice(-s if s < 0 else 0, -s if s > 0 else None) for s in offset)
    there = tuple(slice(s if s > 0 else 0, s if s < 0 else None) for s in offset)
    return here, there
