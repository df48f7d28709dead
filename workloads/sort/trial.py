"""One sort on a communicator, ready to be repeated: data of its own, every result checked."""

from __future__ import annotations

import time
from typing import Any

from placement.support.array_types import Array
from workloads.memory import require_fit
from workloads.phases import Phases
from workloads.sort.data import (
    hash_sums,
    item_type,
    make_items,
    refuse_faults,
    sort_faults,
    sortedness,
)
from workloads.sort.partition import Seen, SortPlan, keys_of, sort_items
from workloads.sort.ranks import Ranks
from workloads.world import Comm, raise_together, require_same

__all__ = ["PHASES", "Sort", "trial"]

#: The paper's names, in order.
PHASES = ("LocalSort1", "FindEdges", "SolveLayout", "Exchange", "LocalSort2")


class Sort:
    """Items on every rank, sorted anew in each repetition. Collective.

    Memory: at most 3.5 times the local items, those kept for the next
    repetition counted (see `workloads.sort.partition.sort_items`).

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    items : int
        Items a rank, on average.
    data, payload, seed
        See `workloads.sort.data.make_items`.
    splitters, exchange, final, algorithm
        See `workloads.sort.partition.SortPlan`.

    Raises
    ------
    UsageError, NidmapError
        On all ranks alike: unknown words, or data that do not fit the memory.

    Attributes
    ----------
    comm : mpi4py.MPI.Intracomm
    seen : Seen
        What the last repetition did.
    """

    def __init__(
        self,
        comm: Comm,
        *,
        items: int = 1_000_000,
        data: str = "random",
        payload: int = 0,
        splitters: str = "histogram",
        exchange: str = "auto",
        final: str = "auto",
        algorithm: str = "mpsort",
        seed: int = 0,
    ) -> None:
        self.comm, self.ranks = comm, Ranks(comm)
        self.plan = SortPlan(splitters, exchange, final, algorithm)
        how: dict[str, Any] = {"seed": seed, "payload": payload}
        require_same(comm, items=items, data=data, plan=self.plan, **how)
        rank, size = self.ranks.rank, self.ranks.size
        with raise_together(comm):
            self.plan.check()
            make_items(data, 0, 1, 0, **how)  # words and numbers are right
        everything = items * size if data == "one" else 0
        most = max(items, everything if rank == 0 else 0) * item_type(payload).itemsize
        require_fit(comm, int(3.5 * most), f"a sort of {items} items a rank")
        with raise_together(comm):
            self.items = make_items(data, rank, size, items, **how)
        self.before = hash_sums(self.items)
        self.seen = Seen()
        self.result: Array | None = None

    def run(self) -> dict[str, float]:
        """Sort once and return this rank's seconds."""
        self.result = None  # not beside the next one
        phases = Phases(PHASES)
        self.seen = Seen(watch=phases)
        began = time.perf_counter()
        self.result = sort_items(self.ranks, self.items, self.plan, self.seen)
        total = time.perf_counter() - began
        exchanged = sum(phases.seconds[name] for name in PHASES[1:4])
        return {"total": total, "communication": exchanged, **phases.seconds}

    def verify(self) -> None:
        """Raise on all ranks where the last result is wrong; not timed."""
        if self.result is None:
            return
        keys = keys_of(self.result)
        faults = sort_faults(self.ranks, self.before, self.result, [keys], len(self.items))
        if "origin" in (self.result.dtype.names or ()):
            ordered = sortedness(self.ranks, [keys, self.result["origin"]])
            faults += [] if all(ordered) else ["items with equal keys changed their order"]
        with raise_together(self.comm):
            refuse_faults(faults, "the sort")


trial = Sort
