# SPDX-License-Identifier: Apache-2.0
"""Small graphs on uneven slots, against every placement there is; graphs with many idle ranks."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.orders.auto import choose
from nidmap.rankmap.pattern.graph import from_edges
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.refine import mapping
from nidmap.rankmap.refine.exhaustive import search_all
from nidmap.rankmap.refine.mapping import map_ranks
from nidmap.rankmap.score.distance import job_distance, machine_distance
from nidmap.rankmap.score.traffic import cost_of
from tests.effort import examples

MACHINES = [
    ("torus:6", "#0-3"),
    ("torus:5,nodes=2", "#0-4"),
    ("tree:2x2x2,dist=1:2:5", "#0,1,2,5"),
    ("dragonfly:groups=3,chassis=2,blades=2,nodes=2", "#0,3,9,17"),
    ("fattree:leaf=3,leaves=3,spines=2", "#0,1,4,8"),
]


def decades(n, edges, seed):
    """Return a graph whose weights run from 10 to 10^6."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, (2, edges))
    return from_edges(n, a, b, 10.0 ** rng.uniform(1, 6, edges))


def least(graph, counts, distance):
    """Return the least J over all placements, by brute force."""
    ways = set(itertools.permutations(np.repeat(np.arange(len(counts)), counts).tolist()))
    node, far = np.array(sorted(ways)), distance.matrix()
    a, b, weight = graph.upper()
    return float((weight * far[node[:, a], node[:, b]]).sum(axis=1).min())


@examples(60)
@given(st.data())
def test_small_graphs_on_uneven_slots_get_the_least_cost_of_all(data):
    spec, nodes = data.draw(st.sampled_from(MACHINES))
    places = place_ranks(nidmap.load_machine(spec), nodes, 1).ranks
    shape = st.lists(st.integers(1, 3), min_size=places, max_size=places)
    counts = data.draw(shape.filter(lambda c: sum(c) <= 8))
    on = place_ranks(nidmap.load_machine(spec), nodes, counts)
    n = on.ranks
    graph = decades(n, data.draw(st.integers(1, 4 * n)), data.draw(st.integers(0, 9999)))
    if not len(graph.indices):
        return
    distance = job_distance(on)
    wanted = pytest.approx(least(graph, on.counts, distance), rel=1e-9)
    for strategy in ("graph", "auto"):
        assert cost_of(graph, arrange(on, graph, strategy).node_of_rank, distance) == wanted
    assert choose(graph, on, 0.0).cost == wanted
    assert choose(graph, on).optimal


@pytest.mark.parametrize("seed", range(12))
def test_the_outside_case(seed):
    """torus:6 with 3, 2, 2 and 3 ranks: 25,200 placements, weights from 10 to 10^6."""
    on = place_ranks(nidmap.load_machine("torus:6"), "#0-3", "3,2,2,3")
    graph, far = decades(10, 15 + seed, seed), job_distance(on).matrix()
    a, b, weight = graph.upper()
    best = np.inf
    ranks = set(range(10))
    for first in itertools.combinations(range(10), 3):
        for second in itertools.combinations(sorted(ranks - set(first)), 2):
            rest = sorted(ranks - set(first) - set(second))
            third = np.array(list(itertools.combinations(rest, 2)))
            node = np.full((len(third), 10), 3)
            node[:, first], node[:, second] = 0, 1
            node[np.arange(len(third))[:, None], third] = 2
            best = min(best, (weight * far[node[:, a], node[:, b]]).sum(axis=1).min())
    found = arrange(on, graph, "graph")
    assert cost_of(graph, found.node_of_rank, job_distance(on)) == pytest.approx(best)


def test_what_is_too_much_is_given_up_at_once():
    on = place_ranks(nidmap.load_machine("torus:4x4x4"), "#0-31", 2)
    graph = decades(64, 300, 1)
    assert search_all(graph, on.node_of_slot, on.counts, job_distance(on)) is None


def test_idle_ranks_cost_no_search():
    """Four ranks that talk among two hundred that do not."""
    on = place_ranks(nidmap.load_machine("tree:4x4x4,dist=1:2:3"), "#0-49", 4)
    graph = from_edges(200, np.array([3, 77]), np.array([150, 199]), np.array([1.0, 1e6]))
    assert cost_of(graph, arrange(on, graph, "graph").node_of_rank, job_distance(on)) == 0


@pytest.mark.parametrize(
    "spec", ["tree:4x4x4,dist=1:2:3", "tree:4x4x4,dist=1:10:100", "torus:4x4x4"]
)
@pytest.mark.parametrize(("many", "size"), [(64, 24), (60, 24), (100, 16)])
def test_cliques_among_idle_ranks_stay_whole(spec, many, size):
    """Nodes of 32 hold a clique and idle ranks beside: nothing has to be cut."""
    pytest.importorskip("numba")
    rng = np.random.default_rng(many)
    start = np.arange(many)[:, None] * size
    inner = np.array(list(itertools.combinations(range(size), 2)))
    where = rng.permutation(2048)
    a, b = (where[(start + inner[:, k]).ravel()] for k in (0, 1))
    graph = from_edges(2048, a, b, rng.integers(1, 101, len(a)).astype(float))
    distance = machine_distance(nidmap.load_machine(spec))
    node = map_ranks(graph, np.full(64, 32), distance)
    assert np.bincount(node).tolist() == [32] * 64
    assert cost_of(graph, node, distance) == 0


def test_a_graph_is_mapped_as_far_as_there_is_time(monkeypatch):
    pytest.importorskip("numba")
    rng = np.random.default_rng(4)
    where = rng.permutation(512)
    a, b = where[np.arange(511)], where[np.arange(1, 512)]
    graph = from_edges(512, a, b, np.ones(511))
    distance, counts = machine_distance(nidmap.load_machine("tree:4x4x4")), np.full(64, 8)
    whole = map_ranks(graph, counts, distance)
    assert (map_ranks(graph, counts, distance, seconds=1e9) == whole).all()
    clock = iter(range(10**6))
    monkeypatch.setattr(mapping.time, "thread_time", lambda: float(next(clock)))
    costs = []
    for looks in (0, 2, 4, 8):  # at the clock: the time is up after so many
        node = map_ranks(graph, counts, distance, seconds=looks)
        assert np.bincount(node).tolist() == [8] * 64
        costs.append(cost_of(graph, node, distance))
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[1] > costs[-1] >= cost_of(graph, whole, distance)
