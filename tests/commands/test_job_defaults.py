# SPDX-License-Identifier: Apache-2.0
"""Inside a job nodes and ranks are the job's, under every batch system."""

import json

import pytest

MACHINE = ("-m", "tree:4x4")
NODES = ["nid00001", "nid00002", "nid00006"]
EMPTY = dict.fromkeys(
    (
        *("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_NTASKS", "SLURM_JOB_CPUS_PER_NODE"),
        *("SLURM_TASKS_PER_NODE", "PBS_NODEFILE", "COBALT_PARTNAME", "FLUX_URI"),
    ),
    "",
)


@pytest.fixture(params=["slurm", "pbs", "flux", "openmpi"])
def job(request, tmp_path):
    """Return the environment of a job on three nodes, and the ranks of each that it states."""
    hosts = tmp_path / "hosts"
    if request.param == "slurm":
        env = {"SLURM_JOB_NODELIST": "nid0000[1-2,6]", "SLURM_JOB_CPUS_PER_NODE": "8(x2),4"}
        return {**EMPTY, **env, "SLURM_TASKS_PER_NODE": "2(x2),1", "SLURM_NTASKS": "5"}, [2, 2, 1]
    if request.param == "pbs":
        hosts.write_text("nid00001\nnid00001\nnid00002\nnid00002\nnid00006\n")
        return {**EMPTY, "PBS_NODEFILE": str(hosts)}, [2, 2, 1]
    if request.param == "openmpi":
        hosts.write_text("nid00001 slots=2\nnid00002 slots=2\nnid00006\n")
        return {**EMPTY, "PRTE_MCA_prte_default_hostfile": str(hosts)}, [2, 2, 1]
    (tmp_path / "flux").write_text("#!/bin/sh\necho 'nid0000[1-2,6]'\n")
    (tmp_path / "flux").chmod(0o755)
    return {**EMPTY, "FLUX_URI": "local:///x", "PATH": f"{tmp_path}:/usr/bin:/bin"}, [1, 1, 1]


def test_nodes_and_ranks_are_the_jobs(inside, job):
    env, counts = job
    ranks = sum(counts)
    done = inside("order", *MACHINE, "--pattern", "ring", "--json", env=env)
    document = json.loads(done.out)
    assert (document["nodes"], document["counts"]) == (NODES, counts)
    assert "on the 3 nodes of this job" in done.err
    done = inside("order", *MACHINE, "--pattern", "ring", "--ppn", "4", "--json", env=env)
    assert json.loads(done.out)["counts"] == [4, 4, 4]
    done = inside("predict", *MACHINE, "--pattern", "alltoall", "--bytes", "1kB", "--json", env=env)
    assert json.loads(done.out)["ranks"] == ranks
    done = inside("score", *MACHINE, "--pattern", "ring", "--strategy", "row-major", env=env)
    assert done.code == 0, done.err
    done = inside("nodes", "sort", *MACHINE, "--json", env=env)
    assert (json.loads(done.out)["nodes"], json.loads(done.out)["ranks"]) == (NODES, counts)
    assert inside("nodes", "fold", env=env).out == "nid[00001-00002,00006]\n"
    done = inside("nodes", "info", *MACHINE, "--json", env=env)
    assert [node["name"] for node in json.loads(done.out)["nodes"]] == NODES


def test_a_plan_without_a_count_is_on_the_jobs_nodes(inside, job):
    env, _ = job
    done = inside("plan", *MACHINE, "--format", "lines", env=env)
    assert (done.code, sorted(done.out.split())) == (0, NODES), done.err
    done = inside("plan", *MACHINE, "-N", "5", "--format", "lines", env=env)
    assert len(done.out.split()) == 5  # the next job's


def test_what_is_piped_counts_more_than_the_job(inside, job):
    env, _ = job
    assert inside("nodes", "expand", stdin=b"n1\n", env=env).out == "n1\n"
    assert inside("nodes", "sort", *MACHINE, stdin=b"nid00003\n", env=env).out == "nid00003\n"


def test_tasks_that_slurm_derives_from_cpus_are_not_ranks_that_a_user_asked_for(inside):
    env = {"SLURM_JOB_NODELIST": "nid0000[1-2]", "SLURM_JOB_CPUS_PER_NODE": "8(x2)"}
    env = {**EMPTY, **env, "SLURM_TASKS_PER_NODE": "8(x2)"}
    done = inside("order", *MACHINE, "--pattern", "ring", "--json", env=env)
    assert json.loads(done.out)["counts"] == [1, 1]


def test_outside_of_a_job_a_plan_wants_its_count(inside, refused):
    refused(inside("plan", *MACHINE, env=EMPTY), 2, "-N")
