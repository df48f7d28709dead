"""A whole sort on many ranks: local sort, splitters, layout, one exchange, final merge.

Algorithm 1 of Feng, Straka, Di Matteo and Croft (2015). `mpsort` is the call
for users' own data: it checks what they give and calls `run`, which works on
`Ranks` only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from placement.errors import UsageError
from placement.support.array_types import Array, Ints
from workloads.sort.keys import Fields, Key, Word, checked_items, key_words, words_of
from workloads.sort.local import RUNS, flat, gather, gather_last, order, short, sort_keys
from workloads.sort.ranks import Ranks
from workloads.sort.splitters import bisection, counts_to_send, histogram, solve_layout
from workloads.words import check_word
from workloads.world import Comm, same, together, world

__all__ = ["EXCHANGES", "FINALS", "SPLITTERS", "KeyedItems", "Seen", "SortPlan", "mpsort", "run"]

Stopwatch = Callable[[str], AbstractContextManager[object]]

SPLITTERS = {"histogram": histogram, "bisection": bisection}
EXCHANGES = ("auto", "alltoallv", "sparse")
FINALS = ("auto", "merge", "sort")

#: Below this share of messages that hold anything, they are sent one by one.
SPARSE = 0.25


@dataclass(frozen=True, slots=True)
class SortPlan:
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
class KeyedItems:
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
    watch : callable
        Times its phases; see `mpsort`.
    """

    rounds: int = 0
    sent: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    moved: int = 0
    sparse: bool = False
    watch: Stopwatch = nullcontext


def mpsort(
    items: ArrayLike,
    key: Key = None,
    comm: Comm | None = None,
    out_counts: int | Sequence[int] | Ints | None = None,
    *,
    stable: bool = True,
    splitters: str = "histogram",
    exchange: str = "auto",
    final: str = "auto",
    algorithm: str = "mpsort",
    phases: Stopwatch | None = None,
) -> Array:
    """Sort items that lie on many ranks and return this rank's share of the sorted whole.

    Collective over `comm`. Rank 0 gets the items with the smallest keys.

    Parameters
    ----------
    items : array_like (n, ...)
        This rank's items, one a row; any dtype without Python objects; n may
        differ from rank to rank and be 0. Left as they are.
    key : str, sequence of str, array, callable or None
        What the items are sorted by, whole numbers of 8 to 64 bits, signed or
        not: a field of a structured dtype; several fields, the most
        significant first (two of 64 bits are a 128-bit key); an array with
        one key an item (two columns or two fields: 128 bits), which is sent
        along; a function that is given all of this rank's items once and
        returns such an array. None: the items are whole numbers, or
        structures of them, and their own keys. Keys may repeat.
    comm : mpi4py.MPI.Intracomm or None
        None: MPI.COMM_WORLD.
    out_counts : int, sequence of int or None
        How many items this rank gets (int), or each rank (sequence of
        comm.size, the same on all ranks). None: as many as it brought.
    stable : bool
        Whether items with equal keys keep their order (first that of the
        ranks, then that on a rank). The packed local order is stable at no
        cost, so that False, which promises nothing, only lets the final sort
        be numpy's unstable one.
    splitters : {"histogram", "bisection"}
        Many probes a round (three or four rounds), or the paper's one probe a
        bit; see `workloads.sort.splitters`.
    exchange : {"auto", "alltoallv", "sparse"}
        One MPI_Alltoallv, or point-to-point messages, none of them empty.
        auto: sparse where less than a quarter of the messages would hold
        anything, or where MPI's counts are too small for them.
    final : {"auto", "merge", "sort"}
        Whether what arrives is merged, being one sorted run a rank, or
        sorted anew as the paper does. auto: merged up to 4 runs, of items of
        more than 8 bytes or that are their own keys.
    algorithm : {"mpsort", "mergesort"}
        "mergesort": the distributed merge sort that MP-sort replaced, in
        which all items move log2(P) times.
    phases : callable or None
        Called with ``LocalSort1``, ``FindEdges``, ``SolveLayout``,
        ``Exchange`` and ``LocalSort2``, the paper's names; returns a context
        manager (see `workloads.phases.Phases`).

    Returns
    -------
    ndarray (out_counts[rank], ...)
        Of the items' dtype.

    Raises
    ------
    UsageError
        On every rank alike: keys that are not whole numbers (NaN among them
        or not), Python objects, counts that do not add up, arguments that
        differ from rank to rank.

    Notes
    -----
    Memory: at most 3.5 times the larger of what the rank brought and gets,
    the caller's own items counted as one, and keys that are given apart from
    the items or made by a function as part of them. Measured with 64 MB a
    rank: 3.0 to 3.3 for whole numbers of 8 to 64 bits in either byte order,
    128-bit keys, and structured items of 8 to 64 bytes (4-byte keys with 4
    bytes of payload among them). Structured items of fewer than 8 bytes take
    more, each being ordered by a word of 8: 4.3 for 6 bytes, 5.2 for 4, 7.0
    for 2. MPI's own buffers (a few MB) are not counted.

    Every item crosses the network at most once (Feng et al. 2015, Algorithm 1).

    Examples
    --------
    On one rank, with a world of its own (needs MPI)::

        >>> mpsort(np.array([3, 1, 2]))                        # doctest: +SKIP
        array([1, 2, 3])
    """
    comm = world() if comm is None else comm
    ranks = Ranks(comm)
    plan = SortPlan(stable, splitters, exchange, final, algorithm)
    with together(comm):
        plan.check()
        given = checked_items(items)
        words, fields = key_words(given, key)
        mine = _counts(out_counts, comm.Get_size())
    same(
        comm,
        items=(given.dtype.descr, given.shape[1:]),
        key=(fields, [word.dtype.str for word in words]),
        out_counts="int" if isinstance(mine, int) else None if mine is None else mine.tolist(),
        plan=plan,
    )
    brought = ranks.share(np.array(len(given)))
    counts = ranks.share(np.array(mine)) if isinstance(mine, int) else mine
    counts = brought if counts is None else counts
    with together(comm):
        if counts.sum() != brought.sum():
            raise UsageError(
                f"out_counts add up to {counts.sum()}, but there are {brought.sum()} items"
            )
    job = KeyedItems(given, words, fields)
    del given, words  # the job gives them up when it can
    return run(ranks, job, brought, counts, plan, Seen(watch=phases or nullcontext))


