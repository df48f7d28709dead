# SPDX-License-Identifier: Apache-2.0
"""Recordings: raw counts, files and words, without any MPI."""

import contextlib
import os
import shlex
import struct
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.commands import run
from nidmap.placement.errors import OutputError, ParseError, UsageError
from nidmap.placement.traffic import NO_TRAFFIC, Traffic, join_traffic
from nidmap.rankmap.collectives.algorithms import collective_messages
from nidmap.rankmap.pattern.structured import Stencil
from nidmap.rankmap.preload import running
from nidmap.rankmap.preload.running import parse_window
from nidmap.rankmap.recognition.description import describe, document, named_pattern, phase_words
from nidmap.rankmap.recognition.shapes import grid_lines, lines_in, stencil_in
from nidmap.rankmap.recording import (
    KINDS,
    RecordedCollective,
    RecordedOrder,
    RecordedPhase,
    Recording,
)
from nidmap.rankmap.recording.file import load_recording, save_recording
from nidmap.rankmap.recording.raw import Window, read_raw


def text(word):
    raw = word.encode()
    return struct.pack("=q", len(raw)) + raw


def phase(bin_, kind, cells, *, comm=0, first=0, calls=1, uneven=0, sized=0, sites=("a+0x1",)):
    head = (bin_, KINDS.index(kind), comm, first, calls, uneven, sized, len(sites))
    raw = b"PHAS" + struct.pack("=8q", *head) + b"".join(map(text, sites))
    return raw + struct.pack("=q", len(cells)) + b"".join(struct.pack("=3q", *c) for c in cells)


def rank(number, size, *records, seconds=1.0, bin_seconds=0.05, failed=0):
    head = (number, size, int(1e9 * seconds), int(1e9 * bin_seconds), failed)
    rest = struct.pack("=5q", *head) + b"".join(records) + b"END."
    return b"RNK2" + struct.pack("=q", len(rest)) + rest


def comm(name, members):
    return b"COMM" + struct.pack(f"={3 + len(members)}q", name, len(members), 1, *members)


@pytest.fixture
def counts(tmp_path):
    def write(*records):
        path = tmp_path / "counts"
        path.write_bytes(b"".join(records))
        return [str(path)]

    return write


def total(recording):
    return [tuple(map(int, row)) for row in zip(*recording.total().columns, strict=True)]


def test_ranks_phases_match_by_kind_and_site(counts):
    found = read_raw(
        counts(
            rank(
                0, 2, phase(0, "point-to-point", [(1, 10, 1)]), phase(0, "one-sided", [(-2, 7, 1)])
            ),
            rank(1, 2, phase(0, "point-to-point", [(0, 20, 2)], calls=2)),
        )
    )
    assert [(p.kind, p.calls, p.steps) for p in found.phases] == [
        ("point-to-point", 2, 3),
        ("one-sided", 1, 1),
    ]
    assert total(found) == [(0, 1, 10, 1), (1, 0, 27, 3)]  # rank 0 got 7 bytes from rank 1


def times(kernel, processors):
    return b"TIME" + struct.pack("=5q", 0, 10**9, 10**8, kernel, processors)


@pytest.mark.parametrize(("kernels", "shared"), [((7, 7, 7), True), ((7, 8, 9), False)])
def test_more_ranks_than_processors_under_one_kernel_are_noted(counts, kernels, shared):
    ranks = [rank(number, 3, times(kernel, 2)) for number, kernel in enumerate(kernels)]
    notes = read_raw(counts(*ranks)).notes
    said = ("3 ranks shared 2 processors: their time in MPI is not the network's alone",)
    assert notes == (said if shared else ())


def test_collectives_of_other_sizes_are_phases_of_their_own(counts):
    called = (
        phase(0, "allreduce", [(-1, 8, 1)], comm=9, sized=7),
        phase(0, "allreduce", [(-1, 9000, 1)], comm=9, first=1, sized=27),
    )
    found = read_raw(counts(*(rank(r, 2, comm(9, [0, 1]), *called) for r in (0, 1))))
    assert [p.collectives[0].call_bytes for p in found.phases] == [8, 9000]


