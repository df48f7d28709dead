"""A whole sort on many ranks: local order, then MP-sort's one exchange or a tree of merges."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from workloads.sort.mergesort import merge_all
from workloads.sort.partition import Job, Plan, Seen, partition, sorted_job

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from workloads.sort.partition import Ints, Stopwatch
    from workloads.sort.ranks import Ranks

__all__ = ["run"]


def _untimed(name: str) -> AbstractContextManager[None]:
    return nullcontext()


def run(
    ranks: Ranks,
    job: Job,
    brought: Ints,
    counts: Ints,
    plan: Plan,
    phases: Stopwatch | None = None,
    seen: Seen | None = None,
) -> NDArray[Any]:
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
    watch, seen = phases or _untimed, seen or Seen()
    dtype, plain = job.items.dtype, job.plain
    with watch("LocalSort1"):
        mine = sorted_job(job)
    job.items, job.words = job.items[:0].copy(), []  # a copy, where the user's did not lie in a row
    if plan.algorithm == "mergesort":
        out = merge_all(ranks, mine, brought, counts, plan, watch, seen).items
    else:
        out = partition(ranks, mine, counts, plan, watch, seen, last=True).items
    if plain and not dtype.isnative:
        return out.byteswap(inplace=True).view(dtype)
    return out
