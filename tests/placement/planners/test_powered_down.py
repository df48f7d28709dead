# SPDX-License-Identifier: Apache-2.0
"""Nodes that must boot are taken after all that are up, as Slurm does."""

import numpy as np
import pytest

import nidmap
from nidmap.placement.planners import fitting_planners
from nidmap.placement.scheduler.availability import read_availability

TREE = "SwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Nodes=n[4-7]\nSwitchName=t Switches=s[0-1]\n"


@pytest.fixture
def machine(tmp_path):
    """Two leaves of four: of the first all are up or off by turns, of the second one is up."""
    (tmp_path / "topology.conf").write_text(TREE)
    words = ["idle", "idle~", "idle", "idle#", "idle~", "idle~", "idle%", "idle"]
    rows = "".join(f"n{k} {word}\n" for k, word in enumerate(words))
    (tmp_path / "sinfo").write_text(f"NODELIST STATE\n{rows}")
    return nidmap.load_machine(str(tmp_path / "topology.conf"), str(tmp_path / "sinfo"))


def strategies(machine):
    return [name for name in fitting_planners(machine) if name != "auto"]


def test_no_strategy_boots_a_node_while_enough_are_up(machine):
    for name in strategies(machine):
        for count in (1, 2, 3):
            plan = nidmap.plan(machine, count, strategy=name)
            assert set(plan.nodes) <= {"n0", "n2", "n7"}, name
            assert not any("boot" in text for text in plan.warnings)


def test_all_that_are_up_come_before_one_that_boots(machine):
    for name in strategies(machine):
        plan = nidmap.plan(machine, 4, strategy=name)
        assert {"n0", "n2", "n7"} < set(plan.nodes), name
        assert "n6" not in plan.nodes
        said = "1 node of the plan must boot first: too few are powered up"
        assert (said in plan.warnings) or name.startswith("slurm-"), name


def test_one_that_is_included_may_boot(machine):
    row = int(np.flatnonzero(machine.names == "n1")[0])
    plan = nidmap.plan(machine, 2, strategy="compact", include=[row])
    assert "n1" in plan.nodes
    assert len(set(plan.nodes) & {"n0", "n2", "n7"}) == 1


def test_those_that_boot_are_listed_last():
    text = "NODELIST STATE\nn1 idle~\nn2 idle\nn3 idle%\nn4 idle!\nn5 mix#\nn6 idle#\nn7 down~\n"
    answer = read_availability(None, text, "-")
    assert list(answer.nodes()) == ["n2", "n1", "n6"]
    assert answer.counts()["powering_down"] == 1
