# SPDX-License-Identifier: Apache-2.0
"""An order's figures for a pattern: weight by level, by hops and by node.

Structured patterns are never expanded: a stencil is one comparison of the grid
of nodes with itself, shifted; an all-to-all along lines is a count of the
ranks that each line has in each block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.support.array_types import Array, Floats, Ints
from nidmap.rankmap.grid.dims import offset_ends
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.structured import GridPattern, Lines
from nidmap.rankmap.score.distance import Distance

#: Pairs of nodes that are processed at a time.
_BLOCK = 1 << 20


class OrderWeights(NamedTuple):
    """The weight of a pattern's edges under an order."""

    # (k + 1,), weight of the edges whose ends meet at each level (`Distance.level`): inside a node
    # first, then inside an innermost block, …
    by_level: Floats
    by_node: Floats  # (n,), weight of the edges that leave each node
    cost: float  # J: weight times distance
    hops: float  # weight times links between routers


def traffic(pattern: Pattern, node: Ints, distance: Distance) -> OrderWeights:
    """Return the weight of a pattern's edges by level and by node, J and hop-bytes.

    `pattern`: fitted to the ranks. `node` (ranks,): node of each rank, an index of `distance`.
    """
    sums = _LevelSums(distance)
    node = np.asarray(node, dtype=np.int64)
    if not isinstance(pattern, Lines):
        for a, b, weight in pairs_of_nodes(pattern, node):
            sums.add(a, b, weight)
        return sums.total()
    grid = node.reshape(pattern.dims or ())
    for axis, extent in enumerate(grid.shape):  # the all-to-all of every line
        if extent > 1:
            sums.add_lines(np.moveaxis(grid, axis, -1).reshape(-1, extent), pattern.weight)
    return sums.total()


def cost_of(pattern: Pattern, node: Ints, distance: Distance) -> float:
    """Return J alone, which is cheaper than `traffic`."""
    if isinstance(pattern, Lines):
        return traffic(pattern, node, distance).cost
    total = 0.0
    for a, b, weight in pairs_of_nodes(pattern, np.asarray(node, dtype=np.int64)):
        off = a != b
        far = distance.between(a[off], b[off])
        total += float(far.sum() * weight if np.ndim(weight) == 0 else (far * weight[off]).sum())
    return total


class _LevelSums:
    """Sums of weight by level and by node, to which pairs of nodes are added."""

    def __init__(self, distance: Distance) -> None:
        self.distance = distance
        self.by_level = np.zeros(len(distance.names) + 1)
        self.by_node = np.zeros(len(distance))
        self.hops = 0.0

    def add(self, a: Ints, b: Ints, weight: Any) -> None:
        """Add pairs, all with one weight or each with its own."""
        off = a != b
        total = float(np.sum(weight)) if np.ndim(weight) else float(weight) * len(a)
        a, b = a[off], b[off]
        pair_weights, scale = (weight[off], 1.0) if np.ndim(weight) else (None, float(weight))
        level = self.distance.level(a, b)
        by_level = scale * np.bincount(level, pair_weights, minlength=len(self.by_level))
        by_level[0] = total - float(by_level[1:].sum())
        self.by_level += by_level
        for end in (a, b):
            self.by_node += scale * np.bincount(end, pair_weights, minlength=len(self.by_node))
        if not self.distance.exact:
            hops = self.distance.hops(a, b)
            self.hops += scale * float(
                hops.sum() if pair_weights is None else (hops * pair_weights).sum()
            )

    def add_lines(self, lines: Ints, weight: float) -> None:
        """Add the pairs within each row of a table of nodes, all with the same weight."""
        count, extent = lines.shape
        nodes = len(self.by_node)
        line = np.repeat(np.arange(count), extent)
        key, ranks = np.unique(line * nodes + lines.ravel(), return_counts=True)
        line, node = np.divmod(key, nodes)
        self.by_node += weight * np.bincount(node, ranks * (extent - ranks), minlength=nodes)
        met = [0.0, _pairs_inside(ranks)]
        for column in self.distance.blocks.T:
            blocks = int(column.max()) + 1
            _, place = np.unique(line * blocks + column[node], return_inverse=True)
            met.append(_pairs_inside(np.bincount(place, ranks)))
        self.by_level += weight * np.diff(met)
        if not self.distance.exact:
            self.hops += weight * _hops_within(line, node, ranks, self.distance)

    def total(self) -> OrderWeights:
        """Return the sums, computed from levels if these determine distances."""
        cost = self.distance.from_hops(self.hops, self.by_level)
        if self.distance.exact:
            self.hops = float(self.by_level @ np.maximum(2 * np.arange(len(self.by_level)) - 2, 0))
        return OrderWeights(self.by_level, self.by_node, cost, self.hops)


