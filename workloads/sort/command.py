# SPDX-License-Identifier: Apache-2.0
"""``nidmap bench sort``: data of its own sorted again and again, and every result checked."""

from __future__ import annotations

import time
from typing import Any

import click

from nidmap.placement.commands.common import ByteCount
from nidmap.placement.support.array_types import Array
from nidmap.workloads.options import Common, Number, bench_callback, option_with_default
from nidmap.workloads.session import Session, phase_table
from nidmap.workloads.sort.data import (
    KINDS,
    hash_sums,
    item_type,
    make_items,
    refuse_faults,
    sort_faults,
    sortedness,
)
from nidmap.workloads.sort.partition import Seen, SortPlan, keys_of, sort_items
from nidmap.workloads.sort.ranks import Ranks
from nidmap.workloads.trials import Phases, require_fit
from nidmap.workloads.world import Comm, raise_together

#: The paper's names of the phases, in order.
PHASES = ("LocalSort1", "FindEdges", "SolveLayout", "Exchange", "LocalSort2")


@click.command("sort")
@option_with_default(
    "--items",
    Number(several=True),
    "1e6",
    "Items per rank; several with commas (the paper's: 1e5,1e6,1e7).",
)
@option_with_default("--data", KINDS, "random", "Kind of keys; one: random, all on rank 0.")
@option_with_default("--payload", ByteCount(whole=True), 0, "Bytes carried with each key.")
@option_with_default(
    "--algorithm", ["mpsort", "mergesort"], "mpsort", "Partition sort, or a tree of merges."
)
@option_with_default(
    "--splitters",
    ["histogram", "bisection"],
    "histogram",
    "Many probes per round, or the paper's one probe per bit.",
)
@option_with_default(
    "--exchange",
    ["auto", "alltoallv", "sparse"],
    "auto",
    "One Alltoallv, or point to point without empty messages.",
)
@option_with_default(
    "--final",
    ["auto", "sort"],
    "auto",
    "Merge few runs that arrive, or sort again as the paper does.",
)
@bench_callback
def sort(common: Common, items: tuple[int, ...], **options: Any) -> int:
    """Sort items that lie on all ranks (MP-sort), timed by the paper's five phases.

    Every case is checked after its last repetition, outside the timing: order
    over all boundaries, counts, a checksum of the items, stability where
    there is a payload of 8 bytes or more. Below the times are the
    messages of the exchange, as expected for random data and as counted.

    \b
    nidmap bench sort -n 4 --items 1e5,1e6,1e7
    nidmap bench sort -n 4 --payload 16 --data groups
    srun -n 1024 nidmap bench sort --algorithm mergesort -o merge.csv
    """
    how: list[dict[str, Any]] = []
    with Session(common, "sort", {"items": list(items), **options}) as session:
        for count in items:
            if session.over():
                break
            made = Sort(session.comm, items=count, **options)
            if session.measure(made, items=count, **options):
                how.append({"rounds": made.seen.rounds, "sparse": made.seen.sparse})
            del made  # its data must be gone before the next case is made
    document, texts = session.document(), []
    for case, result, more in zip(document["cases"], session.finished, how, strict=True):
        case.update(more)
        head = f"{case['items']} items per rank, {more['rounds']} rounds for the splitters\n"
        texts.append(head + phase_table(result))
    common.show(document, "\n".join(texts))
    return session.exit_code


class Sort:
    """Items on every rank, sorted anew in each repetition. Collective.

    Memory: at most 3.5 times the local items, those kept for the next
    repetition counted (see `nidmap.workloads.sort.partition.sort_items`).

    `items`: items per rank, on average.
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
    ) -> None:
        self.comm, self.ranks = comm, Ranks(comm)
        self.plan = SortPlan(splitters, exchange, final, algorithm)
        rank, size = self.ranks.rank, self.ranks.size
        everything = items * size if data == "one" else 0
        most = max(items, everything if rank == 0 else 0) * item_type(payload).itemsize
        require_fit(comm, int(3.5 * most), f"a sort of {items} items per rank")
        with raise_together(comm):
            self.items = make_items(data, rank, size, items, payload=payload)
        self.before = hash_sums(self.items)
        self.seen = Seen()  # what the last repetition did
        self.result: Array | None = None

    def run(self) -> dict[str, float]:
        """Sort once and return this rank's seconds."""
        self.result = None  # not next to the next one
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
