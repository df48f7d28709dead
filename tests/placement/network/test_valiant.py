# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import NidmapError
from nidmap.placement.network import Demand, channels, hops, loads
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic
from tests.effort import examples
from tests.placement.network.over_thirds import Thirds
from tests.placement.network.small_dragonflies import (
    RULES,
    Reference,
    every_pair,
    listed,
    listed_demand,
    messages,
    relabelled,
    ruled,
    slingshots,
    spec,
)

few = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def check(machine, sent):
    reference = Reference(machine)
    if not reference.connected(sent):
        with pytest.raises(NidmapError):
            loads(machine, listed_demand(machine, sent), "valiant")
        return
    thirds = Thirds(reference)
    found = loads(machine, listed_demand(machine, sent), "valiant")
    np.testing.assert_allclose(found.load, thirds.loads(sent, thirds.valiant), rtol=1e-9, atol=1e-6)


@few
@given(st.data())
def test_by_rule_equals_enumeration(data):
    machine = data.draw(ruled())
    assume(len(machine))
    check(machine, data.draw(messages(machine)))


@few
@given(st.data())
def test_any_links_equal_enumeration(data):
    machine = data.draw(listed())
    check(machine, data.draw(messages(machine)))


@few
@given(st.data())
def test_several_nics_equal_enumeration(data):
    machine = data.draw(slingshots())
    check(machine, data.draw(messages(machine)))


@pytest.mark.parametrize("rule", RULES)
def test_all_to_all_equals_enumeration(rule):
    machine = parse_spec(spec(5, 2, 3, 1, rule, 2))
    rows = list(range(0, len(machine), 2))
    demand = Demand.of(machine, Traffic.everyone(np.array(rows), 2, 3.0))
    thirds = Thirds(Reference(machine))
    wanted = thirds.loads(every_pair(rows, [2] * len(rows), 3.0), thirds.valiant)
    np.testing.assert_allclose(loads(machine, demand, "valiant").load, wanted, rtol=1e-9)


@few
@given(st.data())
def test_hops_equal_enumeration(data):
    machine = data.draw(st.one_of(ruled(), listed()))
    reference = Reference(machine)
    pair = st.tuples(*[st.integers(0, len(reference.group) - 1)] * 2)
    pairs = data.draw(st.lists(pair, min_size=1, max_size=8))
    assume(reference.joined(pairs))
    thirds, names = Thirds(reference), channels(machine, "valiant").kinds
    wanted = []
    for s, t in pairs:
        row = dict.fromkeys(names, 0.0)
        for channel, share in thirds.valiant(s, t).items() if s != t else ():
            row[reference.kinds[channel]] += share
        wanted.append(list(row.values()))
    s, t = np.array(pairs).T
    np.testing.assert_allclose(hops(machine, s, t, "valiant"), wanted, atol=1e-9)


def test_two_groups_are_minimal_and_say_so():
    machine = parse_spec(spec(2, 2, 3, 2, "consecutive", 3))
    demand = Demand.of(machine, Traffic.everyone(np.arange(len(machine)), 1, 1.0))
    valiant = loads(machine, demand, "valiant")
    np.testing.assert_allclose(valiant.load, loads(machine, demand, "minimal").load)
    assert any("fewer than three groups" in note for note in valiant.notes)


def test_pairs_inside_a_group_stay_there():
    machine = parse_spec(spec(4, 2, 3, 1, "consecutive", 3))
    found = loads(machine, Demand.of(machine, Traffic.everyone(np.arange(6), 1, 1.0)), "valiant")
    blue = found.channels.kind == found.channels.kinds.index("blue")
    assert found.load.sum() > 0
    assert not found.load[blue].any()


def test_global_links_carry_twice_what_minimal_does():
    machine = parse_spec(spec(5, 2, 3, 2, "consecutive", 4))
    demand = Demand.of(machine, Traffic.everyone(np.arange(len(machine)), 1, 1.0))
    blue = channels(machine).kind == channels(machine).kinds.index("blue")
    ways = [loads(machine, demand, routing).load[blue].sum() for routing in ("minimal", "valiant")]
    assert ways[1] == pytest.approx(2 * ways[0])


@given(order=st.permutations(range(4)))
@examples(10)
def test_relabelled_groups_have_the_same_loads(order):
    machine = parse_spec(spec(4, 2, 2, 1, "consecutive", 3))
    turned, rank = relabelled(machine, order)
    a, b = np.array([0, 1, 5, 2]), np.array([4, 9, 13, 15])
    router = machine.router[:, 0]
    to = {int(r): i for i, r in enumerate(turned.router[:, 0])}
    moved = [np.array([to[int(rank[router[x]])] for x in ends]) for ends in (a, b)]
    here = loads(machine, Demand.of(machine, Traffic.of(a, b, 7.0)), "valiant")
    there = loads(turned, Demand.of(turned, Traffic.of(*moved, 7.0)), "valiant")
    np.testing.assert_allclose(np.sort(here.load), np.sort(there.load), atol=1e-9)
