"""Splitters: the keys that part what each rank will get, and how many items lie below them.

Two ways to the same bounds C1 and C2 (Feng et al. 2015, Definition 3: items
with keys below a splitter, and not above it):

- `histogram`: every round puts many probes at once to each splitter, drawn
  from the items that can still be it, and counts them all in one Allreduce.
  Three or four rounds settle any data, skewed or not, since the probes follow
  the items and not the key space.
- `bisection`: the paper's own (2.2.2 and 3.1): one probe a splitter and round,
  half way in the key space, two (P+1)-long Allreduces and one of a boolean,
  as many rounds as the keys have bits.

A key may have several words (128 bits are two): the first word is settled
first; a splitter that falls among equal words goes on with the next one,
inside the run of equal words.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from placement.support.array_types import Ints
from workloads.sort.ranks import Ranks

__all__ = ["Bounds", "bisection", "counts_to_send", "histogram", "layout_row", "solve_layout"]

Word = NDArray[Any]
Side = Literal["left", "right"]

#: Probes of one round over all splitters, and at least this many a splitter.
PROBES, LEAST = 1 << 15, 16

#: Most probes a splitter gets in one round.
MOST = 512


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a search found, for this rank.

    Attributes
    ----------
    lower, upper : int64 (P,)
        C1 and C2: of this rank's sorted items, how many have keys below, and
        not above, the splitter at the end of each rank's share.
    rounds : int
        Rounds of communication.
    """

    lower: Ints
    upper: Ints
    rounds: int


def histogram(ranks: Ranks, words: Sequence[Word], ends: Ints) -> Bounds:
    """Find the bounds by rounds of many probes.

    Parameters
    ----------
    ranks : Ranks
    words : sequence of integer arrays (n,)
        The sorted items' keys on this rank, most significant word first.
    ends : int64 (P,)
        N^c, inclusive: where each rank's share of the result ends.

    Returns
    -------
    Bounds

    Notes
    -----
    A round costs an Exscan, an Allgatherv of the probes and an Allreduce of
    their counts. The items that can still be a splitter shrink by about half
    the number of probes a round; no probed key is asked about twice, so that
    the search ends on any data.
    """
    return _by_words(ranks, words, ends, _probe_word)


def bisection(ranks: Ranks, words: Sequence[Word], ends: Ints) -> Bounds:
    """Find the bounds by halving the key space, as the paper does; see `histogram`."""
    return _by_words(ranks, words, ends, _halve_word)


def _by_words(
    ranks: Ranks, words: Sequence[Word], ends: Ints, search: Callable[..., Bounds]
) -> Bounds:
    """Search word after word; each goes on where the one before left ties to part."""
    count = len(words[0])
    begin, end = np.zeros(len(ends), np.int64), np.full(len(ends), count, np.int64)
    rounds, left = 0, np.arange(len(ends))
    for depth, word in enumerate(words):
        found = search(ranks, word, begin[left], end[left], ends[left], depth == 0)
        begin[left], end[left] = found.lower, found.upper
        rounds += found.rounds
        below, above = ranks.total(np.stack([begin, end]))
        left = np.flatnonzero((below < ends) & (ends < above))
        if not len(left):
            break
    return Bounds(begin, end, rounds)


def _probe_word(
    ranks: Ranks, word: Word, begin: Ints, end: Ints, target: Ints, whole: bool
) -> Bounds:
    """Search one word by many probes a round."""
    lower, upper, rounds = begin.copy(), end.copy(), 0
    below, above = ranks.total(np.stack([lower, upper]))
    while len(left := np.flatnonzero((below < target) & (target < above))):
        rounds += 1
        values, owner = _probes(ranks, word, lower[left], upper[left], (above - below)[left])
        owner = left[owner]
        first = _places(word, lower[owner], upper[owner], values, "left", whole)
        last = _places(word, lower[owner], upper[owner], values, "right", whole)
        sums = ranks.total(np.stack([first, last]))
        hit = (sums[0] <= target[owner]) & (target[owner] <= sums[1])
        low, high = sums[1] < target[owner], sums[0] > target[owner]
        for bound, found in ((lower, last), (below, sums[1])):
            np.maximum.at(bound, owner[low], found[low])
        for bound, found in ((upper, first), (above, sums[0])):
            np.minimum.at(bound, owner[high], found[high])
        lower[owner[hit]], upper[owner[hit]] = first[hit], last[hit]
        below[owner[hit]] = above[owner[hit]] = target[owner[hit]]
    return Bounds(lower, upper, rounds)