def pairs_of_nodes(pattern: Pattern, node: Ints) -> Iterator[tuple[Ints, Ints, Any]]:
    """Yield the nodes at both ends of all edges, and their weights (one for all, or each)."""
    if not isinstance(pattern, GridPattern):
        for edges in pattern.edges():
            yield node[edges.source], node[edges.target], edges.bytes
        return
    grid = node.reshape(pattern.dims or ())
    for offset, weight in pattern.offsets():
        a, b = offset_ends(grid, pattern.periodic, offset)
        if a.size and weight:
            yield a.ravel(), b.ravel(), weight


def _hops_within(line: Ints, node: Ints, ranks: Ints, distance: Distance) -> float:
    """Return the hops of all pairs within each line, computing equal lines only once."""
    if distance.coords is not None:
        return _torus_hops(line, node, ranks, distance)
    _, first, router = np.unique(distance.blocks[:, 0], return_index=True, return_inverse=True)
    key, place = np.unique(line * len(first) + router[node], return_inverse=True)
    held = np.bincount(place, ranks)
    line, router = np.divmod(key, len(first))
    marks = np.random.default_rng(0).integers(1, 1 << 40, len(first)).astype(np.float64)
    _, distinct_lines, alike = np.unique(
        np.bincount(line, held * marks[router]), return_index=True, return_counts=True
    )
    starts = np.searchsorted(line, np.arange(int(line[-1]) + 2))
    total = 0.0
    for k, times in zip(distinct_lines.tolist(), alike.tolist(), strict=True):
        line_nodes = slice(starts[k], starts[k + 1])
        total += times * _hops_of(
            first[router[line_nodes]], held[line_nodes].astype(np.float64), distance
        )
    return total


def _torus_hops(line: Ints, node: Ints, ranks: Ints, distance: Distance) -> float:
    """Return the hops of all pairs within each line, axis by axis of a torus."""
    total = 0.0
    lines = int(line[-1]) + 1
    assert distance.coords is not None
    for column, extent in zip(distance.coords.T, distance.extents, strict=True):
        held = np.bincount(line * extent + column[node], ranks, minlength=lines * extent)
        held_ranks = held.reshape(lines, extent).astype(
            np.int64
        )  # whole numbers: no threads are woken
        apart = np.abs(np.arange(extent)[:, None] - np.arange(extent))
        total += float((held_ranks @ np.minimum(apart, extent - apart) * held_ranks).sum()) / 2
    return total


def _pairs_inside(ranks: Array) -> float:
    """Return the pairs within groups of this many ranks."""
    return float((ranks * (ranks - 1.0)).sum() / 2)


def _hops_of(node: Ints, ranks: Floats, distance: Distance) -> float:
    """Return the hops of all pairs of ranks, counted by one node of each router."""
    rows = max(1, _BLOCK // len(node))
    total = 0.0
    for low in range(0, len(node), rows):
        block = slice(low, low + rows)
        far = distance.hops(node[block, None], node[None, :])
        total += float((ranks[block] * (far * ranks).sum(axis=1)).sum()) / 2
    return total
