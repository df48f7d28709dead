# SPDX-License-Identifier: Apache-2.0
"""What strategy ``auto`` promises, on machines and occupancies drawn by lot."""

import time
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from benchmarks.questions import draw
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.options import with_figures
from nidmap.placement.plan import plan
from nidmap.placement.planners import Request, find, names
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.compare import compare_strategies
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, Predictor, predict
from nidmap.rankmap.predict.background import Other
from nidmap.rankmap.search import budget
from nidmap.rankmap.search.auto_order import auto_order
from nidmap.rankmap.search.cost import TimeCost
from tests.effort import examples
from tests.rankmap.helpers import time_of

SPECS = [
    "dragonfly:groups=5,chassis=2,blades=4,nodes=4,global=8,injection=10",
    "dragonfly:groups=9,chassis=1,blades=4,nodes=2,global=1",
    "slingshot:groups=3,switches=4,nodes=4,global=4,nics=2",
    "torus:4x5x3,nodes=2,bw=1",
    "torus:9x6,bw=1,injection=3",
    "fattree:leaf=4,leaves=12,spines=2,bw=1",
    "fattree:down=3x4x4,up=1x2x3,bw=1",
    "tree:3x4x5,bw=1",
    "tree:12",
]

PATTERNS = ["alltoall", "ring", "stencil:auto", "sort"]


@cache
def machine_of(spec):
    return parse_spec(spec)


@st.composite
def asked(draw):
    """Return machine, free mask, count, included rows, what the job sends."""
    machine = machine_of(draw(st.sampled_from(SPECS)))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    free = rng.random(len(machine)) < draw(st.sampled_from([0.3, 0.6, 1.0]))
    free[rng.integers(0, len(machine), 3)] = True
    rows = np.flatnonzero(free)
    count = draw(st.integers(1, min(len(rows), 12)))
    include = rng.permutation(rows)[: draw(st.integers(0, min(3, count)))]
    job = Job(draw(st.sampled_from(PATTERNS)), draw(st.sampled_from([1, 2, 4])), algorithm="")
    return machine, free, count, include, job


@examples(33)
@given(case=asked())
def test_the_contract_and_never_worse_than_slurm(case):
    machine, free, count, include, job = case
    found = plan(
        machine, count, strategy="auto", candidates=free, include=include, job=job, deadline=60
    )
    assert len(found.rows) == count == len(set(found.rows.tolist()))
    assert free[found.rows].all()
    assert set(include.tolist()) <= set(found.rows.tolist())
    figures = found.facts["predicted"]
    default = plan(machine, count, strategy="slurm-none", candidates=free, include=include)
    judge = Predictor(machine, job)
    assert figures["default_time_s"] == pytest.approx(
        judge.time(judge.place(default.rows)), rel=1e-12
    )
    assert figures["time_s"] == pytest.approx(time_of(judge, found.rows, found.order), rel=1e-12)
    chosen = figures["chosen"]
    if chosen["by"] == "J":
        assert machine.name == "tree:12"
        assert chosen["cost"] <= chosen["default_cost"]
    else:
        assert figures["time_s"] <= figures["default_time_s"]
    assert figures["bound_s"] <= figures["time_s"]
    assert sorted(found.order.slot_of_rank.tolist()) == list(range(count * job.ppn))


@examples(7)
@given(case=asked())
def test_the_same_question_has_the_same_answer(case):
    machine, free, count, include, job = case
    one, two = (
        plan(
            machine, count, strategy="auto", candidates=free, include=include, job=job, deadline=60
        )
        for _ in range(2)
    )
    assert one.rows.tolist() == two.rows.tolist()
    assert one.order == two.order
    assert one.why == two.why
    assert one.facts == two.facts


@pytest.mark.parametrize("spec", SPECS)
def test_all_free_nodes_can_be_taken(spec):
    machine = machine_of(spec)
    found = plan(machine, len(machine), strategy="auto", deadline=60)
    assert sorted(found.rows.tolist()) == list(range(len(machine)))


