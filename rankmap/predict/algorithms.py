"""By which algorithm a pattern is sent: the one that is named, or an MPI library's choice."""

from __future__ import annotations

from placement.errors import UsageError, printable
from rankmap.collectives import LIBRARIES, algorithms_of, library_of, usual_algorithm
from rankmap.pattern import Pattern
from rankmap.pattern.collective import Collective
from rankmap.pattern.structured import Lines

#: Ways to do an all-to-all; collectives have their own (`rankmap.collectives`), and every other
#: pattern sends at once. ``library`` is what the machine's MPI does at that size; where no site
#: says which MPI it has, ``at-once`` for an all-to-all. A collective takes the usual one.
ALGORITHMS = ("at-once", "pairwise", "ring", "bruck", "library")


def asked_library(algorithm: str, mpi: str) -> str:
    """Return the library that is to choose; '' where an algorithm is named, or no MPI is known.

    Parameters
    ----------
    algorithm : str
        ``library``, a key of `rankmap.collectives.LIBRARIES`, or an algorithm's name.
    mpi : str
        The machine's MPI, as its site calls it; '' where nothing says.
    """
    if algorithm in LIBRARIES:
        return algorithm
    return library_of(mpi) if algorithm == "library" and mpi else ""


def algorithm_of(pattern: Pattern, wanted: str = "") -> str:
    """Return the algorithm by which a pattern's messages are sent.

    Parameters
    ----------
    pattern : Pattern
    wanted : str
        One of `ALGORITHMS` or of a collective's own, or of an all-to-all a library's key;
        '' for ``at-once``, and of a collective for ``library``.

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
    if isinstance(pattern, Collective):
        known = (*algorithms_of(pattern.name), *ALGORITHMS[-1:])
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


def _require_known(name: str, names: tuple[str, ...], what: str) -> str:
    """Return a name that is among those known."""
    if name not in names:
        raise UsageError(
            f"no algorithm '{printable(name, 40)}' {what}", f"there are {', '.join(names)}"
        )
    return name


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
    >>> algorithms(parse_pattern("bcast").fit(64), "library", 1e6, "")
    ['scatter-ring']
    """
    if isinstance(pattern, Collective):
        usual = algorithm == "library"
        return [usual_algorithm(pattern.name, size, pattern.ranks or 0) if usual else algorithm]
    dims = pattern.dims or ()
    library = asked_library(algorithm, mpi)
    if not library:
        return [ALGORITHMS[0] if algorithm == "library" else algorithm] * len(dims)
    part = size * getattr(pattern, "weight", 1.0)
    call = "alltoallv" if pattern.spec == "sort" else "alltoall"
    return [LIBRARIES[library].choose(call, part, ranks) for ranks in dims]
