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
    blocks = ((block.source, block.target, block.bytes) for block in pattern.edges())
    a, b, weight = zip((none, none, np.empty(0)), *blocks, strict=True)
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
    key, weight = (np.minimum(a, b) * n + np.maximum(a, b))[kept], weight[kept]
    if not (key[1:] > key[:-1]).all():
        key, weight = sum_by_key(key, weight)
    low, high = np.divmod(key, max(n, 1))
    below, above = np.bincount(high, minlength=n), np.bincount(low, minlength=n)
    indptr = np.append(0, np.cumsum(below + above))
    # Each row holds the ends below it, then those above: both ascend already where edges are
    # taken in the order of their higher end, and of their lower.
    edge, by_high = np.arange(len(key)), np.argsort(high, kind="stable")
    indices, weights = np.empty(2 * len(key), dtype=np.int64), np.empty(2 * len(key))
    for place, end, order in (
        (edge + (indptr[1:] - np.cumsum(above))[low], high, edge),
        (edge + (indptr[:-1] - np.cumsum(below) + below)[high[by_high]], low, by_high),
    ):
        indices[place], weights[place] = end[order], weight[order]
    return indptr, indices, weights


def distinct(values: Ints) -> int:
    """Return how many different values there are; numpy's `unique` loads masked arrays for that.

    Examples
    --------
    >>> distinct(np.array([3, 1, 3])), distinct(np.array([], dtype=np.int64))
    (2, 0)
    """
    ordered = np.sort(values)
    return int((ordered[1:] != ordered[:-1]).sum()) + min(1, len(ordered))
