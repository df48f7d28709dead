"""The command ``nidmap bench isx``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from placement.support.lazy import lazy
from placement.support.quantities import rate_text
from placement.support.tables import align_columns
from workloads.options import Common, Number, Words, bench_callback, option_with_default
from workloads.session import Case, Repetitions, Session, phase_table

if TYPE_CHECKING:
    from workloads.isx.trial import NodeBytes, Problem

trials = lazy("workloads.isx.trial")

__all__ = ["isx"]

_SCHEMES = ("alltoallv", "naive", "round-robin", "random")


@click.command("isx")
@option_with_default(
    "--mode",
    ["strong", "weak", "weak_iso"],
    "weak",
    "Keys over all ranks; keys a rank; the same with buckets of one width.",
)
@option_with_default("--keys", Number(), "2^20", "Keys over all ranks (strong) or a rank.")
@option_with_default("--dtype", ["i4", "u8"], "i4", "Signed 32-bit or unsigned 64-bit keys.")
@option_with_default(
    "--exchange schemes",
    Words(_SCHEMES),
    "alltoallv",
    "alltoallv, or puts in the order naive (in-cast), round-robin, random; several with commas, "
    "or all.",
)
@bench_callback(repeat=20)
def isx(common: Common, schemes: tuple[str, ...], **options: Any) -> int:
    """Sort keys into a bucket a rank (ISx), timed by the paper's five stages.

    Several schemes are interleaved in one job: every iteration runs each once.
    The generation of keys is timed but not in the total. Bandwidth is what a
    node sends in the exchange by the slowest rank's seconds: best, mean and
    worst iteration.

    \b
    nidmap bench isx -n 4 --keys 2^22
    nidmap bench isx -n 4 --mode weak_iso --exchange all
    srun -n 12288 nidmap bench isx --keys 2^27 --exchange round-robin,random -o isx.csv
    """
    with Session(common, "isx", {**options, "exchange": list(schemes)}) as session:
        made = trials.trial(session.comm, seed=common.seed, **options)
        cases = [
            Case(trials.Variant(made, scheme), {**options, "exchange": scheme}, session.comm)
            for scheme in schemes
        ]
        session.interleave(cases)
        sent = made.traffic()
        made.free()
    _show_session(session, made.problem, sent)
    return session.exit_code


def _exchange_rates(result: Repetitions, sent: float) -> dict[str, float]:
    """Return bytes a second of a node in the exchange: worst, mean and best iteration."""
    rates = [sent / max(entry["max"], 1e-9) for entry in result.phases["KeyExchange"]]
    return {"worst": min(rates), "mean": sum(rates) / len(rates), "best": max(rates)}


def _show_session(session: Session, problem: Problem, sent: NodeBytes) -> None:
    document = session.document()
    document |= {
        "generator": trials.GENERATOR,
        "problem": asdict(problem),
        "node_bytes": asdict(sent),
    }
    how = f"shift by {problem.shift}" if problem.shift is not None else "division"
    text = [
        f"{problem.mode}: {problem.keys} keys below {problem.max_key}, {problem.ranks} buckets of "
        f"{problem.width} by {how}\n"
        f"a node sends {sent.ranks / 1e6:.3f} MB to other ranks, {sent.off_node / 1e6:.3f} MB to "
        "other nodes\n"
    ]
    rows = []
    for case, result in zip(document["cases"], session.finished, strict=True):
        case["bandwidth"] = {
            name: _exchange_rates(result, count) for name, count in asdict(sent).items()
        }
        text.append(phase_table(result, case["exchange"]))
        rates = [
            rate_text(rate) if getattr(sent, name) else "-"
            for name, rates in case["bandwidth"].items()
            for rate in rates.values()
        ]
        rows.append([case["exchange"], *rates])
    head = ["a node sends", "worst", "mean", "best", "off: worst", "mean", "best"]
    text += [align_columns([head, *rows])] if rows else []
    session.common.show(document, "\n".join(text))
