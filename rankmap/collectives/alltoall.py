"""Which algorithm MPICH and Open MPI take for an all-to-all, by ranks and bytes.

MPICH's thresholds are those of 4.2.3 (``maint/tuning/coll/mpir/generic.json``), Open MPI's the
fixed decisions of 5.0.9 (``ompi/mca/coll/tuned/coll_tuned_decision_fixed.c``).
"""

from __future__ import annotations

import math
from bisect import bisect_right

__all__ = ["AT_ONCE", "BRUCK", "RULES", "choose_algorithm"]

#: Of MPICH: up to so many bytes from rank to rank Bruck's algorithm is taken, up to so many
#: everything is posted at once.
BRUCK, AT_ONCE = 256, 32768

#: Library -> call -> the number of ranks that a job is below, and from how many bytes on which
#: algorithm is taken.
RULES: dict[str, dict[str, list[tuple[float, list[tuple[int, str]]]]]] = {
    "mpich": {
        "alltoall": [
            (8, [(0, "at-once"), (AT_ONCE + 1, "pairwise")]),
            (math.inf, [(0, "bruck"), (BRUCK + 1, "at-once"), (AT_ONCE + 1, "pairwise")]),
        ],
        "alltoallv": [(math.inf, [(0, "at-once")])],
    },
    "openmpi": {
        "alltoall": [
            (3, [(0, "pairwise"), (32768, "at-once"), (262144, "pairwise")]),
            (8, [(0, "at-once"), (524288, "pairwise"), (1048576, "at-once")]),
            (16, [(0, "at-once")]),
            (32, [(0, "at-once"), (4, "bruck"), (512, "at-once")]),
            (64, [(0, "bruck"), (512, "at-once")]),
            (256, [(0, "bruck"), (1024, "at-once"), (262144, "pairwise")]),
            (512, [(0, "bruck"), (1024, "at-once"), (32768, "pairwise")]),
            (1024, [(0, "bruck"), (512, "at-once"), (262144, "pairwise")]),
            (2048, [(0, "bruck"), (512, "at-once")]),
            (4096, [(0, "bruck"), (1024, "at-once")]),
            (math.inf, [(0, "bruck"), (2048, "at-once")]),
        ],
        "alltoallv": [
            (4, [(0, "pairwise")]),
            (64, [(0, "at-once")]),
            (128, [(0, "pairwise")]),
            (256, [(0, "at-once")]),
            (1024, [(0, "pairwise")]),
            (math.inf, [(0, "at-once")]),
        ],
    },
}


def choose_algorithm(library: str, call: str, size: float, ranks: int) -> str:
    """Return the algorithm of an all-to-all.

    Parameters
    ----------
    library : str
        A key of `RULES`.
    call : str
        ``alltoall`` or ``alltoallv``.
    size : float
        Bytes from one rank to one other.
    ranks : int

    Examples
    --------
    >>> [choose_algorithm("mpich", "alltoall", size, 64) for size in (8, 1024, 1e6)]
    ['bruck', 'at-once', 'pairwise']
    >>> [choose_algorithm("openmpi", call, 8, 64) for call in ("alltoall", "alltoallv")]
    ['bruck', 'pairwise']
    """
    steps = next(steps for below, steps in RULES[library][call] if ranks < below)
    return steps[bisect_right([least for least, _ in steps], size) - 1][1]