def test_auto_is_a_strategy_like_any_other():
    assert "auto" in names()
    machine = machine_of(SPECS[0])
    request = Request(count=8, free=machine.free)
    rows = find("auto")(machine, request)
    assert len(rows) == 8
    assert rows.tolist() == plan(machine, 8, strategy="auto").rows.tolist()


def test_a_pattern_makes_auto_the_usual_strategy():
    machine = machine_of("torus:4x3,nodes=2")
    assert plan(machine, 4).strategy == "compact"
    assert plan(machine, 4, job=Job("alltoall")).strategy == "auto"
    assert plan(machine, 4, job=Job("alltoall"), strategy="spread").strategy == "spread"


def test_where_no_bandwidth_is_known_nodes_and_order_are_those_of_the_least_j():
    machine = parse_spec("tree:18x4")
    found = plan(machine, 12, job=Job("stencil:8x9", ppn=6), strategy="auto")
    same = auto_order(place_ranks(machine, found.nodes, 6), Job("stencil:8x9"))
    chosen = {"by": "J", "why": "tree:18x4 states no bandwidths", "cost": 43, "default_cost": 71}
    assert found.facts["predicted"]["chosen"] == chosen
    assert {name: same.origin.optimised[name] for name in chosen} == chosen
    assert found.order.slot_of_rank.tolist() == same.slot_of_rank.tolist()
    assert found.why.startswith("chosen by J (tree:18x4 states no bandwidths): J = 43, 39.4% less")
    kept = plan(machine, 12, job=Job("ring", ppn=6), strategy="auto")
    assert "is kept, chosen by J" in kept.why


def test_without_a_pattern_one_is_assumed_and_said():
    found = plan(machine_of("torus:4x3,nodes=2"), 4, strategy="auto")
    assert found.facts["predicted"]["pattern"] == "alltoall"
    assert any("all-to-all of 1 rank per node" in note for note in found.warnings)


@pytest.mark.parametrize(
    ("spec", "pattern", "count", "asked"),
    [
        ("torus:2", "gather", 1, {"ppn": 8}),
        ("slingshot:groups=6,switches=2,nodes=1", "stencil:1x1x1,staged", 1, {}),
        ("dragonfly+:groups=7,leaves=1,spines=4,nodes=7", "transposition:30x1", 30, {}),
    ],
)
def test_nothing_between_nodes_is_no_fault(spec, pattern, count, asked):
    segment = {"segment": 5} if count == 30 else {}  # the default's nodes are others then
    found = plan(machine_of(spec), count, job=Job(pattern, **asked), **segment)
    assert len(found.rows) == count
    assert found.why


def test_a_move_that_relieves_one_of_several_full_links_is_made():
    machine = parse_spec("torus:12x8x10,nodes=2,bw=4.68,injection=6")
    free = np.isin(np.arange(len(machine)), draw(20, "tight").free.nonzero()[0])
    found = plan(machine, 16, candidates=free, job=Job("alltoall", ppn=32, bytes=1e5))
    assert found.facts["predicted"]["time_s"] <= 0.3071  # 0.329 by the busiest link alone


@pytest.mark.parametrize("judged", [1, 6])
def test_no_row_of_a_comparison_is_above_auto_where_the_cap_ends_the_search(monkeypatch, judged):
    counts = iter(range(10**6))
    monkeypatch.setattr(time, "thread_time", lambda: 1e9 * (next(counts) > 6 * judged))
    machine = machine_of(SPECS[2])
    free = np.random.default_rng(1).random(len(machine)) < 0.6
    model = Predictor(machine, Job("fft:4x8", ppn=4))
    found = compare_strategies(model, NodeRequest(8, free))
    assert found.best.strategy == "auto"
    most = max(entry.gain.likely for entry in found.entries)
    assert found.best.gain.likely >= most * (1 - budget.LIMITS.clearly)
    assert any("the search was cut short" in note for note in found.notes)


