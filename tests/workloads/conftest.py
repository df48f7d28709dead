# SPDX-License-Identifier: Apache-2.0
"""Real ranks for the tests of programs: this environment's MPI and those of $NIDMAP_TEST_MPIS.

``launch(program, ranks)`` runs a Python program (text) on so many ranks,
``bench(words, ranks)`` the command line; both once more where a
launcher seems to have locked up.
"""

import os
import signal
import subprocess
import tempfile
import textwrap

import pytest

import nidmap
from tests.rankmap.mpis import ROOT, environment, flavours, once, with_mpi4py

__all__ = ["bench", "launch", "once", "place"]

#: Seconds after which a launch is tried again, as launchers lock up, and after which it hangs.
LIMITS = (60, 600)

#: Ranks that wait give their core away: other tests run on the same few cores.
YIELD = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}

#: What a program on ranks has as nidmap's own commands do: numpy's threads would spin as well.
ONE_THREAD = dict([nidmap.ONE_THREAD])


@pytest.fixture(params=["mpich", "openmpi"], scope="session")
def place(request):
    """Return the directory of each MPI that Python programs run under."""
    found = [where for name, where in with_mpi4py() if name == request.param]
    if not found:
        pytest.skip(f"no mpi4py on {request.param} (extras [mpi], [openmpi]; $NIDMAP_TEST_MPIS)")
    return found[0]


def library(place):
    """Return the name of the MPI in a directory."""
    return next(name for name, where in with_mpi4py() if where == place)


@pytest.fixture
def sizes(place):
    """Return the numbers of ranks to try: MPICH's spin while they wait, more of them the longer."""
    return (1, 2, 3, 4, 8) if library(place) == "openmpi" else (1, 2, 3, 5)


@pytest.fixture
def launch(place):
    """Return a function that runs a Python program on ranks: (program, ranks) -> process."""

    def run(program, ranks, *, env=None, check=True, words=()):
        command = ["-m", "mpi4py", "-c", textwrap.dedent(program), *words]
        return started(place, ranks, command, {**ONE_THREAD, **(env or {})}, check)

    return run


@pytest.fixture
def bench(place):
    """Return a function that runs ``nidmap bench`` on ranks: (words, ranks) -> process."""

    def run(words, ranks, *, env=None, check=True):
        return started(place, ranks, ["-m", "nidmap", "bench", *words], env, check)

    return run


def started(place, ranks, words, env=None, check=True):
    """Run Python with these words on so many ranks of an MPI; return the finished process."""
    command = [*mpiexec(place), "-n", str(ranks), f"{place}/bin/python", "-W", "error", *words]
    for limit in LIMITS:
        try:
            with tempfile.TemporaryDirectory() as folder:  # one that is killed leaves files there
                done = _run(command, variables(place, env), limit, folder)
        except subprocess.TimeoutExpired:
            if limit != LIMITS[-1]:
                continue
            raise
        if check and done.returncode:
            pytest.fail(f"code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done
    return None


def variables(place, env=None):
    """Return the environment of a launch."""
    return {**environment(place), **YIELD, "PYTHONPATH": ROOT, **(env or {})}


def mpiexec(place):
    """Return the mpiexec of an MPI with what lets it start more ranks than cores."""
    name, version = next((m, v) for m, v, p in flavours() if p == place)
    if name != "openmpi":
        return [f"{place}/bin/mpiexec"]
    more = ["--oversubscribe"] if version.startswith("4.") else ["--map-by", ":OVERSUBSCRIBE"]
    return [f"{place}/bin/mpiexec", *more]


def _run(command, env, limit, folder):
    """Run a command in a session of its own, which is ended whole when it is late."""
    process = subprocess.Popen(
        command,
        env=env,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired as late:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise subprocess.TimeoutExpired(command, limit, out or late.stdout, err) from None
    return subprocess.CompletedProcess(command, process.returncode, out, err)
