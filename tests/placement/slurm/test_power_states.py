# SPDX-License-Identifier: Apache-2.0
"""Nodes that power down, or are down, beside what a real slurmctld gives its jobs."""

from contextlib import ExitStack

import numpy as np
import pytest

import nidmap
from nidmap.placement.scheduler.availability import slurm_availability
from nidmap.placement.slurm import command
from nidmap.placement.slurm.nodes import free_nodes
from tests.real_slurm import needs_slurm, real_slurm
from tests.waiting import HANGS, wait_until

NAMES = [f"q{k}" for k in range(1, 7)]
PROGRAMS = "SuspendProgram=/bin/true\nResumeProgram=/bin/true\n"
TIMES = "SuspendTime=3600\nResumeTimeout=600\n"


@pytest.fixture
def powering_down(monkeypatch):
    """Return what starts a cluster whose first two nodes power down within so many seconds."""

    def start(stack, seconds):
        extra = f"{PROGRAMS}{TIMES}SuspendTimeout={seconds}\n"
        slurm = stack.enter_context(real_slurm(NAMES, real=0, extra=extra))
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        monkeypatch.setattr(command, "TIMEOUT", HANGS)
        slurm.run(["scontrol", "update", "NodeName=q1,q2", "State=POWER_DOWN"])
        return slurm

    return start


@pytest.fixture
def stack():
    with ExitStack() as opened:
        yield opened


@needs_slurm
def test_a_node_that_powers_down_is_not_free(powering_down, stack):
    slurm = powering_down(stack, 3600)
    for state in ("power_down", "powering_down"):
        nodes = free_nodes()
        assert set(nodes.state[:2]) <= {"power_down", "powering_down"}
        assert nodes.free.tolist() == [False] * 2 + [True] * 4
        answer = slurm.run(["sbatch", "--test-only", "-N1", "-w", "q1", "--wrap=true"], check=False)
        assert answer.returncode
        if state == "power_down":  # for a second only
            wait_until(lambda: (free_nodes().state[:2] == "powering_down").all(), pause=0.2)


@needs_slurm
def test_slurm_takes_nodes_that_are_up_before_those_that_boot(powering_down, stack):
    slurm = powering_down(stack, 1)
    wait_until(lambda: (free_nodes().state[:2] == "powered_down").all(), pause=0.2)
    answer = slurm_availability(None, free_nodes())
    assert answer.machine.names[answer.machine.free].tolist() == NAMES
    assert list(answer.nodes()) == [*NAMES[2:], "q1", "q2"]
    for count in (2, 5):
        job = slurm.run(["sbatch", "--parsable", f"-N{count}", "--wrap=true"]).stdout.strip()
        held = ["squeue", "-h", "-j", job, "-o", "%N"]
        wait_until(lambda held=held: slurm.run(held).stdout.strip(), pause=0.2)
        given = slurm.run(["scontrol", "show", "hostnames", slurm.run(held).stdout.strip()])
        for strategy in ("slurm-none", "compact", "nid-order"):
            plan = nidmap.plan(
                answer.machine, count, strategy=strategy, states=np.asarray(answer.machine.state)
            )
            assert sorted(plan.nodes) == given.stdout.split(), strategy
        slurm.run(["scancel", job])
        wait_until(lambda: (free_nodes().state[2:] == "idle").all(), pause=0.2)
