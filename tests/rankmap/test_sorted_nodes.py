"""Sorted lists of nodes against the rules of public scripts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from rankmap.commands.sort import ring_length, sort_by_blocks, sort_nodes
from rankmap.score.distance import machine_distance

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


def some_nodes(least, most):
    def choose(spec):
        row = st.integers(0, len(MACHINES[spec]) - 1)
        return st.tuples(st.just(spec), st.lists(row, min_size=least, max_size=most, unique=True))

    return st.sampled_from(SPECS).flatmap(choose)


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
