# SPDX-License-Identifier: Apache-2.0
"""The intervals hold the truth as often as they say: synthetic data with known ratios."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.workloads.ab.analysis import analyse, comparison_sentence, paired_ratios
from nidmap.workloads.ab.arms import schedule_blocks
from nidmap.workloads.ab.statistics import FEWEST, mean_interval, student_quantile

#: Cases a coverage is counted over: 3 standard errors of 95 % are then 3.8 points.
CASES = 300
OFF = 3 * math.sqrt(0.95 * 0.05 / CASES)


def noise(rng, kind, blocks):
    if kind == "bursts":  # another job's traffic in one block of ten
        hit = rng.random(blocks) < 0.1
        return rng.normal(size=blocks) + hit * rng.choice([-1, 1], blocks) * rng.exponential(
            15, blocks
        )
    if kind == "skewed":
        return rng.lognormal(size=blocks) - 1  # the median is 0
    if kind == "drifting":  # one arm grows slower: the mean over the run is what is asked
        return rng.normal(size=blocks) + np.linspace(-2, 2, blocks) * rng.choice([-1, 1])
    if kind == "heavy":
        return rng.standard_t(3, blocks)
    return rng.normal(size=blocks)


@pytest.mark.parametrize("kind", ["normal", "heavy", "bursts", "skewed", "drifting"])
@pytest.mark.parametrize("blocks", [6, 12, 30])
def test_the_interval_holds_the_truth_as_often_as_it_says(kind, blocks):
    rng = np.random.default_rng(blocks)
    truth, held = 1.07, 0
    for _ in range(CASES):
        found = mean_interval(math.log(truth) + 0.03 * noise(rng, kind, blocks))
        held += found.low <= truth <= found.high
    assert held / CASES >= 0.95 - OFF
    if kind != "drifting":  # which no interval of so few blocks tells from noise
        assert held / CASES <= 0.95 + OFF + 0.01  # no wider than it need be


def test_six_blocks_of_little_noise_say_what_student_would():
    """A bootstrap of six has no tails: its ends were 0 and infinity for spreads of a few %."""
    from scipy import special

    rng = np.random.default_rng(4)
    wide = [mean_interval(0.01 * rng.normal(size=6)).high for _ in range(CASES)]
    assert np.median(wide) < 1.02
    assert np.mean(np.array(wide) > 1.10) == 0
    logs = 0.01 * rng.normal(size=6)
    ends = logs.mean() + special.stdtrit(5, [0.025, 0.975]) * logs.std(ddof=1) / math.sqrt(6)
    found = mean_interval(logs)
    assert np.abs(np.log([found.low, found.high]) - ends).max() < 0.02


@given(st.floats(0.5, 0.999), st.integers(1, 60))
def test_student_s_quantiles_are_scipy_s(level, freedom):
    from scipy import special  # scipy.stats has the same and takes a second to load

    expected = special.stdtrit(freedom, 0.5 + level / 2)
    assert student_quantile(level, freedom) == pytest.approx(expected, rel=1e-6)


def test_an_interval_that_says_nothing_is_not_printed_as_one():
    rng = np.random.default_rng(9)
    rows = samples(rng, [1.0, 1.0, 1.0], blocks=6, noise=1.5)
    by_arm, _ = verdicts(rows)
    entry = by_arm["auto"]
    assert entry["missing"] > 0
    assert entry["verdict"] == f"not enough blocks: about {entry['missing']} more"
    assert comparison_sentence(entry, 0.95).endswith(entry["verdict"])
    enough = samples(rng, [1.0, 1.0, 1.0], blocks=6 + 2 * entry["missing"], noise=1.5)
    assert verdicts(enough)[0]["auto"]["missing"] == 0


def test_a_difference_of_the_stated_size_is_seen_four_times_in_five():
    rng = np.random.default_rng(5)
    seen = 0
    for _ in range(CASES):
        probe = mean_interval(0.03 * rng.normal(size=12))
        logs = math.log(probe.smallest) + 0.03 * rng.normal(size=12)
        seen += mean_interval(logs).shown
    assert 0.7 <= seen / CASES <= 0.97


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=32), st.floats(-2, 2))
def test_a_factor_moves_the_interval_and_a_swap_turns_it(logs, shift):
    values = np.round(np.array(logs), 3)
    found = mean_interval(values)
    if len(values) < FEWEST:
        assert found is None
        return
    moved, turned = mean_interval(values + shift), mean_interval(-values)
    assert moved.ratio == pytest.approx(found.ratio * math.exp(shift), rel=1e-6)
    assert turned.ratio == pytest.approx(1 / found.ratio, rel=1e-6)
    assert found.low <= found.ratio * (1 + 1e-12)
    assert found.ratio <= found.high * (1 + 1e-12)
    assert turned.high == pytest.approx(1 / found.low, rel=1e-6)


def test_values_that_are_all_the_same_have_no_width():
    found = mean_interval(np.full(8, math.log(2)))
    assert (found.ratio, found.low, found.high) == pytest.approx((2, 2, 2))
    assert found.shown
    assert mean_interval(np.zeros(5)) is None
    with pytest.raises(ValueError, match="not finite"):
        mean_interval(np.array([np.nan] * 8))


@given(st.integers(1, 6), st.integers(0, 12), st.integers())
def test_blocks_have_each_arm_once_by_the_seed(arms, blocks, seed):
    turns = schedule_blocks(arms, blocks, seed)
    assert turns == schedule_blocks(arms, blocks, seed)
    assert [sorted(turn) for turn in turns] == [list(range(arms))] * blocks


def test_both_orders_of_a_block_occur_about_as_often():
    first = [turn[0] for turn in schedule_blocks(2, 2000, 9)]
    assert 0.45 < sum(first) / 2000 < 0.55


ARMS = [
    {"name": "default", "order": "default", "members": [0, 1]},
    {"name": "auto", "order": "auto", "members": [1, 0]},
    {"name": "default again", "order": "default", "members": [0, 1]},
]


def samples(rng, factors, *, blocks=12, drift=0.0, noise=0.02, seed=0):
    """Return rows as a run leaves them: every arm's factor on one drifting, noisy machine."""
    rows, now = [], 0
    for block, turn in enumerate(schedule_blocks(len(factors), blocks + 1, seed)):
        for arm in turn:
            now += 1
            seconds = math.exp(drift * now + noise * rng.normal()) * factors[arm] * 1e-3
            rows.append({
                "block": block, "arm": ARMS[arm]["name"], "warmup": int(block == 0),
                "max": 5 * seconds if block == 0 else seconds,
            })  # fmt: skip
    return rows


