# SPDX-License-Identifier: Apache-2.0
"""A complete sort on many ranks: local sort, splitters, layout, one exchange, final merge.

Algorithm 1 of Feng, Straka, Di Matteo and Croft (2015). `sort_items` works on `Ranks`
only. Items are keys of 64 bits, or structures with such a field ``key``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.support.array_types import Array, Ints
from nidmap.workloads.sort.local import (
    RUNS,
    flat_items,
    gather_items,
    order,
    short_places,
    sort_keys,
)
from nidmap.workloads.sort.ranks import Ranks
from nidmap.workloads.sort.splitters import bisection, counts_to_send, histogram, solve_layout

Stopwatch = Callable[[str], AbstractContextManager[object]]

SPLITTERS = {"histogram": histogram, "bisection": bisection}

#: If the share of non-empty messages is below this, they are sent one by one.
SPARSE = 0.25


@dataclass(frozen=True, slots=True)
class SortPlan:
    """Parameters of a sort; equal on all ranks.

    Attributes
    ----------
    splitters : str
        ``histogram``: many probes a round (three or four rounds); ``bisection``:
        the paper's one probe a bit; see `nidmap.workloads.sort.splitters`.
    exchange : str
        ``alltoallv``: one MPI_Alltoallv; ``sparse``: point-to-point messages, none
        of them empty; ``auto``: sparse where less than a quarter of the messages
        would hold anything, or where MPI's counts are too small for them.
    final : str
        ``sort``: what arrives is sorted anew, as the paper does; ``auto``: merged
        up to 4 runs, being one sorted run per rank.
    algorithm : str
        ``mpsort``, or ``mergesort``: the distributed merge sort that MP-sort
        replaced, in which all items move log2(P) times.
    """

    splitters: str = "histogram"
    exchange: str = "auto"
    final: str = "auto"
    algorithm: str = "mpsort"


@dataclass(slots=True)
class Seen:
    """Statistics of a sort.

    Attributes
    ----------
    rounds : int
        Rounds of the search for splitters, over all levels of a merge sort.
    moved : int
        Items that this rank sent to other ranks in all exchanges.
    sparse : bool
        Whether the last exchange went point to point.
    watch : callable
        Times ``LocalSort1``, ``FindEdges``, ``SolveLayout``, ``Exchange`` and
        ``LocalSort2``, the paper's names; returns a context manager (see
        `nidmap.workloads.trials.Phases`).
    """

    rounds: int = 0
    moved: int = 0
    sparse: bool = False
    watch: Stopwatch = nullcontext


def keys_of(items: Array) -> NDArray[np.uint64]:
    """Return the keys of items as a view."""
    keys: NDArray[np.uint64] = items["key"] if items.dtype.names else items
    return keys


def sort_items(
    ranks: Ranks, items: Array, plan: SortPlan | None = None, seen: Seen | None = None
) -> Array:
    """Sort items distributed over ranks and return this rank's share of the sorted whole.

    Collective. Rank 0 gets the items with the smallest keys, each rank as many as it
    brought. Items with equal keys keep their order: first that of the ranks, then
    that on a rank.

    Parameters
    ----------
    ranks : Ranks
        Of a communicator: ``Ranks(MPI.COMM_WORLD)``.
    items : uint64 (n,), or structures (n,) with a uint64 field ``key``
        This rank's; left as they are. n may differ from rank to rank and be 0.
    plan : SortPlan or None
        How to sort, the same on all ranks; None: the usual way.
    seen : Seen or None
        Filled in with what the sort did.

    Returns
    -------
    (n,) of the items' dtype

    Examples
    --------
    On one rank; ``mpiexec -n 4 python program.py`` with COMM_WORLD sorts over four:

    >>> from mpi4py import MPI
    >>> from nidmap.workloads.sort.ranks import Ranks
    >>> items = np.array([(5, 0), (1, 1), (5, 2)], dtype=[("key", "u8"), ("place", "i4")])
    >>> sort_items(Ranks(MPI.COMM_SELF), items)["place"].tolist()
    [1, 0, 2]

    Notes
    -----
    Memory: at most 3.5 times what the rank brought, the caller's own items counted
    as one. Measured with 64 MB per rank: 3.0 to 3.3. MPI's own buffers (a few MB) are
    not counted. Every item crosses the network at most once (Feng et al. 2015,
    Algorithm 1), but for "mergesort".
    """
    plan, seen = plan or SortPlan(), seen or Seen()
    counts = ranks.share(np.array(len(items)))
    with seen.watch("LocalSort1"):
        mine = [_sort_here(items)]
    if plan.algorithm == "mergesort":
        return _merge_all(ranks, mine, counts, plan, seen)
    return _partition_items(ranks, mine, counts, plan, seen)


def _merge_all(ranks: Ranks, mine: list[Array], counts: Ints, plan: SortPlan, seen: Seen) -> Array:
    """Merge locally sorted items up a binary tree: the baseline that MP-sort replaced.

    At level k every two neighbouring groups of 2^(k-1) ranks, each holding a
    sorted sequence, become one. All items move at every level, so that the
    network carries them log2(P) times where MP-sort does once: the paper's
    O(N log N) against O(N) (3.3). Every rank keeps as many items as it brought.
    """
    for level in range(1, (ranks.size - 1).bit_length() + 1):
        first = (ranks.rank >> level) << level
        group = ranks.part(ranks.rank >> level)
        mine = [_partition_items(group, mine, counts[first : first + (1 << level)], plan, seen)]
        group.free()
    return mine.pop()


def _sort_here(items: Array) -> Array:
    """Return a copy of the items in the order of their keys."""
    if items.dtype.names:
        return _put_in_order(items, 0)
    keys = items.copy()
    sort_keys(keys)
    return keys


def _put_in_order(items: Array, runs: int) -> Array:
    """Return items with a payload in stable order."""
    size = items.dtype.itemsize
    places = order(keys_of(items), runs)
    if size <= 16:
        places = short_places(places)  # for short items the memory of the places counts
    return gather_items(flat_items(items), places).view(items.dtype)


def _partition_items(
    ranks: Ranks, mine: list[Array], counts: Ints, plan: SortPlan, seen: Seen
) -> Array:
    """Partition locally sorted items among the ranks, exchange and merge them.

    `mine`: locally sorted items, taken out: nobody else must keep their memory. `counts` (P,):
    items that each rank gets.
    """
    items = mine.pop()
    if ranks.size == 1:
        return items
    ends = np.cumsum(counts)
    with seen.watch("FindEdges"):
        keys = np.ascontiguousarray(keys_of(items))
        bounds = SPLITTERS[plan.splitters](ranks, keys, ends)
        del keys
    with seen.watch("SolveLayout"):
        send = counts_to_send(solve_layout(ranks, bounds.lower, bounds.upper, ends))
    with seen.watch("Exchange"):
        receive = ranks.swap(send)
        seen.rounds += bounds.rounds
        seen.moved += int(send.sum() - send[ranks.rank])
        seen.sparse = _is_sparse(ranks, send, receive, plan.exchange)
        arrived = np.empty(int(receive.sum()), items.dtype)
        move = ranks.sparse if seen.sparse else ranks.alltoallv
        move(flat_items(items), send, flat_items(arrived), receive)
        del items
    with seen.watch("LocalSort2"):
        return _merge_runs(arrived, receive, plan)


def _is_sparse(ranks: Ranks, send: Ints, receive: Ints, exchange: str) -> bool:
    """Tell whether to use point-to-point messages; equal on all ranks."""
    if exchange == "sparse":
        return True
    busy = np.array([np.count_nonzero(send), int(not ranks.fits(send, receive))], np.int64)
    full, over = ranks.total(busy)
    if over or exchange == "alltoallv":
        return bool(over)
    return bool(full < SPARSE * ranks.size**2)


def _merge_runs(items: Array, receive: Ints, plan: SortPlan) -> Array:
    """Merge the received items, one sorted run per rank, into one sorted run."""
    runs = int(np.count_nonzero(receive))
    if runs < 2:
        return items
    if plan.final == "sort" or runs > RUNS:
        runs = 0
    if items.dtype.names:
        return _put_in_order(items, runs)
    sort_keys(items, runs)
    return items
