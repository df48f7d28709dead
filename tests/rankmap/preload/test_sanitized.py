# SPDX-License-Identifier: Apache-2.0
"""The recorder under the address and the undefined-behaviour sanitizer: nothing is found in it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nidmap.rankmap.preload import FLAGS
from nidmap.rankmap.recording.file import load_recording
from tests.rankmap.mpi_programs import COMPILERS, compiled_or_skipped
from tests.rankmap.mpis import patiently

pytestmark = pytest.mark.mpi

PROGRAMS = Path(__file__).parents[1] / "recording"
ROOT = str(Path(__file__).parents[3])
LAST = "Gather from the other side"  # what the program says last
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g")


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return every call that sends (calls.c), as it is and under the sanitizers."""
    source = PROGRAMS / "calls.c"
    plain = compiled_or_skipped(COMPILERS, source, tmp_path_factory)
    env, _, more = plain
    try:
        checked = compiled_or_skipped(COMPILERS, source, tmp_path_factory, *SANITIZERS)
    except subprocess.CalledProcessError:
        pytest.skip("no sanitizers here")
    options = {"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0",
               "UBSAN_OPTIONS": "print_stacktrace=1"}  # fmt: skip
    env = {**checked[0], **options, FLAGS: " ".join(SANITIZERS)}
    return plain, (env, checked[1], more)


def recorded(built, folder, *front):
    """Record a program on four ranks; return the exit code, its output, all talk and the file."""
    env, program, more = built
    path = folder / "pattern.npz"
    command = [sys.executable, "-m", "nidmap", "record", "-o", str(path), *front, "--"]
    command += ["mpiexec", *more, "-n", "4", str(program)]
    env = {**env, "PYTHONPATH": ROOT, "UCX_LOG_LEVEL": "fatal"}
    return *patiently(command, env, folder, lambda out: LAST in out), path


@pytest.fixture(scope="module")
def checked_run(programs, tmp_path_factory):
    """Return what a run under the sanitizers gives."""
    return recorded(programs[1], tmp_path_factory.mktemp("checked"))


def test_no_sanitizer_finds_anything_and_the_counts_are_the_same(programs, checked_run, tmp_path):
    code, out, talk, path = checked_run
    expected = recorded(programs[0], tmp_path)
    assert "Sanitizer" not in talk, talk
    assert "runtime error" not in talk, talk
    assert (code, sorted(out.split())) == (0, sorted(expected[1].split())), talk
    assert totals(load_recording(path).phases) == totals(load_recording(expected[3]).phases)


def test_nor_where_a_part_of_the_run_is_kept(programs, tmp_path):
    code, out, talk, path = recorded(programs[1], tmp_path, "--window", "10%-90%")
    assert (code, "Sanitizer" in talk, "runtime error" in talk) == (0, False, False), talk
    assert out
    assert path.exists()


def totals(phases):
    """Return the bytes and the messages of each kind of phase."""
    kinds = sorted({phase.kind for phase in phases})
    return {
        kind: tuple(
            int(sum(np.sum(getattr(phase.sent, what)) for phase in phases if phase.kind == kind))
            for what in ("bytes", "messages")
        )
        for kind in kinds
    }


def test_a_fault_in_it_would_be_found(programs, checked_run):
    """The library that ran is the checked one: its symbols ask the sanitizers' runtimes."""
    assert checked_run[0] == 0
    built = sorted(Path(programs[1][0]["XDG_CACHE_HOME"]).rglob("libnidmap_mpi.so"))
    symbols = [
        subprocess.run(["nm", "-D", p], capture_output=True, text=True).stdout for p in built
    ]
    assert any("__asan_report_load" in text and "__ubsan_handle" in text for text in symbols)
