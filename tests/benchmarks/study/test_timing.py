# SPDX-License-Identifier: Apache-2.0
"""The study's shortcuts against the predictor itself."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from benchmarks.study.setting import COMMON, Setting, algorithm
from benchmarks.study.timing import Exchange, Stepped, Transform, greener, predictor, rewire
from nidmap.placement.network import channels
from nidmap.placement.options import with_figures
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.background import Other, shared_channels
from tests.rankmap.helpers import time_of

SPEC = "dragonfly:groups=3,chassis=2,blades=4,nodes=2,injection=10,global=12,wiring=same-chassis"
MACHINE = nidmap.load_machine(SPEC)
JOBS = [Other(np.arange(20, 30)), Other(np.array([31, 33, 44, 45, 47]))]


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(0, 47), min_size=12, max_size=12, unique=True),
    st.sampled_from(["minimal", "single", "valiant"]),
    st.sampled_from(["at-once", "pairwise", "ring"]),
    st.floats(0, 8),
    st.sampled_from([None, 0.5, 2.0]),
    st.sampled_from([1.0, 0.64]),
    st.sampled_from([1e3, 1e6]),
)
def test_kept_steps_say_what_the_predictor_says(nodes, routing, how, load, process, payload, size):
    rows = np.array(nodes)
    jobs = [Other(job.rows[~np.isin(job.rows, rows)], load) for job in JOBS]
    setting = Setting(routing, process, payload, load)
    model = predictor(MACHINE, "fft:3x4", 1, how, setting, jobs, size)
    # as MP-sort and the exchanges of the papers wait, step for step
    expected = time_of(model.assuming(ahead=0.0), rows)
    kept = Stepped(predictor(MACHINE, "fft:3x4", 1, how, replace(COMMON, routing=routing)), rows)
    whole = channels(MACHINE, routing).bandwidth * payload
    rest = shared_channels(MACHINE, jobs, routing).left(whole) if load else whole
    assert kept.seconds(rest, [size, size], process) == pytest.approx(expected)


def test_detours_go_round_the_links_of_a_group_and_no_others():
    rows = np.array([0, 1, 2, 3, 16, 17])
    sent = Stepped(predictor(MACHINE, "alltoall", 2, "at-once"), rows)
    found = channels(MACHINE, "minimal")
    wide = np.where(np.isin(found.kind, [found.kinds.index("green"), found.kinds.index("black")]),
                    np.inf, found.bandwidth)  # fmt: skip
    shortest, half, free = (sent.seconds(found.bandwidth, [1e6], None, d) for d in (0, 0.5, 1))
    rest = sent.fixed
    assert free == pytest.approx(sent.seconds(wide, [1e6], None))
    assert half - rest == pytest.approx(((shortest - rest) * (free - rest)) ** 0.5)
    assert free < shortest


@pytest.mark.parametrize("size", [100.0, 5000.0, 1e6])
def test_a_line_in_the_bytes_says_what_the_predictor_says(size):
    rows = np.arange(10)
    how = algorithm("alltoall", size, 40)
    expected = time_of(predictor(MACHINE, "alltoall", 4, how, COMMON, JOBS, size), rows)
    exchange = Exchange(MACHINE, rows, "alltoall", 4, COMMON, JOBS)
    assert exchange.seconds([size], [40]) == pytest.approx(expected)


def test_both_transposes_of_a_transform_have_their_own_size():
    rows = np.arange(8)
    found = Transform(Exchange(MACHINE, rows, "fft:2x8", 2), (2, 8)).seconds(256)
    local = 8 * 256**3 / 16
    expected = 0.0
    for phase, count in ((0, 8), (1, 2)):
        asked = predictor(MACHINE, "fft:2x8", 2, "pairwise", COMMON, (), local / count)
        one = list(asked.phases(asked.place(rows)))[phase]
        expected += asked.cost(one, None).seconds
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("call", "size", "ranks", "how"),
    [
        ("alltoall", 256, 8, "bruck"),
        ("alltoall", 256, 7, "scattered"),
        ("alltoall", 257, 8, "scattered"),
        ("alltoall", 32768, 8, "scattered"),
        ("alltoall", 32769, 8, "pairwise"),
        ("alltoallv", 1, 1000, "at-once"),
    ],
)
def test_the_algorithm_is_chosen_as_mpich_does(call, size, ranks, how):
    assert algorithm(call, size, ranks) == how


def test_machines_that_are_varied_share_nothing_with_the_first():
    first = time_of(
        Predictor(with_figures(MACHINE, latency=0), Job("alltoall", 1, 1e6, algorithm="")),
        np.arange(8),
    )
    fast = greener(MACHINE, 1e6)
    assert (
        time_of(
            Predictor(with_figures(fast, latency=0), Job("alltoall", 1, 1e6, algorithm="")),
            np.arange(8),
        )
        < first
    )
    wired = rewire(MACHINE, "aligned", 8)
    assert len(channels(wired)) != len(channels(MACHINE))
    assert (
        time_of(
            Predictor(with_figures(MACHINE, latency=0), Job("alltoall", 1, 1e6, algorithm="")),
            np.arange(8),
        )
        == first
    )
