# SPDX-License-Identifier: Apache-2.0
"""``nidmap replay``: what a placement policy would do to all jobs of a site."""

from __future__ import annotations

import importlib.util
import os
from itertools import product
from typing import TYPE_CHECKING

import click
import numpy as np

from nidmap.placement.commands.common import machine_option
from nidmap.placement.errors import UsageError
from nidmap.placement.lookup import rows_of
from nidmap.placement.machine_option import machine_from
from nidmap.placement.scheduler.availability import is_down
from nidmap.placement.support.writing import make_folder, to_json, write_output
from nidmap.placement.ui import bar, say
from nidmap.rankmap.past_jobs import read_applications
from nidmap.rankmap.tasks import ranks_here, refuse_stdin
from nidmap.workloads.replay.page import html_page
from nidmap.workloads.replay.policies import NAMES, SiteView, make_policy
from nidmap.workloads.replay.readers import read_trace
from nidmap.workloads.replay.report import Report
from nidmap.workloads.replay.scheduler import Rules
from nidmap.workloads.replay.study import Case, Study, check_study, run_study
from nidmap.workloads.replay.synthetic import parse_synthetic
from nidmap.workloads.replay.trace import Trace, fit_trace
from nidmap.workloads.world import run_guarded

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Mask


@click.command()
@click.argument("source", metavar="TRACE")
@machine_option
@click.option(
    "--policies", default="slurm,tree,soft,pin,auto", show_default=True, metavar="P,…",
    help=f"Policies to compare with the first: {', '.join(NAMES)}.",
)  # fmt: skip
@click.option("--applications", metavar="TOML", help="Patterns by job name or user (nidmap jobs).")
@click.option(
    "--shares", default="0.05,0.2,0.5", show_default=True, metavar="S,…",
    help="Shares of run time spent communicating, for jobs that --applications does not list.",
)  # fmt: skip
@click.option("--seeds", type=click.IntRange(1, 1000), default=1, show_default=True,
              help="Number of seeds, for unknown patterns and synthetic traces.")  # fmt: skip
@click.option("--ppn", type=click.IntRange(1, 4096), help="Ranks per node where unknown.")
@click.option(
    "--backfill", type=click.Choice(["conservative", "easy", "none"]), default="conservative",
    show_default=True, help="Slurm's sched/backfill is conservative.",
)  # fmt: skip
@click.option("--bf-max-job-test", "tested", type=click.IntRange(1), default=500,
              show_default=True, help="Waiting jobs to try.")  # fmt: skip
@click.option("--bf-resolution", "resolution", type=click.FloatRange(0), default=60.0,
              show_default=True, help="Resolution of backfill, in seconds.")  # fmt: skip
@click.option("--per-node", type=click.FloatRange(1), help="Processors per node of an SWF trace.")
@click.option("--scale", default="1", show_default=True, metavar="F|fit",
              help="Multiply all job sizes by F; fit: the largest fills the machine.")  # fmt: skip
