"""One sort on a communicator, ready to be repeated: data of its own, every result checked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from workloads.memory import fits
from workloads.phases import Phases
from workloads.sort.check import checksum, faults, refuse, sortedness
from workloads.sort.data import item_type, make
from workloads.sort.keys import key_words
from workloads.sort.load import Messages, count_messages, expect_messages
from workloads.sort.partition import Job, Plan, Seen, run
from workloads.sort.ranks import Ranks
from workloads.words import check_word
from workloads.world import same, together

if TYPE_CHECKING:
    from mpi4py import MPI

    from placement.support.array_types import Array, Ints

__all__ = ["PHASES", "TARGETS", "Sort", "trial"]

#: The paper's names, in order.
PHASES = ("LocalSort1", "FindEdges", "SolveLayout", "Exchange", "LocalSort2")

#: Target distributions by name.
TARGETS = ("brought", "even", "ramp", "first")


def trial(
    comm: MPI.Intracomm,
    *,
    items: int = 1_000_000,
    data: str = "random",
    key_bits: int = 56,
    dtype: str = "u8",
    payload: int = 0,
    target: str = "brought",
    stable: bool = True,
    splitters: str = "histogram",
    exchange: str = "auto",
    final: str = "auto",
    algorithm: str = "mpsort",
    seed: int = 0,
) -> Sort:
    """Return a sort with its data made. Collective.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    items : int
        Items a rank, on average.
    data, key_bits, dtype, payload, seed
        See `workloads.sort.data.make`.
    target : {"brought", "even", "ramp", "first"}
        How many items each rank gets: as many as it brought; equally many;
        rank r in proportion to r (rank 0 none); all on rank 0.
    stable, splitters, exchange, final, algorithm
        See `workloads.sort.mpsort`.

    Raises
    ------
    UsageError, NidmapError
        On all ranks alike: unknown words, or data that do not fit the memory.
    """
    plan = Plan(stable, splitters, exchange, final, algorithm)
    how: dict[str, Any] = {"seed": seed, "bits": key_bits, "dtype": dtype, "payload": payload}
    same(comm, items=items, data=data, target=target, plan=plan, **how)
    rank, size = comm.Get_rank(), comm.Get_size()
    with together(comm):
        plan.check()
        check_word("target", target, TARGETS)
        make(data, 0, 1, 0, **how)  # words and numbers are right
    everything = items * size if "one" in (data, target) or target == "first" else 0
    need = 3.5 * max(items, everything if rank == 0 else 0) * item_type(dtype, payload).itemsize
    fits(comm, int(need), f"a sort of {items} items a rank")
    with together(comm):
        mine = make(data, rank, size, items, **how)
    return Sort(comm, mine, target, plan)


class Sort:
    """Items on every rank, sorted anew in each repetition.

    Memory: at most 3.5 times the local items, those kept for the next
    repetition counted (see `workloads.sort.mpsort`).

    Attributes
    ----------
    comm : mpi4py.MPI.Intracomm
    seen : Seen
        What the last repetition did.
    """

    def __init__(self, comm: MPI.Intracomm, items: Array, target: str, plan: Plan) -> None:
        self.comm, self.plan = comm, plan
        self.ranks = Ranks(comm)
        self.items = items
        self.key = "key" if "key" in (items.dtype.names or ()) else None
        self.brought = self.ranks.share(np.array(len(items)))
        self.counts = targets(target, self.brought)
        self.before = checksum(items)
        self.seen = Seen()
        self.result: Array | None = None

    def run(self) -> dict[str, float]:
        """Sort once and return this rank's seconds."""
        self.result = None  # not beside the next one
        self.seen = Seen()
        phases = Phases(PHASES)
        began = time.perf_counter()
        words, fields = key_words(self.items, self.key)
        job = Job(self.items, words, fields)
        self.result = run(self.ranks, job, self.brought, self.counts, self.plan, phases, self.seen)
        total = time.perf_counter() - began
        exchanged = sum(phases.seconds[name] for name in PHASES[1:4])
        return {"total": total, "communication": exchanged, **phases.seconds}

    def verify(self) -> None:
        """Raise on all ranks where the last result is wrong; not timed."""
        if self.result is None:
            return
        words = key_words(self.result, self.key)[0]
        mine = int(self.counts[self.ranks.rank])
        found = faults(self.ranks, self.before, self.result, words, mine)
        if self.plan.stable and "origin" in (self.result.dtype.names or ()):
            ordered = sortedness(self.ranks, [*words, self.result["origin"]])
            found += [] if all(ordered) else ["items with equal keys changed their order"]
        with together(self.comm):
            refuse(found, "the sort")

    def messages(self) -> tuple[Messages, Messages]:
        """Return the messages of the last exchange: as random data would make them, as they were.

        Collective.
        """
        random = expect_messages(int(self.brought.sum()), self.ranks.size)
        return random, count_messages(self.ranks, self.seen.sent)


def targets(name: str, brought: Ints) -> Ints:
    """Return how many items each rank gets (P,).

    Examples
    --------
    >>> [targets(name, np.array([4, 0, 2])).tolist() for name in TARGETS]
    [[4, 0, 2], [2, 2, 2], [0, 2, 4], [6, 0, 0]]
    """
    if name == "brought":
        return brought
    rank = np.arange(len(brought))
    weights = {"even": rank + 1, "ramp": rank * (rank + 1) // 2, "first": rank + 1 > 0}
    weight = weights["even" if len(brought) == 1 else name].astype(object)  # exact whatever n is
    ends = int(brought.sum()) * weight // weight[-1]
    counts: Ints = np.diff(ends, prepend=0).astype(np.int64)
    return counts
