"""One launch of an A/B measurement: the arms' communicators, visits in turn, samples.

Every repetition starts behind a barrier and each rank times its own part, so
what a barrier lets ranks start apart (`skew`) is part of every sample. Clocks
of two nodes may differ: each rank's offset from rank 0 is half the round trip
of the fastest of several ping-pongs, known to within the other half.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from array import array
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from placement.commands.common import say
from placement.errors import printable
from workloads.ab import arms as compared
from workloads.ab.arms import Arm, Comparison
from workloads.phases import Trial, reduce_over_ranks
from workloads.progress import Progress
from workloads.session import Session, quiet_barrier
from workloads.world import decide_on_root, processor, together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpi4py import MPI

    from workloads.options import Common

__all__ = ["Side", "measure", "say_notes", "schedule"]

#: Tags of samples on their way to rank 0, and of the ping-pong of clocks.
_SAMPLES, _CLOCKS = 1718, 1717


@dataclass(slots=True)
class Side:
    """An arm as this rank sees it; without communicator and trial where it takes no part."""

    arm: Arm
    comm: MPI.Intracomm | None
    trial: Trial | None = None


def schedule(
    arms: int, blocks: int, seed: int | str, there_and_back: bool = True
) -> list[list[int]]:
    """Return the turns of each block: a random permutation of the arms and its reverse.

    For two arms that is ABBA or BAAB, by the toss of a coin. Every arm is
    visited twice a block and the mean time of its visits is the middle of the
    block, so that a drift that is linear over a block cancels.

    Parameters
    ----------
    arms : int
        How many are compared.
    blocks : int
    seed : int or str
        The same for all ranks.
    there_and_back : bool
        False for the permutation alone: each arm once a block.

    Examples
    --------
    >>> schedule(2, 3, seed=1)
    [[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]
    """
    rng = random.Random(f"blocks {seed}")  # noqa: S311  # an order of turns, no secret
    turns = []
    for _ in range(blocks):
        there = list(range(arms))
        rng.shuffle(there)
        turns.append([*there, *reversed(there)] if there_and_back else there)
    return turns


def measure(
    common: Common,
    asked: Comparison,
    choose_arms: Callable[[Sequence[str]], list[Arm]] | None = None,
    then: Callable[[Session, Sequence[Side]], None] | None = None,
) -> Session:
    """Run one launch and return its session; its journal holds the samples. Collective.

    Parameters
    ----------
    common : Common
    asked : Comparison
    choose_arms : callable or None
        Returns the arms for the node of each rank, in place of those asked for.
    then : callable or None
        Called on all ranks when the blocks are done.
    """
    with Session(common, "ab", asdict(asked)) as session:
        comm = session.comm
        with together(comm):
            make = compared.maker(asked.workload)
            options = compared.arguments(make, asked.options)
        arms, pattern = _agree(comm, asked, make, options, choose_arms)
        sides = [_join(comm, arm) for arm in arms]
        session.describe({
            "workload": asked.workload,
            "workload_options": options,
            "machine": asked.machine or session.journal.header.get("machine", ""),
            "launch": uuid.uuid4().hex[:12],
            "launch_number": asked.launch,
            "blocks": asked.blocks,
            "arms": [arm.document() for arm in arms],
            "rule": f"dropped as warm-up: the first block, and the first {common.warmup} "
                    "repetitions after each change of communicator",
            "skew": skew(comm),
            "pattern": pattern,
            "bytes": compared.message_of(make, pattern, options),
        })  # fmt: skip
        for side in sides:
            if side.comm is not None:
                side.trial = make(side.comm, seed=common.seed, **options)
        _run_blocks(session, sides, asked)
        if then is not None:
            then(session, sides)
        for side in sides:
            if side.trial is not None:
                side.trial.verify()
                getattr(side.trial, "close", lambda: None)()
            quiet_barrier(comm)
    return session


def clock_offset(comm: MPI.Intracomm, rounds: int = 10) -> tuple[float, float]:
    """Return this rank's clock less rank 0's, and how well it is known, in seconds. Collective."""
    theirs = array("d", [0.0])
    if comm.Get_rank() == 0:
        for other in range(1, comm.Get_size()):
            comm.Send(theirs, other, _CLOCKS)  # its turn
            for _ in range(rounds):
                comm.Recv(theirs, other, _CLOCKS)
                comm.Send(array("d", [time.perf_counter()]), other, _CLOCKS)
        return 0.0, 0.0
    comm.Recv(theirs, 0, _CLOCKS)
    trips = []
    for _ in range(rounds):
        sent = time.perf_counter()
        comm.Send(array("d", [sent]), 0, _CLOCKS)
        comm.Recv(theirs, 0, _CLOCKS)
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

    ahead, within = clock_offset(comm)
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


def _agree(
    comm: MPI.Intracomm,
    asked: Comparison,
    make: Any,
    options: dict[str, Any],
    choose_arms: Callable[[Sequence[str]], list[Arm]] | None,
) -> tuple[list[Arm], str]:
    """Return the arms and who talks to whom, worked out by rank 0. Collective."""
    from mpi4py import MPI

    name = processor(comm)
    slurm = os.environ.get("SLURMD_NODENAME", "") if name == MPI.Get_processor_name() else ""
    hosts = comm.gather((name, slurm), root=0) or []

    def decide() -> tuple[list[Arm], str]:
        if choose_arms is not None:
            return choose_arms([host for host, _ in hosts]), asked.pattern
        _, _, members = compared.node_sets(hosts, asked)[0]
        pattern = asked.pattern or compared.pattern_of(make, len(members), options)
        seed = f"{asked.seed} {asked.launch}"
        return compared.arms_of(hosts, replace(asked, pattern=pattern, seed=seed)), pattern

    return decide_on_root(comm, decide)


def _join(comm: MPI.Intracomm, arm: Arm) -> Side:
    """Return the arm's communicator on the ranks that take part. Collective over `comm`."""
    from mpi4py import MPI

    if comm.Get_rank() not in arm.members:
        comm.Split(MPI.UNDEFINED, 0)
        return Side(arm, None)
    return Side(arm, cast("MPI.Intracomm", comm.Split(0, arm.members.index(comm.Get_rank()))))


def _run_blocks(session: Session, sides: Sequence[Side], asked: Comparison) -> None:
    """Run the blocks until they are done or the time is over; the first does not count."""
    turns = schedule(len(sides), asked.blocks + 1, f"{session.common.seed} {asked.launch}")
    last = 0.0
    with Progress(f"ab {asked.workload}", len(turns), shown=session.root) as progress:
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


def _visit(session: Session, side: Side, labels: Mapping[str, Any]) -> None:
    """Run the repetitions of one turn of one arm."""
    common, found = session.common, []
    if side.comm is not None and side.trial is not None:
        for _ in range(common.warmup + common.repeat):
            side.comm.Barrier()
            found.append(reduce_over_ranks(side.comm, side.trial.run()))
    if len(side.arm.members) < session.comm.Get_size():
        quiet_barrier(session.comm, asleep=side.comm is None)
    for k, seconds in enumerate(_send_to_root(session.comm, side, found)):
        cold = k < common.warmup or labels["block"] == 0
        named = {"launch": session.journal.header["launch"], **labels, "arm": side.arm.name}
        session.sample(seconds, **named, repetition=k, warmup=int(cold))


def _send_to_root(comm: MPI.Intracomm, side: Side, found: list[Any]) -> list[Any]:
    """Return the samples on rank 0 of the world, which need not be of the arm; else nothing."""
    rank, members = comm.Get_rank(), side.arm.members
    if 0 not in members:
        if rank == members[0]:
            comm.send(found, 0, _SAMPLES)
        elif rank == 0:
            found = comm.recv(source=members[0], tag=_SAMPLES)
    return found if rank == 0 else []


def say_notes(arms: Sequence[Mapping[str, Any]]) -> None:
    """Say what a user should know of the arms, as where one is the first one over again."""
    for arm in arms:
        for note in arm["notes"]:
            say(f"nidmap: {printable(arm['name'])}: {printable(note, 300)}")
