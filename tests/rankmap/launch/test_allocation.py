# SPDX-License-Identifier: Apache-2.0
"""What Slurm's variables say of an allocation."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import LaunchError, NidmapError, ParseError, UsageError
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.launch.allocation import (
    allocation,
    deal_ranks,
    fill_nodes,
    from_hosts,
    job_here,
    job_id,
    job_on,
)

JOB = {"SLURM_JOB_NODELIST": "nid[00003,00012,00020]", "SLURM_JOB_ID": "4711"}


def test_no_variables_no_allocation():
    assert allocation({}) is None
    assert allocation({"SLURM_JOB_NODELIST": ""}) is None


def test_an_allocation_as_salloc_describes_it():
    got = allocation(
        JOB
        | {
            "SLURM_TASKS_PER_NODE": "8,1(x2)",
            "SLURM_JOB_CPUS_PER_NODE": "8,1(x2)",
            "SLURM_NTASKS": "10",
        }
    )
    assert list(got.nodes) == ["nid00003", "nid00012", "nid00020"]
    assert got.tasks.tolist() == [8, 1, 1]
    assert (got.ranks, got.job) == (10, "4711")
    assert got.counts(10).tolist() == [8, 1, 1]


def test_older_names_are_read():
    got = allocation(
        {"SLURM_NODELIST": "nid00003", "SLURM_NPROCS": "4", "SLURM_TASKS_PER_NODE": "4"}
    )
    assert (got.tasks.tolist(), got.ranks) == ([4], 4)


@pytest.mark.parametrize(
    ("cpus", "ranks", "expected"),
    [
        ("64(x3)", 14, [5, 5, 4]),
        ("64(x3)", 3, [1, 1, 1]),
        ("16(x2),6", 20, [7, 7, 6]),
        ("16(x2),6", 38, [16, 16, 6]),
        ("8,1(x2)", 9, [7, 1, 1]),
    ],
)
def test_a_step_of_another_size_is_dealt_as_slurm_deals_it(cpus, ranks, expected):
    env = JOB | {"SLURM_TASKS_PER_NODE": "2(x3)", "SLURM_JOB_CPUS_PER_NODE": cpus}
    assert allocation(env).counts(ranks).tolist() == expected


@pytest.mark.parametrize(
    ("ranks", "nodes", "expected"),
    [(2, None, [1, 1, 0]), (10, 2, [5, 5, 0]), (8, 1, [8, 0, 0]), (24, 3, [8, 8, 8])],
)
def test_a_step_that_is_smaller_is_put_on_the_first_nodes(ranks, nodes, expected):
    env = JOB | {"SLURM_JOB_CPUS_PER_NODE": "8(x3)", "SLURM_TASKS_PER_NODE": "8(x3)"}
    assert allocation(env).counts(ranks, nodes=nodes).tolist() == expected


def test_a_pbs_job_is_its_host_file(tmp_path):
    (tmp_path / "hosts").write_text("x3001c0\nx3000c0\nx3001c0\n")
    got = allocation({"PBS_NODEFILE": str(tmp_path / "hosts"), "PBS_JOBID": "12.server"})
    assert (list(got.nodes), got.tasks.tolist(), got.job) == (["x3001c0", "x3000c0"], [2, 1], "12")
    with pytest.raises(ParseError, match=r"cannot be read: No such file"):
        allocation({"PBS_NODEFILE": str(tmp_path / "gone")})
    (tmp_path / "hosts").write_text("# none\n")
    with pytest.raises(LaunchError, match="lists no hosts"):
        allocation({"PBS_NODEFILE": str(tmp_path / "hosts")})


@pytest.mark.parametrize(
    ("env", "job"),
    [
        ({"LSB_JOBID": "7", "LSB_MCPU_HOSTS": "a 2 b 1"}, "7"),
        ({"LSB_JOBID": "7", "LSB_HOSTS": "a a b"}, "7"),
        ({"JOB_ID": "7", "PE_HOSTFILE": "a 2 q@a UNDEFINED\nb 1 q@b UNDEFINED\n"}, "7"),
        ({"JOB_ID": "7", "LSB_MCPU_HOSTS": "a 2 b 1"}, ""),
        ({"OAR_JOB_ID": "7", "OAR_NODEFILE": "a\na\nb\n"}, "7"),
    ],
)
def test_jobs_of_lsf_grid_engine_and_oar(tmp_path, env, job):
    for name, text in env.items():
        if name.endswith("FILE"):
            (tmp_path / "hosts").write_text(text)
            env = {**env, name: str(tmp_path / "hosts")}
    got = allocation(env)
    assert (list(got.nodes), got.tasks.tolist(), got.job) == (["a", "b"], [2, 1], job)


def test_a_cobalt_job_is_a_list_of_nids():
    got = allocation({"COBALT_PARTNAME": "12-14,20", "COBALT_JOBID": "9"})
    assert (list(got.nodes), got.job) == (["12", "13", "14", "20"], "9")


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_filling_leaves_no_room_before_the_last_node(room, data):
    ranks = data.draw(st.integers(1, sum(room)))
    flat = [node for node, most in enumerate(room) for _ in range(most)][:ranks]
    assert fill_nodes(ranks, np.array(room)).tolist() == [flat.count(k) for k in range(len(room))]
    with pytest.raises(LaunchError, match="slots"):
        fill_nodes(sum(room) + 1, np.array(room))


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_dealing_equals_one_by_one(room, data):
    ranks = data.draw(st.integers(1, sum(room)))
    expected = [0] * len(room)
    left = ranks
    while left:
        for k, most in enumerate(room):
            if left and expected[k] < most:
                expected[k] += 1
                left -= 1
    assert deal_ranks(ranks, np.array(room)).tolist() == expected


@pytest.mark.parametrize(
    ("extra", "ranks", "cpus", "says"),
    [
        ({}, 6, 1, "is not known; give --ppn"),
        ({"SLURM_JOB_CPUS_PER_NODE": "8,1(x2)"}, 11, 1, "is not known"),
        ({"SLURM_JOB_CPUS_PER_NODE": "8,1(x2)"}, 5, 2, "is not known"),
        ({"SLURM_JOB_CPUS_PER_NODE": "8(x3)"}, 12, 4, "is not known"),
    ],
)
def test_counts_that_do_not_follow_are_refused(extra, ranks, cpus, says):
    with pytest.raises(LaunchError, match=says):
        allocation(JOB | extra).counts(ranks, cpus)


@pytest.mark.parametrize(
    ("extra", "error"),
    [
        ({"SLURM_HET_SIZE": "2"}, LaunchError),
        # of the first component alone, or of none
        ({"SLURM_PACK_SIZE": "2"}, LaunchError),
        ({"SLURM_TASKS_PER_NODE": "32(x4)"}, UsageError),
        ({"SLURM_TASKS_PER_NODE": "32"}, UsageError),
        ({"SLURM_TASKS_PER_NODE": "32(x99999999)"}, UsageError),
        ({"SLURM_NTASKS": "many"}, LaunchError),
        ({"SLURM_JOB_NODELIST": "nid[00003"}, NidmapError),
        ({"SLURM_JOB_NODELIST": "nid[1-999999999]"}, NidmapError),
    ],
)
def test_variables_that_cannot_be_meant(extra, error):
    with pytest.raises(error):
        allocation(JOB | extra)


def test_allocation_stated_counts():
    job = {"SLURM_JOB_NODELIST": "n[1-3]", "SLURM_JOB_CPUS_PER_NODE": "8(x3)"}
    assert allocation({**job, "SLURM_TASKS_PER_NODE": "8(x3)"}).stated_counts() is None
    more = {"SLURM_TASKS_PER_NODE": "2(x2),1", "SLURM_NTASKS": "5"}
    assert allocation({**job, **more}).stated_counts().tolist() == [2, 2, 1]


def test_job_id():
    assert job_id({"PBS_JOBID": "12.server"}) == "12.server"
    assert job_id({}) == ""


def test_job_here():
    assert job_here({}) is None


def test_from_hosts():
    a = from_hosts("nid1 slots=4\nnid2:2\nnid1\n", "hosts")
    assert list(a.nodes) == ["nid1", "nid2"]
    assert a.tasks.tolist() == [5, 2]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a 2 b", "b has no slots in 'a 2 b'"),
        ("a", "a has no slots"),
        ("a b", "'b' is not a number of slots for a"),
        ("2 a", "'a' is not a number of slots for 2"),
        ("a 2 b 0", "'0' is not a number of slots for b"),
        ("a 2 b -1", "'-1' is not a number of slots for b"),
        ("a 2 b 1.5", "'1.5' is not a number of slots for b"),
    ],
)
def test_lsf_names_every_host_with_its_slots(value, said):
    """LSF's reference: LSB_MCPU_HOSTS has pairs; what has not is refused, and never counted."""
    with pytest.raises(ParseError, match=re.escape(said)) as caught:
        allocation({"LSB_MCPU_HOSTS": value, "LSB_JOBID": "7"})
    assert str(caught.value).startswith("LSB_MCPU_HOSTS: ")
    assert "LSF writes pairs" in str(caught.value)


