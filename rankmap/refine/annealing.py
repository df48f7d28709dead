"""Annealing of where ranks are, on the real distances.

What every rank would cost on every node is kept in a table, so that a move is
judged by two look-ups. First single ranks move, nodes being a little over or
under their slots at a price that rises; then the nodes are made exact; then
pairs of ranks swap. A step that raises the cost by x is taken with probability
exp(-x / T), T falling: what a descent is caught in is left again.

S. Kirkpatrick, C. D. Gelatt and M. P. Vecchi, "Optimization by simulated
annealing" (Science 1983); for mappings, S. H. Bokhari, "On the mapping problem"
(IEEE Trans. Computers 1981).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankmap.refine.exchanges import cost_of_nodes
from rankmap.refine.jit import Ints, Longs, State, Table, draw, kernel, long, tick
from rankmap.refine.subgraph import ranks_by_node

__all__ = ["anneal"]

#: Work that a step is, and nodes whose cost is brought up to date with as much work as an edge is.
LOOK, WIDTH = 6, 8

#: Steps that raise the cost by more than this times T are not taken, nor is it drawn for them.
HOPELESS = 13.9


@kernel
def shift(ptr: Ints, adj: Ints, w: Table, u: int, p: int, q: int, far: Table, costs: Table) -> None:
    """Update what the partners of `u` cost everywhere, after it has gone from p to q."""
    gone, come = far[p], far[q]
    for e in range(ptr[u], ptr[u + 1]):
        weight = w[e]
        row = costs[adj[e]]
        for k in range(len(row)):
            row[k] += weight * (come[k] - gone[k])


@kernel
def fill_table(ptr: Ints, adj: Ints, w: Table, node: Ints, far: Table, outer: Table) -> Table:
    """Return what each rank would cost on each node, float32 (ranks, nodes)."""
    costs = np.zeros((len(node), len(far)), dtype=np.float32)
    for u in range(len(outer)):  # a slice that is assigned takes seconds to compile
        for k in range(len(far)):
            costs[u, k] = outer[u, k]
    for u in range(len(node)):
        row = costs[u]
        for e in range(ptr[u], ptr[u + 1]):
            weight = w[e]
            there = far[node[adj[e]]]
            for k in range(len(row)):
                row[k] += weight * there[k]
    return costs


@kernel
def target(u: int, r: int, ptr: Ints, adj: Ints, node: Ints, nodes: int) -> Any:
    """Return a node that rank `u` might move to: mostly one of its partners', else any."""
    row = ptr[u + 1] - ptr[u]
    if row == 0 or (r >> 26) & 15 == 0:
        return (r >> 30) % nodes
    return node[adj[ptr[u] + (r & 0x3FFFFFF) % row]]


@kernel
def allowance(temperature: float, state: State) -> Any:
    """Return by how much the next step may raise the cost."""
    return -temperature * np.log(((draw(state) & 0xFFFFF) + 1) / 1048577.0)


