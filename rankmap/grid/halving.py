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
from collections.abc import Sequence

import numpy as np

from placement.support.array_types import Floats, Ints, Mask
from rankmap.grid.boxes import Coarse
from rankmap.grid.steps import step_ends

__all__ = ["halve_together"]


def halve_together(
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
    >>> from rankmap.grid.boxes import Coarse
    >>> line = Coarse((4,), (((1,), 1.0),))
    >>> halve_together(line, (False,), np.array([[3], [0], [7], [1]]), (20,)).tolist()
    [1, 3, 0, 2]
    """
    plan = _Plan(model, periodic, coords, extents)
    parts = [(np.arange(len(coords)), np.arange(len(coords)))]
    while parts:
        parts = [half for nodes, cells in parts for half in plan.halves(nodes, cells)]
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

    def halves(self, nodes: Ints, cells: Ints) -> list[tuple[Ints, Ints]]:
        """Return the halves of nodes and their cells; none where the nodes are in one place."""
        cut = self._middle(nodes)
        if cut is None:
            self.node[cells] = nodes
            return []
        centres = [self.coords[half].mean(axis=0) for half in cut]
        mine = self._sides(cells, centres, len(cut[0]))
        found = [(cut[0], cells[mine]), (cut[1], cells[~mine])]
        for (_, some), centre in zip(found, centres, strict=True):
            self.at[some] = centre
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

    def _sides(self, cells: Ints, centres: list[Floats], size: int) -> Mask:
        """Return which cells, so many, go to the first centre."""
        pull = self._pull(cells, centres)
        apart = float(self._hops(centres[0], centres[1]))
        local = self.points[cells] - self.points[cells].min(axis=0)
        shape = local.max(axis=0) + 1
        least, best = math.inf, np.zeros(len(cells), dtype=bool)
        for axes in self.axes:
            order = np.lexsort(tuple(local[:, axis] for axis in reversed(axes)))
            for turned in (order, order[::-1]):
                mine = np.zeros(len(cells), dtype=bool)
                mine[turned[:size]] = True
                both = np.zeros((2, *shape.tolist()), dtype=bool)
                both[(mine.astype(np.int64), *local.T)] = True
                cost = float(pull[mine].sum() + apart * self.model.cut(both[1], both[0]))
                if cost < least - 1e-9:
                    least, best = cost, mine
        return best

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
            here, there = step_ends(table, periodic, step)
            column = np.full(count, count)
            column[here.ravel()] = there.ravel()
            columns.append(column)
            weights.append(weight)
    return np.stack(columns, axis=1), np.array(weights)
