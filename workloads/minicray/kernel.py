# SPDX-License-Identifier: Apache-2.0
"""Interfaces to the kernel: mounts, namespaces, batches of ip and tc, sysctls, messages.

What passes between a mini-Cray and its commands is JSON and open files over a socket.
Only the standard library, and what needs no more: the daemon runs on this.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import socket
import struct
from pathlib import Path
from typing import Any

from nidmap.placement.errors import LaunchError
from nidmap.placement.support.child import Deadline, run_child

#: Kind of a network namespace, and flags of mount(2).
_NETWORK = 0x40000000
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_NOSUID, _NODEV = 2, 4

#: Seconds that one batch of ip or tc may take.
_BATCH = 600.0

_libc = ctypes.CDLL(None, use_errno=True)

#: Explanations of refusals for users.
_MEANINGS = (
    ("qdisc kind is unknown", "this kernel has no tbf, which limits the links (sch_tbf)"),
    ("Unknown device type", "this kernel has no veth, which the links are made of"),
    ("Operation not permitted", "namespaces are not permitted here"),
)


def mount(source: str, target: str, kind: str = "", *, bind: bool = False, data: str = "") -> None:
    """Mount; an empty source makes the tree below `target` private."""
    flags = _BIND | _RECURSIVE if bind else (_NOSUID | _NODEV if kind else _PRIVATE | _RECURSIVE)
    words = [w.encode() if w else None for w in (source, target, kind)]
    more = ctypes.c_ulong(flags), data.encode() if data else None
    _refuse_failed(_libc.mount(*words, *more), f"mount {kind or source} on {target}")


def enter_namespace(namespace: int) -> None:
    """Move this thread, and what it starts, into a network namespace."""
    _refuse_failed(_libc.setns(namespace, _NETWORK), "enter a network namespace")


def set_host_name(name: str) -> None:
    """Set the host name of this namespace."""
    _refuse_failed(_libc.sethostname(name.encode(), len(name.encode())), "name the host")


def _refuse_failed(failed: int, what: str) -> None:
    if failed:
        raise LaunchError(f"cannot {what}: {os.strerror(ctypes.get_errno())}")


def set_knob(name: str, value: str) -> None:
    """Set a value below /proc/sys/net; one that is missing or read-only is skipped."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        Path(f"/proc/sys/net/{name}").write_text(value)


def daemon_path(given: dict[str, str]) -> str:
    """Return a PATH that includes the daemons and iproute2."""
    return given.get("PATH", os.environ.get("PATH", "")) + ":/usr/sbin:/sbin:/usr/bin:/bin"


def require_tools(*tools: str) -> None:
    """Raise if a tool is not installed."""
    missing = [tool for tool in tools if not shutil.which(tool, path=daemon_path({}))]
    if missing:
        raise LaunchError(f"{', '.join(missing)} not found; install iproute2 and util-linux")


def run_batch(tool: str, lines: list[str]) -> None:
    """Run many lines in a single process of ip or tc."""
    env = {"PATH": daemon_path({}), "LC_ALL": "C"}
    done = run_child([tool, "-batch", "-"], env, Deadline(_BATCH), script="\n".join(lines) + "\n")
    if done.code:
        words = [line for line in done.messages.splitlines() if line.strip()]
        failed = next((w.rpartition(":")[2] for w in words if w.startswith("Command failed")), "")
        known = failed.isdigit() and int(failed) <= len(lines)
        means = next((f"{text}: " for sign, text in _MEANINGS if sign in done.messages), "")
        where = f" ({lines[int(failed) - 1]})" if known else ""
        raise LaunchError(f"{means}{tool}: {words[0] if words else 'failed'}{where}")


#: Open files that one message may bring: stdin, stdout, stderr.
_FILES = 3

#: Bytes of the longest message: an environment and a command line fit.
_LONGEST = 64 << 20


def same_user(connection: socket.socket) -> bool:
    """Tell whether the process at the other end belongs to the same user."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", raw)
    return bool(user == os.getuid())


def send(connection: socket.socket, message: dict[str, Any], fds: list[int] | None = None) -> None:
    """Send one message, a line of JSON preceded by its length, with open files."""
    body = json.dumps(message).encode()
    socket.send_fds(connection, [struct.pack("!I", len(body))], fds or [])
    connection.sendall(body)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive one message with its files."""
    head, fds, _, _ = socket.recv_fds(connection, 4, _FILES, socket.MSG_CMSG_CLOEXEC)
    try:
        (size,) = struct.unpack("!I", head + _read_exactly(connection, 4 - len(head)))
        message = json.loads(_read_exactly(connection, size)) if size <= _LONGEST else None
        if not isinstance(message, dict):
            raise EOFError
        return message, fds
    except BaseException as error:
        for fd in fds:
            os.close(fd)
        if isinstance(error, ValueError):
            raise EOFError from None
        raise


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    """Return exactly this many bytes."""
    body = bytearray()
    while len(body) < size:
        more = connection.recv(min(1 << 20, size - len(body)))
        if not more:
            raise EOFError
        body += more
    return bytes(body)
