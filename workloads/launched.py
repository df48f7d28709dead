# SPDX-License-Identifier: Apache-2.0
"""Whether this is a rank of a launch, by the launcher's environment; and starting mpiexec.

Nothing here imports MPI.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple, NoReturn

from nidmap.placement.errors import LaunchError
from nidmap.workloads.progress import TERMINAL

#: Signals that ask a run to end.
ENDING = (signal.SIGINT, signal.SIGTERM)

#: Set by us for the ranks that we start: how many there should be.
STARTED = "NIDMAP_BENCH_RANKS"

#: Command that starts ranks instead of this environment's own mpiexec.
MPIEXEC = "NIDMAP_MPIEXEC"

#: Launchers, and their variables for rank and size ('' if there is none).
_LAUNCHERS = (
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS", "PALS_RANKID", "PALS_SIZE"),
    ("mpiexec", "PMI_RANK", "PMI_SIZE"),
    ("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("ALPS", "ALPS_APP_PE", ""),
    ("PMIx", "PMIX_RANK", ""),
)

#: Slurm's step ids from here on are not steps of srun: batch, extern and interactive ones.
_NO_JOB_STEP = 0xFFFFFFF0


class Launched(NamedTuple):
    """The launcher's description of this rank in the environment."""

    by: str  # who launched it
    rank: int  # 0 where the launcher does not say
    size: int | None  # None where the launcher does not say


def current_launch(env: Mapping[str, str] | None = None) -> Launched | None:
    """Return the launch that this process is a rank of; None if it is none.

    A batch script of Slurm does not count, although SLURM_PROCID is set in it.

    `env`: None means this process's environment.
    """
    env = os.environ if env is None else env
    tasks = parse_count(env.get("SLURM_STEP_NUM_TASKS")) if "SLURM_PROCID" in env else None
    for by, rank, size in _LAUNCHERS:
        if (own_rank := parse_count(env.get(rank))) is not None:
            return Launched(by, own_rank, parse_count(env.get(size)) or tasks)
    job_step = parse_count(env.get("SLURM_STEP_ID"))
    if job_step is not None and job_step < _NO_JOB_STEP and "SLURM_PROCID" in env:
        return Launched("srun", parse_count(env["SLURM_PROCID"]) or 0, tasks)
    if started := parse_count(env.get(STARTED)):
        return Launched("nidmap bench", 0, started)
    return None


def parse_count(text: str | None) -> int | None:
    """Parse a number from an environment or a command line; None for any other text."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def mpiexec_words(count: int, env: Mapping[str, str] | None = None) -> list[str]:
    """Return the command that starts `count` ranks with this environment's MPI.

    ``$NIDMAP_MPIEXEC`` (e.g. ``srun --mpi=pmi2``), else the mpiexec next to
    this Python, else the first on PATH. ``-n`` and `count` come last.
    """
    env = os.environ if env is None else env
    if env.get(MPIEXEC, "").strip():
        try:
            return [*shlex.split(env[MPIEXEC]), "-n", str(count)]
        except ValueError as error:
            raise LaunchError(f"${MPIEXEC} cannot be read: {error}") from None
    folders = [os.path.dirname(sys.executable), *env.get("PATH", os.defpath).split(os.pathsep)]
    if program := shutil.which("mpiexec", path=os.pathsep.join(filter(None, folders))):
        return [program, *_oversubscribe_options(program), "-n", str(count)]
    raise LaunchError(
        "no mpiexec next to this Python or on PATH",
        f"pip install 'nidmap[mpi]', or put the launch command into ${MPIEXEC}",
    )


def _oversubscribe_options(program: str) -> list[str]:
    """Return Open MPI's settings for more ranks than cores; none for other MPIs.

    The executable's own name decides (a distribution's mpiexec is a link to
    ``mpiexec.hydra`` or ``orterun``), else what its library has put next to it.
    """
    real = os.path.realpath(program)
    name = os.path.basename(real)

    def has_sibling(tool: str) -> bool:
        return any(os.path.exists(f"{os.path.dirname(path)}/{tool}") for path in (program, real))

    if "hydra" in name or "mpich" in name:
        return []
    if name != "orterun" and has_sibling("prte_info"):
        return ["--map-by", ":OVERSUBSCRIBE"]
    return ["--oversubscribe"] if name == "orterun" or has_sibling("ompi_info") else []


def rank_environment(count: int) -> dict[str, str]:
    """Return the environment for ranks that we start ourselves."""
    env = {**os.environ, STARTED: str(count)}
    if os.geteuid() == 0:  # Open MPI refuses root unless told; we start ourselves only
        env.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        env.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    if sys.stderr.isatty():
        env[TERMINAL] = "1"
    if count > len(os.sched_getaffinity(0)):  # MPICH's would wait for each other at full speed
        env.setdefault("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
    return env


@contextmanager
def handle_signals(numbers: Sequence[int], handler: Any) -> Iterator[None]:
    """Install a signal handler within a context; off the main thread, leave Python's own."""
    try:
        before = {number: signal.signal(number, handler) for number in numbers}
    except ValueError:  # not in the main thread
        before = {}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


class Launches:
    """Consecutive launches as child processes, which signals end in order.

    A child is in a session of its own, as a terminal would send it each signal a
    second time. At SIGINT or SIGTERM it gets SIGTERM, whichever came (srun takes a
    single SIGINT for a question), and is killed with all that it has started
    after some seconds, or at a second signal.

    `grace`: those seconds.
    """

    __slots__ = ("_child", "_grace", "_handlers", "stopped")

    def __init__(self, grace: float) -> None:
        self.stopped = False  # whether a signal has arrived: no other launch should begin
        self._grace = grace
        self._child: Any = None
        self._handlers = ExitStack()

    def __enter__(self) -> Launches:
        self._handlers.enter_context(handle_signals(ENDING, self._pass_on))
        return self

    def __exit__(self, *error: object) -> None:
        self._handlers.close()

    def _pass_on(self, number: int, frame: object) -> None:
        again, self.stopped = self.stopped, True
        if self._child is None:
            return
        if again:
            _kill_session(self._child.pid)
        else:
            self._end()

    def _end(self) -> None:
        """End the launch, if necessary by force."""
        import threading

        self._child.terminate()
        killer = threading.Timer(self._grace, _kill_session, [self._child.pid])
        killer.daemon = True
        killer.start()
        self._handlers.callback(killer.cancel)

    def run(self, words: Sequence[str], env: Mapping[str, str], **streams: Any) -> int:
        """Run a launch and return its exit code.

        `streams`: ``stdout`` and ``stderr`` of the launch, as `subprocess.Popen` takes them.
        """
        import subprocess

        from nidmap.placement.support import child

        self._child = child.start_child(
            words, env=env, stdin=subprocess.DEVNULL, start_new_session=True, **streams
        )
        if self.stopped:  # by a signal while it was being started
            self._end()
        code = int(self._child.wait())
        if self.stopped:  # its remaining processes
            _kill_session(self._child.pid)
        self._child = None
        return code


def _kill_session(leader: int) -> None:
    """Kill a child and all remaining processes of its session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def become_mpiexec(count: int) -> NoReturn:
    """Replace this process with mpiexec, which starts it `count` times with the same words."""
    from nidmap.placement.support import child

    sys.stderr.flush()
    words = [*mpiexec_words(count), sys.executable, *sys.orig_argv[1:]]
    child.become(words, rank_environment(count))