@kernel
def move(
    ptr: Ints, adj: Ints, w: Table, node: Ints, load: Longs, slots: Longs, far: Table,
    costs: Table, hot: float, cold: float, allowed: float, state: State,
) -> None:  # fmt: skip
    """Move single ranks; a node over or under its slots costs the square of what it is off by."""
    n, nodes = len(node), len(far)
    fall, rise = (cold / hot) ** (1 / 256), 10.0 ** (1 / 256)
    temperature, price = hot, 0.5
    done, chill = 0, allowed / 256
    while done < allowed:
        done += LOOK
        if done > chill:
            chill += allowed / 256
            temperature *= fall
            price *= rise
        u = draw(state) % n
        p = node[u]
        q = target(u, draw(state), ptr, adj, node, nodes)
        if q == p:
            continue
        over = (load[q] - slots[q]) - (load[p] - slots[p]) + 1
        delta = costs[u, q] - costs[u, p] + price * over
        if delta > HOPELESS * temperature:
            continue
        if delta <= 0 or delta < allowance(temperature, state):
            node[u] = q
            load[p] -= 1
            load[q] += 1
            done += LOOK + (ptr[u + 1] - ptr[u]) * (1 + nodes // WIDTH)
            shift(ptr, adj, w, long(u), long(p), long(q), far, costs)
    tick(state, done)


@kernel
def settle(
    ptr: Ints, adj: Ints, w: Table, node: Ints, load: Longs, slots: Longs, far: Table, costs: Table
) -> None:
    """Make the nodes exact by the cheapest moves from fuller nodes to emptier ones."""
    n, nodes = len(node), len(far)
    while True:
        best, who, to = 1e300, -1, -1
        for u in range(n):
            p = node[u]
            if load[p] <= slots[p]:
                continue
            for q in range(nodes):
                if load[q] < slots[q] and costs[u, q] - costs[u, p] < best:
                    best, who, to = costs[u, q] - costs[u, p], u, q
        if who < 0:
            return
        p = node[who]
        node[who] = to
        load[p] -= 1
        load[to] += 1
        shift(ptr, adj, w, long(who), long(p), long(to), far, costs)


@kernel
def partner(p: int, first: Longs, q: int, member: Ints, costs: Table, state: State) -> Any:
    """Return the rank of node q, of four drawn, that would go to p most gladly."""
    size = first[q + 1] - first[q]
    best, who = np.float32(np.inf), member[first[q]]
    for _ in range(min(4, size)):
        v = member[first[q] + (draw(state) & 0xFFFFFFF) % size]
        if costs[v, p] - costs[v, q] < best:
            best, who = costs[v, p] - costs[v, q], v
    return who


@kernel
def swap(
    ptr: Ints, adj: Ints, w: Table, node: Ints, first: Longs, far: Table, costs: Table,
    hot: float, cold: float, allowed: float, state: State,
) -> None:  # fmt: skip
    """Swap pairs of ranks."""
    n, nodes = len(node), len(far)
    member = ranks_by_node(node, first)
    place = np.empty(n, dtype=np.int32)
    for i in range(n):
        place[member[i]] = i
    fall, temperature = (cold / hot) ** (1 / 256), hot
    done, chill = 0, allowed / 256
    while done < allowed:
        done += 3 * LOOK
        if done > chill:
            chill += allowed / 256
            temperature *= fall
        u = draw(state) % n
        p = node[u]
        q = target(u, draw(state), ptr, adj, node, nodes)
        if q == p or first[q] == first[q + 1]:
            continue
        v = partner(p, first, q, member, costs, state)
        delta = costs[u, q] - costs[u, p] + costs[v, p] - costs[v, q]
        if delta > HOPELESS * temperature:
            continue
        limit = allowance(temperature, state)
        if delta > limit:
            continue
        for e in range(ptr[u], ptr[u + 1]):
            if adj[e] == v:  # the two stay as far apart as they were
                delta += w[e] * (far[p, q] + far[q, p])
        if delta <= limit:
            node[u], node[v] = q, p
            i, j = place[u], place[v]
            member[i], member[j] = v, u
            place[u], place[v] = j, i
            edges = ptr[u + 1] - ptr[u] + ptr[v + 1] - ptr[v]
            done += 2 * LOOK + edges * (1 + nodes // WIDTH)
            shift(ptr, adj, w, long(u), long(p), long(q), far, costs)
            shift(ptr, adj, w, long(v), long(q), long(p), far, costs)
    tick(state, done)


@kernel
def anneal(
    ptr: Ints, adj: Ints, w: Table, node: Ints, slots: Longs, far: Table, outer: Table,
    hot: float, moves: float, swaps: float, state: State,
) -> float:  # fmt: skip
    """Improve where ranks are, in place, and return by how much J has fallen (0 or more).

    Parameters
    ----------
    ptr, adj : int32
        The ranks' edges among themselves.
    w : float32
        Their weights, 1 on average.
    node : int32 (ranks,)
        Node of each rank; changed in place, where J falls.
    slots : int64 (nodes,)
        Slots of each node: as many ranks as it has before and after.
    far : float32 (nodes, nodes)
        Distances, the smallest being about 1.
    outer : float32 (ranks, nodes) or (0, 0)
        What edges to ranks elsewhere would cost with the rank on each node.
    hot : float
        Temperature at the first move; 0.8 keeps what a good beginning has.
    moves, swaps : float
        Work that may be done on each.
    state : uint64 (2,)
    """
    before = cost_of_nodes(ptr, adj, w, node, far, outer)
    now = node.copy()
    load = slots.copy()
    costs = fill_table(ptr, adj, w, now, far, outer)
    move(ptr, adj, w, now, load, slots, far, costs, hot, 0.08, moves, state)
    settle(ptr, adj, w, now, load, slots, far, costs)
    first = np.zeros(len(slots) + 1, dtype=np.int64)
    for p in range(len(slots)):
        first[p + 1] = first[p] + slots[p]
    swap(ptr, adj, w, now, first, far, costs, 0.2, 0.05, swaps, state)
    after = cost_of_nodes(ptr, adj, w, now, far, outer)
    if after >= before:
        return 0.0
    node[:] = now
    return before - after
