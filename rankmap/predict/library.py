"""Which algorithm an MPI library takes for an all-to-all of some size, where nobody chooses."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LIBRARIES", "Library", "chosen_by", "library_of"]


class Library(NamedTuple):
    """The sizes at which a library changes its algorithm.

    Attributes
    ----------
    name : str
    short : float
        Bytes from one rank to another up to which Bruck's algorithm is used …
    least_ranks : int
        … among so many ranks or more.
    medium : float
        Bytes up to which everything is posted at once; more goes pair by pair.
    source : str
    """

    name: str
    short: float
    least_ranks: int
    medium: float
    source: str


#: By the library's family.
LIBRARIES = {
    "mpich": Library(
        "MPICH",
        256,
        8,
        32768,
        "R. Thakur, R. Rabenseifner and W. Gropp, Optimization of Collective Communication"
        " Operations in MPICH, 2005; MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE and …_MEDIUM_MSG_SIZE",
    ),
    "openmpi": Library(
        "Open MPI", 200, 13, 3000, "coll/tuned's fixed decisions of Open MPI up to 4.0"
    ),
}


def library_of(name: str) -> Library:
    """Return the family of an MPI as a site calls it: MPICH's, unless it says Open MPI.

    Cray's MPI, Intel MPI and MVAPICH descend from MPICH.

    Examples
    --------
    >>> library_of("cray-mpich").name, library_of("Open MPI 5").name
    ('MPICH', 'Open MPI')
    """
    plain = name.lower().replace(" ", "").replace("-", "")
    return LIBRARIES["openmpi" if "openmpi" in plain else "mpich"]


def chosen_by(library: Library, size: float, ranks: int, call: str = "alltoall") -> str:
    """Return how a library does an all-to-all.

    Parameters
    ----------
    library : Library
    size : float
        Bytes that one rank sends to one other.
    ranks : int
    call : str
        ``alltoall`` or ``alltoallv``, which posts everything at once.

    Examples
    --------
    >>> mpich = LIBRARIES["mpich"]
    >>> [chosen_by(mpich, size, 64) for size in (8, 1024, 1e6)]
    ['bruck', 'at-once', 'pairwise']
    >>> chosen_by(mpich, 1e6, 64, "alltoallv")
    'at-once'
    """
    if call == "alltoallv":
        return "at-once"
    if size <= library.short:
        return "bruck" if ranks >= library.least_ranks else "at-once"
    return "at-once" if size <= library.medium else "pairwise"
