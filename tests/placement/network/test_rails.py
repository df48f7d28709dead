# SPDX-License-Identifier: Apache-2.0
"""Fabrics of several rails that no cable joins, against walking every path in plain Python."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import NidmapError
from nidmap.placement.load import load_machine
from nidmap.placement.network import Demand, channels, hops, loads, next_channel
from nidmap.placement.network.connected import connected_nodes
from nidmap.placement.network.rails import leaves_top_out, no_path, rails_of
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Job
from tests.placement.network.dense import dense
from tests.placement.readers.fabric_shapes import Fabric, ports_text

from .walking import by_name, everyone, same, shortest_loads

#: Leaves and spines of each rail, and cables from each leaf to each spine.
RAILS = ((3, 2, 1), (2, 1, 2))
HOSTS = 6


def two_rails(tmp_path, lost=(), rails=RAILS):
    """Return a fabric of some rails as ibnetdiscover lists it, some hosts without some rails."""
    switches, cables, adapters = [], [], []
    used: dict[int, int] = defaultdict(int)

    def port(switch):
        used[switch] += 1
        return used[switch]

    for rail, (leaves, spines, bundle) in enumerate(rails):
        first = len(switches)
        switches += [f"rail{rail} leaf{i}" for i in range(leaves)]
        switches += [f"rail{rail} spine{i}" for i in range(spines)]
        for host in range(HOSTS):
            if (host, rail) not in lost:
                leaf = first + host * leaves // HOSTS
                cables.append((("H", len(adapters)), 1, ("S", leaf), port(leaf)))
                adapters.append(f"node{host}")
        for leaf in range(first, first + leaves):
            for spine in range(first + leaves, first + leaves + spines):
                cables += [
                    (("S", leaf), port(leaf), ("S", spine), port(spine)) for _ in range(bundle)
                ]
    file = tmp_path / "rails.ports"
    file.write_text(ports_text(Fabric(tuple(adapters), tuple(switches), tuple(cables))))
    return load_machine(str(file))


def joined_pairs(machine, a, b):
    """Return the routers of two nodes that stand in one rail, by the rails' own names."""
    names = machine.router_names.tolist()
    ends = [[int(r) for r in machine.router[row] if r >= 0] for row in (a, b)]
    return [(s, t) for s in ends[0] for t in ends[1] if names[s].split()[0] == names[t].split()[0]]


def on_routers(machine, messages):
    """Return the bytes of each pair of routers: of the rails that both have, all alike."""
    traffic = defaultdict(float)
    for a, b, amount in messages:
        pairs = joined_pairs(machine, a, b)
        for pair in pairs:
            traffic[pair] += amount / len(pairs)
    return traffic


lost_rails = st.sets(st.tuples(st.integers(0, HOSTS - 1), st.integers(0, 1)), max_size=4).filter(
    lambda lost: all((host, 1) not in lost for host, rail in lost if rail == 0)
)


