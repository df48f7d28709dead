# SPDX-License-Identifier: Apache-2.0
"""Parts of a graph, and the pull of ranks elsewhere on the ranks of a part.

Terminal propagation: A. E. Dunlop and B. W. Kernighan, "A procedure for placement of
standard-cell VLSI circuits" (IEEE Trans. CAD 1985).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nidmap.rankmap.refine.jit import Bytes, Csr, Floats, Ints, Longs, copy_part, kernel, long


class PlacedRanks(NamedTuple):
    """Ranks on nodes."""

    g: Csr  # the ranks' edges among themselves
    node: Ints  # (ranks,), node of each rank
    first: Longs  # (nodes + 1,), slots before each node
    far: Floats  # (nodes, nodes), distances
    # (ranks, nodes), cost of edges to ranks elsewhere with the rank on each node
    outer: Floats
    member: Ints  # (ranks,), the ranks node by node; filled by its users
    local: Ints  # (ranks,), -1 everywhere, for `induced_graph`


@kernel
def ranks_by_node(node: Ints, first: Longs) -> Ints:
    """Return the ranks node by node, ascending on each."""
    fill = first.copy()
    out = np.empty(len(node), dtype=np.int32)
    for u in range(len(node)):
        out[fill[node[u]]] = u
        fill[node[u]] += 1
    return out


@kernel
def deal_halves(mine: Ints, half: Bytes, out: Ints, a: int, b: int) -> None:
    """Write the ranks of half 0 from position `a` on, those of half 1 from `b` on."""
    for i in range(len(mine)):
        if half[i] == 0:
            out[a] = mine[i]
            a += 1
        else:
            out[b] = mine[i]
            b += 1


@kernel
def induced_graph(g: Csr, mine: Ints, local: Ints) -> Csr:
    """Return the graph of some ranks without bias; `local` is all -1 before and after."""
    ptr, adj, w = g.ptr, g.adj, g.w
    room = 0
    for i in range(len(mine)):
        local[mine[i]] = i
        room += ptr[mine[i] + 1] - ptr[mine[i]]
    sub_ptr = np.zeros(len(mine) + 1, dtype=np.int32)
    sub_adj = np.empty(room, dtype=np.int32)
    sub_w = np.empty(room, dtype=np.float64)
    m = 0
    for i in range(len(mine)):
        for e in range(ptr[mine[i]], ptr[mine[i] + 1]):
            if local[adj[e]] >= 0:
                sub_adj[m] = local[adj[e]]
                sub_w[m] = w[e]
                m += 1
        sub_ptr[i + 1] = m
    for u in mine:
        local[u] = -1
    bias, size = np.zeros(len(mine)), np.ones(len(mine), dtype=np.int32)
    return Csr(sub_ptr, sub_adj[:m], sub_w[:m], bias, size)


@kernel
def talkers_first(ptr: Ints, mine: Ints) -> int:
    """Move ranks with edges before idle ones, in place; return the number of the former."""
    talkers = 0
    idle = mine.copy()
    left = 0
    for i in range(len(mine)):
        u = mine[i]
        if ptr[u + 1] > ptr[u]:
            mine[talkers] = u
            talkers += 1
        else:
            idle[left] = u
            left += 1
    copy_part(idle, long(0), left, mine, talkers)
    return talkers


@kernel
def note_side(mine: Ints, half: Bytes, where: Ints, cut: int) -> None:
    """Record on which side of a cut ranks are now."""
    for i in range(len(mine)):
        where[mine[i], 1 - half[i]] = cut


@kernel
def add_pull(g: Csr, mine: Ints, where: Ints, cut: Longs, far: Floats, sub: Csr) -> None:
    """Add the pull of ranks elsewhere to a part's bias, and weight its edges by distance.

    `where` says of each rank from and up to which node it may be; all of these
    count alike. Nodes ``cut[0] … cut[1] - 1`` part from ``cut[1] … cut[2] - 1``.
    """
    ptr, adj, w = g.ptr, g.adj, g.w
    low, middle, high = cut[0], cut[1], cut[2]
    more = np.zeros(len(far) + 1)  # summed extra distance from the nodes after the cut
    apart = 0.0
    for i in range(low, high):
        share = -1.0 / (middle - low) if i < middle else 1.0 / (high - middle)
        for r in range(len(far)):
            more[r + 1] += share * far[i, r]
        if i >= middle:
            for r in range(low, middle):
                apart += far[i, r] / ((middle - low) * (high - middle))
    for r in range(len(far)):
        more[r + 1] += more[r]
    for e in range(len(sub.w)):
        sub.w[e] *= apart
    for i in range(len(mine)):
        for e in range(ptr[mine[i]], ptr[mine[i] + 1]):
            a, b = where[adj[e], 0], where[adj[e], 1]
            if a != low or b != high:
                sub.bias[i] += w[e] * (more[b] - more[a]) / (b - a)


@kernel
def outer_costs(x: PlacedRanks, mine: Ints, some: Longs) -> Floats:
    """Return the cost of edges to other nodes' ranks with each rank on each of some nodes."""
    ptr, adj, w = x.g.ptr, x.g.adj, x.g.w
    node, far, outer = x.node, x.far, x.outer
    inside = np.zeros(len(far), dtype=np.bool_)
    for r in some:
        inside[r] = True
    out = np.zeros((len(mine), len(some)))
    for i in range(len(mine)):
        u = mine[i]
        for j in range(len(some)):
            out[i, j] = outer[u, some[j]] if len(outer) > 0 else 0.0
        for e in range(ptr[u], ptr[u + 1]):
            r = node[adj[e]]
            if not inside[r]:
                for j in range(len(some)):
                    out[i, j] += w[e] * far[some[j], r]
    return out


@kernel
def lean_at_cut(outer: Floats, these: Ints, low: int, cut: int, high: int, bias: Floats) -> None:
    """Add the extra cost of outside edges on nodes cut … high-1 over low … cut-1."""
    for i in range(len(these)):
        for j in range(low, cut):
            bias[i] -= outer[these[i], j] / (cut - low)
        for j in range(cut, high):
            bias[i] += outer[these[i], j] / (high - cut)
