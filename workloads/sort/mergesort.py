"""A distributed merge sort: the baseline that MP-sort was written to replace.

Ranks merge pair by pair up a binary tree: at level k every two neighbouring
groups of 2^(k-1) ranks, each holding a sorted sequence, become one. All items
move at every level, so that the network carries them log2(P) times where
MP-sort does once: the paper's O(N log N) against O(N) (3.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workloads.sort.partition import partition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from workloads.sort.partition import Job, Plan, Seen, Stopwatch
    from workloads.sort.ranks import Ranks

__all__ = ["levels", "merge_all"]


def levels(size: int) -> int:
    """Return the levels of the merge tree over so many ranks.

    Examples
    --------
    >>> [levels(size) for size in (1, 2, 3, 4, 7, 8)]
    [0, 1, 2, 2, 3, 3]
    """
    return (size - 1).bit_length()


def merge_all(
    ranks: Ranks,
    job: Job,
    brought: NDArray[np.int64],
    counts: NDArray[np.int64],
    plan: Plan,
    watch: Stopwatch,
    seen: Seen,
) -> Job:
    """Merge locally sorted items up the tree; see `workloads.sort.algorithms.run`.

    Until the last level every rank keeps as many items as it brought; there
    it gets what it was promised.
    """
    top = levels(ranks.size)
    for level in range(1, top + 1):
        first = (ranks.rank >> level) << level
        share = (counts if level == top else brought)[first : first + (1 << level)]
        group = ranks.part(ranks.rank >> level)
        job = partition(group, job, share, plan, watch, seen, last=level == top)
        group.free()
    return job
