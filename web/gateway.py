"""Before the application: who may ask, the headers of every answer, documents that lie ready.

An ASGI application around another one. Every request passes here once; what
readers ask for most, the state and whether it is new, is answered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from placement.errors import NidmapError
from web.guard import HEADERS, VARY, Refusal, cookies_of
from web.problems import KIND, problem, problem_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from web.service import Service

    Scope = dict[str, Any]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Receive = Callable[[], Awaitable[dict[str, Any]]]

__all__ = ["HEAD", "Gateway"]

#: What every answer is sent with, and what those have that do not say how long they last.
_ALWAYS = [(k.lower().encode(), v.encode("latin-1")) for k, v in {**HEADERS, "Vary": VARY}.items()]
_NOT_KEPT = (b"cache-control", b"no-store")

#: Bytes of a request's head.
HEAD = 32 * 2**10

#: Characters of the longest name of a view.
_LONGEST = 200


class Gateway:
    """The ASGI application of one server.

    Parameters
    ----------
    inner : ASGI application
        Answers what is let through and does not lie ready.
    service : Service
    """

    def __init__(self, inner: Any, service: Service) -> None:
        self._inner = inner
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        answer = await self._answer(scope, _joined(scope["headers"]))
        if answer is None:
            await self._inner(scope, receive, _with_headers(send))
            return
        status, headers, raw = answer
        if status != 304:
            headers["Content-Length"] = str(len(raw))
        own = [(k.lower().encode(), v.encode("latin-1")) for k, v in headers.items()]
        send = _with_headers(send)
        await send({"type": "http.response.start", "status": status, "headers": own})
        await send(
            {"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else raw}
        )

    async def _answer(
        self, scope: Scope, headers: dict[str, str]
    ) -> tuple[int, dict[str, str], bytes] | None:
        """Return status, headers and body; None for what the application answers."""
        method, path, query = (
            scope["method"],
            scope["path"],
            scope["query_string"].decode("latin-1"),
        )
        refused = self._service.guard.refusal(
            method, path, query, headers, cookies_of(headers.get("cookie", ""))
        )
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEAD:
            refused = Refusal(431, f"a request's head may have {HEAD} bytes")
        if refused is not None:
            more = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
            more |= {"Content-Type": KIND, "Connection": "close"}
            return refused.status, more, problem(refused.status, refused.detail, refused.hint)
        if not self._service.has_document(path):
            return None
        if method not in ("GET", "HEAD"):
            more = {"Content-Type": KIND, "Allow": "GET, HEAD", "Connection": "close"}
            return 405, more, problem(405, "this is for reading only")
        try:
            view = parse_qs(query).get("view", [""])[0] if query else ""
            found = await self._service.document(path, view[:_LONGEST])
        except NidmapError as error:
            return problem_of(error)
        status, own, raw = found.answer(
            headers.get("accept-encoding", ""), headers.get("if-none-match", "")
        )
        live = self._service.live
        if found is live.state and live.age is not None:
            own["Age"] = str(live.age)
        return status, own, raw


def _joined(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by lower-case name, repeated ones joined."""
    found: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        mark = "; " if key == "cookie" else ","
        found[key] = f"{found[key]}{mark}{text}" if key in found else text
    return found


def _with_headers(send: Send) -> Send:
    """Return a `send` that adds what every answer carries."""

    async def sent(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = list(message["headers"])
            kept = any(name.lower() == b"cache-control" for name, _ in own)
            message["headers"] = [*own, *_ALWAYS, *(() if kept else (_NOT_KEPT,))]
        await send(message)

    return sent
