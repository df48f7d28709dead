"""Stencils in disguise: graphs that are exactly the edges of a process grid.

A file that somebody made from a grid, or measured on one, is given back to
the orders and bounds that know grids. Nothing is taken on likeness: the
stencil's own edges must be the graph's, every one and every weight.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from placement.support.array_types import Floats, Ints
from rankmap.pattern.edges import every_edge, symmetric_rows
from rankmap.pattern.structured import Stencil

__all__ = ["recognise_stencil"]

#: Differences of rank numbers that the edges of a stencil have at most (4 periodic dimensions).
MOST_OFFSETS = 320


def recognise_stencil(indptr: Ints, indices: Ints, weights: Floats) -> Stencil | None:
    """Return the stencil whose graph this is, None where there is none.

    Parameters
    ----------
    indptr : int64 (n + 1,)
    indices : int64 (2m,)
    weights : float64 (2m,)
        Each edge in the rows of both its ends (`rankmap.pattern.edges.symmetric_rows`).

    Examples
    --------
    >>> rows = _rows(Stencil((4, 3, 5), weights=(1, 2, 4)))
    >>> recognise_stencil(*rows).spec
    'stencil:4x3x5,weights=1:2:4'
    >>> recognise_stencil(*_rows(Stencil((6, 4), wrap=True, reach=2))).spec
    'stencil:6x4,periodic,points=9'
    """
    size = len(indptr) - 1
    row = np.repeat(np.arange(size), np.diff(indptr))
    once = row < indices
    offset, first = np.unique((indices - row)[once], return_index=True)
    if not len(offset) or len(offset) > MOST_OFFSETS or offset[0] != 1:
        return None
    heaviest = dict(zip(offset.tolist(), weights[once][first].tolist(), strict=True))
    for strides in _chains(offset.tolist(), size):
        for made in _stencils_of_strides(strides, size, heaviest):
            if _edges_of(made) in (None, len(indices) // 2):
                rows = _rows(made)
                same = np.array_equal(rows[0], indptr) and np.array_equal(rows[1], indices)
                if same and np.allclose(rows[2], weights, rtol=1e-12):
                    return made
    return None


def _stencils_of_strides(
    strides: tuple[int, ...], size: int, heaviest: dict[int, float]
) -> Iterator[Stencil]:
    """Yield the stencils whose dimensions have these strides."""
    dims = tuple(n // s for n, s in zip([size, *strides[:-1]], strides, strict=True))
    for wrap, reach in itertools.product((False, True), range(1, len(dims) + 1)):
        scale = [2.0 if wrap and e == 2 else 1.0 for e in dims]
        weights = tuple(heaviest[s] / k for s, k in zip(strides, scale, strict=True))
        yield Stencil(dims, wrap, () if set(weights) == {1.0} else weights, reach)


def _chains(offsets: list[int], size: int) -> Iterator[tuple[int, ...]]:
    """Yield rows of up to four strides, the last being 1, each a multiple of the next."""
    chosen = [d for d in offsets if d > 1 and size % d == 0 and d < size]
    yield (1,)
    for many in (1, 2, 3):
        for row in itertools.combinations(reversed(chosen), many):
            whole = (*row, 1)
            if all(x % y == 0 for x, y in itertools.pairwise(whole)):
                yield whole


def _edges_of(stencil: Stencil) -> int | None:
    """Return how many pairs of ranks a stencil joins, None where steps may meet on one pair."""
    if stencil.wrap and min(stencil.dims) <= 2:
        return None
    return sum(
        math.prod(
            extent if stencil.wrap or not k else extent - 1
            for extent, k in zip(stencil.dims, step, strict=True)
        )
        for step, _ in stencil.steps()
    )


def _rows(stencil: Stencil) -> tuple[Ints, Ints, Floats]:
    """Return the graph of a stencil: each edge in the rows of both its ends."""
    return symmetric_rows(math.prod(stencil.dims), *every_edge(stencil))