def test_what_differs_by_rank_on_communicators_that_share_ranks_is_parted(counts):
    """One line calls an all-to-all of unequal blocks on rows, and on columns of a 2x2 grid."""
    lines = {5: [0, 1], 6: [2, 3], 7: [0, 2], 8: [1, 3]}
    every = [
        rank(
            r, 4, *(comm(name, members) for name, members in lines.items()),
            *(phase(0, "alltoall", [(sum(members) - r, 10 * name, 1)], comm=name, uneven=1)
              for name, members in lines.items() if r in members),
        )
        for r in range(4)
    ]  # fmt: skip
    found = read_raw(counts(*every)).phases
    assert [(p.kind, p.calls, sorted(p.sent.bytes.tolist())) for p in found] == [
        ("alltoall", 1, [50, 50, 60, 60]), ("alltoall", 1, [70, 70, 80, 80]),
    ]  # fmt: skip


def test_what_was_kept_of_a_run_is_said():
    sent = Traffic(np.array([0]), np.array([1]), np.array([80]), np.array([10]))
    once = RecordedPhase("point-to-point", "app+0x1", 10, 10, sent)
    events = np.array([[0, 1, 0, 0, 8]])
    order = RecordedOrder(events, np.zeros(4, dtype=int), np.array([0, 4, 4]))
    kept = Recording(2, 1.0, (once,), order=order)
    assert "note: the order of the first 40% of the messages was kept" in describe(kept)
    assert "note: tags were not kept" in describe(kept)
    assert document(kept)["order"] == {"share": 0.4, "tags": False}
    whole = replace(kept, order=replace(order, tags=np.zeros(4, dtype=int), whole=True))
    assert "note:" not in describe(whole)
    assert "note: the order of messages was not kept" in describe(replace(kept, order=None))
    window = replace(kept, order=None, window="30%-70%")
    assert "note: only a part of the run was counted: --window 30%-70%" in describe(window)


def test_ranks_that_left_nothing_are_noted(counts):
    found = read_raw(counts(rank(0, 3, failed=1)))
    assert found.notes == (
        "2 of 3 ranks left no counts",
        "rank 0 ran out of memory for its counts: they are not complete",
    )


def test_counts_cut_anywhere_are_refused(counts):
    whole = rank(0, 2, comm(9, [1, 0]), phase(0, "bcast", [(0, 8, 1)], comm=9))
    assert len(read_raw(counts(whole)).phases) == 1
    for end in range(1, len(whole)):
        with pytest.raises(ParseError):
            read_raw(counts(whole[:end]))


def test_a_window_keeps_its_bins(counts):
    bins = [phase(b, "point-to-point", [(1, 1, 1)]) for b in range(20)]
    kept = read_raw(counts(rank(0, 2, *bins)), window=Window(0.5, 1.0, shares=True))
    assert total(kept) == [(0, 1, 10, 10)]
    assert total(read_raw(counts(rank(0, 2, *bins)))) == [(0, 1, 20, 20)]


@pytest.mark.parametrize("word", ["70%-30%", "1-2", "10%-20s", "x", "50%-120%", "5s-5s"])
def test_windows_that_are_none(word):
    with pytest.raises(UsageError):
        parse_window(word)


