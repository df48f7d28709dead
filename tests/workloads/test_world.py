# SPDX-License-Identifier: Apache-2.0
"""Ranks that start, agree and fail together: real MPI, every launch with a time limit."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

from nidmap.placement.errors import LaunchError
from nidmap.workloads.launched import (
    STARTED,
    Launches,
    _oversubscribe_options,
    current_launch,
    mpiexec_words,
)
from nidmap.workloads.world import RankPlace, _crowded_node, places_of
from tests.rankmap.mpis import with_mpi4py
from tests.waiting import wait_until
from tests.workloads.conftest import library, mpiexec, variables
from tests.workloads.samples import load

pytestmark = pytest.mark.mpi

#: Runs `body` behind the guard, as a program of nidmap bench does.
PROGRAM = """
    import sys, time
    from nidmap.placement.errors import NidmapError, ParseError, UsageError
    from nidmap.workloads.world import raise_together, require_same, run_guarded, world
    def main():
        comm = world()
        rank = comm.Get_rank()
        {body}
    sys.exit(run_guarded(main))
"""


def guarded(body):
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), 8 * " ")
    return PROGRAM.format(body=lines.lstrip())


def said(done):
    """Return the lines that are ours: a launcher adds its own about codes."""
    return [line for line in done.stderr.splitlines() if line.startswith("nidmap: ")]


@pytest.mark.parametrize("ranks", [1, 5])
def test_all_ranks_raise_what_one_of_them_raises(launch, ranks):
    body = """
        try:
            with raise_together(comm):
                if rank == comm.Get_size() // 2:
                    raise ParseError("dump.txt", 7, "no NID", "look there")
        except NidmapError as error:
            told = comm.gather((type(error).__name__, str(error), error.exit_code))
            if rank == 0:
                print(*dict.fromkeys(told), len(told), sep="\\n")
    """
    done = launch(guarded(body), ranks)
    where = "" if ranks == 1 else f"rank {ranks // 2}: "
    expected = ("ParseError", f"{where}dump.txt:7: no NID; look there", 3)
    assert done.stdout.splitlines() == [str(expected), str(ranks)]
    assert said(done) == []


@pytest.mark.usefixtures("once")
def test_any_exception_becomes_one_of_ours(launch):
    body = """
        found = []
        for raised in (ValueError("bad\\nkey"), MemoryError(), OSError(28, "full"), KeyError("x")):
            try:
                with raise_together(comm):
                    if rank == 1:
                        raise raised
            except NidmapError as error:
                found.append((type(error).__name__, error.exit_code, str(error)))
        told = comm.gather(found)
        if rank == 0:
            assert all(one == told[0] for one in told)
            print(*told[0], sep="\\n")
    """
    lines = launch(guarded(body), 3).stdout.splitlines()
    assert [line.split(",")[0].strip("('") for line in lines] == [
        "UsageError",
        "NidmapError",
        "NidmapError",
        "RankDefectError",
    ]
    assert [int(line.split(",")[1]) for line in lines] == [2, 3, 3, 70]
    assert all("rank 1: " in line for line in lines)


@pytest.mark.usefixtures("once")
def test_ranks_that_were_given_different_arguments_all_say_so(launch):
    done = launch(guarded("require_same(comm, items=10 + (rank == 2), seed=0)"), 4, check=False)
    assert done.returncode == 2
    assert said(done) == [
        "nidmap: rank 2: items is 11 here and 10 on rank 0; all ranks must be given the same"
    ]


@pytest.mark.usefixtures("once")
@pytest.mark.parametrize(
    "words", [("fft", "--shape"), ("sort", "--items"), ("stencil", "--bytes"), ("isx", "--repeat")]
)
def test_ranks_of_different_command_lines_all_say_so(launch, words):
    program = f"""
        import sys
        from mpi4py import MPI
        import nidmap
        sys.argv = ["nidmap", "bench", *{words}, str(8 + (MPI.COMM_WORLD.Get_rank() == 2))]
        nidmap.main()
    """
    done = launch(program, 3, check=False)
    assert done.returncode == 2
    (line,) = said(done)
    assert line.startswith("nidmap: rank 2: ")
    assert "all ranks must be given the same" in line


@pytest.mark.parametrize("ranks", [2, 5])
def test_one_rank_that_fails_ends_all_with_one_line(launch, ranks):
    body = """
        comm.Barrier()
        if rank == comm.Get_size() - 1:
            raise ZeroDivisionError("deep inside")
        comm.Barrier()
    """
    done = launch(guarded(body), ranks, check=False)
    assert done.returncode != 0
    assert len(said(done)) == 1
    assert f"rank {ranks - 1}: internal error, ZeroDivisionError: deep inside" in said(done)[0]


def test_some_ranks_that_fail_say_it_once(launch):
    body = """
        comm.Barrier()
        if rank:
            raise UsageError(f"no good")
        comm.Recv(bytearray(8), 1)
    """
    done = launch(guarded(body), 4, check=False)
    assert done.returncode == 2
    (line,) = said(done)  # the lowest's, where it gets a core in time
    assert line in {f"nidmap: rank {k}: no good" for k in (1, 2, 3)}


def test_all_ranks_that_fail_by_themselves_say_it_once(launch):
    done = launch(guarded("raise UsageError('no good')"), 4, check=False)
    assert (done.returncode, said(done)) == (2, ["nidmap: no good"])


def test_a_world_of_another_size_than_asked_for_is_an_error(bench):
    done = bench(["alltoall", "-n", "4", "--bytes", "8"], 2, check=False)
    assert done.returncode == 4
    assert said(done) == ["nidmap: the world has 2 ranks, but -n asks for 4"]


def test_worlds_of_one_rank_each_are_found_out(bench):
    """A launcher of another MPI starts ranks that do not know of each other."""
    alone = {"PMI_RANK": "0", "PMI_SIZE": "4", "OMPI_COMM_WORLD_SIZE": "4", STARTED: "4"}
    done = bench(["alltoall", "--bytes", "8"], 1, env=alone, check=False)
    if done.returncode == 0:  # a launcher overwrites its own variables, never ours
        pytest.fail("one rank ran although four were started")
    assert done.returncode == 4
    assert "started 4; two MPIs are mixed" in said(done)[0]
    assert len(said(done)) == 1


def test_the_launcher_of_another_mpi_is_an_error_with_a_hint():
    """MPICH's launcher and Open MPI's library, and the other way round, where both are here."""
    found = dict(with_mpi4py())
    if len(found) < 2:
        pytest.skip("needs mpi4py on mpich and on openmpi ($NIDMAP_TEST_MPIS)")
    for launcher, other in (("mpich", "openmpi"), ("openmpi", "mpich")):
        place, python = found[launcher], f"{found[other]}/bin/python"
        words = [*mpiexec(place), "-n", "3", python, "-m", "nidmap", "bench", "alltoall"]
        for _ in range(3):  # prterun may drop the last words of ranks that end at once
            done = subprocess.run(
                words,
                env=variables(place),
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            if said(done):
                break
        assert done.returncode == 4
        assert len(said(done)) == 1
        assert "two MPIs are mixed" in said(done)[0]


@pytest.mark.usefixtures("once")
def test_words_that_are_wrong_are_said_once_over_all_ranks(bench):
    for words in (["alltoall", "--bytes", "much"], ["alltoall", "--nonsense"], ["nothing"]):
        done = bench(words, 3, check=False)
        assert done.returncode == 2
        assert len(said(done)) == 1


@pytest.mark.usefixtures("once")
def test_more_ranks_than_cores_is_said(bench):
    ranks = len(os.sched_getaffinity(0)) + 1
    words = ["alltoall", "--bytes", "8", "--repeat", "1", "--json"]
    done = bench(words, ranks)
    assert f"nidmap: oversubscribed: {ranks} ranks on" in done.stderr
    assert json.loads(done.stdout)["oversubscribed"].startswith("oversubscribed")


@pytest.mark.usefixtures("once")
def test_a_refusal_is_the_only_thing_said_where_ranks_share_cores(bench):
    ranks = len(os.sched_getaffinity(0)) + 1
    for words in (
        ["alltoall", "--bytes", "500GB"],
        ["alltoall", "--ppn", "99"],
        ["sort", "--items", "2^45"],
        ["stencil", "--dims", "7x11x13"],
    ):
        done = bench(words, ranks, check=False)
        assert done.returncode
        assert len(said(done)) == 1
        assert "oversubscribed" not in done.stderr


def test_cores_are_counted_by_node_and_quota():
    free = float("inf")
    assert _crowded_node([("a", 0b11, free), ("a", 0b11, free), ("b", 0b1, free)]) == ""
    assert _crowded_node([("a", 0b01, free), ("a", 0b10, free)]) == ""
    assert "2 ranks on 1 core of b" in _crowded_node(
        [("a", 3, free), ("b", 1, free), ("b", 1, free)]
    )
    assert "3 ranks on 1.5 cores of a" in _crowded_node([("a", 0b1111, 1.5)] * 3)


def test_a_launch_is_told_from_a_batch_script():
    assert current_launch({}) is None
    assert current_launch({"SLURM_PROCID": "0", "SLURM_JOB_ID": "9", "SLURM_NTASKS": "4"}) is None
    interactive = {"SLURM_STEP_ID": str(0xFFFFFFFA), "SLURM_PROCID": "0"}
    assert current_launch(interactive) is None
    step = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8"}
    assert (current_launch(step).rank, current_launch(step).size) == (3, 8)
    found = current_launch({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"})
    assert (found.by, found.rank, found.size) == ("Open MPI", 1, 2)
    assert current_launch({"PMIX_RANK": "5"}).size is None
    assert current_launch({"PMI_RANK": "x", "PMI_SIZE": "4"}) is None
    assert current_launch({STARTED: "4"}).size == 4


def test_the_mpiexec_may_be_given(tmp_path):
    words = mpiexec_words(3, {"NIDMAP_MPIEXEC": "srun --mpi='pmi2'"})
    assert words == ["srun", "--mpi=pmi2", "-n", "3"]
    with pytest.raises(LaunchError, match="cannot be read"):
        mpiexec_words(3, {"NIDMAP_MPIEXEC": "srun 'x"})


@pytest.mark.parametrize(
    ("real", "beside", "more"),
    [
        ("mpiexec.hydra", ["ompi_info"], []),
        ("mpiexec.mpich", ["prte_info", "ompi_info"], []),
        ("orterun", ["ompi_info", "hydra_pmi_proxy"], ["--oversubscribe"]),
        ("mpiexec", ["ompi_info"], ["--oversubscribe"]),
        ("mpiexec", ["prte_info", "ompi_info"], ["--map-by", ":OVERSUBSCRIBE"]),
        ("mpiexec", ["hydra_pmi_proxy"], []),
    ],
)
def test_the_executable_itself_says_what_it_takes(tmp_path, real, beside, more):
    (tmp_path / "lib").mkdir()
    for name in (real, *beside):
        (tmp_path / "lib" / name).write_text("#!/bin/sh\n")
        (tmp_path / "lib" / name).chmod(0o755)
    (tmp_path / "mpiexec").symlink_to(tmp_path / "lib" / real)
    assert _oversubscribe_options(str(tmp_path / "mpiexec")) == more


def test_outside_a_launch_ranks_are_started_with_the_same_words(place, tmp_path):
    out = tmp_path / "samples.csv"
    command = [
        f"{place}/bin/python",
        "-m",
        "nidmap",
        "bench",
        "alltoall",
        "-n",
        "3",
        "--bytes",
        "8",
    ]
    command += ["--repeat", "2", "-o", str(out)]
    done = subprocess.run(
        command, env=variables(place), capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "off node" in done.stdout
    header = json.loads(out.read_text().split("\n")[0].removeprefix("# nidmap.samples/1 "))
    assert (header["ranks"], header["ended"]) == (3, "complete")
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.usefixtures("once")
def test_nobody_reads_the_result(place):
    words = ["-m", "nidmap", "bench", "sort", "--items", "100", "--repeat", "1"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [f"{place}/bin/python", *words],
        env=variables(place),
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 141
    (took,) = said(done)  # for whoever times the launch
    assert took.startswith("nidmap: communication took ")


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm")
def test_killed_ranks_leave_no_shared_memory_behind(place, tmp_path):
    out, shared = tmp_path / "samples.csv", tmp_path / "shared"
    words = ["alltoall", "--bytes", "8", "--repeat", "100000000", "-o", str(out)]
    command = [*mpiexec(place), "-n", "2", f"{place}/bin/python", "-c", KILLED, str(shared), *words]
    subprocess.run(
        command, env=variables(place), capture_output=True, timeout=600, check=False, text=True
    )
    header, frame = load(str(out))
    assert (header["ranks"], len(frame) > 0) == (2, True)
    segments = shared.read_text().splitlines()
    assert segments or library(place) == "openmpi"
    assert [path for path in segments if os.path.exists(path)] == []


#: Runs the command line, its last rank killed once there are samples.
KILLED = """
import os, re, signal, sys, threading, time
import nidmap
from nidmap.workloads import results
results.EVERY = 0.1
shared = sys.argv.pop(1)
def kill():
    out = sys.argv[-1]
    while not os.path.exists(out) or os.path.getsize(out) < 5000:
        time.sleep(0.01)
    with open("/proc/self/maps") as maps, open(shared, "w") as listed:
        segments = re.findall("/dev/shm/mpich_shm_[0-9a-zA-Z_]+", maps.read())
        listed.write("".join(f"{path}\\n" for path in set(segments)))
    os.kill(os.getpid(), signal.SIGKILL)
