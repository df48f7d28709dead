# SPDX-License-Identifier: Apache-2.0
"""Programs in C, compiled by each MPI that is here, and the library before them."""

import os
import shutil
import subprocess

import pytest

from nidmap.rankmap.preload import build, find_compilers
from nidmap.rankmap.preload.program_mpi import program_abi
from tests.rankmap.mpis import environment, flavours

COMPILERS = [("mpich", "mpicc"), ("mpich", "mpicc_abi"), ("openmpi", "mpicc")]

#: What makes ranks that outnumber the cores, and the compiler, take less.
FEWER = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "NIDMAP_CFLAGS": "-O0"}


def kept_libraries(factory):
    """Return where libraries are kept for all workers of a run: each takes seconds to build."""
    own = factory.getbasetemp()
    return str(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


def compiled_or_skipped(pairs, source, factory, *flags):
    """Return (environment, program, options of mpiexec) of the first compiler that is here.

    A Fortran compiler may be there and not work.
    """
    for name, compiler in pairs:
        place = next((where for mpi, _, where in flavours() if mpi == name), None)
        path = f"{place}/bin/{compiler}"
        if place is None or not os.path.exists(path) or not shutil.which("cc"):
            continue
        program = factory.mktemp("programs") / source.stem
        env = {
            **environment(place),
            "XDG_CACHE_HOME": kept_libraries(factory),
            **FEWER,
        }
        command = [path, "-w", "-O1", *flags, "-o", program, source]
        done = subprocess.run(command, env=env, capture_output=source.suffix == ".F90")
        if done.returncode and source.suffix == ".F90":
            continue
        done.check_returncode()
        return env, program, ["--map-by", ":OVERSUBSCRIBE"] if name == "openmpi" else []
    pytest.skip(f"none of {pairs} here, or no C compiler")


def library_of(built):
    """Return the library for a compiled program."""
    env, program, _ = built
    abi = program_abi(["mpiexec", str(program)], env)
    return build(find_compilers(["mpiexec"], env, abi)[0], env)
