"""A grid and a torus halved together, each half of the one on the nearer half of the other.

The nodes of a sparse allocation fill no box, so the grid cannot be laid on
them as it is. Both are cut in two again and again, the nodes across their
longest side and the grid where it costs least, one generation after another:
when a part of the grid is cut, it is known about where all others are, and of
the two ways to put its halves on those of its nodes the one with the fewer
hops is taken. (Dual recursive bipartitioning, F. Pellegrini, 1994, with the
outer neighbours at the centre of their part.)
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rankmap.grid.coarse import Coarse

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["halved_together"]


class _Part(NamedTuple):
    """Nodes, and as many cells of the grid that will go to them."""

    nodes: Ints
    cells: Ints


def halved_together(
    model: Coarse, periodic: Sequence[bool], coords: Ints, extents: Sequence[int]
) -> Ints:
    """Return the node of every cell of a grid.

    Parameters
    ----------
    model : Coarse
        The grid, one cell a node, and the weight between neighbours.
    periodic : sequence of bool
        Along which dimensions the grid closes.
    coords : int64 (nodes, axes)
        Of the nodes, turned so that an allocation round the edge is one piece.
    extents : sequence of int
        Of the whole torus.

    Examples
    --------
    >>> from rankmap.grid.coarse import Coarse
    >>> line = Coarse((4,), (((1,), 1.0),))
    >>> halved_together(line, (False,), np.array([[3], [0], [7], [1]]), (20,)).tolist()
    [1, 3, 0, 2]
    """
    plan = _Plan(model, periodic, coords, extents)
    parts = [_Part(np.arange(len(coords)), np.arange(len(coords)))]
    while parts:
        parts = [half for part in parts for half in plan.halves(part)]
    return plan.node


class _Plan:
    """Where the cells are so far: at the centre of their part's nodes, in the end on a node."""

    def __init__(
        self, model: Coarse, periodic: Sequence[bool], coords: Ints, extents: Sequence[int]
    ) -> None:
        self.model = model
        self.coords = coords
        self.extents = np.array(extents, dtype=np.float64)
        self.points = np.stack(np.unravel_index(np.arange(len(coords)), model.grid), axis=1)
        self.near, self.weight = _neighbours(model, periodic)
        self.at = np.repeat(coords.mean(axis=0)[None, :], len(coords), axis=0)
        self.node = np.zeros(len(coords), dtype=np.int64)
        self.axes = list(itertools.permutations(range(len(model.grid))))

    def halves(self, part: _Part) -> list[_Part]:
        """Return a part's halves; none where its nodes are all in one place."""
        cut = self._middle(part.nodes)
        if cut is None:
            self.node[part.cells] = part.nodes
            return []
        low, high = cut
        centres = [self.coords[half].mean(axis=0) for half in (low, high)]
        mine = self._sides(part.cells, centres, len(low))
        found = [_Part(low, part.cells[mine]), _Part(high, part.cells[~mine])]
        for half, centre in zip(found, centres, strict=True):
            self.at[half.cells] = centre
        return found

    def _middle(self, nodes: Ints) -> tuple[Ints, Ints] | None:
        """Return the nodes in two, cut across their longest side nearest to its middle."""
        here = self.coords[nodes]
        axis = int(np.argmax(np.ptp(here, axis=0)))
        side = here[:, axis]
        order = np.lexsort((*here.T, side))
        places = np.flatnonzero(np.diff(side[order])) + 1
        if not len(places):
            return None
        at = int(places[np.argmin(np.abs(2 * places - len(nodes)))])
        return nodes[order[:at]], nodes[order[at:]]

    def _sides(self, cells: Ints, centres: list[Floats], size: int) -> NDArray[np.bool_]:
        """Return which cells, so many, go to the first centre."""
        pull = self._pull(cells, centres)
        apart = float(self._hops(centres[0], centres[1]))
        local = self.points[cells] - self.points[cells].min(axis=0)
        shape = local.max(axis=0) + 1
        best: tuple[float, NDArray[np.bool_]] | None = None
        for axes in self.axes:
            order = np.lexsort(tuple(local[:, axis] for axis in reversed(axes)))
            for turned in (order, order[::-1]):
                mine = np.zeros(len(cells), dtype=bool)
                mine[turned[:size]] = True
                cost = float(pull[mine].sum()) + apart * self._cut(local, shape, mine)
                if best is None or cost < best[0] - 1e-9:
                    best = (cost, mine)
        if best is None:
            raise AssertionError("a grid has a dimension")
        return best[1]

    def _cut(self, local: Ints, shape: Ints, mine: NDArray[np.bool_]) -> float:
        both = np.zeros((2, *shape.tolist()), dtype=bool)
        both[(mine.astype(np.int64), *local.T)] = True
        return self.model.cut(both[1], both[0])

    def _pull(self, cells: Ints, centres: list[Floats]) -> Floats:
        """Return what each cell's neighbours outside the part cost more at the first centre."""
        inside = np.zeros(len(self.at) + 1, dtype=bool)
        inside[cells] = True
        inside[-1] = True  # no neighbour
        near = self.near[cells]
        weight = np.where(inside[near], 0.0, self.weight)
        place = self.at[np.where(inside[near], 0, near)]
        more = self._hops(place, centres[0]) - self._hops(place, centres[1])
        return np.asarray((weight * more).sum(axis=1))

    def _hops(self, a: Floats, b: Floats) -> Floats:
        apart = np.abs(a - b)
        return np.asarray(np.minimum(apart, np.abs(self.extents - apart)).sum(axis=-1))


def _neighbours(model: Coarse, periodic: Sequence[bool]) -> tuple[Ints, Floats]:
    """Return each cell's neighbours (their number where there is none) and the steps' weights."""
    count = math.prod(model.grid)
    table = np.arange(count).reshape(model.grid)
    columns, weights = [], []
    for offset, weight in model.steps:
        for step in (offset, tuple(-s for s in offset)):
            moved = np.roll(table, tuple(-s for s in step), tuple(range(table.ndim)))
            for axis, (s, wraps) in enumerate(zip(step, periodic, strict=True)):
                if s and not wraps:
                    edge = [slice(None)] * table.ndim
                    edge[axis] = slice(-s, None) if s > 0 else slice(0, -s)
                    moved[tuple(edge)] = count
            columns.append(moved.ravel())
            weights.append(weight)
    return np.stack(columns, axis=1), np.array(weights)
