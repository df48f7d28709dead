"""Which algorithm Open MPI takes, by ranks and bytes: the fixed decisions of coll/tuned.

The thresholds are those of Open MPI 5.0.9's
``ompi/mca/coll/tuned/coll_tuned_decision_fixed.c``, for operations that commute. Nothing is
cut into segments there. Its names are ours so:

=====================  ======================================================
binomial (bcast)       binomial-doubling: first to the neighbour, then further
pipeline, chain        chain
linear_sync, two_proc  at-once and pairwise of an all-to-all; linear of a gather
linear_nb              linear
segmented_ring         ring
nonoverlapping         reduce-bcast
bruck (barrier)        dissemination
=====================  ======================================================
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache

__all__ = ["choose"]

#: More ranks than any job has.
MANY = 1 << 62

#: Bytes of an element that is reduced: a double's. An element of any other buffer is a byte.
ELEMENT = 8

#: By collective and rank count (below so many): from so many bytes on, this algorithm.
TABLE: dict[str, dict[int, str]] = {
    "alltoall": {
        3: "0:pairwise 32768:at-once 262144:pairwise",
        8: "0:at-once 524288:pairwise 1048576:at-once",
        16: "0:at-once",
        32: "0:at-once 4:bruck 512:at-once",
        64: "0:bruck 512:at-once",
        256: "0:bruck 1024:at-once 262144:pairwise",
        512: "0:bruck 1024:at-once 32768:pairwise",
        1024: "0:bruck 512:at-once 262144:pairwise",
        2048: "0:bruck 512:at-once",
        4096: "0:bruck 1024:at-once",
        MANY: "0:bruck 2048:at-once",
    },
    "alltoallv": {
        4: "0:pairwise",
        64: "0:at-once",
        128: "0:pairwise",
        256: "0:at-once",
        1024: "0:pairwise",
        MANY: "0:at-once",
    },
    "bcast": {
        4: (
            "0:chain 32:binary 256:chain 512:knomial 1024:linear 32768:binary "
            "131072:chain 262144:linear 524288:binomial-doubling 1048576:binary"
        ),
        8: (
            "0:binary 64:binomial-doubling 128:binary 2048:binomial-doubling "
            "8192:linear 1048576:chain"
        ),
        16: ("0:knomial 8:binary 64:knomial 4096:binary 16384:binomial-doubling 32768:linear"),
        32: "0:knomial 4096:binomial-doubling 1048576:scatter-doubling",
        64: "0:binomial-doubling 2048:knomial",
        128: "0:knomial",
        256: "0:binomial-doubling 2:binary 16384:linear 32768:binary 65536:knomial",
        1024: "0:knomial 16384:split-binary 32768:knomial",
        2048: "0:knomial 524288:scatter-doubling",
        4096: "0:knomial 262144:scatter-doubling",
        MANY: "0:knomial 8192:binary 16384:knomial 262144:scatter-doubling",
    },
    "reduce": {
        4: "0:rabenseifner 8:binary 16:chain 32:linear 262144:chain",
        8: ("0:binary 4096:chain 65536:binomial 262144:linear 524288:binomial 1048576:linear"),
        16: "0:binary 8192:binomial",
        32: "0:binary 4096:binomial",
        256: "0:binomial",
        512: "0:binomial 8192:in-order-binary 16384:binomial",
        2048: "0:binomial",
        4096: ("0:binomial 512:in-order-binary 1024:binomial 8192:in-order-binary 16384:binomial"),
        MANY: (
            "0:binomial 16:in-order-binary 32:binomial 1024:in-order-binary "
            "2048:binomial 8192:in-order-binary 16384:binomial"
        ),
    },
    "allreduce": {
        4: "0:ring 8:doubling 4096:ring 8192:doubling 16384:ring 262144:rabenseifner",
        8: "0:ring 16:doubling 8192:rabenseifner",
        16: "0:doubling 8192:rabenseifner",
        32: "0:ring 64:doubling 4096:rabenseifner",
        64: "0:ring 128:rabenseifner",
        128: "0:doubling 262144:rabenseifner",
        256: "0:reduce-bcast 131072:doubling 262144:rabenseifner",
        512: "0:reduce-bcast 4096:rabenseifner",
        2048: "0:reduce-bcast 2048:doubling 16384:rabenseifner",
        4096: "0:reduce-bcast 2048:ring 4096:doubling 16384:rabenseifner",
        MANY: "0:reduce-bcast 2048:ring 16384:doubling 32768:rabenseifner",
    },
    "gather": {
        4: "0:linear 4:binomial 32768:linear 65536:binomial 131072:linear",
        8: "0:binomial 1024:linear 8192:binomial 32768:linear",
        256: "0:binomial",
        512: "0:binomial 2048:linear 8192:binomial",
        MANY: "0:binomial",
    },
    "scatter": {
        4: "0:linear",
        8: "0:binomial 2048:linear 4096:binomial 8192:linear",
        32: "0:binomial 16384:linear",
        64: "0:binomial 512:linear 8192:binomial 16384:linear",
        MANY: "0:binomial 512:linear",
    },
    "allgather": {
        32: "0:doubling",
        64: "0:doubling 1024:neighbor 65536:ring",
        128: "0:doubling 512:neighbor 65536:ring",
        256: "0:doubling 512:neighbor 131072:ring 524288:neighbor 1048576:ring",
        512: (
            "0:doubling 32:bruck 128:doubling 1024:neighbor 131072:ring 524288:neighbor "
            "1048576:ring"
        ),
        1024: "0:doubling 64:bruck 256:doubling 2048:neighbor",
        2048: (
            "0:doubling 4:bruck 8:doubling 16:bruck 32:doubling 256:bruck 512:doubling "
            "4096:neighbor"
        ),
        4096: "0:bruck 32:doubling 128:bruck 512:doubling 4096:neighbor",
        MANY: "0:doubling 2:bruck 8:doubling 16:bruck 512:doubling 4096:neighbor",
    },
    "reducescatter": {
        4: (
            "0:doubling 4:butterfly 8:halving 16:butterfly 128:halving 256:butterfly "
            "4096:halving 8192:butterfly 131072:reduce-scatter"
        ),
        8: (
            "0:halving 8:doubling 32:butterfly 256:halving 8192:butterfly 16384:halving "
            "1048576:reduce-scatter"
        ),
        16: (
            "0:reduce-scatter 4:halving 32:butterfly 128:halving 524288:reduce-scatter "
            "4194304:butterfly"
        ),
        32: ("0:reduce-scatter 32:halving 524288:reduce-scatter 2097152:halving 4194304:butterfly"),
        MANY: ("0:halving 4:reduce-scatter 16:butterfly 65536:reduce-scatter 262144:butterfly"),
    },
    "barrier": {
        4: "0:doubling",
        8: "0:linear",
        64: "0:doubling",
        256: "0:dissemination",
        512: "0:tree",
        1024: "0:dissemination",
        4096: "0:tree",
        MANY: "0:dissemination",
    },
}


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
    >>> choose("bcast", 1e6, 1024), choose("allgather", 2048, 64), choose("barrier", 0, 300)
    ('scatter-doubling', 'neighbor', 'tree')
    """
    row = next(row for below, row in TABLE[call].items() if ranks < below)
    limits, names = _parse_row(row)
    chosen = names[bisect_right(limits, size) - 1]
    power = 1 << (ranks.bit_length() - 1)
    if chosen == "rabenseifner" and size < ELEMENT * power:  # fewer elements than ranks
        return "linear"
    if chosen == "scatter-doubling" and size < ranks:
        return "linear"
    return chosen


@cache
def _parse_row(row: str) -> tuple[list[int], list[str]]:
    pairs = [word.split(":") for word in row.split()]
    return [int(limit) for limit, _ in pairs], [name for _, name in pairs]
