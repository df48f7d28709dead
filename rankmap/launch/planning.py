# SPDX-License-Identifier: Apache-2.0
"""Planning in a child process, so that its failures cannot cost users their job.

A file system that hangs, a library that is missing, runs for ever or crashes,
a signal that arrives meanwhile: the parent gives the child up and goes on. It
loads nothing that the child needs. What the child may take is processor time:
on a busy login node, where it seldom gets a processor, it keeps its order.
That it gets further is not seen from outside (a loop without end works hard
too): it says so (`nidmap.rankmap.progress`), and may work only so long without a
word. A clock is asked only for a child that stands still, and for a day that
never ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

from nidmap.placement.errors import error_text
from nidmap.rankmap.launch import Launch
from nidmap.rankmap.launch.process import discard_launch
from nidmap.rankmap.progress import listen

#: Signals that end the planning and not the job; a bare launcher would get them.
_ENDING = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)

#: Limits of a child in multiples of ``--patience``: total processor time, processor time without a
#: report, seconds without work or report, and seconds in total.
_WORK, _SILENT, _STILL, _WHOLE = 1.0, 0.1, 0.4, 4.0

#: Key of the child's last message: the error, '' if there is none.
_END = "end"

#: Seconds between two looks at a child, and clock ticks per second in its ``stat``.
_LOOK, _TICKS = 0.05, os.sysconf("SC_CLK_TCK")


class _GivenUpError(Exception):
    """The child is no longer waited for."""


@dataclass(frozen=True, slots=True)
class PlannedLaunch:
    """An ordered launch, as needed by the process that becomes the launcher."""

    launch: Launch
    path: str  # the order file, already written
    # The same launch of a program that prints where each rank is (`nidmap.rankmap.launch.queries`)
    probe: Launch
    # Node that each rank of `probe` must say: the plan, by the launcher's own numbers
    rank_nodes: list[str]
    words: str  # description of the order, and its expected gain
    remarks: list[str]  # further remarks for the user


@dataclass(frozen=True, slots=True)
class PlanningResult:
    """The result of planning."""

    # The last one that the child has made; None where there is none
    plan: PlannedLaunch | None = None
    failure: str = ""  # why there is none, or none better; '' if the child completed


def plan_aside(work: Callable[[], Iterable[PlannedLaunch]], seconds: float) -> PlanningResult:
    """Return the last plan that `work` yields, run in a child process.

    `work`: yields plans, each better than the one before, at least one unless it raises an error.
    What it prints is dropped. `seconds`: the patience, of which `_WORK` and its like are
    multiples; 0: no limit. What the child has yielded until then counts.
    """
    heard, failure = bytearray(), "planning failed"
    try:
        with _signals_end_planning():
            child, answer = _start_child(work, seconds)
            try:
                _listen_once(child, answer, seconds, heard)
            finally:
                os.close(answer)
                _end_child(child)
    except OSError as error:
        failure = f"cannot plan: {error.strerror}"
    except _GivenUpError as error:
        failure = str(error)
    except KeyboardInterrupt:
        plan = _read_answer(bytes(heard), failure).plan
        discard_launch(plan.path if plan else "")
        raise
    return _read_answer(bytes(heard), failure)


def _read_answer(heard: bytes, failure: str) -> PlanningResult:
    """Return the complete lines that a child has written, even if it died half-way."""
    messages = [json.loads(line) for line in heard.split(b"\n")[:-1] if line]
    if messages and _END in messages[-1]:
        failure = messages.pop()[_END]
    if not messages:
        return PlanningResult(None, failure)
    fields = messages[-1]
    for name in ("launch", "probe"):
        argv, env = fields[name]
        fields[name] = Launch(tuple(argv), env)
    return PlanningResult(PlannedLaunch(**fields), failure)


def _start_child(work: Callable[[], Iterable[PlannedLaunch]], seconds: float) -> tuple[int, int]:
    """Fork the child; return its id and the pipe through which it answers."""
    low = os.pipe()
    # If standard streams are closed, a pipe would get their numbers.
    answer, mouth = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low)
    for end in low:
        os.close(end)
    child = os.fork()
    if not child:
        _work_as_child(work, mouth, seconds)
    os.close(mouth)
    return child, answer


def _work_as_child(
    work: Callable[[], Iterable[PlannedLaunch]], mouth: int, seconds: float
) -> NoReturn:
    """In the child: do the work, answer, and exit without the parent's clean-up."""
    try:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's: it ends this child
        if seconds:
            signal.alarm(int(_WHOLE * seconds) + 5)
        nothing = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nothing, stream)
        listen(lambda _: os.write(mouth, b"\n"))
        for plan in work():
            _write_line(mouth, {name: getattr(plan, name) for name in PlannedLaunch.__slots__})
        _write_line(mouth, {_END: ""})
    except BaseException as error:  # whatever the error, the job starts without the plan
        with contextlib.suppress(BaseException):
            _write_line(mouth, {_END: error_text(error)})
    finally:
        os._exit(0)


def _write_line(mouth: int, message: dict[str, Any]) -> None:
    """Write a line for the parent; unlike msgspec, JSON keeps words that are not UTF-8."""
    text = json.dumps(message, default=lambda launch: (launch.argv, launch.env))
    with open(mouth, "wb", closefd=False) as stream:
        stream.write(text.encode() + b"\n")


def _listen_once(child: int, answer: int, seconds: float, heard: bytearray) -> None:
    """Append the child's output to the text received so far."""
    watch = _Watch(child, seconds)
    while True:
        if select.select([answer], [], [], _LOOK if seconds else None)[0]:
            part = os.read(answer, 1 << 20)
            if not part:
                return
            heard += part
            watch.hear()
        too_long = watch.too_long() if seconds else ""
        if too_long:
            raise _GivenUpError(f"{too_long} (raise --patience, now {seconds:g})")


class _Watch:
    """The child's use of processor time and wall time so far."""

    def __init__(self, child: int, seconds: float) -> None:
        self._child = child
        self._seconds = seconds
        self._began = time.monotonic()
        self.hear()

    def hear(self) -> None:
        """Note that the child has reported something."""
        self._moved = time.monotonic()
        self._heard = self._work = self._worked()

    def too_long(self) -> str:
        """Return what took too long; '' if nothing did."""
        now, work = time.monotonic(), self._worked()
        if work != self._work:
            self._moved, self._work = now, work
        if now - self._moved > _STILL * self._seconds:
            return "planning makes no progress"
        late = now - self._began > _WHOLE * self._seconds
        silent = work - self._heard > _SILENT * self._seconds
        spent = work > _WORK * self._seconds
        return "planning takes too long" if late or silent or spent else ""

    def _worked(self) -> float:
        """Return the processor time of the child and its children; 0 if unknown."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{self._child}/stat", "rb") as stream:
                fields = stream.read().rpartition(b")")[2].split()
            return sum(map(int, fields[11:15])) / _TICKS
        return 0.0


def _end_child(child: int) -> None:
    """Ask the child to end, then kill it after a moment; never wait for long."""
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
    """Let signals end planning inside the block, and ignore them from then until exec."""
    caught = [n for n in _ENDING if signal.getsignal(n) == signal.SIG_DFL]
    for number in caught:
        signal.signal(number, _give_up)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, lambda *_: None)  # unlike SIG_IGN, it does not outlive exec


def _give_up(number: int, frame: FrameType | None) -> None:
    raise _GivenUpError(f"{signal.Signals(number).name} while planning")
