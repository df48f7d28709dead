"""Between the server's event loop and the Flask application.

Streams and refusals are answered in the loop itself; everything else is read
whole (with a limit and a time limit, so that a slow sender holds no thread)
and then answered by a few threads.
"""

from __future__ import annotations

import asyncio
import http
import io
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from placement.errors import printable
from web.app import EVENTS, make_app
from web.asked import BODY
from web.guard import HEADERS, VARY, cookies_of
from web.page import STATIC
from web.ready import files, ready
from web.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from web.live import Body
    from web.served import Served

    Scope = dict[str, Any]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Receive = Callable[[], Awaitable[dict[str, Any]]]

__all__ = ["HEAD", "Application", "no_request"]

#: Bytes of a request's head.
HEAD = 32 * 2**10

#: Seconds in which a body must have come.
PATIENCE = 20.0

#: What is quick is answered in the loop itself: to wake a thread for it would take longer.
QUICK = "/api/v1/status"

#: Threads that answer; those that wait for a calculation among them.
THREADS = 32


#: A request with one of these has a body, which is to be read first.
_BODIES = {"content-length", "transfer-encoding"}

#: What every document is sent with.
_ALWAYS = [(k.lower().encode(), v.encode("latin-1")) for k, v in {**HEADERS, "Vary": VARY}.items()]


class _RefusedError(Exception):
    """A request that is not read to its end."""

    def __init__(self, status: int, detail: str, hint: str = "", **headers: str) -> None:
        super().__init__(detail)
        self.status, self.detail, self.hint, self.headers = status, detail, hint, headers


