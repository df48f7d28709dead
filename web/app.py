"""The Quart application: the page, and the parts of the JSON API that do not lie ready.

Quart is Flask's interface on ASGI: views are coroutines, so that an event
stream or a long calculation holds no thread, and a view is cancelled when its
client hangs up.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec
import quart
from werkzeug.exceptions import BadRequest, HTTPException, UnsupportedMediaType

from placement.errors import NidmapError, UsageError, printable
from web import requests
from web.answers import JSON, Answer, Document, problem, problem_of, unpacks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from web.service import Service

__all__ = ["make_app"]

S = TypeVar("S", bound=msgspec.Struct)

#: Seconds in which a request's body must have come.
PATIENCE = 20.0

#: Answers of so many bytes are packed, and from so many on in a thread.
_WORTH_PACKING, _LONG_TO_PACK = 1_000, 100_000

_PACKED = (JSON, "application/problem+json", "text/", "image/svg+xml")
_STREAM = "text/event-stream"
_OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

#: What nginx must be told of an answer that comes bit by bit.
_AT_ONCE = {"X-Accel-Buffering": "no"}

#: Lines of JSON: who accepts them is told how far a search is.
LINES = "application/x-ndjson"


def make_app(service: Service) -> quart.Quart:
    """Return the application that serves one machine."""
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


def _service() -> Service:
    service: Service = quart.current_app.extensions["nidmap"]
    return service


# --- answers --------------------------------------------------------------------------


async def _pack(response: quart.Response) -> quart.Response:
    """Pack an answer where the other end can unpack it."""
    packable = (
        unpacks(quart.request.headers.get("Accept-Encoding", ""))
        and response.status_code not in (204, 304)
        and (response.mimetype or "").startswith(_PACKED)
        and response.mimetype != _STREAM
    )
    raw = await response.get_data(as_text=False) if packable else b""
    if len(raw) > _WORTH_PACKING:
        if len(raw) > _LONG_TO_PACK:
            raw = await asyncio.to_thread(gzip.compress, raw, 5, mtime=0)
        else:
            raw = gzip.compress(raw, 5, mtime=0)
        response.set_data(raw)
        response.headers["Content-Encoding"] = "gzip"
    return response


def _response(answer: Answer) -> quart.Response:
    return quart.Response(answer.raw, answer.status, answer.headers)


async def _http_error(error: HTTPException) -> quart.Response:
    kept = {k: v for k, v in error.get_headers() if k in ("Allow", "Retry-After")}
    return _response(problem(error.code or 500, error.description or "", headers=kept))


async def _nidmap_error(error: NidmapError) -> quart.Response:
    answer = problem_of(error)
    return await _defect(error) if answer.status == 500 else _response(answer)


async def _defect(error: Exception) -> quart.Response:
    what = printable(f"{type(error).__name__}: {error}", 500)
    sys.stderr.write(f"nidmap: {printable(quart.request.path, 200)}: {what}\n")
    return _response(problem(500, "a defect of nidmap; its server's messages say more"))


def _json(raw: bytes) -> quart.Response:
    """Return JSON; what a GET returns gets a tag by which it is asked for again."""
    if quart.request.method == "POST":
        return quart.Response(raw, content_type=JSON)
    known = quart.request.headers.get("If-None-Match", "")
    return _response(Document.of(raw).answer("", known))


async def _read_question(kind: type[S]) -> S:
    """Return what is asked, by query or body; 400, 408, 413 or 415 where it is something else."""
    try:
        if quart.request.method != "POST":
            return msgspec.convert(quart.request.args.to_dict(), kind, strict=False)
        if quart.request.mimetype != JSON:
            raise UnsupportedMediaType("the body must be application/json")
        return requests.decode_body(await quart.request.get_data(cache=False, as_text=False), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(printable(str(error), 300)) from None


# --- the page, and what is read -------------------------------------------------------


async def _page() -> quart.Response:
    from web.page import shell

    service, guard = _service(), _service().guard
    if "token" not in quart.request.args:
        title = service.machine.name
        return quart.Response(shell(title), content_type="text/html; charset=utf-8")
    response = quart.Response(b"", 303, {"Location": "./"})  # whatever a proxy calls it
    if guard.token:
        response.set_cookie(
            guard.cookie, guard.token, httponly=True, samesite="Lax", path=quote(service.prefix)
        )
    return response


async def _openapi() -> quart.Response:
    from web.openapi import document

    return _json(msgspec.json.encode(document()))


async def _status() -> quart.Response:
    return quart.Response(msgspec.json.encode(_service().status()), content_type=JSON)


async def _slowdowns() -> quart.Response:
    return _json(await _service().slowdowns())


async def _recorded_pattern() -> quart.Response:
    wanted, service = await _read_question(requests.Recorded), _service()
    recording = service.recording
    if recording is None or wanted.at >= len(recording.samples):
        raise UsageError(f"no sample {wanted.at} is replayed", "nidmap web serve --replay FILE")

    def document() -> bytes:
        return msgspec.json.encode(recording.snapshot(wanted.at).document(service.machine))

    return _json(await asyncio.to_thread(document))


async def _metrics() -> quart.Response:
    from web.slowdowns import metrics

    service = _service()
    judged = msgspec.json.decode(await service.slowdowns())
    text = metrics(service.machine, service.live.snapshot, judged["jobs"])
    return quart.Response(text, content_type=_OPENMETRICS)


async def _events() -> quart.Response:
    streams = _service().streams
    if quart.request.method == "HEAD":
        return quart.Response(b"", content_type=_STREAM)
    if streams.full:
        hint, again = "ask /api/v1/state every half minute instead", {"Retry-After": "30"}
        return _response(problem(503, "too many viewers have a stream open", hint, again))
    response = quart.Response(streams.events(), headers=_AT_ONCE, content_type=_STREAM)
    response.timeout = None
    return response


# --- what is calculated ---------------------------------------------------------------


def _figure(name: str, kind: type[msgspec.Struct]) -> Callable[[], Awaitable[quart.Response]]:
    """Return the view that answers one of `web.figures`."""

    async def view() -> quart.Response:
        wanted, service = await _read_question(kind), _service()
        if LINES not in quart.request.headers.get("Accept", ""):
            return _json(await service.figure(name, wanted))
        lines = _lines(service, name, wanted)
        response = quart.Response(lines, headers=_AT_ONCE, content_type=LINES)
        response.timeout = None
        return response

    return view


async def _lines(service: Service, name: str, wanted: msgspec.Struct) -> AsyncIterator[bytes]:
    """Yield lines of JSON: ``progress`` for each report, then ``answer`` or ``problem``."""
    said: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    job = asyncio.ensure_future(service.figure(name, wanted, said.put_nowait))
    job.add_done_callback(lambda _: said.put_nowait(None))
    try:
        while (report := await said.get()) is not None:
            yield msgspec.json.encode({"progress": report}) + b"\n"
        yield b'{"answer":' + await job + b"}\n"
    except NidmapError as error:
        yield b'{"problem":' + problem_of(error).raw + b"}\n"
    finally:
        job.cancel()


async def _finish() -> quart.Response:
    wanted = await _read_question(requests.Finish)
    return _json(msgspec.json.encode({"told": _service().long.finish(wanted.question)}))


async def _nodes() -> quart.Response:
    from web.nodes import describe_nodes

    wanted, service = await _read_question(requests.Nodes), _service()
    return _json(await service.short.json(describe_nodes, service.live.snapshot, wanted.nodes))


async def _resolve() -> quart.Response:
    from web.resolve import resolve

    wanted = await _read_question(requests.Resolve)
    return _json(await _service().short.json(resolve, wanted.text))


async def _emit() -> quart.Response:
    from web.nodes import emit_nodes

    return _json(await _service().short.json(emit_nodes, await _read_question(requests.Emit)))


async def _export() -> quart.Response:
    from web.export import export, file_name

    wanted, service = await _read_question(requests.Export), _service()
    raw, _ = await service.short.call(export, service.live.snapshot, wanted)
    name, kind = file_name(service.machine, wanted.format)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return quart.Response(raw, headers=headers, content_type=kind)


_GET = {
    "/": _page,
    "/openapi.json": _openapi,
    "/metrics": _metrics,
    "/api/v1/status": _status,
    "/api/v1/slowdowns": _slowdowns,
    "/api/v1/recorded": _recorded_pattern,
    "/api/v1/events": _events,
    "/api/v1/hops": _figure("hops", requests.Hops),
    "/api/v1/nodes": _nodes,
}

_POST = {
    "/api/v1/describe": _figure("describe", requests.Describe),
    "/api/v1/compare": _figure("compare", requests.Compare),
    "/api/v1/plan": _figure("plan", requests.Plan),
    "/api/v1/order": _figure("order", requests.Order),
    "/api/v1/finish": _finish,
    "/api/v1/resolve": _resolve,
    "/api/v1/emit": _emit,
    "/api/v1/export": _export,
}
