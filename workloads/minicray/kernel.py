"""Asking the kernel for things: mounts, namespaces, ip and tc in batches, knobs.

Only the standard library: the daemon runs on this.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
from pathlib import Path

from workloads.minicray.messages import Trouble

__all__ = ["batch", "enter", "knob", "mount", "path", "refuse_missing", "set_host_name"]

#: Kind of a network namespace, and flags of mount(2).
_NETWORK = 0x40000000
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_NOSUID, _NODEV = 2, 4

_libc = ctypes.CDLL(None, use_errno=True)

#: What a refusal means for a user.
_MEANINGS = (
    ("qdisc kind is unknown", "this kernel has no tbf, which limits the links (sch_tbf)"),
    ("Unknown device type", "this kernel has no veth, which the links are made of"),
    ("Operation not permitted", "namespaces may not be set up here"),
)


def mount(source: str, target: str, kind: str = "", *, bind: bool = False, data: str = "") -> None:
    """Mount; an empty source makes the tree below `target` private.

    Raises
    ------
    Trouble
        Where the kernel refuses.
    """
    flags = _BIND | _RECURSIVE if bind else (_NOSUID | _NODEV if kind else _PRIVATE | _RECURSIVE)
    words = [w.encode() if w else None for w in (source, target, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), data.encode() if data else None):
        raise Trouble(f"cannot mount {kind or source} on {target}: {_why()}")


def enter(namespace: int) -> None:
    """Let this thread, and what it starts, be in a network namespace.

    Raises
    ------
    Trouble
        Where the kernel refuses.
    """
    if _libc.setns(namespace, _NETWORK):
        raise Trouble(f"cannot enter a network namespace: {_why()}")


def set_host_name(name: str) -> None:
    """Name the host of this namespace."""
    raw = name.encode()
    if _libc.sethostname(raw, len(raw)):
        raise Trouble(f"cannot name the host: {_why()}")


def _why() -> str:
    return os.strerror(ctypes.get_errno())


def knob(name: str, value: str) -> None:
    """Set a knob below /proc/sys/net; one that this kernel lacks or locks is left."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        Path(f"/proc/sys/net/{name}").write_text(value)


def path(given: dict[str, str]) -> str:
    """Return a PATH that reaches the daemons and iproute2 as well."""
    return given.get("PATH", os.environ.get("PATH", "")) + ":/usr/sbin:/sbin:/usr/bin:/bin"


def refuse_missing(*tools: str) -> None:
    """Raise where a tool is not installed."""
    missing = [tool for tool in tools if not shutil.which(tool, path=path({}))]
    if missing:
        raise Trouble(f"{', '.join(missing)} not found; install iproute2 and util-linux")


def batch(tool: str, lines: list[str]) -> None:
    """Run many lines in one process of ip or tc.

    Raises
    ------
    Trouble
        What was refused first, and for which line.
    """
    if not lines:
        return
    done = subprocess.run(
        [tool, "-batch", "-"], input="\n".join(lines) + "\n",
        capture_output=True, text=True, check=False, env={"PATH": path({}), "LC_ALL": "C"},
    )  # fmt: skip
    if done.returncode:
        raise Trouble(_complaint(tool, lines, done.stderr))


def _complaint(tool: str, lines: list[str], said: str) -> str:
    words = [line for line in said.splitlines() if line.strip()]
    where = next((w.rpartition(":")[2] for w in words if w.startswith("Command failed")), "")
    line = f" ({lines[int(where) - 1]})" if where.isdigit() and int(where) <= len(lines) else ""
    means = next((f"{text}: " for sign, text in _MEANINGS if sign in said), "")
    return f"{means}{tool}: {words[0] if words else 'failed'}{line}"
