"""What a library before a program has to bear: the program's result never changes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rankmap.recording.file import load_recording
from tests.rankmap.mpi_programs import COMPILERS, compiled_or_skipped, library_of
from tests.rankmap.mpis import patiently

pytestmark = pytest.mark.mpi

HERE = Path(__file__).parent
ROOT = str(HERE.parents[2])

#: Three ranks, four rings of fifty turns.
MESSAGES, SUM = 3 * 4 * 50, 4 * (0 + 1 + 2) * sum(range(50))


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    return compiled_or_skipped(COMPILERS, HERE / "faults.c", tmp_path_factory)


def recorded(built, folder, what, variables):
    env, program, more = built
    path = folder / "pattern.npz"
    command = [sys.executable, "-m", "nidmap", "record", "-o", str(path), "--"]
    command += ["mpiexec", *more, "-n", "3", str(program), what]
    env = {**env, "PYTHONPATH": ROOT, **variables}
    code, out, talk = patiently(command, env, folder, lambda out: "sum" in out)
    return code, out, talk, path


@pytest.mark.parametrize(
    ("what", "more", "counted"),
    [("threads", 0, True), ("fork", 3 * 7, True), ("full", 0, False), ("sessions", 0, False)],
)
def test_the_programs_result_is_its_own(once, tmp_path, what, more, counted):
    code, out, talk, path = recorded(once, tmp_path, what, {})
    assert (code, out) == (6, f"sum {SUM + more}\n"), talk
    if counted:
        ring = [p for p in load_recording(path).phases if p.kind == "point-to-point"]
        assert sum(int(p.sent.messages.sum()) for p in ring) == MESSAGES
    else:
        assert not path.exists()
        assert "no rank of" in talk


def test_another_tool_may_be_loaded_too(once, tmp_path):
    env, _, _ = once
    tool = tmp_path / "tool.so"
    words = ["mpicc", "-shared", "-fPIC", "-o", str(tool), str(HERE / "tool.c")]
    subprocess.run(words, env=env, check=True)
    code, out, talk, path = recorded(once, tmp_path, "plain", {"LD_PRELOAD": str(tool)})
    assert (code, out) == (6, f"sum {SUM}\n"), talk
    ring = [p for p in load_recording(path).phases if p.kind == "point-to-point"]
    assert sum(int(p.sent.messages.sum()) for p in ring) == MESSAGES


def test_a_library_for_another_mpi_leaves(once, tmp_path_factory, tmp_path):
    other = compiled_or_skipped(COMPILERS[-1:], HERE / "faults.c", tmp_path_factory)
    for (env, program, more), library in ((once, library_of(other)), (other, library_of(once))):
        command = ["mpiexec", *more, "-n", "3", str(program), "plain"]
        loaded = {**env, "LD_PRELOAD": library, "NIDMAP_RECORD": str(tmp_path / "counts")}
        code, out, talk = patiently(command, loaded, tmp_path, lambda out: "sum" in out)
        assert (code, out) == (6, f"sum {SUM}\n"), talk
        assert len(re.findall("for another MPI than the program's", talk)) == 1


def test_a_cache_without_room_leaves_the_program_alone(once, tmp_path):
    (tmp_path / "full").write_text("no folder")
    variables = {"XDG_CACHE_HOME": str(tmp_path / "full")}
    code, out, talk, path = recorded(once, tmp_path, "plain", variables)
    assert (code, out) == (6, f"sum {SUM}\n"), talk
    assert "cannot write" in talk
    assert "the program runs unrecorded" in talk
    assert not path.exists()


def test_a_static_program_runs_and_one_line_says_how_to_link_it(once, tmp_path):
    env, _, more = once
    source, program = tmp_path / "static.c", tmp_path / "static"
    source.write_text("int MPI_Init(void) { return 6; } int main(void) { return MPI_Init(); }")
    words = ["cc", "-static", "-g", "-o", str(program), str(source)]
    if subprocess.run(words, env=env, capture_output=True).returncode:
        pytest.skip("no C library to link statically with here")
    code, out, talk, _ = recorded((env, program, more), tmp_path, "plain", {})
    assert (code, out) == (6, ""), talk
    assert "linked statically" in talk
    assert "nidmap record --link" in talk
