"""What passes between a mini-Cray and its commands: JSON and open files over a socket.

Only the standard library: the daemon imports this before anything else.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from typing import Any

__all__ = ["Trouble", "peer", "receive", "same_user", "send"]

#: Open files that one message may bring: stdin, stdout, stderr.
_FILES = 3

#: Bytes of the longest message: an environment and a command line fit.
_LONGEST = 64 << 20


class Trouble(Exception):  # noqa: N818  # said to a person, never seen as an exception
    """What went wrong, in one line."""


def peer(connection: socket.socket) -> tuple[int, int]:
    """Return process and user at the other end."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, user, _ = struct.unpack("3i", raw)
    return int(pid), int(user)


def same_user(connection: socket.socket) -> bool:
    """Tell whether the process at the other end is the same user's."""
    return peer(connection)[1] == os.getuid()


def send(connection: socket.socket, message: dict[str, Any], fds: list[int] | None = None) -> None:
    """Send one message, one line of JSON after its length, with open files."""
    body = json.dumps(message).encode("utf-8", "surrogateescape")
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    connection.sendmsg([struct.pack("!I", len(body))], ancillary)
    connection.sendall(body)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive one message and the files with it.

    Raises
    ------
    EOFError
        The other end is gone, or sends what is no message.
    """
    room = socket.CMSG_SPACE(_FILES * struct.calcsize("i"))
    head, ancillary, _, _ = connection.recvmsg(4, room, socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    try:
        return _parsed(_exactly(connection, _size(connection, head))), list(fds)
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise


def _size(connection: socket.socket, head: bytes) -> int:
    """Return the length that a message begins with."""
    if not head:
        raise EOFError
    (size,) = struct.unpack("!I", head + _exactly(connection, 4 - len(head)))
    if size > _LONGEST:
        raise EOFError
    return int(size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    body = bytearray()
    while len(body) < size:
        more = connection.recv(min(1 << 20, size - len(body)))
        if not more:
            raise EOFError
        body += more
    return bytes(body)


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except ValueError:
        raise EOFError from None
    if not isinstance(message, dict):
        raise EOFError
    return message
