"""The command ``nidmap bench isx``."""

from __future__ import annotations

import functools
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import to_json, write_output
from placement.commands.tables import aligned
from placement.errors import UsageError
from placement.quantities import rate_text, time_text
from workloads.launched import launched
from workloads.options import Common, choice, measured
from workloads.session import Session
from workloads.sort.numbers import Number
from workloads.world import interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from workloads.isx.model import Traffic
    from workloads.isx.trial import Isx
    from workloads.session import Result

__all__ = ["isx"]

_SCHEMES = ("alltoallv", "at-once", "naive", "round-robin", "random")

#: Iterations that are printed one by one.
_SHOWN = 40


def _schemes(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    """Return the schemes of a list, ``all`` for all of them."""
    names = _SCHEMES if value == "all" else tuple(value.split(","))
    for name in names:
        if name not in _SCHEMES:
            raise click.BadParameter(f"{name!r}; there are {', '.join(_SCHEMES)} and all")
    return tuple(dict.fromkeys(names))


def _with_jobs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``--jobs`` outside a launch start jobs; inside one, each is a job like any other."""

    @click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Launches, one after another; the minimum over them is printed too.",
    )
    @functools.wraps(function)
    def callback(jobs: int, **options: Any) -> Any:
        if jobs == 1 or launched() is not None:
            return function(**options)
        if options["as_json"] and options["output"] == "-":
            raise UsageError("the samples and the result cannot both go to standard output")
        return _pool(jobs, options)

    return callback


@click.command("isx", context_settings={"default_map": {"repeat": 20}})
@choice(
    "--mode",
    ["strong", "weak", "weak_iso"],
    "weak",
    "Keys over all ranks; keys a rank; the same with buckets of one width.",
)
@click.option(
    "--keys",
    type=Number(),
    default="2^20",
    show_default=True,
    help="Keys over all ranks (strong) or a rank.",
)
@choice("--dtype", ["i4", "u8"], "i4", "Signed 32-bit or unsigned 64-bit keys.")
@click.option(
    "--max-key",
    type=Number(),
    default="2^28",
    show_default=True,
    help="Keys are below it (strong, weak).",
)
@click.option(
    "--width",
    type=Number(),
    default="8192",
    show_default=True,
    help="Width of a bucket (weak_iso).",
)
@choice(
    "--bucketing",
    ["auto", "shift", "division"],
    "auto",
    "auto: by shift where the width is a power of two.",
)
@click.option(
    "--exchange",
    "schemes",
    default="alltoallv",
    show_default=True,
    callback=_schemes,
    help="alltoallv, at-once, naive (in-cast), round-robin, random; several with commas, or all.",
)
@choice("--sided", ["two", "put", "both"], "two", "Messages, or MPI_Put with a notification.")
@_with_jobs
@measured
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
    from workloads.isx.interleave import Case, interleave
    from workloads.isx.trial import trial

    numbers: dict[str, Any] = {
        name: _one(options.pop(name), name) for name in ("keys", "max_key", "width")
    }
    sides = ("two", "put") if sided == "both" else (sided,)
    given = {**numbers, **options, "exchange": list(schemes), "sided": sided}
    with Session(common, "isx", given) as session:
        made = trial(session.comm, seed=common.seed, **numbers, **options)
        cases = [
            Case(
                {**numbers, **options, "exchange": scheme, "sided": side},
                functools.partial(_run, made, scheme, side),
                made.verify,
                session.comm,
            )
            for scheme in schemes
            for side in sides
        ]
        interleave(session, cases)
        traffic = _traffic(session, made)
        made.free()
    _show(session, made, traffic)
    return session.exit_code


def _one(values: tuple[int, ...], name: str) -> int:
    if len(values) != 1:
        raise UsageError(f"--{name.replace('_', '-')} takes one number")
    return values[0]


def _run(made: Isx, scheme: str, side: str) -> dict[str, float]:
    made.exchange, made.sided = scheme, side
    return made.run()


def _traffic(session: Session, made: Isx) -> tuple[Traffic, Traffic]:
    """Return what a node sends in an exchange: by the model, and counted. Collective."""
    from workloads.isx.model import counted, modelled
    from workloads.places import place

    itemsize = 4 if made.problem.dtype == "i4" else 8
    model = modelled(made.problem, place(session.comm).most)
    return model, counted(session.comm, made.send, itemsize)


def _bandwidth(result: Result, sent: float) -> dict[str, float]:
    """Return bytes a second of a node in the exchange: worst, mean and best iteration."""
    rates = [sent / max(entry["max"], 1e-9) for entry in result.phases["KeyExchange"]]
    return {"worst": min(rates), "mean": sum(rates) / len(rates), "best": max(rates)}


def _show(session: Session, made: Isx, traffic: tuple[Traffic, Traffic]) -> None:
    from workloads.isx.problem import GENERATOR

    model, counted = traffic
    finished = [result for result in session.results if result]
    document = session.document()
    document |= {"generator": GENERATOR, "problem": asdict(made.problem)}
    document["node_bytes"] = {"model": asdict(model), "counted": asdict(counted)}
    for case, result in zip(document["cases"], finished, strict=True):
        case["bandwidth"] = {
            "ranks": _bandwidth(result, model.ranks),
            "off_node": _bandwidth(result, model.off_node),
        }
        exchange = case["seconds"]["KeyExchange"]
        exchange["best_mean"] = min(entry["mean"] for entry in result.phases["KeyExchange"])
    text = [_heading(made, model, counted)]
    text += [_stages(result) for result in finished]
    text += [_rates(finished, model)] if finished else []
    session.common.show(document, "\n".join(text))


def _heading(made: Isx, model: Traffic, counted: Traffic) -> str:
    what = made.problem
    how = f"shift by {what.shift}" if what.shift is not None else "division"
    return (
        f"{what.mode}: {what.keys} keys below {what.max_key}, {what.ranks} buckets of "
        f"{what.width} by {how}\n"
        f"a node sends {model.off_node / 1e6:.3f} MB to other nodes by the model, "
        f"{counted.off_node / 1e6:.3f} MB counted; to other ranks {model.ranks / 1e6:.3f} and "
        f"{counted.ranks / 1e6:.3f} MB\n"
    )


def _stages(result: Result) -> str:
    """Return one case's table: a row an iteration, the slowest rank's seconds a stage."""
    names = list(result.phases)
    count = len(result.phases["total"])
    title = f"{result.labels['exchange']}, {result.labels['sided']}"
    rows = [
        [str(k), *(time_text(result.phases[name][k]["max"]) for name in names)]
        for k in range(min(count, _SHOWN))
    ]
    summary = result.summary()
    rows += [
        [word, *(time_text(summary[name][word]) for name in names)]
        for word in ("best", "median", "worst")
    ]
    return aligned([[title, *names], *rows])


def _rates(results: Sequence[Result], model: Traffic) -> str:
    """Return the table of bandwidths a node, with the range over the iterations."""
    rows = []
    for result in results:
        cells = []
        for sent in (model.ranks, model.off_node):
            rate = _bandwidth(result, sent)
            cells += [rate_text(rate[k]) if sent else "-" for k in ("worst", "mean", "best")]
        rows.append([f"{result.labels['exchange']}, {result.labels['sided']}", *cells])
    head = ["a node sends", "worst", "mean", "best", "off: worst", "mean", "best"]
    return aligned([head, *rows])


def _pool(jobs: int, options: dict[str, Any]) -> int:
    """Run the jobs and print the minimum over them."""
    from workloads.isx.jobs import pooled, run_jobs

    documents, stopped = run_jobs(jobs, options["ranks"] or 1, options["output"])
    rows = pooled(documents)
    code = interrupted().exit_code if stopped else 0
    if options["as_json"]:
        found = {"schema": "nidmap.bench.isx-jobs/1", "minimum": rows, "jobs": documents}
        write_output(to_json(found), None)
        return code
    head = ["exchange", "sides", "slowest rank", "all ranks", f"range over {len(documents)} jobs"]
    cells = [
        [
            row["exchange"],
            row["sided"],
            time_text(row["slowest"]),
            time_text(row["all_ranks"]),
            f"{time_text(min(row['jobs']))} to {time_text(max(row['jobs']))}",
        ]
        for row in rows
    ]
    title = "minimum over jobs of the exchange's best iteration"
    write_output(f"{title}\n{aligned([head, *cells])}", None)
    return code
