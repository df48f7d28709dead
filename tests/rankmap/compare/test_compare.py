# SPDX-License-Identifier: Apache-2.0
"""Strategies side by side: their nodes, their orders, and the predicted times."""

import numpy as np
import pytest

from nidmap.placement.load import load_machine
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.planners import Request
from nidmap.placement.scheduler.baseline import baseline_of, scheduler_choice
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.compare import _family_name, compare_strategies
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gains
from nidmap.rankmap.search import budget

NAMED = ["auto", "compact", "blades", "spread", "hilbert"]


def loaded_by_jobs(machine, seed, jobs=24):
    """Return which nodes other jobs, each on consecutive ones, leave free."""
    rng = np.random.default_rng(seed)
    free = machine.free.copy()
    rows = np.flatnonzero(free)
    for _ in range(jobs):
        first = int(rng.integers(len(rows) - 1))
        free[rows[first : first + int(rng.integers(4, len(rows) // jobs))]] = False
    return free


def assert_no_row_is_above_auto(found, model):
    """Hold that what is likely faster than auto gains nothing that can be told, and is named."""
    auto, *others = found.entries
    assert auto.strategy == "auto"
    order = None if auto.plan.order is None else auto.plan.order.order
    over = Gains(model, model.place(auto.plan.rows, order))
    faster = [
        entry
        for entry in others
        if entry.found.time_s < auto.found.time_s * (1 - budget.LIMITS.clearly)
    ]
    for entry in faster:
        touches = (tuple(row.plan.facts["touches"].values()) for row in (entry, auto))
        assert next(touches) >= next(touches), entry.strategy
        if entry.order == "row-major":
            assert not over.of(model.place(entry.plan.rows)).told, entry.strategy
    assert ("that gain is not certain" in found.sentence) == bool(faster)


@pytest.fixture
def cut(monkeypatch):
    """Return what ends every search before it has judged more than the default."""

    def cut(how):
        if how == "deadline":
            monkeypatch.setattr(budget, "DEADLINE", 0.0)
        elif how == "judgements":
            monkeypatch.setattr(budget.Limits, "judgements_of", lambda *_: 1)

    return cut


@pytest.mark.parametrize("how", ["nothing", "deadline", "judgements"])
@pytest.mark.parametrize("pattern", ["alltoall", "stencil:16x16"])
def test_no_row_by_name_is_above_auto_on_a_loaded_machine(cut, how, pattern):
    cut(how)
    machine = load_machine("shaheen2")
    model = Predictor(machine, Job(pattern, ppn=8))
    wanted = NodeRequest(32, loaded_by_jobs(machine, 9))
    found = compare_strategies(model, wanted, NAMED, ["row-major"])
    assert_no_row_is_above_auto(found, model)


@pytest.mark.parametrize("how", ["deadline", "judgements"])
@pytest.mark.parametrize("names", [NAMED[:1] + NAMED[3:], []])
def test_auto_takes_a_row_that_it_had_no_time_to_judge(cut, how, names):
    machine = parse_spec("torus:8x4x4,bw=1,injection=inf,latency=0")
    free = np.random.default_rng(2).random(len(machine)) < 0.7
    model = Predictor(machine, Job("stencil:4x4x2"))
    orders = ["row-major", "hierarchical", "hilbert"]
    cut(how)
    found = compare_strategies(model, NodeRequest(32, free), names, orders)
    auto = found.best
    assert auto.strategy == "auto"
    fastest = min(entry.found.time_s for entry in found.entries)
    assert fastest < found.default.found.time_s / 1.1
    assert auto.found.time_s == pytest.approx(fastest)
    facts = auto.plan.facts["predicted"]
    assert facts["time_s"] == pytest.approx(auto.found.time_s)
    assert facts["search"]["best"]["cost"] == pytest.approx(fastest)


@pytest.mark.parametrize("version", ["25.11.1", "26.05.5"])
def test_the_default_is_what_the_scheduler_takes_not_what_its_strategy_does(version):
    machine = parse_spec("tree:4x2,bw=1")
    baseline = baseline_of(machine, config={"SLURM_VERSION": version})
    free = np.array([0, 1, 1, 1, 0, 1, 0, 0], dtype=bool)  # one run of three, one of one
    model = Predictor(machine, Job("alltoall", ppn=4))
    found = compare_strategies(model, NodeRequest(1, free, baseline=baseline), ["compact"])
    taken = scheduler_choice(machine, Request(1, free, baseline=baseline))
    assert found.default.plan.rows.tolist() == taken.tolist() == [1 if version > "26" else 5]
    assert found.default.strategy == "slurm-none"


def test_family_name():
    assert _family_name("22 blades") == "blade"
    assert _family_name("box 4x2x8") == "box"
    assert _family_name("blades --per-blade 2") == "blades --per-blade 2"
