# SPDX-License-Identifier: Apache-2.0
"""What the papers publish: the printed figures, each with its location.

Nothing here is used as a parameter of the model but for the figures named in
`benchmarks.study.setting`, which are the same for all papers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper: its short name here, and its authors."""

    name: str
    title: str
    source: str


#: By the word of ``--paper``.
PAPERS = {
    paper.name: paper
    for paper in (
        Paper(
            "fft",
            "FFT on Shaheen II",
            "S. A. Aseeri, A. G. Chatterjee, M. K. Verma, D. E. Keyes: A scheduling policy to"
            " improve 10% of communication time in parallel FFT",
        ),
        Paper(
            "dash",
            "DASH on Hazel Hen",
            "K. Idrees, T. Fuchs, C. W. Glass: Effective use of the PGAS Paradigm: Driving"
            " Transformations and Self-Adaptive Behavior in DASH-Applications",
        ),
        Paper(
            "isx",
            "ISx on Edison",
            "The paper on ISx's first year as a mini-application, with OpenSHMEM, MPI and Chapel"
            " on Edison",
        ),
        Paper(
            "mpsort",
            "MP-sort on Blue Waters",
            "Y. Feng, M. Straka, T. Di Matteo, R. Croft: MP-sort: Sorting at Scale on Blue Waters"
            " - for a Cosmological Simulation, 2015",
        ),
        Paper(
            "tara",
            "Sorting on tara",
            "N. Mistry, J. Ramsey, B. Wiley, J. Yanchuck, X. Huang, M. K. Gobbert, C. Mineo,"
            " D. Mountain: Contention of Communications in Switched Networks with Applications"
            " to Parallel Sorting, HPCF-2013-13",
        ),
    )
}


class FFT:
    """Figures of the FFT paper."""

    #: Table IV: nodes at 1 rank each -> ms on directly connected blades, ms by default.
    PLACEMENT: ClassVar[dict[int, tuple[int, int]]] = {
        12: (2100, 2119), 24: (1214, 1253), 36: (694, 833), 48: (535, 572),
        72: (360, 389), 108: (221, 239), 144: (164, 173), 216: (112, 123),
    }  # fmt: skip

    #: Table IV: nodes -> per cent saved, as the paper prints them.
    PRINTED: ClassVar[dict[int, float]] = {
        12: 0.9, 24: 3.1, 36: 16.6, 48: 6.6, 72: 7.4, 108: 7.6, 144: 5.6, 216: 9.0,
    }  # fmt: skip

    #: Table III: ranks at 32 a node -> row-major, Morton (no unit is given).
    ORDER: ClassVar[dict[int, tuple[int, int]]] = {
        512: (1326, 1530), 1024: (1023, 1367), 2048: (982, 1228),
        4096: (110, 108), 16384: (72, 76), 65536: (83, 82),
    }  # fmt: skip

    #: Section IV-A: grid -> exponents of contiguous and of other nodes, most cores.
    CONTIGUOUS: ClassVar[dict[int, tuple[float, float, int]]] = {
        1536: (1.0, 1.0, 1536),
        2048: (1.0, 0.9, 2048),
    }

    #: Section IV-B: GB/s a process at 1 rank a node.
    ONE_RANK_GBS = 2.0
    #: Section IV-B and Figure 7: nodes -> GB/s a node at 32 ranks a node.
    FULL_NODE_GBS: ClassVar[dict[int, float]] = {8: 9.0, 512: 1.0}
    #: Section IV-B: processes -> MB/s a process at 32 ranks a node.
    FULL_NODE_PROCESS_MBS: ClassVar[dict[int, float]] = {256: 300.0, 16384: 40.0}

    #: Section III-C and Figure 4: exponents up to 60 nodes, and from 64 to 6,144.
    REGIONS = (0.84, 0.78)


class DASH:
    """Figures of the DASH paper."""

    #: Figure 7: factor by which hierarchical mapping is faster, over all message sizes.
    FACTOR = (1.4, 2.2)
    NODES = 384
    PPN = 24


class ISX:
    """Figures of the ISx paper."""

    #: Section 4.2: GB/s a node as Edison is configured, and at 64 % payload.
    CONFIGURED_GBS = 4.0
    PAYLOAD = 0.64
    PAYLOAD_GBS = 2.6
    #: Section 4.2: full-system bandwidth of a dragonfly with all cables, GB/s a node.
    FULL_GBS = 11.7
    #: Section 4.2: GB/s a node that ISx saw.
    OBSERVED_GBS = (1.5, 2.6)
    #: Section 4.2: processing elements of the two runs, 24 a node.
    RUNS: ClassVar[dict[str, int]] = {"12k": 12288, "16k": 16384}
    PPN = 24


