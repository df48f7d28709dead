# SPDX-License-Identifier: Apache-2.0
"""Slurm's switches over a machine: which leaf and which levels each network has."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.machine import Switches
from nidmap.placement.names import format_cnames
from nidmap.placement.readers import topology_conf
from nidmap.placement.slurm.command import ask_slurm
from nidmap.placement.specs import parse_spec
from nidmap.placement.switch_tree import (
    block_sizes,
    forest_roots,
    members,
    slurm_switches,
    subtree_sums,
)
from tests.placement.planners import slurm_cases as cases
from tests.real_slurm import needs_slurm, real_slurm

SPECS = {
    "tree:4x3x2": (4, [6, 2, 1]),
    "tree:8": (8, [1]),
    "dragonfly:groups=3,chassis=2,blades=4,nodes=4": (4, [24, 6, 3, 1]),
    "slingshot:groups=2,switches=3,nodes=4": (4, [6, 2, 1]),
    "torus:4x3x2,nodes=2": (2, [24, 12, 4, 1]),
    "fattree:leaf=6,leaves=5,spines=2": (6, [5, 1]),
}


@pytest.mark.parametrize(("spec", "leaf_size", "levels"), [(s, *v) for s, v in SPECS.items()])
def test_leaves_and_levels(spec, leaf_size, levels):
    found = slurm_switches(parse_spec(spec))
    assert np.bincount(found.level).tolist() == levels
    assert (np.bincount(found.leaf_of) == leaf_size).all()
    assert (found.parent >= 0).sum() == len(found.names) - 1
    assert len(set(found.names)) == len(found.names)
    assert found.kind == "tree"


@pytest.mark.parametrize("spec", SPECS)
def test_parents_stand_one_level_higher_and_hold_the_same_coordinates(spec):
    machine = parse_spec(spec)
    found = slurm_switches(machine)
    below = np.flatnonzero(found.parent >= 0)
    assert (found.level[found.parent[below]] == found.level[below] + 1).all()
    k = machine.coords.shape[1] - 1
    at = found.leaf_of.astype(np.int64)
    for depth in range(k, 0, -1):
        places = machine.coords[:, :depth]
        same = [places[at == switch] for switch in np.unique(at)]
        assert all((rows == rows[0]).all() for rows in same)
        at = found.parent[at].astype(np.int64) if depth > 1 else at


def test_blades_of_an_xe_are_the_leaves():
    spec = parse_spec("torus:2x4x2,nodes=2")
    parts = np.array([[0, 0, c, s, n] for c in range(1) for s in range(8) for n in range(4)])
    machine = replace(spec, cname=format_cnames(parts.astype(np.int32)))
    found = slurm_switches(machine)
    assert np.bincount(found.leaf_of).tolist() == [4] * 8
    assert found.leaf_of.tolist() == np.repeat(np.arange(8), 4).tolist()


def test_service_nodes_hang_on_no_switch():
    machine = parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=4")
    role = machine.role.astype("U7").copy()
    role[:4] = "service"
    found = slurm_switches(replace(machine, role=role))
    assert found.leaf_of[:4].tolist() == [-1] * 4
    assert np.bincount(found.level).tolist() == [3, 2, 2, 1]


def test_a_machine_without_compute_nodes_has_no_switch():
    machine = parse_spec("tree:4x4")
    found = slurm_switches(replace(machine, role=np.full(16, "service")))
    assert found.names == ()
    assert (found.leaf_of == -1).all()


def test_a_topology_conf_wins():
    machine = parse_spec("tree:4x4")
    own = cases.switches_of([1, -1], [0] * 16)
    assert slurm_switches(replace(machine, switches=own)) is own


@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from(cases.KINDS))
def test_sums_roots_and_members_of_any_forest(seed, n, kind):
    import random

    rng = random.Random(seed)
    parent, leaf_of = cases.random_forest(rng, n, kind)
    found = cases.switches_of(parent, leaf_of)
    figures = np.array([rng.randrange(5) for _ in parent])

    def path(switch):
        while switch >= 0:
            yield switch
            switch = parent[switch]

    total = [0] * len(parent)
    for switch, figure in enumerate(figures.tolist()):
        for above in path(switch):
            total[above] += figure
    assert subtree_sums(found, figures).tolist() == total
    assert forest_roots(found).tolist() == [list(path(s))[-1] for s in range(len(parent))]
    below = members(found)
    assert sorted(x for rows in below for x in rows.tolist()) == [
        i for i, leaf in enumerate(leaf_of) if leaf >= 0
    ]
    assert all(leaf_of[row] == s for s, rows in enumerate(below) for row in rows.tolist())


@needs_slurm
def test_slurmctld_reads_the_derived_tree(monkeypatch):
    machine = parse_spec("dragonfly:groups=3,chassis=2,blades=4,nodes=4")
    derived = slurm_switches(machine)
    named = Switches(derived.names, derived.parent, derived.level, derived.leaf_of)
    conf = cases.topology_conf(
        named.parent.tolist(), named.leaf_of.tolist(), machine.names.tolist()
    )
    with real_slurm(machine.names.tolist(), real=0, plugin="tree", topology_conf=conf) as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        said = ask_slurm(["scontrol", "show", "topology"]).output
    dump = topology_conf.read(said, "scontrol")
    leaves = {s.name: set(s.nodes) for s in dump.switches if s.nodes}
    ours = {
        f"s{k}": set(machine.names[rows].tolist())
        for k, rows in enumerate(members(derived))
        if len(rows)
    }
    assert leaves == ours
    assert [s.level for s in dump.switches] == derived.level.tolist()


def test_block_sizes():
    leaf = np.array([0, 0, 1, 1], dtype=np.int32)
    assert block_sizes(
        Switches(("a", "b"), np.array([-1, -1]), np.array([0, 0]), leaf, "block")
    ) == [2, 4, 8, 16, 32]
