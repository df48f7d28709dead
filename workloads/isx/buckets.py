"""LocalBucketing: a rank's keys, put side by side by the bucket that each belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from placement.support.array_types import Array, Ints
    from workloads.isx.problem import Problem

__all__ = ["COMPILED", "fill_buckets"]

#: From so many keys on loops are compiled: loading the compiler takes half a second a process.
COMPILED = 1 << 16


def fill_buckets(problem: Problem, keys: Array, out: Array) -> Ints:
    """Write the keys to `out`, bucket after bucket, and return the keys of each (P,).

    Keys of a bucket keep their order.

    Parameters
    ----------
    problem : Problem
    keys, out : (n,) of the problem's dtype

    Examples
    --------
    >>> from workloads.isx.problem import problem
    >>> keys, out = np.array([5, 1, 4, 0], "i4"), np.empty(4, "i4")
    >>> fill_buckets(problem("weak", 2, 2, max_key=8), keys, out).tolist(), out.tolist()
    ([2, 2], [1, 0, 5, 4])
    """
    kind: type[Any] = np.uint32 if problem.dtype == "i4" else np.uint64
    plain, dealt = keys.view(kind), out.view(kind)
    shifted = problem.shift is not None
    by = kind(problem.shift if shifted else problem.width)
    if len(keys) < COMPILED:
        numbers = (plain >> by if shifted else plain // by).astype(np.int64)
        np.take(plain, np.argsort(numbers, kind="stable"), out=dealt)
        return np.bincount(numbers, minlength=problem.ranks)
    from workloads.isx.kernels import count_keys, deal_keys

    counts = np.zeros((4, problem.ranks), np.int64)
    count_keys(plain, by, shifted, counts)
    sizes: Ints = counts.sum(axis=0)
    deal_keys(plain, by, shifted, np.cumsum(sizes) - sizes, dealt)
    return sizes
