"""One launch of the experiment, run by every rank: ``python -m …ranks JOB.json``.

The arms stand side by side as in ``nidmap bench ab`` and take turns in its
blocks; after them each runs a few times more while rank 0 reads the links'
counters, so that an arm's bytes are known link by link.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, cast

from placement.commands.common import write_output
from workloads.ab.arms import Arm, Wish
from workloads.ab.programs import arguments, maker
from workloads.ab.running import Comparison, _header, _side, _visit
from workloads.ab.schedule import schedule
from workloads.options import Common
from workloads.session import Session, quiet_barrier
from workloads.world import guarded, processor, together

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi4py import MPI

    from workloads.ab.running import _Side
    from workloads.trial import Trial

__all__ = ["Counts", "arms_of", "main"]

#: Runs of each arm over which links are counted.
_COUNTED = 4


def main() -> int:
    """Measure what the job's file says; return the exit code."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        job = json.load(stream)
    return guarded(lambda: _measure(job))


class Counts:
    """Bytes of every link, added up over the runs of each arm.

    The first rank of an arm reads them, whichever rank of the world that is.

    Parameters
    ----------
    name : str
        Of the mini-Cray.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.arms: dict[str, dict[str, Any]] = {}
        self._before: dict[str, float] = {}

    def begin(self) -> None:
        """Look at the counters before a turn."""
        self._before = self._read()

    def end(self, arm: str, runs: int) -> None:
        """Add what a turn of so many runs has sent."""
        after = self._read()
        kept = self.arms.setdefault(arm, {"runs": 0, "links": {}})
        kept["runs"] += runs
        for link, count in after.items():
            kept["links"][link] = kept["links"].get(link, 0.0) + count - self._before[link]

    def _read(self) -> dict[str, float]:
        from workloads.minicray.against import counted

        return counted(self.name)


def _measure(job: dict[str, Any]) -> int:
    common = Common(repeat=job["repeat"], warmup=0, seed=job["seed"], output=job["output"])
    wish = Wish(orders=("default",), machine=job["machine"])
    comparison = Comparison(
        job["workload"], tuple(job["options"]), wish, job["blocks"], job["seed"]
    )
    with Session(
        common, "ab", {key: job[key] for key in ("workload", "options", "seed")}
    ) as session:
        with together(session.comm):
            make = maker(job["workload"])
            options = arguments(make, job["options"])
        arms = _agreed(session.comm, job)
        sides = [_side(session.comm, arm) for arm in arms]
        session.describe({**_header(session, comparison, options, arms), "pattern": job["pattern"]})
        for side in sides:
            if side.comm is not None:
                side.trial = make(side.comm, seed=common.seed, **options)
        _blocks(session, sides, comparison)
        counts = Counts(job["minicray"])
        for side in sides:
            _count(session, side, counts, job["phase"])
        every = session.comm.gather(counts.arms, root=0)
        _finish(session, sides)
        if every is not None:
            found = {arm: row for one in every for arm, row in one.items()}
            write_output(json.dumps(found), job["counts"])
    return session.exit_code


def _blocks(session: Session, sides: list[_Side], comparison: Comparison) -> None:
    """Run all blocks; the first one warms up."""
    for block, order in enumerate(schedule(len(sides), comparison.blocks + 1, comparison.launch)):
        if session.over():
            return
        for visit, at in enumerate(order):
            _visit(session, sides[at], {"block": block, "visit": visit})
            quiet_barrier(session.comm)


def _count(session: Session, side: _Side, counts: Counts, phase: str) -> None:
    """Run an arm a few times more, and look at the links before and after."""
    session.comm.Barrier()
    if side.comm is not None and side.trial is not None:
        if phase == "communication":
            _between(side, counts, lambda: _repeated(side), _COUNTED)
        else:
            _exchanges_alone(side, counts)
    quiet_barrier(session.comm)


def _repeated(side: _Side) -> None:
    for _ in range(_COUNTED):
        cast("Trial", side.trial).run()


def _between(side: _Side, counts: Counts, do: Callable[[], None], runs: int = 1) -> None:
    """Do something on all ranks of an arm, and count what the links carry meanwhile."""
    comm = cast("MPI.Intracomm", side.comm)
    reads = comm.Get_rank() == 0
    if reads:
        counts.begin()
    comm.Barrier()
    do()
    comm.Barrier()
    if reads:
        counts.end(side.arm.name, runs)
    comm.Barrier()  # nobody goes on before the counters are read


def _exchanges_alone(side: _Side, counts: Counts) -> None:
    """Run a sort some times, and count the exchange of its items alone.

    The search for splitters before it sends as much as a small exchange, and
    is not what is predicted.
    """
    ranks = cast("Any", side.trial).ranks
    exchange = ranks.alltoallv
    ranks.alltoallv = lambda *given: _between(side, counts, lambda: exchange(*given))
    try:
        _repeated(side)
    finally:
        ranks.alltoallv = exchange


def _finish(session: Session, sides: list[_Side]) -> None:
    for side in sides:
        if side.trial is not None:
            side.trial.verify()
            getattr(side.trial, "close", lambda: None)()
        quiet_barrier(session.comm)


def _agreed(comm: MPI.Intracomm, job: dict[str, Any]) -> list[Arm]:
    """Return the arms, worked out by rank 0. Collective."""
    hosts = comm.gather(processor(comm), root=0)
    arms: list[Arm] = []
    with together(comm):
        if hosts is not None:
            arms = arms_of(hosts, job["arms"])
    return cast("list[Arm]", comm.bcast(arms, root=0))


def arms_of(hosts: list[str], wanted: list[dict[str, Any]]) -> list[Arm]:
    """Return the arms as world ranks.

    Parameters
    ----------
    hosts : list of str
        The node of each rank of the world.
    wanted : list of dict
        ``name``, ``nodes`` in the order of the slots, ``slots`` of the ranks,
        ``control``.

    Examples
    --------
    >>> wanted = [{"name": "one", "nodes": ["b", "a"], "slots": [0, 2, 1, 3], "control": ""}]
    >>> arms_of(["a", "a", "b", "b"], wanted)[0].members
    [2, 0, 3, 1]
    """
    here: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        here.setdefault(host, []).append(rank)
    arms = []
    for arm in wanted:
        seats = [rank for node in arm["nodes"] for rank in here[node]]
        members = [seats[slot] for slot in arm["slots"]]
        arms.append(Arm(arm["name"], "given", ",".join(arm["nodes"]), members, arm["control"]))
    return arms


if __name__ == "__main__":
    sys.exit(main())