class Application:
    """The ASGI application of one server.

    Parameters
    ----------
    served : Served
    streams : int
        Event streams at once.
    """

    def __init__(self, served: Served, streams: int = 256) -> None:
        self.served = served
        self.streams = Streams(served.live, streams)
        served.streams = lambda: len(self.streams)
        self._flask = make_app(served)
        self._files = files(STATIC, "/static")
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="nidmap-web")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            headers = _joined(scope["headers"])
            self._guard(scope, headers)
            if scope["path"] == EVENTS and scope["method"] == "GET":
                await self._stream(receive, send)
                return
            found = None if _BODIES & headers.keys() else self._document(scope)
            if found is not None:
                await self._ready(send, found, headers)
                return
            environ = _environ(scope, headers, await _body(receive, headers))
            if scope["path"] == QUICK:
                status, answer, raw = self._answer(environ)
            else:
                loop = asyncio.get_running_loop()
                status, answer, raw = await loop.run_in_executor(
                    self._threads, self._answer, environ
                )
        except _RefusedError as error:
            await _refuse(send, error)
            return
        except RuntimeError:  # the threads have ended: so has the server
            await _refuse(send, _RefusedError(503, "the server is being stopped"))
            return
        except Exception as error:  # a defect must not cost the answer its headers
            what = printable(f"{type(error).__name__}: {error}", 500)
            sys.stderr.write(f"nidmap: {printable(scope['path'], 200)}: {what}\n")
            await _refuse(send, _RefusedError(500, "a defect of nidmap"))
            return
        await send({"type": "http.response.start", "status": status, "headers": answer})
        await send({"type": "http.response.body", "body": raw})

    def close(self) -> None:
        """End all streams and threads."""
        self.streams.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _guard(self, scope: Scope, headers: dict[str, str]) -> None:
        query = scope["query_string"].decode("latin-1")
        found = self.served.guard.refusal(
            scope["method"], scope["path"], query, headers, cookies_of(headers.get("cookie", ""))
        )
        if found is not None:
            more = {"WWW-Authenticate": "Bearer"} if found.status == 401 else {}
            raise _RefusedError(found.status, found.detail, found.hint, **more)

    def _document(self, scope: Scope) -> tuple[Body, str] | None:
        """Return what is asked for and its media type; None where it is none, or not ready."""
        if scope["method"] != "GET":
            return None
        found = self._files.get(scope["path"])
        if found is None:
            body = self._figures(scope)
            return None if body is None else (body, "application/json")
        return found

    def _figures(self, scope: Scope) -> Body | None:
        served, path = self.served, scope["path"]
        if path == "/api/v1/state":
            return served.live.body
        if path == "/api/v1/jobs":
            return served.live.jobs
        if not served.ready:
            return None
        if path == "/api/v1/layout":
            query: str = scope["query_string"].decode("latin-1")
            return served.layout_bodies.get(query.removeprefix("view="))
        return served.machine_body if path == "/api/v1/machine" else None

    async def _ready(self, send: Send, found: tuple[Body, str], headers: dict[str, str]) -> None:
        """Send a document as the application would, without the way through it."""
        live, (body, kind) = self.served.live, found
        accept, known = headers.get("accept-encoding", ""), headers.get("if-none-match", "")
        made = ready(body, accept, known, live.age if body is live.body else None, kind)
        own = [(k.lower().encode(), v.encode("latin-1")) for k, v in made.headers.items()]
        if made.status != 304:
            own.append((b"content-length", b"%d" % len(made.raw)))
        start = {"type": "http.response.start", "status": made.status, "headers": own + _ALWAYS}
        await send(start)
        await send({"type": "http.response.body", "body": made.raw})

    async def _stream(self, receive: Receive, send: Send) -> None:
        if self.streams.full:
            raise _RefusedError(
                503, "too many viewers have a stream open",
                "ask /api/v1/state every half minute instead", **{"Retry-After": "30"},
            )  # fmt: skip
        await self.streams.serve(send, receive, _headers("text/event-stream", -1, {}))

    def _answer(self, environ: dict[str, Any]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Have Flask answer; in a thread."""
        said: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            del exc_info
            said[:] = [status, headers]
            return None

        found = self._flask.wsgi_app(environ, start)
        try:
            raw = b"".join(found)
        finally:
            close = getattr(found, "close", None)
            if close is not None:
                close()
        headers = [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in said[1]]
        return int(said[0].split()[0]), headers, raw


async def _body(receive: Receive, headers: dict[str, str]) -> bytes:
    """Read a request's body whole.

    Raises
    ------
    _RefusedError
        It is too large, or takes too long.
    """
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 12 or int(length) > BODY:
        raise _RefusedError(413, f"a request may have {BODY} bytes")
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _RefusedError(400, "the request ends before its body")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > BODY:
                    raise _RefusedError(413, f"a request may have {BODY} bytes")
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise _RefusedError(408, f"the body did not come in {PATIENCE:g} s") from None


def _joined(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by lower-case name, repeated ones joined.

    Raises
    ------
    _RefusedError
        They are too many.
    """
    if sum(len(name) + len(value) for name, value in pairs) > HEAD:
        raise _RefusedError(431, f"a request's head may have {HEAD} bytes")
    found: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        mark = "; " if key == "cookie" else ","
        found[key] = f"{found[key]}{mark}{text}" if key in found else text
    return found


def _environ(scope: Scope, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    host, port = scope.get("server") or ("localhost", 80)
    client = scope.get("client") or ("", 0)
    found: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": str(host),
        "SERVER_PORT": str(port or 80),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": str(client[0]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in headers.items():
        if name not in ("content-length", "content-type", "transfer-encoding") and "_" not in name:
            found["HTTP_" + name.upper().replace("-", "_")] = value
    found["CONTENT_LENGTH"] = str(len(body))
    found["CONTENT_TYPE"] = headers.get("content-type", "")
    return found


def _headers(kind: str, length: int, more: dict[str, str]) -> list[tuple[bytes, bytes]]:
    said = {"content-type": kind, "cache-control": "no-store", **HEADERS, **more}
    if length >= 0:
        said["content-length"] = str(length)
    return [(k.lower().encode(), v.encode("latin-1")) for k, v in said.items()]


async def _refuse(send: Send, error: _RefusedError) -> None:
    headers, raw = _refusal(error)
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": raw})


def no_request() -> bytes:
    """Return the whole answer to what is no HTTP, or whose head is too large."""
    headers, raw = _refusal(_RefusedError(400, "this is no HTTP request, or its head is too large"))
    head = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    return b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + raw


def _refusal(error: _RefusedError) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the headers and the body of an error."""
    said = {
        "type": "about:blank",
        "title": http.HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.detail,
        "hint": error.hint,
    }
    raw = msgspec.json.encode(said)
    more = {**error.headers, "connection": "close"}
    return _headers("application/problem+json", len(raw), more), raw
