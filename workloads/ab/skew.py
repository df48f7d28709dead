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
    theirs = array("d", [0.0])
    if comm.Get_rank() == 0:
        for other in range(1, comm.Get_size()):
            comm.Send(theirs, other, _TAG)  # its turn
            for _ in range(rounds):
                comm.Recv(theirs, other, _TAG)
                comm.Send(array("d", [time.perf_counter()]), other, _TAG)
        return 0.0, 0.0
    comm.Recv(theirs, 0, _TAG)
    trips = []
    for _ in range(rounds):
        sent = time.perf_counter()
        comm.Send(array("d", [sent]), 0, _TAG)
        comm.Recv(theirs, 0, _TAG)
        back = time.perf_counter()
        trips.append((back - sent, (sent + back) / 2 - theirs[0]))
    fastest, ahead = min(trips)
    return ahead, fastest / 2


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
    # Largest over the ranks: what is negated here comes back as the smallest.
    mine = array("d", [*left, *(-x for x in left), ahead, -ahead, within])
    most = array("d", mine)
    comm.Allreduce(mine, most, op=MPI.MAX)
    apart = [last + less for last, less in zip(most, most[barriers:-3], strict=False)]
    return {
        "median": median(apart),
        "worst": max(apart),
        "clocks": most[-3] + most[-2],
        "known": most[-1],
    }