def test_lsf_hosts_that_are_numbers_stay_hosts():
    job = allocation({"LSB_MCPU_HOSTS": "12 2 13 4", "LSB_JOBID": "7"})
    assert (list(job.nodes), job.tasks.tolist()) == (["12", "13"], [2, 4])


def test_a_host_by_its_short_and_its_long_name_is_one_node(tmp_path, monkeypatch):
    """PBS may write both: the node has the slots of both lines, in the order of the first."""
    (tmp_path / "nodes").write_text("nid00003\nnid00001\nnid00003.cm.org\nNID00001\nnid00002\n")
    env = {"PBS_NODEFILE": str(tmp_path / "nodes"), "PBS_JOBID": "1.s"}
    job = job_on(parse_spec("torus:4"), env)
    assert list(job.nodes) == ["nid00003", "nid00001", "nid00002"]
    assert job.tasks.tolist() == [2, 2, 1]
    assert job.turns.tolist() == [0, 1, 0, 1, 2]


@pytest.mark.parametrize(
    "env",
    [
        {"SLURM_JOB_ID": "7"},
        {"PBS_JOBID": "7.server"},
        {"LSB_JOBID": "7", "LSB_HOSTS": "", "LSB_MCPU_HOSTS": ""},
        {"JOB_ID": "7", "SGE_ROOT": "/opt/sge"},  # one without a parallel environment
        {"SLURM_JOB_ID": "7", "SLURM_HET_SIZE": "2", "SLURM_JOB_NODELIST_HET_GROUP_0": "n1"},
    ],
)
def test_no_nodes_are_taken_for_those_of_a_job_that_names_none(env):
    with pytest.raises(LaunchError, match=r"which nodes job 7|heterogeneous jobs"):
        job_on(parse_spec("tree:4x4"), env)
    assert job_on(parse_spec("tree:4x4"), {"JOB_ID": "7"}) is None  # nobody's
