# SPDX-License-Identifier: Apache-2.0
"""A program is recorded, or runs unrecorded, but is never killed, whichever MPIs are on PATH."""

import os
import shutil
import subprocess
import sys

import pytest

from nidmap.rankmap.preload.program_mpi import launcher_abi, program_abi
from nidmap.rankmap.recording.file import load_recording
from tests.rankmap.mpi_programs import kept_libraries
from tests.rankmap.mpis import ENV, environment, flavours

PROGRAM = """
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
to, source = (world.rank + 1) % world.size, (world.rank - 1) % world.size
world.Sendrecv(array("d", range(100)), to, recvbuf=array("d", bytes(800)), source=source)
total = world.allreduce(1)
if not world.rank:
    print("sum", total)
"""

MORE = {"openmpi": ["--oversubscribe"], "mpich": []}


def places():
    """Return MPI to directory of the two that are here with mpi4py and a compiler."""
    return {name: place for name, _, place in flavours() if os.path.exists(f"{place}/bin/mpicc")}


def link_debian_names(folder, compilers, launcher):
    """Make a folder in which ``mpicc`` is one MPI's and ``mpiexec.NAME`` another's."""
    names = {f"mpicc{end}": f"{place}/bin/mpicc" for end, place in compilers.items()}
    for name, path in (names | launcher).items():
        (folder / name).write_text(f'#!/bin/sh\nexec {path} "$@"\n')
        (folder / name).chmod(0o755)


#: Each MPI is met with and without a script; the compiler that deceives, under both MPIs.
CASES = [
    ("mpich", False, "own"),
    ("mpich", True, "other"),
    ("openmpi", False, "other"),
    ("mpich", False, "none"),
    ("openmpi", True, "other, own by its name"),
]


@pytest.mark.parametrize(("mpi", "script", "compilers"), CASES)
def test_a_python_program_is_never_killed(tmp_path, tmp_path_factory, mpi, script, compilers):
    here = places()
    if len(here) < 2 or not shutil.which("cc"):
        pytest.skip("two MPIs with compilers are needed")
    other = next(name for name in here if name != mpi)
    links = {
        "own": {"": here[mpi]},
        "other": {"": here[other]},
        "other, own by its name": {"": here[other], f".{mpi}": here[mpi]},
        "none": {},
    }[compilers]
    folder = tmp_path / "bin"
    folder.mkdir()
    link_debian_names(folder, links, {f"mpiexec.{mpi}": f"{here[mpi]}/bin/mpiexec"})
    python = f"{here[mpi]}/bin/python"
    if not os.path.exists(f"{here[mpi]}/bin/python"):
        python = sys.executable
    (tmp_path / "ring.py").write_text(PROGRAM)
    program = [python, str(tmp_path / "ring.py")]
    if script:
        (folder / "job.sh").write_text(f"#!/bin/sh\nexec {' '.join(program)}\n")
        (folder / "job.sh").chmod(0o755)
        program = ["job.sh"]
    env = {
        **{k: v for k, v in environment(here[mpi]).items() if k != "NIDMAP_MPICC"},
        **ENV,
        "PATH": f"{folder}:/usr/bin:/bin",
        "XDG_CACHE_HOME": kept_libraries(tmp_path_factory),
        "NIDMAP_CFLAGS": "-O0",
    }
    launch = [f"mpiexec.{mpi}", *MORE[mpi], "-n", "2", *program]
    path = tmp_path / "ring.npz"
    words = [sys.executable, "-m", "nidmap", "record", "-o", str(path), "--", *launch]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "sum 2\n"), done
    systems = shutil.which(f"mpicc.{mpi}", path="/usr/bin:/bin")  # Debian's, of the same MPI
    if systems or compilers in ("own", "other, own by its name"):
        assert load_recording(str(path)).ranks == 2
    else:
        assert "--mpicc or NIDMAP_MPICC; the program runs unrecorded" in done.stderr
        assert not path.exists()


