# SPDX-License-Identifier: Apache-2.0
"""The command ``python -m benchmarks.snapshots``."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from benchmarks.snapshots.drawing import Running, Snapshot, draw_snapshot, network_of
from benchmarks.snapshots.summary import judge, summary_text
from nidmap.placement.errors import LaunchError, OutputError
from nidmap.placement.support.writing import to_json, write_output
from nidmap.placement.ui import say
from nidmap.rankmap.predict import Job, Predictor
from nidmap.workloads.minicray import client
from nidmap.workloads.minicray.blueprint import build_minicray
from nidmap.workloads.minicray.commands import launch_command, launch_environment
from nidmap.workloads.minicray.net import wire_factor
from nidmap.workloads.options import option_with_default

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nidmap.placement.machine import Machine
    from nidmap.placement.support.array_types import Ints
    from nidmap.workloads.replay.sharing import Network

#: Mini-Crays, in turn; the fat tree has three times as many nodes below a leaf as links above it.
_MACHINES = (
    "minicray:dragonfly",
    "minicray:torus",
    "minicray:fattree,leaf=6,leaves=4,bw=10",
)

#: What is compared.
_POLICIES = ("tree", "auto")


@click.command("snapshots")
@option_with_default("--snapshots count", click.IntRange(1, 1000), 20, "How many to measure.")
@click.option("-m", "--machine", "machines", multiple=True, metavar="SPEC", default=_MACHINES,
              help="A mini-Cray; may repeat: the snapshots take turns.")  # fmt: skip
@click.option("--seconds", type=(float, float), default=(1.8, 4.5), show_default=True,
              help="That count: alone, side by side.")  # fmt: skip
@option_with_default("--scale", float, 4000.0, "How many times slower links are.")
@click.option("--time-limit", type=float, default=np.inf, metavar="SECONDS",
              help="Begin no snapshot that would end later; run it again to go on.")  # fmt: skip
@option_with_default("-o --output folder", str, "minicray-snapshots", "For what is measured.",
                     metavar="FOLDER")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print all jobs as JSON.")
def snapshots(
    count: int, machines: tuple[str, ...], seconds: tuple[float, float], scale: float,
    time_limit: float, folder: str, as_json: bool,
) -> None:  # fmt: skip
    """Measure simultaneous jobs on mini-Crays against the times that a replay predicts.

    Each snapshot has 5 to 8 jobs at once on the nodes that two policies of nidmap replay give
    them, and on any of these nodes. Each job runs alone, then all together. What is in the
    folder already is kept.

    \b
    python -m benchmarks.snapshots -o results
    python -m benchmarks.snapshots --snapshots 3 -m minicray:torus
    """
    path = Path(folder, "snapshots.jsonl")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        runs = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    except OSError as error:
        raise OutputError(f"cannot use {folder}: {error.strerror}") from None
    done = {(run["machine"], run["seed"]) for run in runs}
    until = time.monotonic() + time_limit
    left = {
        spec: [seed for seed in range(place, count, len(machines)) if (spec, seed) not in done]
        for place, spec in enumerate(machines)
    }
    for spec, todo in sorted(left.items(), key=lambda item: -len(item[1])):
        for run in _measure_on(spec, todo, seconds, scale, path.parent, until):
            runs.append(run)
            write_output("".join(json.dumps(one) + "\n" for one in runs), str(path))
    judged = judge(runs)
    write_output(to_json(judged) if as_json else summary_text(judged), None)


def _measure_on(
    spec: str, seeds: list[int], seconds: tuple[float, float], scale: float, folder: Path,
    until: float,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Build a mini-Cray, measure snapshots on it, and take it down."""
    if not seeds or time.monotonic() > until:
        return
    name, network = f"snapshots-{os.getpid()}", network_of(spec)
    standing, last = build_minicray((spec,), name, scale=scale, topology="off"), 0.0
    try:
        about = client.ask_daemon(name, {"do": "status"})
        slowed = about["scale"] * wire_factor(about["mtu"])
        for seed in seeds:
            began = time.monotonic()
            if began + last > until:
                return
            snapshot = draw_snapshot(network, seed, _POLICIES, slowed)
            measured = _measure(about, snapshot, network, slowed, seconds, folder)
            last = time.monotonic() - began
            cores = ", ".join(f"{one['busy']:.2f} ({one['idle']:.2f})" for one in measured)
            say(f"{spec}, seed {seed}: {last:.0f} s, cores busy (idle): {cores}")
            yield {
                "machine": spec, "seed": seed, "slowed": slowed, "seconds": seconds,
                "arms": [
                    {"policy": policy, **result, "jobs": [
                        {"app": list(job.app), "rows": job.rows.tolist(), **times}
                        for job, times in zip(jobs, result["jobs"], strict=True)
                    ]}
                    for (policy, jobs), result in zip(snapshot.jobs.items(), measured, strict=True)
                ],
            }  # fmt: skip
    finally:
        standing.down()


def _measure(
    about: dict[str, Any], snapshot: Snapshot, network: Network, slowed: float,
    seconds: tuple[float, float], folder: Path,
) -> list[dict[str, Any]]:  # fmt: skip
    """Run a snapshot under each policy in one launch; return what its ranks measured."""
    paths = {name: folder.absolute() / f"launch.{name}" for name in ("job", "board", "output")}
    jobs = list(snapshot.jobs.values())
    board = np.zeros((len(jobs), max(map(len, jobs)), 2), dtype=np.int64)
    paths["board"].write_bytes(board.tobytes())
    job = {
        "hosts": about["names"], "seconds": seconds, "shape": board.shape,
        "board": str(paths["board"]), "output": str(paths["output"]),
        "arms": [
            {"jobs": [_description(network, job, slowed) for job in arm]} for arm in jobs
        ],
    }  # fmt: skip
    paths["job"].write_text(json.dumps(job))
    program = [sys.executable, "-m", "benchmarks.snapshots.ranks", str(paths["job"])]
    argv = launch_command(about, program, nodes=len(about["names"]))
    root = str(Path(__file__).parents[2])
    env = {**launch_environment(about, program), "PYTHONPATH": root}
    try:
        if code := client.run(about["name"], argv, env=env):
            raise LaunchError(f"the ranks of a snapshot failed (code {code})")
        results: list[dict[str, Any]] = json.loads(paths["output"].read_text())
        return results
    finally:
        for path in paths.values():
            path.unlink(missing_ok=True)


def _description(network: Network, job: Running, slowed: float) -> dict[str, Any]:
    """Return a job's description for its ranks: members, compute time, messages."""
    machine, app = network.machine, job.app
    model = Predictor(machine, Job(*app[:3]))
    flows = [phase.traffic.listed() for phase in model.phases(model.place(job.rows))]
    computes = network.best(app, len(job.rows)) * slowed * (1 - app.share) / app.share
    return {
        "members": np.searchsorted(_nodes(machine), job.rows).tolist(),
        "pause": computes,
        "phases": [
            np.array([flow.source, flow.target, flow.bytes.round()], dtype=np.int64).T.tolist()
            for flow in flows
        ],
    }  # fmt: skip


def _nodes(machine: Machine) -> Ints:
    return np.flatnonzero(machine.compute)
