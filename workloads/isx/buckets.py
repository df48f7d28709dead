"""LocalBucketing: a rank's keys, put side by side by the bucket that each belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from placement.support.array_types import Array, Ints
    from workloads.isx.problem import Problem

__all__ = ["COMPILED", "bucketed"]

#: From so many keys on loops are compiled: loading the compiler takes half a second a process.
COMPILED = 1 << 16


def bucketed(problem: Problem, keys: Array, out: Array) -> Ints:
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
    >>> bucketed(problem("weak", 2, 2, max_key=8), keys, out).tolist(), out.tolist()
    ([2, 2], [1, 0, 5, 4])
    """
    kind: type[Any] = np.uint32 if problem.dtype == "i4" else np.uint64
    plain, dealt = keys.view(kind), out.view(kind)
    by = kind(problem.width if problem.shift is None else problem.shift)
    if len(keys) < COMPILED:
        return _by_order(problem, plain, by, dealt)
    return _by_loops(problem, plain, by, dealt)


def _by_order(problem: Problem, keys: Any, by: Any, out: Any) -> Ints:
    """Bucket few keys by the stable order of their buckets' numbers."""
    numbers = (keys // by if problem.shift is None else keys >> by).astype(np.int64)
    np.take(keys, np.argsort(numbers, kind="stable"), out=out)
    return np.bincount(numbers, minlength=problem.ranks)


def _by_loops(problem: Problem, keys: Any, by: Any, out: Any) -> Ints:
    """Bucket many keys by counting them and dealing them out, compiled."""
    from workloads.isx import kernels

    by_division = problem.shift is None
    count = kernels.count_by_division if by_division else kernels.count_by_shift
    deal = kernels.deal_by_division if by_division else kernels.deal_by_shift
    counts = np.zeros((4, problem.ranks), np.int64)
    count(keys, by, counts)
    sizes: Ints = counts.sum(axis=0)
    deal(keys, by, np.cumsum(sizes) - sizes, out)
    return sizes