@given(
    st.sampled_from(["bcast", "gather", "allgather", "reduce", "allreduce", "scan", "exscan"]),
    st.lists(st.integers(0, 40), min_size=1, max_size=9, unique=True),
    st.integers(0, 8),
    st.integers(1, 5),
    st.integers(1, 100_000),
)
def test_collectives_are_the_recorders_own_algorithms(kind, members, root, calls, size):
    root %= len(members)
    given_bytes = (size + np.arange(len(members))) * calls
    one = RecordedCollective(np.array(members), root, np.full(len(members), calls), given_bytes)
    expected = {}
    call_bytes = given_bytes.sum() / (calls * len(members))
    pairs, share = collective_messages(kind, len(members), root, call_bytes)
    for r, to, times, part in zip(*pairs.tolist(), share.tolist(), strict=True):
        assert (members[r], members[to]) not in expected
        expected[members[r], members[to]] = round(part * int(given_bytes[r])), times * calls
    made = one.messages(kind).by_pair(41)
    rows = zip(*(column.tolist() for column in made.columns), strict=True)
    assert {(a, b): (size, many) for a, b, size, many in rows} == expected


@st.composite
def recordings(draw):
    ranks = draw(st.integers(1, 9))
    number = st.integers(0, ranks - 1)

    def one_phase():
        cells = draw(st.lists(st.tuples(number, number, st.integers(0, 9999), st.integers(1, 9))))
        sent = Traffic(*np.array(cells, dtype=np.int64).reshape(-1, 4).T)
        if draw(st.booleans()):
            return RecordedPhase("point-to-point", draw(st.text(max_size=9)), 3, 5, sent)
        members = np.array(draw(st.lists(number, min_size=1, unique=True)))
        given_bytes = np.arange(len(members)) + draw(st.integers(0, 10**12))
        called = RecordedCollective(
            members, draw(st.integers(-1, 0)), np.ones_like(members), given_bytes
        )
        return RecordedPhase("alltoall", "x", 1, ranks, sent, (called,))

    phases = tuple(one_phase() for _ in range(draw(st.integers(0, 4))))
    return Recording(ranks, 1.25, phases, "srun ./app", "30%-70%", ("a note",))


@given(recordings())
def test_files_hold_all_of_it(tmp_path_factory, made):
    path = str(tmp_path_factory.mktemp("r") / "r.npz")
    save_recording(made, path)
    read = load_recording(path)
    assert document(read) == document(made)
    assert total(read) == total(made)
    assert describe(read) == describe(made)


def test_damaged_files_are_one_line(tmp_path):
    path = tmp_path / "r.npz"
    ring = np.arange(4), (np.arange(4) + 1) % 4, np.full(4, 8), np.ones(4, dtype=np.int64)
    save_recording(
        Recording(4, 1.0, (RecordedPhase("point-to-point", "x", 1, 4, Traffic(*ring)),)), str(path)
    )
    raw = path.read_bytes()
    generator = np.random.default_rng(5)
    for _ in range(200):
        bad = bytearray(raw)
        for place in generator.integers(0, len(raw), 3):
            bad[place] = generator.integers(0, 256)
        path.write_bytes(bytes(bad[: generator.integers(1, len(bad) + 1)]))
        with contextlib.suppress(ParseError):  # and nothing else
            load_recording(str(path))
    with pytest.raises(ParseError, match="No such file"):
        load_recording(str(tmp_path / "none.npz"))


def test_a_recording_that_cannot_be_written(tmp_path):
    with pytest.raises(OutputError):
        save_recording(Recording(1, 0.0, ()), str(tmp_path / "no" / "r.npz"))


@pytest.mark.parametrize("made", [Stencil((4, 3)), Stencil((4, 3, 2)), Stencil((5, 4), wrap=True)])
def test_stencils_are_told_by_their_messages(made):
    a, b, *_ = join_traffic(made.edges()).columns
    size = np.full(2 * len(a), 77)
    both = Traffic(np.append(a, b), np.append(b, a), size, size)
    ranks = made.ranks
    assert stencil_in(both, ranks).dims == made.dims
    one_way = Traffic(a, b, size[: len(a)], size[: len(a)])
    assert stencil_in(one_way, ranks) is None


