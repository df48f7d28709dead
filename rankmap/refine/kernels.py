"""All compiled kernels: one graph in two halves, halves down the machine's tree, annealing.

They stand in one file because numba's cache on disk asks only whether the
file of a kernel has changed, not the files of what it calls.

*Bisection*: coarsen by clusters of vertices that weigh much to each other,
grow halves, refine by the moves of Fiduccia and Mattheyses, with exact sizes
at the end. Vertices have whole weights, the ranks that a coarse one stands for.

*Annealing*: what every rank would cost on every node is kept in a table, so
that a move is judged by two look-ups. First single ranks move, nodes being a
little over or under their slots at a price that rises; then the nodes are made
exact; then pairs of ranks swap. A step that raises the cost by x is taken with
probability exp(-x / T), T falling: what a descent is caught in is left again.

Everything works on plain arrays in CSR form, each edge in both rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankmap.refine.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.int8]
    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int32]
    Longs = NDArray[np.int64]
    State = NDArray[np.uint64]
    Table = NDArray[np.float32]

__all__ = ["anneal", "bisect", "block_splits", "draw", "multisect"]

#: A graph of so few vertices is not coarsened further.
COARSE = 48

#: Starts that are tried on the coarsest graph.
TRIES = 6


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
def shuffled(n: int, state: State) -> Ints:
    """Return 0 … n-1 in random order."""
    order = np.arange(n).astype(np.int32)
    for i in range(n - 1, 0, -1):
        j = draw(state) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order


@kernel
def clustered(
    ptr: Ints, adj: Ints, w: Floats, size: Ints, most: int, state: State
) -> tuple[Ints, int]:
    """Return the cluster of each vertex, and how many: neighbours that weigh much join."""
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
            if weight + size[u] > most:
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
    ptr: Ints, adj: Ints, w: Floats, half: Bytes, every: bool,
    gain: Floats, place: Ints, heaps: Ints, counts: Longs,
) -> float:  # fmt: skip
    """Fill the heaps with the vertices on the cut (or all), and return the cut."""
    cut = 0.0
    place[:] = -1
    counts[:] = 0
    for u in range(len(half)):
        inside, outside = 0.0, 0.0
        for e in range(ptr[u], ptr[u + 1]):
            if half[adj[e]] == half[u]:
                inside += w[e]
            else:
                outside += w[e]
        gain[u] = outside - inside
        cut += outside
        if outside > 0 or every:
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
    largest = size.max()
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
    ptr: Ints, adj: Ints, w: Floats, size: Ints, half: Bytes,
    target: int, slack: int, patience: int, passes: int,
) -> float:  # fmt: skip
    """Move vertices between the halves while the cut falls; return the cut.

    The size of half 0 ends within `slack` of `target` if moves can bring it
    there, and that counts more than the cut.
    """
    n = len(size)
    gain = np.empty(n, dtype=np.float64)
    place = np.empty(n, dtype=np.int32)
    heaps = np.empty((2, n), dtype=np.int32)
    counts = np.zeros(2, dtype=np.int64)
    held = size[half == 0].sum()
    cut = 0.0
    for _ in range(passes):
        off = max(abs(held - target), slack)
        before = prepared(ptr, adj, w, half, off > slack, gain, place, heaps, counts)
        held, cut = one_pass(
            ptr, adj, w, size, half, held, before, target, slack, patience,
            gain, place, heaps, counts,
        )  # fmt: skip
        if max(abs(held - target), slack) >= off and cut >= before - 1e-9 * abs(before):
            break
    return cut


@kernel
def exact(ptr: Ints, adj: Ints, w: Floats, half: Bytes, target: int) -> None:
    """Move single vertices, the cheapest first, until half 0 has exactly `target` of them."""
    held = (half == 0).sum()
    while held != target:
        h = 0 if held > target else 1
        best, best_gain = -1, -1e300
        for u in range(len(half)):
            if half[u] == h:
                gain = 0.0
                for e in range(ptr[u], ptr[u + 1]):
                    gain += w[e] if half[adj[e]] != h else -w[e]
                if gain > best_gain:
                    best, best_gain = u, gain
        half[best] = 1 - h
        held += -1 if h == 0 else 1


@kernel
def started(
    ptr: Ints, adj: Ints, w: Floats, size: Ints, target: int, slack: int, state: State
) -> Bytes:
    """Return the best of several halvings of a small graph."""
    half = np.zeros(len(size), dtype=np.int8)
    best, best_off = 1e300, 1 << 62
    for _ in range(TRIES):
        tried = grown(ptr, adj, w, size, target, state)
        cut = refined(ptr, adj, w, size, tried, target, slack, 60, 4)
        off = max(abs(size[tried == 0].sum() - target), slack)
        if off < best_off or (off == best_off and cut < best):
            half, best, best_off = tried, cut, off
    return half


@kernel
def bisect(ptr: Ints, adj: Ints, w: Floats, target: int, state: State) -> Bytes:
    """Return the half of each vertex, exactly `target` of them in half 0, few edges between.

    Parameters
    ----------
    ptr, adj, w : int32, int32, float64
        The graph, each edge in both rows.
    target : int
        Vertices of half 0.
    state : uint64 (1,)
        Of the random numbers.

    Returns
    -------
    int8 (n,)
        0 or 1.
    """
    n = len(ptr) - 1
    ptrs, adjs, ws, sizes = [ptr], [adj], [w], [np.ones(n, dtype=np.int32)]
    ofs = [np.empty(0, dtype=np.int32)]
    while len(sizes[-1]) > COARSE:
        k = len(sizes[-1])
        most = max(2, min(3 * (n // k + 1), n // 12))
        of, count = clustered(ptrs[-1], adjs[-1], ws[-1], sizes[-1], most, state)
        if count > 0.92 * k:
            break
        coarse = contracted(ptrs[-1], adjs[-1], ws[-1], sizes[-1], of, count)
        ptrs.append(coarse[0])
        adjs.append(coarse[1])
        ws.append(coarse[2])
        sizes.append(coarse[3])
        ofs.append(of)
    top = len(sizes) - 1
    slack = 0 if top == 0 else max(1, n // 200)
    half = started(ptrs[top], adjs[top], ws[top], sizes[top], target, slack, state)
    for level in range(top - 1, -1, -1):
        half = half[ofs[level + 1]]
        slack = 0 if level == 0 else max(1, n // (200 + 100 * (top - level)))
        p, a, x, s = ptrs[level], adjs[level], ws[level], sizes[level]
        refined(p, a, x, s, half, target, slack, 60 + len(half) // 40, 3)
    exact(ptr, adj, w, half, target)
    return half


@kernel
def block_splits(blocks: Longs, first: Longs) -> Longs:
    """Return the cuts that take nodes apart, block by block from the outside in.

    Parameters
    ----------
    blocks : int64 (nodes, k)
        Nested blocks, innermost first, the nodes of a block standing together.
    first : int64 (nodes + 1,)
        Slots before each node.

    Returns
    -------
    int64 (nodes - 1, 3)
        Nodes ``low … cut - 1`` and ``cut … high - 1`` part; outer cuts first.
    """
    n, depth = blocks.shape
    out = np.empty((n - 1, 3), dtype=np.int64)
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
    return out


@kernel
def severed(ptr: Ints, adj: Ints, w: Floats, half: Bytes) -> float:
    """Return twice the weight between the halves."""
    total = 0.0
    for u in range(len(half)):
        for e in range(ptr[u], ptr[u + 1]):
            if half[adj[e]] != half[u]:
                total += w[e]
    return total


@kernel
def multisect(
    ptr: Ints, adj: Ints, w: Floats, cuts: Longs, first: Longs,
    tries: Longs, state: State,
) -> Ints:  # fmt: skip
    """Return the ranks in slot order, each cut of the nodes being a bisection of their ranks.

    Parameters
    ----------
    ptr, adj, w
        The graph: as many vertices as slots.
    cuts : int64 (nodes - 1, 3)
        See `block_splits`.
    first : int64 (nodes + 1,)
        Slots before each node, in the order that the cuts count in.
    tries : int64 (nodes - 1,)
        Bisections that are made for each cut, the best of them being taken.
    state : uint64 (1,)
    """
    n = len(ptr) - 1
    ranks = np.arange(n).astype(np.int32)
    local = np.full(n, -1, dtype=np.int32)
    for c in range(len(cuts)):
        low, middle, high = first[cuts[c, 0]], first[cuts[c, 1]], first[cuts[c, 2]]
        mine = ranks[low:high].copy()
        sub_ptr, sub_adj, sub_w = part(ptr, adj, w, mine, local)
        half = bisect(sub_ptr, sub_adj, sub_w, middle - low, state)
        least = severed(sub_ptr, sub_adj, sub_w, half)
        for _ in range(tries[c] - 1 if least > 0 and len(mine) > COARSE else 0):
            other = bisect(sub_ptr, sub_adj, sub_w, middle - low, state)
            weight = severed(sub_ptr, sub_adj, sub_w, other)
            if weight < least:
                half, least = other, weight
        ranks[low:middle] = mine[half == 0]
        ranks[middle:high] = mine[half == 1]
    return ranks


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
def shift(ptr: Ints, adj: Ints, w: Table, u: int, p: int, q: int, far: Table, costs: Table) -> None:
    """Update what the partners of `u` cost everywhere, after it has gone from p to q."""
    gone, come = far[p], far[q]
    for e in range(ptr[u], ptr[u + 1]):
        weight = w[e]
        row = costs[adj[e]]
        for k in range(len(row)):
            row[k] += weight * (come[k] - gone[k])


@kernel
def filled(ptr: Ints, adj: Ints, w: Table, node: Ints, far: Table, outer: Table) -> Table:
    """Return what each rank would cost on each node, float32 (ranks, nodes)."""
    costs = np.zeros((len(node), len(far)), dtype=np.float32)
    if len(outer) > 0:
        costs[:] = outer
    for u in range(len(node)):
        row = costs[u]
        for e in range(ptr[u], ptr[u + 1]):
            weight = w[e]
            there = far[node[adj[e]]]
            for k in range(len(row)):
                row[k] += weight * there[k]
    return costs


@kernel
def value(ptr: Ints, adj: Ints, w: Table, node: Ints, far: Table, outer: Table) -> float:
    """Return J of the ranks, the edges to ranks elsewhere counted once too."""
    total = 0.0
    for u in range(len(node)):
        for e in range(ptr[u], ptr[u + 1]):
            total += 0.5 * w[e] * far[node[u], node[adj[e]]]
        if len(outer) > 0:
            total += outer[u, node[u]]
    return total


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
    costs: Table, hot: float, cold: float, steps: int, state: State,
) -> None:  # fmt: skip
    """Move single ranks; a node over or under its slots costs the square of what it is off by."""
    n, nodes = len(node), len(far)
    chunk = max(1, steps // 256)
    fall, rise = (cold / hot) ** (1 / 256), 10.0 ** (1 / 256)
    temperature, price = hot, 0.5
    for t in range(steps):
        if t % chunk == chunk - 1:
            temperature *= fall
            price *= rise
        u = draw(state) % n
        p = node[u]
        q = target(u, draw(state), ptr, adj, node, nodes)
        if q == p:
            continue
        over = (load[q] - slots[q]) - (load[p] - slots[p]) + 1
        delta = costs[u, q] - costs[u, p] + price * over
        if delta <= 0 or delta < allowance(temperature, state):
            node[u] = q
            load[p] -= 1
            load[q] += 1
            shift(ptr, adj, w, u, p, q, far, costs)


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
        shift(ptr, adj, w, who, p, to, far, costs)


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
    hot: float, cold: float, steps: int, state: State,
) -> None:  # fmt: skip
    """Swap pairs of ranks."""
    n, nodes = len(node), len(far)
    member = np.argsort(node, kind="mergesort").astype(np.int32)
    place = np.empty(n, dtype=np.int32)
    for i in range(n):
        place[member[i]] = i
    chunk = max(1, steps // 256)
    fall, temperature = (cold / hot) ** (1 / 256), hot
    for t in range(steps):
        if t % chunk == chunk - 1:
            temperature *= fall
        u = draw(state) % n
        p = node[u]
        q = target(u, draw(state), ptr, adj, node, nodes)
        if q == p or first[q] == first[q + 1]:
            continue
        v = partner(p, first, q, member, costs, state)
        delta = costs[u, q] - costs[u, p] + costs[v, p] - costs[v, q]
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
            shift(ptr, adj, w, u, p, q, far, costs)
            shift(ptr, adj, w, v, q, p, far, costs)


@kernel
def anneal(
    ptr: Ints, adj: Ints, w: Table, node: Ints, slots: Longs, far: Table, outer: Table,
    hot: float, moves: int, swaps: int, state: State,
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
    moves, swaps : int
        Steps of each kind.
    state : uint64 (1,)
    """
    before = value(ptr, adj, w, node, far, outer)
    now = node.copy()
    load = slots.copy()
    costs = filled(ptr, adj, w, now, far, outer)
    move(ptr, adj, w, now, load, slots, far, costs, hot, 0.08, moves, state)
    settle(ptr, adj, w, now, load, slots, far, costs)
    first = np.zeros(len(slots) + 1, dtype=np.int64)
    for p in range(len(slots)):
        first[p + 1] = first[p] + slots[p]
    swap(ptr, adj, w, now, first, far, costs, 0.2, 0.05, swaps, state)
    after = value(ptr, adj, w, now, far, outer)
    if after >= before:
        return 0.0
    node[:] = now
    return before - after
