"""Become the user's command: the last thing a wrapper does, leaving no trace of itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import NoReturn

from placement.errors import LaunchError
from rankmap.launch import Launch

__all__ = ["become", "job_environment"]


def job_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment as this process got it.

    Python sets LC_CTYPE by itself in the C locale (PEP 538); the user's
    program must not see that.
    """
    kept = dict(env)
    if "LC_CTYPE" in kept and not _was_given("LC_CTYPE"):
        del kept["LC_CTYPE"]
    return kept


def become(launch: Launch, env: Mapping[str, str]) -> NoReturn:
    """Replace this process by the launch; only returns by an error.

    It is exec, not a child: signals, exit code, terminal and descriptors are
    the program's own. Python ignores SIGPIPE and SIGXFSZ, and what is ignored
    stays ignored across exec, so both are reset first.

    Raises
    ------
    LaunchError
        Where the program cannot be started.
    """
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvpe(launch.argv[0], launch.argv, {**env, **launch.env})  # noqa: S606  # the user's own command, as given
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LaunchError(f"cannot start {launch.argv[0]}: {reason}") from None


def _was_given(name: str) -> bool:
    """Tell whether this process was started with the variable; True where that cannot be seen."""
    try:
        with open("/proc/self/environ", "rb") as stream:
            given = stream.read().split(b"\0")
    except OSError:
        return True
    return any(entry.startswith(name.encode() + b"=") for entry in given)
