"""How far apart the ranks leave a barrier, by clocks that are first compared.

Every repetition starts behind a barrier and each rank times its own part, so
what a barrier lets ranks start apart is part of every sample. Clocks of two
nodes may differ: each rank's offset from rank 0 is half the round trip of the
fastest of several ping-pongs, known to within the other half.
"""

from __future__ import annotations

import time
from array import array
from typing import TYPE_CHECKING

from workloads.session import median

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["offset", "skew"]

_TAG = 1717


def offset(comm: MPI.Intracomm, rounds: int = 10) -> tuple[float, float]:
    """Return this rank's clock less rank 0's, and how well it is known, in seconds. Collective."""
    rank = comm.Get_rank()
    if rank:
        return _ask(comm, rounds)
    for other in range(1, comm.Get_size()):
        _answer(comm, other, rounds)
    return 0.0, 0.0


def _ask(comm: MPI.Intracomm, rounds: int) -> tuple[float, float]:
    theirs, best, found = array("d", [0.0]), float("inf"), 0.0
    comm.Recv(theirs, 0, _TAG)  # our turn
    for _ in range(rounds):
        sent = time.perf_counter()
        comm.Send(array("d", [sent]), 0, _TAG)
        comm.Recv(theirs, 0, _TAG)
        back = time.perf_counter()
        if back - sent < best:
            best, found = back - sent, (sent + back) / 2 - theirs[0]
    return found, best / 2


def _answer(comm: MPI.Intracomm, other: int, rounds: int) -> None:
    got = array("d", [0.0])
    comm.Send(got, other, _TAG)
    for _ in range(rounds):
        comm.Recv(got, other, _TAG)
        comm.Send(array("d", [time.perf_counter()]), other, _TAG)


def skew(comm: MPI.Intracomm, barriers: int = 20) -> dict[str, float]:
    """Return how far apart ranks leave a barrier. Collective; the same on every rank.

    Returns
    -------
    dict
        ``median`` and ``worst`` over the barriers of the last rank's exit less
        the first's, ``clocks`` the largest difference of two ranks' clocks,
        and ``known`` to within what; all in seconds.
    """
    from mpi4py import MPI

    ahead, within = offset(comm)
    left = array("d")
    for _ in range(barriers):
        comm.Barrier()
        left.append(time.perf_counter() - ahead)
    first, last = array("d", left), array("d", left)
    comm.Allreduce(left, first, op=MPI.MIN)
    comm.Allreduce(left, last, op=MPI.MAX)
    ends = array("d", [ahead, -ahead, within])
    most = array("d", ends)
    comm.Allreduce(ends, most, op=MPI.MAX)
    apart = [b - a for a, b in zip(first, last, strict=True)]
    return {
        "median": median(apart),
        "worst": max(apart),
        "clocks": most[0] + most[1],
        "known": most[2],
    }
