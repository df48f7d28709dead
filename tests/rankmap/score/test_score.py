# SPDX-License-Identifier: Apache-2.0
"""Scores against sums over pairs, and the command."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.commands import run
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.pattern.graph import expand_pattern
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job
from nidmap.rankmap.score import CostBound, cost, meets_bound, score
from nidmap.rankmap.score.distance import job_distance
from tests.effort import examples

MACHINES = [
    "tree:3x2x2,dist=1:2:5",
    "torus:3x2,nodes=2",
    "dragonfly:groups=3,chassis=2,blades=2,nodes=1",
]
PATTERNS = [
    "stencil:4x6",
    "stencil:2x3x4,periodic",
    "stencil:4x6,weights=3:0.5",
    "stencil:4x6,points=9",
    "stencil:1x24,periodic",
    "stencil:2x2x2x3,periodic,points=81",
    "fft:4x6",
    "fft:24",
    "alltoall",
    "sort",
    "ring",
]


@pytest.mark.parametrize("text", PATTERNS)
@pytest.mark.parametrize("spec", MACHINES)
@examples(5)
@given(st.permutations(range(24)))
def test_figures_are_sums_over_the_edges(spec, text, slots):
    machine = nidmap.load_machine(spec)
    on = place_ranks(machine, np.array([5, 0, 3, 2]), [6, 8, 3, 7])
    order = on.with_order(np.array(slots))
    pattern = parse_pattern(text).fit(24)
    distance = job_distance(on)
    far, hops = (
        distance.matrix(),
        np.array(
            [[int(distance.hops(np.array(a), np.array(b))) for b in range(4)] for a in range(4)]
        ),
    )
    node = order.node_of_rank
    expected, links, leaving = 0.0, 0.0, np.zeros(4)
    for edges in pattern.edges():
        for a, b, w in zip(edges.source, edges.target, edges.bytes, strict=True):
            expected += w * far[node[a], node[b]]
            links += w * hops[node[a], node[b]]
            if node[a] != node[b]:
                leaving[node[a]] += w
                leaving[node[b]] += w
    found = score(order, pattern)
    assert found.cost == pytest.approx(expected)
    assert cost(order, pattern) == pytest.approx(expected)
    assert found.hop_bytes == pytest.approx(links)
    assert found.max_node_traffic == pytest.approx(leaving.max())
    assert found.off_node == pytest.approx(leaving.sum() / 2)
    every = sum(edges.bytes.sum() for edges in pattern.edges())
    assert sum(found.by_level) == pytest.approx(every)
    assert found.max_ranks_a_node == 8
    assert found.lower_bound <= expected * (1 + 1e-9)


def test_expanding_changes_nothing():
    on = place_ranks(nidmap.load_machine("tree:3x2x2,dist=1:2:5"), None, 2)
    order = on.with_order(np.arange(24)[::-1])
    for text in PATTERNS:
        pattern = parse_pattern(text).fit(24)
        assert cost(order, expand_pattern(pattern)) == pytest.approx(cost(order, pattern))


def test_a_bound_is_met_but_for_rounding():
    assert meets_bound(sum([0.1] * 10), CostBound(1.0, ""))
    assert not meets_bound(1.001, CostBound(1.0, ""))


@pytest.fixture
def job(tmp_path):
    """A graph on a tree as the command line takes it."""
    graph = tmp_path / "g.graph"
    n = 12
    graph.write_text(
        f"{n} {n} 1\n" + "".join(f"{(k - 1) % n + 1} 3 {(k + 1) % n + 1} 3\n" for k in range(n))
    )
    return ["-m", "tree:2x3,dist=1:3", "--ppn", "2", "--pattern", f"graph:{graph}"], tmp_path


def test_order_and_score_meet(job, capsys):
    arguments, folder = job
    file = str(folder / "OUT")
    assert run(["order", *arguments, "--format", "slots", "-o", file]) == 0
    capsys.readouterr()
    assert run(["score", *arguments, "--order", file, "--format", "slots", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cost"] == sum(
        w * d for w, d in zip(found["by_level"], found["level_distance"], strict=True)
    )
    assert sum(found["by_level"]) == 36
    assert found["max_ranks_a_node"] == 2
    assert found["cost"] == 3 * (3 * 1 + 3 * 3)
    assert 0 < found["lower_bound"] <= found["cost"]


def test_score_prints_words(job, capsys):
    arguments, _ = job
    assert run(["score", *arguments, "--strategy", "row-major"]) == 0
    out = capsys.readouterr().out
    assert "ranks per node     2 to 2" in out
    assert "lower bound" in out


@pytest.mark.parametrize(
    ("edit", "code", "said"),
    [
        (lambda s: [s[1], *s[1:]], 1, "both have slot"),
        (lambda s: s[:-1], 1, "left empty"),
        (lambda s: [*s[:-1], 99], 1, "outside 0 to 11"),
        (lambda s: [*s, 0], 1, "both have slot"),
        (lambda s: ["x", *s[1:]], 3, "is not a slot"),
    ],
)
def test_a_broken_order_is_explained(job, capsys, edit, code, said):
    arguments, folder = job
    file = folder / "a.slots"
    file.write_text("".join(f"{s}\n" for s in edit(list(range(12)))))
    assert run(["score", *arguments, "--order", str(file)]) == code
    assert said in capsys.readouterr().err


def test_json_of_a_broken_order_says_why(job, capsys):
    arguments, folder = job
    file = folder / "a.slots"
    file.write_text("0\n" * 12)
    assert run(["score", *arguments, "--order", str(file), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["valid"] is False
    assert "slot 0" in found["error"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--order", "OUT"], "in which format the order is; name it FILE.slots or FILE.mpich, or "),
        ([], "either --order FILE or --strategy"),
        (["--order", "a.slots", "--strategy", "auto"], "either --order FILE or --strategy"),
        (["--order", "a.x", "--format", "nope"], "unknown format 'nope'"),
    ],
)
def test_nothing_is_guessed(job, capsys, more, said):
    assert run(["score", *job[0], *more]) == 2
    assert said in capsys.readouterr().err


def test_the_default_is_called_optimal_where_it_is(capsys):
    words = ["-m", "tree:2x2", "--ppn", "4", "--pattern", "alltoall", "--strategy", "row-major"]
    assert run(["score", *words]) == 0
    assert "default is optimal" in capsys.readouterr().out


def test_auto_is_scored_as_order_and_python_make_it(capsys):
    words = ["-m", "torus:8,bw=1", "--nodes", "0-5", "--ppn", "1", "--pattern", "stencil:2x3"]
    assert run(["score", *words, "--strategy", "auto", "--bytes", "2MB", "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert "chosen by predicted time" in said.err
    machine = nidmap.load_machine("torus:8,bw=1")
    made = nidmap.order(machine, "0-5", Job("stencil:2x3", 1, bytes=2e6), strategy="auto")
    assert found["optimised"] == made.origin.optimised
    assert found["cost"] == cost(made)
    tree = nidmap.load_machine("tree:2x2")
    bare = nidmap.order(tree, None, Job("stencil:2x2", 1), strategy="auto")
    assert bare.origin.optimised["by"] == "J"


def test_other_orders_cost_more_than_the_minimum_by_hand():
    on = place_ranks(nidmap.load_machine("tree:2x2,dist=1:3"), None, 1)
    costs = {
        cost(on.with_order(np.array(p)), parse_pattern("stencil:4"))
        for p in itertools.permutations(range(4))
    }
    assert min(costs) == 1 + 3 + 1
