# SPDX-License-Identifier: Apache-2.0
"""Bisection: coarsen, grow halves of the coarsest graph, refine them while uncoarsening.

The multilevel scheme of G. Karypis and V. Kumar, "A fast and high quality multilevel
scheme for partitioning irregular graphs" (SIAM J. Sci. Comput. 1998). Vertices that
weigh much to each other become one, in clusters of bounded size, rated by weight over
size, as in P. Sanders and C. Schulz, "Engineering multilevel graph partitioning
algorithms" (ESA 2011) and H. Meyerhenke, P. Sanders and C. Schulz, "Partitioning complex
networks via size-constrained clustering" (SEA 2014). Several
bisections are combined as KaFFPaE does (P. Sanders and C. Schulz, "Distributed
evolutionary graph partitioning", ALENEX 2012): what two of them agree on is
contracted, and the better one refined on the coarse graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nidmap.rankmap.refine.halves import balance_halves, cost_of_halves, refine_halves, size_of_half
from nidmap.rankmap.refine.jit import (
    Bytes,
    Csr,
    Floats,
    Ints,
    State,
    copy_part,
    draw,
    kernel,
    long,
    shuffle,
    tick,
)

#: A graph of so few vertices is not coarsened further.
COARSE = 48

#: Starts that are tried on the coarsest graph.
TRIES = 2

#: A large graph is first coarsened to this part of its vertices, and halved from there so often.
SHRINK, HALVED = 6, 4

#: Part of a halving's work that goes into halvings from nothing, and how often at most the
#: result of each is combined with another.
FROM_NOTHING, CYCLES = 0.45, 3


@kernel
def extreme_places(cost: Floats) -> tuple[int, int]:
    """Return the positions of the smallest and the largest number."""
    least, most = 0, 0
    for k in range(1, len(cost)):
        if cost[k] < cost[least]:
            least = k
        if cost[k] >= cost[most]:
            most = k
    return least, most


@kernel
def sum_sizes(size: Ints) -> int:
    """Return a sum by a loop, which numba compiles ten times faster than numpy's own."""
    out = 0
    for u in range(len(size)):
        out += size[u]
    return out


@kernel
def cluster_vertices(g: Csr, label: Bytes, most: int, state: State) -> tuple[Ints, int]:
    """Return each vertex's cluster and their number, joining strongly connected neighbours.

    Only vertices of one label do.
    """
    ptr, adj, w, _, size = g
    n = len(size)
    of = np.full(n, -1, dtype=np.int32)
    held = np.zeros(n, dtype=np.int64)
    count = 0
    for u in shuffle(n, state):
        if of[u] >= 0:
            continue
        best, best_rating = -1, 0.0
        for e in range(ptr[u], ptr[u + 1]):
            v = adj[e]
            weight = size[v] if of[v] < 0 else held[of[v]]
            if label[v] != label[u] or weight + size[u] > most:
                continue
            # Rated by weight over size: heavy neighbours alone would soon be one huge cluster,
            # which no balanced bisection can place.
            rating = w[e] / weight
            if rating > best_rating:
                best, best_rating = v, rating
        # Alone, as a new pair, or into the cluster that the best neighbour is in already.
        if best < 0:
            of[u] = count
            held[count] = size[u]
            count += 1
        elif of[best] < 0:
            of[u] = count
            of[best] = count
            held[count] = size[u] + size[best]
            count += 1
        else:
            of[u] = of[best]
            held[of[best]] += size[u]
    return of, count


@kernel
def contract_clusters(g: Csr, of: Ints, count: int) -> Csr:
    """Return the graph of clusters."""
    ptr, adj, w, bias, size = g
    n = len(size)
    start = np.zeros(count + 1, dtype=np.int32)
    for u in range(n):
        start[of[u] + 1] += 1
    for c in range(count):
        start[c + 1] += start[c]
    fill = start[:count].copy()
    members = np.empty(n, dtype=np.int32)
    sizes, biases = np.zeros(count, dtype=np.int32), np.zeros(count)
    for u in range(n):
        members[fill[of[u]]] = u
        fill[of[u]] += 1
        sizes[of[u]] += size[u]
        biases[of[u]] += bias[u]
    out_ptr = np.zeros(count + 1, dtype=np.int32)
    out_adj = np.empty(len(adj), dtype=np.int32)
    out_w = np.empty(len(adj), dtype=np.float64)
    seen = np.full(count, -1, dtype=np.int32)
    m = 0
    for c in range(count):
        begin = m
        for i in range(start[c], start[c + 1]):
            u = members[i]
            for e in range(ptr[u], ptr[u + 1]):
                d = of[adj[e]]
                if d == c:
                    continue
                if seen[d] >= begin:
                    out_w[seen[d]] += w[e]
                else:
                    seen[d] = m
                    out_adj[m] = d
                    out_w[m] = w[e]
                    m += 1
        out_ptr[c + 1] = m
    return Csr(out_ptr, out_adj[:m].copy(), out_w[:m].copy(), biases, sizes)


