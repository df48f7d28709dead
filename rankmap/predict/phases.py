"""Phases: what of a pattern is sent at once, and what only after something else.

A pattern and an order become a few phases, each a demand on the network from
node to node and the messages it is made of. Structured patterns are never
expanded into pairs of ranks: an all-to-all is so many ranks on each node, a
stencil the grid of nodes against itself, shifted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from placement.errors import UsageError, printable
from rankmap.pattern import Pattern
from rankmap.predict import axes, collectives, lines, neighbours
from rankmap.predict.library import LIBRARIES, asked_library, chosen_by
from rankmap.predict.phase import Job, Phase

__all__ = ["ALGORITHMS", "algorithm_of", "algorithms", "phases"]

#: Ways to do an all-to-all; collectives have their own (`rankmap.collectives`), and every other
#: pattern sends at once. ``library`` is what the machine's MPI does at that size; where no site
#: says which MPI it has, ``at-once`` for an all-to-all and MPICH's choice for a collective.
ALGORITHMS = ("at-once", "pairwise", "ring", "bruck", "library")


def algorithm_of(pattern: Pattern, wanted: str = "") -> str:
    """Return the algorithm by which a pattern's messages are sent.

    Parameters
    ----------
    pattern : Pattern
    wanted : str
        One of `ALGORITHMS` or of a collective's own, or a library's key; '' for
        ``at-once``, and of a collective for ``library``.

    Raises
    ------
    UsageError
        No such algorithm, or one that the pattern does not have.

    Examples
    --------
    >>> from rankmap.pattern import parse_pattern
    >>> algorithm_of(parse_pattern("alltoall"), "bruck")
    'bruck'
    """
    from rankmap.collectives import algorithms_of
    from rankmap.pattern.collective import Collective
    from rankmap.pattern.structured import Lines

    if isinstance(pattern, Collective):
        known = (*algorithms_of(pattern.name), *ALGORITHMS[-1:], *LIBRARIES)
        return _require_known(wanted or "library", known, f"for {pattern.name}")
    if isinstance(pattern, Lines):
        return _require_known(
            wanted or ALGORITHMS[0], (*ALGORITHMS, *LIBRARIES), "for an all-to-all"
        )
    if wanted in ("", ALGORITHMS[0], "library"):
        return ALGORITHMS[0]
    raise UsageError(
        f"algorithm {printable(wanted, 40)}: {pattern.spec} has none to choose from",
        f"only {ALGORITHMS[0]} applies",
    )


def _require_known(wanted: str, known: tuple[str, ...], what: str) -> str:
    """Return a name that is among those known."""
    if wanted not in known:
        raise UsageError(
            f"no algorithm '{printable(wanted, 40)}' {what}", f"there are {', '.join(known)}"
        )
    return wanted


def algorithms(pattern: Pattern, algorithm: str, size: float, mpi: str) -> list[str]:
    """Return the algorithm of the all-to-all along each dimension of a process grid, in order.

    A collective has one dimension, its ranks.

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
    from rankmap.pattern.collective import Collective

    if isinstance(pattern, Collective):
        return [collectives.choose_algorithm(pattern, algorithm, size, mpi)]
    dims = pattern.dims or ()
    library = asked_library(algorithm, mpi)
    if library is None:
        return [ALGORITHMS[0] if algorithm == "library" else algorithm] * len(dims)
    part = size * getattr(pattern, "weight", 1.0)
    call = "alltoallv" if pattern.spec == "sort" else "alltoall"
    return [chosen_by(library, part, ranks, call) for ranks in dims]


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
    before: tuple[Phase, ...] = ()
    for phase in _phases(pattern, job, size, algorithm, steps):
        yield replace(phase, before=before)
        before = (*before, phase)


def _phases(
    pattern: Pattern, job: Job, size: float, algorithm: str, steps: int | None
) -> Iterator[Phase]:
    """Yield the phases of a pattern, each for itself."""
    from rankmap.pattern.collective import Collective
    from rankmap.pattern.structured import Lines
    from rankmap.pattern.training import Training

    mpi = job.machine.topology.parameters.get("mpi", "")
    if isinstance(pattern, Collective):
        (how,) = algorithms(pattern, algorithm, size, mpi)
        yield from collectives.phases(pattern, job, size, how, steps)
    elif isinstance(pattern, Lines):
        each = algorithms(pattern, algorithm, size, mpi)
        yield from lines.phases(pattern, job, size, each, steps)
    elif isinstance(pattern, Training):
        yield from axes.phases(pattern, job, size)
    else:
        yield neighbours.phase(pattern, job, size)
