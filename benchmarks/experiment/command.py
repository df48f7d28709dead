# SPDX-License-Identifier: Apache-2.0
"""The command ``python -m benchmarks.experiment``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.experiment.cases import CASES
from nidmap.placement.commands import missing
from nidmap.placement.errors import LaunchError, OutputError, UsageError
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say
from nidmap.workloads.options import option_with_default

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SCHEMA = "nidmap.experiment/1"

#: Cases that show one effect: fewer seeds tell it as well.
_FEW = 3


@click.command("experiment")
@option_with_default("--seeds", click.IntRange(1, 1000), 10, "Fragmentations of each case.")
@click.option("--case", "chosen", multiple=True, metavar="NAME", help="Only this one; may repeat.")
@option_with_default("--blocks", click.IntRange(6), 9, "Blocks of turns that count.")
@click.option("--again", is_flag=True, help="Go on with what is in the folder already.")
@option_with_default("-o --output folder", str, "minicray-experiment",
                     "For samples, tables and plots.",
         metavar="FOLDER")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def experiment(
    seeds: int, chosen: tuple[str, ...], blocks: int, again: bool, folder: str, as_json: bool
) -> None:
    """Measure Slurm's choice against nidmap's on fragmented mini-Crays.

    Other jobs hold some nodes; the real slurmctld says what it would give a
    job, nidmap plan --strategy auto what it would take, and both run side by
    side in blocks of one launch. Ten seeds take an hour on two cores.

    \b
    python -m benchmarks.experiment --seeds 10 -o results
    python -m benchmarks.experiment --case stencil --seeds 2
    """
    unknown = next((name for name in chosen if name not in CASES), None)
    if unknown is not None:
        raise UsageError(f"unknown case {unknown!r}", f"choose from {', '.join(CASES)}")
    try:
        Path(folder, "samples").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror}") from None
    runs = _measure_cases(chosen or tuple(CASES), seeds, blocks, again, Path(folder))
    found = _write_results(runs, Path(folder))
    from benchmarks.experiment.summary import text

    write_output(to_json(found) if as_json else text(found["summary"]), None)


def _measure_cases(
    names: Sequence[str], seeds: int, blocks: int, again: bool, folder: Path
) -> list[dict[str, Any]]:
    """Return all runs; finished ones are kept, whatever happens to the rest."""
    kept, done = folder / "runs.jsonl", dict[tuple[str, int], dict[str, Any]]()
    if again and kept.exists():
        runs = [json.loads(line) for line in kept.read_text().splitlines()]
        done = {(run["case"], run["seed"]): run for run in runs}
    for machine in dict.fromkeys(CASES[name].machine for name in names):
        todo = [
            (name, seed)
            for seed in range(seeds)
            for name in names
            if CASES[name].machine == machine and (CASES[name].strict or seed < _FEW)
            if (name, seed) not in done
        ]
        for run in _measure_on(machine, todo, blocks, folder) if todo else ():
            done[run["case"], run["seed"]] = run
            lines = "".join(json.dumps(one) + "\n" for one in done.values())
            write_output(lines, str(kept))
    return [done[n, s] for n in names for s in range(seeds) if (n, s) in done]


def _measure_on(
    spec: str, todo: Sequence[tuple[str, int]], blocks: int, folder: Path
) -> Iterable[dict[str, Any]]:
    """Build a mini-Cray, measure on it, and take it down."""
    from benchmarks.experiment.cluster import Cluster
    from benchmarks.experiment.running import measure_case
    from nidmap.placement.load import load_machine
    from nidmap.workloads.minicray.blueprint import build_minicray
    from nidmap.workloads.minicray.slurm import find_slurm

    slurm, why = find_slurm()
    if slurm is None:
        raise LaunchError(f"the experiment compares with Slurm's choice: {why}")
    name, machine = f"experiment-{os.getpid()}", load_machine(spec)
    standing = build_minicray((spec,), name)
    try:
        cluster = Cluster(name)
        for case, seed in todo:
            run = measure_case(cluster, CASES[case], machine, seed, blocks, folder / "samples")
            arms = [a for a in run["arms"] if a["arm"] != "slurm" and not a["control"]]
            each = [f"{a['arm']} {a['ratio']:.2f} (predicted {a['predicted']:.2f})" for a in arms]
            say(f"{run['case']}, seed {run['seed']}: {', '.join(each)}")
            yield run
    finally:
        standing.down()


def _write_results(runs: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Write tables and plots; return the summary."""
    from benchmarks.experiment.plots import PLOTS, draw
    from benchmarks.experiment.summary import arms_table, summary
    from nidmap.workloads.results import csv_text

    found = {
        "schema": SCHEMA,
        "runs": len(runs),
        "summary": summary(runs, [name for name, case in CASES.items() if case.strict]),
    }
    write_output(to_json(found), str(folder / "summary.json"))
    write_output(csv_text(arms_table(runs)), str(folder / "arms.csv"))
    for name in PLOTS:
        try:
            write_output(draw(name, runs), str(folder / f"{name}.svg"))
        except ModuleNotFoundError as error:
            say(f"nidmap: {missing(error.name or '', 'a plot')}")
            break
    return found
