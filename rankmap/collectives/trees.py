"""Trees from a root: who sends on to whom, level by level.

Ranks are counted from the root: v is rank (v + root) mod P. Every function returns the
levels from the root outwards, each as (parents, children).
"""

from __future__ import annotations

import numpy as np

from placement.support.array_types import Ints
from rankmap.collectives import Part, Step, backwards

Level = tuple[Ints, Ints]

__all__ = [
    "binary",
    "binomial",
    "doubling_binomial",
    "downwards",
    "in_order_binary",
    "knomial",
    "linear",
    "log2_up",
    "upwards",
]


def log2_up(count: int) -> int:
    """Return the least k with 2**k >= count.

    Examples
    --------
    >>> log2_up(1), log2_up(8), log2_up(9)
    (0, 3, 4)
    """
    return (count - 1).bit_length()


def binomial(ranks: int) -> list[Level]:
    """Return the tree whose root first sends half way across: v to v + 2^k, k falling."""
    found = []
    for k in reversed(range(log2_up(ranks))):
        parent = np.arange(0, ranks, 2 << k)
        parent = parent[parent + (1 << k) < ranks]
        found.append((parent, parent + (1 << k)))
    return found


def doubling_binomial(ranks: int) -> list[Level]:
    """Return the tree whose root first sends to its neighbour: v < 2^k to v + 2^k, k rising."""
    found = []
    for k in range(log2_up(ranks)):
        parent = np.arange(min(1 << k, ranks - (1 << k)))
        found.append((parent, parent + (1 << k)))
    return found


def knomial(ranks: int, radix: int = 4) -> list[Level]:
    """Return the tree in which v sends to v + r * radix^k for each r below the radix."""
    found = []
    mask = 1
    while mask * radix < ranks:
        mask *= radix
    while mask:
        parent = np.repeat(np.arange(0, ranks, mask * radix), radix - 1)
        child = parent + mask * np.tile(np.arange(1, radix), len(parent) // (radix - 1))
        found.append((parent[child < ranks], child[child < ranks]))
        mask //= radix
    return found


def binary(ranks: int) -> list[Level]:
    """Return the tree in which v of level L sends to v + 2^L and v + 2^(L+1)."""
    found = []
    for level in range(ranks.bit_length()):
        here = np.arange((1 << level) - 1, (2 << level) - 1)
        parent = np.repeat(here, 2)
        child = parent + (1 << level) * np.tile([1, 2], len(here))
        kept = (child < ranks) & (parent < ranks)
        if kept.any():
            found.append((parent[kept], child[kept]))
    return found


def in_order_binary(ranks: int) -> list[Level]:
    """Return a binary tree from the last rank whose subtrees are ranges of ranks, in order."""
    low, size = np.array([0]), np.array([ranks])
    found = []
    while len(low):
        right = size >> 1
        left = size - right - 1
        root = low + size - 1
        parent = np.concatenate([root[left > 0], root[right > 0]])
        lows = np.concatenate([(low + right)[left > 0], low[right > 0]])
        sizes = np.concatenate([left[left > 0], right[right > 0]])
        if len(lows):
            found.append((parent, lows + sizes - 1))
        low, size = lows, sizes
    return found


def linear(ranks: int) -> list[Level]:
    """Return the root sending to everyone."""
    child = np.arange(1, ranks)
    return [(np.zeros_like(child), child)]


def downwards(name: str, levels: list[Level], ranks: int, root: int, size: float) -> Part:
    """Return a buffer's way from the root to everyone."""

    def step(k: int) -> Step:
        parent, child = levels[k]
        return Step((parent + root) % ranks, (child + root) % ranks)

    return Part(name, len(levels), step, size)


def upwards(name: str, levels: list[Level], ranks: int, root: int, size: float) -> Part:
    """Return everyone's buffers being combined on the way to the root."""
    return backwards(downwards(name, levels, ranks, root, size), name, combine=True)