@given(lost_rails, st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_bytes_go_by_the_rails_that_both_nodes_have(tmp_path_factory, lost, seed):
    machine = two_rails(tmp_path_factory.mktemp("rails"), lost)
    rng = np.random.default_rng(seed)
    free = connected_nodes(machine, machine.free)[0]
    rows = rng.permutation(np.flatnonzero(free))
    ranks = rng.integers(1, 4, len(rows))
    a, b = rng.choice(rows, (2, 10))
    x = rng.integers(1, 100, 10).astype(float)
    demand = Demand.of(machine, Traffic.of(a, b, x) + Traffic.everyone(rows, ranks, 2.0))
    listed = [m for m in zip(a, b, x, strict=True) if m[0] != m[1]]
    sent = [*listed, *everyone(rows.tolist(), ranks.tolist(), 2.0)]
    wanted = shortest_loads(machine, on_routers(machine, sent), climb=True)
    found = loads(machine, demand)
    same(by_name(machine, found.load), wanted)
    out = np.zeros(len(machine))
    for row, _, amount in sent:
        out[row] += amount
    np.testing.assert_allclose(found.injection, out)
    with_rails = (machine.router >= 0).sum(axis=1)
    np.testing.assert_allclose(found.nodes("injection"), out / (with_rails * 12.5e9))


@given(lost_rails)
@settings(deadline=None, max_examples=20)
def test_single_follows_its_table_on_each_rail(tmp_path_factory, lost):
    machine = two_rails(tmp_path_factory.mktemp("rails"), lost)
    rows = np.flatnonzero(connected_nodes(machine, machine.free)[0])
    found, table = channels(machine, "single"), next_channel(machine)
    load = np.zeros(len(found))
    sent = everyone(rows.tolist(), [2] * len(rows), 3.0)
    for a, b, amount in sent:
        pairs = joined_pairs(machine, a, b)
        for at, home in pairs:
            while (row := int(table[at, b])) >= 0:
                load[row] += amount / len(pairs)
                at = int(found.target[row])
            assert at == home
    demand = Demand.of(machine, Traffic.everyone(rows, 2, 3.0))
    np.testing.assert_allclose(loads(machine, demand, "single").load, load)
    listed = Demand.of(machine, Traffic.of(*np.array([m[:2] for m in sent]).T, sent[0][2]))
    np.testing.assert_allclose(loads(machine, listed, "single").load, load)


def test_hops_between_nodes_are_those_of_a_rail_that_both_have(tmp_path):
    machine = two_rails(tmp_path, {(0, 0)})
    a, b = np.divmod(np.arange(HOSTS * HOSTS), HOSTS)
    ends = rails_of(machine).first_ends(a, b)
    far = hops(machine, *ends).sum(axis=1)
    for x, y, s, t, steps in zip(a, b, *ends, far, strict=True):
        assert (s, t) == joined_pairs(machine, x, y)[0]
        assert steps == 2 * (s != t)


def test_a_node_without_its_first_rail_is_where_its_neighbours_are(tmp_path):
    machine = two_rails(tmp_path, {(0, 0)}, ((3, 2, 1), (3, 1, 1)))
    assert machine.coords[:, 0].tolist() == [0, 0, 1, 1, 2, 2]


def test_nodes_without_a_rail_in_common_have_no_path(tmp_path):
    machine = two_rails(tmp_path, {(0, 0), (5, 1)})
    far = np.array([0, 5])
    for make in (
        lambda: Demand.of(machine, Traffic.everyone(np.arange(HOSTS), 1, 1.0)),
        lambda: Demand.of(machine, Traffic.of(far, far[::-1], 1.0)),
    ):
        with pytest.raises(NidmapError, match=r"no path joins rail\d leaf\d and rail\d leaf\d"):
            make()
    free, note = connected_nodes(machine, machine.free)
    assert (len(machine) - free.sum(), note.count("left out")) == (1, 1)
    assert connected_nodes(machine, machine.free, np.array([5]))[0][far].tolist() == [False, True]
    apart = Demand.of(
        machine, Traffic.lines(np.array([0, 0, 1, 1]), np.array([0, 1, 5, 1]), 1, 1.0)
    )
    assert apart.total == 4


def test_adapters_of_a_rail_share_what_the_node_with_fewer_can_take(tmp_path):
    adapters_by_rail = ((3, 1), (1, 1))
    switches = [
        "rail0 leaf0",
        "rail0 leaf1",
        "rail0 top",
        "rail1 leaf0",
        "rail1 leaf1",
        "rail1 top",
    ]
    cables, adapters = [], []
    for host, counts in enumerate(adapters_by_rail):
        for rail, count in enumerate(counts):
            for _ in range(count):
                port = 10 + len(adapters)
                cables.append((("H", len(adapters)), 1, ("S", 3 * rail + host), port))
                adapters.append(f"node{host}")
    cables += [(("S", leaf), 1, ("S", leaf // 3 * 3 + 2), leaf + 1) for leaf in (0, 1, 3, 4)]
    file = tmp_path / "rails.ports"
    file.write_text(ports_text(Fabric(tuple(adapters), tuple(switches), tuple(cables))))
    machine = load_machine(str(file))
    demand = Demand.of(machine, Traffic.of(np.array([0]), np.array([1]), 8.0))
    assert demand.amount.tolist() == [4.0, 4.0]  # not 6 and 2, of which one adapter has 6
    table = dense(Demand.of(machine, Traffic.everyone(np.arange(2), 1, 8.0)))
    assert np.sort(table[table > 0]).tolist() == [4.0] * 4


def test_a_prediction_and_a_plan_on_two_rails(tmp_path):
    machine = two_rails(tmp_path, {(1, 0)})
    found = nidmap.predict(machine, "node[0-5]", Job("alltoall", bytes=1e6))
    own = 5e6 / 12.5e9  # the node without a rail is the slowest: all it sends by one cable
    assert found.time_s == pytest.approx(own, rel=0.05)
    assert len(nidmap.plan(machine, 4, job=Job("alltoall"), deadline=0.2).rows) == 4


def test_rails_shares():
    two = rails_of(parse_spec("slingshot:groups=2,switches=2,nodes=2,nics=2,global=1"))
    assert [(i, j, share.tolist()) for i, j, share in two.shares(np.array([0]), np.array([4]))] == [
        (0, 0, [0.25]),
        (0, 1, [0.25]),
        (1, 0, [0.25]),
        (1, 1, [0.25]),
    ]


def test_rails_between():
    two = rails_of(parse_spec("slingshot:groups=2,switches=2,nodes=2,nics=2,global=1"))
    assert two.between(0, 0) == {0: 1.0}


def test_rails_joined():
    assert rails_of(parse_spec("torus:4")).joined(np.array([0, 1]), np.array([2])).tolist() == [
        True,
        True,
    ]


def test_rails_refuse_apart():
    rails_of(parse_spec("torus:4")).refuse_apart(np.array([0]), np.array([2]))


def test_leaves_top_out():
    assert leaves_top_out(parse_spec("tree:2x2"))
    assert not leaves_top_out(parse_spec("torus:4"))


def test_no_path():
    assert (
        str(no_path(parse_spec("torus:4"), 0, 2))
        == "no path joins x0 and x2; is the list of links complete?"
    )
