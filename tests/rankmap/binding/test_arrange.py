# SPDX-License-Identifier: Apache-2.0
"""Who sits where inside a node: against all seatings, and what must not change."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Core, NodeHardware
from nidmap.rankmap.binding import bind
from nidmap.rankmap.binding.arrange import NodeArrangement, arrange_inside
from nidmap.rankmap.orders import find
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.place_ranks import place_ranks

NODE = NodeHardware(tuple(Core((k,), k // 2, k // 4, k // 8) for k in range(16)))


def symmetric(values, k):
    out = np.zeros((k, k))
    out[np.triu_indices(k, 1)] = values
    return out + out.T


problems = st.integers(2, 8).flatmap(
    lambda k: st.tuples(
        st.lists(st.integers(0, 9), min_size=k * (k - 1) // 2, max_size=k * (k - 1) // 2),
        st.lists(st.integers(0, 9), min_size=k, max_size=k),
        st.lists(st.integers(1, 4), min_size=k * (k - 1) // 2, max_size=k * (k - 1) // 2),
        st.lists(st.integers(0, 3), min_size=k, max_size=k),
    )
)


@given(problems)
def test_seats_are_the_best_of_all_for_few_ranks_and_no_exchange_betters_them(problem):
    talk, outside, apart, nics = (np.array(part, float) for part in problem)
    k = len(outside)
    inside, between = symmetric(talk, k), symmetric(apart, k)
    arrangement = NodeArrangement(inside, outside, between, nics)
    places = arrangement.best_places()
    assert sorted(places.tolist()) == [*range(k)]
    cost = arrangement.cost(places)
    every = [
        arrangement.cost(np.array(one))
        for one in (itertools.permutations(range(k)) if k <= 6 else ())
    ]
    assert cost <= min(every, default=cost) + 1e-6
    assert cost <= arrangement.cost(np.arange(k)) + 1e-9
    # No exchange of two is better.
    for i, j in itertools.combinations(range(k), 2):
        other = places.copy()
        other[[i, j]] = other[[j, i]]
        assert cost <= arrangement.cost(other) + 1e-6


def measured_cost(order, pattern):
    """Return the sum over the edges inside nodes of weight times seconds a GB, edge by edge."""
    from nidmap.rankmap.binding.arrange import costs_between, places_on

    local = order.slot_of_rank - order.first_slot[order.node_of_rank]
    total = 0.0
    for block in pattern.edges():
        for a, b, weight in zip(*map(np.ndarray.tolist, block.columns[:3]), strict=True):
            if order.node_of_rank[a] == order.node_of_rank[b]:
                count = int(order.counts[order.node_of_rank[a]])
                costs = costs_between(places_on(NODE, count), NODE)
                total += weight * costs[local[a], local[b]]
    return total


@pytest.mark.parametrize("spec", ["stencil:4x4x4", "fft:8x8", "ring", "stencil:8x8,weights=1:9"])
@pytest.mark.parametrize("ppn", [8, "16,16,16,8,8"])
def test_cost_is_that_of_the_edges_and_nodes_stay(spec, ppn):
    count = 8 if ppn == 8 else 5
    on = place_ranks(nidmap.load_machine("torus:4x4"), f"#0-{count - 1}", ppn)
    pattern = parse_pattern(spec).on(on)
    order = find("round-robin")(pattern, on)
    found = arrange_inside(order, pattern, NODE)
    assert found.order.node_of_rank.tolist() == order.node_of_rank.tolist()
    assert found.cost == pytest.approx(measured_cost(found.order, pattern))
    assert found.before == pytest.approx(measured_cost(order, pattern))
    assert found.cost <= found.before * (1 + 1e-9)


def test_one_arrangement_for_all_nodes_is_one():
    on = place_ranks(nidmap.load_machine("torus:4x4"), "#0-3", 16)
    pattern = parse_pattern("stencil:8x8").on(on)
    order = find("hilbert")(pattern, on)
    found = arrange_inside(order, pattern, NODE, alike=True).order
    turns = np.argsort(found.rank_at_slot.reshape(4, 16), axis=1)
    assert (turns == turns[0]).all()
    assert found.node_of_rank.tolist() == order.node_of_rank.tolist()


def test_nodes_of_different_counts_need_a_rankfile():
    on = place_ranks(nidmap.load_machine("polaris"), "#0-1", "4,2")
    ring = parse_pattern("ring").on(on)
    order = on.with_order(np.arange(6))
    for form in ("mpich", "slurm"):
        with pytest.raises(UsageError, match="one list cannot bind nodes with 2 and with 4 ranks"):
            bind(order, ring, "srun", form)
    assert bind(order, ring, "openmpi", "openmpi").options == ()
    places = bind(order, ring, "openmpi", "openmpi").places
    assert {count: len(some) for count, some in places.items()} == {2: 2, 4: 4}
    with pytest.raises(UsageError, match="cannot be used with"):
        bind(order, ring, "openmpi", "mpich")
