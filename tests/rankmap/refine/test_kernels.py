# SPDX-License-Identifier: Apache-2.0
"""Each kernel beside a plain twin of a few lines: loops over edges, dicts, sorted lists."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")

import itertools

from nidmap.rankmap.pattern.graph import from_edges
from nidmap.rankmap.refine import (
    bisection,
    exchanges,
    halves,
    jit,
    subgraph,
)
from tests.effort import examples


def random_graph(n, m, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, (2, m))
    return from_edges(n, a, b, rng.integers(1, 50, m).astype(float))


def csr(graph, bias=None, size=None):
    """Return a graph as kernels take it."""
    n = graph.size
    return jit.Csr(
        graph.indptr.astype(np.int32),
        graph.indices.astype(np.int32),
        graph.weights.copy(),
        np.zeros(n) if bias is None else bias,
        np.ones(n, dtype=np.int32) if size is None else size,
    )


def weights(graph):
    """Return {(u, v): weight} with both directions."""
    return {
        (int(u), int(v)): float(w)
        for u, v, w in zip(graph.row, graph.indices, graph.weights, strict=True)
    }


def listed(g, names):
    """Return the same of a graph as kernels take it, its vertices being called by these names."""
    row = np.repeat(names, np.diff(g.ptr))
    pairs = zip(row.tolist(), names[g.adj].tolist(), strict=True)
    return dict(zip(pairs, g.w.tolist(), strict=True))


def fresh(seed=1):
    return np.array([seed, 0], dtype=np.uint64)


# Kernels are asked with numbers of the kinds that they are compiled for: for others numba would
# compile them anew.
cases = examples(25)
graphs = st.builds(random_graph, st.integers(2, 30), st.integers(1, 80), st.integers(0, 999))


def test_random_numbers_are_those_of_splitmix64():
    state, x = fresh(7), 7
    for _ in range(50):
        x = (x + 0x9E3779B97F4A7C15) % 2**64
        z = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        assert jit.draw(state) == (z ^ (z >> 31)) >> 2


def test_a_shuffle_has_every_number_once():
    assert sorted(jit.shuffle(100, fresh()).tolist()) == list(range(100))


@cases
@given(st.lists(st.floats(-9, 9), min_size=1, max_size=30), st.data())
def test_a_heap_gives_the_largest_key(keys, data):
    n = len(keys)
    key, place = np.array(keys), np.full(n, -1, dtype=np.int32)
    tree, count, there = np.empty(n, dtype=np.int32), 0, set()
    for _ in range(40):
        v = data.draw(st.integers(0, n - 1))
        if v in there and data.draw(st.booleans()):
            count = halves.drop_vertex(tree, place, key, count, np.int32(v))
            there.remove(v)
        else:
            key[v] = data.draw(st.floats(-9, 9))
            count = halves.push_vertex(tree, place, key, count, v)
            there.add(v)
        assert count == len(there)
        if there:
            assert key[tree[0]] == max(key[u] for u in there)


@cases
@given(graphs, st.integers(0, 99))
def test_clusters_are_neighbours_of_one_label_and_no_larger_than_allowed(graph, seed):
    n, most = graph.size, 4
    label = np.random.default_rng(seed).integers(0, 2, n).astype(np.int8)
    of, count = bisection.cluster_vertices(csr(graph), label, most, fresh(seed))
    assert sorted(set(of.tolist())) == list(range(count))
    edges = weights(graph)
    for c in range(count):
        mine = np.flatnonzero(of == c).tolist()
        assert len(mine) <= most
        assert len({int(label[u]) for u in mine}) == 1
        assert len(mine) == 1 or all(any((u, v) in edges for v in mine) for u in mine)


@cases
@given(graphs, st.integers(0, 99))
def test_contracted_graph_adds_up_edges_and_sizes(graph, seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, graph.size + 1))
    of = np.append(np.arange(count), rng.integers(0, count, graph.size - count)).astype(np.int32)
    size = rng.integers(1, 5, graph.size).astype(np.int32)
    bias = rng.integers(-9, 9, graph.size).astype(float)
    found = bisection.contract_clusters(csr(graph, bias, size), of, count)
    expected = {}
    for (u, v), weight in weights(graph).items():
        if of[u] != of[v]:
            pair = int(of[u]), int(of[v])
            expected[pair] = expected.get(pair, 0) + weight
    assert listed(found, np.arange(count)) == expected
    assert found.size.tolist() == [int(size[of == c].sum()) for c in range(count)]
    assert found.bias.tolist() == [float(bias[of == c].sum()) for c in range(count)]


def twin_cost(graph, bias, half):
    between = sum(w for (u, v), w in weights(graph).items() if u < v and half[u] != half[v])
    return between + float(bias @ half)


@cases
@given(graphs, st.integers(0, 99))
def test_moves_between_halves_never_cost_and_sizes_end_within_the_slack(graph, seed):
    rng, n = np.random.default_rng(seed), graph.size
    half = rng.integers(0, 2, n).astype(np.int8)
    bias = rng.normal(size=n) * 20
    g = csr(graph, bias)
    target, slack = int(n - half.sum()), int(rng.integers(0, 2))
    before = twin_cost(graph, bias, half)
    assert halves.cost_of_halves(g, half) == pytest.approx(before)
    cost = halves.refine_halves(g, half, target, slack, 60, 4, fresh())
    assert cost == pytest.approx(twin_cost(graph, bias, half), abs=1e-6)
    assert cost <= before + 1e-6
    assert abs(n - int(half.sum()) - target) <= slack
    wanted = int(rng.integers(0, n + 1))
    halves.balance_halves(g, half, wanted, 0)
    assert n - int(half.sum()) == wanted


def test_a_bisection_finds_two_cliques_that_one_edge_joins():
    pairs = [(a, b) for k in (0, 20) for a in range(k, k + 20) for b in range(k, a)]
    a, b = np.array([*pairs, (3, 33)]).T
    where = np.random.default_rng(1).permutation(40)
    graph = from_edges(40, where[a], where[b], np.ones(len(a)))
    half = bisection.bisect(csr(graph), 20, 0, 4, 1e6, fresh())
    assert twin_cost(graph, np.zeros(40), half) == 1


@cases
@given(graphs, st.integers(0, 99))
def test_a_part_of_a_graph_is_its_edges_with_both_ends_in_it(graph, seed):
    rng = np.random.default_rng(seed)
    mine = rng.permutation(graph.size)[: rng.integers(1, graph.size + 1)].astype(np.int32)
    local = np.full(graph.size, -1, dtype=np.int32)
    found = subgraph.induced_graph(csr(graph), mine, local)
    inside = set(mine.tolist())
    expected = {e: w for e, w in weights(graph).items() if inside.issuperset(e)}
    assert listed(found, mine) == expected
    assert (local == -1).all()


def placed(graph, seed, nodes=4):
    """Return ranks on random nodes, with distances, and what ranks elsewhere cost."""
    rng = np.random.default_rng(seed)
    node = rng.integers(0, nodes, graph.size).astype(np.int32)
    far = rng.integers(1, 9, (nodes, nodes)).astype(float)
    far = np.triu(far, 1) + np.triu(far, 1).T
    outer = rng.integers(0, 9, (graph.size, nodes)).astype(float)
    first = np.append(0, np.cumsum(np.bincount(node, minlength=nodes)))
    none = np.full(graph.size, -1, dtype=np.int32)
    return subgraph.PlacedRanks(csr(graph), node, first, far, outer, none.copy(), none)


def twin_total(graph, node, far, outer):
    inner = sum(w * far[node[u], node[v]] for (u, v), w in weights(graph).items() if u < v)
    return inner + sum(outer[u, node[u]] for u in range(graph.size))


@cases
@given(graphs, st.integers(0, 99))
def test_costs_on_real_distances(graph, seed):
    x = placed(graph, seed)
    g, node, _, far, outer, _, _ = x
    total = exchanges.cost_of_nodes(g.ptr, g.adj, g.w, node, far, outer)
    assert total == pytest.approx(twin_total(graph, node, far, outer))
    table = exchanges.cost_by_pair(g, node, far)
    assert table.sum() == pytest.approx(twin_total(graph, node, far, np.zeros_like(outer)))
    some, mine = np.array([0, 2]), np.flatnonzero(np.isin(node, (0, 2))).astype(np.int32)
    found = subgraph.outer_costs(x, mine, some)
    for i, u in enumerate(mine.tolist()):
        for j, p in enumerate(some.tolist()):
            others = (w * far[p, node[v]] for (a, v), w in weights(graph).items()
                      if a == u and node[v] not in (0, 2))  # fmt: skip
            assert found[i, j] == pytest.approx(outer[u, p] + sum(others))


@cases
@given(graphs, st.integers(0, 99))
def test_exchanges_and_replacement_lower_the_cost_and_keep_the_counts(graph, seed):
    x, state = placed(graph, seed), fresh(seed)
    _, node, first, far, outer, _, _ = x
    counts = np.diff(first)
    costs = [twin_total(graph, node, far, outer)]
    exchanges.exchange_pairs(x, 2, state)
    costs.append(twin_total(graph, node, far, outer))
    exchanges.replace_ranks(x, np.arange(4), 5.0, 1e5, state)
    costs.append(twin_total(graph, node, far, outer))
    assert all(later <= sooner + 1e-6 for sooner, later in itertools.pairwise(costs))
    assert np.bincount(node, minlength=4).tolist() == counts.tolist()


EMPTY = """
import numpy as np
from tests.rankmap.refine.test_kernels import exchanges, fresh, placed, random_graph
for ranks, edges, number, seed in ((2, 9, 176, 54), (4, 29, 663, 60), (3, 20, 635, 36)):
    graph = random_graph(ranks, edges, number)
    x, state = placed(graph, seed), fresh(seed)
    counts = np.diff(x.first)
    assert 0 in counts
    exchanges.exchange_pairs(x, 2, state)
    exchanges.replace_ranks(x, np.arange(4), 5.0, 1e5, state)
    assert np.bincount(x.node, minlength=4).tolist() == counts.tolist()
