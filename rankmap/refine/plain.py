# SPDX-License-Identifier: Apache-2.0
"""Mapping graphs to nodes without numba: the same hierarchy, in whole-array steps.

Ranks that talk much are put in a row by repeated matching (B. Hendrickson and
R. Leland, "A multilevel algorithm for partitioning graphs", SC 1995), the row is cut
as the machine is, and at each cut pairs of ranks change sides; then pairs of ranks
change nodes, on the real distances (B. W. Kernighan and S. Lin, "An efficient
heuristic procedure for partitioning graphs", Bell System Technical Journal 1970).
All pairs that gain and do not touch each other change at once, so every step lowers
J. Nothing is tried twice: less search than the kernels do.
"""

from __future__ import annotations

import numpy as np

from nidmap.placement.permutation import inverse
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.traffic import Traffic
from nidmap.rankmap import progress
from nidmap.rankmap.refine.cuts import Cuts

#: Maximum number of rounds in which ranks change sides at each cut.
ROUNDS = 24

#: Matching ends where a round joins fewer of the vertices than this part.
LEAST_MATCHED = 0.02

#: Edges whose costs are added up in one go.
EDGES_AT_ONCE = 1 << 12


def bisect_down(edges: Traffic, held: Ints, known: Cuts, seed: int, rounds: int) -> Ints:
    """Return the ranks in slot order, cut by cut, with little weight across each cut.

    `edges`: of ranks, each edge in both directions, the sources ascending. `held` (nodes + 1,):
    slots before each node, in the order of `known`. `rounds`: at each depth of the cuts, at most.
    """
    n = int(held[-1])
    row = order_by_matching(edges, n, np.random.default_rng(seed))
    place, block = inverse(row), np.zeros(n, dtype=np.int64)
    for cuts in _by_depth(known.cuts):
        progress.advance()
        low, cut = held[cuts[:, 0]], held[cuts[:, 1]]
        edge = np.sort(np.append(low, cut))  # of the blocks' halves, those never cut again apart
        slot = inverse(np.lexsort((place, block)))
        side = np.searchsorted(edge, slot, side="right")
        inside = edges.some(block[edges.source] == block[edges.target])
        side = _swap_sides(inside, block, side, rounds)
        block = np.unique(block * (len(edge) + 1) + side, return_inverse=True)[1].reshape(-1)
    return np.lexsort((place, block))


def _by_depth(cuts: Ints) -> list[Ints]:
    """Group cuts by how many others enclose each, outermost first."""
    depth: dict[tuple[int, int], int] = {}
    by_depth: dict[int, list[tuple[int, int, int]]] = {}
    for low, cut, high in sorted(cuts.tolist(), key=lambda c: c[0] - c[2]):
        here = depth.get((low, high), 0)
        depth[low, cut] = depth[cut, high] = here + 1
        by_depth.setdefault(here, []).append((low, cut, high))
    return [np.array(by_depth[here], dtype=np.int64) for here in sorted(by_depth)]


def _swap_sides(edges: Traffic, block: Ints, side: Ints, rounds: int) -> Ints:
    """Swap pairs of ranks within blocks while that lowers the weight between the sides."""
    n = len(side)
    for _ in range(rounds):
        apart = side[edges.source] != side[edges.target]
        signed = np.where(apart, edges.bytes, -edges.bytes)
        gain = np.bincount(edges.source, signed, n).astype(np.float64)
        u, v = _best_pairs(gain, block, side)
        u, v = _independent_pairs(u, v, gain[u] + gain[v], 2.0, edges, n)
        if not len(u):
            break
        side[u], side[v] = side[v], side[u]
    return side


def _best_pairs(gain: Floats, block: Ints, side: Ints) -> tuple[Ints, Ints]:
    """Return the k-th best ranks of both sides of each block, if they gain together."""
    order = np.lexsort((-gain, side, block))
    group = np.append(True, (np.diff(block[order]) != 0) | (np.diff(side[order]) != 0))
    start = np.flatnonzero(group)
    first = block[order[start]]
    second = np.flatnonzero(first[1:] == first[:-1]) + 1  # groups that are a block's other side
    size = np.diff(np.append(start, len(order)))
    count = np.minimum(size[second - 1], size[second])
    within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    u = order[np.repeat(start[second - 1], count) + within]
    v = order[np.repeat(start[second], count) + within]
    better = gain[u] + gain[v] > 1e-9 * np.abs(gain).max(initial=0.0)
    return u[better], v[better]


def _independent_pairs(
    u: Ints, v: Ints, gain: Floats, shared: float | Floats, edges: Traffic, n: int
) -> tuple[Ints, Ints]:
    """Return the pairs that gain more than any pair that shares an edge with them.

    Their gains add up. `shared` times the weight of an edge between its two
    ranks is what a pair gains less.
    """
    pair = np.full(n, -1, dtype=np.int64)
    pair[u] = pair[v] = np.arange(len(u))
    joined = edges.some((pair[edges.source] >= 0) & (pair[edges.target] >= 0))
    a, b = pair[joined.source], pair[joined.target]
    same_pair = a == b
    gain = gain - shared * np.bincount(a[same_pair], joined.bytes[same_pair] / 2, len(u))
    rank = inverse(np.argsort(gain, kind="stable"))
    beaten = np.bincount(a[~same_pair], rank[b[~same_pair]] > rank[a[~same_pair]], len(u)) > 0
    kept = ~beaten & (gain > 1e-12 * np.abs(gain).max(initial=0.0))
    return u[kept], v[kept]


