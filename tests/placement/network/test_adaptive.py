# SPDX-License-Identifier: Apache-2.0
"""Routing adaptive against a linear program over router pairs, paths enumerated one by one."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nidmap.placement.network import Demand, channels, hops, loads
from nidmap.placement.network.adaptive import (
    FEW,
    _even_share,
    _share_of,
    divide,
    divide_each,
    notes,
)  # fmt: skip
from nidmap.placement.network.groups import groups_of
from nidmap.placement.network.local_paths import Leg
from nidmap.placement.network.touched import ChannelTables, TouchedGroups, TouchedRouters
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic
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

#: How far the largest load may be above the least possible.
CLOSE = 1.1

#: The same where any cables are missing and bytes differ by a factor of 300,000: cases that no
#: machine has.
ODD = 1.25


def least(machine, sent):
    """Return the optimum of the linear program, and the largest load on minimal ways.

    Where two groups have no link of their own there is no minimal way to choose.
    """
    from scipy.optimize import linprog  # takes a second, of every worker that collects
    from scipy.sparse import csc_matrix

    reference = Reference(machine)
    thirds = Thirds(reference)
    scale = 1 / (channels(machine).bandwidth * GB)
    none, rows, columns, values = np.zeros(len(scale)), [], [], []
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
    size = (none + change.sum(axis=1)).max() or 1.0
    table = np.column_stack([change / size, -np.ones(len(scale))])
    goal = np.append(np.zeros(variables), 1.0)
    bounds = [(0, 1)] * variables + [(0, None)]
    found = linprog(goal, table, -none / size, bounds=bounds, method="highs")
    assert found.status == 0
    return found.fun * size


def largest(machine, load):
    return float((load / (channels(machine).bandwidth * GB)).max())


def check(machine, sent, close=CLOSE):
    demand = listed_demand(machine, sent)
    best = least(machine, sent)
    found = divide(machine, demand)
    worst = largest(machine, found.best)
    assert best * (1 - 1e-6) <= worst <= best * close * (1 + 1e-6)
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


def question(seed):
    """Return a machine and messages: any, an all-to-all, or a step of one."""
    draw = np.random.default_rng(seed)
    kind, size = draw.integers(5), draw.integers(1, 5, 4)
    if kind == 0:
        words = f"slingshot:groups={2 + size[0]},switches={1 + size[1]},nodes=2,nics={size[2]}"
        machine = parse_spec(f"{words},global={size[3]}")
    elif kind == 1:
        words = f"groups={2 + size[0]},leaves={1 + size[1]},spines={1 + size[2]},nodes=2"
        machine = parse_spec(f"dragonfly+:{words},global={size[3]}")
    else:
        rule = RULES[draw.integers(len(RULES))]
        machine = parse_spec(spec(2 + size[0], 1 + size[1] // 2, size[2], 2, rule, size[3]))
    count = len(machine)
    rows = draw.permutation(count)[: draw.integers(2, 25)]
    if (how := draw.integers(3)) == 0:
        ends = draw.integers(0, count, (40, 2))
        return machine, [
            (int(a), int(b), float(draw.choice([1e3, 2e6, 7e6, 3e8]))) for a, b in ends if a != b
        ]
    if how == 1:
        return machine, [(int(a), int(b), 1e6) for a in rows for b in rows if a != b]
    return machine, [(int(a), int(b), 1e6) for a, b in zip(rows, np.roll(rows, 1), strict=True)]


def test_sixty_questions_are_within_ten_per_cent_of_the_linear_program():
    ratios = []
    for seed in range(60):
        machine, sent = question(seed)
        best = least(machine, sent)
        if best:
            worst = largest(machine, divide(machine, listed_demand(machine, sent)).best)
            ratios.append(worst / best)
    assert len(ratios) > 54
    assert min(ratios) >= 1 - 1e-6
    assert max(ratios) <= CLOSE
    assert np.median(ratios) <= 1.02


@pytest.mark.parametrize("pattern", ["transposed", "shifted", "permuted"])
@pytest.mark.parametrize(
    ("groups", "chassis", "blades", "nodes"),
    [(1, 4, 4, 2), (1, 6, 6, 1), (4, 3, 3, 2), (5, 1, 4, 2)],
)
def test_patterns_come_near_the_optimum(pattern, groups, chassis, blades, nodes):
    words = (
        f"groups={groups},chassis={chassis},blades={blades},nodes={nodes},green=1,black=1,blue=1"
    )
    machine = parse_spec(f"dragonfly:{words},injection=1")
    node, each = np.arange(len(machine)), chassis * blades * nodes
    goal = (node + (nodes + 1 if groups == 1 else each)) % len(machine)
    if pattern == "transposed":
        c, b = np.divmod(node % each // nodes, blades)
        goal = np.roll(node // each, each) * each + (b * chassis + c) * nodes + node % nodes
    elif pattern == "permuted":  # in the group, or with the next one
        draw = np.random.default_rng(groups)
        goal = (np.concatenate([g * each + draw.permutation(each) for g in range(groups)])) % each
        goal = (goal + (node // each ^ 1) * each) % len(machine) if groups > 1 else goal
    check(machine, [(int(a), int(b), 1e6) for a, b in zip(node, goal, strict=True) if a != b])


@given(seed=st.integers(0, 10**6), part=st.sampled_from([0.0, 0.5, 0.9, 1.2, 2.0]))
@examples(40)
def test_nothing_is_shifted_any_more_where_it_is_enough(seed, part):
    machine, sent = question(seed)
    best = least(machine, sent)
    demands = [listed_demand(machine, sent)]
    enough = np.array([part * max(best, 1e-9)])
    found = next(divide_each(machine, demands, enough))
    minimal, worst = (largest(machine, load) for load in (found.minimal, found.best))
    if minimal <= enough[0]:
        assert found.detoured == 0
        np.testing.assert_array_equal(found.best, found.minimal)
    assert worst <= max(ODD * best, float(enough[0])) * (1 + 1e-6)
    assert found.detoured <= 1


@given(seed=st.integers(0, 10**6))
@examples(40)
def test_even_share_is_the_best_of_all_shares(seed):
    draw = np.random.default_rng(seed)
    none, every = (
        ChannelTables(*(draw.random((2, 3, 4)) ** 2 for _ in range(3))) for _ in range(2)
    )
    first, last = (
        np.concatenate([t.reshape(2, -1) for t in ends], axis=1) for ends in (none, every)
    )
    shares = np.linspace(0.2, 0.8, 601)
    seconds = (first + shares[:, None, None] * (last - first)).max(axis=2)
    found = _even_share(none, every)
    reached = (first + found[:, None] * (last - first)).max(axis=1)
    assert (reached <= seconds.min(axis=0) * 1.02).all()


@few
@given(st.data())
def test_any_links_come_near_the_optimum(data):
    machine = data.draw(st.one_of(listed(), ruled(), slingshots(), machines()))
    assume(len(machine))
    sent = [x for x in data.draw(scattered(machine)) if x[0] != x[1]]
    assume(sent and Reference(machine).connected(sent))
    assume(np.isfinite(channels(machine).bandwidth).all() and len(channels(machine)))
    check(machine, sent, ODD)


@given(machine=machines(), more=st.booleans())
@examples(15)
def test_hot_spots_come_near_the_optimum(machine, more):
    sent = between(machine, 0, 1)
    if more:
        sent += between(machine, 1, 2) + between(machine, 2, 0)
    check(machine, sent, ODD)


@pytest.mark.parametrize("name", ["lumi", "shaheen2", "leonardo"])
def test_many_pairs_share_alike_and_little_is_lost(name, monkeypatch):
    import nidmap
    from nidmap.placement.network import adaptive

    machine = nidmap.load_machine(name)
    rows = np.flatnonzero(machine.free)[np.r_[0:20, 1000:1012]]
    demand = Demand.of(machine, Traffic.everyone(rows, 1, 1e6))
    monkeypatch.setattr(adaptive, "FEW", 10**9)
    alone = largest(machine, divide(machine, demand).best)
    monkeypatch.setattr(adaptive, "FEW", 0)
    assert largest(machine, divide(machine, demand).best) <= 1.15 * alone


def test_where_many_groups_are_touched_the_mean_of_what_they_pass_on_will_do(monkeypatch):
    from nidmap.placement.network import touched

    words = "groups=90,switches=16,nodes=8,global=2,injection=25"
    rows = np.random.default_rng(3).permutation(90 * 128)[:150]
    sent = [Traffic.everyone(rows, 1, 1e6), Traffic.of(rows, np.roll(rows, 7), 1e6)]
    largest_loads = []
    for many in (touched.MANY, 10**9):
        monkeypatch.setattr(touched, "MANY", many)
        machine = parse_spec(f"slingshot:{words}")
        demands = [Demand.of(machine, traffic) for traffic in sent]
        divisions = divide_each(machine, demands, np.zeros(len(demands)))
        largest_loads.append([largest(machine, division.best) for division in divisions])
    assert largest_loads[0] != largest_loads[1]
    assert np.allclose(*largest_loads, rtol=0.1)


def test_a_hot_spot_is_relieved():
    machine = parse_spec(spec(6, 2, 2, 2, "consecutive", 4))
    group = machine.coords[:, 0]
    quiet = (int(np.flatnonzero(group == 4)[0]), int(np.flatnonzero(group == 5)[0]), 1.0)
    sent = [*between(machine, 0, 1), quiet]
    found = check(machine, sent)
    minimal = largest(machine, loads(machine, listed_demand(machine, sent), "minimal").load)
    assert largest(machine, found.best) < 0.6 * minimal
    assert 0 < found.detoured < 1


@few
@given(data=st.data(), loss=st.floats(0.0, 2.0))
def test_what_detours_cost_lies_between_the_best_division_and_minimal(data, loss):
    machine = data.draw(machines())
    sent = [x for x in data.draw(scattered(machine)) if x[0] != x[1]]
    assume(sent and Reference(machine).connected(sent) and len(channels(machine)))
    demand = listed_demand(machine, sent)
    ways, found = divide(machine, demand), loads(machine, demand, "adaptive", loss)
    minimal = loads(machine, demand, "minimal").load
    own = max(demand.out.max(), demand.into.max()) / 10e9
    best, worst = (max(own, largest(machine, load)) for load in (ways.best, ways.minimal))
    took = max(found.by_class().values())
    assert best * (1 - 1e-6) <= took <= worst * (1 + 1e-6)
    assert took <= best * (1 + loss * ways.detoured) * (1 + 1e-6)
    assert 1 <= found.slower <= 1 + loss * ways.detoured
    if groups_of(machine).complete:
        np.testing.assert_allclose(ways.minimal, minimal, rtol=1e-9, atol=1e-3)


def test_a_hot_pair_pays_for_its_detours():
    """One minimal way and two over third groups: a third each, and two thirds pay."""
    machine = parse_spec("dragonfly:groups=4,chassis=1,blades=1,nodes=1,global=1,blue=1")
    demand = Demand.of(machine, Traffic.of(np.array([0]), np.array([1]), 3e9))
    for loss in (0.0, 0.2, 0.4):
        found = loads(machine, demand, "adaptive", loss)
        assert found.seconds().max() == pytest.approx(1 + loss * 2 / 3, rel=2e-2)
    assert loads(machine, demand, "adaptive", 9.0).slower == 1
    assert "% of the bytes between routers on detours" in found.notes[-1]


def test_the_site_says_what_detours_cost():
    import nidmap

    words = "groups=4,chassis=1,blades=1,nodes=1,global=1,blue=1"
    machine = nidmap.load_machine(f"dragonfly:{words},routing=adaptive,loss=0.3")
    demand = Demand.of(machine, Traffic.of(np.array([0]), np.array([1]), 1e9))
    default = loads(machine, demand)
    assert default.routing == "adaptive"
    assert default.slower == loads(machine, demand, "adaptive", 0.3).slower > 1


def test_two_groups_are_minimal_between_them():
    machine = parse_spec(spec(2, 1, 1, 2, "consecutive", 3))
    demand = Demand.of(machine, Traffic.everyone(np.arange(len(machine)), 1, 1.0))
    found = loads(machine, demand, "adaptive")
    np.testing.assert_allclose(found.load, loads(machine, demand, "minimal").load)
    assert any("fewer than three groups" in note for note in found.notes)


@few
@given(data=st.data(), loss=st.sampled_from([0.0, 0.2, 5.0]))
def test_no_byte_is_lost(data, loss):
    machine = data.draw(st.one_of(machines(), slingshots(), listed(), ruled()))
    assume(len(machine))
    sent = [x for x in data.draw(scattered(machine)) if x[0] != x[1]]
    assume(sent and Reference(machine).connected(sent) and len(channels(machine)))
    demand = listed_demand(machine, sent)
    found = loads(machine, demand, "adaptive", loss)
    both, routers = channels(machine), groups_of(machine).routers
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
    minimal = largest(machine, loads(machine, listed_demand(machine, sent), "minimal").load)
    assert largest(machine, found.best) < 0.4 * minimal
    assert found.detoured > 0.6
    assert 1 < found.best.sum() / 4e6 < hops


@pytest.mark.parametrize("blades", [3, 4, 8])
def test_detours_between_blades_of_a_chassis_stay_in_it(blades):
    """Every blade sends to the next one: all links of the chassis carry the same, and no others."""
    words = f"groups=1,chassis=4,blades={blades},nodes=1,green=1,black=1,injection=9"
    machine = parse_spec(f"dragonfly:{words}")
    node = np.arange(len(machine))
    following = node - node % blades + (node + 1) % blades
    found = divide(machine, Demand.of(machine, Traffic.of(node, following, 1e9)))
    kinds = np.array(channels(machine).kinds)[channels(machine).kind]
    assert found.best[kinds == "black"].sum() == 0
    # x of it on the one link, the rest in two hops over the others: x = 2 (1 - x) / (blades - 2)
    assert largest(machine, found.best) == pytest.approx(2 / blades, rel=0.02)


@few
@given(machine=st.one_of(ruled(), listed(), slingshots(), machines()), seed=st.integers(0, 999))
def test_detours_load_the_links_of_paths_one_by_one(machine, seed):
    assume(len(machine) > 1 and len(channels(machine)))
    random, groups = np.random.default_rng(seed), groups_of(machine)
    reference, count = Reference(machine), len(machine)
    thirds = Thirds(reference)
    ends = [(int(a), int(b), float(c)) for a, b, c in random.integers(0, count, (20, 3))]
    sent = [x for x in ends if x[0] != x[1] and reference.connected([x])]
    messages = reference.router_messages(sent)
    assume(messages and all(thirds.divisible(s, t) for s, t, _ in messages))
    demand = listed_demand(machine, sent)
    routers = TouchedRouters(groups, demand.routers_used())
    others = np.setdiff1d(np.arange(groups.count), routers.units)
    touched, total = TouchedGroups(groups, routers, others), routers.traffic([demand])
    load = touched.load(total.minus(total), total)
    found = touched.channel_loads(ChannelTables(*(table[0] for table in load)))
    wanted = thirds.loads(sent, thirds.other)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-6)


def test_unlimited_channels_and_no_bytes():
    machine = parse_spec("dragonfly:groups=3,chassis=1,blades=2,nodes=1")
    machine.topology.bandwidth.clear()
    demand = Demand.of(machine, Traffic.everyone(np.arange(6), 1, 1.0))
    assert divide(machine, demand).best.sum() >= loads(machine, demand, "minimal").load.sum()
    assert (
        divide(machine, Demand.of(machine, Traffic.everyone(np.arange(6), 1, 0.0))).best.sum() == 0
    )
    assert divide(machine, Demand.of(machine, Traffic.of(*np.zeros((2, 0)), 1.0))).best.sum() == 0


@given(factor=st.sampled_from([1e-6, 0.3, 7.0, 1e9]), seed=st.integers(0, 20))
@examples(15)
def test_loads_are_linear_in_bytes(factor, seed):
    machine = parse_spec(spec(4, 2, 3, 2, "consecutive", 2))
    some = np.random.default_rng(seed).integers(0, len(machine), (2, 40))
    sent = Traffic.of(*some, 1e5) + Traffic.everyone(np.arange(9), 1, 3e4)
    one, many = (
        divide(machine, Demand.of(machine, traffic)).best for traffic in (sent, sent.sized(factor))
    )
    np.testing.assert_allclose(many, one * factor, rtol=1e-6)


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
    here = divide(same, Demand.of(same, Traffic.of(a, b, 7.0)))
    there = divide(turned, Demand.of(turned, Traffic.of(*moved, 7.0)))
    assert largest(turned, there.best) == pytest.approx(largest(same, here.best), rel=1e-6)


@pytest.mark.parametrize("name", [spec(5, 2, 3, 2, "consecutive", 3), "hazelhen", "lumi"])
def test_steps_are_divided_together_as_each_is_alone(name, monkeypatch):
    import nidmap
    from nidmap.placement.network import adaptive

    machine = nidmap.load_machine(name)
    rows = np.flatnonzero(machine.free)[: 24 if name.startswith("dragonfly") else 400 : 5]
    monkeypatch.setattr(adaptive, "FEW", len(rows))  # the all-to-all has more pairs
    steps = [Traffic.of(rows, np.roll(rows, k), k * 1e6) for k in (1, 2, 3)]
    demands = [Demand.of(machine, traffic) for traffic in (*steps, Traffic.everyone(rows, 1, 1e5))]
    together = list(divide_each(machine, demands, np.zeros(len(demands))))
    for demand, division in zip(demands, together, strict=True):
        alone = divide(machine, demand)
        np.testing.assert_allclose(division.best, alone.best, rtol=1e-9, atol=1e-3)
        assert division.detoured == pytest.approx(alone.detoured)


def test_the_same_question_has_the_same_answer():
    specification = spec(5, 2, 3, 2, "same-chassis", 3)
    found = []
    for _ in range(2):
        machine = parse_spec(specification)
        some = np.random.default_rng(3).integers(0, len(machine), (2, 80))
        found.append(divide(machine, Demand.of(machine, Traffic.of(*some, 1e6))))
    assert np.array_equal(found[0].best, found[1].best)


def test_hops_of_an_idle_network_are_those_of_minimal():
    machine = parse_spec(spec(5, 1, 3, 2, "consecutive", 2))
    s, t = np.array([0, 1, 0]), np.array([3, 5, 1])
    np.testing.assert_allclose(hops(machine, s, t, "adaptive"), hops(machine, s, t, "minimal"))


@given(
    machine=st.one_of(ruled(), listed(), slingshots()),
    seed=st.integers(0, 99),
    mean_passing=st.booleans(),
)
@examples(60)
def test_what_ways_weigh_is_loads_transposed(machine, seed, mean_passing):
    assume(len(machine) > 1 and len(channels(machine)))
    random = np.random.default_rng(seed)
    groups = groups_of(machine)
    a, b = random.integers(0, len(machine), (2, 20))
    reference = Reference(machine)
    assume(reference.connected([(x, y, 1.0) for x, y in zip(a, b, strict=True)]))
    demand = Demand.of(machine, Traffic.of(a, b, random.random(20)))
    routers = TouchedRouters(groups, demand.routers_used())
    units = routers.units
    assume(len(units))
    thirds = np.setdiff1d(np.arange(groups.count), units)
    touched = TouchedGroups(groups, routers, thirds, mean_passing=mean_passing)
    total = routers.traffic([demand])
    total = total.between((groups.linked & groups.valiant)[np.ix_(units, units)])
    total = total._replace(inner=total.inner * (touched.near > 0))
    nothing = total.minus(total)
    tables = touched.load(total, nothing)
    price = ChannelTables(*(random.random(table.shape) for table in tables))
    count = len(units)
    price.back[..., :count] = price.out[..., :count].swapaxes(-1, -2)
    real = np.zeros(groups.lanes)
    real.reshape(-1)[groups.lane] = 1.0
    real = real[touched.members]
    seen = price._replace(inside=price.inside * real)
    sent = (total, nothing), (nothing, total)
    for (minimal, detoured), paid in zip(sent, touched.prices(seen), strict=True):
        load = touched.load(minimal, detoured)
        inside = np.where(real > 0, load.inside, 0)
        by_channel = (inside * seen.inside).sum() + (load.out * seen.out).sum()
        by_channel += (load.back * seen.back)[..., count:].sum()
        by_path = (total.away * paid.away).sum() + (total.home * paid.home).sum()
        by_path += (total.away.sum(axis=-2) * paid.across).sum()
        by_path += (total.inner * paid.inner).sum()
        assert by_path == pytest.approx(float(by_channel))


def test_a_job_pays_for_the_groups_that_it_touches():
    machine = parse_spec("dragonfly:groups=260,chassis=1,blades=32,nodes=8,global=1,injection=10")
    rows = np.sort(np.random.default_rng(1).choice(len(machine), 64, replace=False))
    demand = Demand.of(machine, Traffic.everyone(rows, 1, 1e6))
    divide(machine, demand)  # what is kept of the machine is made
    tracemalloc.start()
    divide(machine, demand)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 260 * 32 * 260 * 8  # one table of all routers by all groups


def test_more_pairs_than_are_divided_one_by_one_go_by_groups():
    machine = parse_spec(spec(4, 2, 3, 2, "consecutive", 2))
    rows = np.arange(len(machine))
    sent = [(int(a), int(b), 1e6) for a in rows for b in rows if a != b]
    demand = Demand.of(machine, Traffic.everyone(rows, 1, 1e6))
    assert int((np.bincount(demand.within.line) ** 2).sum()) <= FEW
    once = divide(machine, demand)
    assert largest(machine, once.best) <= ODD * least(machine, sent)


def test_no_demand_is_told_of_in_the_answer_to_another():
    machine = parse_spec(spec(6, 2, 2, 2, "consecutive", 4))
    hot = Demand.of(machine, Traffic.of(np.arange(8), np.arange(8, 16), 1e6))
    even = Demand.of(machine, Traffic.everyone(np.arange(len(machine)), 1, 1e6))
    alone = [loads(machine, one, "adaptive").notes for one in (hot, even)]
    assert alone[0] != alone[1]
    assert notes(machine) == ()


@pytest.mark.parametrize("name", ["hazelhen", "shaheen2", "lumi", "juwels-booster"])
def test_prices_between_some_positions_are_loads_transposed(name):
    import nidmap

    groups = groups_of(nidmap.load_machine(name))
    draw, local = np.random.default_rng(0), groups.local
    start, end = (draw.random((groups.count, sets, groups.width)) for sets in (4, 3))
    for share in (start, end):
        share *= (local.joined.any(axis=2))[groups.wiring][:, None, :]
    starts, ends = (local.ends(groups.wiring, share) for share in (start, end))
    sent, price = draw.random((groups.count, 4, 3)), draw.random(len(groups.channels))
    load = local.carry([Leg(starts, ends, sent)]).reshape(-1)[groups.lane]
    [paid] = local.price([(starts, ends)], groups.table(price))
    by_channel = (groups.paths * load * price[groups.inside]).sum()
    assert (sent * paid).sum() == pytest.approx(by_channel, rel=1e-9)


def test_share_of():
    assert _share_of(np.array([-12.0, 0.0, 12.0])).tolist() == [0.0, 0.5, 1.0]
