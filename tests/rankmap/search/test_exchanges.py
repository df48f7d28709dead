# SPDX-License-Identifier: Apache-2.0
"""Exchanges of nodes: what is added up of them, against the predictor's own loads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.options import with_figures
from nidmap.placement.plan import request_for
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.search import exchanges
from nidmap.rankmap.search.budget import Budget
from nidmap.rankmap.search.cost import ROW_MAJOR, Candidate, TimeCost
from nidmap.rankmap.search.exchanges import Exchanges
from tests.effort import examples

MACHINES = (
    "torus:4x3x2,bw=1,injection=3",
    "fattree:leaf=3,leaves=5,spines=2,bw=1,injection=2",
    "tree:5x4,bw=1,injection=2",
    "dragonfly:groups=3,chassis=2,blades=2,nodes=2,injection=10,global=1,routing=single",
)
SEVERAL_PATHS = (
    "dragonfly:groups=3,chassis=2,blades=2,nodes=2,injection=10,global=2,routing=minimal"
)
JOBS = (
    Job("alltoall", bytes=1e6),
    Job("alltoall", bytes=1e6, algorithm="pairwise"),
    Job("stencil:3x4", ppn=2, bytes=1e6),
    Job("fft:3x4", ppn=2, bytes=1e6),
)


def case(data, spec):
    """Return exchanges, the request and a placement on some of its free nodes."""
    machine = with_figures(nidmap.load_machine(spec), latency=0)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    free = rng.random(len(machine)) < 0.7
    free[:8] = True
    must = np.flatnonzero(free)[: data.draw(st.integers(0, 2))]
    request = request_for(machine, NodeRequest(6, free, must.tolist()))
    others = np.setdiff1d(np.flatnonzero(free), must)
    rows = rng.permutation(np.concatenate([must, rng.permutation(others)[: 6 - len(must)]]))
    cost = TimeCost(Predictor(machine, data.draw(st.sampled_from(JOBS))))
    moves = Exchanges(cost, request, True, Budget(10_000, 1e6), lambda placement: True)
    return moves, request, cost.model.place(rows)


def seconds_of(model, placement):
    """Return the seconds of all exchanges by the predictor's loads, each link counted a little."""
    seconds = []
    for phase in model.phases(placement):
        sent = [(phase.total, 1.0)]
        if phase.steps is not None:
            sent = [(placement.demand(flows), times) for flows, times in phase.steps()]
        for demand, times in sent:
            loads = model.loads(demand, None)
            norm = float(np.linalg.norm(loads.seconds().astype(np.longdouble), exchanges.POWER))
            seconds.append(times * max(model.own_link_s(loads, placement.rows), norm))
    return sum(seconds)


@pytest.mark.parametrize("spec", MACHINES)
@examples(8)
@given(data=st.data())
def test_what_each_exchange_saves_is_what_the_predictor_says(spec, data):
    moves, request, placement = case(data, spec)
    model = moves.cost.model
    paths = moves.paths(placement.rows)
    sent = moves.longest(placement, paths)
    at = np.searchsorted(paths.nodes, placement.rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchanges, "BUSY", -1.0)  # all links, not only those nearly the busiest
        norm, saving = moves.savings(at, sent, paths)
    assert norm == pytest.approx(seconds_of(model, placement), rel=1e-5)
    assert set(paths.nodes.tolist()) == set(np.flatnonzero(request.free).tolist())
    for place, row in enumerate(placement.rows.tolist()):
        for node, other in enumerate(paths.nodes.tolist()):
            rows = placement.rows.copy()
            rows[rows == other] = row
            rows[place] = other
            if other == row or not set(request.include) <= set(rows.tolist()):
                assert saving[place, node] == -np.inf
                continue
            after = seconds_of(model, placement.on_nodes(rows))
            assert norm - saving[place, node] == pytest.approx(after, rel=1e-4)


@pytest.mark.parametrize("spec", [*MACHINES, SEVERAL_PATHS])
@examples(8)
@given(data=st.data())
def test_exchanges_keep_what_must_be_taken_and_never_lose(spec, data):
    moves, request, placement = case(data, spec)
    start = Candidate("some nodes", ROW_MAJOR, placement, moves.cost.of(placement))
    for disturb in (False, True):
        found = moves.improve(start, disturb)
        rows = found.placement.rows.tolist()
        assert set(request.include) <= set(rows)
        assert len(set(rows)) == 6
        assert request.free[rows].all()
        if found.cost < np.inf:
            assert found.cost == moves.cost.of(found.placement) <= start.cost


def test_where_nodes_differ_in_their_ranks_these_are_exchanged():
    machine = nidmap.load_machine("torus:6,bw=1,latency=0")
    slots = place_ranks(machine, "0-3", [3, 1, 3, 1])
    job = Job("ring", ppn=[3, 1, 3, 1], bytes=1e6)
    scattered = slots.with_order(np.array([0, 4, 3, 5, 7, 1, 6, 2]))
    cost = TimeCost(Predictor(machine, job))
    request = request_for(machine, NodeRequest(4, np.arange(6) < 4))
    moves = Exchanges(cost, request, True, Budget(10_000, 1e6), lambda placement: True)
    start = Candidate("", ROW_MAJOR, scattered, cost.of(scattered))
    found = moves.improve(start)
    assert found.cost < start.cost
    assert found.placement.on_same_nodes(slots)


#: Placements that another search found: busy nodes, nodes, and the order of the ranks.
KNOWN = (
    (
        "minicray:dragonfly,routing=single,latency=0",
        Job("stencil:4x3x2", ppn=2, bytes=50e3),
        [2, 8, 9, 10, 11, 20],
        [5, 3, 13, 12, 17, 16, 4, 0, 21, 1, 23, 19],
        [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11, 12, 14, 16, 18, 20, 22, 13, 15, 17, 19, 21, 23],
    ),
    (
        "torus:4x4x4,bw=1,injection=4,latency=0",
        Job("stencil:4x4x4", ppn=4, bytes=50e3),
        [1, 2, 3, 5, 7, 8, 9, *range(15, 20), 24, 25, *range(28, 33), 41, 42, *range(47, 51),
         *range(52, 58), 62],
        [12, 4, 21, 13, 40, 36, 37, 45, 43, 39, 38, 34, 27, 23, 26, 14],
        [16 * x + 4 * y + z for x in range(4) for y in (0, 2) for z in (0, 2) for y in (y, y + 1)
         for z in (z, z + 1)],
    ),
)  # fmt: skip


@pytest.mark.parametrize(("spec", "job", "busy", "rows", "cells"), KNOWN)
def test_a_plan_is_no_slower_than_what_another_search_found(spec, job, busy, rows, cells):
    machine = nidmap.load_machine(spec)
    free = ~np.isin(np.arange(len(machine)), busy)
    plan = nidmap.plan(machine, len(rows), job=job, candidates=free)
    model = Predictor(machine, job)
    slots = np.argsort(cells) if "torus" in spec else np.array(cells)
    found = model.time(model.place(np.array(rows), slots))
    assert plan.facts["predicted"]["search"]["best"]["cost"] <= found * (1 + 1e-6)
