"""The command ``nidmap bench isx``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import to_json, write_output
from placement.commands.tables import align_columns
from placement.errors import LaunchError, NidmapError, UsageError, printable
from placement.support.quantities import rate_text, time_text
from workloads.launched import Launches, mpiexec_words, rank_environment
from workloads.options import Common, Number, Words, bench_callback, setting
from workloads.session import Case, Repetitions, Session
from workloads.world import interruption

if TYPE_CHECKING:
    from workloads.isx.problem import NodeBytes, Problem

__all__ = ["isx"]

_SCHEMES = ("alltoallv", "at-once", "naive", "round-robin", "random")

#: Iterations that are printed one by one.
_SHOWN = 40


def _launch_jobs(jobs: int, ranks: int, output: str | None) -> tuple[list[dict[str, Any]], bool]:
    """Launch this command so many times, one after another.

    Returns each job's document, and whether they were interrupted: then only
    those of the jobs that were finished by then.

    Parameters
    ----------
    jobs : int
    ranks : int
        Ranks of each.
    output : str or None
        File for the raw samples: job k writes ``name.k.suffix``.

    Raises
    ------
    LaunchError
        Where a job cannot be started or prints no result.
    NidmapError
        What a job has said itself, with its exit code; or interrupted before
        one was finished.
    """
    documents: list[dict[str, Any]] = []
    with Launches() as children:
        for job in range(jobs):
            words = [*mpiexec_words(ranks), sys.executable, *sys.orig_argv[1:], "--json"]
            if output is not None:
                stem, suffix = os.path.splitext(output)
                words += ["-o", f"{stem}.{job}{suffix}"]
            code, out = children.run(words, rank_environment(ranks), heard=True)
            if children.stopped or code == interruption().exit_code:
                if not documents:
                    raise interruption()
                return documents, True
            documents.append(_document(code, out, job))
    return documents, False


def _document(code: int, out: bytes, job: int) -> dict[str, Any]:
    if code:
        error = NidmapError(f"job {job} ended with code {code}")
        error.exit_code = code if 0 < code < 126 else 4
        raise error
    try:
        document: dict[str, Any] = json.loads(out)
    except ValueError:
        shown = printable(out[:60].decode("utf-8", "replace"))
        raise LaunchError(f"job {job} printed no result but {shown!r}") from None
    return document


def _pool_documents(documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each case the exchange's seconds of every job, and their minimum.

    A job's figure is that of its best repetition: the slowest rank's seconds,
    and the sum over all ranks (the paper's "total time across all PEs").

    Examples
    --------
    >>> def job(best, mean):
    ...     seconds = {"KeyExchange": {"best": best, "best_mean": mean}}
    ...     case = {"exchange": "random", "sided": "two", "seconds": seconds}
    ...     return {"ranks": 4, "cases": [case]}
    >>> _pool_documents([job(0.3, 0.2), job(0.2, 0.1)])
    [{'exchange': 'random', 'sided': 'two', 'slowest': 0.2, 'all_ranks': 0.4, 'jobs': [0.3, 0.2]}]
    """
    rows = []
    for k, case in enumerate(documents[0]["cases"]):
        entries = [d["cases"][k]["seconds"]["KeyExchange"] for d in documents]
        ranks = documents[0]["ranks"]
        rows.append(
            {
                "exchange": case["exchange"],
                "sided": case["sided"],
                "slowest": min(e["best"] for e in entries),
                "all_ranks": min(e["best_mean"] for e in entries) * ranks,
                "jobs": [e["best"] for e in entries],
            }
        )
    return rows


def _run_jobs(common: Common, jobs: int, **_: Any) -> int | None:
    """Run several jobs and print the minimum over them; None for one: it is the command's own.

    It is the paper's first protocol: what a launch draws at random (nodes,
    links, memory) is drawn anew for each.
    """
    if jobs == 1:
        return None
    if common.as_json and common.output == "-":
        raise UsageError("the samples and the result cannot both go to standard output")
    documents, stopped = _launch_jobs(jobs, common.ranks or 1, common.output)
    rows = _pool_documents(documents)
    head = ["exchange", "sides", "slowest rank", "all ranks", f"range over {len(documents)} jobs"]
    cells = [
        [
            *(row["exchange"], row["sided"]),
            *(time_text(row["slowest"]), time_text(row["all_ranks"])),
            f"{time_text(min(row['jobs']))} to {time_text(max(row['jobs']))}",
        ]
        for row in rows
    ]
    text = "minimum over jobs of the exchange's best iteration\n" + align_columns([head, *cells])
    document = {"schema": "nidmap.bench.isx-jobs/1", "minimum": rows, "jobs": documents}
    write_output(to_json(document) if common.as_json else text, None)
    return interruption().exit_code if stopped else 0


