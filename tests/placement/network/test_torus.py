# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import NidmapError
from nidmap.placement.load import load_machine
from nidmap.placement.network import Demand, channels, hops, loads, next_channel
from nidmap.placement.network import torus as module
from nidmap.placement.network.routes import busiest_link_s
from nidmap.placement.network.torus import notes, passed_channels
from nidmap.placement.network.torus_grid import grid_of
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import links, router_coords
from nidmap.placement.traffic import Traffic
from tests.effort import examples

from .walking import by_name, everyone, same, torus_loads, torus_path


@st.composite
def tori(draw):
    extents = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    nodes = draw(st.integers(1, 2))
    return parse_spec(f"torus:{'x'.join(map(str, extents))},nodes={nodes}")


@st.composite
def messages(draw):
    machine = draw(tori())
    row = st.integers(0, len(machine) - 1)
    found = draw(st.lists(st.tuples(row, row, st.integers(1, 1000)), max_size=40))
    return machine, found


def pairs(machine, found):
    a, b, x = (np.array(column) for column in zip(*found, strict=True))
    return Demand.of(machine, Traffic.of(a, b, x.astype(float)))


@given(messages())
@settings(deadline=None)
def test_listed_pairs_put_on_every_channel_what_walking_them_does(case):
    machine, found = case
    if found:
        load = loads(machine, pairs(machine, found)).load
        assert by_name(machine, load) == torus_loads(machine, found)


@given(tori(), st.data())
@examples(40)
def test_the_busiest_links_of_steps_are_those_of_their_loads(machine, data):
    """Message by message, a link missing or not; on a ring that is cut twice nothing is said."""
    rows = np.array(data.draw(st.lists(st.integers(0, len(machine) - 1), min_size=1, unique=True)))
    wired = links(machine)
    if data.draw(st.booleans()) and len(wired.a):
        gone = data.draw(st.sampled_from(range(len(wired.a))))
        machine = cut(machine, (int(wired.a[gone]), int(wired.b[gone])))
    place = st.integers(0, len(rows) - 1)
    flows = st.lists(st.tuples(place, place, st.integers(1, 1000)), min_size=1, max_size=12)
    steps = [
        Traffic.of(*(np.array(column) for column in zip(*step, strict=True)))
        for step in data.draw(st.lists(flows, min_size=1, max_size=4))
    ]
    gbs = np.random.default_rng(len(rows)).uniform(1, 9, len(channels(machine)))
    own = np.random.default_rng(1).uniform(1, 9, len(machine))
    busiest = busiest_link_s(machine, rows, steps, gbs, own)
    if busiest is None:
        assert module._is_cut(grid_of(machine))
        return
    for traffic, seconds in zip(steps, busiest.tolist(), strict=True):
        every = loads(machine, Demand.of(machine, traffic.at(rows)))
        links_s = [every.load / gbs, every.injection / own, every.ejection / own]
        assert seconds == pytest.approx(max(x.max(initial=0.0) for x in links_s) / 1e9)


@given(tori(), st.data())
@examples(60)
def test_all_to_alls_put_on_every_channel_what_walking_them_does(machine, data):
    rows = data.draw(st.lists(st.integers(0, len(machine) - 1), max_size=20, unique=True))
    ranks = data.draw(st.lists(st.integers(1, 5), min_size=len(rows), max_size=len(rows)))
    if rows:
        demand = Demand.of(machine, Traffic.everyone(np.array(rows), np.array(ranks), 3.0))
        walk = everyone(rows, ranks, 3.0)
        assert by_name(machine, loads(machine, demand).load) == torus_loads(machine, walk)


#: Whether all-to-alls go pair by pair, by tables of few of them or by those of pairs of positions,
#: some rings at a time or all.
WAYS = [(0, 0, 1), (0, 0, 1 << 20), (0, 16, 40), (0, 16, 1 << 20), (1, 16, 1 << 20)]


