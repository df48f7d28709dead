"""The command ``nidmap bench ab``."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from placement.commands.common import machine_option, say
from placement.errors import LaunchError, UsageError
from workloads.ab.arms import Comparison
from workloads.launched import Launches, mpiexec_words, parse_count, rank_environment
from workloads.options import Common, bench_callback, level_option, setting
from workloads.world import interruption

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workloads.results import Run

__all__ = ["ab"]

SCHEMA = "nidmap.bench.ab/1"

#: Tells a launch which one it is and where its samples go: ``2:/tmp/…/launch-2.jsonl``.
_LAUNCH = "NIDMAP_AB_LAUNCH"


def _outside(common: Common, **options: Any) -> int | None:
    """Do what needs no ranks of our own: pool files, or start several launches."""
    if options["pool"]:
        from workloads.results import read_run

        return _pool(common, [read_run(path) for path in options["pool"]], options["level"])
    _refuse_unnamed(options)
    if options["launches"] == 1:
        return None
    runs, stopped = _run_launches(common.ranks, options["launches"])
    return _pool(common, runs, options["level"], stopped)


def _refuse_unnamed(options: Mapping[str, Any]) -> None:
    if options["workload"] is None:
        raise UsageError("which --workload?", "or --pool FILE for samples that are there")


@click.command("ab")
@click.option("--workload", metavar="NAME", help="alltoall, stencil, sort, isx, fft, contention.")
@click.option("-w", "--with", "given", multiple=True, metavar="NAME=VALUE",
              help="An option of the workload's trial, e.g. bytes=1MiB; may repeat.")  # fmt: skip
@setting("--orders", str, "default,auto", "Orders of ranks, the first to compare with: "
         "default, auto, a strategy, random, a file.")  # fmt: skip
@click.option("--nodes", multiple=True, metavar="[NAME=]LIST",
              help="A set of the job's nodes, or STRATEGY:N (e.g. blades:64); may repeat.",
              )  # fmt: skip
@click.option("--pattern", default="", help="Who talks to whom, where the workload does not say.")
@machine_option
@setting("--blocks", click.IntRange(min=1), 12, "Blocks of turns (ABBA) that count.")
@click.option("--controls/--no-controls", default=True, show_default=True,
              help="The first arm again (A/A), and a random order of its ranks.")  # fmt: skip
@setting("--launches", click.IntRange(min=1), 1,
         "Start so many launches one after another (with -n) and pool them.")  # fmt: skip
@click.option("--pool", multiple=True, metavar="FILE",
              help="Measure nothing: pool the samples of launches that are done; may repeat.",
              )  # fmt: skip
@level_option
@bench_callback(repeat=3, outside=_outside)
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
    from workloads.ab.running import measure, say_notes

    if options["pool"]:
        raise UsageError("--pool needs no ranks", "call it outside of the launch")
    _refuse_unnamed(options)
    number, output = _this_launch()
    if output is None and options["launches"] > 1:
        raise UsageError(
            "--launches starts launches of its own, this is inside one",
            "repeat the launch and pool the files: nidmap bench ab --pool FILE --pool FILE",
        )
    orders = [order.strip() for order in options["orders"].split(",")]
    asked = Comparison(
        orders=tuple(dict.fromkeys(filter(None, orders))),
        machine=" ".join(options["specs"]) or os.environ.get("NIDMAP_MACHINE", ""),
        options=options["given"],
        launch=number,
        **{name: options[name] for name in ("workload", "nodes", "pattern", "controls", "blocks")},
    )
    if not asked.orders:
        raise UsageError("--orders names no order")
    session = measure(replace(common, output=output or common.output), asked)
    if output is None and session.root:
        from workloads.ab.words import show_result  # numpy, on this rank alone

        header = {**session.journal.header, "ended": session.ended}
        say_notes(header["arms"])
        show_result(SCHEMA, header, session.journal.rows, options["level"], common.as_json)
    return session.exit_code


def _this_launch() -> tuple[int, str | None]:
    """Return which launch this is, and the file that `_run_launches` wants of it."""
    number, _, path = os.environ.get(_LAUNCH, "").partition(":")
    if path:
        return int(number), path
    return parse_count(os.environ.get("SLURM_STEP_ID")) or 0, None


def _run_launches(ranks: int | None, launches: int) -> tuple[list[Run], bool]:
    """Start the launches and return their samples, and whether they were interrupted.

    What one launch fixes (which processes sit where, how memory was laid out) is part of
    every sample of it and of none of the others, so that only several launches tell what an
    order does. Where one fails or is interrupted, what there is until then is returned.

    Raises
    ------
    UsageError
        Without ``-n``.
    LaunchError
        Where not even the first one succeeds.
    NidmapError
        Interrupted before there are samples.
    """
    import tempfile

    if ranks is None:
        raise UsageError("--launches starts mpiexec: how many ranks?", "-n says it")
    runs: list[Run] = []
    with tempfile.TemporaryDirectory(prefix="nidmap-ab-") as folder, Launches() as children:
        for number in range(launches):
            path = os.path.join(folder, f"launch-{number}.jsonl")
            run = _run_launch(children, ranks, number, path)
            runs += [run] if run is not None else []
            if run is None or children.stopped:
                break
    if not runs:
        raise interruption() if children.stopped else LaunchError("the launch failed")
    return runs, children.stopped


def _run_launch(children: Launches, ranks: int, number: int, path: str) -> Run | None:
    """Run one launch and return its samples, None where it failed."""
    from workloads.results import read_run

    env = {**rank_environment(ranks), _LAUNCH: f"{number}:{path}"}
    command = [*mpiexec_words(ranks), sys.executable, *sys.orig_argv[1:]]
    code, _ = children.run(command, env)
    children.stopped |= code == interruption().exit_code
    if code and not children.stopped:
        say(f"nidmap: launch {number + 1} failed (code {code})")
        return None
    kept = path if os.path.exists(path) else f"{path}.part"
    run = read_run(kept, f"launch {number + 1}") if os.path.exists(kept) else None
    return run if run and run.rows else None


def _pool(common: Common, runs: Sequence[Run], level: float, stopped: bool = False) -> int:
    """Put samples of several launches together; say what they say."""
    from workloads.ab.analysis import pool_runs
    from workloads.ab.words import show_result
    from workloads.results import check_name, save

    check_name(common.output)
    header, rows = pool_runs(runs)
    ended = "interrupted" if stopped else header.get("ended", "complete")
    header = {**header, "ended": ended}
    if common.output:
        save(common.output, header, rows)
    show_result(SCHEMA, header, rows, level, common.as_json)
    return 130 if stopped else 0
