# SPDX-License-Identifier: Apache-2.0
"""The figures of a replay against what evalys makes of its jobs, each by its own definition."""

import csv
from pathlib import Path

import numpy as np
import pytest

import nidmap
from nidmap.workloads.replay.results import summarize
from nidmap.workloads.replay.scheduler import Rules
from tests.workloads.replay.test_scheduler import EASY, starts


def figures_of(nodes):
    """Return evalys' figures of the trace on so many nodes."""
    path = Path(__file__).parent / "easy" / "evalys.csv"
    with path.open(encoding="utf-8") as lines:
        rows = csv.DictReader(line for line in lines if not line.startswith("#"))
        return {row["measure"]: float(row[f"{nodes} nodes"]) for row in rows}


@pytest.mark.parametrize("path", EASY, ids=[path.stem for path in EASY])
def test_metrics_are_those_of_evalys(path):
    """Waits are minutes here and seconds there; utilisation is a share, not a number of nodes."""
    nodes = int(path.stem.partition("-")[0])
    rules = Rules("easy", tested=10**6, resolution=0, spare=False, renewed=False)
    rows = np.loadtxt(path)[:, 1:5].tolist()
    trace, outcome = starts(rows, nidmap.load_machine(f"tree:{nodes}x1"), rules)
    theirs, ours = figures_of(nodes), summarize(trace, outcome, nodes)
    everybody, wait, run = ours["all"], outcome.start - trace.submit, outcome.end - outcome.start
    stretch = (wait + run) / run
    mine = {
        "jobs": everybody["jobs"],
        "waiting_time mean": everybody["wait_mean"] * 60,
        "waiting_time median": everybody["wait_median"] * 60,
        "waiting_time 95th": everybody["wait_95"] * 60,
        "cumulative_waiting_time last": everybody["wait_mean"] * 60 * everybody["jobs"],
        # up to the last submission: what is left after it runs on a machine that empties
        "mean_utilisation to the last submission": ours["utilisation"] * nodes,
        "mean_utilisation to the last end": everybody["node_hours"] / ours["makespan_hours"],
        "utilisation last time": ours["makespan_hours"] * 3600,
        "utilisation area": everybody["node_hours"] * 3600,
        "turnaround_time mean *": everybody["turnaround_mean"] * 60,
        # a report has it bounded only: jobs of a second would be all that a mean shows
        "stretch mean *": stretch.mean(),
        "stretch median *": np.median(stretch),
        "bounded slowdown mean *": everybody["bounded_slowdown"],
    }
    busy = outcome.busy.sum(axis=1)
    mine |= {f"utilisation load at moment {k}": busy[k] for k in range(100, 1000, 100)}
    assert mine == pytest.approx(theirs, rel=1e-12)
