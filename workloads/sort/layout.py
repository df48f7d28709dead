"""The exact layout: how many items each rank sends to each rank.

Splitters alone do not say where items with equal keys go. The layout solver
takes them from the lower ranks first, which is the second of the paper's two
conditions of stability. Source: Feng, Straka, Di Matteo, Croft, "MP-sort:
Sorting at Scale on Blue Waters" (2015), 2.2.3, Algorithms 2 and 3.

One correction to the paper is built in. Its Definition 1 makes the cumulative
distribution exclusive, N^c[p] = sum of n_q over q < p. Algorithm 3 compares
sum_p L[i, p] with N^c[i], and L[i, p] is the *end* of what rank p sends to
rank i (Definition 4: it sends L[i-1, p] up to L[i, p]), so that there N^c[i]
must count rank i's own items too: it is the inclusive sum here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workloads.sort.ranks import Ranks

    Ints = NDArray[np.int64]

__all__ = ["counts_to_send", "row", "solve"]


def row(lower: Ints, upper: Ints, end: int) -> Ints:
    """Solve one row of the layout: Algorithm 3, its loop over p as a cumulative sum.

    Parameters
    ----------
    lower, upper : int64 (P,)
        C1[i, :] and C2[i, :].
    end : int
        N^c[i], inclusive: items of ranks 0 to i of the result.

    Returns
    -------
    int64 (P,)
        L[i, :].

    Examples
    --------
    >>> row(np.array([0, 0, 0]), np.array([2, 2, 2]), 3)
    array([2, 1, 0])
    """
    room = upper - lower
    wanted = end - int(lower.sum())
    solved: Ints = lower + np.clip(wanted - (np.cumsum(room) - room), 0, room)
    return solved


def solve(ranks: Ranks, lower: Ints, upper: Ints, ends: Ints) -> Ints:
    """Return this rank's column of the layout, the rows being solved in parallel.

    Collective: one Alltoall hands rank i the i-th row of C1 and C2, one hands
    the solved rows back.

    Parameters
    ----------
    ranks : Ranks
    lower, upper : int64 (P,)
        C1[:, p] and C2[:, p] of this rank p.
    ends : int64 (P,)
        N^c, inclusive.

    Returns
    -------
    int64 (P,)
        L[:, p].
    """
    both = ranks.swap(np.ascontiguousarray(np.stack([lower, upper], axis=1)))
    mine = row(both[:, 0], both[:, 1], int(ends[ranks.rank]))
    return ranks.swap(mine)


def counts_to_send(ends: Ints) -> Ints:
    """Return how many items this rank sends to each, from its column of the layout.

    Examples
    --------
    >>> counts_to_send(np.array([2, 2, 5]))
    array([2, 0, 3])
    """
    return np.diff(ends, prepend=0)
