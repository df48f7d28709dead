"""The server: sockets, limits on connections, and uvicorn in between."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import logging
import os
import resource
import signal
import socket
import stat
import time
from typing import TYPE_CHECKING, Any

import click
import uvicorn

from placement.errors import OutputError, UsageError
from web.app import make_app
from web.gateway import HEAD, Gateway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from web.service import Service

__all__ = ["bind_socket", "bound_socket", "make_server", "run", "serve"]

#: Seconds in which the head of a request must have come.
PATIENCE = 20.0

#: Connections at once; who asks on more is told that the server is busy.
CONNECTIONS = 1500

#: glibc's name for the number of heaps.
_M_ARENA_MAX = -8

#: Open files that so many connections need.
FILES = 4096


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free one.

    Raises
    ------
    UsageError
        The address is not this host's, or is taken.
    """
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host!r}: {_reason(error)}") from None
    family, *_, address = found[0]
    both = family == socket.AF_INET6  # what is bound to all addresses takes IPv4 too
    try:
        sock = socket.create_server(address, family=family, backlog=1024, dualstack_ipv6=both)
    except OSError as error:
        hint = "use --port 0 for any free one" if error.errno == errno.EADDRINUSE else ""
        reason = os.strerror(error.errno or 0)
        raise UsageError(f"cannot listen on {host} port {port}: {reason}", hint) from None
    sock.setblocking(False)
    return sock


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


@contextlib.contextmanager
def bound_socket(path: str) -> Iterator[socket.socket]:
    """Listen on a Unix socket that its owner alone may use; it is removed at the end.

    Raises
    ------
    UsageError
        Something else stands there, or a server is using it.
    OutputError
        It cannot be made.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        mask = os.umask(0o177)
        try:
            _clear(path)
            sock.bind(path)
        except OSError as error:
            raise OutputError(f"cannot make the socket {path}: {_reason(error)}") from None
        finally:
            os.umask(mask)
        own = os.stat(path).st_ino
        sock.listen(1024)
        sock.setblocking(False)
        try:
            yield sock
        finally:
            with contextlib.suppress(OSError):
                if os.stat(path).st_ino == own:
                    os.unlink(path)


def _clear(path: str) -> None:
    """Remove a socket that no one listens on any more."""
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise UsageError(f"{path} is there and is not a socket", "name another --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        else:
            raise UsageError(f"a server is using {path}", "name another --socket")


def run(service: Service, sock: socket.socket) -> None:
    """Serve until a signal ends it.

    Parameters
    ----------
    service : Service
    sock : socket
        Listening.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with contextlib.suppress(OSError, AttributeError):  # one heap a thread keeps what each needed
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)
    before = signal.signal(signal.SIGTERM, _end_tidily)  # uvicorn hands it on when it has ended
    try:
        asyncio.run(serve(service, make_server(service), sock))
    finally:
        signal.signal(signal.SIGTERM, before)


async def serve(service: Service, server: uvicorn.Server, sock: socket.socket) -> None:
    """Serve until the server is told to end; then end all that was started."""
    service.start()
    watching = asyncio.ensure_future(_close_idle(server))
    try:
        await server.serve(sockets=[sock])
    finally:
        watching.cancel()
        service.close()


def make_server(service: Service) -> uvicorn.Server:
    """Return the server of a service."""
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        Gateway(make_app(service), service),
        http="h11",  # its heads are limited, httptools' are not
        ws="none",
        lifespan="off",
        interface="asgi3",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=int(PATIENCE),
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=HEAD,
    )
    return uvicorn.Server(config)


async def _close_idle(server: uvicorn.Server) -> None:
    """Hang up on those who send no whole request in time: uvicorn would wait for ever."""
    waiting: dict[Any, tuple[Any, float]] = {}
    while True:
        await asyncio.sleep(PATIENCE / 4)
        now, known, waiting = time.monotonic(), waiting, {}
        for connection in list(server.server_state.connections):
            request = getattr(connection, "cycle", None)
            if request is not None and not request.response_complete:
                continue  # being answered
            last, since = known.get(connection, (request, now))
            waiting[connection] = (request, since if request is last else now)
            idle = now - waiting[connection][1]
            if idle > 3 * PATIENCE:  # it does not even read its last answer
                connection.transport.abort()
            elif idle > PATIENCE:
                connection.transport.close()


def _end_tidily(number: int, frame: object) -> None:
    """Leave as a tool that SIGTERM has ended, but tidily."""
    del frame
    raise click.exceptions.Exit(128 + number)
