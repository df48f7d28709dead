# SPDX-License-Identifier: Apache-2.0
"""Synthetic machines: their numbering, names and figures, and every wrong spec refused."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.specs import MAX_NODES, is_spec, parse_spec

few = st.integers(1, 4)


@given(few, few, few, few)
def test_a_dragonfly_is_row_major(groups, chassis, blades, nodes):
    spec = f"dragonfly:groups={groups},chassis={chassis},blades={blades},nodes={nodes}"
    machine = parse_spec(spec)
    places = list(product(range(groups), range(chassis), range(blades), range(nodes)))
    assert machine.coords.tolist() == [list(p) for p in places]
    assert machine.nid.tolist() == list(range(len(places)))
    assert machine.names.tolist() == [f"nid{i:05d}" for i in range(len(places))]
    assert machine.router[:, 0].tolist() == [i // nodes for i in range(len(places))]
    assert machine.topology.wiring == "consecutive"
    assert machine.topology.levels == ("group", "chassis", "blade", "node")
    assert machine.topology.extents == (groups, chassis, blades, nodes)


@given(st.lists(few, min_size=1, max_size=4), few)
def test_a_torus_runs_x_fastest_with_a_router_s_nodes_together(extents, nodes):
    machine = parse_spec(f"torus:{'x'.join(map(str, extents))},nodes={nodes}")
    expected = []
    for reversed_at in product(*(range(e) for e in reversed(extents))):
        expected += [[*reversed(reversed_at), n] for n in range(nodes)]
    assert machine.coords.tolist() == expected
    assert machine.topology.levels == (*"xyzw"[: len(extents)], "node")
    assert machine.router[:, 0].tolist() == [i // nodes for i in range(len(machine))]


def test_a_fat_tree_goes_leaf_by_leaf():
    machine = parse_spec("fattree:leaf=18,leaves=16,spines=9,bw=12.5")
    assert len(machine) == 288
    assert machine.coords[17].tolist() == [0, 17]
    assert machine.coords[18].tolist() == [1, 0]
    assert machine.topology.levels == ("leaf", "node")
    assert machine.topology.parameters["spines"] == 9
    assert machine.topology.bandwidth == {"up0": 12.5, "up1": 12.5}


def test_a_deeper_fat_tree_has_a_level_more():
    machine = parse_spec("fattree:down=4x3x2,up=1x2x5")
    assert machine.topology.levels == ("level2", "leaf", "node")
    assert machine.topology.extents == (2, 3, 4)
    assert machine.coords[4 * 3].tolist() == [1, 0, 0]


def test_a_node_with_two_parents_hangs_on_two_leaves():
    machine = parse_spec("fattree:down=4x4,up=2x2")
    assert machine.router[[0, 3, 4]].tolist() == [[0, 1], [0, 1], [2, 3]]


def test_a_tree_runs_its_first_level_fastest():
    machine = parse_spec("tree:4x16x6,dist=1:2:3")
    assert len(machine) == 384
    assert machine.topology.levels == ("level2", "level1", "node")
    assert machine.coords[[3, 4, 64]].tolist() == [[0, 0, 3], [0, 1, 0], [1, 0, 0]]
    assert machine.topology.parameters["dist"] == (1, 2, 3)


def test_distances_may_be_fractions_and_equal():
    assert parse_spec("tree:2x2,dist=0.5:0.5").topology.parameters["dist"] == (0.5, 0.5)
    assert parse_spec("tree:2x2x2x2").topology.parameters["dist"] == (1, 2, 3, 4)


def test_one_level_is_a_tree_too():
    machine = parse_spec("tree:8")
    assert machine.coords.tolist() == [[0, i] for i in range(8)]
    assert machine.topology.parameters["dist"] == (1,)


@pytest.mark.parametrize("kind", ["slingshot", "dragonfly"])
def test_slingshot_has_groups_and_switches(kind):
    machine = parse_spec(f"{kind}:groups=3,switches=8,nodes=2,nics=4,injection=25")
    assert machine.topology.levels == ("group", "switch", "node")
    assert machine.topology.fabric == "slingshot"
    assert len(machine) == 48
    assert machine.router.shape == (48, 4)
    assert machine.coords[16].tolist() == [1, 0, 0]
    assert machine.nics.tolist() == [4] * 48
    assert all(len(set(row)) == 4 for row in machine.router.tolist())
    assert machine.topology.bandwidth["injection"] == 25


def test_bandwidths_are_taken_by_name():
    spec = (
        "dragonfly:groups=18,chassis=6,blades=16,nodes=4,wiring=consecutive,global=32,"
        "injection=10,green=5.25,black=15.75,blue=4.7"
    )
    topology = parse_spec(spec).topology
    assert topology.bandwidth == {"injection": 10, "green": 5.25, "black": 15.75, "blue": 4.7}
    assert topology.parameters["global"] == 32
    alike = parse_spec("torus:8x8x8,bw=4.68,injection=9").topology.bandwidth
    assert alike == {"injection": 9} | dict.fromkeys("xyz", 4.68)
    mixed = parse_spec("torus:8x8x8,bw=4.68,z=9,injection=inf").topology.bandwidth
    assert mixed == {"injection": math.inf, "x": 4.68, "y": 4.68, "z": 9}


@pytest.mark.parametrize(
    ("spec", "gbs"),
    [
        ("dragonfly:groups=2,chassis=1,blades=2,nodes=1", 10.0),
        ("slingshot:groups=2,switches=2,nodes=1,nics=2", 50.0),
        ("dragonfly+:groups=2,leaves=1,spines=1,nodes=1", 25.0),
        ("torus:4,bw=99", 10.4),
        ("fattree:leaf=2,leaves=2,spines=1", 12.5),
    ],
)
def test_no_node_injects_without_limit_unless_that_is_asked_for(spec, gbs):
    machine = parse_spec(spec)
    assert set(injection_bandwidth(machine).tolist()) == {gbs}
    assert machine.notes == () or "assumed (injection= states it, inf none)" in machine.notes[0]
    free = parse_spec(f"{spec},injection=inf")
    assert set(injection_bandwidth(free).tolist()) == {math.inf}
    assert free.notes == ()


def test_the_default_number_of_links_is_what_the_ports_allow_and_stated():
    topology = parse_spec("dragonfly:groups=9,chassis=6,blades=16,nodes=4").topology
    assert topology.parameters["global"] == 10 * 96 // 8
    topology = parse_spec("dragonfly:groups=9,chassis=6,blades=16,nodes=4,wiring=aligned").topology
    assert topology.parameters["global"] == 96


def test_names_grow_beyond_five_digits():
    machine = parse_spec("torus:100x100x10,nodes=1")
    assert machine.names[-1] == "nid99999"
    machine = parse_spec("torus:101x100x10")
    assert (machine.names[0], machine.names[-1]) == ("nid000000", "nid100999")


def test_every_node_is_free():
    machine = parse_spec("torus:4x4")
    assert machine.free.all()
    assert machine.sources == ("torus:4x4",)


WRONG = {
    "moebius:3": "moebius",
    "dragonfly": "dragonfly",
    "dragonfly:": "key=value",
    "dragonfly:groups=9": "chassis= is missing",
    "dragonfly:groups=0,chassis=6,blades=16,nodes=4": "groups",
    "dragonfly:groups=-1,chassis=6,blades=16,nodes=4": "groups",
    "dragonfly:groups=1.5,chassis=6,blades=16,nodes=4": "groups",
    "dragonfly:groups=٣,chassis=6,blades=16,nodes=4": "groups",
    "dragonfly:groups=9,groups=9,chassis=6,blades=16,nodes=4": "twice",
    "dragonfly:group=9,chassis=6,blades=16,nodes=4": "did you mean groups?",
    "dragonfly:groups=9,chassis=6,blades=16,nodes=4,speed=3": "unknown option 'speed'",
    "dragonfly:groups=9,chassis=6,blades=16,nodes=4,wiring=odd": "aligned, consecutive",
    "dragonfly:groups=9,chassis=6,blades=16,nodes=4,wiring=aligned,global=32": "multiples of 96",
    "dragonfly:groups=9,chassis=6,blades=16,nodes=4,wiring=same-chassis,global=7": "multiple",
    "dragonfly:groups=9,chassis=6,blades=16,nodes=4,blue=0": "blue",
    "dragonfly:groups=9,chassis=6,blades=16,nodes=4,blue=nan": "blue",
    "dragonfly:groups=100000,chassis=1000,blades=10,nodes=1": str(MAX_NODES),
    "dragonfly:groups=2,chassis=1,blades=1,nodes=1,global=99999999": "global",
    "slingshot:groups=2,switches=4,nodes=1,wiring=same-chassis": "Slingshot",
    "slingshot:groups=2,switches=4,nodes=1,nics=65": "nics",
    "slingshot:groups=2,switches=4,nodes=1,chassis=2": "chassis",
    "torus:": "missing",
    "torus:0x4": "0",
    "torus:axb": "'a'",
    "torus:4x": "''",
    "torus:2x2x2x2x2": "at most 4",
    "torus:100000x100000x100000": str(MAX_NODES),
    "torus:4x4,w=3": "'w'",
    "torus:4x4,bw=-1": "bw",
    "torus:4x4,bw=1e400": "bw",
    "torus:4x4,,": "''",
    "torus:nodes=2": "missing",
    "fattree:leaf=18,leaves=16": "spines= is missing",
    "fattree:leaf=1,leaves=1,spines=1000000000": "switches",
    "fattree:down=4x4,up=1": "levels",
    "fattree:down=4,up=1": "at least 2",
    "fattree:down=4x4,up=1x2,leaf=3": "'leaf'",
    "fattree:down=4x4,up=1x2,parallel=1x9999999": "too many",
    "tree:4x4,dst=1:2": "did you mean dist?",
    "tree:4x4,dist=1": "2 levels",
    "tree:4x4,dist=2:1": "decrease",
    "tree:4x4,dist=1:x": "'x'",
    "tree:4x4,dist=1:-2": "'-2'",
    "tree:4x4,bw=1:2:3": "one per level",
    "tree:" + "x".join(["1"] * 13): "at most 12",
}


@pytest.mark.parametrize("spec", WRONG)
def test_a_wrong_spec_is_refused_in_one_line(spec):
    with pytest.raises(UsageError) as error:
        parse_spec(spec)
    message = str(error.value)
    assert WRONG[spec] in message
    assert "\n" not in message
    assert error.value.exit_code == 2


@given(
    st.sampled_from(["dragonfly:", "torus:", "fattree:", "tree:", "slingshot:"]),
    st.text(alphabet="0123456789x,=:.abcdefghilnoprstuw-", max_size=40),
)
def test_any_text_is_a_machine_or_refused(kind, rest):
    try:
        machine = parse_spec(kind + rest)
    except UsageError:
        return
    assert len(machine) == math.prod(machine.topology.extents)


def test_what_is_a_spec():
    assert is_spec("torus:8x8")
    assert not is_spec("torus")
    assert not is_spec("c:\\dump")


def test_a_hundred_thousand_nodes_have_all_columns():
    machine = parse_spec("dragonfly:groups=261,chassis=6,blades=16,nodes=4")
    assert len(machine) == 100_224
    for name in ("cname", "role", "state", "mode", "cores", "features", "planned"):
        assert len(getattr(machine, name)) == len(machine)
    assert np.array_equal(machine.router[:, 0], machine.nid // 4)


@pytest.mark.parametrize(
    "spec", ["fattree:leaf=2,leaves=2,spines=2", "fattree:down=2x2,up=1x2", "tree:2x2,bw=9"]
)
def test_the_nodes_own_links_have_a_figure_on_trees_too(spec):
    found = parse_spec(f"{spec},injection=5").topology.bandwidth
    assert found.pop("up0") == 5
    assert found == {
        name: figure
        for name, figure in parse_spec(spec).topology.bandwidth.items()
        if name != "up0"
    }
