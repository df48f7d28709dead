# SPDX-License-Identifier: Apache-2.0
"""Priced steps: how much one of them looks up, whatever the network."""

from __future__ import annotations

import numpy as np
import pytest

from nidmap.placement.network.path_costs import path_costs
from nidmap.placement.planners import Request
from nidmap.placement.specs import parse_spec
from nidmap.placement.support.arrays import product
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.search import priced_steps
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import ROW_MAJOR, Candidate, TimeCost
from nidmap.rankmap.search.priced_steps import PricedSteps, _shrinking_moves


@pytest.mark.parametrize("attachments", [1, 4])
def test_a_step_looks_up_no_more_costs_where_nodes_have_several_attachments(
    attachments, monkeypatch
):
    words = "groups=8,switches=8,nodes=8,global=1,routing=minimal"
    machine = parse_spec(f"slingshot:{words},nics={attachments}")
    looked_up = []

    def counted(machine, price):
        cost = path_costs(machine, price)

        def count(a, b):
            looked_up.append(np.broadcast(a, b).size * attachments**2)
            return cost(a, b)

        return count

    monkeypatch.setattr(priced_steps, "path_costs", counted)
    cost = TimeCost(Predictor(machine, Job("alltoall", 1, 1e5, algorithm="at-once")))
    placement = cost.model.place(np.arange(0, 96))
    start = Candidate("first nodes", ROW_MAJOR, placement, cost.of(placement))
    request = Request(96, np.ones(len(machine), dtype=bool))
    steps = PricedSteps(cost, request, False, Budget(6), lambda placement: True)
    better = steps.descend(start)
    assert better is not None
    assert better.cost < start.cost
    assert 0 < max(looked_up) <= LIMITS.figures


def test_shrinking_moves():
    assert list(_shrinking_moves([(0, 8), (1, 9), (2, 7), (3, 6)]))[1:3] == [[(0, 8)], [(1, 9)]]


@pytest.mark.parametrize("most", [1 << 18, 1 << 22])
def test_a_step_makes_no_more_products_of_larger_jobs(most, monkeypatch):
    machine = parse_spec("torus:10x10x10,bw=1,latency=0")
    made = []

    def count(a, b):
        made.append(a.shape[0] * a.shape[1] * b.shape[1])
        return product(a, b)

    monkeypatch.setattr(priced_steps, "product", count)
    monkeypatch.setattr(priced_steps, "PRODUCTS", most)
    cost = TimeCost(Predictor(machine, Job("stencil:12x12", 1, 1e6)))
    placement = cost.model.place(np.random.default_rng(1).permutation(len(machine))[:144])
    start = Candidate("some nodes", ROW_MAJOR, placement, cost.of(placement))
    request = Request(144, np.ones(len(machine), dtype=bool))
    steps = PricedSteps(cost, request, True, Budget(40, 60.0), lambda placement: True)
    better = steps.descend(start)
    assert better is not None
    assert better.cost < start.cost
    assert 0 < max(made) <= 2 * most
