# SPDX-License-Identifier: Apache-2.0
"""Two halves of a graph: their cost, and the moves that reduce it.

Refinement moves one vertex at a time, the best first, past worse states, and keeps the
best state that it has seen: C. M. Fiduccia and R. M. Mattheyses, "A linear-time
heuristic for improving network partitions" (DAC 1982).

The vertices wait in heaps in which keys may change (R. W. Floyd 1964).

A vertex may lean towards a half (`bias`): what its edges to ranks elsewhere cost more
with it in half 1 than in half 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nidmap.rankmap.refine.jit import Bytes, Csr, Floats, Ints, Longs, State, kernel, long, tick


class Queue(NamedTuple):
    """The vertices that may move, in one heap per half with the largest gain on top."""

    gain: Floats  # (n,), decrease of the cost if a vertex moves
    place: Ints  # (n,), its position in its heap; -1 if in none
    heaps: Ints  # (2, n)
    counts: Longs  # (3,), vertices in both heaps, and the work done


@kernel
def push_vertex(heap: Ints, place: Ints, key: Floats, count: int, v: int) -> int:
    """Push a vertex onto a heap (largest key on top), or update its position."""
    i = place[v]
    if i < 0:
        i = count
        count += 1
        heap[i] = v
        place[v] = i
    # Up while the parent has a smaller key, then down while a child has a larger one; after a
    # change of the key only one of the two moves.
    while i > 0 and key[heap[(i - 1) // 2]] < key[v]:
        up = heap[(i - 1) // 2]
        heap[i] = up
        place[up] = i
        i = (i - 1) // 2
    while True:
        child = 2 * i + 1
        if child >= count:
            break
        if child + 1 < count and key[heap[child + 1]] > key[heap[child]]:
            child += 1
        if key[heap[child]] <= key[v]:
            break
        down = heap[child]
        heap[i] = down
        place[down] = i
        i = child
    heap[i] = v
    place[v] = i
    return count


@kernel
def drop_vertex(heap: Ints, place: Ints, key: Floats, count: int, v: int) -> int:
    """Remove a vertex from a heap."""
    i = place[v]
    place[v] = -1
    count -= 1
    # The last vertex fills the gap, and is sifted from there.
    if i < count:
        last = heap[count]
        heap[i] = last
        place[last] = i
        push_vertex(heap, place, key, count, long(last))
    return count


@kernel
def size_of_half(size: Ints, half: Bytes) -> int:
    """Return the size of half 0."""
    out = 0
    for u in range(len(size)):
        out += size[u] * (1 - half[u])
    return out


@kernel
def cost_of_halves(g: Csr, half: Bytes) -> float:
    """Return the weight between the halves, plus the bias of the vertices in half 1."""
    ptr, adj, w, bias, _ = g
    total = 0.0
    for u in range(len(half)):
        for e in range(ptr[u], ptr[u + 1]):
            if half[adj[e]] != half[u]:
                total += 0.5 * w[e]
        # The bias of half 0 is the zero point.
        total += bias[u] * half[u]
    return total


@kernel
def choose_half(
    held: int, target: int, slack: int, counts: Longs, heaps: Ints, gain: Floats
) -> int:
    """Return the half that the next vertex leaves: the fuller one, else that with more gain."""
    if counts[0] == 0 and counts[1] == 0:
        return -1
    if held > target + slack or counts[1] == 0:
        return 0 if counts[0] > 0 and held >= target - slack else -1
    if held < target - slack or counts[0] == 0:
        return 1 if held <= target + slack else -1
    return 0 if gain[heaps[0, 0]] >= gain[heaps[1, 0]] else 1


@kernel
def fill_heaps(g: Csr, half: Bytes, every: bool, queue: Queue) -> float:
    """Fill the heaps with all vertices or those on the cut; return cut weight and total bias."""
    ptr, adj, w, bias, _ = g
    gain, place, heaps, counts = queue
    cut = 0.0
    place[:] = -1
    counts[:2] = 0
    counts[2] += 2 * len(adj) + 4 * len(half)
    for u in range(len(half)):
        inside, outside = 0.0, 0.0
        for e in range(ptr[u], ptr[u + 1]):
            if half[adj[e]] == half[u]:
                inside += w[e]
            else:
                outside += w[e]
        lean = bias[u] if half[u] == 1 else -bias[u]
        # Moving u makes its edges inside its half cross and those across stay: the cost falls by
        # outside - inside, and by what it leans towards the other half.
        gain[u] = outside - inside + lean
        # Twice the cost: edges across count at both ends, so the bias is doubled, too.
        cut += outside + 2 * bias[u] * half[u]
        if outside > 0 or lean > 0 or every:
            h = half[u]
            counts[h] = push_vertex(heaps[h], place, gain, counts[h], long(u))
    return cut / 2


@kernel
def run_pass(
    g: Csr, half: Bytes, held: int, cut: float, target: int, slack: int, patience: int, queue: Queue
) -> tuple[int, float]:
    """Move vertices one after another and keep the best prefix; return the size and the cut."""
    ptr, adj, w, _, size = g
    gain, place, heaps, counts = queue
    moved = np.empty(len(half), dtype=np.int32)
    locked = np.zeros(len(half), dtype=np.bool_)
    largest = 1
    for u in range(len(size)):
        largest = max(largest, size[u])
    # A coarse vertex may be larger than the slack: without room for half of it no vertex could move
    # at all.
    give = slack if largest == 1 else max(slack, largest // 2)
    best, best_off, best_at, moves = cut, max(abs(held - target), slack), 0, 0
    # Past worse states for `patience` moves, and for as long as the sizes are wrong.
    while moves - best_at < patience or abs(held - target) > slack:
        h = choose_half(held, target, give, counts, heaps, gain)
        if h < 0:
            break
        u = heaps[h, 0]
        cut -= gain[u]
        held += size[u] if h == 1 else -size[u]
        counts[h] = drop_vertex(heaps[h], place, gain, counts[h], u)
        locked[u], half[u] = True, 1 - h  # for good in this pass
        counts[2] += 3 * (ptr[u + 1] - ptr[u]) + 4
        for e in range(ptr[u], ptr[u + 1]):
            v = adj[e]
            # The edge from u to v now crosses (v gains 2w by following) or no longer does (v loses
            # 2w).
            gain[v] += -2 * w[e] if half[v] == half[u] else 2 * w[e]
            if not locked[v]:
                counts[half[v]] = push_vertex(heaps[half[v]], place, gain, counts[half[v]], long(v))
        moved[moves] = u
        moves += 1
        off = max(abs(held - target), slack)
        if off < best_off or (off == best_off and cut < best - 1e-12 * abs(best)):
            best, best_off, best_at = cut, off, moves
    # Back to the best state: the moves after it are undone, the last one first.
    for i in range(moves - 1, best_at - 1, -1):
        u = moved[i]
        held += size[u] if half[u] == 1 else -size[u]
        half[u] = 1 - half[u]
    return held, best


@kernel
def refine_halves(
    g: Csr, half: Bytes, target: int, slack: int, patience: int, passes: int, state: State
) -> float:
    """Move vertices between the halves while the cost falls; return the cost.

    The size of half 0 ends within `slack` of `target` if moves can bring it
    there, and that counts more than the cut.
    """
    n = len(half)
    place, heaps = np.empty(n, dtype=np.int32), np.empty((2, n), dtype=np.int32)
    queue = Queue(np.empty(n), place, heaps, np.zeros(3, dtype=np.int64))
    held = size_of_half(g.size, half)
    cut = 0.0
    for _ in range(passes):
        off = max(abs(held - target), slack)
        before = fill_heaps(g, half, off > slack, queue)
        held, cut = run_pass(g, half, held, before, target, slack, patience, queue)
        if max(abs(held - target), slack) >= off and cut >= before - 1e-9 * abs(before):
            break
    tick(state, queue.counts[2])
    return cut


@kernel
def balance_halves(g: Csr, half: Bytes, target: int, give: int) -> None:
    """Move single vertices, cheapest first, until half 0 has `target`, within `give`."""
    ptr, adj, w, bias, size = g
    held = size_of_half(size, half)
    while abs(held - target) > give:
        h = 0 if held > target else 1
        best, best_gain = -1, -1e300
        for u in range(len(half)):
            if half[u] == h:
                gain = bias[u] if h == 1 else -bias[u]
                for e in range(ptr[u], ptr[u + 1]):
                    gain += w[e] if half[adj[e]] != h else -w[e]
                if gain > best_gain:
                    best, best_gain = u, gain
        half[best] = 1 - h
        held += -1 if h == 0 else 1
