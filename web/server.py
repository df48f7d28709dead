# SPDX-License-Identifier: Apache-2.0
"""The server: sockets, limits on connections, uvicorn, and what precedes the application.

Every request passes the `Gateway` once; what readers ask for most, the state
and whether it is new, is answered there.
"""

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
from urllib.parse import parse_qs

import click
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nidmap.placement.errors import NidmapError, OutputError, UsageError, os_reason
from nidmap.web.answers import Answer, error_answer, problem_of
from nidmap.web.app import make_app
from nidmap.web.guard import HEADERS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from nidmap.web.service import Service

    Scope = dict[str, Any]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Receive = Callable[[], Awaitable[dict[str, Any]]]

#: Bytes of a request's head, and characters of the longest name of a view.
HEAD, _LONGEST_VIEW = 32 * 2**10, 200

#: Bytes that are read of a connection at once.
_SLICE = 8 * 2**10

#: Seconds in which the head of a request must have come.
PATIENCE = 20.0

#: Maximum number of connections; further ones are told that the server is busy.
CONNECTIONS = 1500

#: glibc's name for the number of heaps.
_M_ARENA_MAX = -8

#: Open files that this many connections need.
FILES = 4096


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free port."""
    try:
        addresses = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--host {host!r}: {os_reason(error)}") from None
    family, *_, address = addresses[0]
    both = family == socket.AF_INET6  # what is bound to all addresses takes IPv4 too
    try:
        sock = socket.create_server(address, family=family, backlog=1024, dualstack_ipv6=both)
    except OSError as error:
        hint = "use --port 0 for any free one" if error.errno == errno.EADDRINUSE else ""
        reason = os.strerror(error.errno or 0)
        raise UsageError(f"cannot listen on {host} port {port}: {reason}", hint) from None
    # asyncio sets this only for sockets that name their protocol: a body would wait for the
    # acknowledgement of its head, 40 ms and a round trip later
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setblocking(False)
    return sock


@contextlib.contextmanager
def bound_socket(path: str) -> Iterator[socket.socket]:
    """Listen on a Unix socket for its owner only; it is removed at the end."""
    path = os.path.expanduser(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        mask = os.umask(0o177)
        try:
            _remove_socket(path)
            sock.bind(path)
        except OSError as error:
            raise OutputError(f"cannot make the socket {path}: {os_reason(error)}") from None
        finally:
            os.umask(mask)
        inode = os.stat(path).st_ino
        sock.listen(1024)
        sock.setblocking(False)
        try:
            yield sock
        finally:
            with contextlib.suppress(OSError):
                if os.stat(path).st_ino == inode:
                    os.unlink(path)


def _remove_socket(path: str) -> None:
    """Remove a socket on which no one listens any more."""
    if not os.path.lexists(path):
        return
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise UsageError(f"{path} exists and is not a socket", "use another --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        else:
            raise UsageError(f"another server is using {path}", "use another --socket")


def run(service: Service, sock: socket.socket) -> None:
    """Serve until a signal ends it."""
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
    """Serve until told to end; then end everything that was started."""
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
        http=_Sliced,  # h11 limits heads, httptools does not
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


class _Sliced(H11Protocol):
    """HTTP/1.1 read in slices, since h11 limits only the size of incomplete headers."""

    def data_received(self, data: bytes) -> None:
        """Take the received bytes, up to the first that are not HTTP."""
        for start in range(0, len(data), _SLICE):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + _SLICE])


async def _close_idle(server: uvicorn.Server) -> None:
    """Close connections without a complete request in time; uvicorn would wait for ever."""
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
    """Exit like a tool ended by SIGTERM, but cleanly."""
    del frame
    raise click.exceptions.Exit(128 + number)


# --- around the application ------------------------------------------------------------


def _as_bytes(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(key.lower().encode(), value.encode("latin-1")) for key, value in headers.items()]


_ALWAYS = _as_bytes(HEADERS)
_NOT_KEPT = _as_bytes({"Cache-Control": "no-store"})


#: The page for a browser without the token.
_LOCKED = b"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>nidmap: no token</title></head><body>
<h1>This page needs its token</h1>
<p>Open the whole URL that <code>nidmap web serve</code> printed: it ends in
<code>?token=&#8230;</code>. After a restart of the server there is a new one.</p>
</body></html>
"""
_LOCKED_HEADERS = {"Content-Type": "text/html; charset=utf-8", "Connection": "close"}


