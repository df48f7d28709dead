"""Calculations in processes of their own, which are ended when they take too long.

A `Lane` has a few `concurrent.futures` executors of one process each, so that
one calculation can be ended without the others. Questions that are answered
in milliseconds have a lane to themselves: they never wait for a long one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any

import msgspec

from placement.errors import NidmapError, UsageError
from placement.hooks import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.machine import Machine

__all__ = ["BusyError", "DefectError", "Lane", "TooSlowError"]

#: Bytes of memory that one calculation may take.
MEMORY = 8 * 2**30

#: Seconds that a calculation may go on when nobody waits for its answer any more: most are
#: done by then, and a process that is ended loses what it knows of the machine.
GRACE = 1.0

#: Modules that calculations need, loaded once for all processes.
_PRELOADED = ["web.figures", "web.resolve", "web.export", "rankmap.compare", "rankmap.predict"]

#: The machine that this process calculates for.
_machine: Machine | None = None


class BusyError(NidmapError):
    """Too many calculations are under way or wait already."""


class TooSlowError(NidmapError):
    """A calculation took longer than it may."""


class DefectError(NidmapError):
    """A calculation failed in a way that nobody foresaw."""


class Lane:
    """Calculations of one kind for one machine.

    Parameters
    ----------
    machine : Machine
    processes : int
        Calculations at once.
    waiting : int
        Questions that may wait for a process.
    seconds : float
        Longest calculation.
    """

    def __init__(self, machine: Machine, processes: int, waiting: int, seconds: float) -> None:
        self.seconds = seconds
        self.inside = 0
        self._machine = replace(machine, _cache={})
        self._most = processes + waiting
        self._turn = asyncio.Semaphore(processes)
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._closed = False

    async def json(self, function: Callable[..., Any], *arguments: Any) -> bytes:
        """Return ``function(machine, *arguments)`` as JSON; errors as `call`."""
        found: bytes = await self.call(_as_json, function, *arguments)
        return found

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(machine, *arguments)``, calculated in another process.

        Where the caller is cancelled, as when its client has hung up, the
        calculation is ended too.

        Parameters
        ----------
        function : callable
            Of a module, so that another process finds it by its name.
        *arguments
            Anything that can be pickled.

        Raises
        ------
        BusyError
            At once, where too many wait already.
        TooSlowError
            It took too long; its process was ended.
        DefectError
            Its process ended by itself.
        NidmapError
            Whatever the function raised.
        """
        if self._closed:
            raise BusyError("the server is being stopped")
        if self.inside >= self._most:
            raise BusyError(
                f"{self.inside} calculations are under way already", "try again in a moment"
            )
        self.inside += 1
        job = asyncio.ensure_future(self._calculate(function, arguments))
        job.add_done_callback(self._leave)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            asyncio.get_running_loop().call_later(GRACE, job.cancel)
            raise

    def _leave(self, job: asyncio.Future[Any]) -> None:
        self.inside -= 1
        if not job.cancelled():
            job.exception()  # seen, also where nobody waits for it any more

    async def _calculate(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        async with self._turn:
            worker = self._idle.pop() if self._idle else await self._start()
            ended = True
            try:
                found = await asyncio.wait_for(worker.call(function, arguments), self.seconds)
                ended = False
                return found
            except asyncio.TimeoutError:
                raise TooSlowError(
                    f"this took longer than {self.seconds:g} s and was ended",
                    "ask for fewer strategies, or on the command line",
                ) from None
            except BrokenProcessPool:
                raise DefectError("the calculation's process ended") from None
            except Exception:
                ended = False
                raise
            finally:
                if ended:
                    self._end(worker)
                else:
                    self._idle.append(worker)

    async def _start(self) -> _Worker:
        try:
            worker = await asyncio.to_thread(_Worker, self._machine)
        except BrokenProcessPool:
            raise DefectError("the calculating process does not start") from None
        self._all.add(worker)
        if self._closed:
            self._end(worker)
            raise BusyError("the server is being stopped")
        return worker

    def _end(self, worker: _Worker) -> None:
        worker.kill()
        self._all.discard(worker)

    @property
    def processes(self) -> list[int]:
        """The ids of the processes that there are."""
        return [worker.process for worker in self._all]

    def close(self) -> None:
        """End all processes, whatever they do."""
        self._closed = True
        for worker in list(self._all):
            self._end(worker)


class _Worker:
    """An executor of one process, whose id is known so that it can be ended."""

    def __init__(self, machine: Machine) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        self._executor = ProcessPoolExecutor(
            1, context, _prepare, (machine, dict(STRATEGIES), dict(os.environ))
        )
        self.process: int = self._executor.submit(os.getpid).result()

    async def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        return await asyncio.wrap_future(self._executor.submit(_answer, function, arguments))

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        self._executor.shutdown(wait=False, cancel_futures=True)


# --- in the process that calculates ---------------------------------------------------


def _prepare(machine: Machine, strategies: dict[str, str], environment: dict[str, str]) -> None:
    """Begin a process: its machine, its bounds, and what it does at the server's end."""
    global _machine
    _machine = machine
    STRATEGIES.update(strategies)  # as the front door told the server
    os.environ.clear()  # the fork server's is as old as itself
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the server's to handle
    threading.Thread(target=_end_with_server, daemon=True).start()
    os.dup2(2, 1)  # standard output is the server's
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.RLIM_INFINITY))


def _end_with_server() -> None:
    """End this process with the server, however that ends."""
    server = parent_process()
    if server is not None:
        server.join()
        os._exit(1)


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(_machine, *arguments)
    except MemoryError:
        raise UsageError(
            "this takes more memory than the server gives it", "ask for less"
        ) from None
    except RecursionError:
        raise UsageError("this is nested too deeply") from None


def _as_json(machine: Machine, function: Callable[..., Any], *arguments: Any) -> bytes:
    return msgspec.json.encode(function(machine, *arguments))
