# SPDX-License-Identifier: Apache-2.0
"""Distances against slow references: networkx's shortest paths, digit by digit comparison."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.network.groups import groups_of
from nidmap.placement.topologies import links, router_coords
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.score import distance
from nidmap.rankmap.score.distance import Levels, job_distance, machine_distance
from tests.effort import examples
from tests.placement.network.small_dragonflies import listed, wired
from tests.rankmap.helpers import named, slots


def every_pair(distance):
    n = len(distance)
    return [
        (a, b, float(distance.between(np.array(a), np.array(b))))
        for a, b in itertools.product(range(n), range(n))
    ]


@examples(25)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_a_tree_is_as_far_as_the_level_at_which_nodes_part(sizes, data):
    dist = sorted(data.draw(st.lists(st.integers(1, 9), min_size=len(sizes), max_size=len(sizes))))
    spec = f"tree:{'x'.join(map(str, sizes))},dist={':'.join(map(str, dist))}"
    distance = machine_distance(nidmap.load_machine(spec))
    for a, b, found in every_pair(distance):
        level, x, y = 0, a, b
        while x != y:
            x, y, level = x // sizes[level], y // sizes[level], level + 1
        assert found == ([0, *dist][level] if a != b else 0)


@examples(15)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(1, 2))
def test_a_torus_is_as_far_as_its_shortest_path(extents, nodes):
    machine = nidmap.load_machine(f"torus:{'x'.join(map(str, extents))},nodes={nodes}")
    graph = nx.Graph()
    graph.add_nodes_from(range(int(machine.router.max()) + 1))
    joined = links(machine)
    graph.add_edges_from(zip(joined.a.tolist(), joined.b.tolist(), strict=True))
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    router = machine.router[:, 0]
    for a, b, found in every_pair(machine_distance(machine)):
        expected = hops[router[a]][router[b]]
        assert found == (expected or (0 if a == b else 0.5))


@pytest.mark.parametrize(
    "spec",
    [
        "dragonfly:groups=3,chassis=2,blades=3,nodes=2",
        "dragonfly:groups=4,chassis=2,blades=4,nodes=1,global=2",
        "dragonfly:groups=3,chassis=3,blades=4,nodes=1,wiring=aligned",
        "slingshot:groups=4,switches=4,nodes=2,global=2",
    ],
)
def test_a_dragonfly_is_as_far_as_its_minimal_route(spec):
    machine = nidmap.load_machine(spec)
    group = router_coords(machine)[:, 0]
    router = machine.router[:, 0]
    distance = machine_distance(machine)
    for a, b, found in every_pair(distance):
        assert found == (minimal(machine, group, router[a], router[b]) + 1 if a != b else 0)


def minimal(machine, group, source, target, known={}):  # noqa: B006  # a memory
    """Return the links of the shortest path that leaves only the two groups for each other."""
    key = (id(machine), int(group[source]), int(group[target]))
    if key not in known:
        joined = links(machine)
        graph = nx.Graph()
        graph.add_nodes_from(np.flatnonzero(np.isin(group, key[1:])).tolist())
        graph.add_edges_from(
            (a, b)
            for a, b in zip(joined.a.tolist(), joined.b.tolist(), strict=True)
            if group[a] in key[1:] and group[b] in key[1:]
        )
        if key[1] == key[2]:
            graph.remove_edges_from([(a, b) for a, b in graph.edges if group[a] != group[b]])
        known[key] = (machine, dict(nx.all_pairs_shortest_path_length(graph)))
    return known[key][1][int(source)][int(target)]


def test_many_routers_need_no_table(monkeypatch):
    machine = nidmap.load_machine("dragonfly:groups=4,chassis=2,blades=4,nodes=2")
    a, b = np.random.default_rng(0).integers(0, len(machine), (2, 500))
    tabled = machine_distance(machine).between(a, b)
    monkeypatch.setattr("nidmap.rankmap.score.distance.MOST_TABLED", 0)
    assert machine_distance(machine).between(a, b).tolist() == tabled.tolist()


def test_groups_without_a_link_are_reached_by_any_path():
    machine = nidmap.load_machine("dragonfly:groups=3,chassis=1,blades=1,nodes=1,global=1")
    distance = machine_distance(wired(machine, [(0, 1, 2, 1), (1, 2, 2, 1)]))
    assert distance.hops(np.array([[0], [2]]), np.arange(3)).tolist() == [[0, 1, 2], [2, 1, 0]]


@pytest.mark.parametrize(
    "spec", ["fattree:leaf=3,leaves=4,spines=2", "fattree:down=3x2x2,up=1x2x2"]
)
def test_a_fat_tree_counts_levels(spec):
    distance = machine_distance(nidmap.load_machine(spec))
    assert distance.between(np.array(0), np.array([0, 1, 3])).tolist() == [0, 1, 2]
    assert distance.hops(np.array(0), np.array([0, 1, 3])).tolist() == [0, 0, 2]


def test_a_job_counts_its_own_nodes_in_its_own_order():
    machine = nidmap.load_machine("tree:2x2x2,dist=1:2:7")
    distance = job_distance(place_ranks(machine, "nid0000[7,0,1,6]", 1))
    assert distance.matrix().tolist() == [
        [0, 7, 7, 1],
        [7, 0, 1, 7],
        [7, 1, 0, 7],
        [1, 7, 7, 0],
    ]


def test_nodes_without_a_machine_are_all_one_apart():
    distance = job_distance(slots(named(5, 3, 9), 2))
    assert isinstance(distance, Levels)
    assert distance.matrix().tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize(
    "spec",
    [
        "tree:3x2x2",
        "torus:3x2x2,nodes=2",
        "fattree:leaf=3,leaves=4,spines=2",
        "dragonfly:groups=3,chassis=2,blades=3,nodes=2",
    ],
)
def test_blocks_nest_and_bound_the_distance(spec):
    distance = machine_distance(nidmap.load_machine(spec))
    n = len(distance)
    a, b = (x.ravel() for x in np.indices((n, n)))
    level = distance.level(a, b)
    far = distance.between(a, b)
    least = distance.level_distance[level]
    assert (far == least).all() if distance.exact else (far >= least).all()
    for inner, outer in itertools.pairwise(distance.blocks.T):
        assert len(np.unique(np.column_stack([inner, outer]), axis=0)) == len(np.unique(inner))


def test_a_job_asks_for_paths_between_its_own_routers_alone(monkeypatch):
    machine = nidmap.load_machine("slingshot:groups=40,switches=4,nodes=2,global=1")
    looked_at = []
    between = distance.Paths._over_best_link

    def count(self, local, g, h, spot):
        looked_at.append((g, h))
        return between(self, local, g, h, spot)

    monkeypatch.setattr(distance.Paths, "_over_best_link", count)
    d = job_distance(place_ranks(machine, "0-1,8-9", 1))
    assert d.matrix().tolist() == [[0, 1, 2, 2], [1, 0, 2, 2], [2, 2, 0, 1], [2, 2, 1, 0]]
    assert sorted(looked_at) == [(0, 1), (1, 0)]


@examples(40)
@given(listed(), st.data())
def test_single_pairs_of_routers_are_as_far_as_in_the_table(machine, data):
    paths = distance.Paths(groups_of(machine))
    routers = paths.groups.routers
    table = paths.lengths(np.arange(routers))
    some = st.lists(st.integers(-1, routers - 1), min_size=1, max_size=3)
    for a, b in itertools.product(*(data.draw(some) for _ in range(2))):
        wanted = distance.UNREACHED if min(a, b) < 0 else table[a, b]
        wide = np.arange(4 * routers) // 4, np.full(4 * routers, max(b, 0))
        assert paths.pairs(np.array([[a]]), np.array([[b]])).tolist() == [[wanted]]
        assert paths.pairs(*wide).tolist() == table[wide].tolist()
    a, b = np.arange(routers), np.roll(np.arange(routers), 1)
    assert paths.pairs(a, b).tolist() == table[a, b].tolist()


def test_torus_distance():
    d = machine_distance(nidmap.load_machine("torus:8x8x6"))
    assert d.between(np.zeros(4, int), np.array([1, 7, 8, 4 + 8 * 4 + 64 * 3])).tolist() == [
        1.0,
        1.0,
        1.0,
        11.0,
    ]


def test_routers():
    d = machine_distance(nidmap.load_machine("dragonfly:groups=3,chassis=2,blades=4,nodes=2"))
    assert d.between(np.zeros(5, int), np.array([0, 1, 2, 8, 10])).tolist() == [
        0.0,
        1.0,
        2.0,
        2.0,
        3.0,
    ]
