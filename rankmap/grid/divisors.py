"""Divisors, and the boxes of a volume that tile a grid."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Shape = tuple[int, ...]
    Ints = NDArray[np.int64]

__all__ = ["boxes_of", "divisors", "factorisations"]


@lru_cache(maxsize=4096)
def divisors(n: int) -> tuple[int, ...]:
    """Return the divisors of a number, ascending.

    Examples
    --------
    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    low = [k for k in range(1, math.isqrt(n) + 1) if n % k == 0]
    return tuple(low + [n // k for k in reversed(low) if k * k != n])


def factorisations(n: int, extents: Sequence[int]) -> Iterator[Shape]:
    """Yield every way to write `n` as a product, one divisor of each extent in turn.

    Examples
    --------
    >>> list(factorisations(4, (8, 6)))
    [(2, 2), (4, 1)]
    """
    if len(extents) == 1:
        if extents[0] % n == 0:
            yield (n,)
        return
    for first in divisors(math.gcd(n, extents[0])):
        for rest in factorisations(n // first, extents[1:]):
            yield (first, *rest)


def boxes_of(volume: int, grid: Sequence[int]) -> Ints:
    """Return the boxes of a volume that tile a grid, int64 (boxes, dimensions).

    Examples
    --------
    >>> boxes_of(4, (8, 6)).tolist()
    [[2, 2], [4, 1]]
    """
    found = list(factorisations(volume, tuple(grid)))
    return np.array(found, dtype=np.int64).reshape(len(found), len(grid))
