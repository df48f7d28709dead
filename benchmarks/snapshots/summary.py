# SPDX-License-Identifier: Apache-2.0
"""All snapshots together: errors of a replay's times, and how often its ranking is right."""

from __future__ import annotations

from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.snapshots.drawing import RANDOM, Running, network_of
from benchmarks.snapshots.forecast import quick_forecasts, routed_forecasts
from nidmap.placement.support.tables import align_columns
from nidmap.workloads.replay.check import Routed
from nidmap.workloads.replay.sharing import JobTraffic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: What is predicted, and what of it.
_FORMS, _TIMES = ("routed", "quick"), ("alone", "beside")

#: Policies whose node hours differ by a smaller part are taken as alike.
_ALIKE = 0.03

#: Jobs that communicate longer by at least this part beside the others are shown by themselves.
_SLOWED = 0.05


def judge(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the measured and predicted figures of every job, and every snapshot's policies."""
    jobs = [job for run in runs for job in _jobs(run)]
    key = ("machine", "seed")
    snapshots = [
        {"machine": machine, "seed": seed, "hours": _hours(list(some))}
        for (machine, seed), some in groupby(jobs, lambda job: tuple(job[k] for k in key))
    ]
    busy = [arm["busy"] for run in runs for arm in run["arms"]]
    return {"jobs": jobs, "snapshots": snapshots, "busy_cores": max(busy, default=None)}


def _jobs(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a snapshot's jobs under each policy, with the seconds of communication per round."""
    network = network_of(run["machine"])
    routed = Routed(network)
    for arm in run["arms"]:
        jobs = [Running(JobTraffic(*job["app"]), np.array(job["rows"])) for job in arm["jobs"]]
        forms = routed_forecasts(routed, jobs), quick_forecasts(network, jobs)
        for k, (job, measured) in enumerate(zip(jobs, arm["jobs"], strict=True)):
            yield {
                "machine": run["machine"], "seed": run["seed"], "policy": arm["policy"],
                **job.app._asdict(), "nodes": job.rows.tolist(),
                "best": network.best(job.app, len(job.rows)) * run["slowed"],
                "measured": {time: _seconds(measured[time]) for time in _TIMES},
                **{
                    form: {time: getattr(forecasts[k], time) * run["slowed"] for time in _TIMES}
                    for form, forecasts in zip(_FORMS, forms, strict=True)
                },
            }  # fmt: skip


def _seconds(ranks: Sequence[Sequence[float]]) -> float:
    """Return the seconds per round that ranks communicate: its period without the sleep."""
    return float(np.mean([period - slept for _, period, slept in ranks]))


def _hours(jobs: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the node-hours of simultaneous one-hour jobs, by policy and source."""
    hours: dict[str, dict[str, float]] = {}
    for job in jobs:
        of_policy = hours.setdefault(job["policy"], {})
        app = JobTraffic(*(job[field] for field in JobTraffic._fields))
        for source in ("measured", *_FORMS):
            pace = app.pace(job[source]["beside"] / job["best"])
            of_policy[source] = of_policy.get(source, 0.0) + len(job["nodes"]) * pace
    return hours


def error_of(job: dict[str, Any], form: str, time: str) -> float:
    """Return by which share a predicted time exceeds the measured one."""
    return float(job[form][time] / job["measured"][time] - 1)


def _slowed(job: dict[str, Any]) -> bool:
    """Return whether others slow a job down, as measured or as predicted."""
    return any(job[k]["beside"] > (1 + _SLOWED) * job[k]["alone"] for k in ("measured", "routed"))


def summary_text(judged: dict[str, Any]) -> str:
    """Return the tables: errors by form, time and machine; rankings."""
    jobs, snapshots = judged["jobs"], judged["snapshots"]
    if not jobs:
        return "nothing is measured yet\n"
    rows: list[list[object]] = [["jobs of", "form", "", "jobs", "median", "90 %", "worst", "bias"]]
    groups = {machine: [job for job in jobs if job["machine"] == machine]
              for machine in dict.fromkeys(job["machine"] for job in jobs)}  # fmt: skip
    for name, some in {
        **groups,
        "all": jobs,
        "slowed": [job for job in jobs if _slowed(job)],
    }.items():
        for form in _FORMS:
            for time in _TIMES:
                errors = np.array([error_of(job, form, time) for job in some])
                off = np.abs(errors)
                figures = np.median(off), np.percentile(off, 90), off.max(), np.median(errors)
                texts = [f"{100 * figure:.1f} %" for figure in figures]
                rows.append([name, form, time, len(some), *texts])
    lines = [align_columns(rows)]
    for form in _FORMS:
        for pairs in ("policies", f"policies against {RANDOM}"):
            count, apart, right = _rankings(snapshots, form, pairs)
            lines.append(
                f"{form}, {pairs}: {count} pairs, {apart} of them {100 * _ALIKE:.0f} % or more"
                f" apart, {right} of these ranked right\n"
            )
    lines.append(f"cores that the ranks keep busy, at most: {judged['busy_cores']:.2f}\n")
    return "\n".join(lines)


def _rankings(snapshots: Sequence[dict[str, Any]], form: str, pairs: str) -> tuple[int, int, int]:
    """Return the numbers of pairs, of those that differ, and of those ranked correctly."""
    count = apart = right = 0
    for snapshot in snapshots:
        for (a, hours), (b, other) in combinations(snapshot["hours"].items(), 2):
            if (pairs == "policies") == (RANDOM in (a, b)):
                continue
            truth, said = (np.log(hours[key] / other[key]) for key in ("measured", form))
            differs = bool(abs(truth) >= np.log1p(_ALIKE))
            count, apart = count + 1, apart + differs
            right += differs and bool(np.sign(truth) == np.sign(said))
    return count, apart, right