def _probes(ranks: Ranks, word: Word, lower: Ints, upper: Ints, open_: Ints) -> tuple[Word, Ints]:
    """Return the probes of one round and the splitter of each, the same on all ranks.

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
    kind = np.dtype([("owner", np.int64), ("value", word.dtype.newbyteorder("="))])
    said = np.empty(len(splitter), kind)
    said["owner"], said["value"] = splitter, word[at]
    heard = ranks.collect(said)
    heard = heard[np.lexsort((heard["value"], heard["owner"]))]
    values, owner = np.ascontiguousarray(heard["value"]), np.ascontiguousarray(heard["owner"])
    new = np.ones(len(values), np.bool_)
    new[1:] = (values[1:] != values[:-1]) | (owner[1:] != owner[:-1])
    return values[new], owner[new]


def _places(word: Word, begin: Ints, end: Ints, values: Word, side: Side, whole: bool) -> Ints:
    """Return how many items come before each value (`side` left) or not after it (right).

    Each value is looked for in its own stretch [begin, end) of the sorted
    items. Where the whole array is sorted by this word, contiguous and in
    native byte order, numpy's own search does it, without a copy.
    """
    if whole and word.flags.c_contiguous and word.dtype.isnative:
        return np.clip(np.searchsorted(word, values, side), begin, end)
    low, high = begin.copy(), end.copy()
    top = max(len(word) - 1, 0)
    while (open_ := low < high).any():
        middle = (low + high) >> 1
        probed = word[np.minimum(middle, top)]
        right = (probed < values) if side == "left" else (probed <= values)
        low = np.where(open_ & right, middle + 1, low)
        high = np.where(open_ & ~right, middle, high)
    return low


def _halve_word(
    ranks: Ranks, word: Word, begin: Ints, end: Ints, target: Ints, whole: bool
) -> Bounds:
    """Search one word by one probe a round, half way in the key space."""
    low, high = _extent(ranks, word, begin, end)
    lower, upper, rounds = begin.copy(), end.copy(), 0
    while True:
        rounds += 1
        middle = low + ((high - low) >> np.uint64(1))
        probe = decode(middle, word.dtype)
        lower = _places(word, begin, end, probe, "left", whole)
        upper = _places(word, begin, end, probe, "right", whole)
        # the paper's E[0] stands before each bound: below it there is nothing
        below, above = (ranks.total(np.append(0, bound))[1:] for bound in (lower, upper))
        good = (below <= target) & (target <= above)
        if ranks.all(bool(good.all())):
            return Bounds(lower, upper, rounds)
        short, far = ~good & (above < target), ~good & (below > target)
        low[short] = middle[short] + np.uint64(1)
        high[far] = middle[far] - np.uint64(1)


def _extent(
    ranks: Ranks, word: Word, begin: Ints, end: Ints
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the smallest and largest code over all ranks in each splitter's stretch.

    The first word's stretches are sorted; a later one's are too, being runs
    of equal earlier words.
    """
    some = begin < end
    top = max(len(word) - 1, 0)
    low, high = np.full(len(begin), 2**64 - 1, np.uint64), np.zeros(len(begin), np.uint64)
    if len(word):
        low[some] = encode(word[np.minimum(begin, top)])[some]
        high[some] = encode(word[np.clip(end - 1, 0, top)])[some]
    low, far = ranks.least(np.stack([low, ~high]))
    high = ~far
    empty = low > high
    low[empty] = high[empty]
    return low, high


def encode(values: Word) -> NDArray[np.uint64]:
    """Return integers as uint64 codes of the same order.

    Examples
    --------
    >>> encode(np.array([-1, 0], np.int8)).tolist()
    [127, 128]
    """
    codes = values.astype(np.uint64)
    if values.dtype.kind == "i":
        codes += np.uint64(1) << np.uint64(8 * values.dtype.itemsize - 1)
        if values.dtype.itemsize < 8:
            codes &= np.uint64((1 << 8 * values.dtype.itemsize) - 1)
    return codes


def decode(codes: NDArray[np.uint64], dtype: np.dtype[Any]) -> Word:
    """Return the integers that `encode` gave these codes.

    Examples
    --------
    >>> decode(encode(np.array([-128, 5], np.int8)), np.dtype(np.int8)).tolist()
    [-128, 5]
    """
    if dtype.kind == "i":
        codes = codes - (np.uint64(1) << np.uint64(8 * dtype.itemsize - 1))
    return codes.astype(dtype)


def layout_row(lower: Ints, upper: Ints, end: int) -> Ints:
    """Solve one row of the layout: Algorithm 3, its loop over p as a cumulative sum.

    Parameters
    ----------
    lower, upper : int64 (P,)
        C1[i, :] and C2[i, :].
    end : int
        N^c[i], inclusive: items of ranks 0 to i of the result.

    Returns
    -------
    int64 (P,)
        L[i, :].

    Examples
    --------
    >>> layout_row(np.array([0, 0, 0]), np.array([2, 2, 2]), 3)
    array([2, 1, 0])
    """
    room = upper - lower
    wanted = end - int(lower.sum())
    solved: Ints = lower + np.clip(wanted - (np.cumsum(room) - room), 0, room)
    return solved


def solve_layout(ranks: Ranks, lower: Ints, upper: Ints, ends: Ints) -> Ints:
    """Return this rank's column of the layout, the rows being solved in parallel.

    Collective: one Alltoall hands rank i the i-th row of C1 and C2, one hands
    the solved rows back.

    Parameters
    ----------
    ranks : Ranks
    lower, upper : int64 (P,)
        C1[:, p] and C2[:, p] of this rank p.
    ends : int64 (P,)
        N^c, inclusive.

    Returns
    -------
    int64 (P,)
        L[:, p].
    """
    both = ranks.swap(np.ascontiguousarray(np.stack([lower, upper], axis=1)))
    mine = layout_row(both[:, 0], both[:, 1], int(ends[ranks.rank]))
    return ranks.swap(mine)


def counts_to_send(ends: Ints) -> Ints:
    """Return how many items this rank sends to each, from its column of the layout.

    Examples
    --------
    >>> counts_to_send(np.array([2, 2, 5]))
    array([2, 0, 3])
    """
    return np.diff(ends, prepend=0)
