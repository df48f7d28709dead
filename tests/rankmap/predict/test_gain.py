# SPDX-License-Identifier: Apache-2.0
"""Gains as ranges: held against the predictor under every combination of what is not known."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from benchmarks.study.published import FFT
from nidmap.placement.machine import Machine
from nidmap.placement.network import LEAST_LOSS, LOSS, MOST_LOSS
from nidmap.placement.options import with_figures
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gain, Gains, Unknown, time_range
from nidmap.rankmap.predict.unknowns import MISFIT, other_seconds
from nidmap.rankmap.recording import RecordedPhase, Recording
from nidmap.rankmap.recording.file import save_recording

TORUS = nidmap.load_machine("torus:4x4x4,bw=8,injection=20")
CUBE = [0, 1, 4, 5, 16, 17, 20, 21]
GROUPS = nidmap.load_machine("dragonfly:groups=4,chassis=2,blades=4,nodes=2,injection=inf")


def model(machine, pattern, ppn=1, size=1e6, algorithm="library", **figures):
    return Predictor(with_figures(machine, **figures), Job(pattern, ppn, size, algorithm=algorithm))


def gain(machine: Machine, pattern: str, plan, base, ppn=1, **stated) -> Gain:
    asked = model(machine, pattern, ppn, **stated)
    return Gains(asked, asked.place(np.array(base))).of(asked.place(np.array(plan)))


def test_what_is_stated_is_no_unknown():
    open_ = gain(TORUS, "alltoall", CUBE, range(8))
    assert {one.name for one in open_.unknowns} == {"algorithm", "process"}
    stated = {"algorithm": "at-once", "process": 3.0}
    assert gain(TORUS, "alltoall", CUBE, range(8), **stated).unknowns == ()


def test_a_published_figure_is_known_and_an_assumed_one_is_not():
    rows = list(range(40, 52))
    names = {
        site: {
            one.name
            for one in gain(
                nidmap.load_machine(site),
                "fft:3x4",
                rows[::-1],
                range(0, 4800, 400),
                routing="minimal",
            ).unknowns
        }
        for site in ("shaheen2", "edison")
    }
    assert "process" not in names["shaheen2"]  # 2 GB/s were measured there
    assert "payload" not in names["edison"]  # 64 % were published of it
    assert "payload" in names["shaheen2"]


@given(st.data())
def test_the_range_is_that_of_independent_errors_around_the_predicted_gain(data):
    rows = st.permutations(range(64)).map(lambda one: np.array(one[:8]))
    plan, base = data.draw(rows), data.draw(rows)
    found = gain(TORUS, "alltoall", plan, base, ppn=2)
    times = {}
    for algorithm, process in itertools.product(("pairwise", "at-once"), (None, 2.0)):
        asked = Predictor(
            with_figures(TORUS, process=process), Job("alltoall", 2, 1e6, algorithm=algorithm)
        )
        times[algorithm, process] = asked.time(asked.place(base)) / asked.time(asked.place(plan))
    likely = times["at-once", None]  # no site says which MPI a torus has
    assert found.likely == pytest.approx(likely)
    for one in found.unknowns:
        if one.name == "memory":
            continue  # not a figure of the predictor's in the same terms
        other = times[{"algorithm": ("pairwise", None), "process": ("at-once", 2.0)}[one.name]]
        assert [one.low, one.high] == pytest.approx(sorted([likely, other]))
    down, up = (
        np.sqrt(sum(np.log(getattr(one, end) / likely) ** 2 for one in found.unknowns))
        for end in ("low", "high")
    )
    assert likely * np.exp(-down) * (1 - 1e-9) <= found.low <= likely * (1 + 1e-9)
    assert likely * (1 - 1e-9) <= found.high <= likely * np.exp(up) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("site", "spans"), [("theta", ((0, 12), (300, 312))), ("lumi", ((0, 48), (1000, 1240)))]
)
def test_the_ends_of_routing_are_the_least_and_the_most_that_detours_cost(site, spans):
    machine = nidmap.load_machine(site)
    plan, base = (np.arange(*span)[:: max(1, np.diff(span)[0] // 12)] for span in spans[::-1])
    given = {"process": np.inf, "payload": 1.0, "algorithm": "at-once", "latency": 0}
    found = gain(machine, "alltoall", plan, base, **given)
    ratios = []
    for loss in (LEAST_LOSS, LOSS, MOST_LOSS):
        other = nidmap.load_machine(site)
        other.topology.parameters["loss"] = loss
        asked = model(other, "alltoall", **given)
        ratios.append(asked.time(asked.place(base)) / asked.time(asked.place(plan)))
    assert found.likely == pytest.approx(ratios[1])
    spread = [one for one in found.unknowns if one.name == "routing"]
    ends = [(one.low, one.high) for one in spread] or [(found.likely, found.likely)]
    assert ends[0] == pytest.approx((min(ratios), max(ratios)), rel=6e-3)


def test_the_likely_gain_is_that_of_the_predicted_times():
    machine = nidmap.load_machine("lumi")
    plan, base = np.arange(0, 640, 40), np.arange(16)
    asked = Predictor(machine, Job("fft:16x4", 4, 1e5, algorithm="library"))
    found = Gains(asked, asked.place(base)).of(asked.place(plan))
    assert found.likely == pytest.approx(
        asked.time(asked.place(base)) / asked.time(asked.place(plan))
    )


def test_a_stated_routing_leaves_nothing_to_the_routers():
    machine = nidmap.load_machine("theta")
    stated = {"routing": "minimal", "algorithm": "at-once", "process": np.inf, "payload": 0.64}
    found = gain(machine, "alltoall", range(0, 240, 20), range(300, 312), **stated)
    assert found.unknowns == ()
    assert found.low == found.likely == found.high
    asked = model(machine, "alltoall", **stated)
    times = [asked.time(asked.place(np.arange(*span))) for span in ((300, 312), (0, 240, 20))]
    assert found.likely == pytest.approx(times[0] / times[1])


def test_busy_nodes_of_no_known_job_are_an_unknown():
    every_other_blade = np.arange(len(GROUPS)) // 2 % 2 == 1
    states = np.where(every_other_blade, "allocated", "idle")
    machine = dataclasses.replace(GROUPS, state=states, _cache={})
    stated = {"algorithm": "at-once", "process": np.inf}
    found = gain(machine, "alltoall", [0, 16, 32, 48], [0, 1, 4, 5], **stated)
    assert [one.name for one in found.unknowns] == ["others"]
    assert found.low <= found.likely <= found.high


def test_a_plan_that_takes_no_time_is_any_number_of_times_as_fast():
    found = gain(GROUPS, "alltoall", [0, 1], [0, 8], latency=0, process=np.inf, memory=1e9)
    assert found.likely == np.inf
    assert found.range_text == "any number of times"
    assert found.document()["likely"] is None


def test_a_baseline_is_as_fast_as_itself_for_certain():
    asked = Predictor(
        nidmap.load_machine("minicray:fattree"), Job("fft:4x4", 2, 1e5, algorithm="pairwise")
    )
    base, slots = np.arange(8), np.arange(16)
    assert Gains(asked, asked.place(base)).of(asked.place(base)) == Gain(1.0, 1.0, 1.0)
    assert Gains(asked, asked.place(base, slots)).of(asked.place(base, slots)) == Gain(
        1.0, 1.0, 1.0
    )


def recorded(tmp_path, seconds, **about):
    """Return a pattern of 16 ranks: rank 0 sends 40 MB to rank 2, rank 1 as much to rank 3."""
    size, times = np.full(2, 40_000_000), np.full(2, 10)
    sent = Traffic(np.array([0, 1]), np.array([2, 3]), size, times)
    phase = RecordedPhase("point-to-point", "app+0x1", 10, 20, sent)
    path = str(tmp_path / "app.npz")
    save_recording(Recording(16, seconds, (phase,), **about), path)
    return f"measured:{path}"


GRID = "torus:4x4,bw=1,injection=inf,latency=0,process=inf,payload=1,routing=single"
#: In a row the two messages share a link; with ranks 1 and 3 in the next row they do not.
IN_A_ROW, IN_TWO_ROWS = np.arange(16), np.array([0, 4, 2, 6, 1, 5, 3, *range(7, 16)])


@pytest.mark.parametrize(
    ("about", "here"),
    [
        ({}, False),  # an older recording does not say where
        ({"hosts": ("nid00000.cluster", "nid00015")}, True),
        ({"hosts": ("nid00000", "laptop")}, False),
        ({"hosts": ("nid00000",), "machine": "torus:4x4,bw=1,injection=inf,latency=0"}, True),
        ({"hosts": ("nid00000",), "machine": "torus:8x8,bw=1"}, False),
    ],
)
@pytest.mark.parametrize("slowed", [1.0, 1000.0])
def test_the_gain_of_a_recording_is_that_of_the_run(tmp_path, about, here, slowed):
    machine = with_figures(nidmap.load_machine(GRID), slowed=slowed)
    about = {**about, "exchange_s": 0.2 * slowed, "work_s": 0.05 * slowed}
    asked = Predictor(machine, Job(recorded(tmp_path, 0.3 * slowed, **about), 1))
    base, plan = (asked.place(np.arange(16), order) for order in (IN_A_ROW, IN_TWO_ROWS))
    base_s, plan_s = asked.time(base), asked.time(plan)
    assert (base_s, plan_s) == pytest.approx((0.08, 0.04))
    gain = lambda of: of(0.08) / of(0.04)  # noqa: E731
    more = lambda sent_s: 0.05 + 2 * 0.07 + math.hypot(sent_s, 0.02)  # noqa: E731
    if here:  # in MPI for 0.15 s
        likely = lambda sent_s: 0.05 + 0.07 + sent_s  # noqa: E731
        less = lambda sent_s: 0.05 + 0.15 * sent_s / 0.08  # noqa: E731
    else:
        likely, less = lambda sent_s: 0.05 + sent_s, lambda sent_s: sent_s
    found = Gains(asked, base).of(plan)
    assert found.likely == pytest.approx(gain(likely))
    ends = {one.name: (one.low, one.high) for one in found.unknowns}["rest"]
    assert ends == pytest.approx((gain(more), gain(less)))
    assert found.communicates == pytest.approx(MISFIT * 0.08 / 0.2)


def test_a_run_that_only_communicates_is_as_unsure_as_programs_are(tmp_path):
    asked = Predictor(nidmap.load_machine(GRID), Job(recorded(tmp_path, 0.08), 1))
    base, plan = (asked.place(np.arange(16), order) for order in (IN_A_ROW, IN_TWO_ROWS))
    found = Gains(asked, base).of(plan)
    assert found[:3] == pytest.approx((2 / MISFIT, 2, 2 * MISFIT))
    assert [unknown.name for unknown in found.unknowns] == ["fit"]


@given(st.floats(0.01, 9.0), st.floats(0.0, 1.0), st.floats(0.01, 9.0))
def test_a_recorded_run_takes_what_was_recorded(took_s, share, sent_s):
    work_s = share * took_s
    recording = Recording(2, 1.0, (), exchange_s=took_s, work_s=work_s)
    asked = Predictor(nidmap.load_machine(GRID), Job("ring", 1, 1.0))
    found = other_seconds(asked, recording, sent_s)
    assert 0 <= found.work <= work_s + 1e-9
    if math.hypot(work_s, sent_s) <= took_s:
        assert found.with_messages(sent_s) == pytest.approx(took_s)
    else:  # predicted for more than it can have been
        assert found == pytest.approx((0.0, 0.0, work_s), abs=1e-9)


def test_a_range_of_times_contains_the_likely_one():
    asked = Predictor(TORUS, Job("alltoall", 2, 1e6, algorithm="library"))
    found = time_range(asked, asked.place(np.arange(8)))
    assert found.low <= found.likely <= found.high
    assert found.likely == pytest.approx(asked.time(asked.place(np.arange(8))))


@pytest.fixture(scope="module")
def shaheen():
    return nidmap.load_machine("shaheen2")


#: Every row of the table; of the grids turned around one in three, the exception among them.
ROWS = [(nodes, False) for nodes in sorted(FFT.PLACEMENT)]
TURNED = [(nodes, True) for nodes in sorted(FFT.PLACEMENT)[2::3]]


@pytest.mark.parametrize(("nodes", "turned"), ROWS + TURNED)
def test_table_4_lies_in_the_range(shaheen, nodes, turned):
    """Twelve blades of a chassis in so many groups against what Slurm gives of an empty machine."""
    machine = shaheen
    direct, default = FFT.PLACEMENT[nodes]
    plan = nidmap.plan(machine, nodes, strategy="spread").rows
    base = nidmap.plan(machine, nodes, strategy="slurm-none").rows
    grid = f"12x{nodes // 12}" if turned else f"{nodes // 12}x12"
    found = gain(machine, f"fft:{grid}", plan, base)
    if (nodes, turned) != (36, True):  # there shortest paths alone would save 12.6 of the 16.6 %
        assert found.low <= default / direct <= found.high
    assert found.high / found.low <= 1.35
    assert 1 <= found.likely <= 1.15


@pytest.mark.parametrize(
    ("in_mpi_s", "fits"), [(0.07, True), (0.11, True), (0.13, False), (0.05, False)]
)
def test_a_recording_that_does_not_fit_is_said_and_promises_nothing(tmp_path, in_mpi_s, fits):
    """0.08 s of messages were predicted; the program's clock is 1,000 times slower."""
    machine = with_figures(nidmap.load_machine(GRID), slowed=1000)
    about = {"hosts": ("nid00000",), "exchange_s": 1000 * in_mpi_s}
    asked = Predictor(machine, Job(recorded(tmp_path, 200.0, **about), 1))
    base, plan = (asked.place(np.arange(16), order) for order in (IN_A_ROW, IN_TWO_ROWS))
    found = Gains(asked, base).of(plan)
    assert found.recorded == pytest.approx((80, 1000 * in_mpi_s))
    assert bool(found.misfit) is not fits
    assert (found.low > 1) is fits
    said = found.of_run if fits else found.misfit
    assert f"ranks were recorded {1000 * in_mpi_s:g} s in MPI, 80 s of messages" in said


