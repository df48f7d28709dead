# SPDX-License-Identifier: Apache-2.0
"""Nodes that pending jobs name: a plan leaves them to these jobs, and to nobody else."""

import json

import pytest

from nidmap.placement.commands import run
from nidmap.placement.slurm import command
from tests.real_slurm import needs_slurm, real_slurm
from tests.waiting import HANGS

NAMES = [f"nid{i:05d}" for i in range(8)]
PLAN = ["plan", "-m", "torus:8", "--from", "idle", "-q"]


@pytest.fixture(scope="module")
def slurm():
    with real_slurm(NAMES, real=1, scheduler="sched/backfill") as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def asked(slurm, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
    monkeypatch.setattr(command, "TIMEOUT", HANGS)
    slurm.free()
    slurm.occupy(["nid00000"])


def submit(slurm, *options):
    """Submit a job that waits for a node which is busy, and return its id."""
    wanted = ["sbatch", "--parsable", "-N3", "-w", "nid[00000-00002]", *options, "--wrap=true"]
    return slurm.run(wanted).stdout.strip()


def planned(capfd, *options):
    assert run([*PLAN, "--strategy", "nid-order", *options, "--json"]) == 0
    out, said = capfd.readouterr()
    return json.loads(out), said


@needs_slurm
def test_a_pending_job_keeps_the_nodes_that_it_names_until_it_is_gone(slurm, capfd):
    assert planned(capfd, "-N", "2")[0]["nodelist"] == "nid[00001-00002]"
    job = submit(slurm)
    plan, said = planned(capfd, "-N", "2")
    assert plan["nodelist"] == "nid[00003-00004]"
    assert said == (f"nidmap: 2 idle nodes left out, requested by pending jobs ({job})\n")
    assert planned(capfd, "-N", "2", "--include", "nid00001")[0]["nodelist"] == "nid[00001,00003]"
    slurm.run(["scancel", job])
    plan, said = planned(capfd, "-N", "2")
    assert (plan["nodelist"], said) == ("nid[00001-00002]", "")


@needs_slurm
def test_a_held_job_keeps_nothing(slurm, capfd):
    submit(slurm, "--hold")
    assert planned(capfd, "-N", "2")[0]["nodelist"] == "nid[00001-00002]"


@needs_slurm
def test_too_few_besides_them_is_said_and_compare_takes_them_then(slurm, capfd):
    submit(slurm)
    assert run([*PLAN, "-N", "6"]) == 1
    said = capfd.readouterr().err.splitlines()
    assert said[-1] == (
        "nidmap: 6 nodes wanted, 5 free besides 2 that pending jobs request; "
        "--include takes nodes that pending jobs request"
    )
    words = "compare -m torus:8 --from idle --pattern ring --strategies nid-order --json -N"
    for count, nodes in ((6, "nid[00001-00006]"), (2, "nid[00003-00004]")):
        assert run([*words.split(), str(count)]) == 0
        rows = json.loads(capfd.readouterr().out)["rows"]
        assert [row["nodelist"] for row in rows if row["strategy"] == "nid-order"] == [nodes]


@needs_slurm
def test_what_a_plan_is_compared_with_is_slurms_own_choice_of_all_idle_nodes(slurm, capfd):
    submit(slurm)
    for strategy in ("compact", "auto"):
        assert run([*PLAN, "-N", "2", "--strategy", strategy, "--json"]) == 0
        plan = json.loads(capfd.readouterr().out)
        assert plan["default"]["nodelist"] == "nid[00001-00002]"
        assert not {"nid00001", "nid00002"} & set(plan["nodes"])


@needs_slurm
def test_a_no_of_slurms_is_said_under_quiet_too(slurm, capfd):
    assert run([*PLAN, "-N", "2", "--ppn", "999", "--check"]) == 1
    assert "would never start" in capfd.readouterr().err
