"""One launch of an A/B measurement: both communicators, visits in turn, samples."""

from __future__ import annotations

import time
import uuid
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from placement.commands.common import say
from placement.errors import UsageError, printable
from workloads.ab.arms import Arm, Wish, arms_of
from workloads.ab.programs import arguments, maker, message_of, pattern_of
from workloads.ab.schedule import schedule
from workloads.ab.skew import skew
from workloads.phases import reduced
from workloads.progress import Progress
from workloads.session import Session, quiet_barrier
from workloads.world import together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mpi4py import MPI

    from workloads.options import Common
    from workloads.trial import Trial

__all__ = ["Comparison", "measure"]

_TAG = 1718


@dataclass(frozen=True, slots=True)
class Comparison:
    """What to measure.

    Attributes
    ----------
    workload : str
    options : tuple of str
        ``name=value`` for its trial.
    wish : Wish
        Which arms.
    blocks : int
        Blocks that count; one more before them is dropped as warm-up.
    launch : int
        Which of several launches this is; part of every seed.
    """

    workload: str
    options: tuple[str, ...]
    wish: Wish
    blocks: int = 12
    launch: int = 0


@dataclass(slots=True)
class _Side:
    """An arm as this rank sees it."""

    arm: Arm
    comm: MPI.Intracomm | None
    trial: Trial | None = None


def measure(common: Common, comparison: Comparison) -> Session:
    """Run one launch and return its session; its journal holds the samples. Collective."""
    given = {
        "workload": comparison.workload,
        "with": comparison.options,
        **asdict(comparison.wish),
        "blocks": comparison.blocks,
        "launch": comparison.launch,
    }
    with Session(common, "ab", given) as session:
        with together(session.comm):
            make = maker(comparison.workload)
            options = arguments(make, comparison.options)
        arms, pattern = _agreed(session.comm, comparison, make, options)
        said = {"pattern": pattern, "bytes": message_of(make, pattern, options)}
        sides = [_side(session.comm, arm) for arm in arms]
        session.describe({**_header(session, comparison, options, arms), **said})
        for side in sides:
            if side.comm is not None:
                side.trial = make(side.comm, seed=common.seed, **options)
        _blocks(session, sides, comparison)
        for side in sides:
            if side.trial is not None:
                side.trial.verify()
                getattr(side.trial, "close", _nothing)()
            quiet_barrier(session.comm)
    return session


def _agreed(
    comm: MPI.Intracomm, comparison: Comparison, make: Any, options: dict[str, Any]
) -> tuple[list[Arm], str]:
    """Return the arms and who talks to whom, worked out by rank 0. Collective."""
    import os

    from mpi4py import MPI

    from workloads.world import processor

    slurm = "" if processor(comm) != MPI.Get_processor_name() else os.environ.get("SLURMD_NODENAME")
    hosts = comm.gather((processor(comm), slurm or ""), root=0)
    arms: list[Arm] = []
    said = ""
    with together(comm):
        if hosts is not None:
            wish = comparison.wish
            said = wish.pattern or _pattern(hosts, wish, make, options)
            seed = f"{wish.seed} {comparison.launch}"
            arms = arms_of(hosts, replace(wish, pattern=said, seed=seed))
    return cast("tuple[list[Arm], str]", comm.bcast((arms, said), root=0))


def _pattern(
    hosts: Sequence[tuple[str, str]], wish: Wish, make: Any, options: dict[str, Any]
) -> str:
    """Return the workload's own pattern for as many ranks as an arm has."""
    first = replace(wish, orders=("default",), nodes=wish.nodes[:1], controls=True)
    return pattern_of(make, len(arms_of(hosts, first)[0].members), options)


def _side(comm: MPI.Intracomm, arm: Arm) -> _Side:
    """Return the arm's communicator on the ranks that take part. Collective over `comm`."""
    from mpi4py import MPI

    rank = comm.Get_rank()
    mine = {member: k for k, member in enumerate(arm.members)}.get(rank)
    made = comm.Split(MPI.UNDEFINED if mine is None else 0, mine or 0)
    return _Side(arm, None if mine is None else cast("MPI.Intracomm", made))


def _header(
    session: Session, comparison: Comparison, options: dict[str, Any], arms: list[Arm]
) -> dict[str, Any]:
    """Return what the samples' header says besides. Collective."""
    return {
        "workload": comparison.workload,
        "workload_options": options,
        "machine": comparison.wish.machine or session.journal.header.get("machine", ""),
        "launch": uuid.uuid4().hex[:12],
        "launch_number": comparison.launch,
        "blocks": comparison.blocks,
        "arms": [arm.document() for arm in arms],
        "rule": (
            f"dropped as warm-up: the first block, and the first {session.common.warmup} "
            "repetitions after each change of communicator"
        ),
        "skew": skew(session.comm),
    }


def _blocks(session: Session, sides: Sequence[_Side], comparison: Comparison) -> None:
    """Run the blocks until they are done or the time is over; the first does not count."""
    seed = f"{session.common.seed} {comparison.launch}"
    turns = schedule(len(sides), comparison.blocks + 1, seed)
    last = 0.0
    with Progress(f"ab {comparison.workload}", len(turns), shown=session.root) as progress:
        for block, order in enumerate(turns):
            began = time.monotonic()
            if session.over(last):
                return
            for visit, at in enumerate(order):
                if session.over():
                    return
                _visit(session, sides[at], {"block": block, "visit": visit})
            last = time.monotonic() - began
            progress.at(block + 1)


def _visit(session: Session, side: _Side, labels: Mapping[str, Any]) -> None:
    """Run the repetitions of one turn of one arm."""
    common = session.common
    found = []
    if side.comm is not None and side.trial is not None:
        for _ in range(common.warmup + common.repeat):
            side.comm.Barrier()
            found.append(reduced(side.comm, side.trial.run()))
    if len(side.arm.members) < session.comm.Get_size():
        quiet_barrier(session.comm, asleep=side.comm is None)
    for k, seconds in enumerate(_to_root(session.comm, side, found)):
        cold = k < common.warmup or labels["block"] == 0
        launch = session.journal.header["launch"]
        named = {"launch": launch, **labels, "arm": side.arm.name, "repetition": k}
        session.sample(seconds, **named, warmup=int(cold))


def _to_root(comm: MPI.Intracomm, side: _Side, found: list[Any]) -> list[Any]:
    """Return the samples on rank 0 of the world, which need not be of the arm; else nothing."""
    rank, members = comm.Get_rank(), side.arm.members
    if 0 not in members:
        if rank == members[0]:
            comm.send(found, 0, _TAG)
        elif rank == 0:
            found = comm.recv(source=members[0], tag=_TAG)
    return found if rank == 0 else []


def _nothing() -> None:
    """Close a trial that holds nothing."""


def warn_of_sameness(arms: Sequence[Mapping[str, Any]]) -> None:
    """Say where an arm is the first one over again."""
    for arm in arms:
        for note in arm["notes"]:
            say(f"nidmap: {printable(arm['name'])}: {printable(note, 300)}")


def refuse_inside(launches: int) -> None:
    """Refuse several launches inside one."""
    if launches > 1:
        raise UsageError(
            "--launches starts launches of its own, this is inside one",
            "repeat the launch and pool the files: nidmap bench ab --pool FILE --pool FILE",
        )
