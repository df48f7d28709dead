# SPDX-License-Identifier: Apache-2.0
"""DragonFly+ against the enumeration of all paths, whole and with cables missing."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.placement.network import Demand, hops, loads, next_channel, routings
from nidmap.placement.network.adaptive import divide
from nidmap.placement.network.bounds import cut_time
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import links, router_coords, router_names
from nidmap.placement.traffic import Traffic
from tests.effort import examples
from tests.placement.network.over_thirds import Thirds
from tests.placement.network.small_dragonflies import Reference, listed_demand, wired
from tests.placement.network.test_adaptive import check, largest


def spec_of(groups, leaves, spines, nodes, between, cables=1):
    sizes = f"groups={groups},leaves={leaves},spines={spines},nodes={nodes}"
    return parse_spec(f"dragonfly+:{sizes},links={cables},global={between},bw=10,injection=20")


def rows_of(machine):
    """Return the links as (a, b, kind, count) rows."""
    found = links(machine)
    columns = (found.a, found.b, found.kind, found.count)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@st.composite
def machines(draw, most=4):
    """Draw a DragonFly+, some cables of some taken away."""
    sizes = [draw(st.integers(1, n)) for n in (most, 3, 3, 2, 4, 2)]
    machine = spec_of(*sizes)
    rows = rows_of(machine)
    gone = draw(st.sets(st.integers(0, len(rows) - 1), max_size=len(rows) // 4)) if rows else ()
    if not gone:
        return machine
    kept = [row for k, row in enumerate(rows) if k not in gone or row[3] > 1]
    kept = [(*row[:3], row[3] - (k in gone)) for k, row in enumerate(kept)]
    return wired(machine, [row for row in kept if row[3]], links(machine).kinds)


@st.composite
def sent_on(draw, machine):
    """Draw messages between nodes that paths join."""
    node = st.integers(0, len(machine) - 1)
    drawn = draw(st.lists(st.tuples(node, node, st.sampled_from([1e3, 7e6])), max_size=30))
    reference = Reference(machine)
    return [x for x in drawn if x[0] != x[1] and reference.connected([x])]


@given(data=st.data())
@examples(15)
def test_loads_are_those_of_all_paths(data):
    machine = data.draw(machines())
    sent = data.draw(sent_on(machine))
    if not sent:
        return
    reference, demand = Reference(machine), listed_demand(machine, sent)
    thirds = Thirds(reference)
    for routing in ("minimal",):
        got = loads(machine, demand, routing).load
        assert got.tolist() == pytest.approx(reference.loads(sent, routing)), routing
    got = loads(machine, demand, "valiant").load
    assert got.tolist() == pytest.approx(thirds.loads(sent, thirds.valiant))


@given(data=st.data())
@examples(12)
def test_adaptive_is_the_best_division_of_all_paths(data):
    machine = data.draw(machines(most=5))
    sent = data.draw(sent_on(machine))
    if sent and Reference(machine).connected(sent):
        found = check(machine, sent)
        least = cut_time(machine, listed_demand(machine, sent))
        assert largest(machine, found.best) >= least * (1 - 1e-9)


def test_spines_that_lead_nowhere_stand_for_no_third_group():
    """Cut off from their leaves they are groups of their own, linked to one that sends."""
    whole = spec_of(5, 1, 2, 2, 1)
    names = router_names(whole)
    kept = [row for row in rows_of(whole) if not names[row[0]].startswith("g4leaf")]
    machine = wired(whole, kept, links(whole).kinds)
    check(machine, [(5, 3, 1e3), (4, 2, 1e3), (0, 5, 1e3)])


def test_leaves_of_two_groups_win_by_third_groups():
    """What a group sends to another crosses two links, or over thirds all that it has."""
    machine = parse_spec("dragonfly+:groups=6,leaves=3,spines=2,nodes=4,global-bw=10,local-bw=99")
    rows = np.flatnonzero(machine.coords[:, 0] == 0)
    demand = Demand.of(machine, Traffic.of(rows, rows + 12, 1e9))
    found = divide(machine, demand)
    minimal = loads(machine, demand, "minimal").load
    assert largest(machine, minimal) == pytest.approx(12 / 2 / 10)
    # Two links to the group itself and two to each of four thirds, which all lead on.
    assert largest(machine, found.best) == pytest.approx(12 / 10 / 10, rel=0.05)
    assert (1 - found.detoured) == pytest.approx(0.2, abs=0.03)


def test_inside_a_group_every_routing_takes_all_spines():
    machine = spec_of(4, 3, 2, 2, 2)
    inside = Demand.of(machine, Traffic.everyone(np.arange(6), 1, 1e9))
    minimal = loads(machine, inside, "minimal").load
    for routing in ("valiant", "adaptive"):
        assert loads(machine, inside, routing).load.tolist() == pytest.approx(minimal.tolist())


def test_groups_are_joined_by_as_many_links_as_said_over_all_spines():
    machine = spec_of(5, 2, 4, 1, 6)
    found, coords = links(machine), router_coords(machine)
    between = found.kind == found.kinds.index("global")
    group = coords[:, 0]
    joined = defaultdict(int)
    spine = np.zeros(len(coords), dtype=int)
    for a, b, count in zip(found.a[between], found.b[between], found.count[between], strict=True):
        joined[int(group[a]), int(group[b])] += int(count)
        spine[[a, b]] += count
    assert set(joined.values()) == {6}
    assert len(joined) == 10
    assert set(spine[coords[:, 1] < 0].tolist()) == {6}  # 4 other groups x 6 links / 4 spines
    assert (spine[coords[:, 1] >= 0] == 0).all()
    assert router_names(machine)[[0, -1]].tolist() == ["g0leaf0", "g4spine3"]


def test_at_most_one_hop_goes_between_groups():
    machine = spec_of(3, 2, 2, 1, 2)
    assert routings(machine) == ("minimal", "single", "valiant", "adaptive")
    ends = np.array([0, 0]), np.array([1, 5])
    assert hops(machine, *ends).sum(axis=1).tolist() == [2, 3]
    # Over the third group: two hops more there, where the next link leaves another spine.
    assert hops(machine, *ends, "valiant").sum(axis=1).tolist() == pytest.approx([2, 4 + 2 * 0.5])
    assert (next_channel(machine)[router_coords(machine)[:, 1] < 0] >= 0).all()


def test_where_a_leaf_lacks_a_spine_another_leaf_leads_there():
    whole = spec_of(3, 2, 2, 1, 2)
    machine = wired(whole, rows_of(whole)[1:], links(whole).kinds)
    assert routings(machine) == ("minimal", "single", "valiant", "adaptive")
    demand = Demand.of(machine, Traffic.of(np.array([0]), np.array([2]), 8.0))
    load = loads(machine, demand)
    used = {str(n): x for n, x in zip(load.channels.names(), load.load.tolist(), strict=True) if x}
    assert used["g0leaf0->g0spine1 local"] == 8.0
    assert used["g0spine0->g1spine0 global"] == used["g0spine1->g1spine1 global"] == 4.0


@pytest.mark.parametrize("text", ["groups=2,leaves=2,spines=0,nodes=1", "groups=2,leaves=2"])
def test_what_is_no_dragonfly_plus_is_refused(text):
    with pytest.raises(UsageError, match="spines"):
        parse_spec(f"dragonfly+:{text}")
