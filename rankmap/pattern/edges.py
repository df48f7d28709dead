"""Edges as arrays: all of a pattern's, and those of a graph in the rows of both ends."""

from __future__ import annotations

import numpy as np

from placement.support.array_types import Floats, Ints
from placement.support.arrays import sum_by_key
from rankmap.pattern import Pattern

__all__ = ["distinct", "every_edge", "symmetric_rows"]


def every_edge(pattern: Pattern) -> tuple[Ints, Ints, Floats]:
    """Return both ends and the weight of every edge of a pattern, each once or more often."""
    none = np.empty(0, dtype=np.int64)
    a, b, weight = zip((none, none, np.empty(0)), *pattern.edges(), strict=True)
    return np.concatenate(a), np.concatenate(b), np.concatenate(weight)


def symmetric_rows(n: int, a: Ints, b: Ints, weight: Floats) -> tuple[Ints, Ints, Floats]:
    """Return (indptr, indices, weights) of undirected edges, each in the rows of both its ends.

    Edges given twice are added up, loops and edges without weight left out.

    Examples
    --------
    >>> [x.tolist() for x in symmetric_rows(2, np.array([0, 1]), np.array([1, 0]), np.ones(2))]
    [[0, 1, 2], [1, 0], [2.0, 2.0]]
    """
    kept = (a != b) & (weight > 0)
    a, b, weight = a[kept], b[kept], weight[kept]
    key, weight = sum_by_key(np.append(a * n + b, b * n + a), np.append(weight, weight))
    row, column = np.divmod(key, max(n, 1))
    indptr = np.searchsorted(row, np.arange(n + 1)).astype(np.int64)
    return indptr, column, weight.astype(np.float64)


def distinct(values: Ints) -> int:
    """Return how many different values there are; numpy's `unique` loads masked arrays for that.

    Examples
    --------
    >>> distinct(np.array([3, 1, 3])), distinct(np.array([], dtype=np.int64))
    (2, 0)
    """
    ordered = np.sort(values)
    return int((ordered[1:] != ordered[:-1]).sum()) + min(1, len(ordered))
