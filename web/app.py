"""The Quart application: the page, and the parts of the JSON API that do not lie ready.

Quart is Flask's interface on ASGI: views are coroutines, so that an event
stream or a long calculation holds no thread, and a view is cancelled when its
client hangs up.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import sys
from typing import TYPE_CHECKING, TypeVar

import msgspec
import quart
from werkzeug.exceptions import BadRequest, HTTPException, UnsupportedMediaType

from placement.errors import NidmapError, printable
from web import requests
from web.documents import unpacks
from web.problems import KIND, problem, problem_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from web.service import Service

__all__ = ["make_app"]

S = TypeVar("S", bound=msgspec.Struct)

#: Seconds in which a request's body must have come.
PATIENCE = 20.0

#: Answers of so many bytes are packed, and from so many on in a thread.
_WORTH_PACKING, _LONG_TO_PACK = 1_000, 100_000

_PACKED = ("application/json", "application/problem+json", "text/", "image/svg+xml")

_JSON = "application/json"


def make_app(service: Service) -> quart.Quart:
    """Return the application that serves one machine.

    Parameters
    ----------
    service : Service
    """
    app = quart.Quart("web", static_folder=None)
    app.config.update(
        MAX_CONTENT_LENGTH=requests.BODY,
        BODY_TIMEOUT=PATIENCE,
        RESPONSE_TIMEOUT=3 * PATIENCE,
        PROVIDE_AUTOMATIC_OPTIONS=False,
    )
    app.after_request(_pack)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(NidmapError, _nidmap_error)
    app.register_error_handler(Exception, _defect)
    app.extensions["nidmap"] = service
    for method, views in (("GET", _GET), ("POST", _POST)):
        for path, view in views.items():
            app.add_url_rule(path, path, view, methods=[method])
    return app


# --- answers --------------------------------------------------------------------------


async def _pack(response: quart.Response) -> quart.Response:
    """Pack an answer where the other end can unpack it."""
    packable = (
        unpacks(quart.request.headers.get("Accept-Encoding", ""))
        and response.status_code not in (204, 304)
        and (response.mimetype or "").startswith(_PACKED)
        and response.mimetype != "text/event-stream"
    )
    if packable:
        raw = await response.get_data(as_text=False)
        if len(raw) > _LONG_TO_PACK:
            raw = await asyncio.to_thread(gzip.compress, raw, 5, mtime=0)
        elif len(raw) > _WORTH_PACKING:
            raw = gzip.compress(raw, 5, mtime=0)
        else:
            return response
        response.set_data(raw)
        response.headers["Content-Encoding"] = "gzip"
    return response


def _problem(
    status: int, detail: str, hint: str = "", headers: dict[str, str] | None = None
) -> quart.Response:
    return quart.Response(problem(status, detail, hint), status, headers, content_type=KIND)


async def _http_error(error: HTTPException) -> quart.Response:
    kept = {k: v for k, v in error.get_headers() if k in ("Allow", "Retry-After")}
    return _problem(error.code or 500, error.description or "", "", kept)


async def _nidmap_error(error: NidmapError) -> quart.Response:
    status, headers, raw = problem_of(error)
    if status == 500:
        return await _defect(error)
    return quart.Response(raw, status, headers)


async def _defect(error: Exception) -> quart.Response:
    what = printable(f"{type(error).__name__}: {error}", 500)
    sys.stderr.write(f"nidmap: {printable(quart.request.path, 200)}: {what}\n")
    return _problem(500, "a defect of nidmap; its server's messages say more")


def _answer(raw: bytes) -> quart.Response:
    """Return JSON; what a GET returns gets a tag by which it is asked for again."""
    response = quart.Response(raw, content_type=_JSON)
    if quart.request.method in ("GET", "HEAD"):
        tag = hashlib.sha256(raw).hexdigest()[:16]
        response.headers.update({"Cache-Control": "private, no-cache", "ETag": f'W/"{tag}"'})
        if quart.request.if_none_match.contains_weak(tag):
            return quart.Response(b"", 304, response.headers)
    return response


async def _body(kind: type[S]) -> S:
    """Return the request's body; 400, 408, 413 or 415 where it is not what it should be."""
    if quart.request.mimetype != _JSON:
        raise UnsupportedMediaType("the body must be application/json")
    raw = await quart.request.get_data(cache=False, as_text=False)
    try:
        return requests.decoded(raw, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(printable(str(error), 300)) from None


def _parameter(name: str, most: int, default: str | None = None) -> str:
    """Return one parameter of the query; 400 where it is missing, empty or too long."""
    value: str | None = quart.request.args.get(name, default)
    if value is None or len(value) > most or (not value and default is None):
        raise BadRequest(f"parameter {name}: 1 to {most} characters are needed")
    return value


# --- the page, and what is read -------------------------------------------------------


def _service() -> Service:
    service: Service = quart.current_app.extensions["nidmap"]
    return service


async def _page() -> quart.Response:
    from web.page import shell

    guard = _service().guard
    if "token" not in quart.request.args:
        title = _service().machine.name
        return quart.Response(shell(title), content_type="text/html; charset=utf-8")
    response = quart.Response(b"", 303, {"Location": "/"})
    if guard.token:
        response.set_cookie(guard.cookie, guard.token, httponly=True, samesite="Lax", path="/")
    return response


async def _no_icon() -> quart.Response:
    return quart.Response(b"", 204)


async def _openapi() -> quart.Response:
    from web.openapi import document

    return _answer(msgspec.json.encode(document()))


async def _status() -> quart.Response:
    return quart.Response(msgspec.json.encode(_service().status()), content_type=_JSON)


async def _events() -> quart.Response:
    kind, streams = "text/event-stream", _service().streams
    if quart.request.method == "HEAD":
        return quart.Response(b"", content_type=kind)
    if streams.full:
        return _problem(
            503, "too many viewers have a stream open",
            "ask /api/v1/state every half minute instead", {"Retry-After": "30"},
        )  # fmt: skip
    response = quart.Response(streams.events(), content_type=kind)
    response.timeout = None
    return response


# --- what is calculated ---------------------------------------------------------------


def _figure(name: str, kind: type[msgspec.Struct]) -> Callable[[], Awaitable[quart.Response]]:
    """Return the view that answers one of `web.figures`."""

    async def view() -> quart.Response:
        wanted = requests.plain(await _body(kind))
        return _answer(await _service().figure(name, wanted))

    return view


async def _hops() -> quart.Response:
    wanted = {"from": _parameter("from", 300), "routing": _parameter("routing", 200, "")}
    return _answer(await _service().figure("hops", wanted))


async def _nodes() -> quart.Response:
    from web.nodes import described

    wanted, service = _parameter("nodes", 2000), _service()
    return _answer(await service.short.json(described, service.live.snapshot, wanted))


async def _resolve() -> quart.Response:
    from web.resolve import resolve

    wanted = await _body(requests.Resolve)
    return _answer(await _service().short.json(resolve, wanted.text))


async def _emit() -> quart.Response:
    from web.nodes import emitted

    return _answer(await _service().short.json(emitted, await _body(requests.Emit)))


async def _export() -> quart.Response:
    from web.export import export, file_name

    wanted, service = requests.plain(await _body(requests.Export)), _service()
    raw, _ = await service.short.call(export, service.live.snapshot, wanted)
    name, kind = file_name(service.machine, wanted["format"])
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return quart.Response(raw, headers=headers, content_type=kind)


_GET = {
    "/": _page,
    "/favicon.ico": _no_icon,
    "/openapi.json": _openapi,
    "/api/v1/status": _status,
    "/api/v1/events": _events,
    "/api/v1/hops": _hops,
    "/api/v1/nodes": _nodes,
}

_POST = {
    "/api/v1/describe": _figure("describe", requests.Describe),
    "/api/v1/compare": _figure("compare", requests.Compare),
    "/api/v1/plan": _figure("plan", requests.Plan),
    "/api/v1/order": _figure("order", requests.Order),
    "/api/v1/resolve": _resolve,
    "/api/v1/emit": _emit,
    "/api/v1/export": _export,
}
