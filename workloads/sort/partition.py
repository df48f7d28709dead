"""A whole sort on many ranks: local sort, splitters, layout, one exchange, final merge.

Algorithm 1 of Feng, Straka, Di Matteo and Croft (2015). Works on `Ranks`
only; `workloads.sort.api` checks what users give and calls `run`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from workloads.sort.keys import words_of
from workloads.sort.local import RUNS, flat, gather, gather_last, order, short, sort_keys
from workloads.sort.splitters import bisection, counts_to_send, histogram, solve_layout
from workloads.words import check_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.support.array_types import Array, Ints
    from workloads.sort.keys import Fields, Word
    from workloads.sort.ranks import Ranks

    Stopwatch = Callable[[str], AbstractContextManager[None]]

__all__ = ["EXCHANGES", "FINALS", "SPLITTERS", "Job", "Plan", "Seen", "run"]

SPLITTERS = {"histogram": histogram, "bisection": bisection}
EXCHANGES = ("auto", "alltoallv", "sparse")
FINALS = ("auto", "merge", "sort")

#: Below this share of messages that hold anything, they are sent one by one.
SPARSE = 0.25


@dataclass(frozen=True, slots=True)
class Plan:
    """How to sort; the same on all ranks. See `workloads.sort.mpsort`."""

    stable: bool = True
    splitters: str = "histogram"
    exchange: str = "auto"
    final: str = "auto"
    algorithm: str = "mpsort"

    def check(self) -> None:
        """Raise a UsageError where one of the words is unknown."""
        check_word("splitters", self.splitters, SPLITTERS)
        check_word("exchange", self.exchange, EXCHANGES)
        check_word("final", self.final, FINALS)
        check_word("algorithm", self.algorithm, ("mpsort", "mergesort"))


@dataclass(slots=True)
class Job:
    """Items with their keys.

    Attributes
    ----------
    items : (n, ...)
    words : list of integer arrays (n,)
        The keys, most significant word first.
    fields : tuple of str or None
        The fields of `items` that the keys are (none: the items themselves);
        None where the keys are apart and must be sent along.
    """

    items: Array
    words: list[Word]
    fields: Fields | None

    @property
    def plain(self) -> bool:
        """Whether the items are their own keys and nothing else."""
        return self.fields == ()


@dataclass(slots=True)
class Seen:
    """What a sort did, for who wants to know.

    Attributes
    ----------
    rounds : int
        Rounds of the search for splitters, over all levels of a merge sort.
    sent : int64 (P,)
        Items that this rank sent to each rank (of its group) in the last exchange.
    moved : int
        Items that this rank sent to other ranks in all exchanges.
    sparse : bool
        Whether the last exchange went point to point.
    """

    rounds: int = 0
    sent: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    moved: int = 0
    sparse: bool = False


def run(
    ranks: Ranks,
    job: Job,
    brought: Ints,
    counts: Ints,
    plan: Plan,
    phases: Stopwatch | None = None,
    seen: Seen | None = None,
) -> Array:
    """Sort a job whose arguments are known to be right; see `workloads.sort.mpsort`.

    Parameters
    ----------
    ranks : Ranks
    job : Job
    brought, counts : int64 (P,)
        Items that each rank has and will have.
    plan : Plan
    phases : callable or None
    seen : Seen or None
        Filled in.
    """
    watch: Stopwatch = phases or (lambda name: nullcontext())
    seen = seen or Seen()
    dtype, plain = job.items.dtype, job.plain
    with watch("LocalSort1"):
        mine = _sorted_here(job)
    job.items, job.words = job.items[:0].copy(), []  # a copy, where the user's did not lie in a row
    if plan.algorithm == "mergesort":
        out = _merge_all(ranks, mine, brought, counts, plan, watch, seen).items
    else:
        out = _partition(ranks, mine, counts, plan, watch, seen, last=True).items
    return out.byteswap(inplace=True).view(dtype) if plain and not dtype.isnative else out


def _merge_all(
    ranks: Ranks, job: Job, brought: Ints, counts: Ints, plan: Plan, watch: Stopwatch, seen: Seen
) -> Job:
    """Merge locally sorted items up a binary tree: the baseline that MP-sort replaced.

    At level k every two neighbouring groups of 2^(k-1) ranks, each holding a
    sorted sequence, become one. All items move at every level, so that the
    network carries them log2(P) times where MP-sort does once: the paper's
    O(N log N) against O(N) (3.3). Until the last level every rank keeps as
    many items as it brought; there it gets what it was promised.
    """
    top = (ranks.size - 1).bit_length()
    for level in range(1, top + 1):
        first = (ranks.rank >> level) << level
        share = (counts if level == top else brought)[first : first + (1 << level)]
        group = ranks.part(ranks.rank >> level)
        job = _partition(group, job, share, plan, watch, seen, last=level == top)
        group.free()
    return job


def _sorted_here(job: Job) -> Job:
    """Return the job with its items in the order of their keys; a copy.

    Items that are their own keys are in native byte order from here on.
    """
    if job.plain:
        keys = job.items.astype(job.items.dtype.newbyteorder("="))
        sort_keys(keys)
        return Job(keys, [keys], ())
    return _put_in_order(job, 0)


def _put_in_order(job: Job, runs: int, last: bool = False) -> Job:
    """Return the job in stable order, its own arrays given up on the way.

    Keys that are apart are left out where this is the last order.
    """
    size = job.items[:1].nbytes
    places = order(job.words, 0 if size <= 8 else runs)  # a merge would take more than such items
    apart = []
    if job.fields is None:
        places = short(places)
        apart = [] if last else [gather(word, places) for word in job.words]
    elif 8 < size <= 16:
        places = short(places)  # for short items the memory of the places counts
    shape, dtype = job.items.shape, job.items.dtype
    job.words = []
    out = gather_last(flat(job.items), places).view(dtype).reshape(shape)
    return Job(out, apart if job.fields is None else words_of(out, job.fields), job.fields)


def _partition(
    ranks: Ranks,
    job: Job,
    counts: Ints,
    plan: Plan,
    watch: Stopwatch,
    seen: Seen,
    *,
    last: bool = False,
) -> Job:
    """Part locally sorted items among the ranks, exchange and merge them.

    Parameters
    ----------
    ranks : Ranks
    job : Job
        Locally sorted; taken apart on the way, to free its memory.
    counts : int64 (P,)
        Items that each rank gets.
    plan, watch, seen
        See `run`.
    last : bool
        Whether nobody needs the keys afterwards.
    """
    if ranks.size == 1:
        seen.sent = counts
        return job
    ends = np.cumsum(counts)
    with watch("FindEdges"):
        found = SPLITTERS[plan.splitters](ranks, job.words, ends)
    with watch("SolveLayout"):
        send = counts_to_send(solve_layout(ranks, found.lower, found.upper, ends))
    with watch("Exchange"):
        receive = ranks.swap(send)
        seen.rounds += found.rounds
        arrived = _exchange(ranks, job, send, receive, plan, seen)
    with watch("LocalSort2"):
        return _merge_runs(arrived, receive, plan, last)


def _exchange(ranks: Ranks, job: Job, send: Ints, receive: Ints, plan: Plan, seen: Seen) -> Job:
    """Send every item to its rank; keys that are apart follow, once the items are freed."""
    seen.sent, seen.moved = send, seen.moved + int(send.sum() - send[ranks.rank])
    seen.sparse = _sparse(ranks, send, receive, plan.exchange)
    move = ranks.sparse if seen.sparse else ranks.alltoallv
    apart = job.words if job.fields is None else []
    job.words = []
    out = _room(job.items, receive)
    move(flat(job.items), send, flat(out), receive)
    job.items = job.items[:0].copy()
    if job.fields is not None:
        return Job(out, words_of(out, job.fields), job.fields)
    words = []
    while apart:
        word = np.ascontiguousarray(apart.pop(0))
        words.append(_room(word, receive))
        move(word, send, words[-1], receive)
    return Job(out, words, None)


def _room(items: Array, receive: Ints) -> Array:
    return np.empty((int(receive.sum()), *items.shape[1:]), items.dtype)


def _sparse(ranks: Ranks, send: Ints, receive: Ints, exchange: str) -> bool:
    """Tell whether messages go one by one; the same on all ranks."""
    if exchange == "sparse":
        return True
    busy = np.array([np.count_nonzero(send), int(not ranks.fits(send, receive))], np.int64)
    full, over = ranks.total(busy)
    if over or exchange == "alltoallv":
        return bool(over)
    return bool(full < SPARSE * ranks.size**2)


def _merge_runs(job: Job, receive: Ints, plan: Plan, last: bool) -> Job:
    """Return what arrived, one sorted run a rank, as one sorted run."""
    runs = int(np.count_nonzero(receive))
    if runs < 2:
        return job
    if plan.final == "sort" or (plan.final == "auto" and runs > RUNS):
        runs = 0
    elif plan.final == "merge":
        runs = min(runs, RUNS)
    if not job.plain:
        return _put_in_order(job, runs, last)
    sort_keys(job.items, runs)
    return job
