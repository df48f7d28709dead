# SPDX-License-Identifier: Apache-2.0
"""Multisection: bisects the ranks along the machine's hierarchy, cut by cut of its nodes.

M. F. Faraj, A. van der Grinten, H. Meyerhenke, J. L. Träff and C. Schulz,
"High-quality hierarchical process mapping" (SEA 2020), with exact sizes at each cut.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from nidmap.placement.support.arrays import count_distinct
from nidmap.rankmap import progress
from nidmap.rankmap.refine import budget
from nidmap.rankmap.refine.bisection import bisect
from nidmap.rankmap.refine.cuts import Cuts
from nidmap.rankmap.refine.jit import Csr, Floats, Ints, Longs, State, tick
from nidmap.rankmap.refine.subgraph import (
    add_pull,
    deal_halves,
    induced_graph,
    note_side,
    talkers_first,
)
from nidmap.rankmap.score.distance import Distance

#: Halvings from nothing that are made for each cut of a torus at most.
TORUS_STARTS = 16


class CutPlan(NamedTuple):
    """The cuts of the nodes, and the work for each cut."""

    first: Longs  # (nodes + 1,), slots before each node, in the order that the cuts count in
    # (nodes, nodes), distances of the nodes in that order, where the blocks alone do not decide
    # them: then a cut also looks at where other ranks have gone
    far: Floats
    cuts: Longs  # (nodes - 1, 3), see `nidmap.rankmap.refine.cuts.Cuts`
    starts: Longs  # (nodes - 1,), halvings from nothing that are made for each cut at most
    shares: Floats  # (nodes - 1,), of the work, of each cut


def plan_cuts(distance: Distance, known: Cuts, held: Longs) -> CutPlan:
    """Return the work for each cut.

    Most is done where most of J is to be won: J that edges between blocks
    make grows with how much farther these are, and about with the root of
    their number.

    `held` (nodes + 1,): slots before each node, in the order of `known`.
    """
    cuts, far = known.cuts, np.empty((0, 0))
    if not distance.exact and len(distance) <= budget.MOST_PULLING:
        far = np.ascontiguousarray(distance.between(known.order[:, None], known.order[None, :]))
    slots = (held[cuts[:, 2]] - held[cuts[:, 0]]).astype(np.float64)
    if distance.coords is not None:
        return CutPlan(held, far, cuts, np.full(len(cuts), TORUS_STARTS), slots)
    share = _level_shares(distance)
    depth = np.arange(len(share)) / max(1, len(share) - 1)
    effort = 1.5 + 1.5 * depth + 9 * np.minimum(share, 0.25) * (depth > 0)
    level = distance.level(known.order[cuts[:, 0]], known.order[cuts[:, 2] - 1]) - 1
    starts = np.ceil(3 * effort).astype(np.int64)
    return CutPlan(held, far, cuts, starts[level], effort[level] * slots)


def _level_shares(distance: Distance) -> Floats:
    """Return each level's approximate share of J, by the edges leaving its blocks."""
    parts = [len(distance), *(count_distinct(c) for c in distance.blocks.T)]
    rise = np.maximum(np.diff(distance.level_distance), 0)
    value = rise * np.sqrt(parts[: len(rise)])
    return np.asarray(value / max(float(value.sum()), 1e-300))


def multisect(g: Csr, plan: CutPlan, allowed: float, state: State, end: float) -> Longs:
    """Return the ranks in slot order, halving them at each cut of the nodes.

    `g`: as many vertices as slots. `allowed`: work that may have been done after all cuts, as
    ``state`` counts it. `state` (2,). `end`: processor time (`time.thread_time`) after which
    nothing more is cut.
    """
    n = len(g.size)
    ranks = np.arange(n, dtype=np.int32)
    # The first node that each rank may be on, and one after the last.
    where = np.tile(np.array([0, len(plan.first) - 1], dtype=np.int32), (n, 1))
    local = np.full(n, -1, dtype=np.int32)
    left = np.cumsum(plan.shares[::-1])[::-1]
    for c, share in enumerate((plan.shares / np.maximum(left, 1e-300)).tolist()):
        if time.thread_time() > end:
            break
        progress.advance()
        cut_work = share * max(0.0, allowed - float(state[1]))
        _bisect_at_cut(g, plan, c, ranks, local, where, cut_work, state)
    return ranks.astype(np.int64)


def _bisect_at_cut(
    g: Csr, plan: CutPlan, c: int, ranks: Ints, local: Ints, where: Ints, allowed: float,
    state: State,
) -> None:  # fmt: skip
    """Divide ranks between the nodes on both sides of a cut.

    Idle ranks are not vertices: they fill the slots that are left. The others are spread
    about as evenly as the slots are.
    """
    first, far, cut = plan.first, plan.far, plan.cuts[c]
    low, middle, high = first[cut[0]], first[cut[1]], first[cut[2]]
    both_sides = ranks[low:high].copy()
    talkers = talkers_first(g.ptr, both_sides)
    mine, idle = both_sides[:talkers], both_sides[talkers:]
    least, most = max(0, talkers - (high - middle)), min(talkers, middle - low)
    target = talkers * (middle - low) // (high - low)
    give = min(target - least, most - target)
    sub = induced_graph(g, mine, local)
    if len(far) > 0:
        add_pull(g, mine, where, cut, far, sub)
        tick(state, 2 * len(sub.adj) + (cut[2] - cut[0]) * len(far))
    half = np.zeros(talkers, dtype=np.int8)
    if talkers > 1:
        half = bisect(sub, target, give, plan.starts[c], allowed, state)
    held = talkers - int(half.sum())
    deal_halves(mine, half, ranks, low, middle)
    ranks[low + held : middle] = idle[: middle - low - held]
    ranks[middle + talkers - held : high] = idle[middle - low - held :]
    note_side(mine, half, where, cut[1])
