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

__all__ = ["bound", "bound_socket", "make_server", "run", "serve"]

#: Seconds in which the head of a request must have come.
PATIENCE = 20.0

#: Connections at once; who asks on more is told that the server is busy.
CONNECTIONS = 1500

#: glibc's name for the number of heaps.
_M_ARENA_MAX = -8

#: Open files that so many connections need.
FILES = 4096


def bound(host: str, port: int) -> socket.socket:
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
        family, kind, protocol, _, address = found[0]
        sock = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host!r}: {_reason(error)}") from None
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)
    except OSError as error:
        sock.close()
        taken = error.errno == errno.EADDRINUSE
        hint = "use --port 0 for any free one" if taken else ""
        raise UsageError(f"cannot listen on {host} port {port}: {_reason(error)}", hint) from None
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
    _clear(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        sock.bind(path)
    except OSError as error:
        sock.close()
        raise OutputError(f"cannot make the socket {path}: {_reason(error)}") from None
    finally:
        os.umask(mask)
    mine = os.stat(path).st_ino
    sock.listen(1024)
    sock.setblocking(False)
    try:
        yield sock
    finally:
        sock.close()
        with contextlib.suppress(OSError):
            if os.stat(path).st_ino == mine:
                os.unlink(path)


def _clear(path: str) -> None:
    """Remove a socket that no one listens on any more."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise OutputError(f"cannot make the socket {path}: {_reason(error)}") from None
    if not stat.S_ISSOCK(found.st_mode):
        raise UsageError(f"{path} is there and is no socket", "name another --socket")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.connect(path)
    except ConnectionRefusedError:
        os.unlink(path)
    except OSError as error:
        raise OutputError(f"cannot make the socket {path}: {_reason(error)}") from None
    else:
        raise UsageError(f"a server is using {path}", "name another --socket")
    finally:
        probe.close()


def run(service: Service, sock: socket.socket) -> None:
    """Serve until a signal ends it.

    Parameters
    ----------
    service : Service
    sock : socket
        Listening.
    """
    _allow_files()
    _share_arenas()
    before = signal.signal(signal.SIGTERM, _terminated)  # uvicorn hands it on when it has ended
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


def _share_arenas() -> None:
    """Let all threads share two heaps: glibc's one a thread keeps what each once needed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def _terminated(number: int, frame: object) -> None:
    """Leave as a tool that SIGTERM has ended, but tidily."""
    del frame
    raise click.exceptions.Exit(128 + number)


def _allow_files() -> None:
    """Raise the limit on open files, as far as that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
