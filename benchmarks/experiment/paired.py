# SPDX-License-Identifier: Apache-2.0
"""Alternating arms within one launch: separate communicators, visits in ABBA order, samples.

Every repetition starts behind a barrier and each rank times its own part. One
launch holds a communicator for each arm; they take turns, so that whatever else
changes on the machine strikes all alike.
"""

from __future__ import annotations

import inspect
import math
import time
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from nidmap.placement.errors import UsageError, printable
from nidmap.workloads.ab.arms import Arm, schedule_blocks
from nidmap.workloads.progress import Progress
from nidmap.workloads.session import Session, quiet_barrier
from nidmap.workloads.trials import Trial, reduce_over_ranks
from nidmap.workloads.world import decide_on_root, processor, raise_together

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpi4py import MPI

    from nidmap.workloads.options import Common

#: Tag of samples on their way to rank 0.
_SAMPLES = 1718

#: What a truth value may be written as.
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

#: Programs, and what makes a trial of each.
WORKLOADS = {
    "alltoall": ("nidmap.workloads.alltoall", "AllToAll"),
    "stencil": ("nidmap.workloads.stencil", "make_halo"),
    "sort": ("nidmap.workloads.sort.command", "Sort"),
    "isx": ("nidmap.workloads.isx", "Isx"),
    "fft": ("nidmap.workloads.fft.command", "FFT"),
    "contention": ("nidmap.workloads.contention.trial", "Contention"),
}


@dataclass(slots=True)
class Side:
    """An arm as seen by this rank; without communicator and trial if it takes no part."""

    arm: Arm
    comm: MPI.Intracomm | None
    trial: Trial | None = None


def measure(
    common: Common,
    job: Mapping[str, Any],
    choose_arms: Callable[[Sequence[str]], list[Arm]],
    then: Callable[[Session, Sequence[Side]], None],
) -> Session:
    """Run one launch and return its session, whose journal holds the samples. Collective.

    Parameters
    ----------
    common : Common
    job : mapping
        ``workload``, its ``options`` (``name=value``), ``pattern``, ``machine``,
        ``blocks`` that count, and the ``seed`` of the turns.
    choose_arms : callable
        Returns the arms for the node of each rank.
    then : callable
        Called on all ranks when the blocks are done.
    """
    with Session(common, "experiment", dict(job)) as session:
        comm = session.comm
        with raise_together(comm):
            make = maker(job["workload"])
            options = arguments(make, job["options"])
        hosts = comm.gather(processor(comm), root=0) or []
        arms = decide_on_root(comm, lambda: choose_arms(hosts))
        sides = [_join(comm, arm) for arm in arms]
        session.journal.describe({
            "workload": job["workload"],
            "workload_options": options,
            "machine": job["machine"],
            "blocks": job["blocks"],
            "arms": [arm.document() for arm in arms],
            "rule": "dropped as warm-up: the first block",
            "pattern": job["pattern"],
            "bytes": message_of(make, job["pattern"], options),
        })  # fmt: skip
        for side in sides:
            if side.comm is not None:
                side.trial = make(side.comm, **options)
        _run_blocks(session, sides, job)
        then(session, sides)
        for side in sides:
            if side.trial is not None:
                side.trial.verify()
                getattr(side.trial, "close", lambda: None)()
            quiet_barrier(comm)
    return session


def _join(comm: MPI.Intracomm, arm: Arm) -> Side:
    """Return the arm's communicator on the ranks that take part. Collective over `comm`."""
    from mpi4py import MPI

    if comm.Get_rank() not in arm.members:
        comm.Split(MPI.UNDEFINED, 0)
        return Side(arm, None)
    return Side(arm, cast("MPI.Intracomm", comm.Split(0, arm.members.index(comm.Get_rank()))))


def _run_blocks(session: Session, sides: Sequence[Side], job: Mapping[str, Any]) -> None:
    """Run blocks until all are done or the time is up; the first does not count."""
    turns = schedule_blocks(len(sides), job["blocks"] + 1, job["seed"])
    last = 0.0
    with Progress(job["workload"], len(turns), shown=session.root) as progress:
        for block, order in enumerate(turns):
            began = time.monotonic()
            if session.over(last):
                return
            for visit, at in enumerate([*order, *reversed(order)]):
                if session.over():
                    return
                _visit(session, sides[at], {"block": block, "visit": visit})
            last = time.monotonic() - began
            progress.at(block + 1)