@click.option(
    "--days",
    type=click.FloatRange(0.001),
    default=float("inf"),
    help="Replay only the first days of the trace.",
)
@click.option("--down", metavar="LIST", help="Nodes that are down and run no jobs.")
@click.option("-o", "--output", "folder", metavar="DIR", help="Keep replays, report and page here.")
@click.option("--resume", "resumed", is_flag=True, help="Go on with the replays kept in -o DIR.")
@click.option("--check", "samples", type=click.IntRange(2), metavar="N",
              help="Compare the quick estimates of N jobs with full predictions.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def replay(
    source: str, specs: tuple[str, ...], policies: str, applications: str | None, shares: str,
    seeds: int, ppn: int | None, backfill: str, tested: int, resolution: float,
    per_node: float | None, scale: str, days: float, down: str | None, folder: str | None,
    resumed: bool, samples: int | None, as_json: bool,
) -> int | None:  # fmt: skip
    """Replay a site's jobs on its machine under several policies, and say who loses.

    TRACE is SWF (Parallel Workloads Archive), the output of sacct -X -P with Submit and
    Timelimit, or the CSV of nidmap jobs, each plain or gzip; or a synthetic trace,
    lublin:days=31,load=0.85,seed=1,largest=1024. A job runs longer if its nodes or
    neighbouring jobs slow its communication. Every figure is a range over shares and
    seeds. Inside srun or mpiexec the ranks share the work.

    \b
    nidmap replay trace.swf.gz -m shaheen2 --scale fit -o study
    sacct -a -X -P -S now-7days -o JobID,User,Submit,Start,End,Timelimit,NodeList,JobName > week.txt
    nidmap replay week.txt -m lumi --applications mine.toml --policies slurm,soft,auto
    srun -n 64 nidmap replay lublin:days=31 -m shaheen2 --seeds 8 -o study --resume
    """
    refuse_stdin(source)
    if resumed and folder is None:
        raise UsageError("--resume needs -o DIR, which keeps the replays")
    rules = Rules(backfill, tested, resolution)

    def work() -> int:
        machine = machine_from(specs)
        up = _nodes_up(machine, down)
        synthetic, count = source.partition(":")[0] == "lublin", int(up.sum())
        read = ([parse_synthetic(source, count, seed) for seed in range(seeds)]
                if synthetic else [read_trace(source, per_node)])  # fmt: skip
        traces = tuple(fit_trace(t, count, _scale_of(scale, t, count), days) for t in read)
        known = read_applications(applications) if applications else ()
        cases = _cases(policies, shares, seeds)
        for name in dict.fromkeys(case.policy for case in cases):
            make_policy(name, SiteView(machine, [], [], up, None))
        if folder is not None:
            make_folder(folder)
        ranks = ppn or int(machine.cores[up].min(initial=1)) or 1
        study = Study(machine, traces, cases, rules, up, known, ranks, folder or "")
        with bar() as show:
            summaries = run_study(study, resumed, show)
        if summaries is None:
            return 0
        checked = (check_study(study, samples),) if samples else ()
        report = Report(study, summaries, (*machine.notes, *checked))
        _write_report(report, folder, as_json)
        return 0

    return run_guarded(work) if ranks_here() > 1 else work()


def _write_report(report: Report, folder: str | None, as_json: bool) -> None:
    document = to_json(report.document())
    if folder is not None:
        write_output(document, os.path.join(folder, "report.json"))
        write_output(report.text(), os.path.join(folder, "report.txt"))
        page = importlib.util.find_spec("matplotlib") is not None
        if page:
            write_output(html_page(report, folder), os.path.join(folder, "page.html"))
        drawn = "and a page" if page else "(no page: pip install matplotlib)"
        say(f"nidmap: replays, reports {drawn} are in {folder}")
    write_output(document if as_json else report.text())


def _nodes_up(machine: Machine, down: str | None) -> Mask:
    """Return the nodes that run jobs."""
    words = [word for word in np.unique(machine.state).tolist() if is_down(word)]
    up = machine.compute & ~np.isin(machine.state, words)
    if down is not None:
        up[rows_of(machine, down, "--down")] = False
    if not up.any():
        raise UsageError(f"no node of {machine.name} is up")
    return np.asarray(up)


def _scale_of(text: str, trace: Trace, nodes: int) -> float:
    if text == "fit":
        return nodes / int(trace.nodes.max())
    try:
        scale = float(text)
    except ValueError:
        scale = 0.0
    if not 0 < scale < 1e6:
        raise UsageError(f"--scale {text}: it is a number above 0 or fit")
    return scale


def _cases(policies: str, shares: str, seeds: int) -> tuple[Case, ...]:
    names = [name.strip() for name in policies.split(",") if name.strip()]
    try:
        numbers = [float(share) for share in shares.split(",")]
    except ValueError:
        numbers = [-1.0]
    if not all(0 <= share <= 1 for share in numbers):
        raise UsageError(f"--shares {shares}: use numbers from 0 to 1, separated by commas")
    if not names:
        raise UsageError("--policies is empty", f"choose from {', '.join(NAMES)}")
    unique = dict.fromkeys(names), dict.fromkeys(numbers)
    return tuple(Case(p, s, k) for s, k, p in product(unique[1], range(seeds), unique[0]))
