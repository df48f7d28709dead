# SPDX-License-Identifier: Apache-2.0
"""The one function of a phase's time, by hand and by what it may never do; frozen scenarios."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.network.channel_loads import TAKEN
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.constants import Constants
from nidmap.rankmap.predict.gain import time_range
from nidmap.rankmap.predict.phase_cost import PhaseLoads, Sent, phase_cost

TORUS = nidmap.load_machine("torus:4x4,bw=1,latency=0")
KNOWN = Constants(
    2.0, 500.0, message_us=0.0, nic_us=0.0, meeting=0.2, process_gbs=4.0, loss=0.5, ahead=0.25
)


def exchange(everyone=True, dependent=False):
    """Return the phase of an all-to-all in steps."""
    model = Predictor(TORUS, Job("alltoall", 1, 1e9, "ring"))
    [phase] = model.phases(model.place(np.arange(4)))
    return dataclasses.replace(phase, everyone=everyone, dependent=dependent)


def straight(minimal, best):
    """Return the seconds of the busiest link by share of the detours, from one end to the other."""
    return minimal + TAKEN * (best - minimal)


def test_detours_steps_and_latency_by_hand():
    together = Sent(1.0, straight(4.0, 2.0), 0.8, 1.0, 3e9)
    steps = (Sent(2.0, np.array([1.5]), 0.0, 1.0, 1e9), Sent(1.0, np.array([2.0]), 0.0, 1.0, 1e9))
    loads = PhaseLoads(exchange(), together, steps, {"x": 1.5})
    at_once = min((4 - 2 * x) * (1 + 0.5 * 0.8 * x) for x in TAKEN)  # links alone are the limit
    ahead, longer = 0.25, 1 + 0.2 * 0.75
    moved = (5.0 - ahead * (5.0 - at_once)) * longer
    cost = phase_cost(loads, KNOWN)
    assert cost.bandwidth == pytest.approx(moved)
    assert cost.latency == pytest.approx(3 * (2e-6 + 1.5 * 500e-9))
    assert cost.bottleneck == "steps"
    assert cost.seconds == pytest.approx(moved + cost.latency)
    later = phase_cost(loads, dataclasses.replace(KNOWN, ahead=0.75))
    assert later.bandwidth == pytest.approx((5.0 - 0.75 * (5.0 - at_once)) * (1 + 0.2 * 0.25))


def test_steps_that_depend_on_each_other_do_not_run_ahead():
    together = Sent(1.0, np.array([1.0]), 0.0, 0.0, 0.0)
    steps = (Sent(3.0, np.array([1.5]), 0.0, 0.0, 0.0),)
    cost = phase_cost(PhaseLoads(exchange(dependent=True), together, steps, {}), KNOWN)
    assert cost.bandwidth == pytest.approx(4.5)


@given(
    st.floats(0.1, 9), st.floats(0.1, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 9),
    st.floats(0, 1e10),
)  # fmt: skip
def test_all_at_once_lies_between_the_best_division_and_minimal_ways(
    minimal, share, detoured, loss, own_s, size
):
    best, phase = minimal * share, dataclasses.replace(exchange(), steps=None)
    together = Sent(1.0, straight(minimal, best), detoured, own_s, size)
    known = dataclasses.replace(KNOWN, loss=loss)
    seconds = phase_cost(PhaseLoads(phase, together, None, {}), known).bandwidth
    least = max(own_s, size / 4e9)
    assert max(best, least) <= seconds * (1 + 1e-9)
    assert seconds <= max(minimal, least) * (1 + 1e-9)


def test_steps_are_not_looked_at_beyond_what_anybody_asks():
    looked_at = []

    def steps():
        for k in range(4):
            looked_at.append(k)
            yield Sent(1.0, np.array([1.0]), 0.0, 0.0, 0.0)

    together = Sent(1.0, np.array([1.0]), 0.0, 0.0, 0.0)
    loads = PhaseLoads(exchange(), together, steps(), {})
    known = dataclasses.replace(KNOWN, ahead=0.0)
    assert math.isinf(phase_cost(loads, known, below=1.5).bandwidth)
    assert looked_at == [0, 1]
    assert phase_cost(loads, known, below=0.5).bandwidth >= 0.5
    assert looked_at == [0, 1]


def test_report_search_and_range_say_the_same_seconds():
    for words, name in itertools.product(("alltoall", "stencil:4x4", "fft:4x4"), ("theta", "lumi")):
        model = Predictor(nidmap.load_machine(name), Job(words, 2, 1e5))
        placement = model.place(np.arange(0, 80, 10))
        seconds = model.time(placement)
        assert model.predict(placement).time_s == pytest.approx(seconds)
        assert time_range(model, placement).likely == pytest.approx(seconds)


def test_a_scenario_is_frozen_and_others_share_what_is_worked_out():
    model = Predictor(nidmap.load_machine("theta"), Job("fft:4x4", 2, 1e6))
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.steps = 3
    placement = model.place(np.arange(8))
    free = model.assuming(loss=0.0, ahead=1.0)
    assert free.cache is model.cache
    assert free.time(placement) < model.time(placement)
    assert model.constants.loss > 0
    assert model.on(4).place(np.arange(4)).ranks == 16


def test_what_a_rank_sends_is_known_of_all_to_alls_alone():
    seconds = {}
    for words, spec in itertools.product(("ring", "alltoall"), ("", ",process=inf")):
        machine = nidmap.load_machine(f"pizdaint{spec}")
        model = Predictor(machine, Job(words, 1, 1e6, "" if words == "ring" else "at-once"))
        seconds[words, spec] = model.predict(model.place(np.arange(4))).phases[0].cost.bandwidth
    assert seconds["ring", ""] == seconds["ring", ",process=inf"] < 1e6 / 3.2e9
    assert seconds["alltoall", ""] == pytest.approx(3e6 / 3.2e9)


def test_small_groups_of_slingshot_have_two_links_a_pair():
    machine = nidmap.load_machine("perlmutter")
    links = nidmap.placement.topologies.links(machine)
    local = links.kind == links.kinds.index("local")
    first = machine.router[:, 0]
    cpu = np.isin(links.a, first[machine.names >= "nid004000"])
    assert set(links.count[local & cpu]) == {2}
    assert set(links.count[local & ~cpu]) == {1}
    assert set(links.bandwidth[local & cpu]) == {50.0}
