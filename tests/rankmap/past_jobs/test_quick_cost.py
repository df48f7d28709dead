# SPDX-License-Identifier: Apache-2.0
"""Cuts and direct links against the same sums in plain loops, and the bound of any routing."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.network import channels
from nidmap.placement.network.bounds import cut_time
from nidmap.placement.network.demand import Demand
from nidmap.placement.specs import parse_spec
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.past_jobs import quick_cost
from nidmap.rankmap.past_jobs.quick_cost import QuickCost, cut_times
from nidmap.rankmap.predict import Job, Predictor

SPECS = (
    "dragonfly:groups=3,chassis=2,blades=3,nodes=2",
    "dragonfly:groups=4,chassis=1,blades=4,nodes=1",
    "fattree:leaf=4,leaves=5,spines=2,bw=1",
    "tree:2x3x3,bw=2",
)
MACHINES = {spec: parse_spec(spec) for spec in SPECS}


@st.composite
def traffic(draw):
    machine = MACHINES[draw(st.sampled_from(SPECS))]
    rows = draw(st.sets(st.integers(0, len(machine) - 1), min_size=2, max_size=9))
    nodes = len(rows)
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    pairs = draw(st.lists(ends.filter(lambda e: e[0] != e[1]), max_size=12, unique=True))
    bytes_ = [float(draw(st.integers(1, 9))) * 1e9 for _ in pairs]
    return machine, np.array(draw(st.permutations(sorted(rows)))), pairs, bytes_


def direct_by_loops(machine, rows, sent):
    """Return the seconds of the busiest links between two units of one unit above."""
    found, worst = channels(machine), 0.0
    place = {}
    for k in range(len(found)):
        place[int(found.source[k])] = place[int(found.target[k])] = None
    coords = {
        int(machine.router[r, 0]): tuple(machine.coords[r, :-1].tolist())
        for r in range(len(machine))
    }
    for depth in range(1, machine.coords.shape[1]):
        amount, gbs = {}, {}
        for (a, b), bytes_ in sent.items():
            one, other = (tuple(machine.coords[rows[end], :depth].tolist()) for end in (a, b))
            if one != other and one[:-1] == other[:-1]:
                amount[one, other] = amount.get((one, other), 0.0) + bytes_
        for k in range(len(found)):
            ends = [coords.get(int(end[k])) for end in (found.source, found.target)]
            if None not in ends:
                one, other = (end[:depth] for end in ends)
                gbs[one, other] = gbs.get((one, other), 0.0) + float(found.bandwidth[k])
        worst = max([worst, *(amount[k] / gbs[k] / 1e9 for k in amount if gbs.get(k))])
    return worst


@given(traffic())
def test_what_is_listed_takes_as_long_as_loops_say(drawn):
    machine, rows, pairs, bytes_ = drawn
    a, b = (np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1))
    cut, direct = cut_times(machine, rows, Traffic.of(a, b, np.array(bytes_)))
    sent = dict(zip(pairs, bytes_, strict=True))
    assert direct == pytest.approx(direct_by_loops(machine, rows, sent), rel=1e-5)
    demand = Demand.of(machine, Traffic.of(rows[a], rows[b], np.array(bytes_)))
    assert cut == pytest.approx(cut_time(machine, demand))


@given(traffic())
def test_everyone_to_everyone_is_the_same_pair_by_pair(drawn):
    machine, rows, _, _ = drawn
    a, b = np.nonzero(~np.eye(len(rows), dtype=bool))
    plain = cut_times(machine, rows, Traffic.of(a, b, 2e9))
    everyone = Traffic.everyone(np.arange(len(rows)), 1, 2e9)
    assert cut_times(machine, rows, everyone) == pytest.approx(plain)


@pytest.mark.parametrize("pattern", ["alltoall", "stencil:auto", "ring", "allreduce"])
@pytest.mark.parametrize("spec", SPECS)
def test_no_routing_is_faster_than_the_low_end(spec, pattern):
    machine = MACHINES[spec]
    algorithm = "at-once" if pattern == "alltoall" else "library"
    model = Predictor(machine, Job(pattern, 2, 1e8, algorithm))
    cost = QuickCost(model)
    for rows in list(combinations(range(0, len(machine), 2), 4))[::23]:
        span = cost.of(np.array(rows))
        assert span.low <= span.likely * (1 + 1e-9) <= span.high * (1 + 1e-9) ** 2
        assert span.low <= model.time(model.place(np.array(rows))) * (1 + 1e-9)


@pytest.mark.parametrize("spec", ["torus:4x4,bw=1", "tree:2x2x2,dist=1:2:3"])
def test_elsewhere_it_is_what_a_search_goes_by(spec):
    machine = parse_spec(spec)
    model = Predictor(machine, Job("ring", bytes=1e9))
    cost = QuickCost(model)
    near, far = (cost.of(np.array(rows)) for rows in ([0, 1, 2], [0, 3, 6]))
    assert near.low == near.high < far.likely
    assert bool(cost.timeless) == spec.startswith("tree")


def test_jobs_of_many_sizes_take_no_more_memory_than_those_of_a_few(monkeypatch):
    """What is sent is kept for the latest sizes alone, and costs the same when made again."""
    monkeypatch.setattr(quick_cost, "_KEPT_FLOWS", 500)
    model = Predictor(parse_spec("tree:8x64,bw=1:1"), Job("stencil:auto", 8, 1e6))
    cost, held = QuickCost(model), []
    spans = {}
    tracemalloc.start()
    for count in range(2, 302):
        spans[count] = cost.of(np.arange(count))
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[-1] - held[99] < 2e6  # 200 sizes of up to 300 nodes: 1,800 flows each
    for count in (2, 51, 300):
        assert QuickCost(model).of(np.arange(count)) == spans[count]
