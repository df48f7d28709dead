"""Fill links with bytes: run on each node of a noise job as ``python -I traffic.py PLAN``.

PLAN is JSON: seconds, port, connections, and flows as [from, to, address of
to]. A node's name says which of them it sends and whether it receives. Only
the standard library.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time

#: Seconds in which the receivers may come up.
_PATIENCE = 15.0


def main() -> None:
    """Play this node's part until the time is over."""
    plan = json.loads(sys.argv[1])
    me = socket.gethostname()
    own = {to: address for _, to, address in plan["flows"]}.get(me)
    if own:
        _receive(own, plan["port"])
    deadline = time.monotonic() + plan["seconds"]
    senders = [
        threading.Thread(target=_send, args=(address, plan["port"], deadline), daemon=True)
        for source, _, address in plan["flows"]
        if source == me
        for _ in range(plan["connections"])
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(max(0.0, deadline - time.monotonic()) + _PATIENCE)
    time.sleep(max(0.0, deadline - time.monotonic()))


def _receive(address: str, port: int) -> None:
    """Take whatever comes, in the background."""
    listener = socket.create_server((address, port), backlog=256)

    def drain(connection: socket.socket) -> None:
        room = bytearray(1 << 16)
        with contextlib.suppress(OSError):
            while connection.recv_into(room):
                pass

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=drain, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def _send(address: str, port: int, deadline: float) -> None:
    """Send until the time is over."""
    connection = _connect(address, port)
    zeros = bytes(1 << 15)
    # A full buffer of the kernel would go on for long after the end: keep it small.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline:
            connection.settimeout(max(0.01, deadline - time.monotonic()))
            connection.send(zeros)


def _connect(address: str, port: int) -> socket.socket:
    """Return a connection to a receiver, once it is there."""
    last = time.monotonic() + _PATIENCE
    while True:
        try:
            return socket.create_connection((address, port))
        except OSError:
            if time.monotonic() > last:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):  # the one who started it has had enough
        main()
