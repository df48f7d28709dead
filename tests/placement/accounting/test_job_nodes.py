# SPDX-License-Identifier: Apache-2.0
"""Free at a job's start: the sweep against looking at every job, and every node, one by one."""

from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.job_nodes import find_job_nodes, free_at_starts
from nidmap.placement.nodelist import NodeList
from nidmap.placement.records import JobRecord
from nidmap.placement.specs import parse_spec

MACHINE = parse_spec("torus:3x4")


@st.composite
def jobs(draw):
    found = []
    for number in range(draw(st.integers(0, 12))):
        names = draw(st.sets(st.integers(0, 13), min_size=1, max_size=5))  # two are strangers
        start = float(draw(st.integers(1, 12)) if draw(st.integers(0, 7)) else float("nan"))
        lasts = draw(st.integers(0, 6)) if draw(st.booleans()) else float("inf")
        end = start + lasts if start == start else float("inf")
        nodes = NodeList(f"nid{k:05d}" for k in sorted(names))
        found.append(JobRecord(str(number), nodes, start=start, end=end))
    return found


def had_nodes(job, moment):
    since = job.start if job.start == job.start else float("-inf")
    return since <= moment < job.end


@given(jobs(), st.sets(st.integers(0, 11)))
def test_free_is_what_no_other_job_had(every, down):
    usable = MACHINE.compute.copy()
    usable[list(down)] = False
    job_nodes = find_job_nodes(MACHINE, every)
    names = MACHINE.names.tolist()
    listed = [job for job in every if set(job.nodes) & set(names)]
    assert [job.id for job in job_nodes.jobs] == [job.id for job in listed]
    assert job_nodes.strangers == sum(len(set(job.nodes) - set(names)) for job in every)
    found = dict(free_at_starts(job_nodes, usable, range(len(job_nodes))))
    assert len(found) == len(listed)
    for k, job in enumerate(listed):
        moment = job.start if job.start == job.start else float("-inf")
        taken = {n for other in listed if had_nodes(other, moment) for n in other.nodes}
        free = {n for r, n in enumerate(names) if usable[r]} - taken - set(job.nodes)
        assert {names[row] for row in found[k].nonzero()[0]} == free
        assert [names[row] for row in job_nodes.of(k)] == sorted(set(job.nodes) & set(names))


def test_a_job_that_is_listed_twice_counts_once():
    job = JobRecord("7", NodeList(["nid00001"]), start=1.0, end=5.0)
    again = JobRecord("7", NodeList(["nid00002"]), start=6.0)  # requeued
    assert len(find_job_nodes(MACHINE, [job, job, again])) == 2
