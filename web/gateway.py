"""Before the application: who may ask, the headers of every answer, documents that lie ready.

An ASGI application around another one. Every request passes here once; what
readers ask for most, the state and whether it is new, is answered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from placement.errors import NidmapError
from web.answers import Answer, problem, problem_of
from web.guard import HEADERS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from web.service import Service

    Scope = dict[str, Any]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Receive = Callable[[], Awaitable[dict[str, Any]]]

__all__ = ["HEAD", "Gateway"]

#: Bytes of a request's head.
HEAD = 32 * 2**10

#: Characters of the longest name of a view.
_LONGEST = 200


def _as_bytes(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(key.lower().encode(), value.encode("latin-1")) for key, value in headers.items()]


_ALWAYS = _as_bytes(HEADERS)
_NOT_KEPT = _as_bytes({"Cache-Control": "no-store"})


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
        scope = self._inside(scope)
        reply = _Reply(send)
        answer = await self._answer(scope, _join_headers(scope["headers"]))
        if answer is None:
            try:
                await self._inner(scope, receive, reply)
            finally:
                reply.over = True
            return
        headers, raw = _as_bytes(answer.headers), answer.raw
        if answer.status != 304:
            headers.append((b"content-length", str(len(raw)).encode()))
        await reply({"type": "http.response.start", "status": answer.status, "headers": headers})
        raw = b"" if scope["method"] == "HEAD" else raw
        await reply({"type": "http.response.body", "body": raw})

    def _inside(self, scope: Scope) -> Scope:
        """Return a request's scope without the prefix, which a proxy may have taken off itself."""
        prefix = self._service.prefix
        if prefix == "/" or not scope["path"].startswith(prefix):
            return scope
        path = scope["path"][len(prefix) - 1 :]
        return scope | {"path": path, "raw_path": path.encode()}

    async def _answer(self, scope: Scope, headers: dict[str, str]) -> Answer | None:
        """Return what is answered here; None for what the application answers."""
        method, path, service = scope["method"], scope["path"], self._service
        query = scope["query_string"].decode("latin-1")
        refused = service.guard.refusal(method, path, query, headers)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEAD:
            refused = problem(431, f"a request's head may have {HEAD} bytes")
        if path + "/" == service.prefix:
            return Answer(
                308, {"Location": f"{path.rpartition('/')[2]}/{query and '?' + query}"}, b""
            )
        if refused is None and not service.has_document(path):
            return None
        if refused is None and method not in ("GET", "HEAD"):
            refused = problem(405, "this is for reading only", headers={"Allow": "GET, HEAD"})
        if refused is not None:
            return refused._replace(headers=refused.headers | {"Connection": "close"})
        try:
            view = parse_qs(query).get("view", [""])[0] if query else ""
            found = await service.document(path, view[:_LONGEST])
        except NidmapError as error:
            return problem_of(error)
        known = headers.get("if-none-match", "")
        answer = found.answer(headers.get("accept-encoding", ""), known)
        if found is service.live.state and service.live.age is not None:
            answer.headers["Age"] = str(service.live.age)
        return answer


def _join_headers(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by lower-case name, repeated ones joined."""
    found: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        mark = "; " if key == "cookie" else ","
        found[key] = f"{found[key]}{mark}{text}" if key in found else text
    return found


class _Reply:
    """A `send` that adds what every answer carries, and says nothing when its request is over.

    The application may go on when the server has given its request up, and then answer.
    """

    def __init__(self, send: Send) -> None:
        self.over = False
        self._send = send

    async def __call__(self, message: dict[str, Any]) -> None:
        if self.over:
            return
        if message["type"] == "http.response.start":
            own = list(message["headers"])
            kept = any(name.lower() == b"cache-control" for name, _ in own)
            message["headers"] = [*own, *_ALWAYS, *(() if kept else _NOT_KEPT)]
        await self._send(message)