def test_the_cap_holds_for_what_is_said_of_the_answer_too(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "thread_time", lambda: clock[0])
    judge = TimeCost.of

    def judge_slowly(self, placement, below=np.inf):
        clock[0] += 0.25
        return judge(self, placement)

    monkeypatch.setattr(TimeCost, "of", judge_slowly)
    plan(machine_of(SPECS[2]), 8, job=Job("fft:4x8", ppn=4))
    said = min(budget.SAID * 0.25, budget.MOST_SAID * budget.DEADLINE)
    assert clock[0] <= budget.DEADLINE - said + 1.0


def test_what_makes_no_sense_is_refused():
    machine = machine_of(SPECS[3])
    with pytest.raises(UsageError, match="has 16 ranks, but there are 8 slots"):
        plan(machine, 8, job=Job("fft:4x4"))
    with pytest.raises(TypeError, match="bites"):
        plan(machine, 8, job=Job("ring"), bites=4)
    with pytest.raises(UsageError, match="unknown routing 'minimal'"):
        plan(with_figures(machine, routing="minimal"), 8, job=Job("ring"))
    with pytest.raises(PlanError, match="free"):
        plan(machine, 5000, job=Job("ring"))


def test_the_default_is_kept_where_nothing_is_clearly_faster():
    machine = machine_of(SPECS[7])
    found = plan(machine, 3, job=Job("alltoall"))
    figures = found.facts["predicted"]
    assert figures["ratio"] == 1.0
    assert "Slurm's own choice" in found.why
    assert found.rows.tolist() == [0, 1, 2]


def test_an_order_that_matters_goes_with_the_nodes():
    machine = machine_of("torus:9x6,bw=1,injection=3")
    free = np.ones(len(machine), dtype=bool)
    free[::4] = False
    found = plan(
        with_figures(machine, latency=0), 8, job=Job("stencil:4x8", ppn=4), candidates=free
    )
    figures = found.facts["predicted"]
    alone = predict(
        with_figures(machine, latency=0), np.sort(found.rows), Job("stencil:4x8", ppn=4)
    ).time_s
    assert figures["order"]["sorted_time_s"] == pytest.approx(alone, rel=1e-12)
    assert figures["order"]["needed"] == (alone > figures["time_s"] * (1 + 1e-6))
    on_list = predict(
        with_figures(machine, latency=0), found.rows, Job("stencil:4x8", ppn=4), order=found.order
    )
    assert on_list.time_s == pytest.approx(figures["time_s"], rel=1e-12)


def test_other_jobs_are_kept_away_from():
    machine = parse_spec("dragonfly:groups=6,chassis=2,blades=4,nodes=4,global=2,injection=10")
    busy = np.arange(0, 3 * 32, 2)
    free = np.ones(len(machine), dtype=bool)
    free[busy] = False
    alone = plan(machine, 24, job=Job("alltoall"), candidates=free)
    beside = plan(
        machine, 24, job=Job("alltoall", background=[Other(busy, 8.0, "a")]), candidates=free
    )
    asked = Predictor(machine, Job("alltoall", background=[Other(busy, 8.0, "a")], algorithm=""))
    assert asked.time(asked.place(beside.rows)) <= asked.time(asked.place(alone.rows)) * 1.005
    assert beside.facts["predicted"]["background"][0]["job"] == "a"


def test_an_adaptive_routing_is_searched_as_it_is():
    machine = machine_of(SPECS[1])
    free = np.random.default_rng(5).random(len(machine)) < 0.5
    found = plan(with_figures(machine, routing="adaptive"), 6, job=Job("fft:2x3"), candidates=free)
    figures = found.facts["predicted"]
    judge = Predictor(with_figures(machine, routing="adaptive"), Job("fft:2x3", 1, algorithm=""))
    assert figures["routing"] == "adaptive"
    assert figures["time_s"] == pytest.approx(time_of(judge, found.rows, found.order), rel=1e-9)
    assert figures["time_s"] <= figures["default_time_s"]


