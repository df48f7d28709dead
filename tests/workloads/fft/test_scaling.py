"""Fits of T = C p^(-gamma): exact on the model, intervals that hold it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from placement.errors import UsageError
from workloads.fft.scaling import fit_gamma, levels


@given(st.floats(-0.5, 2), st.floats(1e-6, 1e6), st.sets(st.integers(1, 10**6), min_size=2))
def test_the_model_itself_is_found(gamma, constant, ranks):
    ranks = sorted(ranks)
    found = fit_gamma(ranks, [constant * p**-gamma for p in ranks]).whole
    assert found.gamma == pytest.approx(gamma, abs=1e-6)
    assert found.constant == pytest.approx(constant, rel=1e-4)
    assert found.points == len(ranks)


def test_two_pieces_that_meet_at_the_chassis():
    ranks = [2**k for k in range(2, 14)]
    seconds = [3 * p**-0.84 if p <= 64 else 4 * p**-0.78 for p in ranks]
    found = fit_gamma(ranks, seconds, break_at=64, level="chassis")
    assert found.inside.gamma == pytest.approx(0.84)
    assert found.beyond.gamma == pytest.approx(0.78)
    assert (found.inside.last, found.beyond.first) == (64, 128)


def test_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(1)
    ranks = np.array([4, 8, 16, 32, 64, 128])
    held = 0
    for _ in range(400):
        noisy = 2 * ranks**-0.8 * np.exp(rng.normal(0, 0.1, len(ranks)))
        fit = fit_gamma(ranks, noisy).whole
        held += fit.low <= 0.8 <= fit.high
    assert 0.91 < held / 400 < 0.985


def test_two_points_have_no_interval():
    fit = fit_gamma([1, 2], [1.0, 0.5]).whole
    assert (fit.gamma, fit.low, fit.high) == (1.0, -math.inf, math.inf)


def test_a_side_with_too_few_points_has_no_fit():
    found = fit_gamma([1, 2, 4], [4, 2, 1], break_at=1)
    assert found.inside is None
    assert found.beyond is not None


@pytest.mark.parametrize(
    ("ranks", "seconds"),
    [
        ([1], [1.0]),
        ([2, 2], [1, 2]),
        ([], []),
        ([1, 2], [1, 0]),
        ([1, 2], [1]),
        ([0, 1], [1, 2]),
        ([1, 2], [1, math.nan]),
    ],
)
def test_no_fit(ranks, seconds):
    with pytest.raises(UsageError):
        fit_gamma(ranks, seconds)


def test_levels_count_compute_nodes_alone():
    machine = nidmap.load_machine("dragonfly:groups=3,chassis=2,blades=4,nodes=4")
    assert levels(machine, ppn=2) == {"blade": 8, "chassis": 32, "group": 64, "system": 192}
