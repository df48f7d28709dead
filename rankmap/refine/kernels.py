"""Compiled kernels that divide a graph: in two halves, down the machine's tree, and anew in parts.

They stand in one file because numba's cache on disk asks only whether the
file of a kernel has changed, not the files of what it calls.

*Halving*: coarsen by clusters of vertices that weigh much to each other, grow
halves, refine by the moves of Fiduccia and Mattheyses, with exact sizes at the
end. Vertices have whole weights, the ranks that a coarse one stands for. A
vertex may lean towards a half (`bias`): what its edges to ranks elsewhere cost
more with it in half 1 than in half 0. Several halvings are combined as KaFFPaE
(Sanders and Schulz 2012) does: what two of them agree on is contracted, and
the better one refined on the coarse graph.

*Dividing anew*: the ranks of a few nodes near each other are taken and placed
from nothing, on the real distances to all other ranks; what is better stays.

Everything works on plain arrays in CSR form, each edge in both rows. `state`
holds the random numbers' state and, behind it, the work done so far, about in
looks at an edge: what may take long is given so much work and no seconds, so
the same question has the same answer on any machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankmap.refine.jit import inlined, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.int8]
    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Reals = NDArray[np.floating[Any]]
    Ints = NDArray[np.int32]
    Longs = NDArray[np.int64]
    State = NDArray[np.uint64]

__all__ = ["block_splits", "draw", "multisect", "rework"]

#: A graph of so few vertices is not coarsened further.
COARSE = 48

#: Starts that are tried on the coarsest graph.
TRIES = 2

#: A large graph is first coarsened to this part of its vertices, and halved from there.
SHRINK = 6

#: Part of a halving's work that goes into halvings from nothing, and how often at most the
#: result of each is combined with another.
FROM_NOTHING, CYCLES = 0.45, 3

#: How often ranks are placed anew on average, at most.
MOST_ANEW = 40.0

#: Blocks of one larger block that change ranks among each other, in pairs, at most.
MOST_SIBLINGS = 32


@kernel
def draw(state: State) -> Any:
    """Return the next of a row of random whole numbers below 2**62 (splitmix64).

    All bits are good: with a plain xorshift the low bits of one number follow
    from those of the number before, and whole edges are never drawn.
    """
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(2))


@kernel
def tick(state: State, work: int) -> None:
    """Note that so much work has been done."""
    state[1] += np.uint64(work)


@kernel
def shuffled(n: int, state: State) -> Ints:
    """Return 0 … n-1 in random order."""
    order = np.arange(n).astype(np.int32)
    for i in range(n - 1, 0, -1):
        j = draw(state) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


@kernel
def total(size: Ints) -> int:
    """Return a sum; numba compiles a loop in a tenth of the time of numpy's own."""
    out = 0
    for u in range(len(size)):
        out += size[u]
    return out


@kernel
def in_half(size: Ints, half: Bytes) -> int:
    """Return the size of half 0."""
    out = 0
    for u in range(len(size)):
        out += size[u] * (1 - half[u])
    return out


@kernel
def dealt(mine: Ints, half: Bytes, out: Ints, a: int, b: int) -> None:
    """Write the ranks of half 0 from place `a` on, those of half 1 from `b` on."""
    for i in range(len(mine)):
        if half[i] == 0:
            out[a] = mine[i]
            a += 1
        else:
            out[b] = mine[i]
            b += 1


