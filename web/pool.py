"""A few worker processes, a short queue before them, and a limit on how long one may take."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import placement.errors
from placement.errors import NidmapError
from web.worker import receive, send

if TYPE_CHECKING:
    from placement.machine import Machine

__all__ = ["BusyError", "DefectError", "Pool", "TooSlowError"]

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class BusyError(NidmapError):
    """Too many calculations are under way or wait already."""


class TooSlowError(NidmapError):
    """A calculation took longer than it may."""


class DefectError(NidmapError):
    """A calculation failed in a way that nobody foresaw."""


class Pool:
    """Worker processes for one machine, started when they are first needed.

    Parameters
    ----------
    machine : Machine
    size : int
        Processes.
    waiting : int
        Requests that may wait for one.
    seconds : float
        Longest time from the start of a calculation to its answer.
    """

    def __init__(self, machine: Machine, size: int, waiting: int, seconds: float) -> None:
        self._machine = replace(machine, _cache={})
        self._seconds = seconds
        self._most = size + waiting
        self._inside = 0
        self._count = threading.Lock()
        self._turn = threading.Semaphore(size)
        self._idle: list[_Process] = []
        self._all: set[_Process] = set()
        self._closed = False

    @property
    def inside(self) -> int:
        """How many requests are being answered or wait."""
        return self._inside

    def call(self, task: str, **arguments: Any) -> Any:
        """Have a task done and return its value.

        Raises
        ------
        BusyError
            At once, where too many wait already.
        TooSlowError
            It took too long; its process was ended.
        NidmapError
            Whatever the task raised.
        """
        with self._count:
            if self._inside >= self._most:
                raise BusyError(
                    f"{self._inside} calculations are under way already", "try again in a moment"
                )
            self._inside += 1
        try:
            with self._turn:
                return self._run(task, arguments)
        finally:
            with self._count:
                self._inside -= 1

    def close(self) -> None:
        """End all processes."""
        self._closed = True
        for process in list(self._all):
            process.kill()

    def _run(self, task: str, arguments: dict[str, Any]) -> Any:
        process = self._taken()
        try:
            word, value = process.ask((task, arguments), self._seconds)
        except BaseException:
            self._drop(process)
            raise
        with self._count:
            self._idle.append(process)
        if word == "ok":
            return value
        raise _error(word, *value)

    def _taken(self) -> _Process:
        if self._closed:
            raise BusyError("the server is being stopped")
        with self._count:
            process = self._idle.pop() if self._idle else None
        if process is not None and process.alive():
            return process
        if process is not None:
            self._drop(process)
        made = _Process(self._machine)
        with self._count:
            self._all.add(made)
        if self._closed:
            self._drop(made)
            raise BusyError("the server is being stopped")
        return made

    def _drop(self, process: _Process) -> None:
        process.kill()
        with self._count:
            self._all.discard(process)


def _error(word: str, message: str, hint: str) -> NidmapError:
    kind = getattr(placement.errors, word, None)
    if word == "ParseError":
        return placement.errors.ParseError("input", 0, message, hint)
    if isinstance(kind, type) and issubclass(kind, NidmapError):
        return kind(message, hint)
    if word == "Defect":
        return DefectError(message, hint)
    return NidmapError(message, hint)


class _Process:
    """One worker and its pipes."""

    def __init__(self, machine: Machine) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "web.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": _path()},
            start_new_session=True,  # a Ctrl-C is the server's to handle
        )
        assert self._process.stdin is not None  # both are pipes
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        try:
            send(self._stdin, machine)
        except BrokenPipeError:
            self.kill()
            raise DefectError("the calculating process does not start") from None

    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: tuple[str, dict[str, Any]], seconds: float) -> tuple[str, Any]:
        """Send one request and return its answer; ends the process when time is up."""
        late = threading.Event()
        begun = time.monotonic()
        timer = threading.Timer(seconds, self._too_late, (late,))
        timer.daemon = True
        timer.start()
        try:
            send(self._stdin, request)
            answer: tuple[str, Any] = receive(self._stdout)
        except (EOFError, OSError, ValueError):
            if late.is_set():
                raise TooSlowError(
                    f"this took longer than {seconds:g} s and was ended",
                    "ask for fewer strategies, or on the command line",
                ) from None
            spent = time.monotonic() - begun
            raise DefectError(f"the calculation's process ended after {spent:.1f} s") from None
        finally:
            timer.cancel()
        return answer

    def _too_late(self, late: threading.Event) -> None:
        late.set()
        with contextlib.suppress(OSError):
            self._process.kill()

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError, ValueError):
                stream.close()


def _path() -> str:
    """Return this package's home before the user's own PYTHONPATH."""
    return os.pathsep.join(filter(None, (_HOME, os.environ.get("PYTHONPATH", ""))))
