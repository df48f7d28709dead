"""Bisection: coarsen, grow halves of the coarsest graph, refine them on the way back.

The multilevel scheme of G. Karypis and V. Kumar, "A fast and high quality multilevel
scheme for partitioning irregular graphs" (SIAM J. Sci. Comput. 1998). Several
bisections are combined as KaFFPaE does (P. Sanders and C. Schulz, "Distributed
evolutionary graph partitioning", ALENEX 2012): what two of them agree on is
contracted, and the better one refined on the coarse graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankmap.refine.coarsening import COARSE, coarsen, label_clusters, sum_sizes
from rankmap.refine.halves import balance, cost_of_halves, refine_halves, size_of_half
from rankmap.refine.jit import Bytes, Floats, Ints, State, kernel
from rankmap.refine.work import draw, tick

__all__ = ["bisect", "bisect_from_nothing", "extremes", "refine_again"]

#: Starts that are tried on the coarsest graph.
TRIES = 2

#: A large graph is first coarsened to this part of its vertices, and halved from there.
SHRINK = 6

#: Part of a halving's work that goes into halvings from nothing, and how often at most the
#: result of each is combined with another.
FROM_NOTHING, CYCLES = 0.45, 3


@kernel
def extremes(cost: Floats) -> tuple[int, int]:
    """Return the places of the least and of the largest number."""
    least, most = 0, 0
    for k in range(1, len(cost)):
        if cost[k] < cost[least]:
            least = k
        if cost[k] >= cost[most]:
            most = k
    return least, most


@kernel
def grow_half(ptr: Ints, adj: Ints, w: Floats, size: Ints, target: int, state: State) -> Bytes:
    """Return halves: half 0 grows from a random vertex, taking what is tied to it most."""
    n = len(size)
    half = np.ones(n, dtype=np.int8)
    tie = np.zeros(n, dtype=np.float64)
    total = np.zeros(n, dtype=np.float64)
    for u in range(n):
        for e in range(ptr[u], ptr[u + 1]):
            total[u] += w[e]
    held = 0
    u = draw(state) % n
    while u >= 0:
        tick(state, n // 2)
        half[u] = 0
        held += size[u]
        for e in range(ptr[u], ptr[u + 1]):
            tie[adj[e]] += w[e]
        if held >= target:
            break
        u, best = -1, -1e300
        for v in range(n):
            if half[v] == 1 and held + size[v] <= target + size[v] // 2:
                value = 2 * tie[v] - total[v] + 1e-9 * (draw(state) % 1024) * total[v]
                if tie[v] == 0:
                    value -= 1e100
                if value > best:
                    u, best = v, value
    return half


@kernel
def swap_half_names(bias: Floats, size: Ints, target: int, half: Bytes) -> None:
    """Call the halves by each other's names where that is better and their sizes allow it."""
    lean, ones, whole, largest = 0.0, 0, 0, 0
    for u in range(len(half)):
        largest = max(largest, size[u])
        lean += bias[u] if half[u] == 1 else -bias[u]
        ones += size[u] * half[u]
        whole += size[u]
    if lean > 0 and abs(ones - target) <= 2 * max(largest, abs(whole - ones - target)):
        for u in range(len(half)):
            half[u] = 1 - half[u]


