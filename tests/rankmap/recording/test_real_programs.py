# SPDX-License-Identifier: Apache-2.0
"""Real programs in C under each MPI: what is recorded is what they are known to send."""

import collections
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nidmap.rankmap.preload import find_compilers, link_line
from nidmap.rankmap.recognition.description import phase_words
from nidmap.rankmap.recognition.order import messages_of, waves_of
from nidmap.rankmap.recording import EVENTS
from nidmap.rankmap.recording.file import load_recording
from tests.rankmap.mpi_programs import COMPILERS, compiled_or_skipped, library_of
from tests.rankmap.mpis import flavours, patiently

pytestmark = pytest.mark.mpi

PROGRAM = Path(__file__).with_name("program.c")


@pytest.fixture(scope="session", params=COMPILERS, ids=lambda pair: "-".join(pair))
def built(request, tmp_path_factory):
    """Return the program as each compiler that is here builds it."""
    return compiled_or_skipped([request.param], PROGRAM, tmp_path_factory)


@pytest.fixture(scope="session", params=COMPILERS, ids=lambda pair: "-".join(pair))
def calls(request, tmp_path_factory):
    return compiled_or_skipped([request.param], PROGRAM.with_name("calls.c"), tmp_path_factory)


@pytest.fixture(scope="session", params=COMPILERS, ids=lambda pair: "-".join(pair))
def early(request, tmp_path_factory):
    return compiled_or_skipped([request.param], PROGRAM.with_name("early.c"), tmp_path_factory)


@pytest.mark.parametrize("how", ["early", "late", "any"])
def test_messages_are_paired_by_their_tags(early, tmp_path, how):
    """Each of four notes waits for the answer before; the word to stop, for the last of them."""
    code, _, talk, path = recorded(early, tmp_path, 2, how)
    assert code == 0, talk
    recording = load_recording(path)
    did = messages_of(recording)
    assert recording.order.whole
    wave = waves_of(did, 2)
    assert sorted(wave.tolist()) == list(range(9))
    notes = did.sends.size == 3000
    assert did.sends.source[notes][np.argsort(wave[notes])].tolist() == [0, 1] * 4
    assert did.sends.size[wave == 8].tolist() == [4]


def test_ranks_that_share_too_few_processors_are_noted(once, tmp_path):
    ranks = (os.cpu_count() or 1) + 1
    _, _, talk, path = recorded(once, tmp_path, ranks, "alone", 3)
    notes = load_recording(path).notes
    assert [note for note in notes if f"{ranks} ranks shared" in note], talk


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """Return the program as the first compiler that is here builds it."""
    return compiled_or_skipped(COMPILERS, PROGRAM, tmp_path_factory)


def recorded(built, folder, ranks, *words, options=()):
    """Run the program under ``nidmap record``; return (code, stdout, stderr, recording's path)."""
    env, program, more = built
    path = folder / "pattern.npz"
    command = [sys.executable, "-m", "nidmap", "record", "-o", str(path), *options, "--", "mpiexec"]
    command += [*more, "-n", str(ranks), str(program), *map(str, words)]
    root = str(Path(__file__).parents[3])
    code, out, talk = patiently(command, {**env, "PYTHONPATH": root}, folder, lambda out: False)
    return code, out, talk, path


