# SPDX-License-Identifier: Apache-2.0
"""A simulated network with set rates: the fit finds them, and says where a routing cannot be."""

from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.workloads.calibrate.choice import (
    MARGIN,
    MeasurePlan,
    choose_sets,
    margins,
    predict_table,
    with_limited_nodes,
)
from nidmap.workloads.calibrate.result import Readings, fit_shares, per_gb, result_of

SPECS = ("minicray:dragonfly", "minicray:torus", "minicray:fattree")


@cache
def case(spec):
    machine, _ = with_limited_nodes(nidmap.load_machine(spec))
    rows = np.arange(len(machine))
    return machine, choose_sets(machine, rows)


def times(table, shares):
    return (table.seconds / shares).max(axis=1)


def clear(table, shares):
    """Return the classes that are the bottleneck by a margin in a set."""
    taken = table.seconds / shares
    second = np.sort(taken, axis=1)[:, -2]
    return {name for k, name in enumerate(table.classes) if (taken[:, k] > 1.1 * second).any()}


def fitted(table, measured):
    return fit_shares(table.seconds, measured, table.classes)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("scale", [1.0, 2.5e-4])
def test_set_rates_are_found_exactly(spec, scale):
    _, table = case(spec)
    fit = fitted(table, times(table, np.full(len(table.classes), scale)))
    clearest = margins(table.seconds).max(axis=0)
    reached = {k for k, m in zip(table.classes, clearest, strict=True) if m >= MARGIN}
    assert reached <= set(fit.shares)
    assert fit.shares == pytest.approx(dict.fromkeys(fit.shares, scale), rel=1e-6)
    assert fit.error == pytest.approx(0, abs=1e-9)
    assert fit.explains


@given(st.sampled_from((SPECS[0], SPECS[2])), st.data())
def test_rates_other_than_stated_are_found_where_they_bind(spec, data):
    _, table = case(spec)
    share = st.floats(0.92, 1)
    shares = np.array([data.draw(share) for _ in table.classes])
    assume(clear(table, shares) == set(table.classes))
    fit = fitted(table, times(table, shares))
    assert fit.shares == pytest.approx(dict(zip(table.classes, shares, strict=True)))


def test_a_class_that_is_nowhere_the_bottleneck_is_not_claimed():
    _, table = case("minicray:dragonfly")
    shares = np.array([0.1 if name == "injection" else 1.0 for name in table.classes])
    assert fitted(table, times(table, shares)).shares == pytest.approx({"injection": 0.1})


def test_a_routing_that_does_not_explain_the_times_is_said_to():
    """Times of the very same sets on a machine that routes otherwise, and times of nothing."""
    machine, table = case("minicray:dragonfly,routing=valiant")
    other = nidmap.load_machine("minicray:dragonfly,routing=single")
    measured = predict_table(other, np.arange(len(machine)), table.flows).seconds.max(axis=1)
    assert not fitted(table, measured).explains
    rng = np.random.default_rng(1)
    assert not fitted(table, 10.0 ** rng.uniform(0, 3, len(table.flows))).explains


def simulated(table, shares, noise, seed, rounds=10):
    """Return what rounds of readings of a network say."""
    rng = np.random.default_rng(seed)
    gb = times(table, shares)
    sizes = {f"flows {k}": (1000, 8000) for k in range(len(gb))}
    sizes |= {"alone": (1000, 8000), "copies": (1000, 8000), "step": (100, 200)}
    every = [*gb, 1.5 * gb[0], 0.01]
    found = []
    for _ in range(rounds):
        one = {}
        for (name, (short, long)), t in zip(list(sizes.items())[:-1], every, strict=True):
            one[f"{name} short"] = 1e-6 + t * short / 1e9 * rng.lognormal(0, noise)
            one[f"{name} long"] = 1e-6 + t * long / 1e9 * rng.lognormal(0, noise)
        one |= {"step short": 7e-6 + 1e-6, "step long": 7e-6 + 2e-6}
        one |= {"message": 2e-7, "node messages": 1e-7}
        one |= {"latency blade 0": 1.5e-6, "latency beyond 0": 1.9e-6}
        found.append(one)
    return Readings(found, sizes)


def measured(spec, shares, noise, seed=0):
    machine, table = case(spec)
    read = simulated(table, shares, noise, seed)
    hops = {"latency blade 0": 0.0, "latency beyond 0": 4.0}
    return result_of(machine, MeasurePlan([[0, 1]], table, {}, 0), read, hops)


def test_every_figure_of_a_quiet_machine_is_what_was_set():
    shares = np.full(4, 0.5)
    result = measured("minicray:dragonfly", shares, 0.0)
    figures = {one.key: one for one in result.figures}
    assert figures["bandwidth.injection"].value == pytest.approx(5)
    assert figures["bandwidth.blue"].value == pytest.approx(4.6875 / 2)
    assert figures["stated.payload_green"].value == pytest.approx(0.5)
    assert figures["sending.payload"].value == 1
    assert figures["sending.process"].value == pytest.approx(10 / 3)  # 1.5 times as long alone
    assert figures["sending.memory"].value == pytest.approx(200)
    assert figures["sending.message_us"].value == pytest.approx(0.2)
    assert figures["sending.nic_us"].value == pytest.approx(0.1)
    assert figures["sending.gap_us"].value == pytest.approx(7)
    assert figures["latency.mpi_us"].value == pytest.approx(1.5)
    assert figures["latency.hop_ns"].value == pytest.approx(100)
    assert result.unreached == ()


@settings(max_examples=12)
@given(st.integers(0, 10**6))
def test_noise_moves_figures_by_about_its_own_size(seed):
    result = measured("minicray:dragonfly", np.full(4, 0.5), 0.01, seed)
    figures = {one.key: one for one in result.figures}
    for key, true in {"injection": 5, "green": 2.625, "black": 7.875, "blue": 2.34375}.items():
        assert figures[f"bandwidth.{key}"].value == pytest.approx(true, rel=0.03)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    held = total = 0
    for seed in range(25):
        result = measured("minicray:dragonfly", np.full(4, 0.5), 0.01, seed)
        for one in result.figures:
            if one.key.startswith("stated.payload") and one.interval is not None:
                total += 1
                low, high = one.interval
                held += low <= 0.5 <= high
    assert total > 40
    assert held / total > 0.8


def test_a_class_without_a_set_is_assumed_in_proportion():
    machine, _ = with_limited_nodes(nidmap.load_machine("minicray:dragonfly"))
    rows = np.arange(8)
    table = choose_sets(machine, rows)
    read = simulated(table, np.full(4, 0.25), 0.0, 0)
    hops = {"latency blade 0": 0.0, "latency beyond 0": 4.0}
    result = result_of(machine, MeasurePlan([[0, 1]], table, {}, 0), read, hops)
    assert result.unreached == ("blue",)
    (blue,) = (one for one in result.figures if one.key == "bandwidth.blue")
    assert (blue.mark, blue.value) == ("assumed", pytest.approx(4.6875 / 4))


@given(st.floats(1e-3, 1e3), st.floats(0, 1), st.integers(1, 10**6), st.integers(2, 16))
def test_what_does_not_grow_with_the_bytes_cancels(gb, fixed, short, times_longer):
    sizes = (short, short * times_longer)
    seconds = [np.full(3, fixed * gb * short / 1e9 + gb * size / 1e9) for size in sizes]
    assert per_gb(*seconds, sizes) == pytest.approx(np.full(3, gb))
