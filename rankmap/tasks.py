# SPDX-License-Identifier: Apache-2.0
"""Tasks on all cores: ranks of a parallel launch, else processes on this machine.

`concurrent.futures` has one interface for both: mpi4py's ``MPICommExecutor`` inside a launch,
where rank 0 gives out tasks and the others do them, ``ProcessPoolExecutor`` elsewhere. All
processes share the same data, and a task's result depends on nothing but these and the task.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from nidmap.placement.errors import LaunchError, UsageError
from nidmap.placement.hooks import SERVICES, load

Shared = TypeVar("Shared")
Task = TypeVar("Task")
Result = TypeVar("Result")

#: What all tasks of this process are done with.
_shared: list[Any] = []


def ranks_here() -> int:
    """Return the number of ranks of the surrounding launch; 1 outside of any."""
    launch = load(SERVICES["launch"])()
    return int(launch.size or 1) if launch is not None else 1


def is_first_rank() -> bool:
    """Tell whether this process should print: rank 0 of a launch, or outside of any."""
    launch = load(SERVICES["launch"])()
    return launch is None or launch.rank == 0


def refuse_stdin(source: str | None) -> None:
    """Refuse standard input if several ranks would read it."""
    if source == "-" and ranks_here() > 1:
        raise UsageError("several ranks cannot read standard input", "give a file")


def run_tasks(
    call: Callable[[Shared, Task], Result], tasks: Iterable[Task], shared: Shared
) -> Iterator[tuple[int, Result]] | None:
    """Yield the number and result of each task; every rank of a launch must call this."""
    if ranks_here() == 1:
        workers = len(os.sched_getaffinity(0))
        pool = ProcessPoolExecutor(workers, initializer=_begin_worker, initargs=(shared,))
        return _results(contextlib.nullcontext(pool), workers, call, tasks)
    from mpi4py import MPI
    from mpi4py.futures import MPICommExecutor

    _shared[:] = [shared]
    executor = MPICommExecutor(MPI.COMM_WORLD, root=0)
    if MPI.COMM_WORLD.Get_rank():
        with executor:  # until rank 0 has no more tasks
            return None
    return _results(executor, MPI.COMM_WORLD.Get_size() - 1, call, tasks)


def _begin_worker(shared: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that waits for us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _shared[:] = [shared]


def _end_with_parent() -> None:
    """End this worker when the process that waits for it has been killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do_task(call: Callable[[Any, Task], Result], task: Task) -> Result:
    return call(_shared[0], task)


def _results(
    opened: Any,
    workers: int,
    call: Callable[[Any, Task], Result],
    tasks: Iterable[Task],
) -> Iterator[tuple[int, Result]]:
    """Yield results, with no more tasks queued than there are workers."""
    pool: Executor
    with opened as pool:
        numbers: dict[Future[Result], int] = {}
        try:
            for number, task in enumerate(tasks):
                numbers[pool.submit(_do_task, call, task)] = number
                if len(numbers) > 2 * workers:
                    yield from _collect_results(numbers)
            while numbers:
                yield from _collect_results(numbers)
        except BrokenProcessPool:
            raise LaunchError("a worker process has died", "was there enough memory?") from None
        except KeyboardInterrupt:
            for process in multiprocessing.active_children():
                process.terminate()  # the tasks in progress are not waited for
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _collect_results(numbers: dict[Future[Result], int]) -> Iterator[tuple[int, Result]]:
    """Wait for some of the tasks and yield their results."""
    for future in wait(numbers, return_when=FIRST_COMPLETED).done:
        yield numbers.pop(future), future.result()
