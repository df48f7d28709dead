# SPDX-License-Identifier: Apache-2.0
"""Exchanges: the ranks of two or more nodes are divided again by actual distances.

Pairs of nodes, as in M. Brandfass, T. Alrutz and T. Gerhold, "Rank reordering for MPI
communication optimization" (Computers & Fluids 2013), each by a bisection with bias
instead of single swaps. And the ranks of a few nodes near each other are placed from
nothing, again and again: large neighbourhood search (P. Shaw, "Using constraint
programming and local search methods to solve vehicle routing problems", CP 1998). What
is better on the real distances to all other ranks stays.
"""

from __future__ import annotations

import numpy as np

from nidmap.rankmap.refine.bisection import bisect_from_nothing, extreme_places, refine_again
from nidmap.rankmap.refine.halves import cost_of_halves
from nidmap.rankmap.refine.jit import (
    Csr,
    Floats,
    Ints,
    Longs,
    Reals,
    State,
    copy_part,
    draw,
    inlined,
    kernel,
    long,
    tick,
)
from nidmap.rankmap.refine.subgraph import (
    PlacedRanks,
    add_pull,
    deal_halves,
    induced_graph,
    lean_at_cut,
    note_side,
    outer_costs,
    ranks_by_node,
)  # fmt: skip


@kernel
def cost_of_nodes(ptr: Ints, adj: Ints, w: Reals, node: Ints, far: Reals, outer: Reals) -> float:
    """Return J of the ranks, counting edges to ranks elsewhere once."""
    total = 0.0
    for u in range(len(node)):
        for e in range(ptr[u], ptr[u + 1]):
            # Every edge is in the rows of both its ends, so each side adds half of w d(node u, node
            # v).
            total += 0.5 * w[e] * far[node[u], node[adj[e]]]
        if len(outer) > 0:
            total += outer[u, node[u]]
    return total


@inlined
def exchange_pair(x: PlacedRanks, p: int, q: int, state: State) -> bool:
    """Divide the ranks of two nodes again, starting as they are; tell whether J falls."""
    g, node, first, far, outer, member, local = x
    ptr, adj, w = g.ptr, g.adj, g.w
    target = first[p + 1] - first[p]
    mine = np.empty(target + first[q + 1] - first[q], dtype=np.int32)
    copy_part(member, first[p], first[p + 1], mine, long(0))
    copy_part(member, first[q], first[q + 1], mine, target)
    sub = induced_graph(g, mine, local)
    # An edge between the two nodes costs w d(p, q) where its ends part, and nothing where they are
    # together: with these weights the cut of the halves is the part of J that a division decides.
    for e in range(len(sub.w)):
        sub.w[e] *= far[p, q]
    # The other part is linear: bias[u] = sum over neighbours v elsewhere of w (d(q, r) - d(p, r)),
    # r being the node of v, is what u costs more on q than on p.
    for i in range(len(mine)):
        u = mine[i]
        if len(outer) > 0:
            sub.bias[i] = outer[u, q] - outer[u, p]
        for e in range(ptr[u], ptr[u + 1]):
            r = node[adj[e]]
            if r != p and r != q:
                sub.bias[i] += w[e] * (far[q, r] - far[p, r])
    tick(state, 3 * len(sub.adj) + 8 * len(mine))
    present = np.ones(len(mine), dtype=np.int8)
    present[:target] = 0
    before = cost_of_halves(sub, present)
    # The label is the present division, so no cluster spans both halves and the start is the
    # present division: the result is never worse.
    half = refine_again(sub, target, long(0), present, present, state)
    if before - cost_of_halves(sub, half) <= 1e-9 * abs(before):
        return False
    deal_halves(mine, half, member, first[p], first[q])
    for i in range(len(mine)):
        node[mine[i]] = p if half[i] == 0 else q
    return True


