# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.load import load_machine
from nidmap.placement.network import Demand, channels, hops, loads, next_channel, routings
from nidmap.placement.network import trees as module
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import links, router_names
from nidmap.placement.traffic import Traffic
from tests.effort import examples

from .walking import by_name, d_mod_k_loads, everyone, same, shortest_loads


@st.composite
def trees(draw):
    """Draw a fat tree of 2 to 4 levels and its parents a level."""
    height = draw(st.integers(2, 4))
    small = st.integers(1, 4 if height == 2 else 3)
    down, up, parallel = (draw(st.lists(small, min_size=height, max_size=height)) for _ in range(3))
    up[0] = draw(st.sampled_from([1, 1, 1, 2, 3]))
    sizes = ("x".join(map(str, x)) for x in (down, up, parallel))
    return parse_spec("fattree:down={},up={},parallel={}".format(*sizes)), up


def some_messages(machine, seed, most=60):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, most))
    a, b = rng.integers(0, len(machine), (2, size))
    return a, b, rng.integers(1, 1000, size).astype(float)


@given(trees(), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_messages_put_on_every_link_what_climbing_port_by_port_does(tree, seed):
    machine, up = tree
    a, b, x = some_messages(machine, seed)
    found = loads(machine, Demand.of(machine, Traffic.of(a, b, x)))
    walk = list(zip(a.tolist(), b.tolist(), x.tolist(), strict=True))
    wanted, out, into = d_mod_k_loads(machine, walk, up)
    assert by_name(machine, found.load) == wanted
    assert found.injection.tolist() == busiest(out, len(machine), up[0])
    assert found.ejection.tolist() == busiest(into, len(machine), up[0])


def busiest(by_port, nodes, ports):
    most = [0.0] * nodes
    for (node, _), x in by_port.items():
        most[node] = max(most[node], x * ports)
    return most


@given(trees(), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_all_to_alls_put_on_every_link_what_climbing_port_by_port_does(tree, seed):
    machine, up = tree
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(machine))[: int(rng.integers(1, 12))]
    ranks = rng.integers(1, 5, len(rows))
    line = np.sort(rng.integers(0, 2, len(rows)))
    demand = Demand.of(
        machine, Traffic.everyone(rows, ranks, 3.0) + Traffic.lines(line, rows, 1, 2.0)
    )
    walk = everyone(rows.tolist(), ranks.tolist(), 3.0)
    for one in (0, 1):
        own = rows[line == one].tolist()
        walk += everyone(own, [1] * len(own), 2.0)
    wanted, out, into = d_mod_k_loads(machine, walk, up)
    found = loads(machine, demand)
    assert by_name(machine, found.load) == wanted
    assert found.injection.tolist() == busiest(out, len(machine), up[0])
    assert found.ejection.tolist() == busiest(into, len(machine), up[0])


@given(trees(), st.integers(0, 2**32 - 1))
@examples(40)
def test_following_the_next_channels_gives_the_loads(tree, seed):
    machine, up = tree
    found, table = channels(machine), next_channel(machine)
    a, b, x = some_messages(machine, seed, 20)
    load = np.zeros(len(found))
    for source, target, amount in zip(a.tolist(), b.tolist(), x.tolist(), strict=True):
        if source == target:
            continue
        at, steps = int(machine.router[source, target % up[0]]), []
        while (row := int(table[at, target])) >= 0:
            assert found.source[row] == at
            load[row] += amount
            steps.append(int(found.kind[row]))
            at = int(found.target[row])
        assert at in machine.router[target].tolist()
        ends = machine.router[[source], 0], machine.router[[target], 0]
        counted = hops(machine, *ends)[0]
        assert counted.tolist() == np.bincount(steps, minlength=len(counted)).tolist()
    np.testing.assert_allclose(
        loads(machine, Demand.of(machine, Traffic.of(a, b, x)), "single").load, load
    )


def test_node_to_leaf_links_are_injection_and_ejection():
    machine = parse_spec("fattree:leaf=18,leaves=16,spines=9,bw=12.5")
    found = loads(machine, Demand.of(machine, Traffic.everyone(np.arange(36), 1, 1e6)))
    classes = found.by_class()
    assert classes["injection"] == classes["ejection"] == pytest.approx(35e6 / 12.5e9)
    assert classes["up1"] == classes["down1"] == pytest.approx(18 * 2 * 1e6 / 12.5e9)
    assert found.routing == "d-mod-k"


def test_a_node_with_two_parents_receives_over_one_of_its_ports():
    machine = parse_spec("fattree:down=4x3,up=2x3,bw=1")
    found = loads(machine, Demand.of(machine, Traffic.everyone(np.arange(12), 1, 1e9)))
    assert found.by_class()["ejection"] == pytest.approx(11.0)
    assert found.by_class()["injection"] == pytest.approx(6.0)


def test_a_site_s_parallel_cables_are_channels():
    machine = load_machine("tara")
    assert len(channels(machine)) == 2 * 6 * len(links(machine))
    assert set(channels(machine).bandwidth.tolist()) == {3.5}
    assert routings(machine) == ("d-mod-k", "single", "shortest")


def listed(machine, *gone, up=None):
    """Return the machine with its links listed but for some pairs of switches."""
    wired = links(machine)
    keep = [(int(a), int(b)) not in gone for a, b in zip(wired.a, wired.b, strict=True)]
    names = ("a", "b", "kind", "count", "bandwidth")
    left = replace(wired, **{name: getattr(wired, name)[keep] for name in names})
    topology = replace(machine.topology, wiring="links of a list")
    return replace(
        machine, topology=topology, links=left, router_names=router_names(machine), _cache={}
    )


def test_listed_cables_of_a_whole_two_level_tree_are_routed_the_same():
    machine = parse_spec("fattree:leaf=4,leaves=3,spines=2,links=2")
    demand = [
        Demand.of(m, Traffic.everyone(np.arange(9), 1, 1.0)) for m in (machine, listed(machine))
    ]
    assert routings(listed(machine))[0] == "d-mod-k"
    one, two = loads(machine, demand[0]), loads(listed(machine), demand[1])
    np.testing.assert_array_equal(one.load, two.load)


@given(st.sampled_from(["down=2x3,up=1x3,parallel=1x2", "down=2x2x2,up=1x2x3"]), st.data())
@examples(30)
def test_an_irregular_tree_splits_equally_over_all_shortest_paths(spec, data):
    whole = parse_spec(f"fattree:{spec}")
    wired = links(whole)
    row = data.draw(st.integers(0, len(wired) - 1))
    machine = listed(whole, (int(wired.a[row]), int(wired.b[row])))
    assert routings(machine) == ("shortest", "single")
    a, b, x = some_messages(machine, data.draw(st.integers(0, 2**32 - 1)))
    demand = Demand.of(machine, Traffic.of(a, b, x) + Traffic.everyone(np.arange(5), 2, 1.0))
    traffic = {}
    walk = [*zip(a.tolist(), b.tolist(), x.tolist(), strict=True), *everyone(range(5), [2] * 5, 1)]
    for s, t, amount in walk:
        key = int(machine.router[s, 0]), int(machine.router[t, 0])
        traffic[key] = traffic.get(key, 0) + amount
    found = loads(machine, demand)
    same(by_name(machine, found.load), shortest_loads(machine, traffic, climb=True))
    assert "not form a regular fat tree" in found.notes[0]


def test_single_on_an_irregular_tree_follows_its_table():
    whole = parse_spec("fattree:down=2x3x2,up=1x2x3")
    machine = listed(whole, (0, 6), (3, 9))
    found, table = channels(machine), next_channel(machine)
    a, b, x = some_messages(machine, 5)
    load = np.zeros(len(found))
    for source, target, amount in zip(a.tolist(), b.tolist(), x.tolist(), strict=True):
        at = int(machine.router[source, 0])
        while (row := int(table[at, target])) >= 0:
            load[row] += amount
            at = int(found.target[row])
        assert at == machine.router[target, 0]
    demand = Demand.of(machine, Traffic.of(a, b, x))
    np.testing.assert_allclose(loads(machine, demand, "single").load, load)
    far = hops(machine, np.array([0, 0]), np.array([0, 5]))
    assert far.sum(axis=1).tolist() == [0.0, 4.0]


def test_a_leaf_without_cables_is_an_error_that_names_it():
    machine = listed(parse_spec("fattree:leaf=2,leaves=3,spines=1"), (2, 3))
    near = Demand.of(machine, Traffic.of(np.array([0]), np.array([2]), 1.0))
    assert loads(machine, near).load.sum() == 2.0
    far = Demand.of(machine, Traffic.of(np.array([0]), np.array([5]), 1.0))
    with pytest.raises(NidmapError, match="no path joins leaf0 and leaf2"):
        loads(machine, far)


def test_another_routing_is_refused_with_those_that_apply():
    machine = parse_spec("fattree:leaf=2,leaves=2,spines=2")
    with pytest.raises(UsageError, match="choose from d-mod-k, single"):
        loads(machine, Demand.of(machine, Traffic.everyone(np.arange(4), 1, 1.0)), "minimal")


def test_a_million_messages_are_a_few_counts():
    machine = parse_spec("fattree:down=18x18x12,up=1x9x9")
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, len(machine), (2, 10**6))
    found = loads(machine, Demand.of(machine, Traffic.of(a, b, 1.0)))
    up2 = found.load[found.channels.kind == found.channels.kinds.index("up2")]
    assert up2.sum() == (a // 324 != b // 324).sum()


def test_levels_of_one_switch_are_no_trouble():
    machine = parse_spec("fattree:leaf=4,leaves=1,spines=1")
    found = loads(machine, Demand.of(machine, Traffic.everyone(np.arange(4), 1, 1.0)))
    assert not found.load.any()
    assert module.notes(machine) == ()
