"""Replacement: the ranks of a few nodes near each other are placed from nothing, again and again.

Large neighbourhood search (P. Shaw, "Using constraint programming and local search
methods to solve vehicle routing problems", CP 1998): what is better on the real
distances to all other ranks stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.refine.attraction import add_pull, bias_at_cut, note_side, outer_costs
from rankmap.refine.bisection import bisect_from_nothing, extremes
from rankmap.refine.exchanges import cost_of_nodes, exchange_pairs
from rankmap.refine.jit import inlined, kernel
from rankmap.refine.subgraph import deal_halves, induced_graph, ranks_by_node
from rankmap.refine.work import draw, tick

if TYPE_CHECKING:
    from rankmap.refine.arrays import Floats, Ints, Longs, State

__all__ = ["replace_ranks"]


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
        if high - low < 2:
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
