# SPDX-License-Identifier: Apache-2.0
"""One launch over all nodes, run by every rank: ``python -m …ranks JOB.json``.

Each job of a snapshot runs alone, then all at once: rounds of sleep, in place of computing, and
communication, for a time that is the same for all. Ranks end after the same round as the first one
of their job, which writes its number on a board, a file that all of this computer's see: a
message would queue behind the data.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from benchmarks.experiment.running import idle_seconds
from nidmap.placement.errors import LaunchError
from nidmap.placement.support.writing import write_output
from nidmap.workloads.session import quiet_barrier
from nidmap.workloads.world import processor, run_guarded, world

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi4py import MPI

    from nidmap.placement.support.array_types import Ints
    from nidmap.workloads.world import Comm

#: Seconds between two looks at messages: a rank that waits leaves the cores to the links.
_LOOK = 1e-3

#: Seconds until all ranks know when to start, and which are not counted after it.
_START, _WARM = 0.3, 0.4

#: Rounds that tell a job's time alone, at least.
_FEWEST = 5


class Rounds(NamedTuple):
    """The rounds of a rank that lay completely within the measured time."""

    rounds: int
    period: float  # seconds from one to the next
    slept: float  # of these seconds


def main() -> int:
    """Measure what the job's file describes; return the exit code."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        job = json.load(stream)
    return run_guarded(lambda: _measure(job))


def _measure(job: dict[str, Any]) -> int:
    comm = world(len(job["hosts"]))
    rank = comm.Get_rank()
    hosts = comm.gather(processor(comm), root=0)
    if rank == 0 and hosts != job["hosts"]:
        raise LaunchError("the ranks are not where they were asked to start")
    board = np.memmap(job["board"], dtype=np.int64, mode="r+", shape=tuple(job["shape"]))
    results = []
    for number, arm in enumerate(job["arms"]):
        every = comm.gather(_measure_arm(comm, arm, job["seconds"], board[number]), root=0)
        results.append(every and _by_job(every, arm))
    if rank == 0:
        write_output(json.dumps(results), job["output"])
    return 0


def _by_job(every: Sequence[dict[str, Any]], arm: dict[str, Any]) -> dict[str, Any]:
    """Return what all ranks measured, job by job."""
    jobs = [
        {name: [every[rank][name] for rank in job["members"]] for name in ("alone", "beside")}
        for job in arm["jobs"]
    ]
    return {"jobs": jobs, "idle": every[0]["idle"], "busy": sum(one["busy"] for one in every)}


def _measure_arm(
    comm: Comm, arm: dict[str, Any], seconds: Sequence[float], board: Ints
) -> dict[str, Any]:
    """Return this rank's rounds of its job, alone and next to the others. Collective."""
    rank, jobs = comm.Get_rank(), arm["jobs"]
    mine = next((k for k, job in enumerate(jobs) if rank in job["members"]), None)
    key = 0 if mine is None else jobs[mine]["members"].index(rank)
    part = comm.Split(len(jobs) if mine is None else mine, key)
    program = None if mine is None else Program(cast("Comm", part), jobs[mine])
    seen = dict[str, Any]()
    for k in range(len(jobs)):
        begin = _next_start(comm)
        if program is not None and mine == k:
            seen["alone"] = program.run(begin, begin + _WARM + seconds[0], board[k, :1], _FEWEST)
    begin, idle, spent = _next_start(comm), idle_seconds(), _cpu_seconds()
    if program is not None:
        seen["beside"] = program.run(begin, begin + _WARM + seconds[1], board[mine, 1:])
    else:
        time.sleep(max(begin + _WARM + seconds[1] - time.monotonic(), 0))
    lasted = time.monotonic() - begin + _START
    seen["idle"], seen["busy"] = (
        (after - before) / lasted
        for after, before in ((idle_seconds(), idle), (_cpu_seconds(), spent))
    )
    quiet_barrier(comm)
    part.Free()
    return seen


def _cpu_seconds() -> float:
    """Return the processor seconds that this rank has used, including for sending."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _next_start(comm: Comm) -> float:
    """Return a future time, equal on all ranks, which share one clock. Collective."""
    quiet_barrier(comm)
    begin: float = comm.bcast(time.monotonic() + _START, root=0)
    return begin


class Program:
    """Rounds of sleep and messages, phase by phase, each phase all at once. Collective."""

    def __init__(self, comm: Comm, job: dict[str, Any]) -> None:
        self.comm, self.pause = comm, float(job["pause"])
        self.phases = [self._requests(phase) for phase in job["phases"]]

    def _requests(self, phase: Sequence[tuple[int, int, int]]) -> list[MPI.Prequest]:
        """Return what this rank receives and sends: (source, target, bytes) of each message.

        The next rank's first, as MPI libraries do: else all would send to the first one first.
        """
        from mpi4py import MPI

        rank, comm = self.comm.Get_rank(), self.comm
        phase = sorted(phase, key=lambda one: (one[1] - one[0]) % comm.Get_size())
        into = [(a, np.empty(n, np.uint8)) for a, b, n in phase if b == rank]
        out = [(b, np.ones(n, np.uint8)) for a, b, n in phase if a == rank]
        return [
            *(comm.Recv_init([block, MPI.BYTE], source=a) for a, block in into),
            *(comm.Send_init([block, MPI.BYTE], dest=b) for b, block in out),
        ]

    def run(self, begin: float, until: float, stop: Ints, fewest: int = 0) -> Rounds:
        """Run rounds from `begin` until after `until`; `stop`: the index on the board.

        `fewest`: rounds until which it goes on by itself; 0: it stops counting with all others.
        """
        time.sleep(max(begin - time.monotonic(), 0))
        first, count = self.comm.Get_rank() == 0, 0
        times = []
        while True:
            woke = now = time.monotonic()
            if first and now > until and count >= fewest and not stop[0]:
                stop[0] = count + self.comm.Get_size()  # nobody is further than that
            if stop[0] and count >= stop[0]:
                break
            if self.pause:
                time.sleep(self.pause)
                woke = time.monotonic()
            self._exchange()
            times.append((now, woke, time.monotonic()))
            count += 1
        until = math.inf if fewest else until
        inside = np.array([t for t in times if t[0] >= begin + _WARM and t[2] <= until])
        if len(inside) < 2:
            raise LaunchError(f"{len(inside)} rounds in the time that counts", "--seconds")
        slept = float((inside[:, 1] - inside[:, 0]).mean())
        return Rounds(len(inside), float(inside[-1, 2] - inside[0, 0]) / len(inside), slept)

    def _exchange(self) -> None:
        from mpi4py import MPI

        for requests in self.phases:
            MPI.Prequest.Startall(requests)
            while not MPI.Request.Testall(requests):
                time.sleep(_LOOK)


if __name__ == "__main__":
    sys.exit(main())
