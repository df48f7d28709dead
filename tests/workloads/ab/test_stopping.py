# SPDX-License-Identifier: Apache-2.0
"""Looking at a measurement before its end costs nothing of its level: simulated without a gain."""

import math

import numpy as np
import pytest

from nidmap.workloads.ab.analysis import analyse
from nidmap.workloads.ab.arms import schedule_blocks
from nidmap.workloads.ab.statistics import FIRST_LOOK, looks_after, mean_interval, nominal_level
from tests.workloads.ab.test_statistics import ARMS, noise

#: Cases a rate is counted over: 3 standard errors of 5 % are then 5.3 points.
CASES = 150


def found_early(logs, at, level):
    """Tell whether an interval at one of the looks shows a difference."""
    return any(mean_interval(logs[:n], level=level).shown for n in at)


@pytest.mark.parametrize("kind", ["normal", "heavy", "bursts"])
def test_a_difference_that_is_none_is_found_no_more_often_than_stated(kind):
    rng = np.random.default_rng(16)
    at, found = looks_after(16), 0
    for _ in range(CASES):
        logs = 0.03 * noise(rng, kind, 16)
        found += found_early(logs, at, nominal_level(at, 0.95))
    assert found / CASES <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / CASES)


def test_intervals_of_the_plain_level_would_find_it_twice_as_often():
    rng = np.random.default_rng(16)
    found = sum(found_early(0.03 * rng.normal(size=16), looks_after(16), 0.95) for _ in range(100))
    assert found / 100 > 0.09


@pytest.mark.parametrize("blocks", [1, 7, 8, 12, 100, 1000])
def test_looks_are_few_and_end_with_the_last_block(blocks):
    at = looks_after(blocks)
    assert at[-1] == blocks
    assert at[0] == min(blocks, FIRST_LOOK)
    assert list(at) == sorted(set(at))
    assert len(at) <= 50
    assert 0.95 <= nominal_level(at, 0.95) < 0.998


def rows_of(blocks, gain, seed=0):
    """Return the samples of launches: the second arm is `gain` times as fast."""
    rng = np.random.default_rng(seed)
    return [
        {"block": block, "arm": ARMS[arm]["name"], "warmup": 0,
         "max": math.exp(0.02 * rng.normal()) / gain**arm}
        for block, turn in enumerate(schedule_blocks(2, blocks, seed))
        for arm in turn
    ]  # fmt: skip


def test_readers_take_the_level_that_looking_early_needs():
    rows = rows_of(10, 1.2)
    plain, looked = (
        analyse({"arms": ARMS[:2], **more}, rows)["comparisons"][0]
        for more in ({}, {"looks": [8, 9, 10, 11, 12]})
    )
    assert looked["low"] < plain["low"] < plain["high"] < looked["high"]
