# SPDX-License-Identifier: Apache-2.0
"""Runs other programs: bounded in time and output, in the background, or in our place.

No shell; its own session, ended whole when time is up; output read up to a cap.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any, NoReturn

from nidmap.placement.errors import LaunchError, os_reason, printable

#: Bytes of output that are read of one command; a million nodes are less.
MAX_BYTES = 256 * 2**20

#: Bytes of its messages that are kept.
_MAX_MESSAGES = 64 * 2**10

#: Seconds between two calls of `on_wait`.
_BEAT = 0.1


@dataclass(frozen=True, slots=True)
class ChildAnswer:
    """The output of a command."""

    # output, messages: standard output and standard error; bytes that are not UTF-8 replaced
    output: str
    messages: str
    code: int  # exit code; -n where signal n ended it

    @property
    def complaint(self) -> str:
        """The first line that describes the error, printable; '' if there is none."""
        lines = [line.strip() for line in f"{self.messages}\n{self.output}".splitlines()]
        return next((printable(line, 200) for line in lines if line), "")


class Deadline:
    """The time by which one or more commands must have answered.

    `seconds`: from now.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left; 0 if it has passed."""
        return max(0.0, self._end - time.monotonic())


def start_child(
    command: Sequence[str], *, name: str = "", hint: str = "", **how: Any
) -> subprocess.Popen[bytes]:
    """Start a command and return it while it is running.

    `name`: what messages call it; '' means as it is started. `hint`: what a person can do where
    it cannot be started.
    """
    try:
        return subprocess.Popen(command, **how)
    except (OSError, ValueError) as error:
        what = f"cannot start {name or printable(command[0])}: {os_reason(error)}"
        raise LaunchError(what, hint) from None


def become(words: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Replace this process with a program, which inherits its terminal and files.

    Python ignores SIGPIPE and SIGXFSZ, and what is ignored stays so across exec: both
    are reset first.
    """
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvpe(words[0], list(words), env)  # noqa: S606  # the user's own command, as given
    except (OSError, ValueError) as error:
        raise LaunchError(f"cannot start {printable(words[0])}: {os_reason(error)}") from None


def run_child(
    command: Sequence[str],
    env: Mapping[str, str],
    deadline: Deadline,
    *,
    name: str = "",
    script: str = "",
    late_hint: str = "",
    on_wait: Callable[[], None] = lambda: None,
) -> ChildAnswer:
    """Run a command and return its output.

    `command`: program and arguments; no shell sees them. `env`: all of its environment; its PATH
    finds the program. `name`: what messages call it; '' means as it is started. `script`: what
    the command gets on standard input. `late_hint`: what a person can do where the command is
    late. `on_wait`: called ten times a second while the command runs.
    """
    name = name or printable(command[0])
    with TemporaryFile() as stdin, TemporaryFile() as output, TemporaryFile() as messages:
        stdin.write(script.encode("utf-8", "surrogateescape"))
        stdin.seek(0)
        process = start_child(
            command, name=name, env=dict(env), stdin=stdin, stdout=output, stderr=messages,
            start_new_session=True,
        )  # fmt: skip
        try:
            while not _has_ended(process, min(deadline.left(), _BEAT)):
                on_wait()
                if max(os.fstat(file.fileno()).st_size for file in (output, messages)) > MAX_BYTES:
                    raise LaunchError(f"{name} printed more than {MAX_BYTES // 2**20} MiB")
                if not deadline.left():
                    text = f"{name} did not answer in {deadline.seconds:g} s"
                    raise LaunchError(text, late_hint)
        finally:  # also ends whatever the command has started
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        texts = []
        for file, limit in ((output, MAX_BYTES), (messages, _MAX_MESSAGES)):
            file.seek(0)
            texts.append(file.read(limit).decode(errors="replace"))
    return ChildAnswer(texts[0], texts[1], process.returncode)


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None
