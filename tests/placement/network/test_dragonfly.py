# SPDX-License-Identifier: Apache-2.0
"""Link loads of dragonflies against enumeration of all paths."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement import all_to_alls
from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.network import (
    Demand,
    channels,
    demand,
    groups,
    hops,
    loads,
    shortest_paths,
    single,
    touched,
)
from nidmap.placement.network.dragonfly import notes
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import router_coords
from nidmap.placement.traffic import Traffic
from tests.placement.network.small_dragonflies import (
    Reference,
    every_pair,
    in_lines,
    listed,
    listed_demand,
    listed_traffic,
    messages,
    relabelled,
    ruled,
    slingshots,
    wired,
)

machines = st.one_of(ruled(), slingshots(), listed())
routing_names = st.just("minimal")

#: Every table as small as it may be: many blocks, no shortcut for small machines.
NARROW = (
    (single, "_TABLE", 1),
    (shortest_paths, "_TABLE", 1),
    (demand, "BLOCK", 1),
    (all_to_alls, "_TABLE", 1),
    (all_to_alls, "_EXPANDED", 1),
)


@contextmanager
def narrow(small=True, dear=100):
    """Let everything go in small pieces; short lines are expanded the more, the smaller `dear`."""
    with ExitStack() as stack:
        for module, name, value in (*(NARROW if small else ()), (all_to_alls, "_DEAR", dear)):
            stack.enter_context(patch.object(module, name, value))
        yield


def check(machine, demand, sent, routing):
    """Compare the loads with those of all paths, or expect that there are none."""
    reference = Reference(machine)
    if reference.connected(sent):
        found = loads(machine, demand, routing)
        assert found.load == pytest.approx(reference.loads(sent, routing), rel=1e-12, abs=1e-9)
        return
    with pytest.raises(NidmapError, match="no path joins"):
        loads(machine, demand, routing)


@given(st.data(), machines, routing_names)
def test_loads_of_messages(data, machine, routing):
    sent = data.draw(messages(machine))
    check(machine, listed_demand(machine, sent), sent, routing)


@given(st.data(), machines, routing_names)
def test_loads_of_all_to_alls(data, machine, routing):
    some = data.draw(st.sets(st.integers(0, len(machine) - 1), min_size=1, max_size=8))
    rows = data.draw(st.permutations(sorted(some)))
    ranks = data.draw(st.lists(st.integers(1, 3), min_size=len(rows), max_size=len(rows)))
    sent = every_pair(rows, ranks, 2.5)
    check(
        machine,
        Demand.of(machine, Traffic.everyone(np.array(rows), np.array(ranks), 2.5)),
        sent,
        routing,
    )


@given(st.data(), machines, routing_names, st.booleans(), st.sampled_from([0, 10**6]))
def test_loads_of_lines_and_messages(data, machine, routing, small, dear):
    entry = st.tuples(st.integers(0, 7), st.integers(0, len(machine) - 1), st.integers(1, 3))
    entries = data.draw(st.lists(entry, max_size=16, unique_by=lambda x: x[:2]))
    sent = in_lines(entries, 3.0) + data.draw(messages(machine))
    columns = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    pairs = sent[len(in_lines(entries, 3.0)) :]
    demand = Demand.of(machine, Traffic.lines(*columns, 3.0) + listed_traffic(pairs))
    with narrow(small, dear):
        check(machine, demand, sent, routing)


@given(st.data(), machines, routing_names, st.booleans())
def test_mean_hops(data, machine, routing, small):
    reference = Reference(machine)
    router = st.integers(0, len(reference.group) - 1)
    pairs = data.draw(st.lists(st.tuples(router, router), min_size=1, max_size=8))
    source, target = np.array(pairs).T
    with narrow(small):
        if not reference.joined(pairs):
            with pytest.raises(NidmapError, match="no path joins"):
                hops(machine, source, target, routing)
            return
        found = hops(machine, source, target, routing)
    assert found == pytest.approx(np.array(reference.hops(pairs, routing)), rel=1e-12)


def by_ends(found, number):
    """Return {(source, target, class): load} with routers numbered anew."""
    of = found.channels
    keys = zip(
        number[of.source].tolist(), number[of.target].tolist(), of.kind.tolist(), strict=True
    )
    return dict(zip(keys, found.load.tolist(), strict=True))


@given(st.data(), machines, st.sampled_from(("minimal", "single")))
def test_relabelled_groups(data, machine, routing):
    order = data.draw(st.permutations(range(int(router_coords(machine)[:, 0].max()) + 1)))
    other, rank = relabelled(machine, order)
    sent = data.draw(messages(machine))
    if not Reference(machine).connected(sent):
        return
    before = loads(machine, listed_demand(machine, sent), routing)
    if routing == "single" and before.notes:
        return  # ties between groups on the way are decided by their numbers
    after = loads(other, listed_demand(other, sent), routing)
    first, second = by_ends(before, rank), by_ends(after, np.arange(len(rank)))
    assert second == pytest.approx(first, rel=1e-12)


@given(st.data(), machines, routing_names, st.floats(1e-6, 1e9))
def test_linear_in_bytes(data, machine, routing, factor):
    sent = data.draw(messages(machine))
    if Reference(machine).connected(sent):
        flows = listed_traffic(sent)
        once, many, twice = (
            loads(machine, Demand.of(machine, traffic), routing)
            for traffic in (flows, flows.sized(factor), flows + flows)
        )
        assert many.load == pytest.approx(factor * once.load)
        assert (once + once).load == pytest.approx(twice.load)


def test_a_pair_with_two_parallel_links_counts_them_both():
    machine = parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=1,global=1")
    machine = wired(machine, [(0, 1, 0, 1), (2, 3, 0, 1), (0, 2, 2, 2), (1, 3, 2, 1)])
    found = loads(
        machine, Demand.of(machine, Traffic.of(np.array([0]), np.array([3]), 12.0)), "minimal"
    )
    by_name = dict(zip(found.channels.names().tolist(), found.load.tolist(), strict=True))
    assert by_name["g0c0b0->g1c0b0 blue"] == 8.0
    assert by_name["g0c0b1->g1c0b1 blue"] == 4.0


def test_missing_direct_links_are_said():
    machine = parse_spec("dragonfly:groups=3,chassis=1,blades=1,nodes=1,global=1")
    chain = wired(machine, [(0, 1, 2, 1), (1, 2, 2, 1)])
    found = loads(chain, Demand.of(chain, Traffic.of(np.array([0]), np.array([2]), 1.0)), "minimal")
    assert found.load.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert found.notes == (
        "1 of 3 pairs of groups have no link of their own: between them traffic takes the "
        "fewest global hops, and of these paths all the shortest",
    )
    assert (
        loads(machine, Demand.of(machine, Traffic.of(np.array([0]), np.array([2]), 1.0))).notes
        == ()
    )


def test_unknown_routings_name_those_that_apply():
    machine = parse_spec("dragonfly:groups=2,chassis=1,blades=1,nodes=1")
    with pytest.raises(UsageError, match="choose from minimal, single, valiant, adaptive"):
        channels(machine, "dimension-order")


def test_groups_too_large_for_tables_are_refused():
    machine = parse_spec("dragonfly:groups=2,chassis=1,blades=3,nodes=1")
    with patch.object(groups, "MOST_INSIDE", 8), pytest.raises(UsageError, match="too many"):
        channels(machine)


def test_a_job_asks_for_the_gates_of_its_own_groups_alone(monkeypatch):
    machine = parse_spec("slingshot:groups=30,switches=4,nodes=2,global=3,routing=minimal")
    asked = []
    gates = groups.Groups.gates

    def count(self, units, others):
        table = gates(self, units, others)
        asked.append(table.size)
        return table

    monkeypatch.setattr(groups.Groups, "gates", count)
    two = Demand.of(machine, Traffic.everyone(np.array([0, 1, 8, 9]), 1, 1.0))
    loads(machine, two)
    assert asked == [2 * 2 * 4]
    table = gates(groups.groups_of(machine), np.arange(30), np.arange(30))
    assert table.sum(axis=2) == pytest.approx(1 - np.eye(30))


def test_a_job_of_very_many_groups_is_refused(monkeypatch):
    machine = parse_spec("slingshot:groups=30,switches=4,nodes=2,global=3")
    monkeypatch.setattr(touched, "MOST_TOUCHED", 2 * 2 * 30)
    loads(machine, Demand.of(machine, Traffic.everyone(np.array([0, 1, 8, 9]), 1, 1.0)))
    spread = Traffic.everyone(np.arange(0, 240, 8), 1, 1.0)
    with pytest.raises(UsageError, match="30 of 30 groups are too many for one job"):
        loads(machine, Demand.of(machine, spread))


def test_more_groups_than_a_byte_counts():
    machine = parse_spec("dragonfly:groups=140,chassis=1,blades=1,nodes=1,global=1")
    every = Demand.of(machine, Traffic.everyone(np.arange(140), 1, 1.0))
    for routing in ("minimal", "single"):
        assert set(loads(machine, every, routing).load.tolist()) == {1.0}
        assert hops(machine, np.array([0]), np.array([139]), routing).tolist() == [[0, 0, 1]]


def test_notes():
    assert notes(parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=1"), "valiant") == (
        "fewer than three groups: valiant is the same as minimal",
    )