def _visit(session: Session, side: Side, labels: Mapping[str, Any]) -> None:
    """Run the repetitions of one visit to one arm."""
    found = []
    if side.comm is not None and side.trial is not None:
        for _ in range(session.common.repeat):
            side.comm.Barrier()
            found.append(reduce_over_ranks(side.comm, side.trial.run()))
    if len(side.arm.members) < session.comm.Get_size():
        quiet_barrier(session.comm, asleep=side.comm is None)
    for k, seconds in enumerate(_send_to_root(session.comm, side, found)):
        cold = int(labels["block"] == 0)
        session.sample(seconds, **labels, arm=side.arm.name, repetition=k, warmup=cold)


def _send_to_root(comm: MPI.Intracomm, side: Side, found: list[Any]) -> list[Any]:
    """Return the samples on rank 0 of the world, which need not be part of the arm."""
    rank, members = comm.Get_rank(), side.arm.members
    if 0 not in members:
        if rank == members[0]:
            comm.send(found, 0, _SAMPLES)
        elif rank == 0:
            found = comm.recv(source=members[0], tag=_SAMPLES)
    return found if rank == 0 else []


def maker(workload: str) -> Callable[..., Trial]:
    """Return a function that makes a program's trial.

    Raises
    ------
    UsageError
        Where there is no such program, or what it needs is not installed.
    """
    if workload not in WORKLOADS:
        raise UsageError(f"no workload {printable(workload)}", f"one of {', '.join(WORKLOADS)}")
    try:
        module, name = WORKLOADS[workload]
        made: Callable[..., Trial] = getattr(import_module(module), name)
    except ImportError as error:
        raise UsageError(f"workload {workload} cannot be used here: {error}") from None
    return made


def arguments(make: Callable[..., Trial], texts: Sequence[str]) -> dict[str, Any]:
    """Parse the options of a trial from ``name=value`` texts.

    Values are read as the trial's own parameter wants them: numbers (with kB,
    KiB … for whole ones), words, true or false, ``a,b,c`` for tuples.

    Raises
    ------
    UsageError
        An option that the trial does not have, or a value that is none.

    Examples
    --------
    >>> from nidmap.workloads.alltoall import AllToAll
    >>> arguments(AllToAll, ["bytes=4KiB", "inner=3"])
    {'bytes': 4096, 'inner': 3}
    """
    known = {
        name: parameter
        for name, parameter in inspect.signature(make).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in known:
            hint = f"options: {', '.join(known)}"
            raise UsageError(f"-w {printable(text)} is not an option of the workload", hint)
        found[name] = _value(name, value.strip(), known[name])
    return found


def _value(name: str, text: str, parameter: inspect.Parameter) -> Any:
    """Parse a value as the parameter's annotation, or its default, requires."""
    kind, default = str(parameter.annotation).replace(" ", ""), parameter.default
    try:
        if "bool" in kind or isinstance(default, bool):
            return _TRUTH[text.lower()]
        return text if "str" in kind or isinstance(default, str) else _number(text)
    except (KeyError, ValueError):
        raise UsageError(f"-w {name}={printable(text)}: no value of the kind {kind}") from None


def _number(text: str) -> int | float:
    """Parse an integer, possibly with a unit of bytes, or any other number."""
    import click

    from nidmap.placement.commands.common import ByteCount

    try:
        return int(ByteCount(whole=True).convert(text, None, None))
    except click.BadParameter:
        return float(text)


def message_of(make: Callable[..., Trial], pattern: str, options: dict[str, Any]) -> float | None:
    """Return one message's payload in bytes as predictions count it; None if not given.

    An FFT's ranks each divide their local data among those of a row; else it is the trial's
    parameter ``bytes``.
    """
    if pattern.startswith("fft:"):
        from nidmap.workloads.fft.command import parse_extents

        ranks = [int(extent) for extent in pattern.removeprefix("fft:").split("x")]
        item = 8 if options.get("kind") == "r2c" else 16
        local = math.prod(parse_extents(options["shape"])) * item / math.prod(ranks)
        return local / max(ranks)
    parameter = inspect.signature(make).parameters.get("bytes")
    value = options.get("bytes", parameter.default if parameter is not None else None)
    return float(value) if isinstance(value, (int, float)) else None