def test_a_deadline_of_nothing_still_has_an_answer():
    machine = machine_of(SPECS[0])
    free = np.random.default_rng(2).random(len(machine)) < 0.5
    found = plan(machine, 40, job=Job("alltoall"), candidates=free, deadline=0)
    assert len(found.rows) == 40
    assert not found.facts["predicted"]["search"]["finished"]
    assert any("cut short by its deadline" in note for note in found.warnings)


def test_progress_is_told_from_nothing_to_all():
    told = []
    machine = machine_of(SPECS[4])
    free = np.random.default_rng(2).random(len(machine)) < 0.7
    plan(machine, 12, job=Job("fft:3x4"), candidates=free, progress=told.append)
    shares = [moment.share for moment in told]
    assert 0.0 <= shares[0] < 0.5
    assert shares == sorted(shares)
    assert 0.1 < shares[-1] < 1.0
    assert all(isinstance(moment.text, str) and moment.text for moment in told)
    best = [moment.best_s for moment in told]
    assert best[0] == np.inf
    assert best == sorted(best, reverse=True)
    assert len(told[-1].best) == 12


@pytest.mark.parametrize("after", [1, 5, 40])
def test_who_watches_can_stop_the_search_and_has_the_best_so_far(after):
    told = []

    def watch(moment):
        told.append(moment)
        return len(told) >= after

    machine = machine_of(SPECS[3])
    free = np.random.default_rng(2).random(len(machine)) < 0.7
    found = plan(machine, 20, job=Job("fft:4x5"), candidates=free, progress=watch)
    assert len(told) == after
    figures = found.facts["predicted"]
    assert figures["time_s"] <= figures["default_time_s"]
    assert figures["search"]["best"]["cost"] <= told[-1].best_s
    assert not figures["search"]["finished"]
    assert any("the search was stopped" in note for note in found.warnings)


def test_auto_takes_a_square_for_an_all_to_all():
    m = nidmap.load_machine("torus:4x4,bw=1,latency=0")
    chosen = nidmap.plan(m, 4, job=nidmap.Job("alltoall"))
    assert chosen.nodes.fold() == "nid[00000-00001,00004-00005]"
    assert chosen.facts["predicted"]["ratio"] == pytest.approx(2 / 3)


def test_choices_whose_bytes_cannot_be_divided_at_once_are_judged_all_the_same(monkeypatch):
    machine = machine_of("slingshot:groups=4,switches=4,nodes=2,global=1,routing=adaptive")
    free = np.arange(len(machine)) % 3 > 0
    job = Job("alltoall", algorithm="pairwise", bytes=1e6)
    usual = plan(machine, 8, candidates=free, job=job, deadline=60).facts["predicted"]["search"]

    def refuse(self, placement):
        raise UsageError("too many groups")

    monkeypatch.setattr(TimeCost, "at_once", refuse)
    found = plan(machine, 8, candidates=free, job=job, deadline=60).facts["predicted"]["search"]
    assert found["best"]["cost"] == usual["best"]["cost"]


def test_auto_is_not_slower_than_a_planner_that_it_had_no_judgement_for(monkeypatch):
    monkeypatch.setattr(budget.Limits, "judgements_of", lambda *_: 1)
    machine = parse_spec("torus:8x4x4,bw=1,injection=inf,latency=0")
    free = np.random.default_rng(2).random(len(machine)) < 0.7
    model = Predictor(machine, Job("stencil:4x4x2"))
    by_name = [
        model.time(model.place(plan(machine, 32, candidates=free, strategy=name).rows))
        for name in ("compact", "spread", "nid-order", "hilbert")
    ]
    chosen = plan(machine, 32, candidates=free, strategy="auto", job=model.job)
    predicted = chosen.facts["predicted"]
    assert min(by_name) < 0.99 * predicted["default_time_s"]
    assert predicted["search"]["best"]["cost"] <= min(by_name) * (1 + 1e-9)
