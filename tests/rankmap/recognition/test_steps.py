# SPDX-License-Identifier: Apache-2.0
"""What of a recording goes one after the other, and what that takes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap import load_machine
from nidmap.placement.options import with_figures
from nidmap.placement.traffic import NO_TRAFFIC, Traffic, join_traffic
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.pattern.sweep import waves
from nidmap.rankmap.predict import Job, Predictor, predict
from nidmap.rankmap.predict.gain import time_range
from nidmap.rankmap.recognition.steps import MOST_STEPS, recorded_run
from nidmap.rankmap.recording import (
    EVENTS,
    RecordedCollective,
    RecordedOrder,
    RecordedPhase,
    Recording,
)
from nidmap.rankmap.recording.file import save_recording
from tests.effort import examples

GRID = np.arange(12).reshape(3, 4)


def alltoall(lines, size, calls=10):
    """Return the phase of an all-to-all on each line of the grid."""
    each = [np.full(len(line), calls) for line in lines]
    called = [
        RecordedCollective(line, -1, n, n * size) for line, n in zip(lines, each, strict=True)
    ]
    none = NO_TRAFFIC
    return RecordedPhase("alltoall", "app", calls, 0, none, tuple(called))


def halo(dims, size=500, together=True, calls=1):
    """Return the phase of a halo exchange, all at once or one message after the other."""
    a, b, *_ = join_traffic(Stencil(dims).edges()).columns
    source, target = np.append(a, b), np.append(b, a)
    many = np.full_like(source, calls)
    steps = calls * (int(np.prod(dims)) if together else len(source))
    return RecordedPhase(
        "point-to-point", "app", calls, steps, Traffic(source, target, size * many, many)
    )


def bytes_between(ranks, steps):
    table = np.zeros((ranks, ranks), dtype=np.int64)
    for one in steps:
        np.add.at(table, (one.source, one.target), one.bytes)
    return table


messages = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 900), st.integers(1, 5)),
    max_size=12,
).map(lambda rows: Traffic(*np.array(rows, dtype=np.int64).reshape(-1, 4).T))
phases = st.lists(
    st.builds(
        RecordedPhase, st.just("point-to-point"), st.just("app"), st.integers(1, 3),
        st.integers(1, 60), messages,
    ),
    max_size=25,
)  # fmt: skip


def steps_in(recording):
    return recorded_run(recording, "").steps


@examples(50)
@given(phases)
def test_steps_together_are_all_that_was_recorded(found):
    recording = Recording(8, 1.0, tuple(found))
    run = recorded_run(recording, "")
    assert len(run.steps) <= MOST_STEPS
    expected = bytes_between(8, [recording.total().away()])
    assert np.array_equal(bytes_between(8, [run.sent]), expected)
    assert np.array_equal(bytes_between(8, [one.sent for one in run.steps]), expected)
    messages = sum(one.sent.messages.sum() for one in run.steps)
    assert messages == recording.total().away().messages.sum()


def test_the_phases_that_ranks_come_to_first_go_together():
    whole = halo((3, 4))
    edge = np.isin(whole.sent.source, (0, 11))
    parts = [whole.sent.some(kept) for kept in (edge, ~edge)]
    split = [replace(whole, sent=sent, steps=len(set(sent.source.tolist()))) for sent in parts]
    assert len(steps_in(Recording(12, 1.0, tuple(split)))) == 1
    steps = steps_in(Recording(12, 1.0, (*split, replace(whole, calls=7))))
    assert [step.times for step in steps] == [1, 7]


@pytest.mark.parametrize(("library", "steps"), [("", 4 + 11), ("mpich", 4 + 11), ("openmpi", 1)])
def test_a_broadcast_goes_as_its_library_does_it(library, steps):
    """Open MPI 4.1 and 5.0: the root sends all, from 32 KiB on to 8 to 15 ranks."""
    every, calls = np.arange(12), 3
    called = RecordedCollective.alike(every, 0, calls, calls * 50_000)
    phase = RecordedPhase("bcast", "app", calls, 12 * calls, NO_TRAFFIC, (called,))
    found = recorded_run(Recording(12, 1.0, (phase,)), library).steps
    assert sum(step.times for step in found) == steps * calls
    if library == "openmpi":
        assert found[0].sent.bytes.tolist() == [150_000] * 11


def test_calls_of_other_sizes_are_told_apart_by_the_order(tmp_path):
    """An older recording counts 3 calls of 8 bytes and one of 90,000 as four of their mean."""
    every = np.arange(4)
    called = RecordedCollective.alike(every, -1, 4, 3 * 8 + 90_000)
    phase = RecordedPhase("allreduce", "app", 4, 16, NO_TRAFFIC, (called,))
    collective = EVENTS.index("collective")
    events = np.array([[collective, -1, 0, 0, size] for size in (8, 90_000)])
    order = RecordedOrder(events, np.tile([0, 0, 0, 1], 4), np.arange(5) * 4, (every,))
    steps = recorded_run(Recording(4, 1.0, (phase,), order=order), "").steps
    assert sorted(step.sent.bytes.sum() / step.times for step in steps) == pytest.approx(
        [32, 32, 90_000, 90_000, 180_000, 180_000]
    )  # doubling, twice; a block of a quarter and a half there and back
    assert [step.times for step in steps].count(3) == 2


def test_a_transpose_takes_its_rows_and_then_its_columns(tmp_path):
    """As ranks run ahead it lies in the middle of one after the other, and of all at once."""
    machine = load_machine("torus:4x3,bw=1,injection=3")
    rows, columns = alltoall(list(GRID), 60_000), alltoall(list(GRID.T), 20_000)
    both = seconds(tmp_path, machine, rows, columns)
    alone = seconds(tmp_path, machine, rows) + seconds(tmp_path, machine, columns)
    once = join_traffic(phase.messages() for phase in (rows, columns))
    merged = seconds(tmp_path, machine, RecordedPhase("point-to-point", "app", 1, 12, once))
    assert both == pytest.approx((alone + merged) / 2, rel=1e-3)
    assert both > 1.02 * merged
    one_site = replace(rows, collectives=(*rows.collectives, *columns.collectives))
    assert seconds(tmp_path, machine, one_site) == pytest.approx(both, rel=1e-3)


def test_lines_are_told_apart_where_sizes_differ_by_rank():
    """As of MPI_Alltoallw on rows and columns, recorded as what went from rank to rank."""
    rows, columns = (
        alltoall(lines, 70_000, calls).messages(lambda *_: "at-once")
        for lines, calls in ((GRID, 4), (GRID.T, 6))
    )
    by_pair = join_traffic([rows, columns]).by_pair(12)
    phase = RecordedPhase("alltoall", "app", 10, 120, by_pair)
    steps = steps_in(Recording(12, 1.0, (phase,)))
    assert [step.times for step in steps] == [4, 6]
    for step, sent in zip(steps, (rows, columns), strict=True):
        assert np.array_equal(bytes_between(12, [step.sent]), bytes_between(12, [sent.away()]))


def test_messages_carry_headers_where_a_machine_has_them(tmp_path):
    found = halo((3, 4), size=1, calls=10)
    with_headers, without = (
        seconds(tmp_path, load_machine(f"torus:4x3,bw=1,injection=3{more}"), found)
        for more in (",header=99", "")
    )
    assert with_headers == pytest.approx(100 * without)


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.parametrize("size", [10_000, 60_000, 600_000])
def test_an_all_to_all_is_sent_as_the_library_does_it(tmp_path, mpi, size):
    machine = load_machine(f"torus:4x3,bw=1,injection=3,latency=0,mpi={mpi}")
    found = alltoall(list(GRID), size), alltoall(list(GRID.T), size)
    named, at_once = (
        predict(machine, np.arange(12), Job("fft:3x4", 1, size, algorithm)).time_s
        for algorithm in ("library", "at-once")
    )
    in_steps = 2 * named - at_once  # ranks run ahead: a pattern by its name is half way between
    total = join_traffic(phase.messages() for phase in found)
    merged = RecordedPhase("point-to-point", "app", 1, 12, total)
    together = seconds(tmp_path, machine, merged)
    assert seconds(tmp_path, machine, *found) == pytest.approx(
        (10 * in_steps + together) / 2, rel=0.01
    )


def seconds(folder, machine, *found):
    """Return what a recording of these phases is predicted to take."""
    path = str(folder / "app.npz")
    save_recording(Recording(12, 1.0, found), path)
    return predict(
        with_figures(machine, latency=0), np.arange(12), Job(f"measured:{path}", ppn=1, bytes=1.0)
    ).time_s


def test_what_a_halo_takes_does_not_depend_on_how_many_of_its_steps_were_recorded(tmp_path):
    machine = load_machine("minicray:torus")
    found = {}
    for calls in (1, 100):
        path = tmp_path / f"{calls}.npz"
        save_recording(Recording(12, 1.0, (halo((3, 4), 50_000, calls=calls),)), str(path))
        one = Predictor(
            with_figures(machine, latency=0, process=np.inf), Job(f"measured:{path}", algorithm="")
        )
        found[calls] = time_range(one, one.place(np.arange(12)))
    assert found[100][:3] == pytest.approx([100 * seconds for seconds in found[1][:3]])


def test_a_recorded_sweep_takes_its_waves_pass_by_pass(tmp_path):
    """12 passes of sweep:3x4, as each rank's steps and messages count."""
    _, source, target = waves((3, 4), 2)
    sent = Traffic.of(source, target, 8000.0).by_pair(12)
    many = (np.int64(12) * column.astype(np.int64) for column in (sent.bytes, sent.messages))
    sent = Traffic(sent.source, sent.target, *many)
    found = RecordedPhase("point-to-point", "app+0x1", 12 * 8, 12 * 8 * 11, sent)
    machine = load_machine("torus:4x3,bw=1,injection=3")
    named = predict(machine, np.arange(12), Job("sweep:3x4", ppn=1, bytes=8000)).time_s
    path = str(tmp_path / "sweep.npz")
    save_recording(Recording(12, 1.0, (found,)), path)
    took = predict(machine, np.arange(12), Job(f"measured:{path}", ppn=1, bytes=1.0)).time_s
    assert took == pytest.approx(12 * named, rel=0.01)


@pytest.mark.parametrize(("mpi", "other"), [("mpich", "openmpi"), ("openmpi", "mpich")])
def test_a_range_has_the_collectives_of_another_library(tmp_path, mpi, other):
    machine = load_machine(f"torus:4x3,bw=1,injection=3,latency=0,mpi={mpi}")
    calls = np.full(12, 10)
    called = RecordedCollective(np.arange(12), 0, calls, calls * 50_000)
    found = RecordedPhase("bcast", "app", 10, 120, NO_TRAFFIC, (called,))
    path = str(tmp_path / "app.npz")
    save_recording(Recording(12, 1.0, (found,)), path)
    took = {}
    for library in (mpi, other):
        stated = load_machine(f"torus:4x3,bw=1,injection=3,latency=0,mpi={library}")
        took[library] = predict(stated, np.arange(12), Job(f"measured:{path}", ppn=1)).time_s
    asked = Predictor(machine, Job(f"measured:{path}", ppn=1))
    unknowns = {one.name: one for one in time_range(asked, asked.place(np.arange(12))).unknowns}
    low, high = sorted(took.values())
    assert (unknowns["algorithm"].low, unknowns["algorithm"].high) == pytest.approx((low, high))
