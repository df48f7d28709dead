"""By which algorithm a pattern is sent: the one that is named, or an MPI library's choice."""

from __future__ import annotations

from typing import NamedTuple

from placement.errors import UsageError, printable
from rankmap.collectives import algorithms_of, choose_algorithm, usual_algorithm
from rankmap.pattern import Pattern
from rankmap.pattern.collective import Collective
from rankmap.pattern.structured import Lines

#: Ways to do an all-to-all; collectives have their own (`rankmap.collectives`), and every other
#: pattern sends at once. ``library`` is what the machine's MPI does at that size; where no site
#: says which MPI it has, ``at-once`` for an all-to-all. A collective takes the usual one.
ALGORITHMS = ("at-once", "pairwise", "ring", "bruck", "library")


class Library(NamedTuple):
    """How a library chooses the algorithm of an all-to-all.

    Attributes
    ----------
    key : str
        Of `rankmap.collectives.RULES`.
    name : str
        With the version whose rules these are.
    source : str

    Examples
    --------
    >>> mpich = LIBRARIES["mpich"]
    >>> [mpich.choose("alltoall", size, 64) for size in (8, 1024, 1e6)]
    ['bruck', 'at-once', 'pairwise']
    """

    key: str
    name: str
    source: str

    def choose(self, call: str, size: float, ranks: int) -> str:
        """Return the algorithm (`rankmap.collectives.choose_algorithm`)."""
        return choose_algorithm(self.key, call, size, ranks)


#: By the library's family.
LIBRARIES = {
    "mpich": Library(
        "mpich",
        "MPICH 4.2",
        "maint/tuning/coll/mpir/generic.json of MPICH 4.2.3; R. Thakur, R. Rabenseifner and"
        " W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005",
    ),
    "openmpi": Library(
        "openmpi",
        "Open MPI 5.0",
        "ompi/mca/coll/tuned/coll_tuned_decision_fixed.c of Open MPI 5.0.9",
    ),
}


def library_of(name: str) -> Library:
    """Return the family of an MPI as a site calls it: MPICH's, unless it says Open MPI.

    Cray's MPI, Intel MPI and MVAPICH descend from MPICH.

    Examples
    --------
    >>> library_of("cray-mpich").name, library_of("Open MPI 5").name
    ('MPICH 4.2', 'Open MPI 5.0')
    """
    plain = name.lower().replace(" ", "").replace("-", "")
    return LIBRARIES["openmpi" if "openmpi" in plain else "mpich"]


def asked_library(algorithm: str, mpi: str) -> Library | None:
    """Return the library that is to choose; None where an algorithm is named, or no MPI is known.

    Parameters
    ----------
    algorithm : str
        ``library``, a key of `LIBRARIES`, or an algorithm's name.
    mpi : str
        The machine's MPI, as its site calls it; '' where nothing says.
    """
    if algorithm in LIBRARIES:
        return LIBRARIES[algorithm]
    return library_of(mpi) if algorithm == "library" and mpi else None


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
    if library is None:
        return [ALGORITHMS[0] if algorithm == "library" else algorithm] * len(dims)
    part = size * getattr(pattern, "weight", 1.0)
    call = "alltoallv" if pattern.spec == "sort" else "alltoall"
    return [library.choose(call, part, ranks) for ranks in dims]
