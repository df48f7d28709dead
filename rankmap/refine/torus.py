"""Cuts of a torus: the longest side is halved, and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["torus_splits"]


def torus_splits(
    coords: NDArray[np.int64], extents: tuple[int, ...], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes in an order, and the cuts of it that halve the longest side each time.

    Parameters
    ----------
    coords : int64 (nodes, d)
    extents : tuple of int
    counts : int64 (nodes,)
        Slots of each node.
    """
    order = np.arange(len(coords))
    turned = np.stack([_unwrapped(c, e) for c, e in zip(coords.T, extents, strict=True)], axis=1)
    out, todo = [], [(0, len(coords))]
    while todo:
        low, high = todo.pop()
        if high - low < 2:
            continue
        mine = order[low:high]
        span = np.ptp(turned[mine], axis=0)
        axis = int(np.argmax(span))
        keys = [*np.delete(turned[mine], axis, axis=1).T, turned[mine, axis]]
        order[low:high] = mine = mine[np.lexsort(keys)]
        held = np.cumsum(counts[mine])[:-1]
        value = turned[mine, axis]
        clean = np.flatnonzero(value[1:] != value[:-1])
        choices = clean if len(clean) else np.arange(len(mine) - 1)
        cut = low + 1 + int(choices[np.argmin(np.abs(held[choices] - counts[mine].sum() / 2))])
        out.append((low, cut, high))
        todo += [(low, cut), (cut, high)]
    return order, np.array(out, dtype=np.int64).reshape(-1, 3)


def _unwrapped(column: NDArray[np.int64], extent: int) -> NDArray[np.int64]:
    """Return a coordinate counted from behind the widest gap that the nodes leave on the ring."""
    used = np.unique(column)
    gaps = np.diff(np.append(used, used[0] + extent))
    return np.asarray((column - used[(int(np.argmax(gaps)) + 1) % len(used)]) % extent)
