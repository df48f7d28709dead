"""What a job is: who sends how much to whom, how many ranks a node has, who else is there."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from placement.commands.common import say
from placement.errors import UsageError
from placement.machine import Machine
from placement.support.reading import decode, read_bytes
from rankmap.pattern import Pattern, parse_pattern
from rankmap.pattern.graph import Graph
from rankmap.placement import Placement
from rankmap.predict.algorithms import algorithm_of
from rankmap.predict.background import USUAL_LOAD, Other, from_file, from_slurm
from rankmap.recording.file import load_recording

#: What is said where no pattern is given.
ASSUMED = "no pattern is given: an all-to-all of {} a node is assumed (--pattern says another)"


#: Patterns that say bytes themselves: ``--bytes`` multiplies them, and 1 is the default.
MULTIPLIED = ("graph:", "matrix:", "measured:", "sends:", "training:")

#: More bytes than any message has.
MOST_BYTES = 1e18

#: Payload of a message where nobody says it.
USUAL_BYTES = 1e6

#: What the bytes of a pattern are, where they are not a message.
WHAT = {
    "sort": "local data a rank",
    **dict.fromkeys(("allreduce", "bcast", "reduce"), "buffer"),
    **dict.fromkeys(("allgather", "gather", "reducescatter", "scatter"), "a rank's block"),
}


@dataclass(frozen=True)
class Job:
    """A job as commands, page, Python and search take it; what is wrong is said where it is made.

    Attributes
    ----------
    pattern : str or Pattern
        Who talks to whom (`rankmap.pattern.parse_pattern`); '' assumes an all-to-all.
    ppn : int, str, sequence of int or None
        Ranks on each node; None: as often as a list names the node, else 1.
    bytes : float or None
        Payload of one message: each ordered pair of an all-to-all, each
        directed neighbour of a stencil, a rank's whole local data for
        ``sort``; multiplies what ``graph:``, ``matrix:`` and ``training:``
        say. None: 1 MB, or 1 for these three.
    algorithm : str
        How an all-to-all or another collective is done
        (`rankmap.predict.algorithms.algorithm_of`); ``library``: as the machine's MPI does it.
    background : str or sequence of Other
        Jobs that run beside this one: a file, or ``slurm`` for what runs now.
    sent : Pattern
        The pattern, each direction for itself.

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
    (16, 'no pattern is given: an all-to-all of 1 rank a node is assumed (--pattern says another)')
    """

    pattern: str | Pattern = ""
    ppn: int | str | Sequence[int] | None = None
    bytes: float | None = None
    algorithm: str = "library"
    background: str | Sequence[Other] = ()
    sent: Pattern = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Read the pattern and check what is said of it."""
        sent = parse_wanted(self.pattern or "alltoall")
        size_of(sent, self.bytes)
        object.__setattr__(self, "algorithm", algorithm_of(sent, self.algorithm))
        object.__setattr__(self, "sent", sent)

    @property
    def assumed(self) -> str:
        """What is assumed where no pattern is given; '' where one is."""
        ranks_text = "1 rank" if self.ppn in (None, 1) else f"{self.ppn} ranks"
        return "" if self.pattern else ASSUMED.format(ranks_text)

    def on(self, ppn: int | str | Sequence[int] | None) -> Job:
        """Return the job with other ranks a node, its pattern not read again."""
        return self._with(ppn=ppn)

    def settled(self, machine: Machine) -> Job:
        """Return the job with what its words name, read once: the pattern, the other jobs."""
        return self._with(pattern=self.sent, background=_other_jobs(machine, self.background))

    @property
    def others(self) -> tuple[Other, ...]:
        """The jobs beside a settled one."""
        assert not isinstance(self.background, str)
        return tuple(self.background)

    def _with(self, **changed: Any) -> Job:
        job = copy(self)
        for name, value in changed.items():
            object.__setattr__(job, name, value)
        return job


def _other_jobs(machine: Machine, background: str | Sequence[Other]) -> tuple[Other, ...]:
    """Return the jobs that run beside one: those that a file or Slurm names, or those given.

    Raises
    ------
    ParseError, LaunchError
        A file that cannot be read; a Slurm that does not answer.
    """
    if not isinstance(background, str):
        return tuple(background)
    load = machine.topology.parameters.get("background_load", USUAL_LOAD)
    if background == "slurm":
        jobs, notes = from_slurm(machine, load)
        for note in notes:
            say(f"nidmap: {note}")
        return tuple(jobs)
    text = decode(read_bytes(background, "--background -"), background)
    return tuple(from_file(machine, text, background, load))


def parse_wanted(wanted: str | Pattern) -> Pattern:
    """Return the pattern that a text names; what was measured keeps its directions and steps.

    Raises
    ------
    UsageError, ParseError
        As `rankmap.pattern.parse_pattern` does.
    """
    if not isinstance(wanted, str):
        return wanted
    kind, _, path = wanted.strip().partition(":")
    with np.errstate(over="ignore"):  # what cannot be counted is refused with its time
        pattern = parse_pattern(wanted)
    if kind not in ("matrix", "measured") or not isinstance(pattern, Graph):
        return pattern
    notes = tuple(note for note in pattern.notes if not note.startswith("not symmetric"))
    pattern = replace(pattern, notes=notes)  # each direction counts for itself here
    if kind == "measured":
        pattern = replace(pattern, recording=load_recording(path))
    return pattern


def fit_pattern(wanted: Pattern, placement: Placement) -> Pattern:
    """Return a pattern for exactly these slots.

    Raises
    ------
    UsageError
        Where the pattern has another number of ranks.
    """
    try:
        return wanted.on(placement)
    except UsageError as error:
        raise UsageError(f"{error.message} ({placement.words()})", error.hint) from None


def size_of(pattern: Pattern, given: float | None) -> tuple[float, str]:
    """Return ``--bytes`` and what is to be said where it is assumed.

    Parameters
    ----------
    pattern : Pattern
    given : float or None
        None takes 1 for a pattern that says bytes itself, else 1 MB.

    Raises
    ------
    UsageError
        Negative, infinite or no number.

    Examples
    --------
    >>> size_of(parse_pattern("alltoall"), None)
    (1000000.0, '1 MB a message assumed')
    """
    if given is not None:
        if not 0 <= given <= MOST_BYTES:
            raise UsageError(f"bytes {given:g}: it must be 0 to {MOST_BYTES:g}")
        return float(given), ""
    if pattern.spec.startswith(MULTIPLIED):
        return 1.0, ""
    if pattern.spec == "barrier":
        return 0.0, ""
    what = WHAT.get(pattern.spec.partition(":")[0], "a message")
    return USUAL_BYTES, f"1 MB {what} assumed"
