"""The best division against a linear program over router pairs, paths enumerated one by one."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placement.network import (
    Demand,
    adaptive,
    balancing,
    channels,
    hops,
    linear_program,
    loads,
    shares,
)
from placement.network.adaptive import TOLERANCE, divide, notes
from placement.network.group_ways import group_ways_of
from placement.network.shares import PairChanges
from placement.specs import parse_spec
from tests.effort import examples
from tests.placement.network.over_thirds import Thirds
from tests.placement.network.small_dragonflies import (
    RULES,
    Reference,
    listed,
    listed_demand,
    relabelled,
    ruled,
    slingshots,
    spec,
)

few = examples(30)
GB = 1e9


def least(machine, sent):
    """Return the optimum of the linear program, the largest load on minimal ways, and if all can.

    Where two groups have no link of their own there is no minimal way to choose.
    """
    from scipy.optimize import linprog  # takes a second, of every worker that collects
    from scipy.sparse import csc_matrix

    reference = Reference(machine)
    thirds = Thirds(reference)
    scale = 1 / (channels(machine).bandwidth * GB)
    none, rows, columns, values, full = np.zeros(len(scale)), [], [], [], np.zeros(len(scale))
    variables = 0
    for s, t, amount in reference.router_messages(sent):
        free = thirds.divisible(s, t)
        for channel, part in thirds.other(s, t).items():
            none[channel] += part * amount
            if free:
                rows.append(channel), columns.append(variables), values.append(-part * amount)
        for channel, part in thirds.minimal(s, t).items() if free else ():
            rows.append(channel), columns.append(variables), values.append(part * amount)
        variables += free
    none *= scale
    change = csc_matrix((values, (rows, columns)), shape=(len(scale), variables)).toarray()
    change *= scale[:, None]
    full = none + change.sum(axis=1)
    size = full.max() or 1.0
    table = np.column_stack([change / size, -np.ones(len(scale))])
    goal = np.append(np.zeros(variables), 1.0)
    bounds = [(0, 1)] * variables + [(0, None)]
    found = linprog(goal, table, -none / size, bounds=bounds, method="highs")
    assert found.status == 0
    ends = [(thirds.piece[s], thirds.piece[t]) for s, t, _ in reference.router_messages(sent)]
    able = all(a == b or thirds.links[a, b] for a, b in ends)
    return found.fun * size, full.max(), able


def largest(found):
    return float(found.seconds().max())


def check(machine, sent):
    demand = listed_demand(machine, sent)
    best, minimal, able = least(machine, sent)
    found = divide(machine, demand)
    assert largest(loads(machine, demand, "adaptive")) == pytest.approx(found.worst)
    assert found.worst <= best * (1 + TOLERANCE) * (1 + 1e-6)
    assert found.worst >= best * (1 - 1e-6)
    busiest = divide(machine, demand, settled=False).worst
    assert best * (1 - 1e-6) <= busiest <= found.worst * (1 + 1e-9)
    assert found.bound <= best * (1 + 1e-6)
    assert found.minimal == pytest.approx(minimal)
    if able and minimal <= best:
        assert found.minimal_share == 1
        wanted = loads(machine, demand, "minimal").load
        np.testing.assert_allclose(found.load, wanted, rtol=1e-12, atol=1e-9 * wanted.max())
    return found


@st.composite
def machines(draw):
    """Draw three to six groups by one of the rules."""
    groups, chassis, blades = (
        draw(st.integers(3, 6)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
    )
    rule = draw(st.sampled_from(RULES))
    return parse_spec(spec(groups, chassis, blades, 2, rule, draw(st.integers(1, 3))))


@st.composite
def scattered(draw, machine):
    """Draw messages with very different bytes between any nodes."""
    node = st.integers(0, len(machine) - 1)
    amount = st.sampled_from([1e3, 2e6, 7e6, 3e8])
    return draw(st.lists(st.tuples(node, node, amount), min_size=1, max_size=60))


def between(machine, g, h):
    """Return messages from every node of one group to every node of another."""
    group = machine.coords[:, 0]
    return [
        (int(a), int(b), 1e6)
        for a in np.flatnonzero(group == g)
        for b in np.flatnonzero(group == h)
    ]


@few
@given(st.data())
def test_scattered_messages_within_one_per_cent_of_the_optimum(data):
    machine = data.draw(machines())
    sent = [x for x in data.draw(scattered(machine)) if x[0] != x[1]]
    assume(sent)
    check(machine, sent)


@few
@given(st.data())
def test_any_links_within_one_per_cent_of_the_optimum(data):
    machine = data.draw(st.one_of(listed(), ruled(), slingshots()))
    assume(len(machine))
    sent = [x for x in data.draw(scattered(machine)) if x[0] != x[1]]
    assume(sent and Reference(machine).connected(sent))
    assume(np.isfinite(channels(machine).bandwidth).all() and len(channels(machine)))
    check(machine, sent)


@given(machine=machines(), more=st.booleans())
@examples(15)
def test_hot_spots_within_one_per_cent_of_the_optimum(machine, more):
    sent = between(machine, 0, 1)
    if more:
        sent += between(machine, 1, 2) + between(machine, 2, 0)
    check(machine, sent)


@given(machine=machines(), seed=st.integers(0, 99))
@examples(10)
def test_scattered_all_to_alls_within_one_per_cent_of_the_optimum(machine, seed):
    size = int(np.random.default_rng(seed).integers(2, 1 + min(24, len(machine))))
    rows = np.random.default_rng(seed).choice(len(machine), size, replace=False).tolist()
    found = check(machine, [(a, b, 1e6) for a in rows for b in rows if a != b])
    demand = Demand.complete(machine, np.sort(rows), 1, 1e6)
    assert divide(machine, demand).worst == pytest.approx(found.worst, rel=1.1 * TOLERANCE)
    for limit in ("FEW", "ALONE"):  # by descent; group pairs first, then parts of them
        with patch.object(linear_program, limit, 0):
            other = divide(machine, demand)
        assert other.bound <= found.worst * (1 + 1e-6)
        assert found.bound * (1 - 1e-6) <= other.worst <= other.minimal * (1 + 1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_shares_of_group_pairs_are_divisions_and_their_bounds_hold(rule):
    machine = parse_spec(spec(4, 2, 3, 2, rule, 2))
    group = machine.coords[:, 0]
    rows = np.flatnonzero((group < 2) | (machine.coords[:, 2] == 0))
    sent = [(int(a), int(b), 1e6) for a in rows for b in rows if a != b]
    best, _, _ = least(machine, sent)
    with patch.object(shares, "MOST_PAIRS", -1):
        found = divide(machine, Demand.complete(machine, rows, 1, 1e6))
    assert found.by == "group pairs"
    assert best * (1 - 1e-6) <= found.worst <= found.minimal * (1 + 1e-9)
    assert found.bound <= best * (1 + 1e-6)


def test_a_hot_spot_is_relieved():
    machine = parse_spec(spec(6, 2, 2, 2, "consecutive", 4))
    group = machine.coords[:, 0]
    hot = between(machine, 0, 1)
    quiet = (int(np.flatnonzero(group == 4)[0]), int(np.flatnonzero(group == 5)[0]), 1.0)
    found = check(machine, [*hot, quiet])
    assert found.worst < 0.6 * found.minimal
    assert 0 < found.minimal_share < 1


def test_an_even_all_to_all_stays_minimal():
    machine = parse_spec(spec(5, 2, 4, 2, "aligned", 1))
    found = divide(machine, Demand.complete(machine, np.arange(len(machine)), 1, 1.0))
    assert found.minimal_share == 1
    assert found.worst == found.minimal
    assert found.gap <= TOLERANCE


def test_two_groups_are_minimal():
    machine = parse_spec(spec(2, 2, 3, 2, "consecutive", 3))
    demand = Demand.complete(machine, np.arange(len(machine)), 1, 1.0)
    found = loads(machine, demand, "adaptive")
    np.testing.assert_allclose(found.load, loads(machine, demand, "minimal").load)
    assert any("fewer than three groups" in note for note in found.notes)


@few
@given(data=st.data())
def test_no_larger_maximum_than_minimal_and_no_byte_lost(data):
    machine = data.draw(st.one_of(machines(), slingshots()))
    sent = [x for x in data.draw(scattered(machine)) if x[0] != x[1]]
    assume(sent and Reference(machine).connected(sent) and len(channels(machine)))
    demand = listed_demand(machine, sent)
    found = divide(machine, demand)
    assert found.worst <= found.minimal * (1 + 1e-9)
    both, routers = channels(machine), len(group_ways_of(machine).unit)
    entering = np.bincount(both.target, found.load, routers)
    entering += np.bincount(demand.source, demand.amount, routers)
    leaving = np.bincount(both.source, found.load, routers)
    leaving += np.bincount(demand.target, demand.amount, routers)
    np.testing.assert_allclose(entering, leaving, rtol=1e-9, atol=1e-3)


@pytest.mark.parametrize(
    ("specification", "hops"),
    [
        ("dragonfly:groups=1,chassis=3,blades=4,nodes=2", 4),
        ("slingshot:groups=1,switches=6,nodes=2", 2),
    ],
)
def test_a_hot_pair_of_one_group_takes_detours(specification, hops):
    machine = parse_spec(specification)
    sent = [(a, b, 1e6) for a in (0, 1) for b in (2, 3)]
    found = check(machine, sent)
    assert found.worst < 0.4 * found.minimal
    assert found.minimal_share < 0.4
    assert 1 < found.load.sum() / 4e6 < hops


def test_detours_are_left_where_they_gain_nothing():
    machine = parse_spec("dragonfly:groups=1,chassis=3,blades=4,nodes=2")
    demand = listed_demand(machine, [(a, b, 1e6) for a in (0, 1) for b in (2, 3)])
    minimal = divide(machine, demand).minimal
    assert divide(machine, demand, enough=minimal).minimal_share == 1
    some = divide(machine, demand, enough=0.7 * minimal)
    assert 0.5 * minimal < some.worst <= 0.7 * minimal
    assert "nothing is gained by fewer" in some.text()
    assert loads(machine, demand, "adaptive", 2 * minimal).load.sum() == 4e6


def test_unlimited_channels_and_no_bytes_stay_minimal():
    machine = parse_spec("dragonfly:groups=3,chassis=1,blades=2,nodes=1")
    machine.topology.bandwidth.clear()
    demand = Demand.complete(machine, np.arange(6), 1, 1.0)
    np.testing.assert_allclose(divide(machine, demand).load, loads(machine, demand, "minimal").load)
    assert divide(machine, 0.0 * demand).load.sum() == 0


@given(factor=st.sampled_from([1e-6, 0.3, 7.0, 1e9]), seed=st.integers(0, 20))
@examples(15)
def test_loads_are_linear_in_bytes(factor, seed):
    machine = parse_spec(spec(4, 2, 3, 2, "consecutive", 2))
    some = np.random.default_rng(seed).integers(0, len(machine), (2, 40))
    demand = Demand.pairs(machine, *some, 1e5) + Demand.complete(machine, np.arange(9), 1, 3e4)
    one, many = divide(machine, demand), divide(machine, demand * factor)
    np.testing.assert_allclose(many.load, one.load * factor, rtol=1e-6, atol=1e-6 * one.worst)
    assert many.worst == pytest.approx(one.worst * factor, rel=1e-9)


@given(order=st.permutations(range(4)), seed=st.integers(0, 9))
@examples(15)
def test_relabelled_groups_have_the_same_maximum(order, seed):
    machine = parse_spec(spec(4, 2, 2, 1, "consecutive", 3))
    turned, rank = relabelled(machine, order)
    a, b = np.random.default_rng(seed).integers(0, len(machine), (2, 30))
    to = {int(r): i for i, r in enumerate(turned.router[:, 0])}
    moved = [np.array([to[int(rank[machine.router[x, 0]])] for x in ends]) for ends in (a, b)]
    # the relabelled machine lists 5 GB/s for every link, so both do
    same, _ = relabelled(machine, range(4))
    here = divide(same, Demand.pairs(same, a, b, 7.0))
    there = divide(turned, Demand.pairs(turned, *moved, 7.0))
    assert there.worst == pytest.approx(here.worst, rel=1.1 * TOLERANCE)


def test_the_same_question_has_the_same_answer():
    specification = spec(5, 2, 3, 2, "same-chassis", 3)
    found = []
    for _ in range(2):
        machine = parse_spec(specification)
        some = np.random.default_rng(3).integers(0, len(machine), (2, 80))
        found.append(divide(machine, Demand.pairs(machine, *some, 1e6)))
    assert np.array_equal(found[0].load, found[1].load)


def test_hops_of_an_idle_network_are_those_of_minimal():
    machine = parse_spec(spec(5, 1, 3, 2, "consecutive", 2))
    s, t = np.array([0, 1, 0]), np.array([3, 5, 1])
    np.testing.assert_allclose(hops(machine, s, t, "adaptive"), hops(machine, s, t, "minimal"))


def test_a_hasty_division_is_one_too_and_knows_its_gap():
    machine = parse_spec(spec(6, 2, 3, 2, "consecutive", 3))
    demand = listed_demand(machine, between(machine, 0, 1) + between(machine, 2, 1))
    with patch.object(linear_program, "FEW", 0):
        best = divide(machine, demand)
        with patch.multiple(adaptive, WORK=0, LEAST_STEPS=1):
            hasty = divide(machine, demand)
    assert hasty.steps <= best.steps
    assert best.bound * (1 - 1e-9) <= hasty.worst <= hasty.minimal
    assert hasty.worst <= hasty.bound * (1 + hasty.gap) * (1 + 1e-9)


@given(machine=st.one_of(ruled(), listed()), seed=st.integers(0, 99))
@examples(40)
def test_prices_are_loads_transposed(machine, seed):
    assume(len(machine) > 1 and len(channels(machine)))
    random = np.random.default_rng(seed)
    ways = group_ways_of(machine)
    a, b = random.integers(0, len(machine), (2, 20))
    reference = Reference(machine)
    assume(reference.connected([(x, y, 1.0) for x, y in zip(a, b, strict=True)]))
    demand = Demand.pairs(machine, a, b, 1.0)
    every, _, _ = ways.bytes(demand, ways.linked | ways.valiant)
    price = random.random(len(channels(machine)))
    minimal = ways.minimal_price(price, ways.inside_price(price))
    for paid, free in ((minimal, ways.linked), (ways.valiant_price(minimal), ways.valiant)):
        some = every.times(free)
        nothing = some.times(np.zeros_like(free))
        load = ways.load(some) if paid is minimal else ways.load(nothing, some)
        cost = (some.away * paid.away).sum() + (some.home * paid.home).sum()
        cost += (some.between * paid.across).sum()
        assert cost == pytest.approx(float(price @ load))


def test_bytes_go_back_to_minimal_ways_as_far_as_the_tolerance_allows():
    found = []
    for rounds in (balancing.ROUNDS, ()):
        machine = parse_spec(spec(6, 2, 2, 2, "consecutive", 4))
        sent = between(machine, 0, 1) + between(machine, 2, 1) + between(machine, 3, 4)
        with patch.object(balancing, "ROUNDS", rounds):
            found.append(divide(machine, listed_demand(machine, sent)))
    assert found[0].minimal_share > found[1].minimal_share
    assert found[0].worst <= found[0].bound * (1 + TOLERANCE) * (1 + 1e-9)


def test_no_demand_is_told_of_in_the_answer_to_another():
    machine = parse_spec(spec(6, 2, 2, 2, "consecutive", 4))
    hot = Demand.pairs(machine, np.arange(8), np.arange(8, 16), 1e6)
    even = Demand.complete(machine, np.arange(len(machine)), 1, 1e6)
    alone = [
        loads(parse_spec(spec(6, 2, 2, 2, "consecutive", 4)), one, "adaptive").notes
        for one in (hot, even)
    ]
    assert alone[0] != alone[1]
    assert [loads(machine, one, "adaptive").notes for one in (hot, even, hot)] == [*alone, alone[0]]
    assert notes(machine) == ()


@given(machine=st.one_of(ruled(), listed(), slingshots()), seed=st.integers(0, 99))
@examples(30)
def test_what_router_pairs_change_on_a_channel_is_what_a_price_on_it_says(machine, seed):
    assume(len(machine) > 1 and len(channels(machine)))
    ways = group_ways_of(machine)
    s, t = np.random.default_rng(seed).integers(0, len(ways.unit), (2, 30))
    g, h = ways.unit[s], ways.unit[t]
    near = (g == h) & (ways.detour[ways.home[g], ways.groups.place[s], ways.groups.place[t]] > 0)
    kept = np.flatnonzero((ways.linked & ways.valiant)[g, h] | near)
    s, t, g, h = s[kept], t[kept], g[kept], h[kept]
    every = np.arange(len(channels(machine)))
    places = ways.groups.place[s], ways.groups.place[t]
    found = PairChanges(ways, g, h, *places).on(every)
    for channel in every:
        price = (every == channel).astype(float)
        inside = ways.inside_price(price)
        minimal = ways.minimal_price(price, inside)
        far = minimal.cost(g, places[0], h, places[1])
        far -= ways.valiant_price(minimal).cost(g, places[0], h, places[1])
        near = (inside - ways.detour_price(inside))[(ways.home[g], *places)]
        np.testing.assert_allclose(found[channel], np.where(g == h, near, far), atol=1e-12)


@given(seed=st.integers(0, 999))
@examples(30)
def test_the_least_largest_load_is_that_of_a_linear_program(seed):
    from scipy.optimize import linprog

    random = np.random.default_rng(seed)
    m, n = random.integers(1, 30, 2)
    none = random.choice([0.0, 1.0, 5.0], m) + 1e-3
    change = np.maximum(
        random.normal(size=(m, n)) * random.choice([0, 1, 9], (m, n)), -0.9 * none[:, None] / n
    )
    share, prices, bound, _ = linear_program.least_largest(none, change, 1e-4)
    goal, table = np.append(np.zeros(n), 1.0), np.column_stack([change, -np.ones(m)])
    best = linprog(goal, table, -none, bounds=[(0, 1)] * n + [(None, None)], method="highs").fun
    assert ((share >= 0) & (share <= 1)).all()
    assert (prices >= 0).all()
    assert (none + change @ share).max() == pytest.approx(best, rel=2e-4)
    assert bound == pytest.approx(best, rel=2e-4)
    assert prices @ none + np.minimum(prices @ change, 0).sum() == pytest.approx(bound)


@pytest.mark.parametrize("tolerance", [0.0, 1e-6, 1e-12])
@pytest.mark.parametrize("seed", [30, 144, 907])
def test_more_digits_than_numbers_have_end_the_search_with_what_is_proven(seed, tolerance):
    random = np.random.default_rng(seed)
    none, change = random.choice([0.0, 1.0, 5.0], 9), random.normal(size=(9, 14))
    none += 1e-3 - np.minimum(change, 0).sum(axis=1)
    share, _, bound, _ = linear_program.least_largest(none, change, tolerance)
    found = (none + change @ share).max()
    assert bound * (1 - 1e-9) <= found <= bound * (1 + 1e-4)