@kernel
def members(node: Ints, first: Longs) -> Ints:
    """Return the ranks node by node, ascending on each."""
    fill = first.copy()
    out = np.empty(len(node), dtype=np.int32)
    for u in range(len(node)):
        out[fill[node[u]]] = u
        fill[node[u]] += 1
    return out


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
def clustered(
    ptr: Ints, adj: Ints, w: Floats, size: Ints, label: Bytes, most: int, state: State
) -> tuple[Ints, int]:
    """Return the cluster of each vertex, and how many: neighbours that weigh much join.

    Only vertices of one label do.
    """
    n = len(size)
    of = np.full(n, -1, dtype=np.int32)
    held = np.zeros(n, dtype=np.int64)
    count = 0
    for u in shuffled(n, state):
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
def contracted(
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
def grown(ptr: Ints, adj: Ints, w: Floats, size: Ints, target: int, state: State) -> Bytes:
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
def push(heap: Ints, place: Ints, key: Floats, count: int, v: int) -> int:
    """Put a vertex into a heap (largest key on top), or move it after its key has changed."""
    i = place[v]
    if i < 0:
        i = count
        count += 1
        heap[i] = v
        place[v] = i
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
def drop(heap: Ints, place: Ints, key: Floats, count: int, v: int) -> int:
    """Take a vertex out of a heap."""
    i = place[v]
    place[v] = -1
    count -= 1
    if i < count:
        last = heap[count]
        heap[i] = last
        place[last] = i
        push(heap, place, key, count, last)
    return count


@kernel
def side(held: int, target: int, slack: int, counts: Longs, heaps: Ints, gain: Floats) -> int:
    """Return the half that the next vertex leaves: the fuller one, else that of the better gain."""
    if counts[0] == 0 and counts[1] == 0:
        return -1
    if held > target + slack or counts[1] == 0:
        return 0 if counts[0] > 0 and held >= target - slack else -1
    if held < target - slack or counts[0] == 0:
        return 1 if held <= target + slack else -1
    return 0 if gain[heaps[0, 0]] >= gain[heaps[1, 0]] else 1


@kernel
def prepared(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, half: Bytes, every: bool,
    gain: Floats, place: Ints, heaps: Ints, counts: Longs,
) -> float:  # fmt: skip
    """Fill the heaps with the vertices on the cut (or all); return the cut and what leans."""
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
        gain[u] = outside - inside + lean
        cut += outside + 2 * bias[u] * half[u]
        if outside > 0 or lean > 0 or every:
            h = half[u]
            counts[h] = push(heaps[h], place, gain, counts[h], u)
    return cut / 2


@kernel
def turn(
    u: int, ptr: Ints, adj: Ints, w: Floats, half: Bytes, locked: Flags,
    gain: Floats, place: Ints, heaps: Ints, counts: Longs,
) -> None:  # fmt: skip
    """Move a vertex to the other half, for good in this pass, and tell its neighbours."""
    h = half[u]
    counts[h] = drop(heaps[h], place, gain, counts[h], u)
    locked[u] = True
    half[u] = 1 - h
    counts[2] += 3 * (ptr[u + 1] - ptr[u]) + 4
    for e in range(ptr[u], ptr[u + 1]):
        v = adj[e]
        gain[v] += -2 * w[e] if half[v] == half[u] else 2 * w[e]
        if not locked[v]:
            counts[half[v]] = push(heaps[half[v]], place, gain, counts[half[v]], v)


@kernel
def one_pass(
    ptr: Ints, adj: Ints, w: Floats, size: Ints, half: Bytes, held: int, cut: float,
    target: int, slack: int, patience: int,
    gain: Floats, place: Ints, heaps: Ints, counts: Longs,
) -> tuple[int, float]:  # fmt: skip
    """Move vertices in a row and keep the best part of it; return the size and the cut."""
    moved = np.empty(len(half), dtype=np.int32)
    locked = np.zeros(len(half), dtype=np.bool_)
    largest = 1
    for u in range(len(size)):
        largest = max(largest, size[u])
    give = slack if largest == 1 else max(slack, largest // 2)
    best, best_off, best_at, steps = cut, max(abs(held - target), slack), 0, 0
    while steps - best_at < patience or abs(held - target) > slack:
        h = side(held, target, give, counts, heaps, gain)
        if h < 0:
            break
        u = heaps[h, 0]
        cut -= gain[u]
        held += size[u] if h == 1 else -size[u]
        turn(u, ptr, adj, w, half, locked, gain, place, heaps, counts)
        moved[steps] = u
        steps += 1
        off = max(abs(held - target), slack)
        if off < best_off or (off == best_off and cut < best - 1e-12 * abs(best)):
            best, best_off, best_at = cut, off, steps
    for i in range(steps - 1, best_at - 1, -1):
        u = moved[i]
        held += size[u] if half[u] == 1 else -size[u]
        half[u] = 1 - half[u]
    return held, best


@kernel
def refined(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, size: Ints, half: Bytes,
    target: int, slack: int, patience: int, passes: int, state: State,
) -> float:  # fmt: skip
    """Move vertices between the halves while the cost falls; return the cost.

    The size of half 0 ends within `slack` of `target` if moves can bring it
    there, and that counts more than the cut.
    """
    n = len(size)
    gain = np.empty(n, dtype=np.float64)
    place = np.empty(n, dtype=np.int32)
    heaps = np.empty((2, n), dtype=np.int32)
    counts = np.zeros(3, dtype=np.int64)  # of both heaps, and the work done
    held = in_half(size, half)
    cut = 0.0
    for _ in range(passes):
        off = max(abs(held - target), slack)
        before = prepared(ptr, adj, w, bias, half, off > slack, gain, place, heaps, counts)
        held, cut = one_pass(
            ptr, adj, w, size, half, held, before, target, slack, patience,
            gain, place, heaps, counts,
        )  # fmt: skip
        if max(abs(held - target), slack) >= off and cut >= before - 1e-9 * abs(before):
            break
    tick(state, counts[2])
    return cut


@kernel
def exact(ptr: Ints, adj: Ints, w: Floats, bias: Floats, half: Bytes, target: int) -> None:
    """Move single vertices, the cheapest first, until half 0 has exactly `target` of them."""
    held = 0
    for u in range(len(half)):
        held += 1 - half[u]
    while held != target:
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


@kernel
def worth(ptr: Ints, adj: Ints, w: Floats, bias: Floats, half: Bytes) -> float:
    """Return the weight between the halves and what leans towards the other one."""
    total = 0.0
    for u in range(len(half)):
        for e in range(ptr[u], ptr[u + 1]):
            if half[adj[e]] != half[u]:
                total += 0.5 * w[e]
        total += bias[u] * half[u]
    return total


@kernel
def turned(bias: Floats, size: Ints, target: int, half: Bytes) -> None:
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
def started(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, size: Ints,
    target: int, slack: int, state: State,
) -> Bytes:  # fmt: skip
    """Return the best of several halvings of a small graph."""
    half = np.zeros(len(size), dtype=np.int8)
    best, best_off = 1e300, 1 << 62
    for _ in range(TRIES):
        tried = grown(ptr, adj, w, size, target, state)
        turned(bias, size, target, tried)
        cost = refined(ptr, adj, w, bias, size, tried, target, slack, 60, 4, state)
        off = max(abs(in_half(size, tried) - target), slack)
        if off < best_off or (off == best_off and cost < best):
            half, best, best_off = tried, cost, off
    return half


@kernel
def summed(of: Ints, bias: Floats, count: int) -> Floats:
    """Return the bias of clusters."""
    out = np.zeros(count)
    for u in range(len(of)):
        out[of[u]] += bias[u]
    return out


@kernel
def common(of: Ints, label: Bytes, count: int) -> Bytes:
    """Return the label that all vertices of each cluster have."""
    out = np.empty(count, dtype=np.int8)
    for u in range(len(of)):
        out[of[u]] = label[u]
    return out


@kernel
def coarsened(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, size: Ints, label: Bytes, keep: int, state: State
) -> Any:
    """Return ever coarser graphs (ptr, adj, w, bias, size) and each one's clusters in the next."""
    whole = total(size)
    graphs = [(ptr, adj, w, bias, size)]
    ofs = [np.empty(0, dtype=np.int32)]
    while len(graphs[-1][4]) > keep:
        p, a, x, b, s = graphs[-1]
        most = max(2, min(3 * (whole // len(s) + 1), whole // 12))
        of, count = clustered(p, a, x, s, label, most, state)
        tick(state, 4 * len(a) + 8 * len(s))
        if count > 0.92 * len(s):
            break
        label = common(of, label, count)
        p2, a2, x2, s2 = contracted(p, a, x, s, of, count)
        graphs.append((p2, a2, x2, summed(of, b, count), s2))
        ofs.append(of)
    return graphs, ofs


@kernel
def uncoarsened(graphs: Any, ofs: Any, half: Bytes, target: int, state: State) -> Bytes:
    """Take halves of the coarsest graph to the finest one, refining them on the way."""
    whole, top = total(graphs[0][4]), len(graphs) - 1
    for level in range(top - 1, -1, -1):
        half = half[ofs[level + 1]]
        p, a, x, b, s = graphs[level]
        unit = level == 0 and len(s) == whole
        slack = 0 if unit else max(1, whole // (200 + 100 * (top - level)))
        refined(p, a, x, b, s, half, target, slack, 60 + len(half) // 40, 3, state)
    return half


@kernel
def halved(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, size: Ints, target: int, state: State
) -> Bytes:
    """Return halves of a graph from nothing, about `target` in half 0."""
    plain = np.zeros(len(size), dtype=np.int8)
    graphs, ofs = coarsened(ptr, adj, w, bias, size, plain, COARSE, state)
    p, a, x, b, s = graphs[-1]
    whole = total(size)
    slack = 0 if len(s) == whole else max(1, whole // 200)
    half = started(p, a, x, b, s, target, slack, state)
    return uncoarsened(graphs, ofs, half, target, state)


@kernel
def fresh(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, target: int, tries: int, state: State
) -> Bytes:
    """Return the best halves of several that begin on one graph coarsened some way."""
    n = len(ptr) - 1
    size, plain = np.ones(n, dtype=np.int32), np.zeros(n, dtype=np.int8)
    if tries < 2 or n <= 4 * COARSE:
        half = halved(ptr, adj, w, bias, size, target, state)
    else:
        graphs, ofs = coarsened(ptr, adj, w, bias, size, plain, n // SHRINK, state)
        p, a, x, b, s = graphs[-1]
        half, best = plain, 1e300
        for _ in range(max(1, min(tries, 3 * len(adj) // (2 * len(a) + 1)))):
            tried = halved(p, a, x, b, s, target, state)
            off = max(0, abs(in_half(s, tried) - target) - max(1, n // 200))
            cost = worth(p, a, x, b, tried) * (1 + 0.01 * off)
            if cost < best:
                half, best = tried, cost
        half = uncoarsened(graphs, ofs, half, target, state)
    exact(ptr, adj, w, bias, half, target)
    return half


@kernel
def again(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, target: int,
    label: Bytes, given: Bytes, state: State,
) -> Bytes:  # fmt: skip
    """Return given halves, refined on graphs in which only vertices of one label are joined."""
    size = np.ones(len(given), dtype=np.int32)
    graphs, ofs = coarsened(ptr, adj, w, bias, size, label, COARSE, state)
    half = given.copy()
    for k in range(1, len(graphs)):
        half = common(ofs[k], half, len(graphs[k][4]))
    p, a, x, b, s = graphs[-1]
    slack = 0 if len(graphs) == 1 else max(1, len(given) // 200)
    refined(p, a, x, b, s, half, target, slack, 60, 4, state)
    half = uncoarsened(graphs, ofs, half, target, state)
    exact(ptr, adj, w, bias, half, target)
    return half


@kernel
def best_half(
    ptr: Ints, adj: Ints, w: Floats, bias: Floats, target: int,
    starts: int, allowed: float, tries: int, state: State,
) -> Bytes:  # fmt: skip
    """Return the half of each vertex, exactly `target` of them in half 0, at little cost.

    Parameters
    ----------
    ptr, adj, w : int32, int32, float64
        The graph, each edge in both rows.
    bias : float64 (n,)
        What it costs that a vertex is in half 1, may be negative.
    target : int
        Vertices of half 0.
    starts : int
        Halvings from nothing, at most.
    allowed : float
        Work that may be done: a part of it on halvings from nothing, the rest
        on combining two of them. One halving is always made.
    tries : int
        Of each halving from nothing.
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
        pool[made] = fresh(ptr, adj, w, bias, target, tries, state)
        cost[made] = worth(ptr, adj, w, bias, pool[made])
        made += 1
    best, worst = extremes(cost[:made])
    label = np.empty(len(ptr) - 1, dtype=np.int8)
    cycles = CYCLES * made if made > 1 and cost[best] != 0 else 0
    while cycles > 0 and float(state[1]) - begun < allowed:
        cycles -= 1
        other = (best + 1 + draw(state) % (made - 1)) % made
        for u in range(len(label)):
            label[u] = 2 * pool[best, u] + pool[other, u]
        child = again(ptr, adj, w, bias, target, label, pool[best], state)
        found = worth(ptr, adj, w, bias, child)
        if found < cost[best]:
            pool[worst] = child
            cost[worst] = found
            best, worst = extremes(cost[:made])
    half: Bytes = pool[best].copy()
    return half


@kernel
def block_splits(blocks: Longs, first: Longs, out: Longs) -> None:
    """Find the cuts that take nodes apart, block by block from the outside in.

    Parameters
    ----------
    blocks : int64 (nodes, k)
        Nested blocks, innermost first, the nodes of a block standing together.
    first : int64 (nodes + 1,)
        Slots before each node.
    out : int64 (nodes - 1, 3)
        The cuts found: nodes ``low … cut - 1`` and ``cut … high - 1`` part;
        outer cuts first.
    """
    n, depth = blocks.shape
    todo = [(0, n)]
    done = 0
    while len(todo) > 0:
        low, high = todo.pop()
        if high - low < 2:
            continue
        column = depth - 1
        while column >= 0 and blocks[low, column] == blocks[high - 1, column]:
            column -= 1
        middle = (first[low] + first[high]) / 2
        cut, off = low + 1, 1e300
        for k in range(low + 1, high):
            apart = column < 0 or blocks[k, column] != blocks[k - 1, column]
            if apart and abs(first[k] - middle) < off:
                cut, off = k, abs(first[k] - middle)
        out[done, 0], out[done, 1], out[done, 2] = low, cut, high
        done += 1
        todo.append((low, cut))
        todo.append((cut, high))


@kernel
def multisect(
    ptr: Ints, adj: Ints, w: Floats, cuts: Longs, first: Longs, family: Longs,
    starts: Longs, repeats: Longs, shares: Floats, again: Floats, far: Floats, allowed: float,
    state: State, ranks: Ints,
) -> None:  # fmt: skip
    """Bring the ranks into slot order, each cut of the nodes being a halving of their ranks.

    Parameters
    ----------
    ptr, adj, w
        The graph: as many vertices as slots.
    cuts : int64 (nodes - 1, 3)
        See `block_splits`; those of one family in a row.
    first : int64 (nodes + 1,)
        Slots before each node, in the order that the cuts count in.
    family : int64 (nodes - 1,)
        Cuts of one number part the blocks of one larger block, which are all
        equally far apart.
    starts : int64 (nodes - 1,)
        Halvings from nothing that are made for each cut at most.
    repeats : int64 (nodes - 1,)
        How often all cuts of a family are made, the best being taken; 1 where `far` is given.
    shares : float64 (nodes - 1,)
        Of the work, of each cut.
    again : float64 (nodes - 1,)
        Of the work, of placing anew all ranks of a family's block: its first cut's entry.
    far : float64 (nodes, nodes) or (0, 0)
        Distances of the nodes in that order, where the blocks alone do not
        decide them: then a cut also looks at where other ranks have gone.
    allowed : float
        Work that may be done in all.
    state : uint64 (2,)
    ranks : int32 (ranks,)
        0 … n-1 in any order, in slot order afterwards.
    """
    n = len(ptr) - 1
    local = np.full(n, -1, dtype=np.int32)
    where = np.zeros((n, 2), dtype=np.int32)
    where[:, 1] = len(first) - 1
    left = 0.0
    for c in range(len(cuts)):
        left += (shares[c] + again[c]) * repeats[c]
    allowed += float(state[1])
    begin = 0
    while begin < len(cuts):
        end = begin + 1
        while end < len(cuts) and family[end] == family[begin]:
            end += 1
        low, high = first[cuts[begin, 0]], first[cuts[begin, 2]]
        given, best, least = ranks[low:high].copy(), ranks[low:high].copy(), 1e300
        for _ in range(repeats[begin]):
            ranks[low:high] = given
            for c in range(begin, end):
                part_of = max(0.0, allowed - float(state[1])) / max(left, 1e-300)
                left -= shares[c]
                here = part_of * shares[c]
                divide(
                    ptr, adj, w, ranks, local, first, cuts[c], starts[c], here, far, where, state
                )
            part_of = max(0.0, allowed - float(state[1])) / max(left, 1e-300)
            left -= again[begin]
            here = part_of * again[begin]
            siblings(ptr, adj, w, ranks, local, first, cuts[begin:end], here, state)
            if repeats[begin] > 1:
                cost = between(ptr, adj, w, ranks, local, first, cuts[begin:end])
                if cost < least:
                    best, least = ranks[low:high].copy(), cost
        if repeats[begin] > 1:
            ranks[low:high] = best
        begin = end


@kernel
def between(
    ptr: Ints, adj: Ints, w: Floats, ranks: Ints, local: Ints, first: Longs, cuts: Longs
) -> float:
    """Return twice the weight between the blocks that a family of cuts parts."""
    low, high = first[cuts[0, 0]], first[cuts[0, 2]]
    block = np.zeros(high - low, dtype=np.int32)
    for c in range(len(cuts)):
        for i in range(first[cuts[c, 1]], first[cuts[c, 2]]):
            block[i - low] = c + 1
    for i in range(low, high):
        local[ranks[i]] = block[i - low]
    total = 0.0
    for i in range(low, high):
        for e in range(ptr[ranks[i]], ptr[ranks[i] + 1]):
            other = local[adj[e]]
            if other >= 0 and other != block[i - low]:
                total += w[e]
    for i in range(low, high):
        local[ranks[i]] = -1
    return total


@inlined
def divide(
    ptr: Ints, adj: Ints, w: Floats, ranks: Ints, local: Ints, first: Longs, cut: Longs,
    starts: int, allowed: float, far: Floats, where: Ints, state: State,
) -> None:  # fmt: skip
    """Halve the ranks of the nodes on both sides of a cut."""
    low, middle, high = first[cut[0]], first[cut[1]], first[cut[2]]
    mine = ranks[low:high].copy()
    p, a, x = part(ptr, adj, w, mine, local)
    bias = np.zeros(len(mine))
    if len(far) > 0:
        pull(ptr, adj, w, mine, where, cut, far, bias, x)
        tick(state, 2 * len(a) + (cut[2] - cut[0]) * len(far))
    half = best_half(p, a, x, bias, middle - low, starts, allowed, 4, state)
    dealt(mine, half, ranks, low, middle)
    part_from(mine, half, where, cut[1])


@kernel
def part_from(mine: Ints, half: Bytes, where: Ints, cut: int) -> None:
    """Note that ranks are before or behind a cut of the nodes now."""
    for i in range(len(mine)):
        where[mine[i], 1 - half[i]] = cut


@kernel
def pull(
    ptr: Ints, adj: Ints, w: Floats, mine: Ints, where: Ints, cut: Longs, far: Floats,
    bias: Floats, inner: Floats,
) -> None:  # fmt: skip
    """Add to `bias` how ranks are drawn by those elsewhere, and weigh inner edges by distance.

    `where` says of each rank from and up to which node it may be; all of these
    count alike. Nodes ``cut[0] … cut[1] - 1`` part from ``cut[1] … cut[2] - 1``.
    """
    low, middle, high = cut[0], cut[1], cut[2]
    more = np.zeros(len(far) + 1)  # how much farther from the nodes behind the cut, summed up
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
    for e in range(len(inner)):
        inner[e] *= apart
    for i in range(len(mine)):
        for e in range(ptr[mine[i]], ptr[mine[i] + 1]):
            a, b = where[adj[e], 0], where[adj[e], 1]
            if a != low or b != high:
                bias[i] += w[e] * (more[b] - more[a]) / (b - a)


@inlined
def siblings(
    ptr: Ints, adj: Ints, w: Floats, ranks: Ints, local: Ints, first: Longs, cuts: Longs,
    allowed: float, state: State,
) -> None:  # fmt: skip
    """Let the ranks of blocks that are equally far apart change places."""
    k, allowed = len(cuts) + 1, allowed + float(state[1])
    low, high = len(first), 0
    for c in range(k - 1):
        low, high = min(low, cuts[c, 0]), max(high, cuts[c, 2])
    begin = first[low]
    if k < 3 or first[high] - begin < 2 * k or k > MOST_SIBLINGS:
        return
    edges = np.empty(k + 1, dtype=np.int64)  # the blocks' first nodes, then what parts each
    priority = np.zeros(k, dtype=np.int64)
    edges[0], edges[k], i = low, high, 0
    for t in range(low + 1, high):
        for c in range(k - 1):
            if cuts[c, 1] == t:
                i += 1
                edges[i], priority[i] = t, c
    far, bounds = np.ones((k, k)), np.empty(k + 1, dtype=np.int64)
    for i in range(k + 1):
        bounds[i] = first[edges[i]] - begin
    mine = ranks[begin : first[high]].copy()
    where = np.empty(len(mine), dtype=np.int32)
    for i in range(k):
        far[i, i] = 0.0
        where[bounds[i] : bounds[i + 1]] = i
    p, a, x = part(ptr, adj, w, mine, local)
    nothing = np.empty((0, 0))
    exchanged(p, a, x, where, bounds, far, nothing, 2, state)
    rework(
        p, a, x, where, bounds, far, nothing, priority, MOST_ANEW, allowed - float(state[1]), state
    )
    inside = members(where, bounds)
    for i in range(len(mine)):
        ranks[begin + i] = mine[inside[i]]


@kernel
def part(ptr: Ints, adj: Ints, w: Floats, mine: Ints, local: Ints) -> tuple[Ints, Ints, Floats]:
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
def costs(ptr: Ints, adj: Ints, w: Reals, node: Ints, far: Reals, outer: Reals) -> float:
    """Return J of the ranks, the edges to ranks elsewhere counted once too."""
    total = 0.0
    for u in range(len(node)):
        for e in range(ptr[u], ptr[u + 1]):
            total += 0.5 * w[e] * far[node[u], node[adj[e]]]
        if len(outer) > 0:
            total += outer[u, node[u]]
    return total


@inlined
def exchange(
    ptr: Ints, adj: Ints, w: Floats, node: Ints, member: Ints, first: Longs, far: Floats,
    outer: Floats, p: int, q: int, local: Ints, state: State,
) -> float:  # fmt: skip
    """Divide the ranks of two nodes anew, beginning with what is; return by how much J falls."""
    target = first[p + 1] - first[p]
    mine = np.empty(target + first[q + 1] - first[q], dtype=np.int32)
    mine[:target] = member[first[p] : first[p + 1]]
    mine[target:] = member[first[q] : first[q + 1]]
    sub_ptr, sub_adj, sub_w = part(ptr, adj, w, mine, local)
    for e in range(len(sub_w)):
        sub_w[e] *= far[p, q]
    bias = np.zeros(len(mine))
    for i in range(len(mine)):
        u = mine[i]
        if len(outer) > 0:
            bias[i] = outer[u, q] - outer[u, p]
        for e in range(ptr[u], ptr[u + 1]):
            r = node[adj[e]]
            if r != p and r != q:
                bias[i] += w[e] * (far[q, r] - far[p, r])
    tick(state, 3 * len(sub_adj) + 8 * len(mine))
    given = np.ones(len(mine), dtype=np.int8)
    given[:target] = 0
    before = worth(sub_ptr, sub_adj, sub_w, bias, given)
    half = again(sub_ptr, sub_adj, sub_w, bias, target, given, given, state)
    gain = before - worth(sub_ptr, sub_adj, sub_w, bias, half)
    if gain <= 1e-9 * abs(before):
        return 0.0
    dealt(mine, half, member, first[p], first[q])
    for i in range(len(mine)):
        node[mine[i]] = p if half[i] == 0 else q
    return gain


@kernel
def talking(ptr: Ints, adj: Ints, w: Floats, node: Ints, far: Floats) -> Floats:
    """Return what the edges between every two nodes cost, float64 (nodes, nodes), p < q."""
    cost = np.zeros(far.shape)
    for u in range(len(node)):
        for e in range(ptr[u], ptr[u + 1]):
            p, q = node[u], node[adj[e]]
            if p < q:
                cost[p, q] += w[e] * far[p, q]
    return cost


@kernel
def loudest(cost: Floats) -> tuple[int, int]:
    """Return the two nodes between which edges cost most."""
    p, q = 0, 0
    for i in range(len(cost)):
        for j in range(i + 1, len(cost)):
            if cost[i, j] > cost[p, q]:
                p, q = i, j
    return p, q


@kernel
def exchanged(
    ptr: Ints, adj: Ints, w: Floats, node: Ints, first: Longs, far: Floats, outer: Floats,
    rounds: int, state: State,
) -> None:  # fmt: skip
    """Exchange ranks between all pairs of nodes that talk, those that talk most first."""
    nodes = len(far)
    member = members(node, first)
    local = np.full(len(node), -1, dtype=np.int32)
    changed, tried = np.zeros(nodes, dtype=np.int64), np.full((nodes, nodes), -1)
    clock = 0
    for _ in range(rounds):
        cost = talking(ptr, adj, w, node, far)
        while True:
            p, q = loudest(cost)
            if p == q:
                break
            cost[p, q] = 0.0
            tick(state, nodes * nodes // 4)
            if tried[p, q] >= max(changed[p], changed[q]):
                continue
            clock += 1
            tried[p, q] = clock
            if exchange(ptr, adj, w, node, member, first, far, outer, p, q, local, state) > 0:
                changed[p] = clock
                changed[q] = clock


@kernel
def chosen(far: Floats, p: int, q: int, many: int, state: State) -> Longs:
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
def outside(
    ptr: Ints, adj: Ints, w: Floats, node: Ints, far: Floats, outer: Floats, mine: Ints, some: Longs
) -> Floats:
    """Return what edges to ranks on other nodes cost with each rank on each of some nodes."""
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
def leaning(outer: Floats, these: Ints, low: int, cut: int, high: int) -> Floats:
    """Return what edges to ranks elsewhere cost more on nodes cut … high-1 than low … cut-1."""
    bias = np.zeros(len(these))
    for i in range(len(these)):
        for j in range(low, cut):
            bias[i] -= outer[these[i], j] / (cut - low)
        for j in range(cut, high):
            bias[i] += outer[these[i], j] / (high - cut)
    return bias


@kernel
def outermost(some: Longs, priority: Longs, low: int, high: int) -> int:
    """Return where some nodes part: at the outermost of the machine's cuts between them."""
    cut, best = low + 1, priority[some[low] + 1]
    for i in range(low + 1, high):
        for t in range(some[i - 1] + 1, some[i] + 1):
            if priority[t] < best:
                cut, best = i, priority[t]
    return cut


@inlined
def placed(
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
        cut = outermost(some, priority, low, high)
        a, b, c = first[low], first[cut], first[high]
        these = ranks[a:c].copy()
        sub_ptr, sub_adj, sub_w = part(ptr, adj, w, these, local)
        bias = leaning(outer, these, low, cut, high)
        pull(ptr, adj, w, these, where, np.array([low, cut, high]), near, bias, sub_w)
        tick(state, 3 * len(sub_adj) + 8 * len(these))
        half = fresh(sub_ptr, sub_adj, sub_w, bias, b - a, 1, state)
        dealt(these, half, ranks, a, b)
        part_from(these, half, where, cut)
        todo.append((low, cut))
        todo.append((cut, high))
    return where[:, 0].copy()


@inlined
def anew(
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
    p, a, x = part(ptr, adj, w, mine, local)
    others = outside(ptr, adj, w, node, far, outer, mine, some)
    now = placed(p, a, x, bounds, near, others, some, priority, state)
    exchanged(p, a, x, now, bounds, near, others, 2, state)
    tick(state, 4 * len(a) + 2 * len(mine) * k)
    before = costs(p, a, x, was, near, others)
    gain = before - costs(p, a, x, now, near, others)
    if gain <= 1e-9 * abs(before):
        return 0.0
    order = members(now, bounds)
    for i in range(k):
        for j in range(bounds[i], bounds[i + 1]):
            member[first[some[i]] + j - bounds[i]] = mine[order[j]]
            node[mine[order[j]]] = some[i]
    return gain


@kernel
def rework(
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
    member = members(node, first)
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
        some = chosen(far, p, q, 2 << (draw(state) & 1), state)
        tick(state, 8 * len(far))
        anew(ptr, adj, w, node, member, first, far, outer, some, priority, local, state)
        for r in some:
            done += first[r + 1] - first[r]
