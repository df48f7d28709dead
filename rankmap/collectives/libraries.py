# SPDX-License-Identifier: Apache-2.0
"""Which algorithm an MPI library chooses, by its own rules, with version and source."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

from nidmap.rankmap.collectives import FAMILIES, usual_algorithm

#: Of a call: the number of ranks that a job is below, and from how many bytes on which algorithm is
#: taken.
Rules = dict[str, list[tuple[float, list[tuple[int, str]]]]]

#: Of MPICH: up to this many bytes from rank to rank Bruck's algorithm is taken, up to this many
#: messages are posted some at a time.
BRUCK, SCATTERED = 256, 32768


class Library(NamedTuple):
    """A library's rules for choosing the algorithms of its collectives."""

    name: str  # with the versions whose rules these are
    source: str
    rules: Rules  # see `Rules`; a call that is not listed goes as `usual_algorithm` says

    def choose(self, call: str, size: float, ranks: int) -> str:
        """Return the algorithm; '' if a call has none.

        `call`: ``alltoall``, ``alltoallv`` or a family of `nidmap.rankmap.collectives`. `size`:
        bytes from one rank to one other; of a family as its table there has it.
        """
        if call not in self.rules:
            return usual_algorithm(call, size, ranks) if call in FAMILIES else ""
        steps = next(steps for below, steps in self.rules[call] if ranks < below)
        return steps[bisect_right([least for least, _ in steps], size) - 1][1]


