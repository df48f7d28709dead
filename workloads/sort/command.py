"""The command ``nidmap bench sort``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from placement.support.lazy import lazy
from placement.support.tables import align_columns
from workloads.options import ByteCount, Common, Number, bench_callback, setting
from workloads.session import Repetitions, Session, phase_table

trials = lazy("workloads.sort.trial")

__all__ = ["sort"]

_DATA = ("random", "equal", "sorted", "reversed", "two", "groups", "one")


@click.command("sort")
@setting(
    "--items",
    Number(several=True),
    "1e6",
    "Items a rank; several with commas (the paper's: 1e5,1e6,1e7).",
)
@setting("--data", _DATA, "random", "Kind of keys; one: random, all on rank 0.")
@setting("--payload", ByteCount(whole=True), 0, "Bytes carried beside each key.")
@setting("--algorithm", ["mpsort", "mergesort"], "mpsort", "Partition sort, or a tree of merges.")
@setting(
    "--splitters",
    ["histogram", "bisection"],
    "histogram",
    "Many probes a round, or the paper's one probe a bit.",
)
@setting(
    "--exchange",
    ["auto", "alltoallv", "sparse"],
    "auto",
    "One Alltoallv, or point to point without empty messages.",
)
@setting(
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
    seen: list[dict[str, Any]] = []
    with Session(common, "sort", {"items": list(items), **options}) as session:
        for count in items:
            if session.over():
                break
            made = trials.trial(session.comm, items=count, seed=common.seed, **options)
            if session.measure(made, items=count, **options):
                before, after = made.messages()
                rounds = {"rounds": made.seen.rounds, "sparse": made.seen.sparse}
                seen.append({"predicted": asdict(before), "counted": asdict(after), **rounds})
            del made  # its data must be gone before the next case is made
    _show(session, seen)
    return session.exit_code


def _show(session: Session, seen: list[dict[str, Any]]) -> None:
    document, texts = session.document(), []
    for case, result, more in zip(document["cases"], session.finished, seen, strict=True):
        case.update(more)
        texts.append(_tables(result, more))
    session.common.show(document, "\n".join(texts))


def _tables(result: Repetitions, more: dict[str, Any]) -> str:
    """Return the two tables of one case: seconds by phase, and messages."""
    names = {
        "mean": "items a message",
        "deviation": "standard deviation",
        "empty": "share of empty messages",
        "largest": "largest message",
        "imbalance": "imbalance of messages",
        "ranks_imbalance": "imbalance of ranks",
    }
    messages = [
        [label, *(f"{more[side][name]:.4g}" for side in ("predicted", "counted"))]
        for name, label in names.items()
    ]
    return (
        f"{result.labels['items']} items a rank, {more['rounds']} rounds for the splitters\n"
        + phase_table(result)
        + "\n"
        + align_columns([["exchange", "random", "counted"], *messages])
    )
