# SPDX-License-Identifier: Apache-2.0
"""Replaces this process with the user's command, the last thing a wrapper does.

``nidmap run`` becomes the launcher and cannot watch it. It leaves the order
file in a new, private directory whose name nobody can guess. When the job has
ended, however it ends, the directory goes, unless the user has named a place
for it: a shell without files, terminal or parent in common with the job waits
for that.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import NoReturn

from nidmap.placement.errors import LaunchError, printable
from nidmap.placement.support import child
from nidmap.placement.ui import say
from nidmap.rankmap.launch import Launch

#: Exit code of a wrapper for its own refusal under ``--strict``.
REFUSED = 125

#: Variables that a command sets for itself: Python in the C locale (PEP 538), the front door for
#: numpy.
_OWN = ("LC_CTYPE", "OPENBLAS_NUM_THREADS")


def report(text: str) -> None:
    """Write a line to stderr; a closed stderr must not cost users their job."""
    with contextlib.suppress(OSError, ValueError):
        say(f"nidmap: {printable(text, 500)}")


def report_unclear(unclear: str, strict: bool) -> bool:
    """Report why a command cannot start in order; return whether it is refused."""
    report(f"{unclear}: {'not started (--strict)' if strict else 'default order'}")
    return strict


def job_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment as this process received it, for the user's program."""
    return {name: text for name, text in env.items() if name not in _OWN or _was_given(name)}


def become(launch: Launch, env: Mapping[str, str]) -> NoReturn:
    """Replace this process with the launch; see `nidmap.placement.support.child.become`."""
    child.become(launch.argv, {**env, **launch.env})


def _was_given(name: str) -> bool:
    """Tell whether this process was started with the variable; True if unknown."""
    try:
        with open("/proc/self/environ", "rb") as stream:
            return f"\0{name}=".encode() in b"\0" + stream.read()
    except OSError:
        return True


#: Waits for the end of process $1 and removes the file $2 and its directory: no child of the
#: launcher's, which may wait for all that it has.
_TIDY = """kill -0 "$1" 2>/dev/null || exit
(trap '' HUP INT TERM USR1 USR2; cd /; while kill -0 "$1"; do sleep 1; done
rm -f "$2"; rmdir "${2%/*}") </dev/null >/dev/null 2>&1 &"""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def order_folders(on_nodes: bool, chosen: str | None) -> list[str]:
    """Return the directories to try, best first.

    `on_nodes`: True where the compute nodes read the file: then only the working directory will
    do, which they share; otherwise the local temporary directory is a second choice. `chosen`:
    the user's own choice, the only one where given.
    """
    if chosen:
        return [chosen]
    working = os.path.abspath(os.curdir)
    return [working] if on_nodes else [working, tempfile.gettempdir()]


def store_order(text: str, name: str, job: str, parents: Sequence[str]) -> str:
    """Write an order file into a new directory and return its path.

    The directory is made for this launch (mode 0700, a random name), the file
    in it is new (O_EXCL, mode 0600): what others put into a shared directory
    is neither followed nor overwritten.
    """
    mark = f"{job}-" if job.isascii() and job.isalnum() else ""
    why = "no directory to write to"
    for parent in parents:
        path = ""
        try:
            os.makedirs(parent, exist_ok=True)
            path = os.path.join(tempfile.mkdtemp(prefix=f"nidmap-{mark}", dir=parent), name)
            with os.fdopen(os.open(path, _NEW, 0o600), "wb") as stream:
                stream.write(text.encode())
                stream.flush()
                os.fsync(stream.fileno())
            return path
        except BaseException as error:
            discard_launch(path)
            if not isinstance(error, OSError):
                raise
            why = f"cannot write the order file in {parent}: {error.strerror or error}"
    raise LaunchError(why)


def discard_launch(path: str) -> None:
    """Remove an order file and its directory as far as possible.

    `path`: '' for none.
    """
    if not path:
        return
    with contextlib.suppress(OSError):
        os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))


def remove_at_end(path: str, process: int | None = None) -> None:
    """Remove a launch's directory after a process ends, whatever program it becomes.

    A shell in a session of its own waits for that, and passes over the signals that end
    a job's processes together. Where there is none the directory stays.

    `path`: the order file. `process`: its id; None means this process.
    """
    words = ["sh", "-c", _TIDY, "nidmap", str(process or os.getpid()), path]
    with contextlib.suppress(OSError):
        subprocess.run(words, start_new_session=True, check=False)  # our own words