def test_a_stencil_of_uneven_sizes_is_one_where_somebody_allows_it():
    a, b, *_ = join_traffic(Stencil((2, 2, 3), wrap=True).edges()).columns
    there, back = np.append(a, b), np.append(b, a)
    pairs = np.unique(np.stack([there, back]), axis=1)
    size = 1000 + 7 * np.arange(pairs.shape[1])
    sent = Traffic(*pairs, size, np.ones_like(size))
    assert stencil_in(sent, 12) is None
    assert stencil_in(sent, 12, 2.0).dims == (2, 2, 3)
    size[0] = 9000
    assert stencil_in(sent, 12, 2.0) is None
    once = RecordedPhase(
        "point-to-point", "app+0x1", 1, 12, replace(sent, bytes=size.clip(max=1500))
    )
    assert phase_words(once, 12).startswith("7-point stencil 2x2x3, periodic, not quite equal in ")


@pytest.mark.parametrize(("together", "staged"), [(1, ",staged"), (4, "")])
def test_a_recording_is_given_the_name_of_its_pattern(together, staged):
    a, b, weight, _ = join_traffic(Stencil((2, 5), True, (1.0, 2.0)).edges()).columns
    many = np.full(2 * len(a), 10)
    sent = Traffic(np.append(a, b), np.append(b, a), 10 * np.tile(weight, 2).astype(int), many)
    calls = int(many.sum()) // together
    halo = RecordedPhase("point-to-point", "app+0x1", calls, calls, sent)
    named = named_pattern(Recording(10, 1.0, (halo,)))
    assert named.startswith(f"--pattern stencil:2x5,periodic,weights=1:2{staged} --bytes ")
    nothing = RecordedPhase("barrier", "app+0x2", 1, 1, NO_TRAFFIC)
    assert named_pattern(Recording(10, 1.0, (nothing,))) == ""


def test_rows_and_columns_of_a_grid_from_one_place_in_the_code():
    grid, none = np.arange(12).reshape(3, 4), np.zeros(4, dtype=np.int64)
    lines = [
        RecordedCollective(line, -1, none[: len(line)], none[: len(line)])
        for line in (*grid, *grid.T)
    ]
    assert grid_lines(lines, 12) == "the 3 rows and 4 columns of a 3x4 grid"
    lines = [replace(one, calls=one.calls + 2, bytes=one.calls + 2000) for one in lines]
    both = RecordedPhase(
        "alltoall", "app+0x1", 4, 48, Traffic(*np.empty((4, 0), int)), tuple(lines)
    )
    assert named_pattern(Recording(12, 1.0, (both,))) == "--pattern fft:3x4 --bytes 1e+03"
    assert grid_lines(lines[1:], 12) == ""


def test_a_barrier_has_no_size():
    nothing = NO_TRAFFIC
    assert phase_words(RecordedPhase("barrier", "app+0x1", 1, 4, nothing), 4) == "barrier, once"


def test_too_many_pairs_are_not_written_out():
    all_ranks = np.arange(20_000)
    zero = np.zeros(len(all_ranks), dtype=np.int64)
    none = NO_TRAFFIC
    wide = RecordedPhase(
        "alltoall", "x", 1, 1, none, (RecordedCollective(all_ranks, -1, zero, zero),)
    )
    with pytest.raises(UsageError, match="too many pairs"):
        Recording(20_000, 1.0, (wide,)).total()


def broadcasts(ranks, roots):
    """Return the records of ranks that each broadcast to all, a call from each root."""
    members = comm(9, range(ranks))
    cells = [(root, 800 + root, 2) for root in roots]
    called = phase(0, "bcast", cells, comm=9, calls=2 * len(cells))
    return [rank(r, ranks, members if r == 0 else b"", called) for r in range(ranks)]


