# SPDX-License-Identifier: Apache-2.0
"""What a job is: its traffic, how it is sent, ranks per node, and other jobs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.job import JobWords
from nidmap.placement.machine import Machine
from nidmap.placement.placement import Placement
from nidmap.placement.support.reading import decode, read_bytes
from nidmap.rankmap.collectives import usual_algorithm
from nidmap.rankmap.collectives.algorithms import algorithms_of
from nidmap.rankmap.collectives.libraries import LIBRARIES, library_of
from nidmap.rankmap.pattern import Pattern, parse_pattern
from nidmap.rankmap.pattern.collective import Collective
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.pattern.structured import Lines
from nidmap.rankmap.predict.background import USUAL_LOAD, Other, from_file, from_slurm

#: Remark if no pattern is given.
ASSUMED = "no pattern given: assuming an all-to-all of {} per node (--pattern sets another)"


#: Patterns that say bytes themselves: ``--bytes`` multiplies them, and 1 is the default.
MULTIPLIED = ("graph:", "matrix:", "measured:", "sends:", "training:")

#: More bytes than any message has.
MOST_BYTES = 1e18

#: Payload of a message if not stated.
USUAL_BYTES = 1e6

#: Ways to do an all-to-all; collectives have their own (`rankmap/collectives`), and every other
#: pattern sends at once. ``library`` is what the machine's MPI does at that size; where no site
#: says which MPI it has, ``at-once`` for an all-to-all. A collective takes the usual one.
ALGORITHMS = ("at-once", "scattered", "pairwise", "ring", "bruck", "library")

#: Meaning of a pattern's bytes if it is not a message.
WHAT = {
    "sort": "of local data per rank",
    "fft": "per message, in rows and columns alike,",
    **dict.fromkeys(("allreduce", "bcast", "reduce"), "per buffer"),
    **dict.fromkeys(("allgather", "gather", "reducescatter", "scatter"), "per block"),
}


@dataclass(frozen=True)
class Job(JobWords):
    """A job as commands, page, Python and search pass it; faults are reported on creation.

    Attributes
    ----------
    pattern : str or Pattern
        Who talks to whom (`nidmap.rankmap.pattern.parse_pattern`); '' assumes an all-to-all.
    ppn : int, str, sequence of int or None
        Ranks on each node; None: as often as a list names the node, else 1.
    bytes : float or None
        Payload of one message: each ordered pair of an all-to-all, each
        directed neighbour of a stencil, a rank's whole local data for
        ``sort``; multiplies what ``graph:``, ``matrix:`` and ``training:``
        say. None: 1 MB, or 1 for these three.
    algorithm : str
        How an all-to-all or another collective is done
        (`algorithm_of`); ``library``: as the machine's MPI does it.
    background : str or sequence of Other
        Jobs that run next to this one: a file, or ``slurm`` for what runs now.
    sent : Pattern
        The pattern, each direction for itself.
    notes : tuple of str
        What is to be said about the other jobs, a sentence each.

    Raises
    ------
    UsageError
        An unknown pattern or algorithm, bytes that make no sense.
    ParseError
        A pattern's file that cannot be read.

    Examples
    --------
    >>> job = Job("stencil:4x4", ppn=2, bytes=64e3)
    >>> job.sent.ranks, Job().assumed
    (16, 'no pattern given: assuming an all-to-all of 1 rank per node (--pattern sets another)')
    """

    pattern: str | Pattern = ""
    ppn: int | str | Sequence[int] | None = None
    bytes: float | None = None
    algorithm: str = "library"
    background: str | Sequence[Other] = ()
    sent: Pattern = field(init=False, repr=False)
    notes: tuple[str, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        """Parse the pattern and check what is stated about it."""
        sent = parse_wanted(self.pattern or "alltoall")
        size_of(sent, self.bytes)
        object.__setattr__(self, "algorithm", algorithm_of(sent, self.algorithm))
        object.__setattr__(self, "sent", sent)

    @property
    def assumed(self) -> str:
        """What is assumed if no pattern is given; '' if one is."""
        ranks_text = "1 rank" if self.ppn in (None, 1) else f"{self.ppn} ranks"
        return "" if self.pattern else ASSUMED.format(ranks_text)

    def on(self, ppn: int | str | Sequence[int] | None) -> Job:
        """Return the job with other ranks per node, without reading its pattern again."""
        return self._with(ppn=ppn)

    def settled(self, machine: Machine) -> Job:
        """Return the job with everything that its words name read: the pattern, other jobs."""
        others, notes = _other_jobs(machine, self.background)
        return self._with(pattern=self.sent, background=others, notes=self.notes + notes)

    @property
    def others(self) -> tuple[Other, ...]:
        """The other jobs of a settled job."""
        assert not isinstance(self.background, str)
        return tuple(self.background)

    def _with(self, **changed: Any) -> Job:
        job = copy(self)
        for name, value in changed.items():
            object.__setattr__(job, name, value)
        return job


def _other_jobs(
    machine: Machine, background: str | Sequence[Other]
) -> tuple[tuple[Other, ...], tuple[str, ...]]:
    """Return the other jobs that a file or Slurm names, or those given, and notes."""
    if not isinstance(background, str):
        return tuple(background), ()
    load = machine.topology.parameters.get("background_load", USUAL_LOAD)
    if background == "slurm":
        jobs, notes = from_slurm(machine, load)
        return tuple(jobs), tuple(notes)
    text = decode(read_bytes(background, "--background -"), background)
    return tuple(from_file(machine, text, background, load)), ()


def parse_wanted(wanted: str | Pattern) -> Pattern:
    """Return the pattern a text names; measured ones keep their directions and steps."""
    if not isinstance(wanted, str):
        return wanted
    with np.errstate(over="ignore"):  # overflows are refused along with the time
        pattern = parse_pattern(wanted)
    if not isinstance(pattern, Graph) or pattern.spec.startswith("graph:"):
        return pattern
    notes = tuple(note for note in pattern.notes if not note.startswith("not symmetric"))
    return replace(pattern, notes=notes)  # each direction counts for itself here


def fit_pattern(wanted: Pattern, placement: Placement) -> Pattern:
    """Return a pattern for exactly these slots."""
    try:
        return wanted.on(placement)
    except UsageError as error:
        raise UsageError(f"{error.message} ({placement.words()})", error.hint) from None


def size_of(pattern: Pattern, given: float | None) -> tuple[float, str]:
    """Return ``--bytes``, and a remark if it is assumed.

    `given`: None takes 1 for a pattern that says bytes itself, else 1 MB.
    """
    if given is not None:
        if not 0 <= given <= MOST_BYTES:
            raise UsageError(f"bytes {given:g}: it must be 0 to {MOST_BYTES:g}")
        return float(given), ""
    if pattern.spec.startswith(MULTIPLIED):
        return 1.0, ""
    if pattern.spec == "barrier":
        return 0.0, ""
    what = WHAT.get(pattern.spec.partition(":")[0], "per message")
    return USUAL_BYTES, f"1 MB {what} assumed"


def asked_library(algorithm: str, mpi: str) -> str:
    """Return the library whose rules apply; '' if an algorithm is named or no MPI is known.

    `algorithm`: ``library``, a key of `nidmap.rankmap.collectives.LIBRARIES`, or an algorithm's
    name. `mpi`: the machine's MPI, as its site calls it; '' where unknown.
    """
    if algorithm in LIBRARIES:
        return algorithm
    return library_of(mpi) if algorithm == "library" and mpi else ""


def algorithm_of(pattern: Pattern, wanted: str = "") -> str:
    """Return the algorithm that sends a pattern's messages.

    `wanted`: one of `ALGORITHMS` or of a collective's own, or of an all-to-all a library's key;
    '' for ``at-once``, and of a collective for ``library``.
    """
    what, names = "an all-to-all", (*ALGORITHMS, *LIBRARIES)
    if isinstance(pattern, Collective):
        what, names = pattern.name, (*algorithms_of(pattern.name), "library")
        wanted = wanted or "library"
    elif not isinstance(pattern, Lines):
        what, names = pattern.spec, (ALGORITHMS[0], "library")
        wanted = "" if wanted == "library" else wanted
    if wanted and wanted not in names:
        shown = printable(wanted, 40)
        raise UsageError(
            f"unknown algorithm '{shown}' for {what}", f"choose from {', '.join(names)}"
        )
    return wanted or ALGORITHMS[0]


def algorithms(pattern: Pattern, algorithm: str, size: float, mpi: str) -> list[str]:
    """Return the all-to-all algorithm along each dimension of a process grid, in order.

    A collective has one dimension, its ranks.

    `pattern`: fitted to the ranks. `algorithm`: as `algorithm_of` returns it. `mpi`: the
    machine's MPI, as its site calls it; '' where unknown.
    """
    if isinstance(pattern, Collective):
        if algorithm in algorithms_of(pattern.name):
            return [algorithm]
        library, ranks = asked_library(algorithm, mpi), pattern.ranks or 0
        choose = LIBRARIES[library].choose if library else usual_algorithm
        return [choose(pattern.name, size, ranks)]
    dims = pattern.dims or ()
    library = asked_library(algorithm, mpi)
    if not library:
        return [ALGORITHMS[0] if algorithm == "library" else algorithm] * len(dims)
    part = size * getattr(pattern, "weight", 1.0)
    call = "alltoallv" if pattern.spec == "sort" else "alltoall"
    return [LIBRARIES[library].choose(call, part, ranks) for ranks in dims]
