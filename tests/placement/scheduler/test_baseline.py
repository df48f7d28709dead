# SPDX-License-Identifier: Apache-2.0
"""What a plan is compared with: the scheduler's own choice, by what is known of it."""

import json
from dataclasses import replace

import numpy as np
import pytest

import nidmap
from nidmap.placement.commands import run
from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import UsageError
from nidmap.placement.planners import Request
from nidmap.placement.readers import read_text
from nidmap.placement.scheduler.baseline import (
    baseline_of,
    block_waits,
    live_baseline,
    scheduler_choice,
)
from nidmap.placement.specs import parse_spec
from tests.real_slurm import needs_slurm, real_slurm

TORUS = nidmap.load_machine("torus:4x4")


@pytest.mark.parametrize(
    ("config", "strategy", "words"),
    [
        ({"TopologyPlugin": "topology/none"}, "slurm-none", "(topology/none)"),
        ({"TopologyPlugin": "topology/default"}, "slurm-none", "(topology/default)"),
        ({"TopologyPlugin": "topology/flat"}, "slurm-none", "(topology/flat)"),
        (
            {"TopologyPlugin": "topology/tree"},
            "slurm-tree-24.11",
            "(topology/tree)",
        ),
        (
            {"TopologyPlugin": "topology/tree", "TopologyParam": "Dragonfly,TopoOptional"},
            "slurm-dragonfly",
            "(topology/tree, Dragonfly)",
        ),
        (
            {"TopologyPlugin": "topology/block"},
            "slurm-none",
            "(topology/block, simulated as topology/none)",
        ),
    ],
)
def test_the_running_slurm_says_what_it_does(config, strategy, words):
    found = baseline_of(TORUS, config={"SLURM_VERSION": "24.11.5", **config})
    assert found.strategy == strategy
    assert found.words == f"Slurm 24.11.5's own choice here {words}"


@pytest.mark.parametrize(
    ("version", "plugin", "strategy", "alone"),
    [("22.05.8", "tree", "slurm-tree", False), ("24.05.4", "tree", "slurm-tree", False),
     ("24.11.0", "tree", "slurm-tree-24.11", False), ("25.11.1", "none", "slurm-none", False),
     ("26.05.5", "none", "slurm-none", True), ("26.05.5", "tree", "slurm-tree-24.11", True),
     ("", "tree", "slurm-tree", False)],
)  # fmt: skip
def test_newer_slurms_choose_otherwise(version, plugin, strategy, alone):
    """Their choices are compared with slurmctld 22.05.8, 24.11.5 and 26.05.5 (test_slurm_real)."""
    config = {"SLURM_VERSION": version, "TopologyPlugin": f"topology/{plugin}"}
    found = baseline_of(TORUS, config=config)
    assert (found.strategy, found.lightest_alone) == (strategy, alone)
    assert found.words == f"Slurm {version}'s own choice here (topology/{plugin})"


def test_one_node_is_the_first_of_the_lightest_in_the_newest_slurm():
    machine = nidmap.load_machine("tree:4x2")
    request = Request(
        count=1,
        free=np.array([0, 1, 1, 1, 1, 1, 1, 0], dtype=bool),
        weights=np.array([1, 5, 2, 2, 5, 2, 5, 1]),
        baseline=baseline_of(machine, config={"SLURM_VERSION": "26.05.5"}),
    )
    assert scheduler_choice(machine, request).tolist() == [2]
    needed = replace(request, include=np.array([3]))
    assert scheduler_choice(machine, needed).tolist() == [3]
    old = replace(request, baseline=baseline_of(machine, config={"SLURM_VERSION": "25.11.1"}))
    assert scheduler_choice(machine, old).tolist() == [5]  # of the tightest run of equal weight


@pytest.mark.parametrize(
    ("site", "strategy"),
    [("shaheen2", "slurm-none"), ("theta", "nid-order"), ("bluewaters", "nid-order")],
)
def test_schedulers_that_nobody_has_described_take_the_first_free_nodes(site, strategy):
    assert baseline_of(nidmap.load_machine(site)).strategy == strategy


def test_a_named_baseline_is_a_strategy():
    assert baseline_of(TORUS, "compact").words == "strategy compact"
    with pytest.raises(UsageError, match="unknown strategy 'compct'"):
        baseline_of(TORUS, "compct")


def test_without_slurm_the_machine_decides(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert live_baseline(TORUS).strategy == "slurm-none"


def test_a_topology_conf_is_the_tree_plugins(tmp_path):
    conf = tmp_path / "topology.conf"
    conf.write_text(
        "SwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=n[4-7]\nSwitchName=c Switches=a,b\n"
    )
    assert baseline_of(nidmap.load_machine(str(conf))).strategy == "slurm-tree"


def test_the_topology_that_slurm_has_for_a_partition_counts_before_its_setting():
    """As Slurm 26.05 with a topology.yaml: the setting says flat, the partition has blocks."""
    text = "BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\n"
    machine = assemble([read_text(text, "scontrol show topology")])
    config = {"SLURM_VERSION": "26.05.5", "TopologyPlugin": "topology/flat"}
    assert baseline_of(machine, config=config).strategy == "slurm-block"


TREE = """SwitchName=a Nodes=nid[00000-00003]
SwitchName=b Nodes=nid[00004-00007]
SwitchName=c Switches=a,b
"""


@needs_slurm
def test_a_plan_is_held_to_what_the_live_slurm_takes(monkeypatch, capfd):
    names = [f"nid{i:05d}" for i in range(8)]
    with real_slurm(names, plugin="tree", topology_conf=TREE, real=2) as cluster:
        monkeypatch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
        cluster.drain(["nid00001"])
        words = "plan -m torus:4x2 -N 4 --from idle --check --json --strategy compact"
        assert run(words.split()) == 0
        found = json.loads(capfd.readouterr().out)
    assert found["default"]["strategy"] == "slurm-tree"
    assert found["default"]["words"].endswith("own choice here (topology/tree)")
    assert found["check"]["simulated"].startswith("nid[")
    assert found["check"]["as_simulated"] is (
        found["check"]["simulated"] == found["check"]["unpinned"]["nodelist"]
    )


def test_scheduler_choice():
    machine = parse_spec("tree:4x2")
    free = machine.free & (machine.nid > 1)
    assert scheduler_choice(machine, Request(3, free)).tolist() == [2, 3, 4]
    assert scheduler_choice(machine, Request(3, free, idle=machine.free)).tolist() == [0, 1, 2]


def test_block_waits():
    machine = parse_spec("tree:4x2")
    assert block_waits(machine, Request(2, machine.free), np.array([0, 4])) == ""