@kernel
def cost_by_pair(g: Csr, node: Ints, far: Floats) -> Floats:
    """Return the cost of the edges between every two nodes, float64 (nodes, nodes), p < q."""
    cost = np.zeros(far.shape)
    for u in range(len(node)):
        for e in range(g.ptr[u], g.ptr[u + 1]):
            p, q = node[u], node[g.adj[e]]
            if p < q:
                cost[p, q] += g.w[e] * far[p, q]
    return cost


@kernel
def costliest_pair(cost: Floats) -> tuple[int, int]:
    """Return the two nodes whose edges to each other cost most."""
    p, q = 0, 0
    for i in range(len(cost)):
        for j in range(i + 1, len(cost)):
            if cost[i, j] > cost[p, q]:
                p, q = i, j
    return p, q


@kernel
def exchange_pairs(x: PlacedRanks, rounds: int, state: State) -> None:
    """Exchange ranks between all pairs of communicating nodes, heaviest traffic first."""
    nodes = len(x.far)
    copy_part(ranks_by_node(x.node, x.first), long(0), len(x.node), x.member, long(0))
    changed, tried = np.zeros(nodes, dtype=np.int64), np.full((nodes, nodes), -1)
    clock = 0
    for _ in range(rounds):
        cost = cost_by_pair(x.g, x.node, x.far)
        while True:
            p, q = costliest_pair(cost)
            if p == q:
                break
            cost[p, q] = 0.0
            tick(state, nodes * nodes // 4)
            # Nothing has moved on either node since the pair was tried: the outcome would be the
            # same.
            if tried[p, q] >= max(changed[p], changed[q]):
                continue
            clock += 1
            tried[p, q] = clock
            if exchange_pair(x, p, q, state):
                changed[p] = clock
                changed[q] = clock


@kernel
def choose_nodes(far: Floats, p: int, q: int, many: int, state: State) -> Longs:
    """Return two nodes and the given number of nodes nearest to each, ascending."""
    taken = np.zeros(len(far), dtype=np.bool_)
    near = np.empty(len(far))
    count = 0
    for c in (p, q):
        for r in range(len(far)):  # of nodes that are equally far, any
            near[r] = far[c, r] * (1 + 1e-9 * (draw(state) & 0xFFFF))
        # The node itself comes first.
        near[c] = -1.0
        for _ in range(min(many, len(far))):
            r, _ = extreme_places(near)
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
    """Return where some nodes are separated: at the outermost cut between them."""
    cut, best = low + 1, priority[some[low] + 1]
    for i in range(low + 1, high):
        # Between two chosen nodes there are cuts of nodes that were not chosen; the outermost one
        # counts, as it represents the longest path in the machine.
        for t in range(some[i - 1] + 1, some[i] + 1):
            if priority[t] < best:
                cut, best = i, priority[t]
    return cut


@inlined
def place_from_nothing(x: PlacedRanks, some: Longs, priority: Longs, state: State) -> None:
    """Place ranks on nodes from scratch by recursively halving nodes and ranks."""
    first = x.first
    ranks = np.arange(len(x.node)).astype(np.int32)
    where = np.zeros((len(ranks), 2), dtype=np.int32)
    where[:, 1] = len(some)
    # Breadth first: all parts of one size are known before any is halved again, so that the pull of
    # the other ranks is of one resolution.
    todo = [(0, len(some))]
    done = 0
    while done < len(todo):
        low, high = todo[done]
        done += 1
        if high - low < 2 or first[high] == first[low]:  # one node, or nodes without ranks
            continue
        cut = outermost_cut(some, priority, low, high)
        a, b, c = first[low], first[cut], first[high]
        members = ranks[a:c].copy()
        sub = induced_graph(x.g, members, x.local)
        # Edges to ranks that stay in place, and to ranks of other parts, of which only the part is
        # known so far, enter as a bias; edges inside form the graph.
        lean_at_cut(x.outer, members, low, cut, high, sub.bias)
        add_pull(x.g, members, where, np.array([low, cut, high]), x.far, sub)
        tick(state, 3 * len(sub.adj) + 8 * len(members))
        half = bisect_from_nothing(sub, b - a, long(0), long(1), state)
        deal_halves(members, half, ranks, a, b)
        note_side(members, half, where, cut)
        todo.append((low, cut))
        todo.append((cut, high))
    for u in range(len(where)):
        x.node[u] = where[u, 0]


@inlined
def replace_on(x: PlacedRanks, some: Longs, priority: Longs, state: State) -> None:
    """Place the ranks of some nodes again, if that lowers J."""
    first, far, member = x.first, x.far, x.member
    k = len(some)
    bounds = np.zeros(k + 1, dtype=np.int64)
    for i in range(k):
        bounds[i + 1] = bounds[i] + first[some[i] + 1] - first[some[i]]
    mine, was = np.empty(bounds[k], dtype=np.int32), np.empty(bounds[k], dtype=np.int32)
    near = np.empty((k, k))
    for i in range(k):
        copy_part(member, first[some[i]], first[some[i] + 1], mine, bounds[i])
        was[bounds[i] : bounds[i + 1]] = i
        for j in range(k):
            near[i, j] = far[some[i], some[j]]
    sub, others = induced_graph(x.g, mine, x.local), outer_costs(x, mine, some)
    now, local = np.empty_like(was), np.full(len(was), -1, dtype=np.int32)
    # A small separate problem: the chosen nodes with their distances, the ranks on them, and the
    # cost of edges to all other ranks on each node.
    anew = PlacedRanks(sub, now, bounds, near, others, np.empty_like(was), local)
    place_from_nothing(anew, some, priority, state)
    exchange_pairs(anew, long(2), state)
    tick(state, 4 * len(sub.adj) + 2 * len(mine) * k)
    before = cost_of_nodes(sub.ptr, sub.adj, sub.w, was, near, others)
    after = cost_of_nodes(sub.ptr, sub.adj, sub.w, now, near, others)
    # Only a real gain is kept: a tie would move ranks for nothing, and the search in circles.
    if before - after <= 1e-9 * abs(before):
        return
    order = ranks_by_node(now, bounds)
    for i in range(k):
        for j in range(bounds[i], bounds[i + 1]):
            member[first[some[i]] + j - bounds[i]] = mine[order[j]]
            x.node[mine[order[j]]] = some[i]


@kernel
def replace_ranks(
    x: PlacedRanks, priority: Longs, most: float, allowed: float, state: State
) -> None:
    """Repeatedly place the ranks of a few nodes again, wherever ranks talk across nodes.

    `x`: changed in place where J falls; as many ranks on each node before and after. `priority`
    (nodes,): which of the machine's cuts parts a node from the one before, outer ones first.
    `most`: how often each rank is placed anew on average, at most. `allowed`: work that may be
    done. `state` (2,).
    """
    n, ptr, node, first = len(x.node), x.g.ptr, x.node, x.first
    copy_part(ranks_by_node(node, first), long(0), n, x.member, long(0))
    done, idle = 0, 0
    allowed += float(state[1])
    # Where ranks talk across nodes there is something to win: a random edge that leaves its node
    # says where to look, so nodes are drawn in proportion to the number of such edges.
    while done < most * n and idle < 1000 and float(state[1]) < allowed:
        idle += 1
        u = draw(state) % n
        row = ptr[u + 1] - ptr[u]
        if row == 0:
            continue
        p, q = node[u], node[x.g.adj[ptr[u] + draw(state) % row]]
        if p == q:
            continue
        idle = 0
        some = choose_nodes(x.far, p, q, 2 << (draw(state) & 1), state)
        tick(state, 8 * len(x.far))
        replace_on(x, some, priority, state)
        for r in some:
            done += first[r + 1] - first[r]