_OPEN_MPI: Rules = {
    "alltoall": [
        (3, [(0, "pairwise"), (32768, "at-once"), (262144, "pairwise")]),
        (8, [(0, "at-once"), (524288, "pairwise"), (1048576, "at-once")]),
        (16, [(0, "at-once")]),
        (32, [(0, "at-once"), (4, "bruck"), (512, "at-once")]),
        (64, [(0, "bruck"), (512, "at-once")]),
        (256, [(0, "bruck"), (1024, "at-once"), (262144, "pairwise")]),
        (512, [(0, "bruck"), (1024, "at-once"), (32768, "pairwise")]),
        (1024, [(0, "bruck"), (512, "at-once"), (262144, "pairwise")]),
        (2048, [(0, "bruck"), (512, "at-once")]),
        (4096, [(0, "bruck"), (1024, "at-once")]),
        (math.inf, [(0, "bruck"), (2048, "at-once")]),
    ],
    "alltoallv": [
        (4, [(0, "pairwise")]),
        (64, [(0, "at-once")]),
        (128, [(0, "pairwise")]),
        (256, [(0, "at-once")]),
        (1024, [(0, "pairwise")]),
        (math.inf, [(0, "at-once")]),
    ],
    # Of a segmented algorithm all segments count as one: the rules state none. A chain of chains
    # counts as one chain, a split binary tree as a binary one.
    "bcast": [
        (4, [(0, "chain"), (32, "binary"), (256, "chain"), (512, "knomial"), (1024, "linear"),
             (32768, "binary"), (131072, "chain"), (262144, "linear"), (524288, "binomial"),
             (1048576, "binary")]),
        (8, [(0, "binary"), (64, "binomial"), (128, "binary"), (2048, "binomial"),
             (8192, "linear"), (1048576, "chain")]),
        (16, [(0, "knomial"), (8, "binary"), (64, "knomial"), (4096, "binary"),
              (16384, "binomial"), (32768, "linear")]),
        (32, [(0, "knomial"), (4096, "binomial"), (1048576, "scatter-doubling")]),
        (64, [(0, "binomial"), (2048, "knomial")]),
        (128, [(0, "knomial")]),
        (256, [(0, "binomial"), (2, "binary"), (16384, "linear"), (32768, "binary"),
               (65536, "knomial")]),
        (1024, [(0, "knomial"), (16384, "binary"), (32768, "knomial")]),
        (2048, [(0, "knomial"), (524288, "scatter-doubling")]),
        (4096, [(0, "knomial"), (262144, "scatter-doubling")]),
        (math.inf, [(0, "knomial"), (8192, "binary"), (16384, "knomial"),
                    (262144, "scatter-doubling")]),
    ],
    "allreduce": [
        (4, [(0, "ring"), (8, "doubling"), (4096, "ring"), (8192, "doubling"), (16384, "ring"),
             (262144, "rabenseifner")]),
        (8, [(0, "ring"), (16, "doubling"), (8192, "rabenseifner")]),
        (16, [(0, "doubling"), (8192, "rabenseifner")]),
        (32, [(0, "ring"), (64, "doubling"), (4096, "rabenseifner")]),
        (64, [(0, "ring"), (128, "rabenseifner")]),
        (128, [(0, "doubling"), (262144, "rabenseifner")]),
        (256, [(0, "reduce-bcast"), (131072, "doubling"), (262144, "rabenseifner")]),
        (512, [(0, "reduce-bcast"), (4096, "rabenseifner")]),
        (2048, [(0, "reduce-bcast"), (2048, "doubling"), (16384, "rabenseifner")]),
        (4096, [(0, "reduce-bcast"), (2048, "ring"), (4096, "doubling"), (16384, "rabenseifner")]),
        (math.inf, [(0, "reduce-bcast"), (2048, "ring"), (16384, "doubling"),
                    (32768, "rabenseifner")]),
    ],
    "reduce": [
        (4, [(0, "rabenseifner"), (8, "binary"), (16, "chain"), (32, "linear"), (262144, "chain"),
             ]),
        (8, [(0, "binary"), (4096, "chain"), (65536, "binomial"), (262144, "linear"),
             (524288, "binomial"), (1048576, "linear")]),
        (16, [(0, "binary"), (8192, "binomial")]),
        (32, [(0, "binary"), (4096, "binomial")]),
        (math.inf, [(0, "binomial")]),
    ],
    "allgather": [
        (32, [(0, "doubling")]),
        (64, [(0, "doubling"), (1024, "neighbour"), (65536, "ring")]),
        (128, [(0, "doubling"), (512, "neighbour"), (65536, "ring")]),
        (256, [(0, "doubling"), (512, "neighbour"), (131072, "ring"), (524288, "neighbour"),
               (1048576, "ring")]),
        (512, [(0, "doubling"), (32, "bruck"), (128, "doubling"), (1024, "neighbour"),
               (131072, "ring"), (524288, "neighbour"), (1048576, "ring")]),
        (1024, [(0, "doubling"), (64, "bruck"), (256, "doubling"), (2048, "neighbour")]),
        (math.inf, [(0, "doubling"), (4096, "neighbour")]),
    ],
    "gather": [
        (4, [(0, "linear"), (4, "binomial"), (32768, "linear"), (65536, "binomial"),
             (131072, "linear")]),
        (8, [(0, "binomial"), (1024, "linear"), (8192, "binomial"), (32768, "linear")]),
        (math.inf, [(0, "binomial")]),
    ],
    "scatter": [
        (4, [(0, "linear")]),
        (8, [(0, "binomial"), (2048, "linear"), (4096, "binomial"), (8192, "linear")]),
        (16, [(0, "binomial"), (16384, "linear")]),
        (32, [(0, "binomial"), (16384, "linear")]),
        (64, [(0, "binomial"), (512, "linear"), (8192, "binomial"), (16384, "linear")]),
        (math.inf, [(0, "binomial"), (512, "linear")]),
    ],
}  # fmt: skip

#: By the library's family.
LIBRARIES = {
    "mpich": Library(
        "MPICH 4.2",
        "maint/tuning/coll/mpir/generic.json of MPICH 4.2.3; R. Thakur, R. Rabenseifner and"
        " W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005",
        {
            "alltoall": [
                (8, [(0, "scattered"), (SCATTERED + 1, "pairwise")]),
                (math.inf, [(0, "bruck"), (BRUCK + 1, "scattered"), (SCATTERED + 1, "pairwise")]),
            ],
            "alltoallv": [(math.inf, [(0, "at-once")])],
        },
    ),
    "openmpi": Library(
        "Open MPI 4.1 to 5.0",
        "ompi/mca/coll/tuned/coll_tuned_decision_fixed.c, the same in Open MPI 4.1.0 to 5.0.9;"
        " before 4.1 and with coll_han other rules hold",
        _OPEN_MPI,
    ),
}


def other_library(library: str) -> str:
    """Return the alternative library to consider if version and tuning are unknown."""
    return next(name for name in LIBRARIES if name != library)


def library_of(mpi: str) -> str:
    """Return the family of a site's MPI: MPICH's, unless its name contains Open MPI.

    Cray's MPI, Intel MPI and MVAPICH descend from MPICH.
    """
    plain = mpi.lower().replace(" ", "").replace("-", "")
    return "openmpi" if "openmpi" in plain else "mpich"
