# SPDX-License-Identifier: Apache-2.0
"""What one rank sends at most, and the share of the wire that is payload."""

import math

import numpy as np
import pytest

import nidmap
from nidmap.placement.commands import run as command
from nidmap.placement.errors import UsageError
from nidmap.placement.options import with_figures
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.predict import Job, Predictor, predict
from nidmap.rankmap.predict.background import Other
from tests.rankmap.helpers import time_of

LINE = "torus:4x4,bw=2,injection=5"


@pytest.mark.parametrize("algorithm", ["", "pairwise", "ring", "bruck"])
def test_a_rank_that_is_slow_takes_as_long_as_its_own_bytes(algorithm):
    machine = parse_spec(LINE)
    asked = Predictor(
        with_figures(machine, latency=0, process=1e-3), Job("alltoall", 2, 1e9, algorithm=algorithm)
    )
    blocks = 7 if algorithm != "bruck" else 12  # 8 ranks: 3 rounds of 4 blocks
    assert asked.time(asked.place(np.arange(4))) == pytest.approx(blocks * 1e9 / 1e6)


@pytest.mark.parametrize(
    ("pattern", "sent"),
    [
        ("ring", 1),
        ("stencil:4x2", 3),
        ("stencil:4x2,weights=1:4", 6),
        ("fft:2x4", 4),
        ("sort", 7 / 8),
    ],
)
def test_what_the_busiest_rank_sends(pattern, sent):
    found = predict(
        with_figures(parse_spec(LINE), latency=0, process=1e-6),
        "0-3",
        Job(pattern, ppn=2, bytes=1e6),
    )
    assert found.time_s == pytest.approx(sent * 1e6 / 1e3)


def test_ranks_of_one_node_are_limited_too():
    machine = parse_spec(LINE)
    free = predict(
        with_figures(machine, latency=0, memory=math.inf), "0", Job("alltoall", ppn=4, bytes=1e6)
    )
    assert free.time_s == 0
    found = predict(
        with_figures(machine, latency=0, process=1.0), "0", Job("alltoall", ppn=4, bytes=1e6)
    )
    assert found.time_s == pytest.approx(3e-3)


def test_a_fast_rank_changes_nothing():
    machine = parse_spec(LINE)
    for algorithm in ("", "pairwise"):
        times = [
            time_of(
                Predictor(
                    with_figures(machine, process=p), Job("alltoall", 2, 1e6, algorithm=algorithm)
                ),
                np.arange(6),
            )
            for p in (None, 1e6)
        ]
        assert times[0] == times[1]


def test_payload_shrinks_what_is_left_of_the_links_only():
    machine = parse_spec("torus:4x4,bw=2")
    whole = predict(with_figures(machine, latency=0), "0-15", Job("alltoall", bytes=1e6))
    half = predict(
        with_figures(machine, latency=0, payload=0.5), "0-15", Job("alltoall", bytes=1e6)
    )
    assert half.time_s == pytest.approx(2 * whole.time_s)
    others = [Other(np.array([14, 15]), 0.5)]
    beside = predict(
        with_figures(machine, latency=0, payload=0.5),
        "0-3",
        Job("alltoall", bytes=1e6, background=others),
    )
    alone = predict(
        with_figures(machine, latency=0, payload=0.5), "0-3", Job("alltoall", bytes=1e6)
    )
    assert beside.time_s == alone.time_s
    node = parse_spec("torus:4x4,bw=1000,injection=1")
    assert predict(
        with_figures(node, latency=0, payload=0.5), "0-3", Job("alltoall")
    ).time_s == pytest.approx(3e-3)


@pytest.mark.parametrize("wrong", [{"process": 0.0}, {"payload": 0.0}, {"payload": 1.5}])
def test_figures_that_make_no_sense_are_refused(wrong):
    with pytest.raises(UsageError):
        with_figures(parse_spec(LINE), **wrong)


def test_the_options(capsys):
    line = ["predict", "--nodes", "0-3", "--pattern", "alltoall", "--bytes", "1e9", "-m"]
    assert command([*line, f"{LINE},latency=0,process=0.1,payload=0.5"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("30 s for alltoall")
    assert "a rank sends at most 0.1 GB/s" in out
    assert "50% of the wire between routers is payload" in out
    assert command([*line, f"{LINE},payload=2"]) == 2
    assert "payload: '2'" in capsys.readouterr().err


def test_a_job_beside_is_counted_once_and_again_where_it_loses_nodes():
    from nidmap.rankmap.predict.background import others_near, shared_channels

    machine = nidmap.load_machine("torus:4x4,bw=2")
    job = Other(np.arange(6), 1.0)
    first, again = (shared_channels(machine, [job], "dimension-order") for _ in range(2))
    assert np.array_equal(first.rate, again.rate)
    assert others_near([job], np.arange(16) == 9)[0] is job
    fewer = shared_channels(machine, others_near([job], np.arange(16) == 0), "dimension-order")
    fresh = shared_channels(machine, [Other(np.arange(1, 6), 1.0)], "dimension-order")
    assert np.array_equal(fewer.rate, fresh.rate)
    other = nidmap.load_machine("torus:4x4,bw=2")
    assert np.array_equal(shared_channels(other, [job], "dimension-order").rate, first.rate)
    assert np.array_equal(shared_channels(machine, [job], "single").rate, first.rate)
