# SPDX-License-Identifier: Apache-2.0
"""The order with the least predicted time on given nodes, against every order there is."""

import itertools
import math
import re

import numpy as np
import pytest

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.load import load_machine
from nidmap.placement.options import with_figures
from nidmap.placement.plan import plan
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.orders import graph as graph_order
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.pattern.graph import expand_pattern, from_edges
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.runtime.rerank import rerank
from nidmap.rankmap.search import auto_order as search_of_orders
from nidmap.rankmap.search import budget
from nidmap.rankmap.search.auto_order import auto_order, order_by_strategy, rank_orders
from nidmap.rankmap.search.budget import LIMITS, Budget
from tests.rankmap.helpers import time_of

#: Few ranks on slots that are even or not: machine, nodes, ranks a node, pattern.
FEW = [
    ("torus:8,bw=1", "0-5", "1", "stencil:2x3"),
    ("torus:4x4,bw=1", "0,5,3", "3,2,1", "stencil:2x3"),
    ("dragonfly:groups=3,chassis=2,blades=3,nodes=2,global=2", "1,13,30", "2,3,2", "ring"),
    ("tree:2x2x2,bw=1", "6,0,3,5", "1,3,1,2", "ring"),
    ("fattree:leaf=2,leaves=4,spines=1,bw=1", "7,0,2", "2", "fft:2x3"),
    ("torus:3x3,bw=1", "8,1,4", "3,3,2", "stencil:2x4"),
]


@pytest.fixture(autouse=True)
def no_clock(monkeypatch):
    """Let no clock end a search: on a slow machine it is only later."""
    monkeypatch.setattr(budget, "DEADLINE", 1e6)


def asked_for(spec, nodes, ppn, pattern, latency=None, **job):
    on = place_ranks(with_figures(load_machine(spec), latency=latency), nodes, ppn)
    return Predictor(on.machine, Job(pattern, on.counts.tolist(), **job)), on


def layouts(on):
    """Return every way to give ranks their nodes."""
    return set(itertools.permutations(on.node_of_slot.tolist()))


@pytest.mark.parametrize(("spec", "nodes", "ppn", "pattern"), FEW)
def test_few_ranks_get_the_best_of_all_orders(spec, nodes, ppn, pattern):
    latency = None if "," in ppn else 0
    asked, on = asked_for(spec, nodes, ppn, pattern, latency=latency)
    ranking = rank_orders(asked, on, Budget(LIMITS.judgements))
    times = [time_of(asked, on.rows, on.with_ranks_on(np.array(row))) for row in layouts(on)]
    assert ranking.every
    assert ranking.judged == len(times)
    assert ranking.best.cost == pytest.approx(min(times), rel=1e-6)
    assert ranking.best.cost == asked.time(asked.place(on.rows, ranking.best.placement.order))
    assert ranking.default.cost == asked.time(asked.place(on.rows))


#: More ranks: no brute force, but what others find.
MANY = [
    ("minicray:dragonfly", "0-9,17,20", "4", "stencil:6x8", {}),
    ("torus:3x3x2,bw=1", "17,3,5,0,9,11,12,2", "2", "fft:4x4", {}),
    ("minicray:fattree", "15,0-6", "3,5,4,4,2,6,4,4", "stencil:4x8", {}),
    ("torus:4x4,bw=1,nodes=2", "24,0-3", "2", "alltoall", {"algorithm": "pairwise"}),
]


@pytest.mark.parametrize(("spec", "nodes", "ppn", "pattern", "job"), MANY)
def test_no_order_of_others_and_no_plan_on_the_same_nodes_is_faster(spec, nodes, ppn, pattern, job):
    asked, on = asked_for(spec, nodes, ppn, pattern, **job)
    made = auto_order(on, Job(pattern, **job))
    figures = made.origin.optimised
    assert figures["by"] == "time"
    assert figures["time_s"] == pytest.approx(time_of(asked, on.rows, made), rel=1e-9)
    least = figures["time_s"] * (1 - LIMITS.clearly) - 1e-15
    assert least <= asked.time(asked.place(on.rows))
    for strategy in ("hilbert", "column-major", "round-robin"):
        if asked.pattern.on(on).dims is not None:
            assert least <= time_of(asked, on.rows, arrange(on, pattern, strategy))
    if on.ppn is not None:
        free = np.isin(np.arange(len(on.machine)), on.rows)
        same = plan(
            on.machine,
            len(on.rows),
            job=Job(pattern, on.ppn, **job),
            candidates=free,
        )
        assert least <= same.facts["predicted"]["time_s"]


def test_a_search_in_haste_keeps_the_default_at_least_and_says_that_it_is_not_done():
    asked, on = asked_for("minicray:dragonfly", "0-9,17,20", "4", "stencil:6x8")
    made = auto_order(on, Job("stencil:6x8"), seconds=0.01)
    assert made.origin.optimised["time_s"] <= asked.time(asked.place(on.rows))
    assert not made.origin.optimised["finished"]


@pytest.mark.parametrize("pattern", ["alltoall", "stencil:16x16", "fft:16x16"])
def test_an_order_whose_range_holds_1_is_said_to_be_no_gain(pattern):
    on = place_ranks(load_machine("theta"), "#4-19", "16")
    made = auto_order(on, Job(pattern, bytes=1e6, algorithm="library"))
    gain = made.origin.optimised["gain"]
    kept = gain["low"] == gain["high"] == 1
    assert kept == (made.order is None)
    untold = "no clear gain: " in made.origin.remark
    assert untold == (not kept and gain["low"] <= 1.005)
    assert kept or gain["high"] > 1.01


