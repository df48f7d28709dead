"""The command ``nidmap bench sort``."""

from __future__ import annotations

from typing import Any

import click

from placement.support.lazy import lazy
from workloads.options import ByteCount, Common, Number, bench_callback, option_with_default
from workloads.session import Session, phase_table

trials = lazy("workloads.sort.trial")

__all__ = ["sort"]

_DATA = ("random", "equal", "sorted", "reversed", "two", "groups", "one")


@click.command("sort")
@option_with_default(
    "--items",
    Number(several=True),
    "1e6",
    "Items a rank; several with commas (the paper's: 1e5,1e6,1e7).",
)
@option_with_default("--data", _DATA, "random", "Kind of keys; one: random, all on rank 0.")
@option_with_default("--payload", ByteCount(whole=True), 0, "Bytes carried beside each key.")
@option_with_default(
    "--algorithm", ["mpsort", "mergesort"], "mpsort", "Partition sort, or a tree of merges."
)
@option_with_default(
    "--splitters",
    ["histogram", "bisection"],
    "histogram",
    "Many probes a round, or the paper's one probe a bit.",
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
    "Merge few runs that arrive, or sort anew as the paper does.",
)
@bench_callback
def sort(common: Common, items: tuple[int, ...], **options: Any) -> int:
    """Sort items that lie on all ranks (MP-sort), timed by the paper's five phases.

    Every case is checked after its last repetition, outside the timing: order
    over all boundaries, counts, a checksum of the items, stability where
    there is a payload of 8 bytes or more. Below the times stand the messages
    of the exchange as random data would make them, and as they were.

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
            made = trials.trial(session.comm, items=count, seed=common.seed, **options)
            if session.measure(made, items=count, **options):
                how.append({"rounds": made.seen.rounds, "sparse": made.seen.sparse})
            del made  # its data must be gone before the next case is made
    document, texts = session.document(), []
    for case, result, more in zip(document["cases"], session.finished, how, strict=True):
        case.update(more)
        head = f"{case['items']} items a rank, {more['rounds']} rounds for the splitters\n"
        texts.append(head + phase_table(result))
    common.show(document, "\n".join(texts))
    return session.exit_code