def verdicts(rows, arms=ARMS):
    found = analyse({"arms": arms}, rows)
    return {c["arm"]: c for c in found["comparisons"]}, found


def test_a_known_ratio_is_found_under_a_drift_that_is_larger():
    rng = np.random.default_rng(1)
    rows = samples(rng, [1.0, 1 / 1.05, 1.0], drift=1e-3, noise=0.01)
    by_arm, found = verdicts(rows)
    assert by_arm["auto"]["verdict"] == "faster"
    assert by_arm["auto"]["low"] < 1.05 < by_arm["auto"]["high"]
    assert by_arm["auto"]["high"] / by_arm["auto"]["low"] < 1.04
    assert by_arm["default again"]["verdict"].startswith("no difference shown, as it should be")
    assert found["trusted"]
    slow, _ = verdicts(samples(rng, [1.0, 1.05, 1.0], noise=0.01))
    assert slow["auto"]["verdict"] == "slower"


def test_the_same_order_twice_shows_a_difference_at_about_the_nominal_rate():
    rng = np.random.default_rng(2)
    shown = 0
    for seed in range(200):
        rows = samples(rng, [1.0, 1.0, 1.0], blocks=8, seed=seed)
        by_arm, _ = verdicts(rows)
        shown += by_arm["auto"]["shown"]
    assert shown / 200 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_no_claim_stands_where_the_control_differs_from_itself():
    rng = np.random.default_rng(3)
    by_arm, found = verdicts(samples(rng, [1.0, 0.8, 0.9], noise=0.01))
    assert not found["trusted"]
    assert "not to be trusted" in by_arm["auto"]["verdict"]
    assert "prove nothing" in by_arm["default again"]["verdict"]


def test_an_arm_in_the_same_order_is_a_control_whatever_it_is_called():
    rng = np.random.default_rng(4)
    same = [ARMS[0], {**ARMS[1], "members": [0, 1]}]
    by_arm, found = verdicts(samples(rng, [1.0, 0.9], noise=0.01), same)
    assert "prove nothing" in by_arm["auto"]["verdict"]
    assert not found["trusted"]


def test_warm_ups_and_blocks_cut_short_do_not_count():
    rows = samples(np.random.default_rng(6), [1.0, 0.9], noise=0.0)
    by_arm, _ = verdicts(rows[:-1], ARMS[:2])
    assert by_arm["auto"]["blocks"] == 11
    logs = paired_ratios(rows[2:-1], "default", "auto")
    assert np.exp(logs) == pytest.approx(1 / 0.9)


def test_too_few_blocks_give_no_interval_and_no_claim():
    rng = np.random.default_rng(7)
    by_arm, _ = verdicts(samples(rng, [1.0, 0.5, 1.0], blocks=5))
    assert by_arm["auto"]["ratio"] is None
    assert by_arm["auto"]["verdict"].startswith("not enough")


def test_interval():
    interval = mean_interval(np.log([1.10, 1.12, 1.09, 1.11, 1.10, 1.12, 1.11, 1.10]))
    assert interval.shown
    assert round(interval.ratio, 2) == 1.11
    assert round(interval.low, 3) == 1.096
    assert interval.missing == 0
    assert mean_interval(np.log([1.1, 0.4, 2.3, 0.7, 1.9, 0.5])).missing == 26
