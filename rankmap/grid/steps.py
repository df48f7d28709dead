"""Steps in a grid: which cells can take one, and where it leads them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from placement.support.array_types import Array, Shape

Window = tuple[slice, ...]

__all__ = ["step_ends", "step_window"]


@lru_cache(1 << 12)  # carving a grid asks for the same ones thousands of times
def step_window(shape: Shape, offset: Shape) -> tuple[Window, Window]:
    """Return the cells of an open grid that can take a step, and those where it leads them.

    Examples
    --------
    >>> step_window((4, 4), (1, 0))
    ((slice(0, 3, None), slice(0, 4, None)), (slice(1, 4, None), slice(0, 4, None)))
    """
    sides = list(zip(shape, offset, strict=True))
    here = tuple(slice(max(0, -s), max(0, min(n, n - s))) for n, s in sides)
    there = tuple(slice(max(0, s), max(0, min(n, n + s))) for n, s in sides)
    return here, there


def step_ends(table: Array, periodic: Sequence[bool], offset: Shape) -> tuple[Array, Array]:
    """Return a table's entries at the cells that can take a step, and those where it leads them.

    Nothing where the step leads every cell to itself.

    Examples
    --------
    >>> [ends.tolist() for ends in step_ends(np.arange(4), (False,), (1,))]
    [[0, 1, 2], [1, 2, 3]]
    >>> [ends.tolist() for ends in step_ends(np.arange(4), (True,), (1,))]
    [[0, 1, 2, 3], [1, 2, 3, 0]]
    """
    moves = [
        s % n if wraps else s for n, wraps, s in zip(table.shape, periodic, offset, strict=True)
    ]
    if not any(moves):
        return table[:0], table[:0]
    around = tuple(-s if wraps else 0 for wraps, s in zip(periodic, offset, strict=True))
    here, there = step_window(
        table.shape, tuple(s + a for s, a in zip(offset, around, strict=True))
    )
    moved = np.roll(table, around, tuple(range(table.ndim))) if any(around) else table
    return table[here], moved[there]
