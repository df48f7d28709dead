# SPDX-License-Identifier: Apache-2.0
"""Splitters: the keys that separate the ranks' shares, and how many items lie below each.

Two ways to the same bounds C1 and C2 (Feng et al. 2015, Definition 3: items
with keys below a splitter, and not above it):

- `histogram`: every round puts many probes at once to each splitter, drawn
  from the items that can still be it, and counts them all in one Allreduce.
  Three or four rounds settle any data, skewed or not, since the probes follow
  the items and not the key space.
- `bisection`: the paper's own (2.2.2 and 3.1): one probe per splitter and round,
  half way in the key space, two (P+1)-long Allreduces and one of a boolean,
  as many rounds as the keys have bits.

Splitters alone do not say where items with equal keys go. The layout solver
takes them from the lower ranks first, which is the second of the paper's two
conditions of stability. Source: Feng, Straka, Di Matteo, Croft, "MP-sort:
Sorting at Scale on Blue Waters" (2015), 2.2.3, Algorithms 2 and 3.

One correction to the paper is built in. Its Definition 1 makes the cumulative
distribution exclusive, N^c[p] = sum of n_q over q < p. Algorithm 3 compares
sum_p L[i, p] with N^c[i], and L[i, p] is the *end* of what rank p sends to
rank i (Definition 4: it sends L[i-1, p] up to L[i, p]), so that there N^c[i]
must count rank i's own items too: it is the inclusive sum here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.support.array_types import Ints
from nidmap.workloads.sort.ranks import Ranks

Keys = NDArray[np.uint64]
Side = Literal["left", "right"]
_SIDES: tuple[Side, Side] = ("left", "right")

#: Probes of one round over all splitters, and at least this many a splitter.
PROBES, LEAST = 1 << 15, 16

#: Most probes a splitter gets in one round.
MOST = 512


@dataclass(frozen=True, slots=True)
class Bounds:
    """The result of a search, for this rank."""

    # lower, upper: (P,), C1 and C2: of this rank's sorted items, how many have keys below, and not
    # above, the splitter at the end of each rank's share
    lower: Ints
    upper: Ints
    rounds: int  # rounds of communication


def histogram(ranks: Ranks, keys: Keys, ends: Ints) -> Bounds:
    """Find the bounds in rounds with many probes each.

    A round costs an Exscan, an Allgatherv of the probes and an Allreduce of
    their counts. The items that can still be a splitter shrink by about half
    the number of probes a round; no probed key is asked about twice, so that
    the search ends on any data.

    `keys` (n,): the sorted items' keys on this rank, contiguous. `ends` (P,): N^c, inclusive:
    where each rank's share of the result ends.
    """
    lower, upper, rounds = np.zeros(len(ends), np.int64), np.full(len(ends), len(keys)), 0
    below, above = ranks.total(np.stack([lower, upper]))
    while len(left := np.flatnonzero((below < ends) & (ends < above))):
        rounds += 1
        values, owner = _round_probes(ranks, keys, lower[left], upper[left], (above - below)[left])
        owner = left[owner]
        first, last = (
            np.clip(np.searchsorted(keys, values, side), lower[owner], upper[owner])
            for side in _SIDES
        )
        sums = ranks.total(np.stack([first, last]))
        hit = (sums[0] <= ends[owner]) & (ends[owner] <= sums[1])
        low, high = sums[1] < ends[owner], sums[0] > ends[owner]
        for bound, passed in ((lower, last), (below, sums[1])):
            np.maximum.at(bound, owner[low], passed[low])
        for bound, passed in ((upper, first), (above, sums[0])):
            np.minimum.at(bound, owner[high], passed[high])
        lower[owner[hit]], upper[owner[hit]] = first[hit], last[hit]
        below[owner[hit]] = above[owner[hit]] = ends[owner[hit]]
    return Bounds(lower, upper, rounds)


def _round_probes(
    ranks: Ranks, keys: Keys, lower: Ints, upper: Ints, open_: Ints
) -> tuple[Keys, Ints]:
    """Return the probes of one round and each one's splitter, equal on all ranks.

    For each splitter, its open items on all ranks are seen as one row, rank
    after rank, and m of them are taken at equal distances; all where few are.
    """
    most = min(MOST, max(LEAST, PROBES // len(open_)))
    m = np.minimum(open_, most)
    mine = upper - lower
    before = ranks.before(np.ascontiguousarray(mine))
    first = -(-2 * m * before // open_) // 2
    last = -(-2 * m * (before + mine) // open_) // 2
    taken = last - first
    splitter = np.repeat(np.arange(len(m)), taken)
    nth = np.arange(len(splitter)) - np.repeat(np.cumsum(taken) - taken, taken) + first[splitter]
    at = (2 * nth + 1) * open_[splitter] // (2 * m[splitter]) - before[splitter] + lower[splitter]
    kind = np.dtype([("owner", np.int64), ("value", np.uint64)])
    proposed = np.empty(len(splitter), kind)
    proposed["owner"], proposed["value"] = splitter, keys[at]
    heard = ranks.collect(proposed)
    heard = heard[np.lexsort((heard["value"], heard["owner"]))]
    values, owner = np.ascontiguousarray(heard["value"]), np.ascontiguousarray(heard["owner"])
    new = np.ones(len(values), np.bool_)
    new[1:] = (values[1:] != values[:-1]) | (owner[1:] != owner[:-1])
    return values[new], owner[new]


def bisection(ranks: Ranks, keys: Keys, ends: Ints) -> Bounds:
    """Find the bounds by halving the key space, as the paper does; see `histogram`."""
    least, most = _key_extent(ranks, keys)
    low, high = np.full(len(ends), least), np.full(len(ends), most)
    rounds = 0
    while True:
        rounds += 1
        middle = low + ((high - low) >> np.uint64(1))
        lower, upper = (np.searchsorted(keys, middle, side) for side in _SIDES)
        # the paper's E[0] is before each bound: below it there is nothing
        below, above = (ranks.total(np.append(0, bound))[1:] for bound in (lower, upper))
        good = (below <= ends) & (ends <= above)
        if ranks.all(bool(good.all())):
            return Bounds(lower, upper, rounds)
        # Too few items up to the key: it lies above; too many below it: it lies below.
        short, far = ~good & (above < ends), ~good & (below > ends)
        low[short] = middle[short] + np.uint64(1)
        high[far] = middle[far] - np.uint64(1)


def _key_extent(ranks: Ranks, keys: Keys) -> tuple[np.uint64, np.uint64]:
    """Return the smallest and largest key over all ranks, or equal values for none."""
    low, high = (keys[0], keys[-1]) if len(keys) else (np.uint64(2**64 - 1), np.uint64(0))
    # One reduction for both: the largest key is the complement of the least complement.
    low, far = ranks.least(np.array([low, ~high], np.uint64))
    high = ~far
    return min(low, high), high


def layout_row(lower: Ints, upper: Ints, end: int) -> Ints:
    """Solve one row of the layout: Algorithm 3, its loop over p as a cumulative sum.

    `lower`, `upper` (P,): C1[i, :] and C2[i, :]. `end`: N^c[i], inclusive: items of ranks 0 to i
    of the result. Returns (P,): L[i, :].
    """
    room = upper - lower
    # All keys below the splitter go before the end; of those equal to it the ranks give in turn,
    # the first as many as it has, until the row sums to N^c.
    wanted = end - int(lower.sum())
    solved: Ints = lower + np.clip(wanted - (np.cumsum(room) - room), 0, room)
    return solved


def solve_layout(ranks: Ranks, lower: Ints, upper: Ints, ends: Ints) -> Ints:
    """Return this rank's column of the layout, solving the rows in parallel.

    Collective: one Alltoall hands rank i the i-th row of C1 and C2, one hands
    the solved rows back.

    `lower`, `upper` (P,): C1[:, p] and C2[:, p] of this rank p. `ends` (P,): N^c, inclusive.
    Returns (P,): L[:, p].
    """
    both = ranks.swap(np.ascontiguousarray(np.stack([lower, upper], axis=1)))
    mine = layout_row(both[:, 0], both[:, 1], int(ends[ranks.rank]))
    return ranks.swap(mine)


def counts_to_send(ends: Ints) -> Ints:
    """Return how many items this rank sends to each, from its column of the layout."""
    return np.diff(ends, prepend=0)