@pytest.mark.parametrize("binding", [1, 2, 3], ids=["mpif.h", "mpi", "mpi_f08"])
def test_fortran_is_counted_in_every_binding(tmp_path, tmp_path_factory, binding):
    found = [(mpi, f"{place}/bin/mpif90") for mpi, _, place in flavours()]
    compilers = [(mpi, path) for mpi, path in found if os.path.exists(path)]
    if not compilers:
        pytest.skip("no Fortran compiler of an MPI here")
    for mpi, mpif90 in compilers:
        env, _, more = compiled_or_skipped([(mpi, "mpicc")], PROGRAM, tmp_path_factory)
        program = tmp_path / f"halo-{mpi}"
        source = PROGRAM.with_name("halo.F90")
        command = [mpif90, f"-DBINDING={binding}", "-o", program, source]
        made = subprocess.run(command, env=env, capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"{mpif90} does not compile: {made.stderr[-200:]}")
        code, _, talk, path = recorded((env, program, more), tmp_path, 6)
        assert code == 0, talk
        recording = load_recording(path)
        assert recording.total().bytes.sum() == 6 * 4 * 5 * 1000
        assert phase_words(recording.phases[-1], 6).startswith("5-point stencil 2x3, periodic, in ")


def pairs(path):
    total = load_recording(path).total()
    rows = zip(*(column.tolist() for column in total.columns), strict=True)
    return {(a, b): (size, many) for a, b, size, many in rows}


def drawn(ranks, seed, many=20):
    """Return what `random_messages` of the program sends, by its own generator."""
    state, sent = seed, collections.defaultdict(lambda: [0, 0])

    def draw(below):
        nonlocal state
        state = (state * 1664525 + 1013904223) % 2**32
        return (state >> 8) % below

    for _ in range(many):
        for source in range(ranks):
            target, size = draw(ranks), draw(5000)
            sent[source, target][0] += size
            sent[source, target][1] += 1
    return {pair: tuple(entry) for pair, entry in sent.items()}


@pytest.mark.parametrize(("ranks", "how"), [(2, "together"), (5, "alone")])
def test_every_message_is_counted_once(built, tmp_path, ranks, how):
    code, out, talk, path = recorded(built, tmp_path, ranks, how, 7 + ranks)
    assert (code, out) == (7 + ranks, "the program's own words\n"), talk
    assert pairs(path) == drawn(ranks, 7 + ranks)
    phase = load_recording(path).phases[-1]
    assert (phase.together > 1.5) == (how == "together")


def test_a_halo_is_a_stencil_staged_or_not(once, tmp_path):
    shown = {}
    for how in ("halo", "staged"):
        code, _, talk, path = recorded(once, tmp_path, 6, how)
        assert code == 0, talk
        edges = {(a, b) for a, b in pairs(path)}
        grid = {(r, r + 2) for r in range(4)} | {(r, r + 1) for r in (0, 2, 4)}
        assert edges == grid | {(b, a) for a, b in grid}
        assert set(pairs(path).values()) == {(20000, 5)}
        command = [sys.executable, "-m", "nidmap", "record", "show", str(path)]
        root = Path(__file__).parents[3]
        shown[how] = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "5-point stencil 3x2, in flight together, 5 steps" in shown["halo"].stdout
    assert "are a 5-point stencil 3x2, staged by direction" in shown["staged"].stdout


def test_work_is_told_from_waiting_and_from_what_comes_before_and_after(built, tmp_path):
    code, _, talk, path = recorded(built, tmp_path, 3, "work")
    assert code == 0, talk
    recording = load_recording(path)
    assert 0.3 <= recording.work_s <= recording.exchange_s  # rank 2; rank 0 waits for 0.2 s
    assert recording.exchange_s <= recording.seconds - 0.4


def test_a_receive_from_any_rank_is_kept_with_whom_it_heard(built, tmp_path):
    code, _, talk, path = recorded(built, tmp_path, 4, "any")
    assert code == 0, talk
    recording = load_recording(path)
    order = recording.order
    did = [
        [(EVENTS[what], peer) for what, peer, *_ in order.events[order.numbers[low:high]].tolist()]
        for low, high in itertools.pairwise(order.start.tolist())
    ]
    heard = collections.Counter(event for event in did[0] if event[0] in ("receive", "any-done"))
    others = range(1, 4)
    assert {rank: heard["any-done", rank] for rank in others} == dict.fromkeys(others, 2)
    assert {rank: heard["receive", rank] for rank in others} == {1: 4, 2: 3, 3: 3}  # 1: cancelled
    for rank in range(4):
        gone = [peer for word, peer in did[rank] if word == "cancelled"]
        assert gone == [-1, (rank + 1) % 4]
    run = messages_of(recording)
    assert (run.sends.awaited >= 0).all()
    assert waves_of(run, 4) is not None  # nobody waits for ever, in the barrier neither


