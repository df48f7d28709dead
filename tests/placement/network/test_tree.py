# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import NidmapError
from nidmap.placement.load import load_machine
from nidmap.placement.machine import Links
from nidmap.placement.network import Demand, channels, hops, loads, next_channel, routings
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic

from .walking import by_name, everyone, same, shortest_loads


def topology_conf(tmp_path, parents, leaves):
    """Write a topology.conf: switches with children, and leaves with nodes; return the machine."""
    lines = [f"SwitchName={name} Nodes={nodes}" for name, nodes in leaves.items()]
    lines += [f"SwitchName={name} Switches={below}" for name, below in parents.items()]
    file = tmp_path / "topology.conf"
    file.write_text("\n".join(lines) + "\n")
    return load_machine(str(file))


def by_router(machine, walk):
    traffic = {}
    for a, b, x in walk:
        key = int(machine.router[a, 0]), int(machine.router[b, 0])
        traffic[key] = traffic.get(key, 0) + x
    return traffic


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
)
@settings(deadline=None)
def test_every_link_carries_what_walking_does(levels, seed):
    machine = parse_spec(f"tree:{'x'.join(map(str, levels))},bw=5")
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, len(machine), (2, 20))
    x = rng.integers(1, 100, 20).astype(float)
    rows = rng.permutation(len(machine))[:7]
    demand = Demand.of(machine, Traffic.of(a, b, x) + Traffic.everyone(rows, 2, 1.0))
    walk = [*zip(a, b, x, strict=True), *everyone(rows, [2] * len(rows), 1.0)]
    wanted = shortest_loads(machine, by_router(machine, walk), climb=True)
    same(by_name(machine, loads(machine, demand).load), wanted)


def uneven(tmp_path):
    return topology_conf(
        tmp_path,
        {"top": "mid,leafc", "mid": "leafa,leafb"},
        {"leafa": "n[0-3]", "leafb": "n[4-5]", "leafc": "n[6-8]"},
    )


def test_an_uneven_tree(tmp_path):
    machine = uneven(tmp_path)
    assert routings(machine) == ("single",)
    demand = Demand.of(machine, Traffic.everyone(np.arange(9), 1, 1.0))
    walk = everyone(range(9), [1] * 9, 1.0)
    wanted = shortest_loads(machine, by_router(machine, walk), climb=True)
    found = by_name(machine, loads(machine, demand).load)
    same(found, wanted)
    assert sorted(x for (x,) in found.values()) == [14, 14, 18, 18, 18, 18, 20, 20]


def test_the_next_channels_lead_there(tmp_path):
    machine = uneven(tmp_path)
    found, table = channels(machine), next_channel(machine)
    for a in range(9):
        for b in range(9):
            at, steps = int(machine.router[a, 0]), []
            while (row := int(table[at, b])) >= 0:
                assert found.source[row] == at
                steps.append(int(found.kind[row]))
                at = int(found.target[row])
            assert at == machine.router[b, 0]
            counted = hops(machine, machine.router[[a], 0], machine.router[[b], 0])[0]
            assert counted.tolist() == np.bincount(steps, minlength=len(counted)).tolist()


def test_trees_that_nothing_joins_are_taken_as_joined_above_and_it_is_said(tmp_path):
    leaves = {"a": "n[0-1]", "b": "n[2-3]", "c": "n[4-5]", "d": "n[6-7]"}
    machine = topology_conf(tmp_path, {"s": "a,b", "t": "c,d"}, leaves)
    found = loads(machine, Demand.of(machine, Traffic.everyone(np.arange(8), 1, 1.0)))
    assert set(found.load.tolist()) == {12.0}
    assert found.notes == (
        "no listed link joins the 2 top switches: no bandwidth is known above them",
    )
    two = hops(machine, machine.router[[0, 0], 0], machine.router[[7, 2], 0])
    assert two.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_cabled_switches_that_nothing_joins_are_an_error(tmp_path):
    machine = topology_conf(tmp_path, {}, {"a": "n[0-1]", "b": "n[2-3]"})
    cabled = replace(machine, topology=replace(machine.topology, fabric="infiniband"), _cache={})
    if channels(cabled).source.size:
        pytest.skip("the reader gave it a root")
    near = Demand.of(cabled, Traffic.everyone(np.arange(2), 1, 1.0))
    assert not loads(cabled, near).load.any()
    for far in (
        Demand.of(cabled, Traffic.everyone(np.arange(4), 1, 1.0)),
        Demand.of(cabled, Traffic.of(np.array([0]), np.array([3]), 1.0)),
    ):
        with pytest.raises(NidmapError, match="no path joins"):
            loads(cabled, far)


def ring_of_switches():
    """Return four switches in a ring, joined as no tree is, two links on one side."""
    tree = parse_spec("tree:2x4")
    a, b = np.array([0, 1, 2, 0], np.int32), np.array([1, 2, 3, 3], np.int32)
    links = Links(
        a, b, np.zeros(4, np.int8), ("ib",), np.array([2, 1, 1, 1], np.int32), np.full(4, 5.0)
    )
    return replace(tree, links=links, _cache={})


def test_switches_that_make_no_tree_split_over_all_shortest_paths():
    machine = ring_of_switches()
    assert routings(machine) == ("shortest", "single")
    demand = Demand.of(machine, Traffic.everyone(np.arange(8), 1, 3.0))
    found = loads(machine, demand)
    walk = everyone(range(8), [1] * 8, 3.0)
    wanted = shortest_loads(machine, by_router(machine, walk), climb=False)
    same(by_name(machine, found.load), wanted)
    assert "do not form a tree" in found.notes[0]
    assert hops(machine, np.array([0]), np.array([2])).tolist() == [[2.0]]


def test_single_there_follows_its_table():
    machine = ring_of_switches()
    found, table = channels(machine), next_channel(machine)
    load = np.zeros(len(found))
    for a in range(8):
        for b in range(8):
            at = int(machine.router[a, 0])
            while (row := int(table[at, b])) >= 0:
                load[row] += 3.0
                at = int(found.target[row])
            assert at == machine.router[b, 0]
    demand = Demand.of(machine, Traffic.everyone(np.arange(8), 1, 3.0))
    np.testing.assert_allclose(loads(machine, demand, "single").load, load)


def test_classes_have_bandwidths():
    machine = parse_spec("tree:4x2x2,bw=10:20:40")
    found = loads(machine, Demand.of(machine, Traffic.everyone(np.arange(16), 1, 1e9))).by_class()
    assert found == {
        "injection": 1.5,
        "ejection": 1.5,
        "up1": 4 * 12 / 20,
        "down1": 4 * 12 / 20,
        "up2": 8 * 8 / 40,
        "down2": 8 * 8 / 40,
    }
