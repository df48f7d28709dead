# SPDX-License-Identifier: Apache-2.0
"""Search effort: the parameters of the search, and the measurements they come from.

All were found on the graphs of `benchmarks.mappers` (4,096 and 65,536 ranks on trees,
plane and cube neighbourhoods, scale-free, weighted grids) and on tori: the least J in
the time that the fastest good peer takes, about a second for 4,096 ranks. Work is
counted in looks at an edge, never in seconds, so the same question has the same answer
on any machine.
"""

from __future__ import annotations

#: Work for this many ranks, and the powers of the ranks with which it is more for more of them,
#: and less for fewer.
WORK, RANKS, MORE, LESS = 1.6e8, 4096, 0.65, 0.35

#: Work that is done in a second, about, and the power of the ranks with which it is less for
#: more of them, which do not fit in a cache.
A_SECOND, CACHED = 2.0e8, 0.15

#: The least effort that a graph is worth mapping with.
LEAST_EFFORT = 0.1

#: Part of the work for the beginning (bisection), on a torus and elsewhere; the rest places ranks
#: anew, and that much of all work always does.
TORUS_BEGINNING, BEGINNING, ALWAYS = 0.7, 0.6, 0.1

#: Average number of times that ranks are placed again, at most.
MOST_ANEW = 40.0

#: Number of nodes up to which all distances are considered when cutting.
MOST_PULLING = 2048

#: Nodes, and entries of the table of costs, that are improved in one go.
MOST_NODES, MOST_ENTRIES = 256, 1 << 22

#: Ranks up to which several beginnings are tried, and how many of up to 16 and of more.
FEW, STARTS, STARTS_OF_MORE = 256, 32, 8

#: Without numba: entries of the table of costs that a second is enough for, and the most and the
#: fewest rounds of swaps.
ENTRIES_A_SECOND, MOST_ROUNDS, FEWEST_ROUNDS = 2.5e7, 60, 4


def total_work(ranks: int) -> float:
    """Return the work spent on a graph of this many ranks."""
    return float(WORK * (ranks / RANKS) ** (MORE if ranks > RANKS else LESS))


def seconds_for(ranks: int) -> float:
    """Return the approximate seconds for mapping this many ranks."""
    return total_work(ranks) / A_SECOND * float(max(1.0, ranks / RANKS) ** CACHED)
