"""Graphs in compressed rows (CSR), each edge in the rows of both ends: parts of them, by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.refine.jit import kernel

if TYPE_CHECKING:
    from rankmap.refine.arrays import Bytes, Floats, Ints, Longs

__all__ = ["deal_halves", "induced_graph", "ranks_by_node", "talkers_first"]


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
    """Write the ranks of half 0 from place `a` on, those of half 1 from `b` on."""
    for i in range(len(mine)):
        if half[i] == 0:
            out[a] = mine[i]
            a += 1
        else:
            out[b] = mine[i]
            b += 1


@kernel
def induced_graph(
    ptr: Ints, adj: Ints, w: Floats, mine: Ints, local: Ints
) -> tuple[Ints, Ints, Floats]:
    """Return the graph of some vertices; `local` is -1 everywhere before and after."""
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
    local[mine] = -1
    return sub_ptr, sub_adj[:m], sub_w[:m]


@kernel
def talkers_first(ptr: Ints, mine: Ints) -> int:
    """Bring the ranks that have edges before the idle ones, in place; return how many they are."""
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
    mine[talkers:] = idle[:left]
    return talkers
