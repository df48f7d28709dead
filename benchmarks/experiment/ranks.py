# SPDX-License-Identifier: Apache-2.0
"""One launch of the experiment, run by every rank: ``python -m …ranks JOB.json``.

The arms take turns in one launch (`paired`); after them each runs a few
times more while its first rank reads the links' counters, so that an arm's
bytes are known link by link.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from benchmarks.experiment.paired import measure
from nidmap.placement.errors import LaunchError
from nidmap.placement.support.writing import write_output
from nidmap.workloads.ab.arms import Arm
from nidmap.workloads.minicray.client import link_bytes
from nidmap.workloads.options import Common
from nidmap.workloads.session import quiet_barrier
from nidmap.workloads.world import run_guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpi4py import MPI

    from benchmarks.experiment.paired import Side
    from nidmap.workloads.session import Session

#: Runs of each arm over which links are counted.
_COUNTED = 4


def main() -> int:
    """Measure what the job's file describes; return the exit code."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        job = json.load(stream)
    return run_guarded(lambda: _measure(job))


def _measure(job: dict[str, Any]) -> int:
    common = Common(repeat=job["repeat"], output=job["output"])

    def count(session: Session, sides: Sequence[Side]) -> None:
        carried = {side.arm.name: _count_links(session, side, job) for side in sides}
        every = session.comm.gather(carried, root=0)
        if every is not None:
            found = {arm: row for one in every for arm, row in one.items() if row}
            write_output(json.dumps(found), job["counts"])

    def arms(hosts: Sequence[str]) -> list[Arm]:
        if list(hosts) != job["hosts"]:
            raise LaunchError("the ranks are not where srun was asked to start them")
        return [Arm(**arm) for arm in job["arms"]]

    session = measure(common, job, arms, count)
    return session.exit_code


def _count_links(session: Session, side: Side, job: dict[str, Any]) -> dict[str, Any]:
    """Repeat an arm a few times; return, on its first rank, what the links carry meanwhile."""
    runs, links = 0, Counter[str]()

    def count_links(do: Callable[[], None], times: int) -> None:
        nonlocal runs
        runs += times
        links.update(_bytes_carried_by(cast("MPI.Intracomm", side.comm), job["minicray"], do))

    def repeat() -> None:
        for _ in range(_COUNTED):
            trial.run()

    session.comm.Barrier()
    trial: Any = side.trial  # Any: of a sort, whose ranks exchange
    if trial is not None and job["phase"] == "communication":
        count_links(repeat, _COUNTED)
    elif trial is not None:
        # The exchange of its items alone: the search for splitters before it sends as much
        # as a small exchange, and is not what is predicted.
        exchange = trial.ranks.alltoallv
        trial.ranks.alltoallv = lambda *given: count_links(lambda: exchange(*given), 1)
        try:
            repeat()
        finally:
            trial.ranks.alltoallv = exchange
    quiet_barrier(session.comm)
    return {"runs": runs, "links": links} if links else {}


def _bytes_carried_by(comm: MPI.Intracomm, name: str, do: Callable[[], None]) -> dict[str, float]:
    """Call a function on all ranks of an arm; return the links' bytes on the first, else {}."""
    reads = comm.Get_rank() == 0
    before = link_bytes(name) if reads else {}
    comm.Barrier()
    do()
    comm.Barrier()
    after = link_bytes(name) if reads else {}
    comm.Barrier()  # nobody goes on before the counters are read
    return {link: count - before[link] for link, count in after.items()}


if __name__ == "__main__":
    sys.exit(main())
