"""The command ``nidmap bench ab``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import machine_option, to_json, write_output
from placement.errors import UsageError
from workloads.ab.arms import Wish
from workloads.options import Common, measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workloads.ab.analysis import Run

__all__ = ["ab"]


def _outside(common: Common, **options: Any) -> int | None:
    """Do what needs no ranks of our own: pool files, or start several launches."""
    if options["pool"]:
        return _pool(common, options["pool"], options["level"])
    _refuse(options)
    if options["launches"] > 1:
        from workloads.ab.launches import many

        runs, stopped = many(common, options["launches"])
        return _pooled(common, runs, options["level"], "interrupted" if stopped else None)
    return None


def _refuse(options: Mapping[str, Any]) -> None:
    if options["workload"] is None:
        raise UsageError("which --workload?", "or --pool FILE for samples that are there")


@click.command("ab")
@click.option("--workload", metavar="NAME", help="alltoall, stencil, sort, isx, fft, contention.")
@click.option(
    "-w",
    "--with",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the workload's trial, e.g. bytes=1MiB; may repeat.",
)
@click.option(
    "--orders",
    default="default,auto",
    show_default=True,
    help="Orders of ranks, the first to compare with: default, auto, a strategy, random, a file.",
)
@click.option(
    "--nodes",
    multiple=True,
    metavar="[NAME=]LIST",
    help="A set of the job's nodes, or STRATEGY:N (e.g. blades:64); may repeat.",
)
@click.option("--pattern", default="", help="Who talks to whom, where the workload does not say.")
@machine_option
@click.option(
    "--blocks",
    type=click.IntRange(min=1),
    default=12,
    show_default=True,
    help="Blocks of turns (ABBA) that count.",
)
@click.option(
    "--controls/--no-controls",
    default=True,
    show_default=True,
    help="The first arm again (A/A), and a random order of its ranks.",
)
@click.option(
    "--launches",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Start so many launches one after another (with -n) and pool them.",
)
@click.option(
    "--pool",
    multiple=True,
    metavar="FILE",
    help="Measure nothing: pool the samples of launches that are done; may repeat.",
)
@click.option(
    "--level",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="Coverage of each interval.",
)
@measured(repeat=3, outside=_outside)
def ab(common: Common, **options: Any) -> int:
    """Measure whether an order of ranks, or a set of nodes, helps a workload.

    All arms stand side by side in one launch and take turns in blocks of
    random ABBA order. The ratio is the first arm's time over the other's:
    above 1, the other is faster. Two controls say what the noise alone does.
    Results go to stdout; -o keeps every sample for --pool and bench report.

    \b
    srun -n 512 nidmap bench ab -m shaheen2 --workload fft -w shape=512x512x512 -o ab-1.csv
    nidmap bench ab --pool ab-1.csv --pool ab-2.csv --pool ab-3.csv
    nidmap bench ab -n 4 --launches 3 --workload alltoall --orders default,random -w bytes=64KiB
    """
    from workloads.ab.running import measure, refuse_inside, warn_of_sameness

    if options["pool"]:
        raise UsageError("--pool needs no ranks", "call it outside of the launch")
    _refuse(options)
    number, output = _launch()
    refuse_inside(options["launches"] if output is None else 1)
    session = measure(replace(common, output=output or common.output), _wanted(options, number))
    if output is None and session.root:
        header = session.journal.header
        warn_of_sameness(header["arms"])
        _show(common, header, session.journal.rows, options["level"], session.ended)
    return session.exit_code


def _wanted(options: Mapping[str, Any], number: int) -> Any:
    """Return the comparison that the options ask for."""
    from workloads.ab.running import Comparison

    wish = Wish(
        orders=tuple(dict.fromkeys(o.strip() for o in options["orders"].split(",") if o.strip())),
        nodes=options["nodes"],
        pattern=options["pattern"],
        machine=" ".join(options["specs"]) or os.environ.get("NIDMAP_MACHINE", ""),
        controls=options["controls"],
    )
    if not wish.orders:
        raise UsageError("--orders names no order")
    return Comparison(options["workload"], options["given"], wish, options["blocks"], number)


def _launch() -> tuple[int, str | None]:
    """Return which launch this is, and the file that `workloads.ab.launches` wants of it."""
    from workloads.ab.launches import LAUNCH

    number, _, path = os.environ.get(LAUNCH, "").partition(":")
    if path:
        return int(number), path
    step = os.environ.get("SLURM_STEP_ID", "")
    return (int(step) if step.isascii() and step.isdigit() else 0), None


def _show(
    common: Common,
    header: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    level: float,
    ended: str,
) -> None:
    """Print what samples say."""
    from workloads.ab.analysis import analyse
    from workloads.ab.words import text

    found = analyse(header, rows, level=level)
    document = {"schema": "nidmap.bench.ab/1", **header, "ended": ended, **found}
    document["arms"] = header["arms"]
    document["times"] = found["arms"]
    shown = to_json(document) if common.as_json else text(header, found)
    write_output(shown, None)


def _pool(common: Common, paths: Sequence[str], level: float) -> int:
    """Pool files of samples."""
    from workloads.ab.analysis import Run
    from workloads.results import load, records

    runs = []
    for path in paths:
        header, frame = load(path)
        runs.append(Run(path, header, records(frame)))
    return _pooled(common, runs, level)


def _pooled(common: Common, runs: Sequence[Run], level: float, ended: str | None = None) -> int:
    from workloads.ab.analysis import pooled
    from workloads.results import check_name, save

    check_name(common.output)
    header, rows = pooled(runs)
    header = {**header, "ended": ended or header.get("ended", "complete")}
    if common.output:
        save(common.output, header, rows)
    _show(common, header, rows, level, str(header["ended"]))
    return 130 if ended == "interrupted" else 0