class MPSORT:
    """Figures of the MP-sort paper."""

    #: Table 1: items a rank -> ranks -> seconds of wall time.
    WALL: ClassVar[dict[int, dict[int, float]]] = {
        100_000: {
            1024: 2.167, 2048: 4.088, 4096: 7.094, 8192: 13.95,
            16384: 20.45, 80000: 269.5, 160000: 342.5,
        },
        1_000_000: {
            1024: 3.324, 2048: 5.404, 4096: 8.949, 8192: 13.32,
            16384: 28.48, 80000: 285.4, 160000: 462.5,
        },
        10_000_000: {
            1024: 25.35, 2048: 26.33, 4096: 32.59, 8192: 29.9,
            16384: 39.37, 80000: 309.0, 160000: 475.8,
        },
    }  # fmt: skip
    PPN = 32
    #: Section 3.1: rounds, one for each bit of a key.
    ROUNDS = 56
    #: Section 3.1: share of both local sorts at 160,000 ranks; abstract: of the exchange.
    LOCAL_SHARE = 0.01
    EXCHANGE_SHARE = 0.9
    #: Section 3.2: global bandwidth of an all-to-all over bisection bandwidth.
    BISECTION = 2.0
    #: Section 3.2: ranks below which it appears limited by bandwidth.
    BANDWIDTH_RANKS = 8000


class TARA:
    """Figures of the contention paper."""

    PPN = 8
    #: Section 3.2: vectors, and doubles in each.
    VECTORS = 1_492_992
    DOUBLES = 512
    #: Table 4.2: nodes -> seconds, m = 512.
    GLOBAL: ClassVar[dict[int, float]] = {1: 1.14, 3: 0.57, 9: 0.25, 18: 0.15, 36: 0.11}
    #: Table 4.4: doubles a vector and node -> nodes -> seconds (None: memory error).
    LOCAL: ClassVar[dict[int, dict[int, float | None]]] = {
        512: {1: 0.60, 3: 1.64, 9: 2.09, 18: 2.28, 36: 2.30},
        800: {1: 1.79, 3: 3.05, 9: 3.73, 18: 5.01, 36: 6.73},
        810: {1: 1.80, 3: 2.83, 9: 3.30, 18: 5.54, 36: None},
        1024: {1: 85.00, 3: 170.62, 9: None, 18: None, 36: None},
    }
    #: Table 4.5, row B: MPI_Alltoallv of int; nodes -> seconds (0.01 stands for less too).
    INTS: ClassVar[dict[int, float]] = {1: 0.01, 3: 0.01, 9: 0.10, 18: 0.32, 36: 0.59}
    #: Table 4.5, row A: MPI_Alltoall of int takes less than this everywhere.
    COUNTS = 0.01


#: What the papers publish and the study does not try: paper, what, why.
LEFT_OUT = (
    ("fft", "Figure 10", "it draws the times of Table IV, which are compared"),
    ("fft", "Figure 6", "its total times are the exponents of section IV-A, which are compared;"
     " the figure has no numbers, and the speed of a core is not published"),
    ("fft", "IV-D", "MPI_Vectors and arranging the data oneself take the same time there: both are"
     " copies in memory, which the model does not have apart"),
    ("dash", "Figure 6", "latencies by level of the network are drawn on a logarithmic axis over"
     " six decades, without numbers; `nidmap calibrate` measures them on a machine at hand"),
    ("isx", "Figure 2", "up to 65 % less time with OpenSHMEM than with two-sided MPI is a matter"
     " of what a message costs a core, which no network model has; at 24 and 6,144 ranks the paper"
     " sees no difference, and the model has none anywhere"),
    ("isx", "Figure 4", "Chapel against SHMEM on a machine whose network is not described"),
    ("mpsort", "Figures 1 and 2", "they draw Table 1 and its components without numbers; the shares"
     " that the text states are compared"),
    ("mpsort", "Figure 3", "the module that MP-sort replaced sorts twice and shuffles more; its"
     " times are those of a file system as well, and are projected where they were not measured"),
)  # fmt: skip