@kernel
def uncoarsen(graphs: Any, ofs: Any, half: Bytes, target: int, give: int, state: State) -> Bytes:
    """Take halves of the coarsest graph to the finest one, refining them on the way."""
    whole, top = sum_sizes(graphs[0][4]), len(graphs) - 1
    for level in range(top - 1, -1, -1):
        half = half[ofs[level + 1]]
        p, a, x, b, s = graphs[level]
        unit = level == 0 and len(s) == whole
        slack = give if unit else max(give, 1, whole // (200 + 100 * (top - level)))
        refine_halves(p, a, x, b, s, half, target, slack, 60 + len(half) // 40, 3, state)
    return half


@kernel
def bisect_once(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, size: Ints, target: int, give: int, state: State
) -> Bytes:
    """Return halves of a graph from nothing, about `target` in half 0."""
    plain = np.zeros(len(size), dtype=np.int8)
    graphs, ofs = coarsen(ptr, adj, w, bias, size, plain, COARSE, state)
    p, a, x, b, s = graphs[-1]
    whole = sum_sizes(size)
    slack = give if len(s) == whole else max(give, 1, whole // 200)
    half, best, best_off = np.zeros(len(s), dtype=np.int8), 1e300, 1 << 62
    for _ in range(TRIES):
        tried = grow_half(p, a, x, s, target, state)
        swap_half_names(b, s, target, tried)
        cost = refine_halves(p, a, x, b, s, tried, target, slack, 60, 4, state)
        off = max(abs(size_of_half(s, tried) - target), slack)
        if off < best_off or (off == best_off and cost < best):
            half, best, best_off = tried, cost, off
    return uncoarsen(graphs, ofs, half, target, give, state)


@kernel
def bisect_from_nothing(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, target: int, give: int, tries: int, state: State
) -> Bytes:
    """Return the best halves of several that begin on one graph coarsened some way."""
    n = len(ptr) - 1
    size, plain = np.ones(n, dtype=np.int32), np.zeros(n, dtype=np.int8)
    if tries < 2 or n <= 4 * COARSE:
        half = bisect_once(ptr, adj, w, bias, size, target, give, state)
    else:
        graphs, ofs = coarsen(ptr, adj, w, bias, size, plain, n // SHRINK, state)
        p, a, x, b, s = graphs[-1]
        half, best = plain, 1e300
        for _ in range(max(1, min(tries, 3 * len(adj) // (2 * len(a) + 1)))):
            tried = bisect_once(p, a, x, b, s, target, give, state)
            off = max(0, abs(size_of_half(s, tried) - target) - max(give, 1, n // 200))
            cost = cost_of_halves(p, a, x, b, tried) * (1 + 0.01 * off)
            if cost < best:
                half, best = tried, cost
        half = uncoarsen(graphs, ofs, half, target, give, state)
    balance(ptr, adj, w, bias, half, target, give)
    return half


@kernel
def refine_again(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, target: int, give: int,
    label: Bytes, given: Bytes, state: State,
) -> Bytes:  # fmt: skip
    """Return given halves, refined on graphs in which only vertices of one label are joined."""
    size = np.ones(len(given), dtype=np.int32)
    graphs, ofs = coarsen(ptr, adj, w, bias, size, label, COARSE, state)
    half = given.copy()
    for k in range(1, len(graphs)):
        half = label_clusters(ofs[k], half, len(graphs[k][4]))
    p, a, x, b, s = graphs[-1]
    slack = give if len(graphs) == 1 else max(give, 1, len(given) // 200)
    refine_halves(p, a, x, b, s, half, target, slack, 60, 4, state)
    half = uncoarsen(graphs, ofs, half, target, give, state)
    balance(ptr, adj, w, bias, half, target, give)
    return half


@kernel
def bisect(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, target: int, give: int,
    starts: int, allowed: float, tries: int, state: State,
) -> Bytes:  # fmt: skip
    """Return the half of each vertex, about `target` of them in half 0, at little cost.

    Parameters
    ----------
    ptr, adj, w : int32, int32, float64
        The graph, each edge in both rows.
    bias : float64 (n,)
        What it costs that a vertex is in half 1, may be negative.
    target : int
        Vertices of half 0.
    give : int
        How many more or less there may be.
    starts : int
        Bisections from nothing, at most.
    allowed : float
        Work that may be done: a part of it on bisections from nothing, the rest
        on combining two of them. One bisection is always made.
    tries : int
        Of each bisection from nothing.
    state : uint64 (2,)
        Of the random numbers, and the work done.

    Returns
    -------
    int8 (n,)
        0 or 1.
    """
    pool = np.empty((starts, len(ptr) - 1), dtype=np.int8)
    cost = np.empty(starts)
    begun, made = float(state[1]), 0
    while made < starts and (made == 0 or float(state[1]) - begun < FROM_NOTHING * allowed):
        pool[made] = bisect_from_nothing(ptr, adj, w, bias, target, give, tries, state)
        cost[made] = cost_of_halves(ptr, adj, w, bias, pool[made])
        made += 1
    best, worst = extremes(cost[:made])
    label = np.empty(len(ptr) - 1, dtype=np.int8)
    cycles = CYCLES * made if made > 1 and cost[best] != 0 else 0
    while cycles > 0 and float(state[1]) - begun < allowed:
        cycles -= 1
        other = (best + 1 + draw(state) % (made - 1)) % made
        for u in range(len(label)):
            label[u] = 2 * pool[best, u] + pool[other, u]
        child = refine_again(ptr, adj, w, bias, target, give, label, pool[best], state)
        found = cost_of_halves(ptr, adj, w, bias, child)
        if found < cost[best]:
            pool[worst] = child
            cost[worst] = found
            best, worst = extremes(cost[:made])
    half: Bytes = pool[best].copy()
    return half
