"""Multisection: the ranks are bisected down the machine's own tree, cut after cut of its nodes.

M. F. Faraj, A. van der Grinten, H. Meyerhenke, J. L. Träff and C. Schulz,
"High-quality hierarchical process mapping" (SEA 2020), with exact sizes at each cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankmap.refine.bisection import bisect
from rankmap.refine.budget import MOST_ANEW
from rankmap.refine.exchanges import exchange_pairs, replace_ranks
from rankmap.refine.jit import Csr, Floats, Ints, Longs, State, kernel, tick
from rankmap.refine.subgraph import (
    PlacedRanks,
    add_pull,
    deal_halves,
    induced_graph,
    note_side,
    ranks_by_node,
    talkers_first,
)  # fmt: skip

#: Idle ranks are no vertices where more than one of so many ranks is idle.
MOST_BUSY = 32

#: Blocks of one larger block that change ranks among each other, in pairs, at most.
MOST_SIBLINGS = 32


class CutPlan(NamedTuple):
    """How the nodes are taken apart, and how much is done at each cut.

    Attributes
    ----------
    first : int64 (nodes + 1,)
        Slots before each node, in the order that the cuts count in.
    far : float64 (nodes, nodes) or (0, 0)
        Distances of the nodes in that order, where the blocks alone do not
        decide them: then a cut also looks at where other ranks have gone.
    cuts : int64 (nodes - 1, 3)
        See `rankmap.refine.cuts.Cuts`; those of one family in a row.
    family : int64 (nodes - 1,)
        Cuts of one number part the blocks of one larger block, which are all
        equally far apart.
    starts : int64 (nodes - 1,)
        Halvings from nothing that are made for each cut at most.
    repeats : int64 (nodes - 1,)
        How often all cuts of a family are made, the best being taken; 1 where `far` is given.
    shares : float64 (nodes - 1,)
        Of the work, of each cut.
    again : float64 (nodes - 1,)
        Of the work, of placing anew all ranks of a family's block: its first cut's entry.
    """

    first: Longs
    far: Floats
    cuts: Longs
    family: Longs
    starts: Longs
    repeats: Longs
    shares: Floats
    again: Floats


def multisect(
    g: Csr, plan: CutPlan, begin: int, stop: int, allowed: float, state: State, ranks: Ints,
    where: Ints,
) -> None:  # fmt: skip
    """Bring the ranks into slot order, each cut of the nodes being a halving of their ranks.

    Parameters
    ----------
    g : Csr
        As many vertices as slots.
    plan : CutPlan
    begin, stop : int
        The cuts that are made now, whole families; those before have been.
    allowed : float
        Work that may have been done after all cuts, as ``state`` counts it.
    state : uint64 (2,)
    ranks : int32 (ranks,)
        0 … n-1 in any order, in slot order after all cuts.
    where : int32 (ranks, 2)
        The first node that each rank may be on, and one after the last.
    """
    ptr, n = g.ptr, len(ranks)
    first, _, cuts, family, _, repeats, shares, again = plan
    local = np.full(n, -1, dtype=np.int32)
    left = 0.0
    for c in range(begin, len(cuts)):
        left += (shares[c] + again[c]) * repeats[c]
    sparse = int((ptr[1:] == ptr[:-1]).sum()) * MOST_BUSY > n
    while begin < stop:
        end = begin + 1
        while end < len(cuts) and family[end] == family[begin]:
            end += 1
        low, high = first[cuts[begin, 0]], first[cuts[begin, 2]]
        original, best, least = ranks[low:high].copy(), ranks[low:high].copy(), 1e300
        for k in range(repeats[begin]):
            ranks[low:high] = original
            for c in range(begin, end):
                part_of = max(0.0, allowed - float(state[1])) / max(left, 1e-300)
                left -= shares[c]
                here = part_of * shares[c]
                packed = k % 2 == 1
                bisect_at_cut(g, plan, c, ranks, local, where, sparse, packed, here, state)
            part_of = max(0.0, allowed - float(state[1])) / max(left, 1e-300)
            left -= again[begin]
            here = part_of * again[begin]
            exchange_siblings(g, ranks, local, first, cuts[begin:end], here, state)
            if repeats[begin] > 1:
                cost = weight_between(g, ranks, local, first, cuts[begin:end])
                if cost < least:
                    best, least = ranks[low:high].copy(), cost
        if repeats[begin] > 1:
            ranks[low:high] = best
        begin = end


@kernel
def weight_between(g: Csr, ranks: Ints, local: Ints, first: Longs, cuts: Longs) -> float:
    """Return twice the weight between the blocks that a family of cuts parts."""
    low, high = first[cuts[0, 0]], first[cuts[0, 2]]
    block = np.zeros(high - low, dtype=np.int32)
    for c in range(len(cuts)):
        for i in range(first[cuts[c, 1]], first[cuts[c, 2]]):
            block[i - low] = c + 1
    for i in range(low, high):
        local[ranks[i]] = block[i - low]
    total = 0.0
    for i in range(low, high):
        for e in range(g.ptr[ranks[i]], g.ptr[ranks[i] + 1]):
            other = local[g.adj[e]]
            if other >= 0 and other != block[i - low]:
                total += g.w[e]
    for i in range(low, high):
        local[ranks[i]] = -1
    return total


def bisect_at_cut(
    g: Csr, plan: CutPlan, c: int, ranks: Ints, local: Ints, where: Ints,
    sparse: bool, packed: bool, allowed: float, state: State,
) -> None:  # fmt: skip
    """Bisect the ranks of the nodes on both sides of a cut.

    Where these are many (`sparse`), idle ranks are not vertices: they fill the slots that
    are left. The others are spread about as evenly as the slots are, or `packed` before
    the cut as far as these go.
    """
    first, far, cut = plan.first, plan.far, plan.cuts[c]
    low, middle, high = first[cut[0]], first[cut[1]], first[cut[2]]
    both_sides = ranks[low:high].copy()
    talkers = talkers_first(g.ptr, both_sides) if sparse else len(both_sides)
    mine, idle = both_sides[:talkers], both_sides[talkers:]
    least, most = max(0, talkers - (high - middle)), min(talkers, middle - low)
    target = talkers * (middle - low) // (high - low)
    give = min(target - least, most - target)
    if packed:
        target, give = most, 0
    sub = induced_graph(g, mine, local)
    if len(far) > 0:
        add_pull(g, mine, where, cut, far, sub)
        tick(state, 2 * len(sub.adj) + (cut[2] - cut[0]) * len(far))
    half = np.zeros(talkers, dtype=np.int8)
    if talkers > 1:
        half = bisect(sub, target, give, plan.starts[c], allowed, 4, state)
    held = talkers - int(half.sum())
    deal_halves(mine, half, ranks, low, middle)
    ranks[low + held : middle] = idle[: middle - low - held]
    ranks[middle + talkers - held : high] = idle[middle - low - held :]
    note_side(mine, half, where, cut[1])


def exchange_siblings(
    g: Csr, ranks: Ints, local: Ints, first: Longs, cuts: Longs, allowed: float, state: State
) -> None:
    """Let the ranks of blocks that are equally far apart change places."""
    k, allowed = len(cuts) + 1, allowed + float(state[1])
    low, high = len(first), 0
    for c in range(k - 1):
        low, high = min(low, cuts[c, 0]), max(high, cuts[c, 2])
    begin = first[low]
    if k < 3 or first[high] - begin < 2 * k or k > MOST_SIBLINGS:
        return
    edges = np.empty(k + 1, dtype=np.int64)  # the blocks' first nodes, then what parts each
    priority = np.zeros(k, dtype=np.int64)
    edges[0], edges[k], i = low, high, 0
    for t in range(low + 1, high):
        for c in range(k - 1):
            if cuts[c, 1] == t:
                i += 1
                edges[i], priority[i] = t, c
    far, bounds = np.ones((k, k)), np.empty(k + 1, dtype=np.int64)
    for i in range(k + 1):
        bounds[i] = first[edges[i]] - begin
    mine = ranks[begin : first[high]].copy()
    where = np.empty(len(mine), dtype=np.int32)
    for i in range(k):
        far[i, i] = 0.0
        where[bounds[i] : bounds[i + 1]] = i
    member, none = np.empty_like(where), np.full(len(where), -1, dtype=np.int32)
    blocks = PlacedRanks(
        induced_graph(g, mine, local), where, bounds, far, np.empty((0, 0)), member, none
    )
    exchange_pairs(blocks, 2, state)
    replace_ranks(blocks, priority, MOST_ANEW, allowed - float(state[1]), state)
    ranks[begin : first[high]] = mine[ranks_by_node(where, bounds)]
