"""The options that several commands share: the job, its nodes, and its order.

Those of the job's nodes, and those of its order, reach a command as one value
each: `JobArguments` and `OrderArguments`.
"""

from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from nidmap.placement.commands.common import (
    SENDING,
    advanced,
    among,
    machine_from,
    machine_option,
    say,
    sending_options,
)
from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.support.lazy import lazy
from nidmap.placement.support.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nidmap.placement.machine import Machine
    from nidmap.placement.names import pasted
    from nidmap.placement.nodelist import NodeList
    from nidmap.rankmap import emit, place_ranks, predict
    from nidmap.rankmap.launch import allocation
    from nidmap.rankmap.placement import Placement
    from nidmap.rankmap.predict import Job
else:  # `run` takes these options, and starts without numpy
    pasted, allocation = (
        lazy("nidmap.placement.names.pasted"),
        lazy("nidmap.rankmap.launch.allocation"),
    )
    emit, place_ranks = lazy("nidmap.rankmap.emit"), lazy("nidmap.rankmap.place_ranks")
    predict = lazy("nidmap.rankmap.predict")

_JOB = (
    click.option(
        "--nodes",
        metavar="LIST|FILE|-",
        help="The job's nodes, in slot order; default: this job's.",
    ),
    click.option(
        "--ppn",
        metavar="N[,N...]",
        help="Ranks per node: 24 or 24,24,12; default: this job's, else 1.",
    ),
    click.option(
        "--pattern",
        metavar="P",
        shell_complete=among("pattern"),
        help="alltoall, stencil:24x24x16[,periodic], fft:64x64, bcast …",
    ),
    sending_options,
)


@dataclass(frozen=True, slots=True)
class JobArguments:
    """The options of `job_options`, as they were given."""

    specs: tuple[str, ...] = ()
    nodes: str | None = None
    ppn: str | None = None
    pattern: str | None = None
    bytes: float | None = None
    algorithm: str | None = None
    background: str | None = None

    def machine(self) -> Machine:
        """Load the machine."""
        return machine_from(self.specs)

    def named_pattern(self, needed: bool = True) -> str:
        """Return the pattern; '' where none is given and none needed."""
        if needed and not self.pattern:
            raise UsageError("no pattern given", "use --pattern P")
        return self.pattern or ""

    def sending(self) -> dict[str, Any]:
        """Return what else is said of what the job sends, as a `Job` takes it."""
        options = {name: getattr(self, name) for name in SENDING}
        return {name: value for name, value in options.items() if value is not None}

    def job(self, needed: bool = True) -> Job:
        """Return the job, its ranks as given."""
        return predict.Job(self.named_pattern(needed), self.ppn, **self.sending())

    def placement(self, machine: Machine) -> Placement:
        """Return the job's ranks on a machine, rank r on slot r.

        Where no nodes are named those of the job that this runs in, with the ranks that it was
        asked for with, else all free ones.
        """
        if self.nodes is None:
            nodes, counts = _allocated_nodes(machine)
            return place_ranks.place_ranks(machine, nodes, self.ppn or counts)
        text, source = pasted.read_list(self.nodes, "--nodes")
        return place_ranks.place_ranks(machine, text, self.ppn, source, repeats=source != "--nodes")


def _allocated_nodes(machine: Machine) -> tuple[NodeList | None, list[int] | None]:
    """Return nodes and ranks a node of the job that this runs in; None where nothing says them."""
    try:
        job = allocation.job_here(os.environ)
    except NidmapError as error:
        say(f"nidmap: cannot read this job's nodes: {error.message}")
        return None, None
    if job is None or not set(job.nodes) <= set(machine.names.tolist()):
        return None, None
    say(f"nidmap: on the {counted(len(job.nodes), 'node')} of this job; --nodes picks others")
    counts = job.stated_counts()
    return job.nodes, None if counts is None else counts.tolist()


def job_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add machine, nodes and what the job is; the command takes them as ``job``."""
    return machine_option(gather_options(JobArguments, "job", _JOB, command))


def sent_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what `job_options` adds, but for the nodes: they are to be chosen."""
    return machine_option(gather_options(JobArguments, "job", _JOB[1:], command))


