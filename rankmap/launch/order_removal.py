"""Order files go when the job has ended, however it ends.

``nidmap run`` becomes the launcher, so it cannot tidy up. A process of its own,
without files, terminal or parent in common with the job, waits for it instead.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from typing import NoReturn

from rankmap.launch.launch_folder import discard_launch

__all__ = ["remove_at_end"]

#: Seconds between two looks, where the kernel cannot tell of a process's end (before Linux 5.3).
_LOOK = 2.0

#: What ends a job's processes together and is not meant for the one that tidies up.
_PASSED_OVER = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)


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
    job = os.getpid() if process is None else process
    began = _began(job)
    with contextlib.suppress(OSError):
        child = os.fork()
        if not child:
            _stand_alone(job, began, path)
        os.waitpid(child, 0)


def _stand_alone(job: int, began: str, path: str) -> NoReturn:
    """Leave the job's session and its files behind, wait for its end, and remove the directory."""
    try:
        for number in _PASSED_OVER:
            signal.signal(number, signal.SIG_IGN)
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        os.closerange(0, 1 << 16)
        _wait_for(job, began)
        discard_launch(path)
    finally:
        os._exit(0)


def _wait_for(job: int, began: str) -> None:
    try:
        ended = os.pidfd_open(job)
    except (AttributeError, OSError):
        while _began(job) == began:
            time.sleep(_LOOK)
        return
    if _began(job) == began:  # and not another process of the same number by now
        select.select([ended], [], [])


def _began(job: int) -> str:
    """Return when a process began, in the kernel's ticks; '' where there is none."""
    try:
        with open(f"/proc/{job}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""
