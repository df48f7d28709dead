"""Child processes: one that can neither hang nor flood us, or one that goes on running.

No shell; its own session, ended whole when time is up; output read up to a cap.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placement.errors import LaunchError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["MAX_BYTES", "Answer", "Deadline", "run_child", "start_child"]

#: Bytes of output that are read of one command; a million nodes are less.
MAX_BYTES = 256 * 2**20

#: Bytes of its messages that are kept.
_MAX_MESSAGES = 64 * 2**10

#: Seconds between two calls of `on_wait`.
_BEAT = 0.1


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said.

    Attributes
    ----------
    output, messages : str
        Standard output and standard error; bytes that are no UTF-8 replaced.
    code : int
        Exit code; -n where signal n ended it.
    """

    output: str
    messages: str
    code: int

    @property
    def complaint(self) -> str:
        """The first line that says what is wrong, printable; '' for none."""
        lines = [line.strip() for line in f"{self.messages}\n{self.output}".splitlines()]
        return next((printable(line, 200) for line in lines if line), "")


class Deadline:
    """A point in time by which one or more commands must have answered.

    Parameters
    ----------
    seconds : float
        From now.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left, 0 where there are none."""
        return max(0.0, self._end - time.monotonic())


def start_child(
    command: Sequence[str], *, name: str = "", hint: str = "", **how: Any
) -> subprocess.Popen[bytes]:
    """Start a command and return it while it runs.

    Parameters
    ----------
    command : sequence of str
    name : str
        What messages call it; '': as it is started.
    hint : str
        What a person can do where it cannot be started.
    **how
        See `subprocess.Popen`.

    Raises
    ------
    LaunchError
        It cannot be started.
    """
    try:
        return subprocess.Popen(command, **how)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LaunchError(f"cannot start {name or printable(command[0])}: {reason}", hint) from None


def run_child(
    command: Sequence[str],
    env: Mapping[str, str],
    deadline: Deadline,
    *,
    name: str = "",
    script: str = "",
    late_hint: str = "",
    on_wait: Callable[[], None] = lambda: None,
) -> Answer:
    """Run a command and return what it said.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; no shell sees them.
    env : mapping of str to str
        All of its environment; its PATH finds the program.
    deadline : Deadline
    name : str
        What messages call it; '': as it is started.
    script : str
        What the command gets on standard input.
    late_hint : str
        What a person can do where the command is late.
    on_wait : callable
        Called ten times a second while the command runs.

    Raises
    ------
    LaunchError
        It cannot be started, is late, or prints more than `MAX_BYTES`.
    """
    name = name or printable(command[0])
    with tempfile.TemporaryFile() as stdin:
        stdin.write(script.encode("utf-8", "surrogateescape"))
        stdin.seek(0)
        process = start_child(
            command, name=name, env=dict(env), stdin=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    try:
        output, messages = _read(process, deadline, on_wait, name)
        code = process.wait(timeout=max(deadline.left(), 0.05))
    except (subprocess.TimeoutExpired, TimeoutError):
        text = f"{name} did not answer in {deadline.seconds:g} s"
        raise LaunchError(text, late_hint) from None
    finally:
        _end(process)
    return Answer(output.decode(errors="replace"), messages.decode(errors="replace"), code)


def _read(
    process: subprocess.Popen[bytes], deadline: Deadline, on_wait: Callable[[], None], name: str
) -> tuple[bytearray, bytearray]:
    """Read both streams to their ends, the deadline or the cap."""
    output, messages = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((process.stdout, output), (process.stderr, messages)):
            assert stream is not None  # both are pipes
            selector.register(stream, selectors.EVENT_READ, kept)
        while selector.get_map():
            on_wait()
            ready = selector.select(min(deadline.left(), _BEAT))
            if not ready and not deadline.left():
                if process.poll() is not None:
                    break  # the command has ended; a child of its still holds the pipe
                raise TimeoutError
            for key, _ in ready:
                chunk = os.read(key.fd, 2**16)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data is output or len(messages) < _MAX_MESSAGES:
                    key.data.extend(chunk)
            if len(output) > MAX_BYTES:
                raise LaunchError(f"{name} printed more than {MAX_BYTES // 2**20} MiB")
    return output, messages


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it has started, and let go of its pipes."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
