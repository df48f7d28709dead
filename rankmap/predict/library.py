"""Which algorithm an MPI library takes for a collective of some size, where nobody chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rankmap.collectives import mpich, openmpi

__all__ = ["LIBRARIES", "Library", "asked_library", "chosen_by", "library_of"]


class Library(NamedTuple):
    """How a library chooses its algorithms.

    Attributes
    ----------
    name : str
        With the version whose rules these are.
    choose : callable
        Returns the algorithm of a call, so many bytes and so many ranks.
    source : str
    """

    name: str
    choose: Callable[[str, float, int], str]
    source: str


#: By the library's family.
LIBRARIES = {
    "mpich": Library(
        "MPICH 4.2",
        mpich.choose,
        "maint/tuning/coll/mpir/generic.json of MPICH 4.2.3; R. Thakur, R. Rabenseifner and"
        " W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005",
    ),
    "openmpi": Library(
        "Open MPI 5.0",
        openmpi.choose,
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


def chosen_by(library: Library, size: float, ranks: int, call: str = "alltoall") -> str:
    """Return how a library does a collective.

    Parameters
    ----------
    library : Library
    size : float
        Bytes as the call counts them: its buffer, or what one rank sends to one other.
    ranks : int
    call : str
        ``alltoall``, ``alltoallv`` or a family of `rankmap.collectives`.

    Examples
    --------
    >>> mpich = LIBRARIES["mpich"]
    >>> [chosen_by(mpich, size, 64) for size in (8, 1024, 1e6)]
    ['bruck', 'at-once', 'pairwise']
    >>> chosen_by(mpich, 1e6, 64, "alltoallv")
    'at-once'
    """
    return library.choose(call, size, ranks)
