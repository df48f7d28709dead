"""Exchanges: the ranks of two nodes are divided anew between them, on the real distances.

Pairs of nodes, as in M. Brandfass, T. Alrutz and T. Gerhold, "Rank reordering for MPI
communication optimization" (Computers & Fluids 2013), each by a bisection with bias
instead of single swaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.refine.bisection import refine_again
from rankmap.refine.halves import cost_of_halves
from rankmap.refine.jit import inlined, kernel
from rankmap.refine.subgraph import deal_halves, induced_graph, ranks_by_node
from rankmap.refine.work import tick

if TYPE_CHECKING:
    from rankmap.refine.arrays import Floats, Ints, Longs, Reals, State

__all__ = ["cost_of_nodes", "exchange_pairs"]


@kernel
def cost_of_nodes(ptr: Ints, adj: Ints, w: Reals, node: Ints, far: Reals, outer: Reals) -> float:
    """Return J of the ranks, the edges to ranks elsewhere counted once too."""
    total = 0.0
    for u in range(len(node)):
        for e in range(ptr[u], ptr[u + 1]):
            total += 0.5 * w[e] * far[node[u], node[adj[e]]]
        if len(outer) > 0:
            total += outer[u, node[u]]
    return total


@inlined
def exchange_pair(
    ptr: Ints, adj: Ints, w: Floats, node: Ints, member: Ints, first: Longs, far: Floats,
    outer: Floats, p: int, q: int, local: Ints, state: State,
) -> float:  # fmt: skip
    """Divide the ranks of two nodes anew, beginning with what is; return by how much J falls."""
    target = first[p + 1] - first[p]
    mine = np.empty(target + first[q + 1] - first[q], dtype=np.int32)
    mine[:target] = member[first[p] : first[p + 1]]
    mine[target:] = member[first[q] : first[q + 1]]
    sub_ptr, sub_adj, sub_w = induced_graph(ptr, adj, w, mine, local)
    for e in range(len(sub_w)):
        sub_w[e] *= far[p, q]
    bias = np.zeros(len(mine))
    for i in range(len(mine)):
        u = mine[i]
        if len(outer) > 0:
            bias[i] = outer[u, q] - outer[u, p]
        for e in range(ptr[u], ptr[u + 1]):
            r = node[adj[e]]
            if r != p and r != q:
                bias[i] += w[e] * (far[q, r] - far[p, r])
    tick(state, 3 * len(sub_adj) + 8 * len(mine))
    given = np.ones(len(mine), dtype=np.int8)
    given[:target] = 0
    before = cost_of_halves(sub_ptr, sub_adj, sub_w, bias, given)
    half = refine_again(sub_ptr, sub_adj, sub_w, bias, target, 0, given, given, state)
    gain = before - cost_of_halves(sub_ptr, sub_adj, sub_w, bias, half)
    if gain <= 1e-9 * abs(before):
        return 0.0
    deal_halves(mine, half, member, first[p], first[q])
    for i in range(len(mine)):
        node[mine[i]] = p if half[i] == 0 else q
    return gain


@kernel
def cost_by_pair(ptr: Ints, adj: Ints, w: Floats, node: Ints, far: Floats) -> Floats:
    """Return what the edges between every two nodes cost, float64 (nodes, nodes), p < q."""
    cost = np.zeros(far.shape)
    for u in range(len(node)):
        for e in range(ptr[u], ptr[u + 1]):
            p, q = node[u], node[adj[e]]
            if p < q:
                cost[p, q] += w[e] * far[p, q]
    return cost


@kernel
def costliest_pair(cost: Floats) -> tuple[int, int]:
    """Return the two nodes between which edges cost most."""
    p, q = 0, 0
    for i in range(len(cost)):
        for j in range(i + 1, len(cost)):
            if cost[i, j] > cost[p, q]:
                p, q = i, j
    return p, q


@kernel
def exchange_pairs(
    ptr: Ints, adj: Ints, w: Floats, node: Ints, first: Longs, far: Floats, outer: Floats,
    rounds: int, state: State,
) -> None:  # fmt: skip
    """Exchange ranks between all pairs of nodes that talk, those that talk most first."""
    nodes = len(far)
    member = ranks_by_node(node, first)
    local = np.full(len(node), -1, dtype=np.int32)
    changed, tried = np.zeros(nodes, dtype=np.int64), np.full((nodes, nodes), -1)
    clock = 0
    for _ in range(rounds):
        cost = cost_by_pair(ptr, adj, w, node, far)
        while True:
            p, q = costliest_pair(cost)
            if p == q:
                break
            cost[p, q] = 0.0
            tick(state, nodes * nodes // 4)
            if tried[p, q] >= max(changed[p], changed[q]):
                continue
            clock += 1
            tried[p, q] = clock
            if exchange_pair(ptr, adj, w, node, member, first, far, outer, p, q, local, state) > 0:
                changed[p] = clock
                changed[q] = clock
