# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.placement.network import Demand, channels, loads, routings
from nidmap.placement.network.bounds import best_bound, cut_time, partitions
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic
from tests.effort import examples
from tests.placement.network.dense import dense

SMALL = (
    "torus:3x2,nodes=2,bw=2,injection=5",
    "torus:6,bw=1",
    "torus:4x2,x=3,y=1",
    "fattree:leaf=2,leaves=4,spines=1,bw=1",
    "fattree:leaf=3,leaves=3,spines=2,bw=2",
    "fattree:down=2x2x2,up=1x1x1,bw=1",
    "tree:3x2x2,bw=3:2:1",
    "dragonfly:groups=2,chassis=1,blades=2,nodes=2,global=1,injection=4,green=2,black=2,blue=1",
    "slingshot:groups=2,switches=2,nodes=2,global=1,injection=4,bw=2",
)


def least_time(machine, demand):
    """Return the least time of a demand by cuts and by its nodes' own links."""
    own = np.maximum(demand.out, demand.into) / (injection_bandwidth(machine) * 1e9)
    return max(cut_time(machine, demand), own.max())


def brute(machine, count):
    """Return the `least_time` of an all-to-all over all placements of `count` nodes."""
    rows = range(len(machine))
    every = (
        Demand.of(machine, Traffic.everyone(np.array(c), 1, 1e9)) for c in combinations(rows, count)
    )
    return min(least_time(machine, demand) for demand in every)


@pytest.mark.parametrize("spec", SMALL)
@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_no_placement_beats_the_best_bound(spec, count):
    machine = parse_spec(spec)
    if count > len(machine):
        return
    found = best_bound(machine, count, out=(count - 1) * 1e9, pair=1e9).seconds
    assert found <= brute(machine, count) * (1 + 1e-9)


@pytest.mark.parametrize("spec", SMALL)
def test_a_whole_machine_leaves_no_choice(spec):
    machine = parse_spec(spec)
    count = len(machine)
    found = best_bound(machine, count, out=(count - 1) * 1e9, pair=1e9).seconds
    own = least_time(machine, Demand.of(machine, Traffic.everyone(np.arange(count), 1, 1e9)))
    assert found == pytest.approx(own)


def test_the_best_bound_is_reached_where_the_parts_are_alike():
    machine = parse_spec("fattree:leaf=3,leaves=3,spines=1,bw=1")
    for count in range(2, 10):
        found = best_bound(machine, count, out=(count - 1) * 1e9, pair=1e9).seconds
        assert found == pytest.approx(brute(machine, count))


@given(st.sampled_from(SMALL), st.integers(0, 2**32 - 1))
@examples(60)
def test_no_routing_beats_the_bound(spec, seed):
    machine = parse_spec(spec)
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, len(machine), (2, 12))
    flows = Traffic.of(a, b, rng.integers(1, 10, 12) * 1e8)
    demand = Demand.of(machine, flows + Traffic.everyone(np.arange(4), 1, 1e8))
    least = least_time(machine, demand)
    for routing in set(routings(machine)) - {"valiant", "adaptive"}:  # their own tests
        assert loads(machine, demand, routing).worst().seconds >= least * (1 - 1e-9)


@given(st.sampled_from(SMALL), st.integers(0, 2**32 - 1))
@examples(40)
def test_messages_of_any_placement_respect_the_best_bound(spec, seed):
    """Random messages on random nodes: `out` their least, `pair` their largest."""
    machine = parse_spec(spec)
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, min(8, len(machine)) + 1))
    table = rng.integers(0, 4, (count, count)) * 1e8
    np.fill_diagonal(table, 0)
    rows = rng.permutation(len(machine))[:count]
    a, b = np.nonzero(table)
    demand = Demand.of(machine, Traffic.of(rows[a], rows[b], table[a, b]))
    out = table.sum(axis=1)
    found = best_bound(
        machine, count, out=float(out.min()), pair=float(table.max()), busiest=float(out.max())
    )
    assert found.seconds <= least_time(machine, demand) * (1 + 1e-9)