def by(few_pairs, few_lines, together):
    """Patch how all-to-alls are added up."""
    names = ("FEW_PAIRS", few_pairs), ("FEW_LINES", few_lines), ("RINGS_TOGETHER", together)
    stack = ExitStack()
    for name, value in names:
        stack.enter_context(patch.object(module, name, value))
    return stack


@given(tori(), st.integers(0, 2**32 - 1), st.sampled_from(WAYS))
@examples(60)
def test_lines_narrow_and_wide_add_up(machine, seed, way):
    rng = np.random.default_rng(seed)
    size = min(len(machine), 30)
    wide = rng.permutation(len(machine))[:size]
    line = np.sort(rng.integers(0, 3, size))
    demand = Demand.of(machine, Traffic.lines(line, wide, 2, 1.0) + Traffic.everyone(wide, 1, 5.0))
    walked = everyone(wide, np.ones(size), 5.0)
    for one in range(3):
        own = wide[line == one]
        walked += everyone(own, np.full(len(own), 2), 1.0)
    with by(*way):
        found = loads(machine, demand)
    assert (found.carried > 0).all()
    same(by_name(machine, found.load), torus_loads(machine, walked))


def test_ties_go_to_plus_and_an_extent_of_two_has_two_links():
    machine = parse_spec("torus:4x2")
    demand = Demand.of(machine, Traffic.of(np.array([2, 0, 4]), np.array([0, 4, 0]), 1.0))
    found = channels(machine)
    load = loads(machine, demand).load
    ends = zip(found.source[load > 0], found.target[load > 0], strict=True)
    used = [(int(s), int(t)) for s, t in ends]
    assert sorted(used) == [(0, 4), (2, 3), (3, 0), (4, 0)]
    of_y = found.kind == 1
    assert of_y.sum() == 2 * 8
    ends = list(zip(found.source[of_y].tolist(), found.target[of_y].tolist(), strict=True))
    assert ends.count((0, 4)) == 2, "two separate channels each way"
    assert load[of_y].max() == 1.0, "0 to 4 and 4 to 0 use links of their own"


def test_of_an_odd_number_of_links_between_two_each_goes_one_way():
    machine = parse_spec("torus:2x3,bw=1")
    listed = links(machine)
    across = listed.kind == listed.kinds.index("x")
    machine = replace(machine, links=replace(listed, count=np.where(across, 3, listed.count)))
    found = channels(machine)
    on_x = found.kind == found.kinds.index("x")
    assert set(found.count[on_x].tolist()) == {1, 2}
    leaving = np.bincount(found.source[on_x], found.count[on_x])
    assert leaving.tolist() == [3] * 6


def test_an_extent_of_one_has_no_links():
    assert len(channels(parse_spec("torus:1x1"))) == 0
    assert set(channels(parse_spec("torus:3x1")).kind.tolist()) == {0}


def test_gemini_links_differ_by_position():
    machine = load_machine("bluewaters")
    found = channels(machine)
    coords = router_coords(machine)[found.source]
    up = grid_of(machine).there
    assert up.all(), "every router has all six"
    first = found.bandwidth[: 24**3]
    assert set(first.tolist()) == {9.375}
    y_plus = found.bandwidth[2 * 24**3 : 3 * 24**3]
    start = coords[2 * 24**3 : 3 * 24**3, 1]
    np.testing.assert_array_equal(y_plus, np.where(start % 2 == 0, 9.375, 4.6875))
    y_minus = found.bandwidth[3 * 24**3 : 4 * 24**3]
    np.testing.assert_array_equal(y_minus, np.where(start % 2 == 1, 9.375, 4.6875))
    z_plus = found.bandwidth[4 * 24**3 : 5 * 24**3]
    start = coords[4 * 24**3 : 5 * 24**3, 2]
    np.testing.assert_array_equal(z_plus, np.where(start % 8 < 7, 15.0, 9.375))


