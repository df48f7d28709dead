# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on J: from bounds per level, and those by counting.

Two arguments hold for any graph, for the weight that leaves the blocks of one level, the better
one being taken:

- *degrees*: in a block of c slots a rank has c - 1 others with it, so all but
  its c - 1 heaviest edges leave.
- *connection*: a connected part of s ranks lies in this many blocks that they
  hold it, k at least, and k - 1 edges without a circle must join them; no
  k - 1 such edges weigh less than the first that Kruskal's algorithm takes.

An all-to-all along the lines of a grid is not expanded: each rank has this many partners, and
only this many slots are near.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.graph import Graph, expand_pattern
from nidmap.rankmap.pattern.structured import Lines
from nidmap.rankmap.score.distance import Distance

#: Structured patterns of more ranks are not expanded.
MOST_EXPANDED = 1 << 16

#: Number of nodes up to which all distances are considered.
MOST_NODES = 1024


class CostBound(NamedTuple):
    """A lower bound on the J of any order."""

    value: float
    why: str  # the argument: ``counting``, or that every order was tried


def by_level_bound(cuts: Floats, distance: Distance) -> float:
    """Return the bound on J that follows from bounds on the weight leaving each level's blocks.

    J is the sum over levels l of (d(l+1) - d(l)) times the weight that leaves
    the blocks of level l. Where a farther level has the smaller distance, it
    counts with that from the nearer level on.

    `cuts` (k + 1,): for each level, a weight that edges leaving its blocks have at least: those
    that leave a node first, an innermost block next …; 0 for the whole system.
    """
    # J = sum over l of (d(l+1) - d(l)) cut(l) telescopes only with distances that do not fall; the
    # running minimum from the outside in makes them so, and is never above them.
    least = np.minimum.accumulate(distance.level_distance[::-1])[::-1]
    return float(np.diff(least) @ cuts[: len(least) - 1])


def block_capacities(placement: Placement, distance: Distance) -> list[Ints]:
    """Return the slots of each block, level by level: nodes, innermost blocks, …, the system."""
    sizes = [placement.counts]
    for column in distance.blocks.T:
        _, place = np.unique(column, return_inverse=True)
        sizes.append(np.bincount(place.reshape(-1), placement.counts).astype(np.int64))
    return sizes


def lower_bound(pattern: Pattern, placement: Placement, distance: Distance) -> CostBound:
    """Return the best known bound for a pattern on slots, which is the one by counting.

    `pattern`: fitted to the slots. `distance`: of the slots' nodes. 0 for patterns too large.
    """
    unknown = CostBound(0.0, "none known")
    if isinstance(pattern, Lines):
        if len(placement.counts) > MOST_NODES:
            return unknown
        return CostBound(_nearest_partners(pattern, placement, distance), "counting")
    if not isinstance(pattern, Graph) and (pattern.ranks or 0) > MOST_EXPANDED:
        return unknown
    cuts = least_cuts(expand_pattern(pattern), block_capacities(placement, distance))
    return CostBound(by_level_bound(cuts, distance), "counting")


def _nearest_partners(pattern: Lines, placement: Placement, distance: Distance) -> float:
    """Return J of an all-to-all in which each rank's partners are in the nearest slots."""
    partners = sum(extent - 1 for extent in pattern.dims or ())
    total = 0.0
    for node, (count, far) in enumerate(
        zip(placement.counts.tolist(), distance.rows(), strict=True)
    ):
        order = np.argsort(far, kind="stable")
        # The rank itself takes one slot of its node.
        room = placement.counts[order] - (order == node)
        before = np.minimum(np.cumsum(room) - room, partners)
        taken = np.minimum(room, partners - before)
        total += count * float(taken @ far[order])
    # Each pair was counted at both of its ends.
    return pattern.weight * total / 2


def least_cuts(graph: Graph, capacity: list[Ints]) -> Floats:
    """Return, for each level, a lower bound on the weight of edges leaving its blocks.

    `capacity`: slots of each block, level by level.
    """
    row = graph.row
    weight = graph.weights[np.lexsort((-graph.weights, row))]  # heaviest first in each rank's row
    place = np.arange(len(row)) - graph.indptr[row]
    # The c - 1 heaviest edges of a rank may stay in its block; the others leave it, and are seen
    # from both ends.
    degrees = [weight[place >= int(c.max()) - 1].sum() / 2 for c in capacity]
    forest = _SpanningForest(graph)
    return np.array([max(d, forest.least(c)) for d, c in zip(degrees, capacity, strict=True)])


class _SpanningForest:
    """The lightest spanning forest of a graph, by Boruvka's rounds on all parts at once."""

    def __init__(self, graph: Graph) -> None:
        a, b, weight = graph.upper()
        part = np.arange(graph.size)
        chosen = np.zeros(len(a), dtype=bool)
        # Ties are broken by place, so no circle closes.
        rank = inverse(np.argsort(weight, kind="stable"))
        left = np.arange(len(a))
        while len(left):
            # Boruvka: every part takes the lightest edge that leaves it.
            best = np.full(graph.size, len(a))
            np.minimum.at(best, part[a[left]], rank[left])
            np.minimum.at(best, part[b[left]], rank[left])
            taken = left[(rank[left] == best[part[a[left]]]) | (rank[left] == best[part[b[left]]])]
            chosen[taken] = True
            part = _join_parts(part, part[a[taken]], part[b[taken]])
            left = left[part[a[left]] != part[b[left]]]
        picked = np.flatnonzero(chosen)
        picked = picked[np.argsort(rank[picked])]
        self._part = part[a[picked]]
        self._weight = weight[picked]
        parts, self._sizes = np.unique(part, return_counts=True)
        self._of = np.searchsorted(parts, self._part)

    def least(self, capacity: Ints) -> float:
        """Return a lower bound on the weight between blocks of these capacities."""
        held = np.cumsum(np.sort(capacity)[::-1])
        # A part of s ranks touches at least as many blocks as the largest ones that hold s slots.
        blocks = np.searchsorted(held, self._sizes, side="left") + 1
        by_part = np.argsort(self._of, kind="stable")
        of = self._of[by_part]
        place = np.arange(len(of)) - np.searchsorted(of, of)
        # At least k - 1 edges join k blocks; the k - 1 lightest of the forest weigh no more than
        # any such edges.
        return float(self._weight[by_part][place < blocks[of] - 1].sum())


def _join_parts(part: Ints, a: Ints, b: Ints) -> Ints:
    """Return the parts after merging those at both ends of each edge."""
    label = np.arange(len(part))
    while True:
        low = np.minimum(label[a], label[b])
        np.minimum.at(label, a, low)
        np.minimum.at(label, b, low)
        # Pointer jumping: labels reach their part's lowest in a logarithmic number of rounds.
        label = label[label]
        if (label[a] == label[b]).all():
            return np.asarray(label[part])
