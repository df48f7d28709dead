"""What passes between a mini-Cray and its commands: JSON and open files over a socket.

Only the standard library: the daemon imports this before anything else.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import Any

#: Open files that one message may bring: stdin, stdout, stderr.
_FILES = 3

#: Bytes of the longest message: an environment and a command line fit.
_LONGEST = 64 << 20


def same_user(connection: socket.socket) -> bool:
    """Tell whether the process at the other end is the same user's."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", raw)
    return bool(user == os.getuid())


def send(connection: socket.socket, message: dict[str, Any], fds: list[int] | None = None) -> None:
    """Send one message, one line of JSON after its length, with open files."""
    body = json.dumps(message).encode()
    socket.send_fds(connection, [struct.pack("!I", len(body))], fds or [])
    connection.sendall(body)


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive one message and the files with it.

    Raises
    ------
    EOFError
        The other end is gone, or sends what is no message.
    """
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
    """Return exactly so many bytes."""
    body = bytearray()
    while len(body) < size:
        more = connection.recv(min(1 << 20, size - len(body)))
        if not more:
            raise EOFError
        body += more
    return bytes(body)