def test_channels_pair_up_with_the_links():
    machine = parse_spec("torus:4x2x3,bw=5,y=7")
    found, wired = channels(machine), links(machine)
    total = {}
    for s, t, k, gbs in zip(found.source, found.target, found.kind, found.bandwidth, strict=True):
        total[int(s), int(t), int(k)] = total.get((int(s), int(t), int(k)), 0) + gbs
    for a, b, k, gbs in zip(wired.a, wired.b, wired.kind, wired.bandwidth, strict=True):
        assert total.pop((int(a), int(b), int(k))) == gbs
        assert total.pop((int(b), int(a), int(k))) == gbs
    assert not total


def cut(machine, *gone):
    """Return the machine with its links listed but for those between some routers."""
    wired = links(machine)
    keep = [(int(a), int(b)) not in gone for a, b in zip(wired.a, wired.b, strict=True)]
    names = ("a", "b", "kind", "count", "bandwidth")
    left = replace(wired, **{name: getattr(wired, name)[keep] for name in names})
    topology = replace(machine.topology, wiring="links of a list")
    return replace(machine, topology=topology, links=left, _cache={})


def test_a_list_of_all_links_is_the_rule():
    machine = parse_spec("torus:4x2x3,bw=5,y=7")
    listed = cut(machine)
    for name in ("source", "target", "kind", "bandwidth", "count"):
        one, two = (getattr(channels(m), name) for m in (machine, listed))
        np.testing.assert_array_equal(one, two)
    assert module.notes(listed) == ()


def test_a_missing_link_is_gone_round_and_said():
    machine = cut(parse_spec("torus:5x3"), (0, 1))
    demand = Demand.of(machine, Traffic.of(np.array([0, 4]), np.array([1, 3]), 1.0))
    found = channels(machine)
    load = loads(machine, demand).load
    used = {
        (int(s), int(t)): x for s, t, x in zip(found.source, found.target, load, strict=True) if x
    }
    assert used == {(0, 4): 1.0, (4, 3): 2.0, (3, 2): 1.0, (2, 1): 1.0}
    assert "other way round" in loads(machine, demand).notes[0]
    assert hops(machine, np.array([0]), np.array([1])).tolist() == [[4.0, 0.0]]


@given(st.integers(0, 2**32 - 1), st.sampled_from(WAYS))
@examples(30)
def test_an_all_to_all_over_a_missing_link_is_the_sum_of_its_pairs(seed, way):
    rng = np.random.default_rng(seed)
    whole = parse_spec("torus:4x3x2")
    wired = links(whole)
    row = int(rng.integers(len(wired)))
    machine = cut(whole, (int(wired.a[row]), int(wired.b[row])))
    two = int(wired.kind[row]) == 2  # the two links of an extent of 2: no other way
    rows = rng.permutation(24)[: 24 if two else 20]
    together = Demand.of(machine, Traffic.everyone(rows, 1, 2.0))
    a, b = (x.ravel() for x in np.meshgrid(rows, rows))
    one_by_one = Demand.of(machine, Traffic.of(a, b, 2.0))
    with by(*way):
        found = loads(machine, together)
    np.testing.assert_allclose(found.load, loads(machine, one_by_one).load)


def shortest_paths(machine, here, there):
    """Return all shortest paths between routers, as channels, by growing them hop by hop."""
    found = channels(machine)
    rows = list(enumerate(zip(found.source.tolist(), found.target.tolist(), strict=True)))
    paths = [((), here)]
    while paths and not any(end == there for _, end in paths):
        paths = [((*p, c), t) for p, end in paths for c, (s, t) in rows if s == end and len(p) < 9]
    return [path for path, end in paths if end == there]


def test_a_ring_cut_twice_is_left_for_all_shortest_paths():
    machine = cut(parse_spec("torus:5x3"), (0, 1), (2, 3))
    found = loads(machine, Demand.of(machine, Traffic.of(np.array([0]), np.array([2]), 12.0)))
    wanted = np.zeros(len(found.load))
    paths = shortest_paths(machine, 0, 2)
    for path in paths:
        wanted[list(path)] += 12 / len(paths)
    np.testing.assert_allclose(found.load, wanted)
    assert "where both ways are cut all shortest paths" in found.notes[0]
    far = hops(machine, np.array([0]), np.array([2]))
    assert far.sum() == pytest.approx(len(paths[0]))
    near = Demand.of(machine, Traffic.of(np.array([0, 7]), np.array([4, 9]), 1.0))
    assert loads(machine, near).load.sum() == 1 + 2


