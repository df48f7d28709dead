# SPDX-License-Identifier: Apache-2.0
"""``nidmap plan``: choose the nodes that a job should run on."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from nidmap.placement.commands.candidates import candidates, refuse_slurm_options
from nidmap.placement.commands.common import (
    AdvancedCommand,
    advanced,
    among,
    kind_option,
    machine_option,
    quiet_option,
    sending_options,
    slurm_options,
)
from nidmap.placement.commands.plan_report import PlanOptions, PlanReport
from nidmap.placement.emit import FORMATS, JOB_NODES, OwnNodes
from nidmap.placement.errors import UsageError
from nidmap.placement.hooks import SERVICES, load
from nidmap.placement.lookup import find_hosts
from nidmap.placement.machine import Machine
from nidmap.placement.machine_option import machine_from
from nidmap.placement.nodelist import NodeList
from nidmap.placement.plan import choose_nodes, usual_strategy
from nidmap.placement.planners import BUNDLED, PREDICTING
from nidmap.placement.scheduler.baseline import baseline_of, live_baseline
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.reading import format_of_name
from nidmap.placement.support.writing import write_outputs
from nidmap.placement.ui import bar, say

if TYPE_CHECKING:
    from nidmap.placement.slurm.nodes import SlurmNodes

#: Length up to which a line is shown in full on a terminal.
SHOWN = 400

#: Format implied by the suffix of -o.
SUFFIXES = {
    ".json": "json",
    ".sbatch": "sbatch",
    ".slurm": "sbatch",
    ".pbs": "pbs",
    ".hosts": "hostfile",
    ".hostfile": "hostfile",
    ".nids": "nids",
    ".cnames": "cnames",
}


_SLURM_TIME = re.compile(r"\d{1,6}(?::\d\d){0,2}|\d{1,4}-\d{1,2}(?::\d\d){0,2}", re.ASCII)


def _segment_nodes(text: str) -> int:
    """Return the number of nodes per segment; 0 stands for ``auto``."""
    if text == "auto":
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise click.BadParameter(f"{text!r} is neither a number of nodes nor auto")
    return int(text)


def _slurm_time(text: str) -> str:
    """Return a time limit in a form that sbatch accepts: minutes, minutes:seconds, …."""
    if not _SLURM_TIME.fullmatch(text):
        what = (
            f"{text!r} is not a time limit of Slurm's: minutes, [hours:]minutes:seconds, days-hours"
        )
        raise click.BadParameter(what)
    return text


@click.command(cls=AdvancedCommand)
@machine_option
@click.option(
    "-N",
    "--count",
    "count",
    type=click.IntRange(1),
    metavar="N",
    help="Nodes wanted; default: those of the current job.",
)
@click.option(
    "--strategy",
    shell_complete=among("planner"),
    help="Planner; default: auto with a pattern, else compact.",
)
@click.option("--from", "source", metavar="idle|-|LIST|FILE", help="Choose only from these nodes.")
@click.option("--exclude", metavar="LIST|FILE", help="Exclude these nodes, blades, cabinets.")
@advanced("--include", metavar="LIST|FILE", help="Always take these nodes.")
@slurm_options
@kind_option
@click.option("--ppn", type=click.IntRange(1), help="Ranks per node, for headers and host files.")
@advanced(
    "--per-blade",
    type=click.IntRange(1, 4),
    default=4,
    help="Nodes per blade, for strategy blades; default: 4.",
)
@advanced(
    "--segment",
    type=_segment_nodes,
    metavar="S|auto",
    help="Nodes per segment; no segment is split over blocks.",
)
@advanced("--seed", type=int, default=0, help="Seed of random and auto; default: 0.")
@click.option(
    "--pattern",
    metavar="P",
    shell_complete=among("pattern"),
    help="Communication pattern: alltoall, fft:64x64 …",
)
@sending_options
@advanced(
    "--deadline", type=float, metavar="S", help="Processor seconds for auto; default: 4.5 to 8."
)
@click.option("--order-out", metavar="FILE", help="Write auto's rank order to FILE.")
@click.option(
    "--check",
    is_flag=True,
    help="Ask Slurm for the expected start; exits 1 if there is none.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([f for f in FORMATS if f != "json"]),
    metavar="F",
    help=f"{', '.join(f for f in FORMATS if f != 'json')}.",
)
@advanced(
    "--switch-wait",
    type=_slurm_time,
    metavar="TIME",
    help="With sbatch: wait at most TIME for as few leaf switches; pins no nodes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE; its suffix sets the format.")
@quiet_option
def plan(form: str | None, as_json: bool, strategy: str | None, **params: Any) -> int:
    """Choose the nodes that a job should run on.

    The list goes to stdout in the planner's order; stderr says in words what was
    chosen. auto picks the nodes and the rank order with the least predicted time
    for --pattern, and reports the gain over the scheduler's own choice as a range
    over all that is unknown about the machine. Its rank order goes to --order-out,
    in the format that the file name implies (MPICH_RANK_ORDER, .slots, .hosts …).
    Of any other strategy's nodes --pattern says what the job takes on them.

    \b
    nidmap plan -m shaheen2 -N 512 --ppn 32 --pattern fft:128x128 --order-out MPICH_RANK_ORDER
    nidmap plan -m shaheen2 -N 216 --strategy blades --format sbatch
    nidmap plan -m shaheen2 -N 64 --from idle -p workq --check
    \f
    \b
    STRATEGIES

    With --segment S the nodes come in segments of S, none split across blocks: those of
    Slurm's topology/block, else the smallest unit of the machine that holds S nodes.
    The exit code is 1 if the free nodes do not allow that. --segment auto, with a
    training: pattern, takes the nodes of a replica: tp, ep and pp stay inside a block.

    A job gets nodes of one kind (GPUs, cores, features): the most common one with
    enough free nodes, or the one that --kind names.

    Headers (sbatch, exclude, pbs) request all that the nodes were chosen by:
    partition, constraint, reservation, included and excluded nodes. exclude
    leaves the choice to Slurm, and says which nodes it would choose now; where a
    strategy that predicts sees no gain in those, nothing is excluded.
    """
    report = report_of(form, as_json, strategy, **params)
    options, chosen = report.options, report.plan
    check = None
    if options.check:
        simulated = NodeList.parse(chosen.facts["default"].get("nodelist", ""))
        from nidmap.placement.slurm import starts

        check = starts.check_plan(report.job, simulated)  # with exactly the job's header
    text, note = report.text(check), ""
    seen = options.output in (None, "-") and sys.stdout.isatty()
    if seen:  # for a person: the sentence first, and long lists of names cut
        report.say(check)
        text = _shorten_lines(text)
    outputs = [(text, options.output)]
    if options.order_out is not None:
        assert chosen.outlook is not None  # strategies that predict have an order
        order, note = chosen.outlook.order_text(options.order_out)
        outputs.insert(0, (order, options.order_out))
    write_outputs(*outputs)
    if not seen:
        report.say(check)
    if note:
        say(f"nidmap: {note}")
    return int(check is not None and check.pinned.never)


_listed = f"Strategies: {', '.join([*PREDICTING, *BUNDLED])}; slurm-... are Slurm's own choice."
_wrapped = textwrap.fill(_listed, 78, subsequent_indent="    ", break_on_hyphens=False)
plan.help = (plan.help or "").replace("STRATEGIES", _wrapped)


def _shorten_lines(text: str) -> str:
    """Shorten long node lists to their beginning and end, for a terminal."""
    return "".join(map(_shorten_line, text.splitlines(keepends=True)))


def _shorten_line(line: str) -> str:
    if len(line) <= SHOWN:
        return line
    half = SHOWN // 2
    head, tail = line[:half].rpartition(",")[0], line[-half:].partition(",")[2]
    left_out = len(line) - len(head) - len(tail)
    return f"{head},… {left_out} characters left out; use -o FILE for all …,{tail}"


def report_of(form: str | None, as_json: bool, strategy: str | None, **params: Any) -> PlanReport:
    """Return the report on the plan that the options of ``nidmap plan`` request."""
    if params["count"] is None:
        params |= _of_job(params)
    form = "json" if as_json else form
    options = PlanOptions(
        form=form or format_of_name(params["output"], SUFFIXES, "nodelist", "--format"),
        strategy=strategy or usual_strategy(params["pattern"]),
        **params,
    )
    _refuse_unpredicted(options)
    if options.switch_wait is not None and options.form != "sbatch":
        raise UsageError("--switch-wait goes with --format sbatch")
    refuse_slurm_options(options.source, options.slurm.values())
    return _choose_nodes(machine_from(options.specs), options)


def _of_job(params: dict[str, Any]) -> dict[str, Any]:
    """Return the nodes of the surrounding job: how many, which, and the ranks on each."""
    job = load(SERVICES["job here"])(os.environ)
    if job is None:
        raise click.MissingParameter(param_type="option", param_hint="'-N' / '--count'")
    listed = map(os.environ.get, JOB_NODES.values())  # these words denote the job's own nodes
    counts = job.stated_counts()
    alike = counts is not None and int(counts.min()) == int(counts.max())
    say(f"nidmap: on {job.words}; override with -N or --from")
    return {
        "count": len(job.nodes),
        "source": params["source"]
        or ("" if job.note else next(filter(None, listed), ""))
        or OwnNodes(",".join(job.nodes)),
        "ppn": params["ppn"] or (int(counts[0]) if alike and counts is not None else None),
    }


def _refuse_unpredicted(options: PlanOptions) -> None:
    """Refuse options that do not fit a strategy with, or without, predictions."""
    if options.strategy in PREDICTING:
        if options.order_out is not None and options.form == "exclude":
            raise UsageError(
                "--order-out cannot be combined with --format exclude",
                "Slurm chooses the nodes: nidmap run orders the ranks inside the job",
            )
        if options.order_out == "-" and options.output in (None, "-"):
            raise UsageError("the nodes and the order cannot both go to standard output")
        return
    if options.segment == 0:
        raise UsageError("--segment auto needs --pattern training:…")
    searching = [name for name in ("deadline", "order_out") if getattr(options, name) is not None]
    useless = searching or ([] if options.pattern is not None else [*options.traffic])
    if useless:
        what = f"--{useless[0].replace('_', '-')}"
        if not searching:
            raise UsageError(f"{what} needs a pattern", "give --pattern")
        raise UsageError(
            f"{what} needs a strategy that searches", f"use --strategy {', '.join(PREDICTING)}"
        )


def _choose_nodes(machine: Machine, options: PlanOptions) -> PlanReport:
    """Choose the nodes, showing a progress bar while a predicting strategy searches."""
    lists = options.include, options.exclude
    offered = candidates(machine, options.count, options.source, *lists, **options.slurm)
    live = offered.slurm is not None
    baseline = live_baseline(machine) if live else baseline_of(machine)
    with bar() as show:
        job = None
        if options.strategy in PREDICTING or options.pattern is not None:
            traffic = {name: word for name, word in options.traffic.items() if name != "deadline"}
            job = load(SERVICES["job"])(ppn=options.ppn, **traffic)
        progress = None if show is None else lambda now: show(now.share, now.text)
        nodes = replace(
            offered.request(options.count, options.kind),
            per_blade=options.per_blade,
            segment=options.segment,
            weights=_node_weights(machine, offered.slurm),
            seed=options.seed,
            baseline=baseline,
        )
        chosen = choose_nodes(machine, nodes, options.strategy, job, options.deadline, progress)
    return PlanReport(machine, chosen, options, offered, baseline)


def _node_weights(machine: Machine, slurm: SlurmNodes | None) -> Ints | None:
    """Return Slurm's weight of each node of the machine; None if Slurm states none."""
    if slurm is None or slurm.weight is None:
        return None
    at = find_hosts(slurm.names, machine.names, "sinfo")
    return np.append(slurm.weight, 1)[at]  # the last one is for nodes that Slurm does not list
