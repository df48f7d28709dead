# SPDX-License-Identifier: Apache-2.0
"""The model's parameters: the same for all papers, none fitted to any of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.study.published import TARA
from nidmap.rankmap.collectives import libraries

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The library whose algorithms the papers' programs are taken to use.
MPICH = libraries.LIBRARIES["mpich"]


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters of the model that a study can vary.

    Attributes
    ----------
    routing : str
        '' is the machine's default.
    process : float or None
        GB/s that one rank sends at most.
    payload : float
        Share of the bandwidth between routers that is payload.
    load : float
        GB/s a node that other jobs send; 0 for an idle network.
    latency : float or None
        us; None is the machine's.
    share : float
        Share of the nodes that a job leaves on which other jobs run.
    """

    routing: str = ""
    process: float | None = 2.0
    payload: float = 1.0
    load: float = 1.0
    latency: float | None = None
    share: float = 0.9


#: What every figure of the study uses unless it says what it varies.
COMMON = Setting()


def algorithm(call: str, size: float, ranks: int) -> str:
    """Return MPI's algorithm for an all-to-all with this many bytes per pair.

    Parameters
    ----------
    call : str
        ``alltoall`` or ``alltoallv``.
    size : float
        Bytes that one rank sends to one other.
    ranks : int

    Notes
    -----
    MPICH's defaults, from which Cray's MPI and MVAPICH2 descend: R. Thakur,
    R. Rabenseifner and W. Gropp, Optimization of Collective Communication
    Operations in MPICH, 2005. The limits 256 and 32,768 bytes are those of
    its ``MPIR_CVAR_ALLTOALL_SHORT_MSG_SIZE`` and ``…_MEDIUM_MSG_SIZE``; its
    alltoallv posts everything.

    Examples
    --------
    >>> algorithm("alltoall", 8, 64), algorithm("alltoall", 1e6, 64), algorithm("alltoallv", 1e6, 8)
    ('bruck', 'pairwise', 'at-once')
    """
    return MPICH.choose(call, size, ranks)


def contact_s() -> float:
    """Return the seconds of a rank's first message to another, which sets up a connection.

    The median of what row B of tara's Table 4.5 takes for each rank, from 3 nodes on. It is
    paid once, in the first exchange of all with all; Bruck's meets few ranks, and does not.

    Examples
    --------
    >>> round(1e3 * contact_s(), 2)  # ms
    1.72
    """
    each = [seconds / (TARA.PPN * n) for n, seconds in TARA.INTS.items() if n > 1]
    return float(np.median(each))


def assumptions() -> Iterator[tuple[str, str, str]]:
    """Yield (what, value, source) for everything that the study assumes."""
    one = COMMON
    yield (
        "routing",
        "the default of `nidmap predict`: `minimal` on a dragonfly, `dimension-order`, `d-mod-k`",
        "assumed; every routing is in the sensitivity table",
    )
    yield (
        "algorithm of an all-to-all",
        f"Bruck up to {libraries.BRUCK:g} B, at once up to {libraries.SCATTERED:,.0f} B, pairwise"
        " above; alltoallv at once",
        "published: MPICH's defaults (Thakur et al. 2005)",
    )
    yield (
        "what one rank sends at most",
        f"{one.process:g} GB/s",
        "published: FFT paper, IV-B, of Shaheen II; assumed for the other machines",
    )
    yield (
        "payload of a link between routers",
        "all of the wire",
        "assumed; 64 % is published for Aries (ISx paper, 4.2) and is varied",
    )
    yield (
        "other jobs",
        f"on {one.share:.0%} of the nodes that the job leaves, sizes from 1 to 512 nodes"
        " (uniform in the logarithm), first fit, ending at random",
        "assumed; no paper says what ran beside it",
    )
    yield (
        "what other jobs send",
        f"{one.load:g} GB/s a node, alike to all their own nodes",
        "assumed: the default of `background-load`; 0 to 4 is varied",
    )
    yield (
        "latency, hop, message, interface",
        "1.2 to 1.5 us, 100 ns (Gemini 105), 0.5 us, 0.05 us",
        "assumed, but for tara's 1.2 us, which is published: the defaults of `nidmap predict`",
    )
    yield (
        "first contact of two ranks",
        f"{1e3 * contact_s():.2f} ms, in the first alltoallv of a sort",
        "the median of tara's Table 4.5, row B; taken over to Blue Waters",
    )
    yield (
        "bytes of an FFT's grid point",
        "8 (real doubles, half-complex after the first transform)",
        "assumed: FFTK's real-to-complex transforms",
    )
    yield (
        "speed of a core in an FFT",
        "1 GFlop/s, for exponents of the total time only",
        "assumed; 0.5 and 2 are varied",
    )
    yield (
        "speed of a local sort",
        "12 ns times n log2 n",
        "assumed: a comparing quicksort, 2.8 s for ten million keys",
    )
    yield (
        "memory inside a node",
        "no limit but that of the ranks",
        "assumed: no paper states one that an exchange reaches",
    )
