"""What the programs of ``nidmap bench`` share: a trial, its phases, words that users give.

Phases are timed with the monotonic clock of each rank; nothing is
synchronised in them. A phase that occurs several times is summed.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from placement.errors import UsageError, printable
from workloads.world import MPI, Comm

__all__ = ["Phases", "Trial", "check_word", "read_extents", "reduce_over_ranks", "seconds_of"]


def check_word(what: str, word: object, known: Iterable[str]) -> None:
    """Refuse a word that is none of the known ones.

    Raises
    ------
    UsageError

    Examples
    --------
    >>> check_word("norm", "none", ("forward", "ortho"))
    Traceback (most recent call last):
    ...
    placement.errors.UsageError: no norm 'none'; there are forward, ortho
    """
    if word not in (names := tuple(known)):
        raise UsageError(f"no {what} {printable(str(word))!r}", f"there are {', '.join(names)}")


def read_extents(text: str, what: str, example: str) -> tuple[int, ...]:
    """Return the numbers in ``128x128x64``.

    Parameters
    ----------
    text : str
    what : str
        What the text is, as the error names it.
    example : str
        The error's hint.

    Raises
    ------
    UsageError

    Examples
    --------
    >>> read_extents("8x1x6", "size", "e.g. 8x8x8")
    (8, 1, 6)
    """
    words = text.lower().split("x")
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise UsageError(f"{printable(text)!r} is not a {what}", example)
    return tuple(int(word) for word in words)


class Phases:
    """Stopwatch of a program's phases.

    Parameters
    ----------
    names : sequence of str
        Phases that are there from the beginning, with no seconds.

    Attributes
    ----------
    seconds : dict of str to float
        By phase, in the order in which they were first entered.

    Examples
    --------
    >>> phases = Phases()
    >>> with phases("LocalSort1"):
    ...     pass
    >>> list(phases.seconds)
    ['LocalSort1']
    """

    __slots__ = ("seconds",)

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.seconds = dict.fromkeys(names, 0.0)

    def __call__(self, name: str) -> _TimedStretch:
        """Return a context manager that adds the time inside it to a phase."""
        return _TimedStretch(self, name)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a phase that was timed elsewhere."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def clear(self) -> None:
        """Set every phase back to none."""
        self.seconds.clear()


class _TimedStretch:
    """One stretch of a phase; a generator in its place would take twice as long."""

    __slots__ = ("began", "name", "phases")

    def __init__(self, phases: Phases, name: str) -> None:
        self.phases, self.name, self.began = phases, name, 0.0

    def __enter__(self) -> None:
        self.began = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.phases.add(self.name, time.perf_counter() - self.began)


def seconds_of(call: Callable[[], object], times: int = 1) -> float:
    """Call something so many times and return the seconds of one."""
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times


def reduce_over_ranks(comm: Comm, seconds: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return min, mean and max over the ranks of the seconds a phase. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    seconds : mapping of str to float
        The same phases in the same order on every rank.

    Returns
    -------
    dict of str to {"min", "mean", "max"}
        The same on every rank.
    """
    mine = array("d", seconds.values())
    low, total, high = (array("d", mine) for _ in range(3))
    for values, op in ((low, MPI.MIN), (total, MPI.SUM), (high, MPI.MAX)):
        comm.Allreduce(mine, values, op=op)
    size = comm.Get_size()
    ends = zip(seconds, low, total, high, strict=True)
    return {name: {"min": a, "mean": b / size, "max": c} for name, a, b, c in ends}


class Trial(Protocol):
    """One program on one communicator, ready to be repeated.

    Made by ``workloads.<name>.trial.trial(comm, **options)``, which sets up
    the data (collective over `comm`, not timed). It talks on the communicator
    it was given and on none that holds other ranks, so that two orders of the
    same ranks can stand side by side.
    """

    def run(self) -> Mapping[str, float]:
        """Run one timed repetition and return this rank's seconds.

        Returns
        -------
        mapping of str to float
            ``total`` and ``communication``, and the program's own phases
            besides; the same names in the same order on every rank.
        """
        ...

    def verify(self) -> None:
        """Raise a NidmapError on all ranks where the last result is wrong; not timed."""
        ...