def test_broadcasts_from_every_root_are_as_many_rows_as_roots(counts, tmp_path):
    ranks = 600
    paths, path = counts(*broadcasts(ranks, range(ranks))), str(tmp_path / "r.npz")
    tracemalloc.start()
    found = read_raw(paths)
    save_recording(replace(found, phases=(replace(found.phases[0], kind="barrier"),)), path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8e6  # a list of ranks for each root has 600 x 600 x 3 numbers, 8.6 MB
    read = load_recording(path).phases[0].collectives
    for made in (found.phases[0].collectives, read):
        assert [c.root for c in made] == list(range(ranks))
        assert [(c.calls[7], c.bytes[7]) for c in made] == [(2, 800 + r) for r in range(ranks)]
    trees = found.total()
    assert len(trees.source) < ranks * 2 * 10  # a binomial tree has edges of powers of two
    assert trees.bytes.sum() == (ranks - 1) * sum(800 + r for r in range(ranks))


def test_ranks_that_call_otherwise_are_told_apart(counts):
    records = broadcasts(5, range(5))
    records[3] = rank(3, 5, phase(0, "bcast", [(0, 800, 2), (4, 7, 1)], comm=9, calls=3))
    records[4] = b""
    found = read_raw(counts(*records)).phases[0].collectives
    assert [c.root for c in found] == [0, 1, 2, 3, 4]
    assert [c.calls.tolist() for c in found] == [
        [2, 2, 2, 2, 0],
        *[[2, 2, 2, 0, 0]] * 3,
        [2, 2, 2, 1, 0],
    ]
    assert found[4].bytes.tolist() == [804, 804, 804, 7, 0]


def test_bins_of_a_rank_are_added_up(counts):
    bins = [phase(b, "gather", [(1, 10, 1), (0, b, 1)], comm=9, calls=2) for b in range(4)]
    members = comm(9, [1, 0])
    found = read_raw(counts(rank(0, 2, members, *bins), rank(1, 2, *bins[:2])))
    (to_0, to_1) = found.phases[0].collectives
    assert (to_0.root, to_0.calls.tolist(), to_0.bytes.tolist()) == (0, [2, 4], [1, 6])
    assert (to_1.root, to_1.calls.tolist(), to_1.bytes.tolist()) == (1, [2, 4], [20, 40])


def test_files_with_a_list_of_ranks_for_each_collective_are_read(tmp_path):
    called = tuple(RecordedCollective.alike(np.array([2, 0, 1]), r, 4, 50 + r) for r in range(3))
    none = NO_TRAFFIC
    made = Recording(3, 1.0, (RecordedPhase("bcast", "x", 12, 36, none, called),))
    path = tmp_path / "r.npz"
    save_recording(made, str(path))
    columns = dict(np.load(path))
    for name in ("called_group", "called_calls", "called_bytes"):
        del columns[name]
    columns |= {"called_start": np.arange(0, 12, 3), "member_rank": np.tile([2, 0, 1], 3)}
    columns |= {"member_calls": np.full(9, 4), "member_bytes": np.repeat([50, 51, 52], 3)}
    np.savez(path, **columns)
    assert total(load_recording(str(path))) == total(made)


def test_a_node_that_died_while_it_wrote_costs_its_last_rank_alone(counts):
    whole = rank(0, 2, phase(0, "point-to-point", [(1, 10, 1)]))
    found = read_raw(counts(whole, rank(1, 2, phase(0, "point-to-point", [(0, 10, 1)]))[:-9]))
    assert total(found) == [(0, 1, 10, 1)]
    assert found.notes == ("1 of 2 ranks left no counts",)


@pytest.mark.parametrize("fault", [MemoryError(), OutputError("no space left on the disk")])
def test_counts_that_cannot_be_merged_are_kept(capfd, tmp_path, monkeypatch, fault):
    counted = tmp_path / "counted"
    counted.write_bytes(b"".join(broadcasts(4, [1])))
    monkeypatch.setattr(running, "libraries_for", lambda *_: ["none.so"])
    monkeypatch.setattr(running, "preload", lambda command, _, variables, __: (command, variables))

    def fail(*_):
        raise fault

    program = ["sh", "-c", f"cp {counted} $NIDMAP_RECORD.node1; exit 7"]
    with monkeypatch.context() as failing:
        failing.setattr(running, "save_recording", fail)
        code = run(["record", "-o", str(tmp_path / "r.npz"), "--", *program])
    assert code == 7  # the program's own
    talk = capfd.readouterr().err
    assert (str(fault) or "out of memory") in talk
    again = shlex.split(talk.partition("the counts are kept: ")[2])
    assert run(again[1:]) == 0
    assert load_recording(str(tmp_path / "r.npz")).ranks == 4
    assert [f.name for f in tmp_path.iterdir() if "counts" in f.name] == []
    assert run(again[1:]) == 3


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ([rank(0, 1), rank(0, 1), rank(0, 1)], "3 processes were each rank 0 of 1"),
        ([], "started by the launcher of another MPI"),
    ],
)
def test_a_launcher_of_another_mpi_is_named_as_a_cause(capfd, tmp_path, monkeypatch, left, words):
    counted = tmp_path / "counted"
    counted.write_bytes(b"".join(left))
    monkeypatch.setattr(running, "libraries_for", lambda *_: ["none.so"])
    monkeypatch.setattr(running, "preload", lambda command, _, variables, __: (command, variables))
    program = ["sh", "-c", f"cp {counted} $NIDMAP_RECORD.node1"]
    assert run(["record", "-o", str(tmp_path / "r.npz"), "--", *program]) == 0
    assert words in capfd.readouterr().err
    assert (tmp_path / "r.npz").exists() == bool(left)


