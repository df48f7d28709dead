"""Which algorithm Open MPI takes, by ranks and bytes: the fixed decisions of coll/tuned.

The thresholds, in ``openmpi.txt`` beside this file, are those of Open MPI 5.0.9's
``ompi/mca/coll/tuned/coll_tuned_decision_fixed.c``, for operations that commute. Nothing is
cut into segments there. Its names are ours so:

=====================  ======================================================
binomial (bcast)       binomial-doubling: first to the neighbour, then further
pipeline, chain        chain
linear_sync, two_proc  at-once and pairwise of an all-to-all; linear of a gather
linear_nb              linear
segmented_ring         ring
nonoverlapping         reduce-bcast
bruck (barrier)        dissemination
=====================  ======================================================
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache

__all__ = ["choose"]

#: Bytes of an element that is reduced: a double's. An element of any other buffer is a byte.
ELEMENT = 8


def choose(call: str, size: float, ranks: int) -> str:
    """Return the algorithm of a collective.

    Parameters
    ----------
    call : str
        A family of `rankmap.collectives`, ``alltoall`` or ``alltoallv``.
    size : float
        Bytes as the call counts them: its buffer, or one rank's block.
    ranks : int

    Examples
    --------
    >>> choose("bcast", 1e6, 1024), choose("allgather", 2048, 64), choose("barrier", 0, 300)
    ('scatter-doubling', 'neighbor', 'tree')
    """
    _, limits, names = next(rule for rule in _read_rules()[call] if ranks < rule[0])
    chosen = names[bisect_right(limits, size) - 1]
    power = 1 << (ranks.bit_length() - 1)
    if chosen == "rabenseifner" and size < ELEMENT * power:  # fewer elements than ranks
        return "linear"
    if chosen == "scatter-doubling" and size < ranks:
        return "linear"
    return chosen


@cache
def _read_rules() -> dict[str, list[tuple[float, list[float], list[str]]]]:
    """Return the rules of each collective: below so many ranks, from so many bytes, its name."""
    from pathlib import Path

    found: dict[str, list[tuple[float, list[float], list[str]]]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if not line.startswith("#"):
            call, below, *rest = line.split()
            limits, names = zip(*(pair.split(":") for pair in rest), strict=True)
            rule = float(below), [float(limit) for limit in limits], list(names)
            found.setdefault(call, []).append(rule)
    return found