@dataclass(frozen=True, slots=True)
class OrderArguments:
    """The options of `order_options`, as they were given."""

    path: str | None
    form: str | None
    strategy: str | None
    launcher_order: str | None

    def read(self, placement: Placement) -> Placement:
        """Return the order in the file."""
        numbering = self.launcher_order or "sorted"
        return emit.read_order_file(self.path or "-", self.form, placement, numbering)


def order_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an order's file, its format, or a strategy; the command takes them as ``order``."""
    return gather_options(OrderArguments, "order", _ORDER, command)


def strategy_option(text: str) -> Callable[..., Any]:
    """Return the option that names an order, with its help."""
    names = among("order")
    return click.option(
        "--strategy", default="auto", show_default=True, shell_complete=names, help=text
    )


def gather_options(
    kind: type[Any], word: str, options: Sequence[Callable[..., Any]], command: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a command with options that it takes as one value, under a word; the first on top.

    Whatever else a command takes that is called like a field of `kind` goes into it, too.
    """
    names = [field.name for field in fields(kind)]

    @functools.wraps(command)
    def call_command(**given: Any) -> Any:
        gathered = kind(**{name: given.pop(name) for name in names if name in given})
        return command(**{word: gathered}, **given)

    for option in reversed(options):
        call_command = option(call_command)
    return call_command


launcher_order_option = advanced(
    "--launcher-order",
    type=click.Choice(["sorted", "given"]),
    help="The launcher's node order, for MPICH_RANK_ORDER; default: sorted, as in Slurm.",
)

mapping_limit_option = advanced(
    "--mapping-limit",
    metavar="N|none",
    help="Longest rank map in bytes; default: the limit of the MPI library.",
)

_ORDER = (
    click.option("--order", "path", metavar="FILE|-", help="An order file."),
    click.option(
        "--format",
        "form",
        metavar="F",
        help="Its format: slots, mpich, slurm, json …; never guessed from what is in it.",
    ),
    click.option("--strategy", metavar="S", help="This strategy's order instead of a file's."),
    launcher_order_option,
)


#: The part of the patience that choosing an order may take: as long as ``nidmap order`` usually.
_SEARCH = 2 / 3

#: Seconds that a launcher or Slurm may take to answer before a launch: as asked where patience
#: ends, and where it has no limit.
_ANSWER, _ANSWER_UNHURRIED = 2.0, 10.0


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One call of ``nidmap run``, or the part of another command that launches.

    Attributes
    ----------
    command : tuple of str
        The launcher, its options, the program.
    job : JobArguments
        Machine, nodes, ranks and pattern.
    strategy : str
    order_file : str or None
        A file with the order, of the format that its name states; None: one is made.
    bind : bool
        Arrange ranks inside the nodes too, and bind them to their cores.
    launcher_order : str or None
        ``sorted`` or ``given``; None: not stated.
    mpi : str
        ``cray-mpich``, ``other``, or ``auto``: by the machine's network, else by the
        modules loaded.
    order_dir : str or None
        Directory for the order file; None: one of its own, until the job has ended.
    mapping_limit : str or None
        As ``--mapping-limit`` gives it; None: the library's own.
    patience : float
        Seconds of processor time that planning may take; 0: no limit.
    dry_run : bool
        True where nothing will be started, nor asked.
    """

    command: tuple[str, ...]
    job: JobArguments
    strategy: str = "auto"
    order_file: str | None = None
    bind: bool = False
    launcher_order: str | None = None
    mpi: str = "auto"
    order_dir: str | None = None
    mapping_limit: str | None = None
    patience: float = 0.0
    dry_run: bool = False

    @property
    def search_seconds(self) -> float:
        """Processor seconds that choosing an order may take.

        Examples
        --------
        >>> from nidmap.rankmap.commands.model import JobArguments
        >>> requests = [RunRequest(("srun",), JobArguments(), patience=p) for p in (15.0, 0.0)]
        >>> [(request.search_seconds, request.answer_seconds) for request in requests]
        [(10.0, 2.0), (inf, 10.0)]
        """
        return _SEARCH * self.patience or math.inf

    @property
    def answer_seconds(self) -> float:
        """Seconds in which a launcher or Slurm must have answered a question."""
        return min(self.patience, _ANSWER) or _ANSWER_UNHURRIED