def order_by_matching(edges: Traffic, n: int, rng: np.random.Generator) -> Ints:
    """Return the ranks in a sequence in which heavy communicators are neighbours."""
    size, levels = np.ones(n), []
    while len(edges.source):
        of = _match_pairs(edges, size, rng)
        clusters = int(of.max()) + 1
        if clusters > (1 - LEAST_MATCHED) * len(size):
            break
        levels.append(of)
        size = np.bincount(of, size).astype(np.float64)
        edges = edges.by_node(of, clusters).away()
    row = np.argsort(-size, kind="stable")
    for of in reversed(levels):
        row = np.argsort(inverse(row)[of], kind="stable")
    return row


def _match_pairs(edges: Traffic, size: Floats, rng: np.random.Generator) -> Ints:
    """Return which vertices to merge: pairs that prefer each other, then the rest."""
    n = len(size)
    noise = rng.random(n)
    mate = np.full(n, -1, dtype=np.int64)
    liked = np.full(n, -1, dtype=np.int64)
    rating = edges.bytes / (size[edges.source] * size[edges.target])
    rating = rating * (1 + 1e-3 * (noise[edges.source] + noise[edges.target]))
    for _ in range(3):
        free = (mate[edges.source] < 0) & (mate[edges.target] < 0)
        row, col, rated = edges.source[free], edges.target[free], rating[free]
        if not len(row):
            break
        start = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
        best = np.repeat(np.maximum.reduceat(rated, start), np.diff(np.append(start, len(row))))
        top = np.flatnonzero(rated == best)
        choice = np.full(n, -1, dtype=np.int64)
        choice[row[top]] = col[top]
        liked = np.where(liked < 0, choice, liked)
        u = np.flatnonzero(choice >= 0)
        u = u[choice[choice[u]] == u]
        mate[u] = choice[u]
    label = np.where(mate >= 0, np.minimum(np.arange(n), mate), np.arange(n))
    lone = np.flatnonzero((mate < 0) & (liked >= 0))
    lone = lone[mate[liked[lone]] >= 0]
    label[lone] = label[liked[lone]]
    return np.asarray(np.unique(label, return_inverse=True)[1].reshape(-1))


def swap_ranks(edges: Traffic, node: Ints, far: Floats, outer: Floats, rounds: int) -> Ints:
    """Return the ranks' nodes after swaps of pairs, with a lower J if there were any.

    `node` (ranks,). `far` (nodes, nodes). `outer` (ranks, nodes): what edges to ranks elsewhere
    would cost with the rank on each node. `rounds`: at most.
    """
    node, n = node.copy(), len(node)
    table = outer.copy() if len(outer) else np.zeros((n, len(far)))
    _add_costs(table, edges, far, node)
    for _ in range(rounds):
        more = table - table[np.arange(n), node][:, None]  # additional cost of each rank elsewhere
        u, v, gain = _best_swaps(more, node, len(far))
        u, v = _independent_pairs(u, v, gain, 2 * far[node[u], node[v]], edges, n)
        if not len(u):
            break
        moved = np.zeros(n, dtype=bool)
        moved[u] = moved[v] = True
        back = edges.some(moved[edges.source]).reversed()
        _add_costs(table, back.sized(-1.0), far, node)
        node[u], node[v] = node[v], node[u]
        _add_costs(table, back, far, node)
    return node


def _add_costs(table: Floats, edges: Traffic, far: Floats, node: Ints) -> None:
    """Add, to a table (ranks, nodes), the cost of edges with their first rank on each node."""
    order = np.argsort(edges.source, kind="stable")
    for low in range(0, len(order), EDGES_AT_ONCE):
        batch = order[low : low + EDGES_AT_ONCE]
        row = edges.source[batch]
        start = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
        cost = edges.bytes[batch, None] * far[node[edges.target[batch]]]
        table[row[start]] += np.add.reduceat(cost, start)


def _best_swaps(more: Floats, node: Ints, nodes: int) -> tuple[Ints, Ints, Floats]:
    """Return pairs of ranks that gain by swapping nodes, no rank twice, best first."""
    order = np.argsort(node, kind="stable")
    here = np.flatnonzero(np.bincount(node, minlength=nodes))
    start = np.searchsorted(node[order], here)
    cheapest = np.full((nodes, nodes), np.inf)
    cheapest[here] = np.minimum.reduceat(more[order], start)  # to leave node p for node q
    both = more + cheapest.T[node]
    both[np.arange(len(node)), node] = np.inf
    to = np.argmin(both, axis=1)
    gain = -both[np.arange(len(node)), to]
    wanting = np.flatnonzero(gain > 1e-9 * max(1e-300, float(gain.max(initial=0.0))))
    wanting = wanting[np.argsort(-gain[wanting], kind="stable")]
    # The rank that gains most by leaving node `to`: one per pair of nodes, so each is taken once.
    key = node[wanting] * nodes + to[wanting]
    wanting = wanting[np.sort(np.unique(key, return_index=True)[1])]
    low = np.append(start, len(order))
    pairs, seen = [], set()
    for u in wanting.tolist():
        if u not in seen:
            at = np.searchsorted(here, to[u])
            leaving = order[low[at] : low[at + 1]]
            v = int(leaving[np.argmin(more[leaving, node[u]])])
            if v not in seen:
                seen |= {u, v}
                pairs.append((u, v))
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return first, second, gain[first]
