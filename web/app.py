# SPDX-License-Identifier: Apache-2.0
"""The Quart application: the page, and the parts of the JSON API that are not prepared.

Quart is Flask's interface on ASGI: views are coroutines, so that a long
calculation holds no thread, and a view is cancelled when its
client hangs up.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
import quart
from werkzeug.exceptions import BadRequest, HTTPException, UnsupportedMediaType

from nidmap.placement.errors import NidmapError, printable, schema_sentence
from nidmap.web import replies, requests
from nidmap.web.answers import JSON, Answer, RenderedAnswer, error_answer, problem_of, takes_gzip
from nidmap.web.measured import measured
from nidmap.web.nodes import describe_nodes, emit_nodes, resolve
from nidmap.web.page import export, file_name, page_shell
from nidmap.web.requests import Path, document
from nidmap.web.slowdowns import metrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from nidmap.web.service import Service

#: Seconds in which a request's body must have come.
PATIENCE = 20.0

#: Answers of this many bytes are compressed, and from this many on in a thread.
_WORTH_PACKING, _LONG_TO_PACK = 1_000, 100_000

_PACKED = (JSON, "application/problem+json", "text/", "image/svg+xml")
_OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

#: Header that keeps nginx from buffering a streamed answer.
_AT_ONCE = {"X-Accel-Buffering": "no"}

#: Lines of JSON: clients that accept them get the progress of a search.
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
    app.after_request(_compress)
    app.register_error_handler(Exception, _refuse)
    for path in (*_OTHER_PATHS, *_PATHS):
        if path.answer is not None:
            view = _make_view(service, path.answer, path.request)
            app.add_url_rule(path.url, path.url, view, methods=[path.method])
    return app


def _make_view(
    service: Service, answer: Callable[..., Awaitable[Any]], question: type[msgspec.Struct] | None
) -> Callable[[], Awaitable[quart.Response]]:
    """Return the view for one path; if its answer is bytes they are JSON."""

    async def view() -> quart.Response:
        wanted = await _read_question(question) if question else None
        response: quart.Response | bytes = await answer(service, wanted)
        return _json_answer(response) if isinstance(response, bytes) else response

    return view


# --- answers --------------------------------------------------------------------------


async def _compress(response: quart.Response) -> quart.Response:
    """Compress an answer if the client accepts that."""
    packable = (
        takes_gzip(quart.request.headers.get("Accept-Encoding", ""))
        and response.status_code not in (204, 304)
        and (response.mimetype or "").startswith(_PACKED)
    )
    raw = await response.get_data(as_text=False) if packable else b""
    if len(raw) > _WORTH_PACKING:
        pack = partial(gzip.compress, raw, 5, mtime=0)
        long = len(raw) > _LONG_TO_PACK
        response.set_data(await asyncio.to_thread(pack) if long else pack())
        response.headers["Content-Encoding"] = "gzip"
    return response


def _make_response(answer: Answer) -> quart.Response:
    return quart.Response(answer.raw, answer.status, answer.headers)


def _stream_answer(parts: AsyncIterator[bytes], kind: str) -> quart.Response:
    """Return an answer that is streamed, for however long it takes."""
    response = quart.Response(parts, headers=_AT_ONCE, content_type=kind)
    response.timeout = None
    return response


async def _refuse(error: Exception) -> quart.Response:
    """Answer with an error; unexpected ones carry the server's own message."""
    if isinstance(error, HTTPException):
        kept = {k: v for k, v in error.get_headers() if k in ("Allow", "Retry-After")}
        return _make_response(
            error_answer(error.code or 500, error.description or "", headers=kept)
        )
    if isinstance(error, NidmapError) and (answer := problem_of(error)).status != 500:
        return _make_response(answer)
    what = printable(f"{type(error).__name__}: {error}", 500)
    sys.stderr.write(f"nidmap: {printable(quart.request.path, 200)}: {what}\n")
    return _make_response(error_answer(500, "a bug in nidmap; see the server's messages"))


def _json_answer(raw: bytes) -> quart.Response:
    """Return JSON, with a tag for revalidation if it answers a GET."""
    if quart.request.method == "POST":
        return quart.Response(raw, content_type=JSON)
    known = quart.request.headers.get("If-None-Match", "")
    return _make_response(RenderedAnswer.of(raw).answer("", known))


