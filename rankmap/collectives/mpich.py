"""Which algorithm MPICH takes, by ranks and bytes.

The thresholds are those of MPICH 4.2.3's ``maint/tuning/coll/mpir/generic.json``, for
operations that are built in and commute, on communicators that it does not treat node by
node. Its CH4 device does that for a bcast up to 12 kB, for reduce, allreduce and barrier:
first inside each node, then among one rank a node (``maint/tuning/coll/ch4/generic.json``).
"""

from __future__ import annotations

__all__ = ["choose"]

#: Bytes of an element that is reduced: a double's.
ELEMENT = 8

#: Up to so many bytes from rank to rank an all-to-all is done by Bruck's algorithm, among so
#: many ranks at least; up to so many everything is posted at once.
BRUCK, LEAST_RANKS, AT_ONCE = 256, 8, 32768


def choose(call: str, size: float, ranks: int) -> str:
    """Return the algorithm of a collective.

    Parameters
    ----------
    call : str
        A family of `rankmap.collectives`, ``alltoall`` or ``alltoallv``.
    size : float
        Bytes as the call counts them: its buffer, or one rank's block.
    ranks : int

    Examples
    --------
    >>> [choose("bcast", size, 64) for size in (1000, 1e5, 1e6)]
    ['binomial', 'scatter-doubling', 'scatter-ring']
    >>> choose("bcast", 1e5, 65), choose("allreduce", 1e6, 65), choose("allgather", 100, 65)
    ('scatter-ring', 'rabenseifner', 'bruck')
    """
    power = 1 << (ranks.bit_length() - 1)
    elements = size / ELEMENT
    if call == "alltoallv":
        return "at-once"
    if call == "alltoall":
        if size <= BRUCK:
            return "bruck" if ranks >= LEAST_RANKS else "at-once"
        return "at-once" if size <= AT_ONCE else "pairwise"
    if call == "bcast":
        if ranks < 8 or size <= 12288:
            return "binomial"
        return "scatter-doubling" if ranks == power and size <= 524288 else "scatter-ring"
    if call == "reduce":
        return "rabenseifner" if size > 2048 and elements >= power else "binomial"
    if call == "allreduce":
        return "rabenseifner" if size > 8 and elements >= power else "doubling"
    if call == "allgather":
        few = "doubling" if ranks == power else "bruck"
        return few if size * ranks < (524288 if ranks == power else 81920) else "ring"
    if call == "reducescatter":
        return "halving" if size * ranks < 524288 else "pairwise"
    return "dissemination" if call == "barrier" else "binomial"