@pytest.mark.parametrize(
    ("gain", "told", "untold"),
    [
        (Gain(1.1, 1.2, 1.3), True, False),
        (Gain(1.0, 1.2, 1.3), False, True),
        (Gain(1.004, 1.2, 1.3), False, True),
        (Gain(0.7, 1.2, 1.3), False, True),
        (Gain(0.5, 0.6, 0.7), False, False),  # a loss that can be told
        (Gain(1.0, 1.0, 1.0), False, False),  # nothing is unsure
    ],
)
def test_a_gain_whose_range_holds_1_cannot_be_told(gain, told, untold):
    assert gain.told == told
    assert bool(gain.untold) == untold


def test_gain_loses_if():
    unsure = Unknown("memory", "whether …", 0.6, 4.2, "the ranks of a node copy 200 GB/s")
    assert (
        Gain(0.6, 1.2, 4.2, (unsure,)).loses_if
        == "1.67 times slower if the ranks of a node copy 200 GB/s"
    )


def test_rows_and_columns_may_take_all_algorithms_that_there_are():
    machine = nidmap.load_machine("juwels-booster")
    asked = Predictor(machine, Job("fft:1x23", bytes=1e4))
    rows = np.flatnonzero(machine.free)
    placements = [asked.place(some) for some in (rows[:23], rows[::7][:23])]
    chosen = set(asked.algorithms(asked.pattern.on(placements[0])))
    assert len(chosen) == 2
    gain = Gains(asked, placements[0]).of(placements[1])
    assert 0 < gain.low <= gain.likely <= gain.high
