# SPDX-License-Identifier: Apache-2.0
"""Nodes whose router has lost its links, and what planning makes of them."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import PlanError
from nidmap.placement.network.connected import connected_nodes
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.compare import compare
from nidmap.rankmap.predict import Job
from tests.placement.network.small_dragonflies import Reference, listed, wired


def without_links_of(spec, lost):
    """Return a dragonfly of one node a router, all joined but those that lost their links."""
    machine = parse_spec(spec)
    group = machine.coords[:, 0]
    rows = [
        (a, b, 0 if group[a] == group[b] else 2, 1)
        for a, b in combinations(range(len(machine)), 2)
        if not {a, b} & lost
    ]
    return wired(machine, rows)


MACHINES = Path(__file__).parents[2] / "machines"

SPEC = "dragonfly:groups=3,chassis=1,blades=4,nodes=1,global=1"


@given(listed(), st.data())
def test_the_nodes_that_stay_exchange_bytes(machine, data):
    free = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(machine), max_size=len(machine)))
    )
    kept, note = connected_nodes(machine, free)
    rows = np.flatnonzero(kept)
    joined = Reference(machine).connected
    assert joined([(a, b, 1.0) for a in rows for b in rows if a != b])
    assert (kept <= free).all()
    assert bool(note) == (kept != free).any()
    assert all(not joined([(rows[0], b, 1.0)]) for b in np.flatnonzero(free & ~kept))


def test_a_plan_and_a_comparison_leave_a_lone_router_out():
    machine = without_links_of(SPEC, {0, 5})
    found = nidmap.plan(machine, 8, job=Job("alltoall"), deadline=0.2)
    assert not {0, 5} & set(found.rows.tolist())
    assert any("nid00000 and 1 more left out" in text for text in found.warnings)
    found = compare(machine, 8, Job("alltoall", algorithm=""), strategies=["compact"])
    assert "nid00000 and 1 more left out: no link joins them to the other free nodes" in found.notes
    assert all("nid00000" not in entry.plan.nodes for entry in found.entries)


def test_too_few_joined_nodes_are_too_few():
    machine = without_links_of(SPEC, {0, 5})
    with pytest.raises(PlanError, match="11"):
        nidmap.plan(machine, 11, job=Job("alltoall"), deadline=0.2)


def test_a_node_without_a_router_is_left_out():
    machine = parse_spec(SPEC)
    router = machine.router.copy()
    router[3] = -1
    machine = replace(machine, router=router, _cache={})
    kept, note = connected_nodes(machine, machine.free)
    assert np.flatnonzero(~kept).tolist() == [3]
    assert note == "nid00003 left out: no link joins it to the other free nodes"


def test_trees_that_slurm_lists_without_a_top_are_one_network():
    machine = nidmap.load_machine(str(MACHINES / "slurm-trees-apart" / "source.conf"))
    assert connected_nodes(machine, machine.free)[1] == ""
