# SPDX-License-Identifier: Apache-2.0
"""Exhaustive search for small graphs: all mappings are tried or proved no better.

Branch and bound, breadth first in whole-array steps: ranks are placed one after
another, heaviest first, and a partial placement is dropped once no completion can
be below the best J that is known. What the ranks still to come cost at least is
Gilmore and Lawler's bound ("Optimal and suboptimal algorithms for the quadratic
assignment problem", J. SIAM 1962): each costs its edges to placed ranks, and half of
what its other edges cost on the nearest slots there are. Empty nodes that may change
places with each other count once; ranks without edges take what slots are left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.score.distance import Distance
from nidmap.rankmap.score.traffic import cost_of

#: Maximum numbers of ranks with edges, and of nodes, of graphs that are searched.
MOST_RANKS, MOST_NODES = 64, 64

#: Maximum number of table entries to fill, about a tenth of a second; beyond, the search gives up.
ENTRIES = 4_000_000

#: Rounding of sums that are compared.
ROUNDING = 1e-9


class _Partial(NamedTuple):
    """Partial placements of the first ranks."""

    node: Ints  # (m, placed)
    room: Ints  # (m, nodes), slots left
    cost: Floats  # (m,), of the edges between placed ranks
    # (m, ranks to come, nodes), of the edges from each rank to come, on each node, to placed ranks
    table: Floats


def search_all(graph: Graph, node: Ints, counts: Ints, distance: Distance) -> Ints | None:
    """Return an optimal node for each rank; None if there are too many ranks.

    `node` (ranks,): nodes that are known: returned where none are better. `counts` (nodes,):
    slots of each node: as many ranks as it has.
    """
    ranks = np.flatnonzero(np.diff(graph.indptr))
    if not 0 < len(ranks) <= MOST_RANKS or len(counts) > MOST_NODES:
        return None if len(ranks) else node
    local = np.full(graph.size, -1)
    local[ranks] = np.arange(len(ranks))
    weight = np.zeros((len(ranks), len(ranks)))
    weight[local[graph.row], local[graph.indices]] = graph.weights
    order = _placing_order(weight)
    weight, far = weight[np.ix_(order, order)], distance.matrix()
    known = cost_of(graph, node, distance)
    placed = _branch_and_bound(weight, far, counts, _find_twins(far, counts), known)
    if placed is None or not len(placed):
        return None if placed is None else node
    best = np.full(graph.size, -1, dtype=np.int64)
    best[ranks[order]] = placed
    left = counts - np.bincount(placed, minlength=len(counts))
    best[best < 0] = np.repeat(np.arange(len(counts)), left)
    return best


def _placing_order(weight: Floats) -> Ints:
    """Order ranks so that each has strong ties to those before it, heaviest first."""
    order: list[int] = []
    tie = 1e-6 * weight.sum(axis=1)
    for _ in range(len(weight)):
        value = weight[:, order].sum(axis=1) + tie
        value[order] = -1.0
        order.append(int(np.argmax(value)))
    return np.array(order)


def _find_twins(far: Floats, counts: Ints) -> Ints:
    """Return, for each node, the first with equal slots and distances to all others."""
    first = np.arange(len(far))
    for q in range(len(far)):
        for p in range(q):
            others = np.delete(np.arange(len(far)), [p, q])
            if counts[p] == counts[q] and (far[p, others] == far[q, others]).all():
                first[q] = first[p]
                break
    return first


def _branch_and_bound(
    weight: Floats, far: Floats, counts: Ints, twin: Ints, known: float
) -> Ints | None:
    """Return the nodes of ranks in placing order; empty if no mapping costs less than `known`."""
    n, nodes = len(weight), len(far)
    below = known - ROUNDING * abs(known)
    none, left = np.empty((1, 0), dtype=np.int64), ENTRIES
    partial = _Partial(none, counts[None, :].copy(), np.zeros(1), np.zeros((1, n, nodes)))
    for k in range(n):
        rest = _bound_rest(weight[k + 1 :, k + 1 :], far, counts)
        parent, node = np.nonzero((partial.room > 0) & _first_of_twins(partial.room, counts, twin))
        cost = partial.cost[parent] + partial.table[parent, 0, node]
        kept = cost < below
        parent, node, cost = parent[kept], node[kept], cost[kept]
        left -= len(parent) * max(1, n - k - 1) * nodes
        if left < 0:
            return None
        room = partial.room[parent]
        room[np.arange(len(node)), node] -= 1
        table = partial.table[parent, 1:] + weight[k, k + 1 :][:, None] * far[node][:, None, :]
        least = np.where(room[:, None, :] > 0, table + rest, np.inf).min(axis=2).sum(axis=1)
        kept = cost + least < below
        placed = np.concatenate([partial.node[parent], node[:, None]], axis=1)
        partial = _Partial(placed[kept], room[kept], cost[kept], table[kept])
        if not len(partial.cost):
            return np.empty(0, dtype=np.int64)
    return np.asarray(partial.node[int(np.argmin(partial.cost))])


def _first_of_twins(room: Ints, counts: Ints, twin: Ints) -> Mask:
    """Return which nodes to try: of interchangeable empty nodes only the first."""
    empty = room == counts
    out = np.ones(room.shape, dtype=bool)
    for q in np.flatnonzero(twin != np.arange(len(twin))).tolist():
        before = np.flatnonzero(twin[:q] == twin[q])
        out[:, q] = ~(empty[:, q] & empty[:, before].any(axis=1))
    return out


def _bound_rest(weight: Floats, far: Floats, counts: Ints) -> Floats:
    """Return half the least cost of ranks' edges to each other, (ranks, nodes).

    The heaviest edges go to the nearest slots: a rank's own node has one less.
    """
    n = len(weight)
    out = np.zeros((n, len(far)))
    heavy = -np.sort(-weight, axis=1)[:, : max(0, n - 1)]
    for p in range(len(far)):
        free = counts.copy()
        free[p] = max(0, free[p] - 1)
        near = np.sort(np.repeat(far[p], free))[: heavy.shape[1]]
        out[:, p] = heavy[:, : len(near)] @ near / 2
    return out
