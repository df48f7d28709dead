# SPDX-License-Identifier: Apache-2.0
"""The recorder's libraries of a wheel (``make wheel``): what they need, what they count."""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import build_recorders
from nidmap.rankmap import preload
from nidmap.rankmap.preload.running import run_recorded
from nidmap.rankmap.recording.file import load_recording
from tests.rankmap.mpis import environment, flavours

HERE = Path(__file__).parent

#: Debian's MPIs, where they are installed.
DEBIAN = [("mpich", "/usr/bin/mpicc.mpich"), ("openmpi", "/usr/bin/mpicc.openmpi")]


@pytest.fixture(scope="module")
def recorders():
    """Return the libraries by architecture, built now where ziglang is here and they are not."""
    if not build_recorders.BUILT.is_dir():
        if importlib.util.find_spec("ziglang") is None:
            pytest.skip("the libraries of a wheel are not built: make wheel")
        build_recorders.main()
    return build_recorders.BUILT


def test_they_need_glibc_2_17_and_no_mpi(recorders):
    if not shutil.which("readelf"):
        pytest.skip("no readelf")
    paths = sorted(recorders.glob("*/*.so"))
    assert len(paths) == 2 * len(preload.ABI)
    for path in paths:
        said = subprocess.run(["readelf", "-hdV", path], capture_output=True, text=True).stdout
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", said)}
        assert max(versions) <= (2, 17), path
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
        assert set(needed) <= {
            "libc.so.6",
            "libdl.so.2",
            "libpthread.so.0",
            "ld-linux-aarch64.so.1",
        }
        assert {"x86_64": "X86-64", "aarch64": "AArch64"}[path.parent.name] in said


def launchers():
    """Return (MPI, compiler, launcher) of each MPI that is here, PyPI's and Debian's."""
    own = [(mpi, f"{place}/bin/mpicc", f"{place}/bin/mpiexec") for mpi, _, place in flavours()]
    debian = [(mpi, path, f"/usr/bin/mpiexec.{mpi}") for mpi, path in DEBIAN]
    return [entry for entry in own + debian if os.path.exists(entry[1])]


def compiled(mpicc, folder):
    """Return commands without their launcher: a program in C, and one in Fortran where it works."""
    done = subprocess.run([mpicc, "-w", "-o", folder / "c", HERE / "program.c"])
    words = [[str(folder / "c"), *what] for what in (["collectives"], ["persistent"], ["onesided"])]
    mpif90 = mpicc.replace("mpicc", "mpif90")
    if os.path.exists(mpif90) and done.returncode == 0:
        make = [mpif90, "-DBINDING=2", "-o", folder / "fortran", HERE / "halo.F90"]
        if subprocess.run(make, capture_output=True).returncode == 0:
            words.append([str(folder / "fortran")])
    return words


def sent(path):
    return [column.tolist() for column in load_recording(str(path)).total().columns]


@pytest.mark.mpi
def test_they_count_what_the_one_built_by_mpicc_counts(recorders, tmp_path, monkeypatch, capfd):
    here = launchers() if shutil.which("cc") else []
    if not here:
        pytest.skip("no MPI with a compiler here")
    monkeypatch.setattr(preload, "SHIPPED", recorders / os.uname().machine)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for number, (mpi, mpicc, mpiexec) in enumerate(here, 1):
        for name, value in environment(os.path.dirname(os.path.dirname(mpicc))).items():
            monkeypatch.setenv(name, value)
        more = ["--oversubscribe"] if mpi == "openmpi" else []
        for words in compiled(mpicc, tmp_path):
            command = [mpiexec, *more, "-n", "6", *words]
            for output, named in (("own.npz", mpicc), ("shipped.npz", "")):
                assert run_recorded(command, str(tmp_path / output), "", named, True) == 0, command
            assert sent(tmp_path / "shipped.npz") == sent(tmp_path / "own.npz"), command
        built = [path.parent.name for path in (tmp_path / "cache").rglob("libnidmap_mpi.so")]
        assert len(built) == number, built  # by the runs that named a compiler, and by no other
    assert "unrecorded" not in capfd.readouterr().err