def test_past_the_deadline_nothing_more_is_made(monkeypatch):
    listed = []

    def choices(machine, request):
        for number in range(9):
            listed.append(number)
            yield f"nodes {number}", np.flatnonzero(request.free)

    monkeypatch.setattr(search_of_orders, "node_choices", choices)
    monkeypatch.setattr(graph_order, "map_graph", lambda *_, **__: pytest.fail("a graph is mapped"))
    on = place_ranks(load_machine("torus:6x6,bw=1"), None, 1)
    graph = from_edges(36, np.arange(35), np.arange(1, 36), np.ones(35), spec="graph:a")
    made = auto_order(on, Job(graph), seconds=1e-9)
    assert len(listed) <= 1
    assert made.order is None


@pytest.mark.parametrize(
    ("spec", "ppn", "pattern", "job", "says"),
    [
        ("torus:4x4", "2", "alltoall", {}, "no order makes a difference here"),
        ("torus:4x4", "3,1,2,2", "alltoall", {}, "no order makes a difference here"),
        ("torus:4x4,process=1e-3,latency=0", "1", "stencil:2x2,periodic", {},
         "none of all 24 orders is clearly faster"),
        ("tree:4x4,dist=1:2", "2", "ring", {}, r"by J \(tree:4x4,dist=1:2 states no bandwidths\)"),
    ],
)  # fmt: skip
def test_what_an_order_was_chosen_by_is_said(spec, ppn, pattern, job, says):
    on = place_ranks(load_machine(spec), "0-3", ppn)
    made = auto_order(on, Job(pattern, **job))
    assert made.slot_of_rank.tolist() == list(range(on.ranks))
    assert re.search(says, made.origin.remark)
    assert made.origin.optimised["finished"]


@pytest.mark.parametrize("recorded", [False, True])
def test_one_question_has_one_answer_inside_and_outside(recorded, monkeypatch):
    spec, nodes, ppn = "minicray:dragonfly", "0-9,17,20", 4
    stencil = parse_pattern("stencil:6x8")
    job = Job(expand_pattern(stencil) if recorded else stencil, ppn, bytes=1e5)
    on = place_ranks(load_machine(spec), nodes, ppn)
    ordered = auto_order(on, job)
    limited = order_by_strategy(on, job, "auto", seconds=1e6)  # as nidmap run asks
    monkeypatch.setattr("nidmap.rankmap.refine.cache.kernels_compiled", lambda: False)
    hosts = [(name, "") for name in on.names[on.node_of_slot].tolist()]
    inside = rerank(hosts, Job(job.pattern, bytes=1e5), spec)
    expected = on.names[ordered.node_of_rank].tolist()
    assert on.names[limited.node_of_rank].tolist() == expected
    assert [hosts[rank][0] for rank in inside.ranks] == expected
    assert ordered.origin.remark in inside.remark
    free = np.isin(np.arange(len(on.machine)), on.rows)
    same = plan(on.machine, len(on.rows), job=job, candidates=free)
    time_s = ordered.origin.optimised["time_s"]
    assert same.facts["predicted"]["time_s"] == pytest.approx(time_s, rel=1e-3)


def test_names_alone_are_ordered_by_j():
    on = place_ranks(None, "nid[00003-00006]", "4")
    made = auto_order(on, Job("stencil:4x4"))
    assert made.origin.optimised["by"] == "J"
    assert made.origin.optimised["why"] == "no machine is named"
    assert made.origin.optimised["cost"] < made.origin.optimised["default_cost"]
    assert made == arrange(on, "stencil:4x4", "auto")


@pytest.mark.parametrize(
    ("pattern", "job", "says"),
    [
        ("stencil:4x4", {}, r"16 ranks, but there are 8 slots \(4 nodes x 2\)"),
        ("ring", {"bytes": -1}, "bytes -1"),
    ],
)
def test_what_makes_no_sense_is_refused(pattern, job, says):
    on = place_ranks(load_machine("torus:4x4"), "0-3", "2")
    with pytest.raises(UsageError, match=says):
        auto_order(on, Job(pattern, **job))


def test_an_order_that_took_all_the_time_is_judged(monkeypatch):
    from nidmap.rankmap.search import rank_orders as making

    rng = np.random.default_rng(1)
    where = rng.permutation(64)
    graph = from_edges(64, where[:-1], where[1:], np.full(63, 1e6))
    on = place_ranks(nidmap.load_machine("torus:4x4,bw=1"), "0-15", 4)
    late = Budget(1000, 1e9)
    whole = making._map_as_graph

    def slow(graph, seconds):
        def make(slots):
            late.end = -1.0  # the time is up
            return whole(graph, lambda: math.inf)(slots)

        return make

    monkeypatch.setattr(making, "_map_as_graph", slow)
    model = Predictor(with_figures(on.machine, latency=0), Job(graph, on.counts.tolist()))
    ranking = rank_orders(model, on, late)
    assert late.late
    assert ranking.best.order == "graph"
    assert ranking.best.cost < ranking.default.cost
