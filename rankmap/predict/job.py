"""What a job is: who sends how much to whom, how many ranks a node has, who else is there."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from placement.commands.common import say
from placement.machine import Machine
from placement.support.reading import decode, read_bytes
from rankmap.pattern import Pattern
from rankmap.predict.algorithms import algorithm_of
from rankmap.predict.background import USUAL_LOAD, Other, from_file, from_slurm
from rankmap.predict.job_pattern import parse_wanted, size_of

__all__ = ["Job"]

#: What is said where no pattern is given.
ASSUMED = "no pattern is given: an all-to-all of {} a node is assumed (--pattern says another)"


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
