"""The binomial tree: who sends on to whom, level by level.

Ranks are counted from the root: v is rank (v + root) mod P.
"""

from __future__ import annotations

import numpy as np

from placement.support.array_types import Ints

Level = tuple[Ints, Ints]

__all__ = ["binomial", "log2_up"]


def log2_up(count: int) -> int:
    """Return the least k with 2**k >= count.

    Examples
    --------
    >>> log2_up(1), log2_up(8), log2_up(9)
    (0, 3, 4)
    """
    return (count - 1).bit_length()


def binomial(ranks: int) -> list[Level]:
    """Return the levels, from the root outwards, each as (parents, children).

    The root first sends half way across: v to v + 2^k, k falling.
    """
    levels = []
    for k in reversed(range(log2_up(ranks))):
        parent = np.arange(0, ranks, 2 << k)
        parent = parent[parent + (1 << k) < ranks]
        levels.append((parent, parent + (1 << k)))
    return levels