def optimum(machine, demand):
    """Return the least largest load / bandwidth of any routing: a linear program."""
    optimize = pytest.importorskip("scipy.optimize")
    found = channels(machine)
    arcs, routers = len(found), demand.routers
    table = dense(demand)
    sources = np.flatnonzero(table.any(axis=1))
    out = np.zeros((len(sources) * routers, len(sources) * arcs + 1))
    flow = np.zeros(len(out))
    for k, s in enumerate(sources):
        for arc in range(arcs):
            out[k * routers + found.source[arc], k * arcs + arc] += 1
            out[k * routers + found.target[arc], k * arcs + arc] -= 1
        flow[k * routers : (k + 1) * routers] = -table[s] / 1e9
        flow[k * routers + s] += table[s].sum() / 1e9
    most = np.zeros((arcs, out.shape[1]))
    for k in range(len(sources)):
        most[:, k * arcs : (k + 1) * arcs] = np.eye(arcs)
    most[:, -1] = -found.bandwidth
    goal = np.zeros(out.shape[1])
    goal[-1] = 1
    return optimize.linprog(goal, most, np.zeros(arcs), out, flow, method="highs").fun


@pytest.mark.parametrize(
    "spec", ["torus:4x2,bw=1", "torus:3x3,bw=2", "fattree:leaf=2,leaves=3,spines=2,bw=1"]
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_bound_is_below_the_optimum_of_all_routings(spec, seed):
    machine = parse_spec(spec)
    rows = np.random.default_rng(seed).permutation(len(machine))[:5]
    demand = Demand.of(machine, Traffic.everyone(rows, 1, 1e9))
    assert 0 < cut_time(machine, demand) <= optimum(machine, demand) * (1 + 1e-7)


def test_bisection_of_a_whole_torus():
    machine = parse_spec("torus:8x4x4,bw=2")
    count = 128
    found = best_bound(machine, count, out=(count - 1) * 1e6, pair=1e6)
    assert found.seconds == pytest.approx(64 * 64 * 1e6 / (2 * 16 * 2e9))
    assert "slab of 4 in x" in found.why
    rows = Demand.of(machine, Traffic.everyone(np.arange(count), 1, 1e6))
    assert cut_time(machine, rows) == pytest.approx(found.seconds)


def test_nodes_that_may_be_taken_count_only():
    machine = parse_spec("fattree:leaf=4,leaves=2,spines=1,bw=1")
    spread = np.zeros(8, dtype=bool)
    spread[[0, 1, 4, 5]] = True
    free = best_bound(machine, 4, out=3e9, pair=1e9)
    forced = best_bound(machine, 4, out=3e9, pair=1e9, among=spread)
    assert (free.seconds, free.why) == (3.0, "a node sends 3 GB at 1 GB/s")
    assert forced.seconds == pytest.approx(4.0)
    assert "whichever router each is on" in forced.why


def test_the_busiest_node_and_the_slowest_links():
    machine = parse_spec("torus:4,bw=100,injection=2")
    found = best_bound(machine, 2, out=1e9, pair=1e9, busiest=6e9)
    assert found.seconds == 3.0
    one = parse_spec("tree:4")
    assert cut_time(one, Demand.of(one, Traffic.everyone(np.arange(4), 1, 1.0))) == 0.0


def test_what_cannot_be_bounded():
    machine = parse_spec("torus:4")
    with pytest.raises(UsageError, match="no bound for 5 of 4 nodes"):
        best_bound(machine, 5, out=1.0, pair=1.0)


def test_links_without_a_figure_bound_nothing_and_raise_no_warning():
    machine = parse_spec("tree:4x4,injection=1")
    found = best_bound(machine, 8, out=7e9, pair=1e9)
    assert found.seconds == 7.0
    assert "whichever" not in found.why


def test_partitions():
    m = parse_spec("dragonfly:groups=3,chassis=1,blades=2,nodes=2")
    assert [part.name for part in partitions(m)] == ["router", "group", "chassis", "blade"]
