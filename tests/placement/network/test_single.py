# SPDX-License-Identifier: Apache-2.0
"""Routing `single` on dragonflies: tables of next hops, followed hop by hop."""

from collections import defaultdict
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement import network
from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.network import (
    Demand,
    channels,
    hops,
    loads,
    next_channel,
    shortest_paths,
    single,
)
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic
from tests.placement.network.small_dragonflies import (
    Reference,
    every_pair,
    listed,
    listed_demand,
    messages,
    ruled,
    slingshots,
)

machines = st.one_of(ruled(), slingshots(), listed())


def walk(machine, table, here, node):
    """Return the channels from a router to a node."""
    found, passed = channels(machine, "single"), []
    while table[here, node] >= 0:
        passed.append(int(table[here, node]))
        assert found.source[passed[-1]] == here
        here = int(found.target[passed[-1]])
        assert len(passed) <= len(table)
    return passed, here


@given(machines, st.sampled_from([1, 1 << 24]))
def test_routes_are_shortest_paths(machine, part):
    reference = Reference(machine)
    kinds = channels(machine).kinds
    with patch.object(single, "_TABLE", part), patch.object(shortest_paths, "_TABLE", part):
        table = next_channel(machine)
    kind = channels(machine).kind
    for node in range(len(machine)):
        there = int(machine.router[node, 0])
        fewest, least = reference.fewest(there, len(reference.group) - 1), {}
        for (here, crossings), steps in sorted(fewest.items(), reverse=True):
            least[here] = crossings, steps
        for here in range(len(reference.group)):
            if here not in least:
                assert table[here, node] == -1
                continue
            passed, last = walk(machine, table, here, node)
            assert last in machine.router[node]
            if last == there:
                wide = sum(kinds[kind[c]] in ("blue", "global") for c in passed)
                assert (wide, len(passed)) == least[here]


def walked_loads(machine, sent):
    """Return the loads by walking each message over the table of next channels."""
    first = {}
    table = next_channel(machine)
    for node in range(len(machine)):
        first.setdefault(int(machine.router[node, 0]), node)
    total = defaultdict(float)
    for s, t, amount in Reference(machine).router_messages(sent):
        for channel in walk(machine, table, s, first[t])[0]:
            total[channel] += amount
    return [total[c] for c in range(len(channels(machine)))]


@given(st.data(), st.one_of(ruled(), listed()), st.sampled_from([1, 1 << 24]))
def test_loads_are_those_of_the_routes(data, machine, part):
    sent = data.draw(messages(machine))
    with patch.object(single, "_TABLE", part):
        if not Reference(machine).connected(sent):
            with pytest.raises(NidmapError, match="no path joins"):
                loads(machine, listed_demand(machine, sent), "single")
            return
        found = loads(machine, listed_demand(machine, sent), "single")
    assert found.load == pytest.approx(walked_loads(machine, sent), rel=1e-12)


@given(st.data(), ruled(), st.sampled_from([1, 1 << 24]))
def test_loads_of_all_to_alls(data, machine, part):
    rows = sorted(data.draw(st.sets(st.integers(0, len(machine) - 1), min_size=1, max_size=8)))
    sent = every_pair(rows, [2] * len(rows), 3.0)
    if Reference(machine).connected(sent):
        with patch.object(single, "_TABLE", part):
            found = loads(
                machine, Demand.of(machine, Traffic.everyone(np.array(rows), 2, 3.0)), "single"
            )
        assert found.load == pytest.approx(walked_loads(machine, sent), rel=1e-12)


@given(st.data(), machines, st.sampled_from([1, 1 << 24]))
def test_hops_are_those_of_shortest_paths(data, machine, part):
    reference = Reference(machine)
    router = st.integers(0, len(reference.group) - 1)
    pairs = data.draw(st.lists(st.tuples(router, router), min_size=1, max_size=8))
    source, target = np.array(pairs).T
    with patch.object(single, "_TABLE", part):
        if not reference.joined(pairs):
            with pytest.raises(NidmapError, match="no path joins"):
                hops(machine, source, target, "single")
            return
        found = hops(machine, source, target, "single")
    assert (found == found.round()).all()
    paths = [reference.shortest(s, t)[0] for s, t in pairs]
    assert found.sum(axis=1).tolist() == [len(path) for path in paths]


def test_ties_spread_the_load():
    machine = parse_spec("dragonfly:groups=2,chassis=6,blades=16,nodes=1,global=96")
    every = Demand.of(machine, Traffic.everyone(np.arange(len(machine)), 1, 1.0))
    found, best = (loads(machine, every, routing) for routing in ("single", "minimal"))
    blue = found.channels.kind == found.channels.kinds.index("blue")
    assert found.load[blue].max() <= 1.6 * best.load[blue].max()
    assert found.load[~blue].max() <= 1.6 * best.load[~blue].max()


def test_a_table_too_large_is_refused():
    machine = parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=2")
    with (
        patch.object(network, "MOST_NEXT", 31),
        pytest.raises(UsageError, match="too large"),
    ):
        next_channel(machine)
    with patch.object(network, "MOST_NEXT", 32):
        assert next_channel(machine).shape == (4, 8)


def test_parallel_links_of_groups_are_one_with_the_bandwidth_of_all():
    seconds = []
    for cables in (1, 3):
        spec = "dragonfly:groups=2,chassis=1,blades=1,nodes=2,blue=1"
        machine = parse_spec(f"{spec},global={cables}")
        found = loads(
            machine, Demand.of(machine, Traffic.of(np.array([0]), np.array([3]), 6e9)), "single"
        )
        busy = np.flatnonzero(found.load)
        assert found.load[busy].tolist() == [6e9] * len(busy)
        assert found.channels.count[busy].tolist() == [cables] * len(busy)
        seconds.append(float(found.seconds().max()))
    assert seconds == pytest.approx([6.0, 2.0])


def test_a_message_takes_one_of_several_cables_of_switches():
    machine = parse_spec("fattree:leaf=2,leaves=2,spines=1,bw=1,links=3")
    found = loads(
        machine, Demand.of(machine, Traffic.of(np.array([0, 0]), np.array([2, 3]), 6e9)), "single"
    )
    assert sorted(found.load.tolist())[-4:] == [6e9] * 4
    assert found.by_class()["up1"] == pytest.approx(6.0)
