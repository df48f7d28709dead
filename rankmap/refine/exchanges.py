"""Exchanges: the ranks of two nodes, or of a few, are divided anew on the real distances.

Pairs of nodes, as in M. Brandfass, T. Alrutz and T. Gerhold, "Rank reordering for MPI
communication optimization" (Computers & Fluids 2013), each by a bisection with bias
instead of single swaps. And the ranks of a few nodes near each other are placed from
nothing, again and again: large neighbourhood search (P. Shaw, "Using constraint
programming and local search methods to solve vehicle routing problems", CP 1998). What
is better on the real distances to all other ranks stays.
"""

from __future__ import annotations

import numpy as np

from rankmap.refine.bisection import bisect_from_nothing, extremes, refine_again
from rankmap.refine.halves import cost_of_halves
from rankmap.refine.jit import Floats, Ints, Longs, Reals, State, inlined, kernel
from rankmap.refine.subgraph import (
    add_pull,
    bias_at_cut,
    deal_halves,
    induced_graph,
    note_side,
    outer_costs,
    ranks_by_node,
)  # fmt: skip
from rankmap.refine.work import draw, tick

__all__ = ["cost_of_nodes", "exchange_pairs", "replace_ranks"]


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


@kernel
def choose_nodes(far: Floats, p: int, q: int, many: int, state: State) -> Longs:
    """Return two nodes and so many nodes nearest to each, ascending."""
    taken = np.zeros(len(far), dtype=np.bool_)
    near = np.empty(len(far))
    count = 0
    for c in (p, q):
        for r in range(len(far)):  # of nodes that are equally far, any
            near[r] = far[c, r] * (1 + 1e-9 * (draw(state) & 0xFFFF))
        near[c] = -1.0
        for _ in range(min(many, len(far))):
            r, _ = extremes(near)
            near[r] = 1e300
            count += 0 if taken[r] else 1
            taken[r] = True
    out = np.empty(count, dtype=np.int64)
    for r in range(len(far) - 1, -1, -1):
        if taken[r]:
            count -= 1
            out[count] = r
    return out


@kernel
def outermost_cut(some: Longs, priority: Longs, low: int, high: int) -> int:
    """Return where some nodes part: at the outermost of the machine's cuts between them."""
    cut, best = low + 1, priority[some[low] + 1]
    for i in range(low + 1, high):
        for t in range(some[i - 1] + 1, some[i] + 1):
            if priority[t] < best:
                cut, best = i, priority[t]
    return cut


@inlined
def place_from_nothing(
    ptr: Ints, adj: Ints, w: Floats, first: Longs, near: Floats, outer: Floats, some: Longs,
    priority: Longs, state: State,
) -> Ints:  # fmt: skip
    """Return nodes for ranks from nothing: the nodes parted, the ranks halved, again and again."""
    ranks = np.arange(len(ptr) - 1).astype(np.int32)
    local = np.full(len(ranks), -1, dtype=np.int32)
    where = np.zeros((len(ranks), 2), dtype=np.int32)
    where[:, 1] = len(some)
    todo = [(0, len(some))]
    done = 0
    while done < len(todo):
        low, high = todo[done]
        done += 1
        if high - low < 2 or first[high] == first[low]:  # one node, or nodes without ranks
            continue
        cut = outermost_cut(some, priority, low, high)
        a, b, c = first[low], first[cut], first[high]
        these = ranks[a:c].copy()
        sub_ptr, sub_adj, sub_w = induced_graph(ptr, adj, w, these, local)
        bias = bias_at_cut(outer, these, low, cut, high)
        add_pull(ptr, adj, w, these, where, np.array([low, cut, high]), near, bias, sub_w)
        tick(state, 3 * len(sub_adj) + 8 * len(these))
        half = bisect_from_nothing(sub_ptr, sub_adj, sub_w, bias, b - a, 0, 1, state)
        deal_halves(these, half, ranks, a, b)
        note_side(these, half, where, cut)
        todo.append((low, cut))
        todo.append((cut, high))
    return where[:, 0].copy()


@inlined
def replace_on(
    ptr: Ints, adj: Ints, w: Floats, node: Ints, member: Ints, first: Longs, far: Floats,
    outer: Floats, some: Longs, priority: Longs, local: Ints, state: State,
) -> float:  # fmt: skip
    """Place the ranks of some nodes anew; return by how much J falls, 0 where all is left."""
    k = len(some)
    bounds = np.zeros(k + 1, dtype=np.int64)
    for i in range(k):
        bounds[i + 1] = bounds[i] + first[some[i] + 1] - first[some[i]]
    mine, was = np.empty(bounds[k], dtype=np.int32), np.empty(bounds[k], dtype=np.int32)
    near = np.empty((k, k))
    for i in range(k):
        mine[bounds[i] : bounds[i + 1]] = member[first[some[i]] : first[some[i] + 1]]
        was[bounds[i] : bounds[i + 1]] = i
        for j in range(k):
            near[i, j] = far[some[i], some[j]]
    p, a, x = induced_graph(ptr, adj, w, mine, local)
    others = outer_costs(ptr, adj, w, node, far, outer, mine, some)
    now = place_from_nothing(p, a, x, bounds, near, others, some, priority, state)
    exchange_pairs(p, a, x, now, bounds, near, others, 2, state)
    tick(state, 4 * len(a) + 2 * len(mine) * k)
    before = cost_of_nodes(p, a, x, was, near, others)
    gain = before - cost_of_nodes(p, a, x, now, near, others)
    if gain <= 1e-9 * abs(before):
        return 0.0
    order = ranks_by_node(now, bounds)
    for i in range(k):
        for j in range(bounds[i], bounds[i + 1]):
            member[first[some[i]] + j - bounds[i]] = mine[order[j]]
            node[mine[order[j]]] = some[i]
    return gain


@kernel
def replace_ranks(
    ptr: Ints, adj: Ints, w: Floats, node: Ints, first: Longs, far: Floats, outer: Floats,
    priority: Longs, most: float, allowed: float, state: State,
) -> None:  # fmt: skip
    """Place the ranks of a few nodes anew, again and again, wherever ranks talk across nodes.

    Parameters
    ----------
    ptr, adj, w
        The ranks' edges among themselves.
    node : int32 (ranks,)
        Node of each rank, changed in place where J falls; as many ranks on
        each node before and after.
    first : int64 (nodes + 1,)
        Slots before each node.
    far : float64 (nodes, nodes)
    outer : float64 (ranks, nodes) or (0, 0)
        What edges to ranks elsewhere would cost with the rank on each node.
    priority : int64 (nodes,)
        Which of the machine's cuts parts a node from the one before, outer ones first.
    most : float
        How often each rank is placed anew on average, at most.
    allowed : float
        Work that may be done.
    state : uint64 (2,)
    """
    n = len(node)
    member = ranks_by_node(node, first)
    local = np.full(n, -1, dtype=np.int32)
    done, idle = 0, 0
    allowed += float(state[1])
    while done < most * n and idle < 1000 and float(state[1]) < allowed:
        idle += 1
        u = draw(state) % n
        row = ptr[u + 1] - ptr[u]
        if row == 0:
            continue
        p, q = node[u], node[adj[ptr[u] + draw(state) % row]]
        if p == q:
            continue
        idle = 0
        some = choose_nodes(far, p, q, 2 << (draw(state) & 1), state)
        tick(state, 8 * len(far))
        replace_on(ptr, adj, w, node, member, first, far, outer, some, priority, local, state)
        for r in some:
            done += first[r + 1] - first[r]
