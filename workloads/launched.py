"""Inside a launch or not: what the launcher's environment says, and starting mpiexec.

Nothing here imports MPI, so that ``nidmap bench … -n 4`` on a login node costs
no more than the command line itself.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from placement.errors import LaunchError, printable
from workloads.progress import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "MPIEXEC",
    "STARTED",
    "Launched",
    "become_mpiexec",
    "launched",
    "mpiexec_words",
    "rank_environment",
]

#: Set by us for the ranks that we start: how many there should be.
STARTED = "NIDMAP_BENCH_RANKS"

#: Words to start ranks with in place of this environment's own mpiexec.
MPIEXEC = "NIDMAP_MPIEXEC"

#: Who launched us, and the variables in which it says rank and size ('' where it does not).
_LAUNCHERS = (
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS", "PALS_RANKID", "PALS_SIZE"),
    ("mpiexec", "PMI_RANK", "PMI_SIZE"),
    ("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("ALPS", "ALPS_APP_PE", ""),
    ("PMIx", "PMIX_RANK", ""),
)

#: Slurm's step ids from here on are no steps of srun: batch, extern and interactive ones.
_NO_STEP = 0xFFFFFFF0


@dataclass(frozen=True, slots=True)
class Launched:
    """What the environment says of the launch that this process is a rank of.

    Attributes
    ----------
    by : str
        Who launched it.
    rank : int
        0 where the launcher does not say.
    size : int or None
        None where the launcher does not say.
    """

    by: str
    rank: int
    size: int | None


def launched(env: Mapping[str, str] | None = None) -> Launched | None:
    """Return the launch that this process is a rank of, None where it is of none.

    A batch script of Slurm is none, although SLURM_PROCID is set in it.

    Parameters
    ----------
    env : mapping or None
        None: this process's environment.

    Examples
    --------
    >>> launched({"PMI_RANK": "2", "PMI_SIZE": "4"})
    Launched(by='mpiexec', rank=2, size=4)
    >>> launched({"SLURM_PROCID": "0", "SLURM_JOB_ID": "17"}) is None
    True
    """
    env = os.environ if env is None else env
    for by, rank, size in _LAUNCHERS:
        if _number(env.get(rank)) is not None:
            return Launched(by, _number(env[rank]) or 0, _size(env, size))
    step = _number(env.get("SLURM_STEP_ID"))
    if step is not None and step < _NO_STEP and "SLURM_PROCID" in env:
        return Launched("srun", _number(env["SLURM_PROCID"]) or 0, _size(env, ""))
    if _number(env.get(STARTED)):
        return Launched("nidmap bench", 0, _number(env[STARTED]))
    return None


def _size(env: Mapping[str, str], name: str) -> int | None:
    """Return the launch's size, the step's where only Slurm tells it."""
    if name and _number(env.get(name)):
        return _number(env[name])
    if "SLURM_STEP_NUM_TASKS" in env and "SLURM_PROCID" in env:
        return _number(env["SLURM_STEP_NUM_TASKS"])
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def mpiexec_words(count: int, env: Mapping[str, str] | None = None) -> list[str]:
    """Return the words that start `count` ranks under this environment's MPI.

    ``$NIDMAP_MPIEXEC`` (e.g. ``srun --mpi=pmi2``), else the mpiexec beside
    this Python, else the first on PATH. ``-n`` and `count` come last.

    Raises
    ------
    LaunchError
        Where there is no mpiexec.
    """
    env = os.environ if env is None else env
    import shutil

    given = _given(env)
    if given:
        return [*given, "-n", str(count)]
    home = os.path.dirname(sys.executable)
    program = shutil.which("mpiexec", path=home) or shutil.which("mpiexec", path=env.get("PATH"))
    if program is None:
        raise LaunchError(
            "no mpiexec beside this Python or on PATH",
            f"pip install 'nidmap[mpi]', or say how ranks are started in ${MPIEXEC}",
        )
    return [program, *_more(program), "-n", str(count)]


def _given(env: Mapping[str, str]) -> list[str]:
    import shlex

    try:
        return shlex.split(env.get(MPIEXEC, ""))
    except ValueError as error:
        raise LaunchError(f"${MPIEXEC} cannot be read: {error}") from None


def _more(program: str) -> list[str]:
    """Return what lets Open MPI start more ranks than it counts cores, '' for the others."""
    real = os.path.realpath(program)
    beside = [os.path.dirname(program), os.path.dirname(real)]
    if any(os.path.exists(os.path.join(folder, "prte_info")) for folder in beside):
        return ["--map-by", ":OVERSUBSCRIBE"]
    if any(os.path.exists(os.path.join(folder, "ompi_info")) for folder in beside):
        return ["--oversubscribe"]
    return []


def rank_environment(count: int) -> dict[str, str]:
    """Return the environment of ranks that we start ourselves."""
    env = {**os.environ, STARTED: str(count)}
    if (
        os.geteuid() == 0
    ):  # Open MPI refuses root unless told; we are root, and start ourselves only
        env.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        env.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    if sys.stderr.isatty():
        env[TERMINAL] = "1"
    if count > len(
        os.sched_getaffinity(0)
    ):  # MPICH's ranks would wait for each other at full speed
        env.setdefault("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
    return env


def become_mpiexec(count: int) -> NoReturn:
    """Replace this process by mpiexec, which starts it `count` times with the same words.

    Raises
    ------
    LaunchError
        Where there is no mpiexec, or it cannot be started.
    """
    from rankmap.launch import Launch
    from rankmap.launch.process import become

    words = [*mpiexec_words(count), sys.executable, *sys.orig_argv[1:]]
    env = rank_environment(count)
    sys.stderr.flush()
    become(Launch(tuple(words)), env)
    raise LaunchError(f"cannot start {printable(words[0])}")
