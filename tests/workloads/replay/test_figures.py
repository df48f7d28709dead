# SPDX-License-Identifier: Apache-2.0
"""Free nodes over time, and the figures of a report, against sums by hand."""

import numpy as np

from nidmap.workloads.replay.policies import fragmentation
from nidmap.workloads.replay.profile import Profile
from nidmap.workloads.replay.report import Range
from nidmap.workloads.replay.results import bounded_slowdown


def test_free_nodes_over_time():
    profile = Profile(0.0, 2, [(10.0, 4), (5.0, 1)])
    assert profile.earliest(3, 20.0) == 5
    assert profile.earliest(7, 1.0) == 10
    assert profile.earliest(8, 1.0) == float("inf")
    assert profile.fits(2, 100.0)
    profile.take(5.0, 25.0, 3)
    assert not profile.fits(2, 100.0)
    assert profile.fits(2, 5.0)
    assert profile.earliest(2, 30.0) == 10
    assert profile.earliest(2, 3.0, after=1.0) == 1
    profile.advance(12.0)
    steps = np.isfinite(profile.times)
    assert profile.times[steps].tolist() == [12, 25]
    assert profile.free[steps].tolist() == [4, 7]


def test_jobs_that_end_at_once_are_one_step():
    """A reservation from then on takes of all their nodes: none is missing in between."""
    profile = Profile(0.0, 1, [(10.0, 2), (10.0, 3)])
    profile.take(10.0, 20.0, 4)
    assert profile.fits(1, 30.0)


def test_free_nodes_together_and_apart():
    unit = np.array([0, 0, 1, 1])
    together, apart = (np.array(free, dtype=bool) for free in ([1, 1, 0, 0], [1, 0, 1, 0]))
    assert fragmentation(unit, together, 2) == 0.0
    assert fragmentation(unit, apart, 2) == 0.5


def test_a_short_job_counts_as_ten_seconds():
    wait, run = np.array([30.0, 0.0, 90.0]), np.array([10.0, 1.0, 2.0])
    assert bounded_slowdown(wait, run).tolist() == [4.0, 1.0, 9.2]


def test_a_range_agrees_where_all_of_it_is_on_one_side():
    assert Range.of([3.0, 1.0, 2.0]) == (1.0, 2.0, 3.0)
    assert Range(1.0, 2.0, 3.0).agrees(0.5)
    assert not Range(1.0, 2.0, 3.0).agrees(1.0)
    assert not Range(-1.0, 2.0, 3.0).agrees(0.0)
    assert Range(1.0, 2.0, 3.0).text() == "2.0 (1.0 to 3.0)"
    assert Range(1.0, 1.0, 1.0).text("{:.0f}") == "1"
