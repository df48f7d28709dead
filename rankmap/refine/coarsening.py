"""Coarsening: vertices that weigh much to each other become one, again and again.

Clusters of bounded size, rated by weight over size, as in P. Sanders and C. Schulz,
"Engineering multilevel graph partitioning algorithms" (ESA 2011) and H. Meyerhenke,
P. Sanders and C. Schulz, "Partitioning complex networks via size-constrained
clustering" (SEA 2014). Vertices have whole sizes: the ranks that a coarse one stands for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankmap.refine.jit import Bytes, Floats, Ints, State, kernel
from rankmap.refine.work import shuffle, tick

__all__ = ["COARSE", "coarsen", "label_clusters", "sum_sizes"]

#: A graph of so few vertices is not coarsened further.
COARSE = 48


@kernel
def sum_sizes(size: Ints) -> int:
    """Return a sum; numba compiles a loop in a tenth of the time of numpy's own."""
    out = 0
    for u in range(len(size)):
        out += size[u]
    return out


@kernel
def cluster_vertices(
    ptr: Ints, adj: Ints, w: Floats, size: Ints, label: Bytes, most: int, state: State
) -> tuple[Ints, int]:
    """Return the cluster of each vertex, and how many: neighbours that weigh much join.

    Only vertices of one label do.
    """
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
            rating = w[e] / weight
            if rating > best_rating:
                best, best_rating = v, rating
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
def contract_clusters(
    ptr: Ints, adj: Ints, w: Floats, size: Ints, of: Ints, count: int
) -> tuple[Ints, Ints, Floats, Ints]:
    """Return the graph of clusters."""
    n = len(size)
    start = np.zeros(count + 1, dtype=np.int32)
    for u in range(n):
        start[of[u] + 1] += 1
    for c in range(count):
        start[c + 1] += start[c]
    fill = start[:count].copy()
    members = np.empty(n, dtype=np.int32)
    sizes = np.zeros(count, dtype=np.int32)
    for u in range(n):
        members[fill[of[u]]] = u
        fill[of[u]] += 1
        sizes[of[u]] += size[u]
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
    return out_ptr, out_adj[:m].copy(), out_w[:m].copy(), sizes


@kernel
def sum_bias(of: Ints, bias: Floats, count: int) -> Floats:
    """Return the bias of clusters."""
    out = np.zeros(count)
    for u in range(len(of)):
        out[of[u]] += bias[u]
    return out


@kernel
def label_clusters(of: Ints, label: Bytes, count: int) -> Bytes:
    """Return the label that all vertices of each cluster have."""
    out = np.empty(count, dtype=np.int8)
    for u in range(len(of)):
        out[of[u]] = label[u]
    return out


@kernel
def coarsen(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, size: Ints, label: Bytes, keep: int, state: State
) -> Any:
    """Return ever coarser graphs (ptr, adj, w, bias, size) and each one's clusters in the next."""
    whole = sum_sizes(size)
    graphs = [(ptr, adj, w, bias, size)]
    ofs = [np.empty(0, dtype=np.int32)]
    while len(graphs[-1][4]) > keep:
        p, a, x, b, s = graphs[-1]
        most = max(2, min(3 * (whole // len(s) + 1), whole // 12))
        of, count = cluster_vertices(p, a, x, s, label, most, state)
        tick(state, 4 * len(a) + 8 * len(s))
        if count > 0.92 * len(s):
            break
        label = label_clusters(of, label, count)
        p2, a2, x2, s2 = contract_clusters(p, a, x, s, of, count)
        graphs.append((p2, a2, x2, sum_bias(of, b, count), s2))
        ofs.append(of)
    return graphs, ofs