async def _read_question(kind: type[msgspec.Struct]) -> msgspec.Struct:
    """Return the request from query or body; 400, 408, 413 or 415 if it is invalid."""
    try:
        if quart.request.method != "POST":
            return msgspec.convert(quart.request.args.to_dict(), kind, strict=False)
        if quart.request.mimetype != JSON:
            raise UnsupportedMediaType("the body must be application/json")
        return requests.decode_body(await quart.request.get_data(cache=False, as_text=False), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(printable(schema_sentence(error), 300)) from None


# --- the page, and what is read -------------------------------------------------------


async def _page(service: Service, _: None) -> quart.Response:
    if "token" not in quart.request.args:
        title = service.machine.name
        return quart.Response(page_shell(title), content_type="text/html; charset=utf-8")
    guard, path = service.guard, quote(service.settings.prefix)
    response = quart.Response(b"", 303, {"Location": "./"})  # relative, since a proxy may rename it
    if guard.token:
        response.set_cookie(guard.cookie, guard.token, httponly=True, samesite="Lax", path=path)
    return response


async def _openapi(service: Service, _: None) -> bytes:
    del service
    return msgspec.json.encode(document(_PATHS))


async def _status(service: Service, _: None) -> quart.Response:
    return quart.Response(msgspec.json.encode(service.status()), content_type=JSON)


async def _slowdowns(service: Service, wanted: requests.Slowdowns) -> bytes:
    return msgspec.json.encode(await service.slowdowns(wanted))


async def _metrics(service: Service, _: None) -> quart.Response:
    judged = await service.slowdowns(requests.Slowdowns())
    text = metrics(service.machine, service.live.snapshot, judged.jobs)
    return quart.Response(text, content_type=_OPENMETRICS)


# --- what is calculated ---------------------------------------------------------------


async def _nodes(service: Service, wanted: requests.Nodes) -> bytes:
    return await service.short.json(describe_nodes, service.live.snapshot, wanted.nodes)


async def _measured(service: Service, wanted: requests.Measured) -> bytes:
    return await service.short.json(measured, service.settings.link_loads, wanted.links)


async def _resolve(service: Service, wanted: requests.Resolve) -> bytes:
    return await service.short.json(resolve, wanted.text)


async def _emit(service: Service, wanted: requests.Emit) -> bytes:
    return await service.short.json(emit_nodes, wanted)


async def _export(service: Service, wanted: requests.Export) -> quart.Response:
    raw, _ = await service.short.call(export, service.live.snapshot, wanted)
    name, kind = file_name(service.machine, wanted.format)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return quart.Response(raw, headers=headers, content_type=kind)


async def _finish(service: Service, wanted: requests.Finish) -> bytes:
    return msgspec.json.encode(replies.Finished(service.long.finish(wanted.question)))


async def _figure(service: Service, wanted: msgspec.Struct) -> quart.Response | bytes:
    """Answer with one of `nidmap.web.figures`, selected by path."""
    name = quart.request.path.rpartition("/")[2]
    if LINES not in quart.request.headers.get("Accept", ""):
        return await service.figure(name, wanted)
    return _stream_answer(_lines(service, name, wanted), LINES)


async def _lines(service: Service, name: str, wanted: msgspec.Struct) -> AsyncIterator[bytes]:
    """Yield lines of JSON: ``progress`` for each report, then ``answer`` or ``problem``."""
    reports: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    job = asyncio.ensure_future(service.figure(name, wanted, reports.put_nowait))
    job.add_done_callback(lambda _: reports.put_nowait(None))
    try:
        while (report := await reports.get()) is not None:
            yield msgspec.json.encode({"progress": report}) + b"\n"
        yield b'{"answer":' + await job + b"}\n"
    except NidmapError as error:
        yield b'{"problem":' + problem_of(error).raw + b"}\n"
    finally:
        job.cancel()


#: Paths outside the API.
_OTHER_PATHS = (
    Path("GET", "/", _page, None, "The page."),
    Path("GET", "/openapi.json", _openapi, None, "The API for programs."),
    Path("GET", "/metrics", _metrics, None, "Figures of the jobs and the free nodes."),
)

#: The API as it is described; what has no answer here lies ready (`Service.document`).
_PATHS = (
    Path("GET", "/api/v1/machine", None, None,
         "The machine in compact columns; never changes while the server runs.",
         replies.MachineColumns),
    Path("GET", "/api/v1/layout", None, requests.View,
         "The layout: boxes and nodes in units; all views, or one.", replies.Layout),
    Path("GET", "/api/v1/state", None, None,
         "States of the nodes and the jobs on them, with the time of the data.", replies.State),
    Path("GET", "/api/v1/jobs", None, None,
         "The jobs that hold nodes, each with its node list.", replies.Jobs),
    Path("GET", "/api/v1/slowdowns", _slowdowns, requests.Slowdowns,
         "The jobs, ordered by slowdown against their best placement; each with its range, and"
         " the patterns and ranks per node that it was judged with.", replies.Slowdowns),
    Path("GET", "/api/v1/nodes", _nodes, requests.Nodes,
         "All that is known of some nodes.", replies.Nodes),
    Path("GET", "/api/v1/hops", _figure, requests.Hops,
         "Links on the shortest paths from one node to all.", replies.Hops),
    Path("GET", "/api/v1/measured", _measured, requests.Measured,
         "What links carried by their counters, where a file of them is served.",
         replies.Measured),
    Path("GET", "/api/v1/status", _status, None,
         "Status of the server.", replies.Status),
    Path("POST", "/api/v1/resolve", _resolve, requests.Resolve,
         "What a pasted text names; bad words are reported with their position.", replies.Resolved),
    Path("POST", "/api/v1/describe", _figure, requests.Describe,
         "A set of nodes in one sentence, and what its links carry.", replies.Described),
    Path("POST", "/api/v1/compare", _figure, requests.Compare,
         "Plans side by side, as nidmap compare makes them. With Accept: application/x-ndjson,"
         " progress lines come first; the last line is the answer or a problem.", replies.Compared),
    Path("POST", "/api/v1/plan", _figure, requests.Plan,
         "One plan, as nidmap plan makes it.", replies.Planned),
    Path("POST", "/api/v1/order", _figure, requests.Order,
         "The slot of every rank, and the file for the launcher.", replies.Ordered),
    Path("POST", "/api/v1/finish", _finish, requests.Finish,
         "End a running search with its best result so far.", replies.Finished),
    Path("POST", "/api/v1/emit", _emit, requests.Emit,
         "Nodes written in a scheduler's format.", replies.Emitted),
    Path("POST", "/api/v1/export", _export, requests.Export,
         "A file to take away.", kinds=("image/svg+xml", "image/png", "text/html")),
)  # fmt: skip