"""


def test_nodes_without_ranks_part_without_a_write_outside_of_any_array():
    command = [sys.executable, "-c", EMPTY]  # plain Python looks at every index
    plain, here = {**os.environ, "NUMBA_DISABLE_JIT": "1"}, Path(__file__).parents[3]
    done = subprocess.run(command, env=plain, capture_output=True, text=True, cwd=here)
    assert done.returncode == 0, done.stderr


def test_the_nodes_nearest_to_two_are_chosen():
    far = np.abs(np.arange(10.0)[:, None] - np.arange(10))
    assert exchanges.choose_nodes(far, np.int32(2), np.int32(7), 2, fresh()).tolist() in (
        [[a, 2, 7, b] for a in (1,) for b in (8,)] + [[1, 2, 6, 7], [2, 3, 6, 7], [2, 3, 7, 8]]
    )


TWIN = """
import json, math, sys
import numpy as np
from nidmap.rankmap.pattern.graph import from_edges
from nidmap.rankmap.refine.jit import Csr
from nidmap.rankmap.refine.multisection import CutPlan, multisect
rng = np.random.default_rng(5)
a, b = rng.integers(0, 48, (2, 150))
graph = from_edges(48, a, b, rng.integers(1, 50, 150).astype(float))
cuts = np.array([[0, 2, 4], [0, 1, 2], [2, 3, 4]])
state = np.array([3, 0], dtype=np.uint64)
plan = CutPlan(np.arange(0, 49, 12), np.empty((0, 0)), cuts, np.full(3, 2), np.ones(3))
g = Csr(graph.indptr.astype(np.int32), graph.indices.astype(np.int32), graph.weights.copy(),
        np.zeros(48), np.ones(48, dtype=np.int32))
ranks = multisect(g, plan, 3e4, state, math.inf)
print(json.dumps([ranks.tolist(), state.tolist()]))
"""


def test_compiled_kernels_do_what_the_same_source_does_as_plain_python():
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    found = []
    for more in ({}, {"NUMBA_DISABLE_JIT": "1"}):
        command = [sys.executable, "-W", "error", "-c", TWIN]
        done = subprocess.run(command, env={**env, **more}, capture_output=True, text=True)
        assert not done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
    assert sorted(found[0][0]) == list(range(48))
