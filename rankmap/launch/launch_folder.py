"""The directory of a launch: its order file, and how it goes when the job has ended.

``nidmap run`` becomes the launcher and cannot watch it. It leaves the order
file in a new, private directory whose name nobody can guess. When the job has
ended, however it ends, the directory goes, unless the user has named a place
for it: a process of its own, without files, terminal or parent in common with
the job, waits for that.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import tempfile
import time
from typing import TYPE_CHECKING, NoReturn

from placement.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["discard_launch", "order_folders", "remove_at_end", "store_order"]

#: Seconds between two looks, where the kernel cannot tell of a process's end (before Linux 5.3).
_LOOK = 2.0

#: What ends a job's processes together and is not meant for the one that tidies up.
_PASSED_OVER = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def order_folders(on_nodes: bool, chosen: str | None) -> list[str]:
    """Return the directories to try, the best first.

    Parameters
    ----------
    on_nodes : bool
        True where the compute nodes read the file: then only the working
        directory will do, which they share; otherwise the local temporary
        directory is a second choice.
    chosen : str or None
        The user's own choice, the only one where given.
    """
    if chosen:
        return [chosen]
    working = os.path.abspath(os.curdir)
    return [working] if on_nodes else [working, tempfile.gettempdir()]


def store_order(text: str, name: str, job: str, parents: Sequence[str]) -> str:
    """Write an order file into a new directory of its own and return its path.

    The directory is made for this launch (mode 0700, a random name), the file
    in it is new (O_EXCL, mode 0600): what others put into a shared directory
    is neither followed nor overwritten.

    Raises
    ------
    LaunchError
        Where none of the parent directories can be written; nothing is left behind.
    """
    why = "no directory to write to"
    for parent in parents:
        try:
            return _store_in(parent, text, name, job)
        except OSError as error:
            why = f"cannot write the order file in {parent}: {error.strerror or error}"
    raise LaunchError(why)


def _store_in(parent: str, text: str, name: str, job: str) -> str:
    mark = f"{job}-" if job.isascii() and job.isalnum() else ""
    path = os.path.join(tempfile.mkdtemp(prefix=f"nidmap-{mark}", dir=parent), name)
    try:
        with os.fdopen(os.open(path, _NEW, 0o600), "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        discard_launch(path)
        raise
    return path


def discard_launch(path: str) -> None:
    """Remove an order file and its directory, as far as possible.

    Parameters
    ----------
    path : str
        '' for none.
    """
    if not path:
        return
    with contextlib.suppress(OSError):
        os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))


def remove_at_end(path: str, process: int | None = None) -> None:
    """Have a launch's directory removed when a process, whatever it becomes, has ended.

    That it cannot be watched costs nothing: then the directory stays.

    Parameters
    ----------
    path : str
        The order file.
    process : int or None
        Its id; None: this process.
    """
    with contextlib.suppress(OSError):
        job = _open_process(process or os.getpid())
        child = os.fork()
        if not child:
            _stand_alone(job, path)
        os.close(job)
        os.waitpid(child, 0)


def _open_process(process: int) -> int:
    """Return a descriptor of a process; unlike its number, it never becomes another's."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):  # before Linux 5.3
        return os.open(f"/proc/{process}", os.O_RDONLY | os.O_CLOEXEC)


def _stand_alone(job: int, path: str) -> NoReturn:
    """Leave the job's session and its files behind, wait for its end, and remove the directory."""
    try:
        for number in _PASSED_OVER:
            signal.signal(number, signal.SIG_IGN)
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        os.dup2(job, 0)
        os.closerange(1, 1 << 16)
        select.select([0], [], [])  # until it has ended; a directory of /proc is ready at once
        while os.path.exists("/proc/self/fd/0/stat"):
            time.sleep(_LOOK)
        discard_launch(path)
    finally:
        os._exit(0)
