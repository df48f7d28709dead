# SPDX-License-Identifier: Apache-2.0
"""Rings and sorted lists against brute force, 2-opt and the rules of public scripts."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.rankmap.score.distance import machine_distance
from nidmap.rankmap.tours import (
    improve_tour,
    ring_length,
    shortest_ring,
    sort_by_blocks,
    sort_nodes,
)
from tests.effort import examples

SPECS = (
    "torus:6x5x4,nodes=2",
    "torus:7x8",
    "dragonfly:groups=5,chassis=3,blades=4,nodes=4",
    "slingshot:groups=6,switches=8,nodes=4",
    "dragonfly+:groups=3,leaves=4,spines=4,nodes=4",
    "fattree:leaf=6,leaves=8,spines=3",
    "tree:3x4x5",
)
MACHINES = {spec: nidmap.load_machine(spec) for spec in SPECS}


def hops_of(distance):
    every = np.arange(len(distance))
    return distance.hops(every[:, None], every)


def brute_force(hops):
    """Return the length of the shortest closed tour, all of them looked at."""
    rest = np.array(list(itertools.permutations(range(1, len(hops)))), dtype=np.int8)
    tours = np.column_stack([np.zeros(len(rest), dtype=np.int8), rest])
    return int(hops[tours, np.roll(tours, -1, axis=1)].sum(axis=1).min())


def two_opt(hops, tour):
    """Return the length of a tour that no exchange of two links shortens, every pair tried."""
    tour, changed = list(tour), True
    while changed:
        changed = False
        for i in range(len(tour) - 1):
            for j in range(i + 2, len(tour)):
                a, b, c, d = tour[i], tour[i + 1], tour[j], tour[(j + 1) % len(tour)]
                if a != d and hops[a][c] + hops[b][d] < hops[a][b] + hops[c][d]:
                    tour[i + 1 : j + 1] = tour[i + 1 : j + 1][::-1]
                    changed = True
    return sum(hops[a][b] for a, b in zip(tour, tour[1:] + tour[:1], strict=True))


def some_nodes(least, most):
    def choose(spec):
        row = st.integers(0, len(MACHINES[spec]) - 1)
        return st.tuples(st.just(spec), st.lists(row, min_size=least, max_size=most, unique=True))

    return st.sampled_from(SPECS).flatmap(choose)


@examples(200)
@given(some_nodes(1, 9))
def test_no_ring_of_up_to_nine_nodes_is_shorter(case):
    spec, rows = case
    distance = machine_distance(MACHINES[spec]).take(np.array(rows))
    ring = shortest_ring(distance)
    assert sorted(ring.order.tolist()) == list(range(len(rows)))
    assert ring.order[0] == 0
    assert ring.hops == ring.least == ring_length(distance, ring.order)
    assert ring.hops == (brute_force(hops_of(distance)) if len(rows) > 1 else 0)


@given(some_nodes(13, 70))
def test_a_ring_is_at_or_below_two_opt_and_not_below_its_bound(case):
    spec, rows = case
    distance = machine_distance(MACHINES[spec]).take(np.array(rows))
    ring = shortest_ring(distance)
    assert sorted(ring.order.tolist()) == list(range(len(rows)))
    assert ring.least <= ring.hops == ring_length(distance, ring.order)
    assert ring.hops <= two_opt(hops_of(distance).tolist(), range(len(rows)))


def test_two_opt_from_a_good_start_does_not_beat_it_on_hundreds_of_nodes():
    rng = np.random.default_rng(7)
    for spec in ("torus:12x10x10", "dragonfly:groups=12,chassis=3,blades=8,nodes=2"):
        machine = nidmap.load_machine(spec)
        distance = machine_distance(machine).take(rng.permutation(len(machine))[:250])
        ring = shortest_ring(distance)
        assert ring.hops <= two_opt(hops_of(distance).tolist(), sort_nodes(distance).tolist())


def test_a_ring_of_more_routers_is_the_sorted_list(monkeypatch):
    monkeypatch.setattr("nidmap.rankmap.tours.MOST_ROUTERS", 100)
    machine = nidmap.load_machine("torus:12x10x10")
    rows = np.random.default_rng(3).permutation(len(machine))[:420]
    distance = machine_distance(machine).take(rows)
    ring = shortest_ring(distance)
    assert ring.order[0] == 0
    assert ring.hops == ring_length(distance, sort_nodes(distance))
    assert ring.least == 420


@given(st.integers(0, 10**6), st.integers(5, 30))
def test_moves_keep_a_tour_and_never_lengthen_it(seed, count):
    rng = np.random.default_rng(seed)
    hops = rng.integers(1, 9, (count, count))
    hops = ((hops + hops.T) * (1 - np.eye(count, dtype=int))).astype(np.int32)
    start = rng.permutation(count)
    tour = improve_tour(hops, start)
    assert sorted(tour.tolist()) == list(range(count))
    before, after = (int(hops[t, np.roll(t, -1)].sum()) for t in (start, tour))
    assert after <= before


# --- the rules of scripts that others have written for this ------------------


def insertion_order(paths):
    """Walk the tree of switches with its branches in the order in which nodes name them.

    The rule of cluster-toolkit's sort_nodes.py and of AWS's hostfile-topologify.
    """
    tree = {}
    for path in paths:
        branch = tree
        for word in path:
            branch = branch.setdefault(word, {})

    def leaves(branch):
        for word, below in branch.items():
            yield from leaves(below) if below else [word]

    return list(leaves(tree))


@given(some_nodes(1, 60))
def test_a_tree_is_walked_as_public_scripts_walk_it(case):
    spec, rows = case
    blocks = machine_distance(MACHINES[spec]).take(np.array(rows)).blocks
    paths = [(*reversed(row), node) for node, row in enumerate(blocks.tolist())]
    assert sort_by_blocks(blocks).tolist() == insertion_order(paths)


@given(some_nodes(2, 40).filter(lambda case: case[0].startswith(("tree", "fattree"))))
def test_leaf_switches_are_left_no_more_often_than_by_public_scripts(case):
    """dlrover: leaves as named. oci-hpc: the fullest first. Open MPI's file: as numbered."""
    spec, rows = case
    distance = machine_distance(MACHINES[spec]).take(np.array(rows))
    leaf = distance.blocks[:, 0]
    groups = {}
    for node, switch in enumerate(leaf.tolist()):
        groups.setdefault(switch, []).append(node)
    named = [node for nodes in groups.values() for node in nodes]
    fullest = [n for nodes in sorted(groups.values(), key=len, reverse=True) for n in nodes]
    numbered = np.argsort(rows, kind="stable").tolist()
    ours = sort_nodes(distance)
    assert np.count_nonzero(np.diff(leaf[ours])) == len(groups) - 1
    for theirs in (named, fullest, numbered):
        assert np.count_nonzero(np.diff(leaf[theirs])) == len(groups) - 1
        assert ring_length(distance, ours) <= ring_length(distance, np.array(theirs))


@pytest.mark.parametrize("spec", SPECS)
def test_the_sorted_list_does_not_depend_on_what_stands_behind_the_first_of_each_block(spec):
    machine = MACHINES[spec]
    rows = np.random.default_rng(5).permutation(len(machine))
    distance = machine_distance(machine)
    once, again = (sort_nodes(distance.take(r)) for r in (rows, np.sort(rows)))
    blocks = distance.blocks[:, 0]
    assert np.count_nonzero(np.diff(blocks[rows[once]])) == len(np.unique(blocks)) - 1
    assert np.count_nonzero(np.diff(blocks[np.sort(rows)[again]])) == len(np.unique(blocks)) - 1
