# SPDX-License-Identifier: Apache-2.0
"""``nidmap bench sort``: repeated sorts of generated data, every result verified."""

from __future__ import annotations

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
    sortedness,
)
from nidmap.workloads.sort.partition import Seen, SortPlan, keys_of, sort_items
from nidmap.workloads.sort.trial import SortTrial
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
@option_with_default("--data", KINDS, "random", "Kind of keys; one: random keys, all on rank 0.")
@option_with_default(
    "--payload", ByteCount(whole=True), 0, "Bytes of payload carried with each key."
)
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
    "Merge the sorted runs that arrive, or sort again as in the paper.",
)
@bench_callback
def sort(common: Common, items: tuple[int, ...], **options: Any) -> int:
    """Sort items distributed over all ranks (MP-sort), timed by the paper's five phases.

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


class Sort(SortTrial):
    """Items on every rank, sorted anew in each repetition. Collective.

    Memory: at most 3.5 times the local items, those kept for the next
    repetition counted (see `nidmap.workloads.sort.partition.sort_items`).

    `items`: items per rank, on average.
    """

    name = "the sort"
    phases = PHASES
    exchanged = PHASES[1:4]

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
        super().__init__(comm)
        self.plan = SortPlan(splitters, exchange, final, algorithm)
        rank, size = self.ranks.rank, self.ranks.size
        everything = items * size if data == "one" else 0
        most = max(items, everything if rank == 0 else 0) * item_type(payload).itemsize
        require_fit(comm, int(3.5 * most), f"a sort of {items} items per rank")
        with raise_together(comm):
            self.items = make_items(data, rank, size, items, payload=payload)
        self.before = hash_sums(self.items)
        self.seen = Seen()  # statistics of the last repetition

    def sort(self, watch: Phases) -> Array:
        """Sort the items by the plan."""
        self.seen = Seen(watch=watch)
        return sort_items(self.ranks, self.items, self.plan, self.seen)

    def expected(self) -> int:
        """Return the number of items before the sort."""
        return len(self.items)

    def keys(self, result: Array) -> Array:
        """Return the items' keys."""
        return keys_of(result)

    def own_faults(self, result: Array, keys: Array) -> list[str]:
        """Return whether items with equal keys changed their order, if that is detectable."""
        if "origin" not in (result.dtype.names or ()):
            return []
        ordered = all(sortedness(self.ranks, [keys, result["origin"]]))
        return [] if ordered else ["items with equal keys changed their order"]
