"""Stencils in disguise: graphs that are exactly the edges of a process grid.

A file that somebody made from a grid, or measured on one, is given back to
the orders and bounds that know grids. Nothing is taken on likeness: the
stencil's own edges must be the graph's, every one and every weight.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from rankmap.structured import Stencil

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rankmap.graph import Graph

__all__ = ["stencil_of"]

#: Differences of rank numbers that the edges of a stencil have at most (4 periodic dimensions).
MOST_OFFSETS = 320


def stencil_of(graph: Graph) -> Stencil | None:
    """Return the stencil whose graph this is, None where there is none; asked once a graph.

    Examples
    --------
    >>> from rankmap.graph import expanded
    >>> stencil_of(expanded(Stencil((4, 3, 5), weights=(1, 2, 4)))).spec
    'stencil:4x3x5,weights=1:2:4'
    >>> stencil_of(expanded(Stencil((6, 4), wrap=True, reach=2))).spec
    'stencil:6x4,periodic,points=9'
    """
    if "stencil" not in graph.known:
        graph.known["stencil"] = next(_stencils(graph), None)
    found: Stencil | None = graph.known["stencil"]
    return found


def _stencils(graph: Graph) -> Iterator[Stencil]:
    a, b, weight = graph.upper()
    if not len(a):
        return
    offset, first = np.unique(b - a, return_index=True)
    if len(offset) > MOST_OFFSETS or offset[0] != 1:
        return
    heaviest = dict(zip(offset.tolist(), weight[first].tolist(), strict=True))
    for strides in _chains(offset.tolist(), graph.size):
        outer = [graph.size, *strides[:-1]]
        dims = tuple(n // s for n, s in zip(outer, strides, strict=True))
        for wrap, reach in itertools.product((False, True), range(1, len(dims) + 1)):
            scale = [2.0 if wrap and e == 2 else 1.0 for e in dims]
            weights = tuple(heaviest[s] / k for s, k in zip(strides, scale, strict=True))
            even = () if set(weights) == {1.0} else weights
            made = Stencil(dims, wrap, even, reach)
            if _edges_of(made) == len(a) and _same(made, graph):
                yield made


def _chains(offsets: list[int], size: int) -> Iterator[tuple[int, ...]]:
    """Yield rows of up to four strides, the last being 1, each a multiple of the next."""
    chosen = [d for d in offsets if d > 1 and size % d == 0 and d < size]
    yield (1,)
    for many in (1, 2, 3):
        for row in itertools.combinations(reversed(chosen), many):
            whole = (*row, 1)
            if all(x % y == 0 for x, y in itertools.pairwise(whole)):
                yield whole


def _edges_of(stencil: Stencil) -> int:
    """Return how many pairs of ranks a stencil joins, for telling most graphs apart at once."""
    total = 0
    for step, _ in stencil.steps():
        cells = 1
        for extent, k in zip(stencil.dims, step, strict=True):
            cells *= extent if stencil.wrap or not k else extent - 1
        if stencil.wrap and any(k and e <= 2 for k, e in zip(step, stencil.dims, strict=True)):
            return _counted(stencil)
        total += cells
    return total


def _counted(stencil: Stencil) -> int:
    from rankmap.graph import expanded

    return len(expanded(stencil).indices) // 2 if math.prod(stencil.dims) <= 1 << 20 else -1


def _same(stencil: Stencil, graph: Graph) -> bool:
    from rankmap.graph import expanded

    other = expanded(stencil)
    return (
        _equal(other.indptr, graph.indptr)
        and _equal(other.indices, graph.indices)
        and bool(np.allclose(other.weights, graph.weights, rtol=1e-12))
    )


def _equal(x: NDArray[np.int64], y: NDArray[np.int64]) -> bool:
    return bool(np.array_equal(x, y))