@click.command("isx")
@setting(
    "--mode",
    ["strong", "weak", "weak_iso"],
    "weak",
    "Keys over all ranks; keys a rank; the same with buckets of one width.",
)
@setting("--keys", Number(), "2^20", "Keys over all ranks (strong) or a rank.")
@setting("--dtype", ["i4", "u8"], "i4", "Signed 32-bit or unsigned 64-bit keys.")
@setting(
    "--exchange schemes",
    Words(_SCHEMES),
    "alltoallv",
    "alltoallv, at-once, naive (in-cast), round-robin, random; several with commas, or all.",
)
@setting("--sided", ["two", "put", "both"], "two", "Messages, or MPI_Put with a notification.")
@setting(
    "--jobs",
    click.IntRange(min=1),
    1,
    "Launches, one after another; the minimum over them is printed too.",
)
@bench_callback(repeat=20, outside=_run_jobs)
def isx(common: Common, schemes: tuple[str, ...], sided: str, **options: Any) -> int:
    """Sort keys into a bucket a rank (ISx), timed by the paper's five stages.

    Several schemes are interleaved in one job: every iteration runs each once.
    The generation of keys is timed but not in the total. Bandwidth is what a
    node sends in the exchange by the slowest rank's seconds: best, mean and
    worst iteration.

    \b
    nidmap bench isx -n 4 --keys 2^22
    nidmap bench isx -n 4 --mode weak_iso --exchange round-robin,random --sided both
    nidmap bench isx -n 4 --exchange naive --jobs 10
    """
    from workloads.isx.trial import Variant, trial

    options.pop("jobs")  # inside a launch each is a job like any other
    sides = ("two", "put") if sided == "both" else (sided,)
    given = {**options, "exchange": list(schemes), "sided": sided}
    with Session(common, "isx", given) as session:
        made = trial(session.comm, seed=common.seed, **options)
        cases = [
            Case(
                Variant(made, scheme, side),
                {**options, "exchange": scheme, "sided": side},
                session.comm,
            )
            for scheme, side in product(schemes, sides)
        ]
        session.interleave(cases)
        traffic = made.traffic()
        made.free()
    _show(session, made.problem, *traffic)
    return session.exit_code


def _rates(result: Repetitions, sent: float) -> dict[str, float]:
    """Return bytes a second of a node in the exchange: worst, mean and best iteration."""
    rates = [sent / max(entry["max"], 1e-9) for entry in result.phases["KeyExchange"]]
    return {"worst": min(rates), "mean": sum(rates) / len(rates), "best": max(rates)}


def _show(session: Session, problem: Problem, model: NodeBytes, counted: NodeBytes) -> None:
    from workloads.isx.problem import GENERATOR

    document = session.document()
    document |= {"generator": GENERATOR, "problem": asdict(problem)}
    document["node_bytes"] = {"model": asdict(model), "counted": asdict(counted)}
    how = f"shift by {problem.shift}" if problem.shift is not None else "division"
    text = [
        f"{problem.mode}: {problem.keys} keys below {problem.max_key}, {problem.ranks} buckets of "
        f"{problem.width} by {how}\n"
        f"a node sends {model.off_node / 1e6:.3f} MB to other nodes by the model, "
        f"{counted.off_node / 1e6:.3f} MB counted; to other ranks {model.ranks / 1e6:.3f} and "
        f"{counted.ranks / 1e6:.3f} MB\n"
    ]
    rows = []
    for case, result in zip(document["cases"], session.finished, strict=True):
        sent = {"ranks": model.ranks, "off_node": model.off_node}
        case["bandwidth"] = {name: _rates(result, count) for name, count in sent.items()}
        means = [entry["mean"] for entry in result.phases["KeyExchange"]]
        case["seconds"]["KeyExchange"]["best_mean"] = min(means)
        title = f"{case['exchange']}, {case['sided']}"
        text.append(_stages(title, result))
        rates = [
            rate_text(rate) if sent[name] else "-"
            for name, rates in case["bandwidth"].items()
            for rate in rates.values()
        ]
        rows.append([title, *rates])
    head = ["a node sends", "worst", "mean", "best", "off: worst", "mean", "best"]
    text += [align_columns([head, *rows])] if rows else []
    session.common.show(document, "\n".join(text))


def _stages(title: str, result: Repetitions) -> str:
    """Return one case's table: a row an iteration, the slowest rank's seconds a stage."""
    summary = result.summary()
    count = min(len(result.phases["total"]), _SHOWN)
    rows = [
        [str(k), *(time_text(entries[k]["max"]) for entries in result.phases.values())]
        for k in range(count)
    ]
    rows += [
        [word, *(time_text(entry[word]) for entry in summary.values())]
        for word in ("best", "median", "worst")
    ]
    return align_columns([[title, *result.phases], *rows])