def test_a_router_without_links_stops_nobody_else():
    whole = parse_spec("torus:4x4x3")
    wired = links(whole)
    gone = [(int(a), int(b)) for a, b in zip(wired.a, wired.b, strict=True) if 5 in (a, b)]
    machine = cut(whole, *gone)
    rows = np.setdiff1d(np.arange(48), [5])
    together = Demand.of(machine, Traffic.everyone(rows, 1, 2.0))
    a, b = (x.ravel() for x in np.meshgrid(rows, rows))
    found = loads(machine, together)
    one_by_one = loads(machine, Demand.of(machine, Traffic.of(a, b, 2.0)))
    np.testing.assert_allclose(found.load, one_by_one.load)
    assert found.load.sum() == pytest.approx(2 * hops(machine, a, b).sum())
    table, entered = next_channel(machine), channels(machine).target
    for here, there in ((4, 9), (1, 9), (0, 21)):  # the way along the axes turns at router 5
        at, steps = here, 0
        while at != there:
            at, steps = int(entered[table[at, there]]), steps + 1
        assert steps == hops(machine, np.array([here]), np.array([there])).sum()
    with pytest.raises(NidmapError, match="no path joins x1y1z0"):
        loads(machine, Demand.of(machine, Traffic.of(np.array([5]), np.array([0]), 1.0)))


@given(tori())
@examples(40)
def test_following_the_next_channels_is_the_walk(machine):
    found, table = channels(machine), next_channel(machine)
    extents = machine.topology.extents[:-1]
    coords = router_coords(machine)
    rng = np.random.default_rng(len(machine))
    for a, b in rng.integers(0, len(machine), (10, 2)).tolist():
        at, steps = int(machine.router[a, 0]), []
        while (row := int(table[at, b])) >= 0:
            assert found.source[row] == at
            at = int(found.target[row])
            steps.append(int(found.kind[row]))
        assert at == machine.router[b, 0]
        walk = torus_path(coords[machine.router[a, 0]], coords[machine.router[b, 0]], extents)
        assert steps == [axis for _, axis, _ in walk]
        counted = hops(machine, machine.router[a, :1], machine.router[b, :1])[0]
        assert counted.tolist() == np.bincount(steps, minlength=len(extents)).tolist()


def test_single_is_dimension_order():
    machine = parse_spec("torus:4x3")
    demand = Demand.of(machine, Traffic.everyone(np.arange(12), 1, 1.0))
    one, two = (loads(machine, demand, r) for r in ("single", "dimension-order"))
    np.testing.assert_array_equal(one.load, two.load)


def test_a_whole_machine_is_a_few_arrays():
    machine = load_machine("bluewaters")
    rows = np.flatnonzero(machine.compute)
    found = loads(machine, Demand.of(machine, Traffic.everyone(rows, 32, 1.0)))
    far = hops(machine, machine.router[rows[:50], 0], machine.router[rows[-50:], 0])
    assert far.max() <= 12
    weights = np.bincount(machine.router[rows, 0], minlength=24**3) * 32.0
    grid = weights.reshape(24, 24, 24)
    along_x = grid.sum(axis=(0, 1))
    ring = np.minimum(np.arange(24), 24 - np.arange(24))
    places = [(i, j) for i in range(24) for j in range(24)]
    expected = sum(along_x[i] * along_x[j] * ring[(j - i) % 24] for i, j in places)
    of_x = found.channels.kind == 0
    assert found.load[of_x].sum() == pytest.approx(expected)


def test_passed_channels():
    ends = np.array([0, 3]), np.array([2, 1])
    assert [column.tolist() for column in passed_channels(parse_spec("torus:4"), *ends)] == [
        [0, 0, 1, 1],
        [0, 1, 3, 0],
    ]


def test_notes():
    assert notes(parse_spec("torus:3x3")) == ()
