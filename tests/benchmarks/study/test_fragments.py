# SPDX-License-Identifier: Apache-2.0
"""Machines in use: jobs beside each other, and what a new job gets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from benchmarks.study.fragments import busy, first_free
from nidmap.placement.errors import PlanError

MACHINE = nidmap.load_machine("dragonfly:groups=4,chassis=2,blades=8,nodes=4,wiring=aligned")


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 1000), st.sampled_from([0.5, 0.9]))
def test_jobs_share_no_node_and_leave_what_is_free(seed, share):
    found = busy(MACHINE, seed, share)
    rows = np.concatenate([job.rows for job in found.jobs])
    assert len(np.unique(rows)) == len(rows)
    assert not found.free[rows].any()
    assert len(rows) + found.free.sum() == len(MACHINE)
    assert found.free.sum() >= (1 - share) * len(MACHINE) - 1
    again = busy(MACHINE, seed, share)
    assert np.array_equal(again.free, found.free)


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 1000), st.integers(1, 256))
def test_others_end_until_a_job_fits(seed, count):
    found = busy(MACHINE, seed, 0.9)
    before = found.copy()
    rows = found.room(count)
    assert len(np.unique(rows)) == count
    assert found.free[rows].all()
    assert len(found.jobs) <= len(before.jobs)
    if before.free.sum() >= count:
        assert len(found.jobs) == len(before.jobs)
    running = np.concatenate([np.empty(0, int), *[job.rows for job in found.jobs]])
    assert not np.isin(rows, running).any()


@settings(deadline=None, max_examples=8)
@given(st.integers(0, 1000), st.integers(1, 256))
def test_contiguous_nodes_follow_each_other(seed, count):
    found = busy(MACHINE, seed, 0.9)
    rows = found.contiguous(count)
    assert np.array_equal(rows, np.arange(rows[0], rows[0] + count))
    assert found.free[rows].all()


def test_service_nodes_part_no_run():
    machine = nidmap.load_machine("shaheen2")
    rows = busy(machine, 0, 0.9).contiguous(200)
    assert machine.compute[rows].all()
    assert machine.compute[rows[0] : rows[-1] + 1].sum() == 200
    assert rows[-1] - rows[0] > 199


def test_the_first_free_nodes_ascend():
    found = busy(MACHINE, 3, 0.9)
    rows = first_free(found, 100)
    assert np.array_equal(rows, np.flatnonzero(found.free)[:100])


def test_more_nodes_than_there_are_is_refused():
    with pytest.raises(PlanError):
        busy(MACHINE, 0, 0.9).room(len(MACHINE) + 1)
    with pytest.raises(PlanError):
        busy(MACHINE, 0, 0.9).contiguous(len(MACHINE) + 1)