@kernel
def label_clusters(of: Ints, label: Bytes, count: int) -> Bytes:
    """Return the label shared by all vertices of each cluster."""
    out = np.empty(count, dtype=np.int8)
    for u in range(len(of)):
        out[of[u]] = label[u]
    return out


@kernel
def coarsen_graph(g: Csr, label: Bytes, keep: int, state: State) -> Any:
    """Return ever coarser graphs, starting with this one, and the clusters of each in the next."""
    total = sum_sizes(g.size)
    graphs, ofs = [g], [np.empty(0, dtype=np.int32)]
    while len(g.size) > keep:
        most = max(2, min(3 * (total // len(g.size) + 1), total // 12))
        of, count = cluster_vertices(g, label, most, state)
        tick(state, 4 * len(g.adj) + 8 * len(g.size))
        if count > 0.92 * len(g.size):
            break
        label = label_clusters(of, label, count)
        g = contract_clusters(g, of, count)
        graphs.append(g)
        ofs.append(of)
    return graphs, ofs


@kernel
def grow_half(g: Csr, target: int, state: State) -> Bytes:
    """Grow half 0 from a random vertex, adding the most strongly connected vertex each time."""
    ptr, adj, w, _, size = g
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
def swap_half_names(g: Csr, target: int, half: Bytes) -> None:
    """Swap the names of the halves if that is cheaper and their sizes permit it."""
    lean, ones, total, largest = 0.0, 0, 0, 0
    for u in range(len(half)):
        largest = max(largest, g.size[u])
        lean += g.bias[u] if half[u] == 1 else -g.bias[u]
        ones += g.size[u] * half[u]
        total += g.size[u]
    # Swapping all vertices keeps the cut and turns the sign of the bias: it is worth while where
    # the sum of the biases of half 1 is above that of half 0.
    if lean > 0 and abs(ones - target) <= 2 * max(largest, abs(total - ones - target)):
        for u in range(len(half)):
            half[u] = 1 - half[u]


@kernel
def uncoarsen(graphs: Any, ofs: Any, half: Bytes, target: int, give: int, state: State) -> Bytes:
    """Project halves of the coarsest graph to the finest one, refining them on the way."""
    total, top = sum_sizes(graphs[0].size), len(graphs) - 1
    for level in range(top - 1, -1, -1):
        half = half[ofs[level + 1]]
        unit = level == 0 and len(half) == total
        # Coarse vertices are too large for an exact balance: the slack shrinks from 1/100 of the
        # size at the top to what is allowed on the finest graph.
        slack = give if unit else max(give, 1, total // (200 + 100 * (top - level)))
        refine_halves(graphs[level], half, target, slack, 60 + len(half) // 40, long(3), state)
    return half


@kernel
def bisect_once(g: Csr, target: int, give: int, state: State) -> Bytes:
    """Bisect a graph from scratch, with about `target` in half 0."""
    graphs, ofs = coarsen_graph(g, np.zeros(len(g.size), dtype=np.int8), long(COARSE), state)
    top, total = graphs[-1], sum_sizes(g.size)
    slack = give if len(top.size) == total else max(give, 1, total // 200)
    half, best, best_off = np.zeros(len(top.size), dtype=np.int8), 1e300, 1 << 62
    for _ in range(TRIES):
        tried = grow_half(top, target, state)
        swap_half_names(top, target, tried)
        cost = refine_halves(top, tried, target, slack, long(60), long(4), state)
        # Balance first, then the cut; a size within the slack is as good as an exact one.
        off = max(abs(size_of_half(top.size, tried) - target), slack)
        if off < best_off or (off == best_off and cost < best):
            half, best, best_off = tried, cost, off
    return uncoarsen(graphs, ofs, half, target, give, state)


@kernel
def bisect_from_nothing(g: Csr, target: int, give: int, tries: int, state: State) -> Bytes:
    """Return the best of several bisections that start on the same coarsened graphs."""
    n = len(g.size)
    if tries < 2 or n <= 4 * COARSE:
        half = bisect_once(g, target, give, state)
    else:
        half, best = np.zeros(n, dtype=np.int8), 1e300
        graphs, ofs = coarsen_graph(g, half, n // SHRINK, state)
        top = graphs[-1]
        # As often as asked, but with at most 1.5 times the graph's own edges in all tries.
        for _ in range(max(1, min(tries, 3 * len(g.adj) // (2 * len(top.adj) + 1)))):
            tried = bisect_once(top, target, give, state)
            off = max(0, abs(size_of_half(top.size, tried) - target) - max(give, 1, n // 200))
            # A percent more for each vertex beyond the slack: a cheap cut of wrong sizes has to be
            # paid for when it is balanced.
            cost = cost_of_halves(top, tried) * (1 + 0.01 * off)
            if cost < best:
                half, best = tried, cost
        half = uncoarsen(graphs, ofs, half, target, give, state)
    balance_halves(g, half, target, give)
    return half


@kernel
def refine_again(g: Csr, target: int, give: int, label: Bytes, given: Bytes, state: State) -> Bytes:
    """Refine given halves on graphs in which only vertices with the same label are joined."""
    graphs, ofs = coarsen_graph(g, label, long(COARSE), state)
    half = given.copy()
    # All members of a cluster have one label, and with it one half: the given halves can be stated
    # on every coarser graph.
    for k in range(1, len(graphs)):
        half = label_clusters(ofs[k], half, len(graphs[k].size))
    slack = give if len(graphs) == 1 else max(give, 1, len(given) // 200)
    refine_halves(graphs[-1], half, target, slack, long(60), long(4), state)
    half = uncoarsen(graphs, ofs, half, target, give, state)
    balance_halves(g, half, target, give)
    return half


@kernel
def bisect(g: Csr, target: int, give: int, starts: int, allowed: float, state: State) -> Bytes:
    """Return each vertex's half, about `target` of them in half 0, at low cost.

    `g`: every vertex of size 1. `target`: vertices of half 0. `give`: how many more or less there
    may be. `starts`: bisections from nothing, at most. `allowed`: work that may be done: a part
    of it on bisections from nothing, the rest on combining two of them. One bisection is always
    made. `state` (2,): of the random numbers, and the work done. Returns (n,): 0 or 1.
    """
    n = len(g.size)
    pool = np.empty((starts, n), dtype=np.int8)
    cost = np.empty(starts)
    begun, halvings = float(state[1]), 0
    while halvings < starts and (halvings == 0 or float(state[1]) - begun < FROM_NOTHING * allowed):
        half = bisect_from_nothing(g, target, give, long(HALVED), state)
        copy_part(half, long(0), n, pool[halvings], long(0))
        cost[halvings] = cost_of_halves(g, half)
        halvings += 1
    best, worst = extreme_places(cost[:halvings])
    label = np.empty(n, dtype=np.int8)
    cycles = CYCLES * halvings if halvings > 1 and cost[best] != 0 else 0
    while cycles > 0 and float(state[1]) - begun < allowed:
        cycles -= 1
        other = (best + 1 + draw(state) % (halvings - 1)) % halvings
        for u in range(len(label)):
            # Vertices of one label are in the same half in both parents, the four labels being the
            # four combinations: what parents agree on is contracted, and only the rest is open.
            label[u] = 2 * pool[best, u] + pool[other, u]
        child = refine_again(g, target, give, label, pool[best], state)
        child_cost = cost_of_halves(g, child)
        if child_cost < cost[best]:
            # A better child takes the place of the worst, so the pool keeps its size.
            copy_part(child, long(0), n, pool[worst], long(0))
            cost[worst] = child_cost
            best, worst = extreme_places(cost[:halvings])
    chosen: Bytes = pool[best].copy()
    return chosen