if os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK")) == "1":
    threading.Thread(target=kill, daemon=True).start()
sys.argv[:1] = ["nidmap", "bench"]
nidmap.main()
"""


def test_a_signal_ends_the_launch_and_the_row(tmp_path):
    child = (
        "import signal, sys, time; seen = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: seen.append(1))\n"
        "print('ready', flush=True)\n"
        "end = time.monotonic() + 600\n"
        "while not seen and time.monotonic() < end: time.sleep(0.01)\n"
        "time.sleep(0.3); print(len(seen)); sys.exit(130)"
    )
    before = signal.getsignal(signal.SIGINT)
    with Launches(60) as children:
        assert children.run([sys.executable, "-c", "raise SystemExit(7)"], os.environ) == 7
        assert not children.stopped
        said = tmp_path / "said"
        timer = threading.Thread(
            target=lambda: (
                wait_until(lambda: said.exists() and said.read_text()),
                os.kill(os.getpid(), signal.SIGINT),
            )
        )
        timer.start()
        with said.open("w") as out:
            assert children.run([sys.executable, "-c", child], os.environ, stdout=out) == 130
        timer.join()
        assert said.read_text() == "ready\n1\n"
        assert children.stopped
        with pytest.raises(LaunchError, match="cannot start"):
            children.run(["/no/such/mpiexec"], os.environ)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_small_run_loads_no_compiler_and_starts_no_threads(place):
    program = """
        import runpy, sys
        sys.argv = ["nidmap", "bench", "{name}", *{words!r}.split()]
        try:
            runpy.run_module("nidmap", run_name="__main__")
        except SystemExit as left:
            assert not left.code
        heavy = ("numba", "scipy", "pandas", "matplotlib", "importlib.metadata", "subprocess")
        with open("/proc/self/status") as stream:
            threads = [line for line in stream if line.startswith("Threads")]
        print([name for name in heavy if name in sys.modules], threads[0].split()[1])
    """
    for name, words in (
        ("sort", "--items 10"),
        ("isx", "--keys 64"),
        ("stencil", "--bytes 8 --iterations 1"),
        ("contention", "--n 16 --m 1"),
        ("alltoall", "--bytes 8"),
    ):
        text = textwrap.dedent(program.format(name=name, words=f"{words} --repeat 1"))
        done = subprocess.run(
            [f"{place}/bin/python", "-c", text],
            env=variables(place, {"MPIR_CVAR_ASYNC_PROGRESS": "0"}),
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        loaded, threads = done.stdout.splitlines()[-1].rsplit(" ", 1)
        assert loaded == "[]", name
        assert int(threads) <= 4, name  # MPI's own: numpy's would be one more a core


def test_a_run_that_is_interrupted_keeps_what_is_finished(place, tmp_path):
    out = tmp_path / "samples.csv"
    words = ["bench", "alltoall", "--bytes", "1kB", "--repeat", "100000000", "-o", str(out)]
    often = (
        "import nidmap; from nidmap.workloads import results; results.EVERY = 0.1; nidmap.main()"
    )
    command = [*mpiexec(place), "-n", "2", f"{place}/bin/python", "-c", often, *words]
    process = subprocess.Popen(
        command,
        env=variables(place),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_until(lambda: out.exists() and out.stat().st_size > 20_000)
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.communicate(timeout=600)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    header, frame = load(str(out))  # a launcher may kill before a rank can say goodbye
    assert header["ended"] in ("interrupted", "running")
    assert len(frame) > 50
    assert set(frame["phase"]) == {"total", "communication"}


@pytest.mark.usefixtures("once")
def test_a_time_limit_ends_a_run_with_its_samples(bench, tmp_path):
    out = tmp_path / "samples.csv"
    words = ["alltoall", "--bytes", "8-1MiB", "--repeat", "1000000", "--time-limit", "3"]
    done = bench([*words, "-o", str(out)], 2)
    assert "ended early (time limit)" in done.stderr
    header, frame = load(str(out))
    assert header["ended"] == "time limit"
    assert len(frame) > 0


def test_places_of():
    assert places_of(["a", "b", "a"])[2] == RankPlace(node=0, local=1, ranks=2, nodes=2, most=2)
