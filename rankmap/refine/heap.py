"""A heap of vertices, largest key on top, in which keys may change (R. W. Floyd 1964)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankmap.refine.jit import kernel

if TYPE_CHECKING:
    from rankmap.refine.arrays import Floats, Ints

__all__ = ["drop", "push"]


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
