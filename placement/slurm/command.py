"""One Slurm command, run so that it can neither hang, flood nor mislead us.

No shell; its own process group, ended whole when time is up; output read up
to a cap; LC_ALL=C and UTC, and an environment without the variables by which
a user's habits would change the answer (``SQUEUE_PARTITION=nope`` makes
squeue print nothing, with exit code 0).
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from placement.errors import LaunchError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_BYTES", "TIMEOUT", "Answer", "Deadline", "ask", "clean_environment"]

#: Seconds that Slurm has to answer a question, however many commands it takes.
TIMEOUT = 4.5

#: Bytes of output that are read of one command; a million nodes are less.
MAX_BYTES = 256 * 2**20

#: Bytes of its messages that are kept.
_MAX_MESSAGES = 64 * 2**10

#: Variables of Slurm's commands all begin so …
_STEERING = ("SLURM", "SBATCH_", "SALLOC_", "SRUN_", "SINFO_", "SQUEUE_", "SCONTROL_", "SACCT_")

#: … and these say which cluster is asked and who asks.
_KEPT = (
    *("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT"),
    *("SLURM_SACK_SOCKET", "SLURM_SACK_KEY", "SLURM_SACK_JWKS"),
)


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
    seconds : float or None
        From now; None: `TIMEOUT`.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = TIMEOUT if seconds is None else seconds
        self._end = time.monotonic() + self.seconds

    def left(self) -> float:
        """Return the seconds left, 0 where there are none."""
        return max(0.0, self._end - time.monotonic())


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what would change Slurm's answers.

    Examples
    --------
    >>> env = clean_environment()
    >>> env["LC_ALL"], "SQUEUE_FORMAT" in env
    ('C', False)
    """
    kept = {k: v for k, v in os.environ.items() if k in _KEPT or not k.startswith(_STEERING)}
    return {**kept, "LC_ALL": "C", "LANG": "C", "TZ": "UTC0"}


def ask(
    command: Sequence[str],
    *,
    script: str | None = None,
    deadline: Deadline | None = None,
    fails: bool = False,
) -> Answer:
    """Run one Slurm command and return what it said.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; no shell sees them.
    script : str or None
        What it gets on standard input; None: nothing.
    deadline : Deadline or None
        By when it must have answered; None: `TIMEOUT` from now.
    fails : bool
        True where a non-zero exit code is an answer too, to be looked at by
        the caller; the Slurm that cannot be reached is an error in any case.

    Returns
    -------
    Answer

    Raises
    ------
    LaunchError
        The program is missing, did not answer in time, said too much, or
        failed; the message names the command and says what can be done.
    """
    until = deadline or Deadline()
    program = shutil.which(command[0])
    if program is None:
        raise LaunchError(
            f"{command[0]} is not on PATH",
            "load Slurm's module, run this on a login node, or plan from a dump",
        )
    with tempfile.TemporaryFile() as stdin:
        stdin.write((script or "").encode("utf-8", "surrogateescape"))
        stdin.seek(0)
        answer = _run([program, *command[1:]], stdin, until, command[0])
    _refuse_unreachable(answer, command[0])
    if answer.code and not fails:
        raise LaunchError(
            f"{command[0]} failed (exit code {answer.code}): {answer.complaint or 'no message'}",
            f"try it by hand: {printable(' '.join(command[:3]))}",
        )
    return answer


def _refuse_unreachable(answer: Answer, name: str) -> None:
    """Raise where the command could not talk to slurmctld."""
    if not answer.code:
        return
    text = answer.messages.lower()
    if "configuration source" in text or "resolve_ctls" in text:
        raise LaunchError(
            f"{name} finds no Slurm configuration on this host",
            "run this on a login node, set SLURM_CONF, or plan from a dump",
        )
    for sign in ("unable to contact slurm controller", "connection refused", "zero bytes were"):
        if sign in text:
            raise LaunchError(
                f"Slurm is down: {name} says {answer.complaint!r}",
                "try `scontrol ping`, or plan from a dump",
            )


def _run(command: list[str], stdin: IO[bytes], until: Deadline, name: str) -> Answer:
    try:
        process = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise LaunchError(f"{name} cannot be run: {error.strerror or error}") from None
    try:
        output, messages = _listen(process, until, name)
        code = process.wait(timeout=max(until.left(), 0.05))
    except subprocess.TimeoutExpired:
        raise _too_slow(name, until) from None
    finally:
        _end(process)
    return Answer(output.decode(errors="replace"), messages.decode(errors="replace"), code)


def _listen(
    process: subprocess.Popen[bytes], until: Deadline, name: str
) -> tuple[bytearray, bytearray]:
    """Read both streams to their ends, the time limit or the cap."""
    output, messages = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((process.stdout, output), (process.stderr, messages)):
            assert stream is not None  # both are pipes
            selector.register(stream, selectors.EVENT_READ, kept)
        while selector.get_map():
            ready = selector.select(until.left())
            if not ready:
                if process.poll() is not None:
                    break  # the command has ended; a child of its still holds the pipe
                raise _too_slow(name, until)
            for key, _ in ready:
                chunk = os.read(key.fd, 2**16)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data is output or len(messages) < _MAX_MESSAGES:
                    key.data.extend(chunk)
            if len(output) > MAX_BYTES:
                raise LaunchError(
                    f"{name} printed more than {MAX_BYTES // 2**20} MiB",
                    "is it Slurm's own command? ask for one partition",
                )
    return output, messages


def _too_slow(name: str, until: Deadline) -> LaunchError:
    return LaunchError(
        f"{name} did not answer in {until.seconds:g} s",
        "Slurm is down or busy: try `scontrol ping`, or plan from a dump",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command and what it has started, and let go of its pipes."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