@given(st.integers(2, 6), st.integers(2, 6), st.sampled_from(["rows", "columns", "both"]))
def test_all_to_alls_of_unequal_blocks_are_named_by_their_lines(rows, columns, which):
    a, b = (ends.ravel() for ends in np.indices((rows * columns,) * 2))
    across, down = a // columns == b // columns, a % columns == b % columns
    on = {"rows": across, "columns": down, "both": across | down}[which]
    sent = Traffic.of(a[on], b[on], np.arange(1.0, on.sum() + 1))
    grid = f"of a {rows}x{columns} grid"
    parts = [f"the {rows} rows", f"the {columns} columns"]
    expected = {"rows": parts[:1], "columns": parts[1:], "both": parts}[which]
    found, sends = lines_in(sent, rows * columns)
    assert found == f"{' and '.join(expected)} {grid}"
    kept = {"rows": [across], "columns": [down], "both": [across, down]}[which]
    sent_in_lines = [sent.some((line & (a != b))[on]) for line in kept]
    for part, line in zip(sends, sent_in_lines, strict=True):
        assert all(map(np.array_equal, part.columns, line.columns))
    first = np.flatnonzero(sent.source != sent.target)[0]
    assert lines_in(sent.some(np.arange(len(sent)) != first), rows * columns) == ("", [])


def test_a_stencil_of_phases_of_different_ranks_is_named():
    """As LULESH's, whose ranks post from other places at each side of the grid."""
    every = join_traffic(Stencil((2, 2, 2), reach=3).edges())
    every = every + every.reversed()
    parts = [every.some(every.source == rank) for rank in range(8)]
    phases = tuple(
        RecordedPhase("point-to-point", f"a+{k}", 10, 10, replace(
            part, bytes=np.arange(1, 8) * 80, messages=np.full(7, 10)
        ))
        for k, part in enumerate(parts)
    )  # fmt: skip
    said = describe(Recording(8, 1.0, phases))
    assert "8 of these, each of some ranks, together form a 27-point stencil 2x2x2" in said
    assert "together form a" not in describe(Recording(8, 1.0, phases[:7]))


@pytest.mark.parametrize("given", [{}, {"OPENBLAS_NUM_THREADS": "3"}])
def test_a_program_has_the_threads_of_a_bare_start(tmp_path, given):
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"} | given
    program = ["sh", "-c", 'echo "<$OPENBLAS_NUM_THREADS>"']
    command = [sys.executable, "-m", "nidmap", "record", "-o", str(tmp_path / "r.npz"), "--"]
    done = subprocess.run([*command, *program], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"<{given.get('OPENBLAS_NUM_THREADS', '')}>\n")
