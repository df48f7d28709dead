# SPDX-License-Identifier: Apache-2.0
"""Moves that are worked out from a table of routes, against the predictor's own loads."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.options import with_figures
from nidmap.placement.plan import request_for
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import ROW_MAJOR, Candidate, TimeCost, p_norm
from nidmap.rankmap.search.exact_steps import ExactSteps, route_table
from nidmap.rankmap.search.priced_steps import bound_longest, move_nodes
from tests.effort import examples

MACHINES = (
    "torus:4x3x2,bw=1,injection=3",
    "fattree:leaf=3,leaves=5,spines=2,bw=1,injection=2",
    "tree:5x4,bw=1,injection=2",
    "dragonfly:groups=3,chassis=2,blades=2,nodes=2,injection=10,global=1,routing=single",
    "dragonfly:groups=3,chassis=2,blades=2,nodes=2,injection=10,global=2,routing=minimal",
)
JOBS = (
    Job("alltoall", bytes=1e6),
    Job("alltoall", bytes=1e6, algorithm="pairwise"),
    Job("stencil:3x4", ppn=2, bytes=1e6),
    Job("fft:3x4", ppn=2, bytes=1e6),
)


def case(data, spec):
    """Return a cost, a request and a placement on some of its free nodes."""
    machine = with_figures(nidmap.load_machine(spec), latency=0)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    free = rng.random(len(machine)) < 0.7
    free[:8] = True
    job = data.draw(st.sampled_from(JOBS))
    must = np.flatnonzero(free)[: data.draw(st.integers(0, 2))]
    request = request_for(machine, NodeRequest(6, free, must.tolist()))
    others = np.setdiff1d(np.flatnonzero(free), must)
    rows = rng.permutation(np.concatenate([must, rng.permutation(others)[: 6 - len(must)]]))
    cost = TimeCost(Predictor(machine, job))
    return cost, request, cost.model.place(rows)


def seconds_of(cost, placement):
    """Return the seconds of all exchanges, every busy link counted a little."""
    total = 0.0
    for exchange in cost.judge(placement).exchanges:
        loads = exchange.loads
        own_s = cost.model.own_link_s(loads, placement.rows)
        total += exchange.times * max(own_s, p_norm(loads.seconds()))
    return total


def all_moves(request, rows):
    """Yield the rows after every single move that is allowed."""
    for place, row in enumerate(rows.tolist()):
        for other in range(place):
            yield move_nodes(rows, [(place, -1 - other)])
        if row not in request.include:
            for node in np.setdiff1d(np.flatnonzero(request.free), rows).tolist():
                yield move_nodes(rows, [(place, node)])


@pytest.mark.parametrize("spec", MACHINES)
@examples(8)
@given(data=st.data())
def test_where_placements_are_few_the_best_of_all_is_found(spec, data):
    machine = with_figures(nidmap.load_machine(spec), latency=0)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    rows = np.sort(rng.permutation(len(machine))[:6])
    free = np.isin(np.arange(len(machine)), rows)
    job = data.draw(st.sampled_from([Job("fft:2x2"), Job("stencil:4x2", ppn=2), Job("alltoall")]))
    must = rng.permutation(rows)[: data.draw(st.integers(0, 2))]
    request = request_for(machine, NodeRequest(4, free, must.tolist()))
    cost = TimeCost(Predictor(machine, job))
    others = np.setdiff1d(rows, must)
    placement = cost.model.place(np.concatenate([must, others[: 4 - len(must)]]))
    steps = ExactSteps(cost, request, True, Budget(99))
    found = steps.descend(Candidate("some", ROW_MAJOR, placement, cost.of(placement)))
    assert steps.complete
    every = (np.array(some) for some in itertools.permutations(rows, 4))
    allowed = (some for some in every if np.isin(must, some).all())
    least = min(cost.of(placement.on_nodes(some)) for some in allowed)
    assert found.cost == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("spec", ["torus:16,bw=1,injection=9", MACHINES[1]])
def test_of_many_steps_those_are_looked_at_that_links_bind_longest(spec):
    """A step to the next node crosses few links of a ring, one to the far side many."""
    machine = with_figures(nidmap.load_machine(spec), latency=0)
    model = Predictor(machine, Job("alltoall", bytes=1e6, algorithm="pairwise"))
    placement = model.place(np.arange(15))
    [phase] = model.phases(placement)
    every = sorted(
        times * model.loads(placement.demand(flows), None).seconds().max()
        for flows, times in phase.steps()
    )
    exchanges = bound_longest(TimeCost(model).exchanges(placement))
    chosen = [exchange.times * exchange.loads.seconds().max() for exchange in exchanges]
    assert len(every) > LIMITS.exchanges == len(chosen)
    assert chosen == every[::-1][: LIMITS.exchanges]


@pytest.mark.parametrize("spec", MACHINES)
@examples(33)
@given(data=st.data())
def test_no_single_move_from_where_a_descent_ends_is_better(spec, data):
    cost, request, placement = case(data, spec)
    steps = ExactSteps(cost, request, True, Budget(10_000, 1e6))
    start = Candidate("some nodes", ROW_MAJOR, placement, cost.of(placement))
    end = steps.descend(start).placement
    least = seconds_of(cost, end)
    assert least <= seconds_of(cost, placement) * (1 + 1e-4)
    assert set(request.include) <= set(end.rows.tolist())
    assert len(set(end.rows.tolist())) == 6
    assert request.free[end.rows].all()
    for rows in all_moves(request, end.rows):
        assert seconds_of(cost, end.on_nodes(rows)) > least * (1 - 1e-4)


@pytest.mark.parametrize("spec", MACHINES)
def test_routes_are_those_of_one_byte_sent(spec):
    machine = nidmap.load_machine(spec)
    model = Predictor(machine, Job("alltoall"))
    nodes = np.array([0, 3, 4, 9, len(machine) - 1])
    table = route_table(model, nodes)
    pair = Predictor(machine, Job("alltoall", bytes=1.0))
    for i in range(len(nodes)):
        for j in range(i):
            phase = next(iter(pair.phases(pair.place(nodes[[i, j]]))))
            seconds = pair.loads(phase.total, None).seconds()
            both = table[i, j] + table[j, i]
            assert np.sort(both[both > 0]) == pytest.approx(np.sort(seconds[seconds > 0]))


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


def test_a_table_that_would_be_too_large_is_not_made():
    model = Predictor(nidmap.load_machine("torus:16x16x8,bw=1"), Job("alltoall"))
    assert route_table(model, np.arange(2048)) is None
    assert route_table(model, np.arange(0, 2048, 8)) is None
    assert route_table(model, np.arange(16)) is not None
    large = Predictor(nidmap.load_machine("torus:48x48x48,bw=1"), Job("alltoall"))
    assert route_table(large, np.arange(64)) is None


def test_where_bytes_are_divided_there_is_no_table():
    cost = TimeCost(Predictor(nidmap.load_machine("shaheen2"), Job("alltoall")))
    request = request_for(cost.model.machine, NodeRequest(4))
    steps = ExactSteps(cost, request, True, Budget(9))
    placement = cost.model.place(np.arange(4))
    assert not steps.works
    assert steps.descend(Candidate("", ROW_MAJOR, placement, 1.0)) is None
