# SPDX-License-Identifier: Apache-2.0
"""Computations in separate processes, which are ended if they take too long.

A `Lane` has a few `concurrent.futures` executors of one process each, so that
one calculation can be ended without the others. Questions that are answered
in milliseconds have a lane to themselves: they never wait for a long one.

A calculation that searches says how far it is, and can be told to end with the
best that it has found (`report_progress`): over a pipe next to the executor.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import resource
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any

import msgspec

from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.hooks import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from nidmap.placement.machine import Machine

    Told = Callable[[dict[str, Any]], None] | None

#: Bytes of memory that one calculation may take.
MEMORY = 8 * 2**30

#: Seconds that a calculation may go on when nobody waits for its answer any more: most are
#: done by then, and a process that is ended loses what it knows of the machine.
GRACE = 1.0

#: Modules that calculations need, loaded once for all processes.
_PRELOADED = [
    "nidmap.web.figures",
    "nidmap.web.nodes",
    "nidmap.web.page",
    "nidmap.rankmap.compare",
    "nidmap.rankmap.predict",
]

#: Share of a calculation's longest time after which a search ends with the best so far.
_LATE = 0.4

#: Seconds between two reports of a calculation.
_PAUSE = 0.2

#: What this process calculates for, whom it tells, and its question: number, end, next report.
_machine: Machine | None = None
_line: Connection | None = None
_number, _end, _next = 0, math.inf, 0.0


class BusyError(NidmapError):
    """Too many computations are running or queued."""


class TooSlowError(NidmapError):
    """A computation exceeded its time limit."""


class DefectError(NidmapError):
    """A computation failed unexpectedly."""


class Lane:
    """Computations of one kind for one machine.

    `processes`: calculations at once. `waiting`: questions that may wait for a process.
    `seconds`: longest calculation.
    """

    def __init__(self, machine: Machine, processes: int, waiting: int, seconds: float) -> None:
        self.seconds = seconds
        self.inside = 0
        self._machine = replace(machine, _cache={})
        self._most = processes + waiting
        self._turn = asyncio.Semaphore(processes)
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._asked: dict[str, asyncio.Future[Any]] = {}
        self._closed = False

    async def json(
        self, function: Callable[..., Any], *arguments: Any, question: str = "", told: Told = None
    ) -> bytes:
        """Return ``function(machine, *arguments)`` as JSON; see `call`."""
        body: bytes = await self.call(_as_json, function, *arguments, question=question, told=told)
        return body

    async def call(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        question: str = "",
        told: Told = None,
        seconds: float | None = None,
    ) -> Any:
        """Return ``function(machine, *arguments)``, computed in another process.

        Where the caller is cancelled, as when its client has hung up, the
        calculation is ended too.

        `function`: of a module, so that another process finds it by its name. `arguments`:
        anything that can be pickled. `question`: its asker's name for it: a new one takes the
        place of an old one of the same name. `told`: is told what the calculation reports.
        `seconds`: how long it may take; None means as long as all others.
        """
        if question in self._asked:
            old = self._asked[question]
            old.cancel()
            await asyncio.wait([old])
        if self._closed:
            raise BusyError("the server is shutting down")
        if self.inside >= self._most:
            raise BusyError(
                f"{self.inside} calculations are already running", "try again in a moment"
            )
        self.inside += 1
        longest = self.seconds if seconds is None else seconds
        job = asyncio.ensure_future(self._calculate(function, arguments, question, told, longest))
        if question:
            self._asked[question] = job
        job.add_done_callback(lambda job: self._leave(job, question))
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            if job.cancelled() and self._closed:
                raise BusyError("the server is shutting down") from None
            if job.cancelled():
                raise UsageError("replaced by a newer request of the same name") from None
            asyncio.get_running_loop().call_later(GRACE, job.cancel)
            raise

    def finish(self, question: str) -> bool:
        """End a search with the best so far; return whether one of that name is running."""
        searching = [worker for worker in self._all if question and worker.question == question]
        for worker in searching:
            worker.finish()
        return bool(searching)

    def _leave(self, job: asyncio.Future[Any], question: str) -> None:
        self.inside -= 1
        if self._asked.get(question) is job:
            del self._asked[question]
        if not job.cancelled():
            job.exception()  # retrieve it even if nobody waits any more

    async def _calculate(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        question: str,
        told: Told,
        seconds: float,
    ) -> Any:
        async with self._turn:
            worker = self._alive() or await self._start()
            ended, worker.question = True, question
            try:
                call = worker.call(function, arguments, seconds, told)
                answer = await asyncio.wait_for(call, seconds)
                ended = False
                return answer
            except asyncio.TimeoutError:
                raise TooSlowError(
                    f"this took longer than {seconds:g} s and was stopped",
                    "try fewer strategies, or the command line",
                ) from None
            except BrokenProcessPool:
                raise DefectError("the calculation's process died") from None
            except Exception:
                ended = False
                raise
            finally:
                worker.question = ""
                if ended:
                    self._end(worker)
                else:
                    self._idle.append(worker)

    def _alive(self) -> _Worker | None:
        """Return an idle worker, None if there is none; ended workers are dropped."""
        while self._idle:
            worker = self._idle.pop()
            if worker.lives():
                return worker
            self._end(worker)
        return None

    async def _start(self) -> _Worker:
        try:
            worker = await asyncio.to_thread(_Worker, self._machine)
        except BrokenProcessPool:
            raise DefectError("the calculation's process did not start") from None
        self._all.add(worker)
        if self._closed:
            self._end(worker)
            raise BusyError("the server is shutting down")
        return worker

    def _end(self, worker: _Worker) -> None:
        worker.kill()
        self._all.discard(worker)

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        self._closed = True
        for worker in list(self._all):
            self._end(worker)


class _Worker:
    """An executor with one process of known id, so that it can be ended, and its request."""

    def __init__(self, machine: Machine) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        self._line, others = context.Pipe()
        self._executor = ProcessPoolExecutor(
            1, context, _prepare_process, (machine, dict(STRATEGIES), dict(os.environ), others)
        )
        self.process: int = self._executor.submit(os.getpid).result()
        others.close()
        self.question = ""
        self._number = 0

    async def call(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float, told: Told
    ) -> Any:
        """Compute, passing progress reports on."""
        self._number += 1
        end = time.monotonic() + _LATE * seconds
        loop, line = asyncio.get_running_loop(), self._line.fileno()
        loop.add_reader(line, self._hear, loop, told)
        try:
            try:
                done = self._executor.submit(_answer_safely, self._number, end, function, arguments)
            except RuntimeError as error:  # the lane was closed before this began
                raise BrokenProcessPool(str(error)) from None
            return await asyncio.wrap_future(done)
        finally:
            loop.remove_reader(line)

    def _hear(self, loop: asyncio.AbstractEventLoop, told: Told) -> None:
        try:
            number, report = self._line.recv()
        except (EOFError, OSError):  # it has ended, which its executor finds out too
            loop.remove_reader(self._line.fileno())
            return
        if told is not None and number == self._number:
            told(report)

    def lives(self) -> bool:
        """Tell whether its process is alive: its end of the pipe closes with it."""
        try:
            while self._line.poll():
                self._line.recv()  # reports that came too late
        except (EOFError, OSError):
            return False
        return True

    def finish(self) -> None:
        """End the running search with the best so far."""
        with contextlib.suppress(OSError):
            self._line.send(self._number)

    def kill(self) -> None:
        if self.lives():  # else its number may be another process's by now
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)
        self._executor.shutdown(wait=False, cancel_futures=True)


# --- in the process that calculates ---------------------------------------------------


def _prepare_process(
    machine: Machine, strategies: dict[str, str], environment: dict[str, str], line: Connection
) -> None:
    """Set up a process: its machine, its limits, and its end with the server."""
    global _machine, _line
    _machine, _line = machine, line
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


def report_progress(said: Callable[[], dict[str, Any]]) -> bool:
    """Report a computation's progress; return whether to end with the best so far.

    `said`: makes what is said, where it is time to say something.
    """
    global _next, _end
    now = time.monotonic()
    if _line is None or now < _next:
        return now > _end
    _next = now + _PAUSE
    with contextlib.suppress(OSError):
        _line.send((_number, said()))
        while _line.poll():
            if _line.recv() == _number:
                _end = now
    return now >= _end


def _answer_safely(
    number: int, end: float, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    global _number, _end, _next
    _number, _end, _next = number, end, 0.0
    try:
        return function(_machine, *arguments)
    except MemoryError:
        raise UsageError("this needs more memory than the server allows", "ask for less") from None
    except RecursionError:
        raise UsageError("this is nested too deeply") from None


def _as_json(machine: Machine, function: Callable[..., Any], *arguments: Any) -> bytes:
    return msgspec.json.encode(function(machine, *arguments))
