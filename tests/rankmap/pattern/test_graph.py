# SPDX-License-Identifier: Apache-2.0
"""Graphs, the order made of them, and what they are recognised as."""

from __future__ import annotations

import itertools
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import ParseError, UsageError
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.orders.graph import as_graph
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.pattern.graph import expand_pattern, from_edges, stencil_of
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.score import lower_bound
from nidmap.rankmap.score.distance import job_distance
from nidmap.rankmap.score.traffic import cost_of
from tests.effort import examples

needs_numba = pytest.mark.skipif(
    find_spec("numba") is None, reason="less search without numba (extra [fast])"
)

MACHINES = [
    "tree:2x2x2,dist=1:2:5",
    "torus:2x2x2",
    "torus:5,nodes=2",
    "dragonfly:groups=3,chassis=2,blades=2,nodes=2",
    "fattree:leaf=3,leaves=3,spines=2",
]


@st.composite
def graphs(draw, most=40, least=1):
    n = draw(st.integers(least, most))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), st.integers(1, 50))
    edges = draw(st.lists(pairs, max_size=3 * n))
    a, b, w = (np.array(c) for c in zip(*edges, strict=True)) if edges else (np.empty(0, int),) * 3
    return from_edges(n, a.astype(np.int64), b.astype(np.int64), w.astype(float))


def fitting(draw, machine, n):
    """Draw nodes in any order and ranks a node that hold n ranks exactly."""
    nodes = draw(st.integers(1, min(n, len(machine))))
    rows = draw(st.permutations(range(len(machine))))[:nodes]
    cuts = sorted(draw(st.permutations(range(1, n)))[: nodes - 1]) if n > 1 else []
    return place_ranks(machine, np.array(rows), np.diff([0, *cuts, n]).tolist())


@settings(deadline=None)
@given(st.data())
def test_every_graph_on_any_machine_gets_exact_counts(data):
    machine = nidmap.load_machine(data.draw(st.sampled_from(MACHINES)))
    graph = data.draw(graphs())
    on = fitting(data.draw, machine, graph.size)
    made = arrange(on, graph, "graph")
    assert sorted(made.slot_of_rank.tolist()) == list(range(graph.size))
    assert np.bincount(made.node_of_rank, minlength=len(on.counts)).tolist() == on.counts.tolist()
    assert arrange(on, graph, "graph") == made


def placements(counts):
    """Yield every way to put ranks on nodes with these counts."""
    ranks = range(int(sum(counts)))

    def put(left, node):
        if node == len(counts):
            yield {}
            return
        for chosen in itertools.combinations(sorted(left), counts[node]):
            for rest in put(left - set(chosen), node + 1):
                yield {**rest, **dict.fromkeys(chosen, node)}

    for found in put(set(ranks), 0):
        yield np.array([found[r] for r in ranks])


@examples(20)
@given(st.data())
def test_small_graphs_get_the_exact_minimum_and_bounds_hold(data):
    machine = nidmap.load_machine(data.draw(st.sampled_from(MACHINES)))
    graph = data.draw(graphs(most=7))
    on = fitting(data.draw, machine, graph.size)
    distance = job_distance(on)
    least = min(cost_of(graph, node, distance) for node in placements(on.counts.tolist()))
    assert lower_bound(graph, on, job_distance(on)).value <= least * (1 + 1e-9)
    found = cost_of(graph, arrange(on, graph, "auto").node_of_rank, distance)
    assert found == pytest.approx(least)


@settings(deadline=None)
@given(
    st.lists(st.integers(2, 6), min_size=1, max_size=4),
    st.booleans(),
    st.integers(1, 4),
    st.lists(st.integers(1, 9), min_size=4, max_size=4),
)
def test_a_stencil_is_known_again_with_all_its_edges(dims, wrap, reach, weights):
    made = Stencil(
        tuple(dims), wrap, tuple(map(float, weights[: len(dims)])), min(reach, len(dims))
    )
    graph = expand_pattern(made)
    found = stencil_of(graph)
    if found is None:
        # Where extents of 2 or 3 wrap, several offsets fall on one pair of ranks.
        assert wrap
        assert min(dims) <= 3
        return
    again = expand_pattern(found)
    assert again.indices.tolist() == graph.indices.tolist()
    assert again.weights.tolist() == pytest.approx(graph.weights.tolist())


def test_a_stencil_with_one_edge_changed_is_none():
    graph = expand_pattern(Stencil((4, 4)))
    a, b, weight = graph.upper()
    weight[3] += 1
    assert stencil_of(from_edges(16, a, b, weight)) is None


@needs_numba
def test_the_stencil_of_the_peers_meets_the_boxes():
    machine = nidmap.load_machine("tree:4x16x6,dist=1:2:3")
    on = place_ranks(machine, None, 24)
    graph = expand_pattern(Stencil((24, 24, 16)))
    assert cost_of(graph, arrange(on, graph, "graph").node_of_rank, job_distance(on)) <= 14592
    assert lower_bound(graph, on, job_distance(on)).value <= 14520  # by isoperimetry


