# SPDX-License-Identifier: Apache-2.0
"""Start times against AccaSim's, and against a plain scheduler that counts everything anew."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.workloads.replay.engine import Replay
from nidmap.workloads.replay.policies import NAMES
from nidmap.workloads.replay.scheduler import Rules
from nidmap.workloads.replay.sharing import JobTraffic
from nidmap.workloads.replay.trace import Columns, clean_trace

EASY = sorted((Path(__file__).parent / "easy").glob("*.txt"))


def trace_of(rows):
    """Return a trace of (submit, run, limit, nodes)."""
    nan = float("nan")
    columns = [(str(k), s, nan, r, limit, n, "", "") for k, (s, r, limit, n) in enumerate(rows)]
    return clean_trace(Columns.of_rows(columns), "test")


def starts(rows, machine, rules, policy="none"):
    trace = trace_of(rows)
    outcome = Replay(machine, trace, policy, rules, machine.compute).run()
    return trace, outcome


@pytest.mark.parametrize("path", EASY, ids=[path.stem for path in EASY])
def test_easy_backfill_starts_each_job_when_accasim_does(path):
    """AccaSim keeps a reservation until it comes, and fills in no job that outlasts it."""
    table = np.loadtxt(path)
    nodes = int(path.stem.partition("-")[0])
    rules = Rules("easy", tested=10**6, resolution=0, spare=False, renewed=False)
    rows = table[:, 1:5].tolist()
    _, outcome = starts(rows, nidmap.load_machine(f"tree:{nodes}x1"), rules)
    assert len(table) > 400
    waited = outcome.start > table[:, 1] - table[0, 1]
    assert waited.sum() > 50
    np.testing.assert_array_equal(outcome.start + table[0, 1], table[:, 5])


def plain_starts(rows, nodes, depth):
    """Schedule anew at every event: each waiting job in turn is tried, then reserved for."""
    start = [None] * len(rows)
    times = {s for s, *_ in rows}
    while times:
        now = min(times)
        times.discard(now)
        running = [
            (start[k] + limit, n)
            for k, (_, run, limit, n) in enumerate(rows)
            if start[k] is not None and start[k] + run > now
        ]
        held = []  # begin, end, nodes of what runs and of what is reserved

        def free(when, held=held, running=running):
            taken = sum(n for end, n in running if when < end)
            return nodes - taken - sum(n for begin, end, n in held if begin <= when < end)

        def fits(begin, limit, n, held=held, running=running, free=free, now=now):
            points = {begin, *(b for b, _, _ in held), *(e for e, _ in running)}
            return all(free(t) >= n for t in points if begin <= t < begin + limit)

        waiting = [k for k, (s, *_) in enumerate(rows) if s <= now and start[k] is None]
        reserved = 0
        for k in waiting:
            _, run, limit, n = rows[k]
            if fits(now, limit, n) and not (depth == 0 and reserved):
                start[k] = now
                running.append((now + limit, n))
                times.add(now + run)
            else:
                if reserved < depth:
                    ends = {e for e, _ in running} | {e for _, e, _ in held}
                    begin = min(t for t in ends if t > now and fits(t, limit, n))
                    held.append((begin, begin + limit, n))
                reserved += 1
    return start


job = st.tuples(st.integers(0, 40), st.integers(1, 20), st.integers(0, 15), st.integers(1, 8)).map(
    lambda j: (j[0], j[1], j[1] + j[2], j[3])
)


@given(st.lists(job, min_size=1, max_size=14), st.sampled_from(["none", "easy", "conservative"]))
def test_backfill_is_that_of_a_scheduler_that_counts_everything_anew(rows, backfill):
    rows = sorted(rows, key=lambda row: row[0])
    rows = [(row[0] - rows[0][0], *row[1:]) for row in rows]
    depth = {"none": 0, "easy": 1, "conservative": 10**6}[backfill]
    machine = nidmap.load_machine("tree:8x1")
    _, outcome = starts(rows, machine, Rules(backfill, resolution=0))
    assert outcome.start.tolist() == plain_starts(rows, 8, depth)


def held_rows(outcome, job):
    return outcome.rows[outcome.first[job] : outcome.first[job + 1]]


@given(
    st.lists(job, min_size=1, max_size=14),
    st.sampled_from(NAMES),
    st.sampled_from(["easy", "conservative"]),
    st.sampled_from([0.0, 7.0]),
    st.floats(0, 1),
)
def test_nothing_is_lost_and_no_node_has_two_jobs(rows, policy, backfill, resolution, share):
    machine = nidmap.load_machine("fattree:leaf=2,leaves=4,spines=1,bw=1")
    up = machine.compute.copy()
    up[3] = False
    rows = [(s, r, limit, min(n, 7)) for s, r, limit, n in rows]
    trace = trace_of(rows)
    apps = [JobTraffic(("alltoall", "ring")[k % 2], 2, 1e6, share) for k in range(len(trace))]
    outcome = Replay(machine, trace, policy, Rules(backfill, resolution=resolution), up, apps).run()
    assert (outcome.start >= trace.submit).all()
    held = []
    for k in range(len(trace)):
        nodes = held_rows(outcome, k)
        assert len(set(nodes.tolist())) == len(nodes) == trace.nodes[k]
        assert up[nodes].all()
        held += [(node, outcome.start[k], outcome.end[k]) for node in nodes.tolist()]
    held.sort()
    for (node, _, end), (other, begin, _) in pairwise(held):
        assert node != other or begin >= end
    seconds = sum(end - begin for _, begin, end in held)
    assert seconds == pytest.approx((trace.nodes * (outcome.end - outcome.start)).sum())
    if not share:
        np.testing.assert_allclose(outcome.end - outcome.start, trace.run)


def test_an_end_is_rounded_up_to_the_resolution():
    """Slurm would start the job of 55 s before a reservation at 60 s, which could begin at 50."""
    rows = [(0, 50, 50, 3), (1, 10, 10, 4), (2, 55, 55, 1)]
    machine = nidmap.load_machine("tree:4x1")
    assert starts(rows, machine, Rules("easy", resolution=60))[1].start.tolist() == [0, 57, 2]
    assert starts(rows, machine, Rules("easy", resolution=0))[1].start.tolist() == [0, 50, 60]


def test_no_more_jobs_are_tested_than_stated():
    rows = [(0, 50, 50, 3), (1, 10, 10, 4), (2, 99, 99, 1), (3, 10, 10, 1)]
    machine = nidmap.load_machine("tree:4x1")
    assert starts(rows, machine, Rules("easy", 500, 0))[1].start.tolist() == [0, 50, 60, 3]
    assert starts(rows, machine, Rules("easy", 1, 0))[1].start[3] > 50


def test_a_pinned_job_waits_for_its_nodes_and_others_pass_by_on_the_rest():
    """Both jobs plan on nodes that a third has by the time they could start."""
    machine = nidmap.load_machine("fattree:leaf=2,leaves=2,spines=1,bw=1")
    apps = [JobTraffic("alltoall", 1, None, 0.0)] * 3
    trace = trace_of([(0, 100, 100, 2), (1, 10, 10, 2), (2, 10, 10, 2)])
    easy = Rules("easy", resolution=0)
    fixed = Replay(machine, trace, "fixed", easy, machine.compute, apps).run()
    pinned = Replay(machine, trace, "pin", easy, machine.compute, apps).run()
    assert fixed.start.tolist() == [0, 100, 110]  # all have planned on the same two
    assert pinned.start.tolist() == [0, 1, 11]  # the third found none free, and takes any
