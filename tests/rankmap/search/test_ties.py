# SPDX-License-Identifier: Apache-2.0
"""Placements that cannot be told apart: the answer keeps together, and says so."""

import itertools

import numpy as np
import pytest
from hypothesis import given

import nidmap
from nidmap.placement.network import hops
from nidmap.placement.planners import spans
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gain
from nidmap.rankmap.search import ties
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import Candidate, Ranking
from nidmap.rankmap.search.ties import closer_words, closest_together
from tests.effort import examples
from tests.rankmap.search.test_auto import asked

SPEC = "slingshot:groups=6,switches=4,nodes=4,global=2,injection=25"


def ranking_of(model, seconds, rows):
    """Return a ranking of nodes with a time for each; the first are the default."""
    candidates = [
        Candidate(f"nodes {k}", "row-major", model.place(np.array(chosen)), time_s)
        for k, (time_s, chosen) in enumerate(zip(seconds, rows, strict=True))
    ]
    return Ranking(candidates[0], candidates, min(candidates, key=lambda x: x.cost))


@pytest.fixture
def model():
    return Predictor(nidmap.load_machine(SPEC), Job("alltoall"))


SPREAD, TWO_GROUPS, ONE_GROUP = [0, 16, 32, 48], [0, 1, 16, 17], [0, 1, 4, 5]


@pytest.mark.parametrize(
    ("low", "seconds", "chosen"),
    [  # the least gain of the fastest over the others, seconds, whose nodes are chosen
        (0.9, (1.1, 1.0, 1.05), 2),  # both are as good as far as is known: fewest groups
        (1.2, (1.1, 1.0, 1.05), 1),  # the gain can be told
        (0.9, (1.0, 1.0, 1.0), 2),  # equal
        (0.9, (1.0, 1.1, 1.1), 0),  # never slower, as predicted, than the default
        (1.2, (1.0, 0.999, 1.1), 1),  # a thousandth is no gain, but fewer groups
        (1.2, (1.0, 1.1, 1.1), 0),
    ],
)
def test_the_closest_of_what_cannot_be_told_apart_is_chosen(
    monkeypatch, model, low, seconds, chosen
):
    monkeypatch.setattr(ties.Gains, "of", lambda *_: Gain(0.5, 0.77, 1 / low))
    ranking = ranking_of(model, seconds, (SPREAD, TWO_GROUPS, ONE_GROUP))
    assert closest_together(model, ranking, Budget(9)).nodes == f"nodes {chosen}"


def test_of_nodes_as_close_the_schedulers_are_kept(monkeypatch, model):
    monkeypatch.setattr(ties.Gains, "of", lambda *_: Gain(0.5, 0.77, 1.1))
    ranking = ranking_of(model, (1.1, 1.0, 1.0), (TWO_GROUPS, [2, 3, 18, 19], SPREAD))
    assert closest_together(model, ranking, Budget(9)).nodes == "nodes 0"


def test_what_no_bound_allowed_to_win_is_judged_before_it_is_compared(model):
    ranking = ranking_of(model, (np.inf, np.inf, np.inf), (SPREAD, TWO_GROUPS, ONE_GROUP))
    time_s = model.time(ranking.default.placement)
    base = Candidate("default", "row-major", ranking.default.placement, time_s)
    ranking = Ranking(base, ranking.candidates, base)
    found = closest_together(model, ranking, Budget(9))
    assert found.cost == model.time(found.placement) <= time_s


@pytest.mark.parametrize("pattern", ["stencil:8x8", "fft:8x8", "ring"])
def test_no_plan_spreads_for_a_gain_that_reaches_down_to_one(pattern):
    machine = nidmap.load_machine("slingshot:groups=12,switches=16,nodes=8,global=4,injection=25")
    free = np.random.default_rng(5).random(len(machine)) < 0.5
    plan = nidmap.plan(machine, 64, candidates=free, strategy="auto", job=Job(pattern))
    facts = plan.facts["predicted"]
    ours, theirs = plan.facts["touches"], plan.facts["default"]["touches"]
    assert facts["ratio"] <= 1
    if tuple(ours.values()) > tuple(theirs.values()):
        assert facts["gain"]["low"] > 1
    if facts["gain"]["low"] <= 1 and ours != theirs:
        assert "no clear gain" in plan.why
        assert "these nodes touch" in plan.why


@examples(25)
@given(case=asked())
def test_nodes_are_left_for_others_no_closer_only_where_that_does_not_lose(case):
    machine, free, count, include, job = case
    found = nidmap.plan(
        machine, count, strategy="auto", candidates=free, include=include, job=job, deadline=60
    )
    default = nidmap.plan(machine, count, strategy="slurm-none", candidates=free, include=include)
    ours, theirs = (ties.spread_of(machine, rows) for rows in (found.rows, default.rows))
    gain = found.facts["predicted"]["gain"]
    if found.facts["predicted"]["chosen"]["by"] == "J" or ours < theirs:
        return
    if ours > theirs and machine.topology.kind != "torus":
        assert gain["low"] > 1
    elif set(found.rows.tolist()) != set(default.rows.tolist()):
        assert gain["low"] > 1 - LIMITS.clearly


def test_hops_of_a_torus_are_those_of_its_paths():
    machine = nidmap.load_machine("torus:5x4x3,nodes=2")
    rows = np.random.default_rng(3).choice(len(machine), 9, replace=False)
    pairs = np.array(list(itertools.permutations(rows, 2)))
    ends = machine.router[pairs, 0]
    mean = hops(machine, ends[:, 0], ends[:, 1]).sum(axis=1).mean()
    assert ties.spread_of(machine, rows) == (round(float(mean)),)


def test_where_own_links_decide_a_few_judgements_prove_the_answer():
    machine = nidmap.load_machine("slingshot:groups=12,switches=16,nodes=8,global=16,injection=2")
    plan = nidmap.plan(machine, 32, strategy="auto", job=Job("stencil:16x16", ppn=8, bytes=1e6))
    found = plan.facts["predicted"]["search"]
    assert found["candidates"] > 200
    assert found["judged"] < found["candidates"] / 4


def test_spread_counts_units_from_the_outside_in():
    machine = nidmap.load_machine(SPEC)
    assert ties.spread_of(machine, np.array(TWO_GROUPS)) == (2, 2)
    assert spans(machine, np.array(TWO_GROUPS)) == {"group": 2, "switch": 2}


def test_closer_words():
    m = nidmap.load_machine("slingshot:groups=4,switches=2,nodes=2")
    assert (
        closer_words(m, np.array([0, 1]), np.array([0, 4]))
        == "these nodes touch 1 group instead of 2"
    )
