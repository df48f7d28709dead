# SPDX-License-Identifier: Apache-2.0
"""Recursively halve a grid at the cheapest cut, alone or together with a torus.

What boxes cannot tile (blades of three nodes next to blades of four, 24 ranks
a node on a 64x64 grid) is cut here. A cut takes a number of cells along
one dimension, whole layers first and a layer's share along the next one, so
every part is a box but for one layer, and every size is met exactly.

The nodes of a sparse allocation on a torus fill no box, so the grid cannot be laid on
them as it is. Both are cut in two again and again (`halve_together`), the nodes across
their longest side and the grid where it costs least, one generation after another:
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

from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.rankmap.grid.coarse import Coarse
from nidmap.rankmap.grid.dims import offset_ends

#: Parts of at most this many cells are cut along every order of their dimensions, larger ones along
#: one order an axis.
THOROUGH = 4096

#: Where a part may be cut: so far from its middle, as a share of its cells.
SLACK = 0.18


def carve_grid(pattern: Coarse, levels: Sequence[Ints]) -> Ints:
    """Return a grid's cells in an order in which consecutive cells form compact parts.

    `pattern`: the grid, and what a cut costs. `levels`: for each level, the finest first, where
    its parts begin along the order, from 0, and the number of cells at the end. Returns (cells,):
    row-major numbers: the first part's cells, then the next one's ….
    """
    count = math.prod(pattern.grid)
    cells = np.stack(np.unravel_index(np.arange(count), pattern.grid), axis=1).astype(np.int64)
    out = np.empty(count, dtype=np.int64)
    # The best cut depends only on a part's shape, and a regular grid has few shapes.
    cuts: dict[tuple[bytes, bytes], tuple[Ints, int]] = {}  # of parts of one form, anywhere
    todo = [(cells, 0, count, len(levels) - 1)]
    while todo:
        points, low, high, level = todo.pop()
        inner = _inner_level(levels, low, high, level)
        if inner is None:
            out[low:high] = np.sort(np.ravel_multi_index(tuple(points.T), pattern.grid))
            continue
        level, places = inner
        sizes = _cut_candidates(places, low, high) - low
        local = points - points.min(axis=0)
        alike = local.tobytes(), sizes.tobytes()
        if alike not in cuts:
            cuts[alike] = _best_cut(pattern, local, sizes)
        order, at = cuts[alike]
        # Both parts take consecutive stretches of the order: the first one ends where the other
        # begins.
        todo.append((points[order[:at]], low, low + at, level))
        todo.append((points[order[at:]], low + at, high, level))
    return out


def _inner_level(
    levels: Sequence[Ints], low: int, high: int, level: int
) -> tuple[int, Ints] | None:
    """Return the outermost level with boundaries inside a stretch, and these; else None."""
    for at in range(level, -1, -1):
        first, last = np.searchsorted(levels[at], [low, high], side="right")
        places = levels[at][first : last - 1]
        if len(places):
            return at, places
    return None


def _cut_candidates(places: Ints, low: int, high: int) -> Ints:
    """Return a few boundaries near the middle of a stretch, the nearest first."""
    off = np.abs(2 * places - low - high)
    nearest = np.argsort(off, kind="stable")[:9]
    # Not too far off the middle: long thin remainders cost more later than they save now.
    close = nearest[off[nearest] <= max(int(off[nearest[0]]), 2 * SLACK * (high - low))]
    return places[close]


def _best_cut(pattern: Coarse, local: Ints, sizes: Ints) -> tuple[Ints, int]:
    """Return a part's points in order, and where to cut them at the least cost per cell.

    The parts of an uneven cut still have to be cut: the larger one once more
    than the other, so a cut is weighed by the share it takes off.
    """
    shape, count = (local.max(axis=0) + 1).tolist(), len(local)
    thorough = count <= THOROUGH
    orders = [
        np.lexsort(tuple(local[:, axis] for axis in reversed(axes)))
        for axes in _axis_orders(shape, thorough)
    ]
    at = np.full((*shape, len(orders), 1), count)
    for way, order in enumerate(orders):
        at[(*local[order].T, way, 0)] = np.arange(count)
    sizes = sizes[: 5 if thorough else 3]
    share = sizes / count
    first = at < sizes
    # The weight across the cut over sqrt(4 s (1 - s)), s being the share of the first part: 1 for a
    # cut in the middle, more the more uneven it is.
    prices = pattern.cut(first, (at < count) & ~first) / np.sqrt(4 * share * (1 - share))
    least, best = math.inf, 0
    for way, price in enumerate(prices.ravel().tolist()):
        if price < least - 1e-9:
            least, best = price, way
    return orders[best // len(sizes)], int(sizes[best % len(sizes)])


def _axis_orders(shape: Sequence[int], thorough: bool) -> list[tuple[int, ...]]:
    """Return orders of dimensions to cut along, the longest first."""
    by_length = tuple(sorted(range(len(shape)), key=lambda axis: -shape[axis]))
    if thorough and len(by_length) <= 3:
        return list(itertools.permutations(by_length))
    return [(axis, *(k for k in by_length if k != axis)) for axis in by_length]


def halve_together(
    model: Coarse, periodic: Sequence[bool], coords: Ints, extents: Sequence[int]
) -> Ints:
    """Return the node of every cell of a grid.

    `model`: the grid, one cell per node, and the weight between neighbours. `periodic`: along which
    dimensions the grid closes. `coords` (nodes, axes): of the nodes, turned so that an allocation
    round the edge is one piece. `extents`: of the whole torus.
    """
    plan = _Carving(model, periodic, coords, extents)
    parts = [(np.arange(len(coords)), np.arange(len(coords)))]
    while parts:
        parts = [half for nodes, cells in parts for half in plan.halves(nodes, cells)]
    return plan.node


class _Carving:
    """The cells' positions so far: the centre of their part's nodes, in the end a node."""

    def __init__(
        self, model: Coarse, periodic: Sequence[bool], coords: Ints, extents: Sequence[int]
    ) -> None:
        self.model = model
        self.coords = coords
        self.extents = np.array(extents, dtype=np.float64)
        self.points = np.stack(np.unravel_index(np.arange(len(coords)), model.grid), axis=1)
        self.near, self.weight = _cell_neighbours(model, periodic)
        self.at = np.repeat(coords.mean(axis=0)[None, :], len(coords), axis=0)
        self.node = np.zeros(len(coords), dtype=np.int64)
        self.axes = list(itertools.permutations(range(len(model.grid))))

    def halves(self, nodes: Ints, cells: Ints) -> list[tuple[Ints, Ints]]:
        """Return the two halves of nodes and of cells; none if all nodes are in one place."""
        cut = self._middle(nodes)
        if cut is None:
            self.node[cells] = nodes
            return []
        centres = [self.coords[half].mean(axis=0) for half in cut]
        first_half = self._sides(cells, centres, len(cut[0]))
        halves = [(cut[0], cells[first_half]), (cut[1], cells[~first_half])]
        for (_, half_cells), centre in zip(halves, centres, strict=True):
            self.at[half_cells] = centre
        return halves

    def _middle(self, nodes: Ints) -> tuple[Ints, Ints] | None:
        """Split the nodes in two across the middle of their longest side."""
        here = self.coords[nodes]
        axis = int(np.argmax(np.ptp(here, axis=0)))
        side = here[:, axis]
        order = np.lexsort((*here.T, side))
        places = np.flatnonzero(np.diff(side[order])) + 1
        if not len(places):
            return None
        # Only between different coordinates: nodes of one plane stay together.
        at = int(places[np.argmin(np.abs(2 * places - len(nodes)))])
        return nodes[order[:at]], nodes[order[at:]]

    def _sides(self, cells: Ints, centres: list[Floats], size: int) -> Mask:
        """Return which `size` cells go to the first of two centres at the least cut cost."""
        pull = self._pull(cells, centres)
        apart = float(self._hops(centres[0], centres[1]))
        local = self.points[cells] - self.points[cells].min(axis=0)
        shape = local.max(axis=0) + 1
        least, best = math.inf, np.zeros(len(cells), dtype=bool)
        # Candidates are the first cells along each order of the axes, from either end: parts
        # bounded by planes, up to one incomplete row.
        for axes in self.axes:
            order = np.lexsort(tuple(local[:, axis] for axis in reversed(axes)))
            for turned in (order, order[::-1]):
                first_half = np.zeros(len(cells), dtype=bool)
                first_half[turned[:size]] = True
                both = np.zeros((2, *shape.tolist()), dtype=bool)
                both[(first_half.astype(np.int64), *local.T)] = True
                # J is not known before all cells are on nodes. It is estimated: cells of the first
                # half are as far from their neighbours elsewhere as its centre is, and those of the
                # two halves are `apart`.
                cost = float(pull[first_half].sum() + apart * self.model.cut(both[1], both[0]))
                if cost < least - 1e-9:
                    least, best = cost, first_half
        return best

    def _pull(self, cells: Ints, centres: list[Floats]) -> Floats:
        """Return how much more the edges to outside cells cost at the first centre."""
        inside = np.zeros(len(self.at) + 1, dtype=bool)
        inside[cells] = True
        inside[-1] = True  # no neighbour
        near = self.near[cells]
        weight = np.where(inside[near], 0.0, self.weight)
        place = self.at[np.where(inside[near], 0, near)]
        more = self._hops(place, centres[0]) - self._hops(place, centres[1])
        return np.asarray((weight * more).sum(axis=1))

    def _hops(self, a: Floats, b: Floats) -> Floats:
        # The shorter way round each axis: min(|a - b|, extent - |a - b|).
        apart = np.abs(a - b)
        return np.asarray(np.minimum(apart, np.abs(self.extents - apart)).sum(axis=-1))


def _cell_neighbours(model: Coarse, periodic: Sequence[bool]) -> tuple[Ints, Floats]:
    """Return each cell's neighbours (the cell count if missing) and the offsets' weights."""
    count = math.prod(model.grid)
    table = np.arange(count).reshape(model.grid)
    columns, weights = [], []
    for offset, weight in model.offsets:
        for way in (offset, tuple(-along for along in offset)):
            here, there = offset_ends(table, periodic, way)
            column = np.full(count, count)
            column[here.ravel()] = there.ravel()
            columns.append(column)
            weights.append(weight)
    return np.stack(columns, axis=1), np.array(weights)
