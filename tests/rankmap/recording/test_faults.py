# SPDX-License-Identifier: Apache-2.0
"""What a library before a program has to bear: the program's result never changes."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nidmap.rankmap.recording.file import load_recording
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


def ran(built, folder, command, variables):
    """Return the code, the sum and the talk of a command."""
    env = {**built[0], "PYTHONPATH": ROOT, "UCX_LOG_LEVEL": "fatal", **variables}
    code, out, talk = patiently(command, env, folder, lambda out: "sum" in out)
    return code, re.findall("^sum .*$", out, re.MULTILINE), talk


def recorded(built, folder, what, variables, front=()):
    _, program, more = built
    path = folder / "pattern.npz"
    command = [sys.executable, "-m", "nidmap", "record", "-o", str(path), "--"]
    command += ["mpiexec", *more, "-n", "3", *front, str(program), what]
    return *ran(built, folder, command, variables), path


def preloaded(built, folder, library, *words, ranks=3):
    """Run the program with a list of libraries before it, without `nidmap record`."""
    _, program, more = built
    command = ["mpiexec", *more, "-n", str(ranks), *words, str(program), "plain"]
    variables = {"LD_PRELOAD": library, "NIDMAP_RECORD": str(folder / "counts")}
    return ran(built, folder, command, variables)


def ring_messages(path):
    ring = [p for p in load_recording(path).phases if p.kind == "point-to-point"]
    return sum(int(p.sent.messages.sum()) for p in ring)


@pytest.mark.parametrize(
    ("what", "more", "counted"),
    [
        ("threads", 0, MESSAGES),
        ("children", 3 * 12, MESSAGES),
        ("freed", 3 * sum(range(50)), MESSAGES + 3 * 50),
        ("elsewhere", 0, MESSAGES),
        ("late", 0, MESSAGES),
        ("full", 0, 0),
        ("files", 0, 0),
        ("sessions", 0, 0),
    ],
)
def test_the_programs_result_is_its_own(once, tmp_path, what, more, counted):
    code, out, talk, path = recorded(once, tmp_path, what, {})
    assert (code, out) == (6, [f"sum {SUM + more}"]), talk
    if counted:
        assert ring_messages(path) == counted
    else:
        assert not path.exists()
        assert re.search("no rank (of|wrote)", talk)


@pytest.mark.parametrize("what", ["errors", "memory", "killed", "broken"])
def test_it_ends_as_it_does_alone(once, tmp_path, what):
    _, program, more = once
    alone = ran(once, tmp_path, ["mpiexec", *more, "-n", "3", str(program), what], {})
    code, out, talk, _ = recorded(once, tmp_path, what, {})
    assert (code, out) == alone[:2], talk
    assert out


@pytest.mark.parametrize("order", ["{ours}:{tool}", "{tool}:{ours}", "{ours}:{again}"])
def test_other_tools_may_be_loaded_before_and_behind(once, tmp_path, order):
    env, _, _ = once
    tool, again = tmp_path / "tool.so", tmp_path / "again.so"
    words = ["mpicc", "-shared", "-fPIC", "-o", str(tool), str(HERE / "tool.c")]
    subprocess.run(words, env=env, check=True)
    again.write_bytes(Path(library_of(once)).read_bytes())
    loaded = order.format(ours=library_of(once), tool=tool, again=again)
    assert preloaded(once, tmp_path, loaded)[:2] == (6, [f"sum {SUM}"])
    (counts,) = tmp_path.glob("counts*")
    assert counts.stat().st_size > 0


def test_ranks_that_load_nothing_wait_for_nobody(once, tmp_path):
    drop = '[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 ] && unset LD_PRELOAD; exec "$0" "$@"'
    code, out, talk, path = recorded(once, tmp_path, "plain", {}, ("sh", "-c", drop))
    assert (code, out) == (6, [f"sum {SUM}"]), talk
    assert "1 of 3 ranks left no counts" in load_recording(path).notes
    assert ring_messages(path) == MESSAGES * 2 // 3


def test_a_library_that_the_loader_does_not_take_is_no_loss(once, tmp_path):
    (tmp_path / "bad.so").write_bytes(Path(library_of(once)).read_bytes()[:100])
    code, out, talk = preloaded(once, tmp_path, str(tmp_path / "bad.so"))
    assert (code, out) == (6, [f"sum {SUM}"])
    assert "cannot be preloaded" in talk


def test_no_version_of_the_c_library_is_asked_for(once):
    raw = Path(library_of(once)).read_bytes()
    assert b"libpthread.so.0\0" in raw
    for newer in (b"GLIBC_", b"__isoc23", b"GCC_"):
        assert newer not in raw


def test_a_full_disk_costs_the_counts(once, tmp_path):
    host = os.uname().nodename
    (tmp_path / f"counts.{host}").symlink_to("/dev/full")
    code, out, talk = preloaded(once, tmp_path, library_of(once))
    assert (code, out) == (6, [f"sum {SUM}"])
    assert talk.count("No space left on device; counts of rank") == 3


def test_the_programs_input_is_its_own(once, tmp_path):
    env, program, more = once
    command = [sys.executable, "-m", "nidmap", "record", "--", "mpiexec", *more, "-n", "3"]
    done = subprocess.run(
        [*command, str(program), "reads"], input="5\n", capture_output=True, text=True,
        env={**env, "PYTHONPATH": ROOT}, cwd=tmp_path, timeout=1200,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (6, f"sum {SUM + 5}\n"), done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_as_it_does_alone(once, tmp_path, number):
    env, program, more = once
    command = ["mpiexec", *more, "-n", "3", str(program), "waits"]
    codes = []
    for front in ([], [sys.executable, "-m", "nidmap", "record", "--"]):
        with subprocess.Popen(  # a job that a shell starts beside itself ignores SIGINT
            front + command, env={**env, "PYTHONPATH": ROOT}, cwd=tmp_path, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process:  # fmt: skip
            assert process.stdout.readline() == f"sum {SUM}\n"
            if number == signal.SIGINT:
                os.killpg(process.pid, number)  # as a terminal does
            else:
                process.send_signal(number)
            process.stdout.read()
            codes.append(process.wait())
    assert codes[0] in (codes[1], 128 - codes[1], 128 + codes[1], -(codes[1] - 128))


def test_a_python_program_loads_its_mpi_itself(once, tmp_path):
    code = (
        "import os; from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); os.write(1, b'sum True\\n')"
    )
    env, _, more = once
    if subprocess.run(["python", "-c", "import mpi4py"], env=env, capture_output=True).returncode:
        pytest.skip("no mpi4py here")
    path = tmp_path / "pattern.npz"
    command = [sys.executable, "-m", "nidmap", "record", "-o", str(path), "--", "mpiexec", *more]
    command += ["-n", "2", "python", "-c", code]
    assert ran(once, tmp_path, command, {})[:2] == (0, ["sum True"] * 2)
    assert "barrier" in [p.kind for p in load_recording(path).phases]


def test_an_address_sanitizer_is_told_of_the_library(once, tmp_path):
    env, _, more = once
    program = tmp_path / "checked"
    words = ["mpicc", "-w", "-fsanitize=address", "-o", str(program), str(HERE / "faults.c")]
    built = env, program, more
    alone = ["mpiexec", *more, "-n", "1", str(program), "plain"]
    options = {"ASAN_OPTIONS": "detect_leaks=0"}
    if (
        subprocess.run(words, env=env, capture_output=True).returncode
        or ran(built, tmp_path, alone, options)[0] != 6
    ):
        pytest.skip("no address sanitizer that works here")
    code, out, talk, path = recorded(built, tmp_path, "plain", options)
    assert (code, out, ring_messages(path)) == (6, [f"sum {SUM}"], MESSAGES), talk


def test_a_library_for_another_mpi_leaves(once, tmp_path_factory, tmp_path):
    other = compiled_or_skipped(COMPILERS[-1:], HERE / "faults.c", tmp_path_factory)
    for (env, program, more), library in ((once, library_of(other)), (other, library_of(once))):
        command = ["mpiexec", *more, "-n", "3", str(program), "plain"]
        loaded = {**env, "LD_PRELOAD": library, "NIDMAP_RECORD": str(tmp_path / "counts")}
        code, out, talk = ran(once, tmp_path, command, loaded)
        assert (code, out) == (6, [f"sum {SUM}"]), talk
        assert len(re.findall("for another MPI than the program's", talk)) == 1


def test_a_cache_without_room_leaves_the_program_alone(once, tmp_path):
    (tmp_path / "full").write_text("no folder")
    variables = {"XDG_CACHE_HOME": str(tmp_path / "full")}
    code, out, talk, path = recorded(once, tmp_path, "plain", variables)
    assert (code, out) == (6, [f"sum {SUM}"]), talk
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
    assert (code, out) == (6, []), talk
    assert "linked statically" in talk
    assert "nidmap record --link" in talk