def test_a_sweep_is_no_halo(once, tmp_path):
    code, _, talk, path = recorded(once, tmp_path, 6, "sweep")
    assert code == 0, talk
    assert set(pairs(path).values()) == {(2 * 6 * 4000, 2 * 6)}
    command = [sys.executable, "-m", "nidmap", "record", "show", str(path)]
    root = Path(__file__).parents[3]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    assert "sweep over a 3x2 grid, from each corner in turn, " in shown
    assert "by name: --pattern sweep:3x2 --bytes 4e+03" in shown


def test_every_call_is_counted_as_what_it_sends(calls, tmp_path):
    code, out, talk, path = recorded(calls, tmp_path, 4)
    assert code == 0, talk
    expected = [line.rsplit(maxsplit=3) for line in out.splitlines()]
    assert len(expected) > 60
    found = [phase for phase in load_recording(path).phases if phase.kind != "barrier"]
    for (name, *what), phase in zip(expected, found, strict=True):
        size = phase.sent.bytes.sum() + sum(c.bytes.sum() for c in phase.collectives)
        many = phase.sent.messages.sum() + sum(c.calls.sum() for c in phase.collectives)
        assert [name, *what] == [name, phase.kind, str(size), str(many)]


def test_collectives_by_communicator(built, tmp_path):
    code, _, talk, path = recorded(built, tmp_path, 6, "collectives")
    assert code == 0, talk
    phases = {(p.kind, bool(p.collectives)): p for p in load_recording(path).phases}
    rows = phases["alltoall", True]
    assert sorted(c.members.tolist() for c in rows.collectives) == [[0, 1], [2, 3], [4, 5]]
    assert {(c.bytes.tolist()[0], c.calls.tolist()[0]) for c in rows.collectives} == {(2100, 3)}
    sent = phases["alltoall", False].sent
    assert (sent.bytes == 10 * (sent.source + sent.target)).all()
    assert len(sent.bytes) == 30
    (bcast,), (gather,) = phases["bcast", True].collectives, phases["gather", True].collectives
    assert (bcast.root, bcast.bytes.tolist()) == (5, [4000] * 6)
    assert gather.root == 1
    assert {b for a, b in pairs(path) if a == 5} >= {0, 1, 2, 3, 4}  # the root of the broadcast
    (allreduce,) = phases["allreduce", True].collectives
    assert allreduce.calls.tolist() == [4] * 6


def test_one_sided_bytes_go_from_who_has_them(built, tmp_path):
    code, _, talk, path = recorded(built, tmp_path, 4, "onesided")
    assert code == 0, talk
    kept = {pair: size for pair, (size, _) in pairs(path).items() if size}
    there = {(r, (r + 1) % 4): 40 for r in range(4)}
    back = {((r + 1) % 4, r): 56 for r in range(4)}
    assert kept == there | back


def test_persistent_requests_count_at_each_start(built, tmp_path):
    code, _, talk, path = recorded(built, tmp_path, 3, "persistent")
    assert code == 0, talk
    assert pairs(path) == {(r, (r + 1) % 3): (160, 4) for r in range(3)}


def test_the_program_may_say_what_counts(once, tmp_path):
    found = recorded(once, tmp_path, 3, "control", options=("--window", "pcontrol"))
    assert found[0] == 0, found[2]
    assert pairs(found[3]) == {(r, (r + 1) % 3): (160, 4) for r in range(3)}


