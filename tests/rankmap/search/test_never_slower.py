# SPDX-License-Identifier: Apache-2.0
"""No start, no planner and not Slurm's own choice is faster than ``auto``, by `predict` itself.

Nothing is changed of what a user gets: no judgement more, and no second.
"""

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from benchmarks import questions
from nidmap.placement import planners
from nidmap.placement.errors import NidmapError, PlanError
from nidmap.placement.load import load_machine
from nidmap.placement.network import routings
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.options import with_figures
from nidmap.placement.plan import plan
from nidmap.placement.planners import Request
from nidmap.placement.specs import parse_spec
from nidmap.rankmap import orders
from nidmap.rankmap.compare import compare_strategies
from nidmap.rankmap.pattern.graph import from_edges
from nidmap.rankmap.predict import Job, Predictor, predict
from nidmap.rankmap.predict.job import ALGORITHMS, fit_pattern
from nidmap.rankmap.search.budget import LIMITS
from nidmap.rankmap.search.node_sets import node_choices
from tests.effort import examples

SPECS = [
    "slingshot:groups=5,switches=4,nodes=4,global=2",
    "torus:4x3x3,bw=1",
    "torus:5x4,nodes=2,bw=2,injection=10",
    "dragonfly:groups=4,chassis=1,blades=4,nodes=2,global=2,injection=10",
    "dragonfly:groups=3,chassis=2,blades=3,nodes=2,global=4",
    "fattree:leaf=4,leaves=6,spines=2,bw=1",
    "fattree:down=3x3x2,up=1x2x2,bw=1",
    "tree:3x4x2,bw=1",
]


def random_graph(ranks, seed):
    rng = np.random.default_rng(seed)
    a, b = np.nonzero(np.triu(rng.random((ranks, ranks)) < 0.3, 1))
    return from_edges(ranks, a, b, rng.integers(1, 100, len(a)) * 1e4)


@st.composite
def cases(draw):
    """Return machine, free mask, count and what the job sends."""
    machine = parse_spec(draw(st.sampled_from(SPECS)))
    seed = draw(st.integers(0, 2**31))
    free = np.random.default_rng(seed).random(len(machine)) < draw(st.sampled_from([0.5, 0.8]))
    free[:4] = True
    routing = draw(st.sampled_from(routings(machine)))
    ppn = draw(st.sampled_from([1, 3, 8]))
    count = draw(st.integers(2, min(20, 64 // ppn, int(free.sum()))))
    ranks = count * ppn
    part = draw(st.sampled_from([d for d in range(1, ranks + 1) if ranks % d == 0]))
    kind = draw(st.sampled_from(["alltoall", "alltoall", "fft", "stencil", "ring", "graph", "tp"]))
    pattern = {
        "fft": f"fft:{part}x{ranks // part}",
        "stencil": f"stencil:{part}x{ranks // part}",
        "graph": random_graph(ranks, seed),
        "tp": f"training:tp={part},pp=1,dp={ranks // part}",
    }.get(kind, kind)
    figures = {"routing": routing, **({"latency": 0} if draw(st.booleans()) else {})}
    how = draw(st.sampled_from(ALGORITHMS)) if kind in ("alltoall", "fft") else "library"
    return with_figures(machine, **figures), free, count, Job(pattern, ppn, algorithm=how)


def starts_of(machine, free, count):
    """Yield every node list that the answer must not be slower than."""
    request = Request(count, free)
    yield from node_choices(machine, request)
    for name in planners.names():
        if name not in planners.PREDICTING:
            try:
                yield name, plan(machine, count, strategy=name, candidates=free).rows
            except NidmapError:
                continue  # does not apply


def orders_of(model, rows):
    """Yield the slots of every order by name that fits, rank r on slot r among them."""
    yield None
    slots = model.place(rows)
    pattern = fit_pattern(model.pattern, slots)
    for name in ("hierarchical", "hilbert", "morton", "column-major", "folded", "round-robin"):
        try:
            yield orders.find(name)(pattern, slots).slot_of_rank
        except NidmapError:
            continue  # does not apply


def assert_first_is_best(entries):
    """Hold that what is likely faster than the first row keeps no closer together.

    Of nodes that are as close the scheduler's own are answered where no gain can be told.
    """
    auto = entries[0]
    assert auto.strategy == "auto"
    for entry in entries[1:]:
        if entry.found.time_s >= auto.found.time_s * (1 - LIMITS.clearly):
            continue
        ours, theirs = (x.plan.facts["touches"].values() for x in (auto, entry))
        assert tuple(theirs) >= tuple(ours), entry.strategy


@examples(27)
@given(case=cases())
def test_no_start_no_planner_with_any_order_and_no_row_of_compare_is_better(case):
    machine, free, count, job = case
    model = Predictor(machine, job)
    entries = compare_strategies(model, NodeRequest(count, free)).entries
    chosen = entries[0].plan
    assert_first_is_best(entries)
    time = predict(machine, chosen.rows, job, order=chosen.order).time_s
    assert time == pytest.approx(chosen.facts["predicted"]["time_s"], rel=1e-9)
    starts = {rows.tobytes(): (name, rows) for name, rows in starts_of(machine, free, count)}
    placements = {
        placement.key: (name, placement)
        for name, rows in starts.values()
        for placement in (model.place(rows, slots) for slots in orders_of(model, rows))
    }
    best = chosen.facts["predicted"]["search"]["best"]["cost"]
    time = min(time, best)  # what is answered may keep together for a gain that cannot be told
    for name, placement in placements.values():
        # Slurm's own choice is kept where nothing is faster by more than this share.
        assert time <= model.time(placement) * (1 + LIMITS.clearly) * (1 + 1e-9), name


@examples(4)
@given(seed=st.integers(0, 1 << 20))
def test_nothing_by_name_beats_auto_on_questions_of_sites(seed):
    question = questions.draw(seed, "tight")
    model = Predictor(load_machine(question.machine), Job(**question.job))
    try:
        entries = compare_strategies(model, NodeRequest(question.count, question.free)).entries
    except PlanError:  # its nodes are not of one kind
        reject()
    assert_first_is_best(entries)
    below = entries[0].plan.facts["predicted"]["search"]["best"]["cost"] * (1 - LIMITS.clearly)
    assert not questions.faster_starts(model, question, below)
