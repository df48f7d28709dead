"""Plan in a child process, so that nothing planning does can cost a user their job.

A file system that hangs, a library that is missing, runs for ever or crashes,
a signal that arrives meanwhile: the parent gives the child up and goes on. It
loads nothing that the child needs. That a child gets further is not seen from
outside (a loop without end works hard too): it says so (`rankmap.progress`),
and may work only so long, or stand still, without a word. Work is counted in
time on a processor, so that a loaded machine costs nobody their order.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import time
from typing import TYPE_CHECKING, Any, NoReturn

from rankmap.progress import listen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

__all__ = ["planned"]

#: Signals that end the planning and not the job; a bare launcher would get them.
_ENDING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)

#: The part of its time that a child may work, or stand still, without a word.
_STILL = 0.4

#: Seconds between two looks at a silent child.
_LOOK = 0.05


class _GivenUpError(Exception):
    """The child is not waited for any longer."""


def planned(work: Callable[[], Iterable[dict[str, Any]]], seconds: float) -> dict[str, Any]:
    """Return the last thing that `work` yields in a child process, or ``{"unclear": why}``.

    Parameters
    ----------
    work : callable
        Yields what JSON can hold, each better than the one before. What it
        prints is dropped.
    seconds : float
        Longest time to wait, and less for a child that says nothing; 0: no limit.
        What it has yielded until then counts, with ``late`` saying why no more came.
    """
    heard = bytearray()
    late = ""
    try:
        with _signals_end_planning():
            child, answer = _start(work, seconds)
            try:
                _answer(child, answer, seconds, heard)
            finally:
                os.close(answer)
                _end(child)
    except OSError as error:
        late = f"cannot plan: {error.strerror}"
    except _GivenUpError as error:
        late = str(error)
    return _read(bytes(heard), late)


def _read(text: bytes, late: str) -> dict[str, Any]:
    """Return the last whole line that a child has said; one that died half-way may have none."""
    why = late or "planning broke down"
    lines = [line for line in text.split(b"\n")[:-1] if line]
    if not lines:
        return {"unclear": why}
    found: dict[str, Any] = json.loads(lines[-1])
    if found.get("last"):
        return found
    return {**found, "late": why}


def _start(work: Callable[[], Iterable[dict[str, Any]]], seconds: float) -> tuple[int, int]:
    """Fork the child and return its id and the end of the pipe it answers through."""
    low = os.pipe()
    # Where standard streams are closed, a pipe would take their numbers.
    answer, mouth = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    child = os.fork()
    if not child:
        _work(work, mouth, seconds)
    os.close(mouth)
    return child, answer


def _work(work: Callable[[], Iterable[dict[str, Any]]], mouth: int, seconds: float) -> NoReturn:
    """Be the child: do the work, answer, and end without any of the parent's clean-up."""
    try:
        signal.signal(signal.SIGTERM, _leave)
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the child's alone: cores for the plan
        if seconds:
            signal.alarm(int(seconds) + 5)
        nothing = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nothing, stream)
        listen(lambda: os.write(mouth, b"\n"))
        found: dict[str, Any] = {}
        for found in work():
            _say(mouth, found)
        _say(mouth, {**found, "last": True})
    except BaseException as error:  # whatever it is, the job starts without it
        with contextlib.suppress(BaseException):
            _say(mouth, {"unclear": _said(error), "last": True})
    finally:
        os._exit(0)


def _said(error: BaseException) -> str:
    from placement.errors import NidmapError, printable

    if isinstance(error, NidmapError):
        return str(error)
    return f"{type(error).__name__}: {printable(str(error), 200)}"


def _say(mouth: int, found: dict[str, Any]) -> None:
    data = json.dumps(found).encode() + b"\n"
    while data:
        data = data[os.write(mouth, data) :]


def _answer(child: int, answer: int, seconds: float, heard: bytearray) -> None:
    """Add all that the child writes to what has been heard.

    Raises
    ------
    _GivenUpError
        Too late, silent, or a signal.
    """
    silence = _Silence(child, seconds)
    while True:
        if select.select([answer], [], [], _LOOK if seconds else None)[0]:
            part = os.read(answer, 1 << 20)
            if not part:
                return
            heard += part
            silence.broken()
        if seconds and silence.too_long():
            raise _GivenUpError("planning took too long")


class _Silence:
    """How long a child has said nothing, and what it did meanwhile."""

    def __init__(self, child: int, seconds: float) -> None:
        self._child = child
        self._ends = time.monotonic() + seconds
        self._most = _STILL * seconds
        self.broken()

    def broken(self) -> None:
        """Begin anew: the child has said something."""
        self._moved = time.monotonic()
        self._begun = self._work = self._worked()

    def too_long(self) -> bool:
        """Return True where the time is over, or too much of it went by without a word."""
        now, work = time.monotonic(), self._worked()
        if work != self._work:
            self._moved, self._work = now, work
        return now > self._ends or now - self._moved > self._most or work - self._begun > self._most

    def _worked(self) -> float:
        """Return the seconds that the child has been on a processor; 0 where that is not known."""
        path = f"/proc/{self._child}/schedstat"
        with contextlib.suppress(OSError, ValueError), open(path) as stream:
            return int(stream.read().partition(" ")[0]) * 1e-9
        return 0.0


def _end(child: int) -> None:
    """End the child: let it tidy up for a moment, then kill it; never wait for long."""
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            if number:
                os.kill(child, number)
        for _ in range(10):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(child, os.WNOHANG)[0] == 0:
                    time.sleep(0.005)
                    continue
            return


@contextlib.contextmanager
def _signals_end_planning() -> Iterator[None]:
    """Have signals end the planning inside the block, and do nothing behind it until exec."""
    caught = [n for n in _ENDING if signal.getsignal(n) == signal.SIG_DFL]
    for number in caught:
        signal.signal(number, _give_up)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, _ignore)


def _give_up(number: int, frame: FrameType | None) -> None:
    raise _GivenUpError(f"{signal.Signals(number).name} while planning")


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing: a handler, unlike SIG_IGN, does not outlive exec."""


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