@pytest.mark.parametrize(("how", "codes"), [("abort", {3}), ("leave", {4, 9})])
def test_what_was_seen_before_an_early_end_is_kept(built, tmp_path, how, codes):
    code, _, talk, path = recorded(built, tmp_path, 3, how)
    # Open MPI's launcher was seen to crash itself (128 + SIGSEGV) once it had ended the ranks of
    # an abort: its code is the command's then, and the counts were kept before.
    crashed = {139} if built[2] and how == "abort" else set()
    assert code in codes | crashed, talk  # 9 where the launcher has killed a rank and says so
    lost = [note for note in load_recording(path).notes if "left no counts" in note]
    if how == "leave":  # the launcher may kill a rank as soon as another has left
        whole = {(r, (r + 1) % 3): (160, 4) for r in range(3)}
        assert pairs(path)
        assert pairs(path).items() <= whole.items()
        assert len(lost) == (len(pairs(path)) < 3)
    else:
        assert len(lost) <= 1  # the others may have come to MPI_Finalize
    assert [f for f in os.listdir(tmp_path) if "counts" in f] == []


def test_a_recording_is_a_pattern_for_every_command(once, tmp_path):
    code, _, talk, path = recorded(once, tmp_path, 6, "halo")
    assert code == 0, talk
    command = [sys.executable, "-m", "nidmap", "predict", "-m", "torus:4x4", "--nodes", "0-5"]
    command += ["--pattern", f"measured:{path}", "--json"]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["time_s"] > 0


def test_what_cannot_be_recorded_runs_all_the_same(once, tmp_path):
    env, program, more = once
    words = ["mpiexec", *more, "-n", "2", str(program), "", "9"]
    nidmap = [sys.executable, "-m", "nidmap", "record", "--mpicc", "/bin/false"]
    env = {**env, "PYTHONPATH": str(Path(__file__).parents[3])}
    code, out, talk = patiently([*nidmap, "--", *words], env, tmp_path, lambda out: False)
    assert (code, out) == (9, "the program's own words\n"), talk
    assert "the program runs unrecorded" in talk
    code, out, talk = patiently(
        [*nidmap, "--strict", "--", *words], env, tmp_path, lambda out: False
    )
    assert (code, out) == (125, "")
    assert "not started (--strict)" in talk


def test_bytes_and_messages_are_those_of_open_mpis_monitoring(built, tmp_path):
    env, program, more = built
    if "--map-by" not in more:
        pytest.skip("monitoring is Open MPI's")
    (tmp_path / "seen").mkdir()
    monitoring = {"enable": "2", "enable_output": "3", "filename": str(tmp_path / "seen" / "r")}
    variables = {f"OMPI_MCA_pml_monitoring_{name}": value for name, value in monitoring.items()}
    code, _, talk, path = recorded(
        ({**env, **variables}, program, more), tmp_path, 4, "together", 256
    )
    assert code == 0, talk
    seen = {}
    for file in (tmp_path / "seen").iterdir():
        for line in file.read_text().splitlines():
            found = re.match(r"E\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs sent", line)
            if found:
                source, target, size, many = map(int, found.groups())
                seen[source, target] = size, many
    assert pairs(path) == seen
    assert len(seen) == 16


def test_a_program_that_is_linked_with_the_recorder(built, tmp_path):
    env, _, more = built
    compiler = find_compilers(("mpiexec",), env)[0]
    line = link_line(compiler).split()
    place = line.index("app.o")
    line[place] = str(PROGRAM)
    line[line.index("-O2")] = "-O0"
    subprocess.run(line, cwd=tmp_path, env=env, check=True)
    for loaded in ({}, {"LD_PRELOAD": library_of(built)}):  # twice in one program is once
        linked = {**env, **loaded}, tmp_path / "app", more
        code, _, talk, path = recorded(linked, tmp_path, 3, "persistent")
        assert code == 0, talk
        assert pairs(path) == {(r, (r + 1) % 3): (160, 4) for r in range(3)}
