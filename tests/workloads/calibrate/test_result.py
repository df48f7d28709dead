"""A simulated network with set rates: the fit finds them, and the routing."""

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
    without_stated_routing,
)
from nidmap.workloads.calibrate.result import Readings, fit_network, per_gb, result_of

SPECS = ("minicray:dragonfly", "minicray:torus", "minicray:fattree")


@cache
def case(spec):
    machine, _ = without_stated_routing(nidmap.load_machine(spec))
    rows = np.arange(len(machine))
    return machine, choose_sets(machine, rows)


def times(table, routing, shares):
    return (table.seconds[:, table.routings.index(routing)] / shares).max(axis=1)


def clear(table, routing, shares):
    """Return the classes that bind by a margin in a set."""
    taken = table.seconds[:, table.routings.index(routing)] / shares
    second = np.sort(taken, axis=1)[:, -2]
    return {name for k, name in enumerate(table.classes) if (taken[:, k] > 1.1 * second).any()}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("scale", [1.0, 2.5e-4])
def test_set_rates_are_found_exactly_and_the_routing_is_among_the_fits(spec, scale):
    _, table = case(spec)
    for routing in table.routings:
        network = fit_network(table, times(table, routing, np.full(len(table.classes), scale)))
        assert routing in network.alike
        fit = next(one for one in network.fits if one.routing == routing)
        clearest = margins(table.seconds)[:, table.routings.index(routing)].max(axis=0)
        reached = {k for k, m in zip(table.classes, clearest, strict=True) if m >= MARGIN}
        assert reached <= set(fit.shares)
        assert fit.shares == pytest.approx(dict.fromkeys(fit.shares, scale), rel=1e-6)
        if len(reached) == len(table.classes):
            assert fit.error == pytest.approx(0, abs=1e-9)


@given(st.sampled_from((SPECS[0], SPECS[2])), st.data())
def test_rates_other_than_stated_are_found_where_they_bind(spec, data):
    _, table = case(spec)
    routing = data.draw(st.sampled_from(table.routings))
    share = st.floats(0.92, 1)
    shares = np.array([data.draw(share) for _ in table.classes])
    bind = clear(table, routing, shares)
    assume(bind == set(table.classes))
    network = fit_network(table, times(table, routing, shares))
    fit = next(one for one in network.fits if one.routing == routing)
    assert fit.shares == pytest.approx(dict(zip(table.classes, shares, strict=True)))
    assert routing in network.alike


def test_a_class_that_binds_nowhere_is_not_claimed():
    _, table = case("minicray:dragonfly")
    shares = np.array([0.1 if name == "injection" else 1.0 for name in table.classes])
    network = fit_network(table, times(table, "single", shares))
    assert network.best.shares == pytest.approx({"injection": 0.1})


def test_the_routing_of_a_minicray_is_named():
    _, table = case("minicray:dragonfly")
    network = fit_network(table, times(table, "single", np.full(len(table.classes), 0.5)))
    assert network.alike == ("single",)
    assert network.best.routing == "single"
    assert network.fits[1].error > 0.05


def test_where_no_routing_fits_none_is_named():
    _, table = case("minicray:dragonfly")
    rng = np.random.default_rng(1)
    assert fit_network(table, 10.0 ** rng.uniform(0, 3, len(table.flows))).alike == ()


def simulated(table, routing, shares, noise, seed, rounds=10):
    """Return what rounds of readings of a network say."""
    rng = np.random.default_rng(seed)
    gb = times(table, routing, shares)
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


def measured(spec, routing, shares, noise, seed=0):
    machine, table = case(spec)
    read = simulated(table, routing, shares, noise, seed)
    hops = {"latency blade 0": 0.0, "latency beyond 0": 4.0}
    return result_of(machine, MeasurePlan([[0, 1]], table, {}, 0), read, lambda _: hops)


def test_every_figure_of_a_quiet_machine_is_what_was_set():
    shares = np.full(4, 0.5)
    result = measured("minicray:dragonfly", "single", shares, 0.0)
    figures = {one.key: one for one in result.figures}
    assert figures["bandwidth.injection"].value == pytest.approx(5)
    assert figures["bandwidth.blue"].value == pytest.approx(4.6875 / 2)
    assert figures["stated.payload_green"].value == pytest.approx(0.5)
    assert figures["sending.payload"].value == 1
    assert figures["sending.routing"].value == ["single"]
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
    result = measured("minicray:dragonfly", "single", np.full(4, 0.5), 0.01, seed)
    figures = {one.key: one for one in result.figures}
    for key, true in {"injection": 5, "green": 2.625, "black": 7.875, "blue": 2.34375}.items():
        assert figures[f"bandwidth.{key}"].value == pytest.approx(true, rel=0.03)
    assert figures["sending.routing"].value == ["single"]


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    held = total = 0
    for seed in range(25):
        result = measured("minicray:dragonfly", "single", np.full(4, 0.5), 0.01, seed)
        for one in result.figures:
            if one.key.startswith("stated.payload") and one.interval is not None:
                total += 1
                low, high = one.interval
                held += low <= 0.5 <= high
    assert total > 40
    assert held / total > 0.8


def test_a_class_without_a_set_is_assumed_in_proportion():
    machine, _ = without_stated_routing(nidmap.load_machine("minicray:dragonfly"))
    rows = np.arange(8)
    table = choose_sets(machine, rows)
    read = simulated(table, "single", np.full(4, 0.25), 0.0, 0)
    hops = {"latency blade 0": 0.0, "latency beyond 0": 4.0}
    result = result_of(machine, MeasurePlan([[0, 1]], table, {}, 0), read, lambda _: hops)
    assert result.unreached == ("blue",)
    (blue,) = (one for one in result.figures if one.key == "bandwidth.blue")
    assert (blue.mark, blue.value) == ("assumed", pytest.approx(4.6875 / 4))


@given(st.floats(1e-3, 1e3), st.floats(0, 1), st.integers(1, 10**6), st.integers(2, 16))
def test_what_does_not_grow_with_the_bytes_cancels(gb, fixed, short, times_longer):
    sizes = (short, short * times_longer)
    seconds = [np.full(3, fixed * gb * short / 1e9 + gb * size / 1e9) for size in sizes]
    assert per_gb(*seconds, sizes) == pytest.approx(np.full(3, gb))
