"""Ask a launcher what only it knows: which MPI it belongs to, where it puts ranks.

What is asked ends with us: it runs in a session of its own, which is ended
whole when the answer does not come.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from placement.errors import LaunchError, printable
from rankmap.progress import step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rankmap.launch import Launch

__all__ = ["answer", "flavour", "probe", "said_places"]

#: Seconds between two signs of life while a command is waited for.
_BEAT = 0.1

#: What a probe prints for each rank: a mark, the rank, the node.
_PLACE = re.compile(r"nidmap-rank ([0-9]{1,9}) ([A-Za-z0-9._-]{1,255})(?![A-Za-z0-9._-])", re.ASCII)

#: How the versions of mpiexec call themselves, first lines of ``--version``.
_FLAVOURS = (
    ("openmpi", re.compile(r"\((?:Open MPI|OpenRTE)\)\s+([0-9.]+)|^prterun .*?([0-9.]+)", re.M)),
    ("intel", re.compile(r"Intel\(R\) MPI Library.*?Version\s+([0-9.]+)")),
    ("mpich", re.compile(r"HYDRA build details:\s+Version:\s+([0-9.]+)")),
    ("cray-mpich", re.compile(r"^mpiexec (?:version )?([0-9.]+) revision|\bPALS\b", re.M)),
)


def answer(argv: Sequence[str], env: Mapping[str, str], seconds: float = 10.0) -> str:
    """Return what a command prints on stdout.

    Raises
    ------
    LaunchError
        Where it cannot be started, fails, or does not answer in time.
    """
    try:
        process = subprocess.Popen(
            argv,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LaunchError(f"cannot start {printable(argv[0])}: {reason}") from None
    try:
        out = _heard(process, seconds)
    except BaseException as error:
        _end(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise LaunchError(f"{printable(argv[0])} did not answer in {seconds:g} s") from None
        raise
    if process.returncode:
        raise LaunchError(f"{printable(argv[0])} failed when asked (code {process.returncode})")
    return out.decode("utf-8", "replace")


def _heard(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """Return all that a command prints; that it is waited for is no standing still."""
    ends = time.monotonic() + seconds
    while True:
        step()
        left = ends - time.monotonic()
        try:
            return process.communicate(timeout=max(0.0, min(left, _BEAT)))[0]
        except subprocess.TimeoutExpired:
            if left <= _BEAT:
                raise


def flavour(program: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Return which MPI an mpiexec belongs to, and its version ('' where it does not say).

    Raises
    ------
    LaunchError
        Where it is none of those that are known.
    """
    text = answer([program, "--version"], env)
    for name, pattern in _FLAVOURS:
        match = pattern.search(text)
        if match:
            return name, next((group for group in match.groups() if group), "")
    first = printable(text.strip().split("\n")[0], 60)
    raise LaunchError(
        f"which MPI {printable(program, 40)} belongs to is not clear (it says '{first}')",
        "say it with --mpi",
    )


def probe(variables: Sequence[str], host: str = "$(uname -n)") -> tuple[str, ...]:
    """Return a program for every rank that prints its number and its node.

    Parameters
    ----------
    variables : sequence of str
        Variables that hold the rank under this launcher, the first that is set.
    host : str
        What names the node, in a shell's words.
    """
    rank = ""
    for name in reversed(variables):
        rank = f"${{{name}:-{rank}}}"
    return ("sh", "-c", f'printf "\\nnidmap-rank %s %s\\n" "{rank}" "{host}"')


def said_places(launch: Launch, env: Mapping[str, str], ranks: int, seconds: float) -> list[str]:
    """Run a launch of `probe` and return the node of each rank.

    Raises
    ------
    LaunchError
        Where it fails, or not every rank says once where it is.
    """
    text = answer(launch.argv, {**env, **launch.env}, seconds)
    found: dict[int, str] = {}
    for rank, host in _PLACE.findall(text):
        if found.setdefault(int(rank), host) != host:
            raise LaunchError(f"rank {rank} says twice where it is: {found[int(rank)]}, {host}")
    missing = next((r for r in range(ranks) if r not in found), None)
    if missing is not None or len(found) != ranks:
        raise LaunchError(f"{len(found)} of {ranks} ranks said where they are")
    return [found[r] for r in range(ranks)]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command that we started and all that it started."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdout:
        process.stdout.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.2)
