"""Phases: what of a pattern is sent at once, and what only after something else.

A pattern and an order become a few phases, each a demand on the network from
node to node and the messages it is made of. Structured patterns are never
expanded into pairs of ranks: an all-to-all is so many ranks on each node, a
stencil the grid of nodes against itself, shifted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError, printable
from rankmap.predict import axes, lines, neighbours
from rankmap.predict.library import chosen_by, library_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankmap.pattern import Pattern
    from rankmap.predict.phase import Job, Phase

__all__ = ["ALGORITHMS", "algorithm_of", "algorithms", "phases"]

#: Ways to do an all-to-all; every other pattern sends at once. ``library`` is what the
#: machine's MPI does at that size, and ``at-once`` where no site says which MPI it has.
ALGORITHMS = ("at-once", "pairwise", "ring", "bruck", "library")


def algorithm_of(pattern: Pattern, wanted: str = "") -> str:
    """Return the algorithm by which a pattern's messages are sent.

    Parameters
    ----------
    pattern : Pattern
    wanted : str
        One of `ALGORITHMS`; '' for ``at-once``.

    Raises
    ------
    UsageError
        No such algorithm, or one for an all-to-all where there is none.

    Examples
    --------
    >>> from rankmap.pattern import parse_pattern
    >>> algorithm_of(parse_pattern("alltoall"), "bruck")
    'bruck'
    """
    from rankmap.pattern.structured import Lines

    if wanted and wanted not in ALGORITHMS:
        raise UsageError(
            f"no algorithm '{printable(wanted, 40)}'", f"there are {', '.join(ALGORITHMS)}"
        )
    chosen = wanted or ALGORITHMS[0]
    if not isinstance(pattern, Lines):
        if chosen in (ALGORITHMS[0], "library"):
            return ALGORITHMS[0]
        raise UsageError(
            f"algorithm {chosen} is one of an all-to-all, {pattern.spec} has none",
            f"only {ALGORITHMS[0]} applies",
        )
    return chosen


def algorithms(pattern: Pattern, algorithm: str, size: float, mpi: str) -> list[str]:
    """Return the algorithm of the all-to-all along each dimension of a process grid, in order.

    Parameters
    ----------
    pattern : Pattern
        Fitted to the ranks.
    algorithm : str
        As `algorithm_of` returns it.
    size : float
        ``--bytes``.
    mpi : str
        The machine's MPI, as its site calls it; '' where nothing says.

    Examples
    --------
    >>> from rankmap.pattern import parse_pattern
    >>> algorithms(parse_pattern("fft:4x64"), "library", 100, "cray-mpich")
    ['at-once', 'bruck']
    """
    dims = pattern.dims or ()
    if algorithm != "library" or not mpi:
        return [ALGORITHMS[0] if algorithm == "library" else algorithm] * len(dims)
    part = size * getattr(pattern, "weight", 1.0)
    call = "alltoallv" if pattern.spec == "sort" else "alltoall"
    return [chosen_by(library_of(mpi), part, ranks, call) for ranks in dims]


def phases(
    pattern: Pattern, job: Job, size: float, algorithm: str, steps: int | None = None
) -> Iterator[Phase]:
    """Yield the phases of a pattern, which follow each other.

    Parameters
    ----------
    pattern : Pattern
        Fitted to the ranks.
    job : Job
    size : float
        ``--bytes``.
    algorithm : str
        As `algorithm_of` returns it.
    steps : int or None
        Steps of an algorithm that are looked at, at most; None: all.
    """
    from rankmap.pattern.structured import Lines
    from rankmap.pattern.training import Training

    if isinstance(pattern, Lines):
        mpi = job.machine.topology.parameters.get("mpi", "")
        each = algorithms(pattern, algorithm, size, mpi)
        yield from lines.phases(pattern, job, size, each, steps)
    elif isinstance(pattern, Training):
        yield from axes.phases(pattern, job, size)
    else:
        yield neighbours.phase(pattern, job, size)