def test_a_hidden_order_of_blocks_is_found():
    rng = np.random.default_rng(5)
    machine = nidmap.load_machine("tree:4x4x4,dist=1:2:3")
    hidden = rng.permutation(512)
    inside = [(a, b) for k in range(0, 512, 8) for a in range(k, k + 8) for b in range(k, a)]
    a, b = hidden[np.array(inside).T]
    graph = from_edges(512, a, b, np.ones(len(a)))
    on = place_ranks(machine, None, 8)
    assert cost_of(graph, arrange(on, graph, "graph").node_of_rank, job_distance(on)) == 0


@needs_numba
@pytest.mark.parametrize(
    ("spec", "above"), [("tree:4x4x4,dist=1:10:100", 1.02), ("torus:4x4x4", 1.25)]
)
def test_weights_that_only_hide_a_grid_do_not_hide_its_boxes(spec, above):
    """Edges of random weight and ranks in random order: about as good as boxes of the grid."""
    rng = np.random.default_rng(3)
    machine = nidmap.load_machine(spec)
    on = place_ranks(machine, None, 8)
    dims = Stencil((8, 8, 8))
    a, b, _ = expand_pattern(dims).upper()
    weight = rng.integers(80, 121, len(a)).astype(float)
    where = rng.permutation(512)
    graph = from_edges(512, where[a], where[b], weight)
    found = cost_of(graph, arrange(on, graph, "graph").node_of_rank, job_distance(on))
    boxes = arrange(on, dims, "boxes").node_of_rank
    plain = cost_of(from_edges(512, a, b, weight), boxes, job_distance(on))
    assert found <= above * plain


@needs_numba
def test_more_effort_is_taken_and_nonsense_refused():
    rng = np.random.default_rng(8)
    on = place_ranks(nidmap.load_machine("tree:4x4x4,dist=1:2:3"), None, 8)
    a, b = rng.integers(0, 512, (2, 1500))
    graph = from_edges(512, a, b, rng.integers(1, 9, 1500).astype(float))
    distance = job_distance(on)
    little, much = (
        cost_of(graph, arrange(on, graph, f"graph:effort={e}").node_of_rank, distance)
        for e in (0.05, 4)
    )
    assert much < little
    wrong = "effort=0", "effort=many", "seed=3", "effort=nan", "seconds=", "seconds=-1", "x"
    for options in wrong:
        with pytest.raises(UsageError, match="takes effort=NUMBER"):
            arrange(on, graph, f"graph:{options}")


def test_too_many_edges_are_refused_with_a_way_out():
    with pytest.raises(UsageError, match="too many for a graph; use strategy boxes"):
        as_graph(parse_pattern("alltoall").fit(100_000))


def test_a_file_makes_a_pattern(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("source,target,bytes\n0,1,5\n1,0,3\n2,2,9\n")
    graph = parse_pattern(f"graph:{file}").fit(4)
    matrix = parse_pattern(f"matrix:{file}").fit(4)
    assert [(e.source.tolist(), e.target.tolist(), e.bytes.tolist()) for e in graph.edges()] == [
        ([0], [1], [5.0])
    ]
    assert next(matrix.edges()).bytes.tolist() == [8.0]
    assert "not symmetric (1 pairs differ)" in " ".join(matrix.notes)
    assert "ranks 3 to 3 are not in the file" in " ".join(matrix.notes)
    with pytest.raises(UsageError, match="names rank 2, but there are 2 slots"):
        parse_pattern(f"graph:{file}").fit(2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0,1,-5\n", "less than 0"),
        ("0,1,nan\n", "is not a number"),
        ("2,2,9\n", "no edge between two ranks"),
        ("", "the file is empty"),
        ("0,1,2\n0,1\n", "2 numbers where the lines above have 3"),
        ("0,1,2,3\n4,5,6,7\n", "neither a square matrix nor edges"),
        ("0.5,1,2\n", "0.5 is not a rank"),
        ("0,1,x\n", "'x' is not a number"),
    ],
)
def test_bad_tables_are_explained(tmp_path, text, expected):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(ParseError, match=expected):
        parse_pattern(f"matrix:{file}")


def test_no_file_and_a_missing_one_are_told_apart(tmp_path):
    with pytest.raises(UsageError, match="needs a file"):
        parse_pattern("graph")
    with pytest.raises(ParseError, match="No such file"):
        parse_pattern(f"graph:{tmp_path / 'none'}")


def test_graph():
    g = from_edges(3, np.array([0, 1]), np.array([1, 2]), np.array([5.0, 1.0]))
    assert g.indptr.tolist() == [0, 1, 3, 4]
    assert g.indices.tolist() == [1, 0, 2, 1]
    assert g.weights.tolist() == [5.0, 5.0, 1.0, 1.0]
