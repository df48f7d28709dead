# SPDX-License-Identifier: Apache-2.0
"""Which MPI an mpiexec belongs to is said by the executable, whatever it is called."""

import os

import pytest

from nidmap.placement.errors import LaunchError
from nidmap.rankmap.launch import is_mpiexec
from nidmap.rankmap.launch.queries import mpi_library

SAYS = {
    ("openmpi", "4.1.4"): "mpiexec (OpenRTE) 4.1.4",
    ("openmpi", "5.0.11"): "mpirun (Open MPI) 5.0.11",
    ("mpich", "4.0.2"): "HYDRA build details:\n    Version:                                 4.0.2",
    ("intel", "2021.11"): "Intel(R) MPI Library for Linux* OS, Version 2021.11 Build 20231005",
    ("cray-mpich", "1.2.12"): "mpiexec version 1.2.12 revision 1234abc",
}


def program(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\ncat <<'E'\n{text}\nE\n")
    (folder / name).chmod(0o755)
    return str(folder / name)


@pytest.mark.parametrize(("name", "version"), SAYS)
@pytest.mark.parametrize("called", ["mpiexec", "mpirun.openmpi", "mpiexec.mpich", "orterun"])
def test_the_executable_says_whose_it_is(tmp_path, name, version, called):
    path = program(tmp_path, called, SAYS[name, version])
    assert mpi_library(path, os.environ) == (name, version)
    assert mpi_library(path, os.environ).major == int(version.split(".")[0])


def test_the_first_on_the_path_of_the_job_counts(tmp_path):
    program(tmp_path / "one", "mpiexec", SAYS["openmpi", "4.1.4"])
    program(tmp_path / "two", "mpiexec", SAYS["mpich", "4.0.2"])
    for first, second, name in (("one", "two", "openmpi"), ("two", "one", "mpich")):
        env = {"PATH": f"{tmp_path / first}:{tmp_path / second}:{os.environ['PATH']}"}
        assert mpi_library("mpiexec", env).name == name


def test_a_program_that_does_not_say_is_refused(tmp_path):
    path = program(tmp_path, "mpiexec", "my own mpiexec 3")
    with pytest.raises(LaunchError, match=r"it says 'my own mpiexec 3'.*--mpi"):
        mpi_library(path, os.environ)


def test_names_of_launchers():
    for name in (
        "mpiexec", "mpirun", "mpiexec.mpich", "mpirun.mpich", "mpiexec.hydra", "mpirun.openmpi",
        "mpiexec.openmpi", "orterun", "prterun", "mpirun-4.1", "/opt/mpi/bin/mpiexec.hydra",
    ):  # fmt: skip
        assert is_mpiexec(name)
    for name in ("srun", "mpirun_rsh", "mpi", "mpicc", "mpiexecutable", "/mpiexec/app"):
        assert not is_mpiexec(name)