class Gateway:
    """The ASGI application of one server.

    `inner`: answers what is let through and does not lie ready.
    """

    def __init__(self, inner: Any, service: Service) -> None:
        self._inner = inner
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        scope, over = self._inside(scope), False

        async def reply(message: dict[str, Any]) -> None:
            """Send with the headers of every answer; nothing after the server has given it up."""
            if over:
                return
            if message["type"] == "http.response.start":
                headers = list(message["headers"])
                kept = any(name.lower() == b"cache-control" for name, _ in headers)
                message["headers"] = [*headers, *_ALWAYS, *(() if kept else _NOT_KEPT)]
            await send(message)

        answer = await self._answer(scope, _join_headers(scope["headers"]))
        if answer is None:
            try:
                await self._inner(scope, receive, reply)
            finally:  # the application may go on, and then answer
                over = True
            return
        headers, raw = _as_bytes(answer.headers), answer.raw
        if answer.status != 304:
            headers.append((b"content-length", str(len(raw)).encode()))
        await reply({"type": "http.response.start", "status": answer.status, "headers": headers})
        raw = b"" if scope["method"] == "HEAD" else raw
        await reply({"type": "http.response.body", "body": raw})

    def _inside(self, scope: Scope) -> Scope:
        """Return a request's scope without the prefix, which a proxy may already have removed."""
        prefix = self._service.settings.prefix
        if prefix == "/" or not scope["path"].startswith(prefix):
            return scope
        path = scope["path"][len(prefix) - 1 :]
        return scope | {"path": path, "raw_path": path.encode()}

    async def _answer(self, scope: Scope, headers: dict[str, str]) -> Answer | None:
        """Return the answer made here; None for those made by the application."""
        method, path, service = scope["method"], scope["path"], self._service
        query = scope["query_string"].decode("latin-1")
        refused = service.guard.refusal(method, path, query, headers)
        if len(scope["raw_path"]) + len(query) + sum(map(_header_length, scope["headers"])) > HEAD:
            refused = error_answer(431, f"a request header may have {HEAD} bytes")
        if "content-length" in headers and "transfer-encoding" in headers:
            refused = error_answer(400, "Content-Length and Transfer-Encoding contradict")
        if path + "/" == service.settings.prefix:
            return Answer(
                308, {"Location": f"{path.rpartition('/')[2]}/{query and '?' + query}"}, b""
            )
        if refused is None and not service.has_document(path):
            return None
        if refused is None and method not in ("GET", "HEAD"):
            refused = error_answer(405, "this path is read-only", headers={"Allow": "GET, HEAD"})
        if refused is not None and refused.status == 401 and path == "/":
            return refused._replace(headers=refused.headers | _LOCKED_HEADERS, raw=_LOCKED)
        if refused is not None:
            return refused._replace(headers=refused.headers | {"Connection": "close"})
        try:
            view = parse_qs(query).get("view", [""])[0] if query else ""
            document = await service.document(path, view[:_LONGEST_VIEW])
        except NidmapError as error:
            return problem_of(error)
        known = headers.get("if-none-match", "")
        answer = document.answer(headers.get("accept-encoding", ""), known)
        if document is service.live.state and service.live.age is not None:
            answer.headers["Age"] = str(service.live.age)
        return answer


def _header_length(header: tuple[bytes, bytes]) -> int:
    """Return the bytes of a header line: ``name: value`` and its end."""
    return len(header[0]) + len(header[1]) + 4


def _join_headers(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by lower-case name, with repeated ones joined."""
    joined: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        mark = "; " if key == "cookie" else ","
        joined[key] = f"{joined[key]}{mark}{text}" if key in joined else text
    return joined
