# SPDX-License-Identifier: Apache-2.0
"""Snapshots of jobs side by side: how they are drawn, and how measured times are judged."""

import numpy as np
import pytest

from benchmarks.snapshots.drawing import draw_snapshot, network_of
from benchmarks.snapshots.forecast import routed_forecasts
from benchmarks.snapshots.summary import judge, summary_text
from nidmap.workloads.replay.check import Routed

SPEC = "minicray:torus"


@pytest.fixture(scope="module")
def snapshot():
    return draw_snapshot(network_of(SPEC), 1, ("tree", "auto"), 4000.0)


def test_jobs_run_at_once_on_nodes_of_their_own(snapshot):
    assert list(snapshot.jobs) == ["tree", "auto", "random"]
    for jobs in snapshot.jobs.values():
        assert 5 <= len(jobs) <= 8
        rows = np.concatenate([job.rows for job in jobs])
        assert len(np.unique(rows)) == len(rows)
        assert [job.app for job in jobs] == [job.app for job in snapshot.jobs["tree"]]
    dealt = [
        np.concatenate([job.rows for job in snapshot.jobs[name]]) for name in ("tree", "random")
    ]
    assert np.array_equal(*map(np.sort, dealt))


def test_what_is_measured_as_predicted_has_no_error_and_its_ranking(snapshot):
    """Ranks of one snapshot take what every link routed says, but for one job's: 10 % less."""
    routed = Routed(network_of(SPEC))
    arms, spoilt = [], snapshot.jobs["random"][0]
    for policy, jobs in snapshot.jobs.items():
        rows = []
        for job, told in zip(jobs, routed_forecasts(routed, jobs), strict=True):
            factor = 0.9 if job is spoilt else 1.0
            times = {
                name: [[9, 0.2 + seconds * 4000 * factor, 0.2]] * len(job.rows)
                for name, seconds in (("alone", told.alone), ("beside", told.beside))
            }
            rows.append({"app": list(job.app), "rows": job.rows.tolist(), **times})
        arms.append({"policy": policy, "idle": 1.0, "busy": 0.25, "jobs": rows})
    run = {"machine": SPEC, "seed": 1, "slowed": 4000.0, "seconds": [1, 1], "arms": arms}
    judged = judge([run])
    errors = [job["routed"]["beside"] / job["measured"]["beside"] - 1 for job in judged["jobs"]]
    assert sum(abs(error) > 1e-9 for error in errors) == 1
    assert max(errors) == pytest.approx(1 / 0.9 - 1)
    text = summary_text(judged)
    assert "at most: 0.25" in text
    (line,) = (line for line in text.splitlines() if line.startswith("routed, policies:"))
    hours = judged["snapshots"][0]["hours"]
    apart = abs(np.log(hours["tree"]["measured"] / hours["auto"]["measured"])) >= np.log(1.03)
    assert f"1 pairs, {int(apart)} of them" in line
    assert f"{int(apart)} of these ranked right" in line