def _counts(given: Any, size: int) -> int | Ints | None:
    """Return `out_counts` as an int (this rank's), an array (all ranks') or None."""
    if given is None:
        return None
    counts = np.asarray(given)
    if counts.dtype.kind not in "iu":
        raise UsageError("out_counts are not whole numbers")
    if counts.ndim and counts.shape != (size,):
        raise UsageError(f"out_counts has shape {counts.shape}", f"one for each of {size} ranks")
    if counts.size and counts.min() < 0:
        raise UsageError(f"out_counts holds {counts.min()}, fewer than no items")
    return counts.astype(np.int64) if counts.ndim else int(counts)


def run(
    ranks: Ranks,
    job: KeyedItems,
    brought: Ints,
    counts: Ints,
    plan: SortPlan,
    seen: Seen | None = None,
) -> Array:
    """Sort a job whose arguments are known to be right; see `mpsort`.

    Parameters
    ----------
    ranks : Ranks
    job : KeyedItems
    brought, counts : int64 (P,)
        Items that each rank has and will have.
    plan : SortPlan
    seen : Seen or None
        Filled in.
    """
    seen = seen or Seen()
    dtype, plain = job.items.dtype, job.plain
    with seen.watch("LocalSort1"):
        mine = _sorted_here(job)
    job.items, job.words = job.items[:0].copy(), []  # a copy, where the user's did not lie in a row
    if plan.algorithm == "mergesort":
        out = _merge_all(ranks, mine, brought, counts, plan, seen).items
    else:
        out = _partition(ranks, mine, counts, plan, seen, last=True).items
    return out.byteswap(inplace=True).view(dtype) if plain and not dtype.isnative else out


def _merge_all(
    ranks: Ranks, job: KeyedItems, brought: Ints, counts: Ints, plan: SortPlan, seen: Seen
) -> KeyedItems:
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
        job = _partition(group, job, share, plan, seen, last=level == top)
        group.free()
    return job


def _sorted_here(job: KeyedItems) -> KeyedItems:
    """Return the job with its items in the order of their keys; a copy.

    Items that are their own keys are in native byte order from here on.
    """
    if job.plain:
        keys = job.items.astype(job.items.dtype.newbyteorder("="))
        sort_keys(keys)
        return KeyedItems(keys, [keys], ())
    return _put_in_order(job, 0)


def _put_in_order(job: KeyedItems, runs: int, last: bool = False) -> KeyedItems:
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
    return KeyedItems(out, apart if job.fields is None else words_of(out, job.fields), job.fields)


def _partition(
    ranks: Ranks, job: KeyedItems, counts: Ints, plan: SortPlan, seen: Seen, last: bool
) -> KeyedItems:
    """Part locally sorted items among the ranks, exchange and merge them.

    Parameters
    ----------
    ranks : Ranks
    job : KeyedItems
        Locally sorted; taken apart on the way, to free its memory.
    counts : int64 (P,)
        Items that each rank gets.
    plan, seen
        See `run`.
    last : bool
        Whether nobody needs the keys afterwards.
    """
    if ranks.size == 1:
        seen.sent = counts
        return job
    ends = np.cumsum(counts)
    with seen.watch("FindEdges"):
        found = SPLITTERS[plan.splitters](ranks, job.words, ends)
    with seen.watch("SolveLayout"):
        send = counts_to_send(solve_layout(ranks, found.lower, found.upper, ends))
    with seen.watch("Exchange"):
        receive = ranks.swap(send)
        seen.rounds += found.rounds
        arrived = _exchange(ranks, job, send, receive, plan, seen)
    with seen.watch("LocalSort2"):
        return _merge_runs(arrived, receive, plan, last)


def _exchange(
    ranks: Ranks, job: KeyedItems, send: Ints, receive: Ints, plan: SortPlan, seen: Seen
) -> KeyedItems:
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
        return KeyedItems(out, words_of(out, job.fields), job.fields)
    words = []
    while apart:
        word = np.ascontiguousarray(apart.pop(0))
        words.append(_room(word, receive))
        move(word, send, words[-1], receive)
    return KeyedItems(out, words, None)


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


def _merge_runs(job: KeyedItems, receive: Ints, plan: SortPlan, last: bool) -> KeyedItems:
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