@pytest.mark.parametrize("first", ["mpich", "openmpi"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_where_nobody_knows_the_mpi_each_has_its_recorder(
    tmp_path, tmp_path_factory, monkeypatch, mpi, first
):
    """A script starts the launcher: all recorders are loaded, and all but one stand aside."""
    here = places()
    if len(here) < 2 or not shutil.which("cc"):
        pytest.skip("two MPIs with compilers are needed")
    (tmp_path / "ring.py").write_text(PROGRAM)
    words = [
        f"{here[mpi]}/bin/mpiexec",
        *MORE[mpi],
        "-n",
        "2",
        f"{here[mpi]}/bin/python",
        "ring.py",
    ]
    (tmp_path / "job.sh").write_text(f"#!/bin/sh\nexec {' '.join(words)}\n")
    kept = {k: v for k, v in environment(here[mpi]).items() if k != "NIDMAP_MPICC"}
    libraries = kept_libraries(tmp_path_factory)
    env = {**kept, **ENV, "XDG_CACHE_HOME": libraries, "NIDMAP_CFLAGS": "-O0"}
    env["PATH"] = os.pathsep.join([f"{here[first]}/bin", *(f"{p}/bin" for p in here.values())])
    env["PATH"] += ":/usr/bin:/bin"
    record = [sys.executable, "-m", "nidmap", "record", "-o", "ring.npz", "--", "sh", "job.sh"]
    monkeypatch.chdir(tmp_path)
    if first != mpi:  # a compiler of the other MPI alone
        env["NIDMAP_MPICC"] = f"{here[first]}/bin/mpicc"
    done = subprocess.run(
        record, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "sum 2\n"), done
    if first == mpi:
        assert load_recording(str(tmp_path / "ring.npz")).ranks == 2, done
    else:
        assert done.stderr.count("for another MPI than the program's") == 1


@pytest.mark.parametrize(
    ("libraries", "abi"),
    [
        ("libmpichfort.so.12", "mpich"),
        ("libmpifort.so.12", "mpich"),
        ("libmpi_mpifh.so.40", "openmpi"),
        ("libmpi_usempif08.so.40", "openmpi"),
        ("libmpi_gnu_91.so.12", "mpich"),
        ("libmpi_abi.so.0", "standard"),
        ("libm.so.6", ""),
    ],
)
@pytest.mark.parametrize("between", [False, True])
def test_the_libraries_that_a_program_needs_say_its_mpi(tmp_path, libraries, abi, between):
    """Fortran's libraries alone are needed by a program, or by a library of the program's own."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")

    def link(output, *words):
        command = ["cc", "-x", "c", "/dev/null", "-x", "none", "-o", str(tmp_path / output), *words]
        subprocess.run(command, check=True, cwd=tmp_path)

    link(libraries, "-shared", f"-Wl,-soname,{libraries}")
    needed, kept = libraries, ["-Wl,--no-as-needed"]
    if between:
        link("libown.so", "-shared", "-Wl,-soname,libown.so", *kept, libraries)
        needed = "libown.so"
    (tmp_path / "main.c").write_text("int main(void) { return 0; }")
    program = str(tmp_path / "app")
    rpath = [f"-Wl,-rpath,{tmp_path}", f"-Wl,-rpath-link,{tmp_path}"]
    subprocess.run(["cc", "-o", program, "main.c", *kept, needed, *rpath], check=True, cwd=tmp_path)
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    assert program_abi(["mpiexec", "-n", "4", program], env) == abi


def test_the_launcher_says_it_where_the_program_does_not():
    for name, place in places().items():
        assert (
            launcher_abi([f"{place}/bin/mpiexec", "-n", "2", "job.sh"], environment(place)) == name
        )
    assert launcher_abi(["srun", "--mpi=pmix", "job.sh"], {}) == ""
    assert launcher_abi(["srun", "job.sh"], {"SLURM_MPI_TYPE": "pmi2"}) == "mpich"
