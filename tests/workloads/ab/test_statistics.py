"""The intervals hold the truth as often as they say: synthetic data with known ratios."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.ab.analysis import analyse, comparison_sentence, paired_ratios, pool_runs
from workloads.ab.arms import schedule_blocks
from workloads.ab.statistics import FEWEST, mean_interval, student_quantile
from workloads.results import Run

#: Cases a coverage is counted over: 3 standard errors of 95 % are then 3.8 points.
CASES = 300
OFF = 3 * math.sqrt(0.95 * 0.05 / CASES)


def noise(rng, kind, launches, blocks):
    if kind == "bursts":  # another job's traffic in one block of ten
        hit = rng.random((launches, blocks)) < 0.1
        sign = rng.choice([-1, 1], (launches, blocks))
        return rng.normal(size=(launches, blocks)) + hit * sign * rng.exponential(
            15, (launches, blocks)
        )
    if kind == "skewed":
        return rng.lognormal(size=(launches, blocks)) - 1  # the median is 0
    if kind == "drifting":  # one arm grows slower: the mean over the run is what is asked
        slope = np.linspace(-2, 2, blocks) * rng.choice([-1, 1])
        return rng.normal(size=(launches, blocks)) + slope
    if kind == "heavy":
        return rng.standard_t(3, (launches, blocks))
    return rng.normal(size=(launches, blocks))


@pytest.mark.parametrize("kind", ["normal", "heavy", "bursts", "skewed", "drifting"])
@pytest.mark.parametrize(
    ("launches", "blocks", "between"),
    [(1, 6, 0), (1, 12, 0), (1, 30, 0), (2, 12, 1), (3, 12, 0.5), (5, 8, 1)],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(kind, launches, blocks, between):
    rng = np.random.default_rng(launches * 1000 + blocks)
    truth, held = 1.07, 0
    for _ in range(CASES):
        logs = math.log(truth) + 0.03 * noise(rng, kind, launches, blocks)
        logs += 0.03 * between * rng.normal(size=(launches, 1))
        found = mean_interval(list(logs))
        held += found.low <= truth <= found.high
    assert held / CASES >= 0.95 - OFF
    if kind != "drifting":  # which no interval of so few blocks tells from noise
        assert held / CASES <= 0.95 + OFF + 0.01  # no wider than it need be


def test_six_blocks_of_little_noise_say_what_student_would():
    """A bootstrap of six has no tails: its ends were 0 and infinity for spreads of a few %."""
    from scipy import special

    rng = np.random.default_rng(4)
    wide = [mean_interval([0.01 * rng.normal(size=6)]).high for _ in range(CASES)]
    assert np.median(wide) < 1.02
    assert np.mean(np.array(wide) > 1.10) == 0
    logs = 0.01 * rng.normal(size=6)
    ends = logs.mean() + special.stdtrit(5, [0.025, 0.975]) * logs.std(ddof=1) / math.sqrt(6)
    found = mean_interval([logs])
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
        probe = mean_interval([0.03 * rng.normal(size=12)])
        logs = math.log(probe.smallest) + 0.03 * rng.normal(size=12)
        seen += mean_interval([logs]).shown
    assert 0.7 <= seen / CASES <= 0.97


@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=1, max_size=8), min_size=1, max_size=4),
    st.floats(-2, 2),
)
def test_a_factor_moves_the_interval_and_a_swap_turns_it(launches, shift):
    values = [np.round(np.array(one), 3) for one in launches]
    found = mean_interval(values)
    if sum(map(len, values)) < FEWEST:
        assert found is None
        return
    moved = mean_interval([one + shift for one in values])
    turned = mean_interval([-one for one in values])
    assert moved.ratio == pytest.approx(found.ratio * math.exp(shift), rel=1e-6)
    assert turned.ratio == pytest.approx(1 / found.ratio, rel=1e-6)
    assert found.low <= found.ratio * (1 + 1e-12)
    assert found.ratio <= found.high * (1 + 1e-12)
    assert turned.high == pytest.approx(1 / found.low, rel=1e-6)


def test_values_that_are_all_the_same_have_no_width():
    found = mean_interval([np.full(8, math.log(2))])
    assert (found.ratio, found.low, found.high) == pytest.approx((2, 2, 2))
    assert found.shown
    assert mean_interval([np.zeros(5)]) is None
    with pytest.raises(ValueError, match="not finite"):
        mean_interval([np.array([np.nan] * 8)])


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


def samples(rng, factors, *, launches=1, blocks=12, drift=0.0, noise=0.02, seed=0):
    """Return rows as a run leaves them: every arm's factor on one drifting, noisy machine."""
    rows, now = [], 0
    for launch in range(launches):
        luck = math.exp(0.05 * rng.normal())
        for block, turn in enumerate(schedule_blocks(len(factors), blocks + 1, f"{seed} {launch}")):
            for arm in turn:
                now += 1
                seconds = luck * math.exp(drift * now + noise * rng.normal()) * factors[arm] * 1e-3
                rows.append({
                    "launch": f"l{launch}", "block": block, "arm": ARMS[arm]["name"],
                    "warmup": int(block == 0), "max": 5 * seconds if block == 0 else seconds,
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
        rows = samples(rng, [1.0, 1.0, 1.0], launches=1 + 2 * (seed % 2), blocks=8, seed=seed)
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
    (logs,) = paired_ratios(rows[2:-1], "default", "auto")
    assert np.exp(logs) == pytest.approx(1 / 0.9)


def test_too_few_blocks_give_no_interval_and_no_claim():
    rng = np.random.default_rng(7)
    by_arm, _ = verdicts(samples(rng, [1.0, 0.5, 1.0], blocks=5))
    assert by_arm["auto"]["ratio"] is None
    assert by_arm["auto"]["verdict"].startswith("not enough")


def test_only_what_is_alike_is_pooled():
    from placement.errors import UsageError

    rng = np.random.default_rng(8)
    header = {"workload": "fft", "ranks": 2, "arms": ARMS[:2]}
    rows = samples(rng, [1.0, 1.0])
    other = [{**row, "launch": "l9"} for row in rows]
    _, both = pool_runs([Run("a", header, rows), Run("b", header, other)])
    assert len(both) == 2 * len(rows)
    with pytest.raises(UsageError, match="the same launch is in a and b"):
        pool_runs([Run("a", header, rows), Run("b", header, rows)])
    with pytest.raises(UsageError, match="another ranks: 4, not 2"):
        pool_runs([Run("a", header, rows), Run("b", {**header, "ranks": 4}, other)])
    with pytest.raises(UsageError, match="other arms"):
        pool_runs([Run("a", header, rows), Run("b", {**header, "arms": ARMS}, other)])
    with pytest.raises(UsageError, match="no A/B samples"):
        pool_runs([Run("a", header, rows), Run("b", {}, [])])
