"""`mpsort`: the call for users' own data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError
from workloads.sort.keys import checked_items, key_words
from workloads.sort.partition import Job, Plan, run
from workloads.sort.ranks import Ranks
from workloads.world import same, together, world

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from mpi4py import MPI
    from numpy.typing import ArrayLike

    from placement.support.array_types import Array, Ints
    from workloads.sort.keys import Key

__all__ = ["mpsort"]


def mpsort(
    items: ArrayLike,
    key: Key = None,
    comm: MPI.Intracomm | None = None,
    out_counts: int | Sequence[int] | Ints | None = None,
    *,
    stable: bool = True,
    splitters: str = "histogram",
    exchange: str = "auto",
    final: str = "auto",
    algorithm: str = "mpsort",
    phases: Callable[[str], AbstractContextManager[None]] | None = None,
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
        "mergesort": the distributed merge sort that MP-sort replaced; see
        `workloads.sort.mergesort`.
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
    plan = Plan(stable, splitters, exchange, final, algorithm)
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
    job = Job(given, words, fields)
    del given, words  # the job gives them up when it can
    return run(ranks, job, brought, counts, plan, phases)


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
