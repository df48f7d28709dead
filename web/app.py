"""The Flask application: the page, its files, and the JSON API under ``/api/v1``."""

from __future__ import annotations

import gzip
import hashlib
import http
import sys
from typing import TYPE_CHECKING, Any, TypeVar

import flask
import msgspec
from werkzeug.exceptions import HTTPException

from placement.errors import LaunchError, NidmapError, UsageError, printable
from web import asked as bodies
from web.guard import HEADERS, VARY, cookies_of
from web.pool import BusyError, DefectError, TooSlowError
from web.ready import ready, unpacks

if TYPE_CHECKING:
    from collections.abc import Callable

    from web.live import Body
    from web.served import Served

__all__ = ["EVENTS", "make_app", "problem"]

S = TypeVar("S", bound=msgspec.Struct)

#: The path of the event stream, which the server answers itself (`web.asgi`).
EVENTS = "/api/v1/events"

_PACKED = ("application/json", "application/problem+json", "text/", "image/svg+xml")


def make_app(served: Served) -> flask.Flask:
    """Return the application that serves one machine.

    Parameters
    ----------
    served : Served
    """
    app = flask.Flask("web", static_folder="static", template_folder="templates")
    app.config.update(
        MAX_CONTENT_LENGTH=bodies.BODY,
        PROVIDE_AUTOMATIC_OPTIONS=False,
        SEND_FILE_MAX_AGE_DEFAULT=None,
    )
    app.extensions["nidmap"] = served
    app.before_request(_guarded)
    app.after_request(_finished)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(NidmapError, _nidmap_error)
    app.register_error_handler(Exception, _defect)
    _add_routes(app)
    return app


def _add_routes(app: flask.Flask) -> None:
    for path, view in (
        ("/", _page), ("/favicon.ico", _no_icon), ("/openapi.json", _openapi),
        ("/api/v1/machine", _machine), ("/api/v1/layout", _layout), ("/api/v1/state", _state),
        ("/api/v1/jobs", _jobs), ("/api/v1/nodes", _nodes), ("/api/v1/hops", _hops),
        ("/api/v1/status", _status), (EVENTS, _no_stream),
    ):  # fmt: skip
        app.add_url_rule(path, view_func=view, methods=["GET"])
    for name, kind in (
        ("describe", bodies.Describe), ("compare", bodies.Compare), ("plan", bodies.Plan),
        ("order", bodies.Order),
    ):  # fmt: skip
        app.add_url_rule(f"/api/v1/{name}", name, _figure(name, kind), methods=["POST"])
    for name, view in (("resolve", _resolve), ("emit", _emit), ("export", _export)):
        app.add_url_rule(f"/api/v1/{name}", name, view, methods=["POST"])


def _served() -> Served:
    found: Served = flask.current_app.extensions["nidmap"]
    return found


# --- what every request goes through -------------------------------------------------


def _guarded() -> flask.Response | None:
    request = flask.request
    found = _served().guard.refusal(
        request.method,
        request.path,
        request.query_string.decode("latin-1"),
        {name.lower(): value for name, value in request.headers.items()},
        cookies_of(flask.request.headers.get("Cookie", "")),
    )
    if found is None:
        return None
    headers = {"WWW-Authenticate": "Bearer"} if found.status == 401 else {}
    return problem(found.status, found.detail, found.hint, headers)


def _finished(response: flask.Response) -> flask.Response:
    """Add what every answer carries, and pack it where the other end can unpack it."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers["Vary"] = VARY
    if _packs(response):
        response.direct_passthrough = False
        raw = response.get_data()
        if len(raw) > 1000:
            response.set_data(gzip.compress(raw, 5, mtime=0))
            response.headers["Content-Encoding"] = "gzip"
    return response


def _packs(response: flask.Response) -> bool:
    return (
        unpacks(flask.request.headers.get("Accept-Encoding", ""))
        and "Content-Encoding" not in response.headers
        and response.status_code not in (204, 304)
        and (response.mimetype or "").startswith(_PACKED)
    )


def problem(
    status: int, detail: str, hint: str = "", headers: dict[str, str] | None = None
) -> flask.Response:
    """Return an error as ``application/problem+json``."""
    said = {
        "type": "about:blank",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "detail": printable(detail, 1000),
        "hint": printable(hint, 1000),
    }
    return flask.Response(
        msgspec.json.encode(said), status, headers, content_type="application/problem+json"
    )


def _http_error(error: HTTPException) -> flask.Response:
    kept = {k: v for k, v in error.get_headers() if k in ("Allow", "Retry-After")}
    status = error.code or 500
    if error.response is not None or status < 400:
        found = error.get_response()
        return flask.Response(found.get_data(), found.status_code, found.headers)
    return problem(status, error.description or "", "", kept)


def _nidmap_error(error: NidmapError) -> flask.Response:
    text = getattr(error, "text", "") or error.message
    if isinstance(error, BusyError):
        return problem(429, text, error.hint, {"Retry-After": "2"})
    if isinstance(error, DefectError):
        return _defect(error)
    status = 503 if isinstance(error, LaunchError) else 409
    return problem(504 if isinstance(error, TooSlowError) else status, text, error.hint)


def _defect(error: Exception) -> flask.Response:
    what = printable(f"{type(error).__name__}: {error}", 500)
    sys.stderr.write(f"nidmap: {flask.request.path}: {what}\n")
    return problem(500, "a defect of nidmap; its server's messages say more")


def _sent(found: Body, age: int | None = None) -> flask.Response:
    """Return a document that is ready, packed or not, or that it has not changed."""
    asked = flask.request.headers
    made = ready(found, asked.get("Accept-Encoding", ""), asked.get("If-None-Match", ""), age)
    return flask.Response(made.raw, made.status, made.headers)


def _json(raw: bytes) -> flask.Response:
    """Return JSON; what a GET returns gets a tag by which it is asked for again."""
    response = flask.Response(raw, content_type="application/json")
    if flask.request.method in ("GET", "HEAD"):
        tag = hashlib.sha256(raw).hexdigest()[:16]
        response.headers.update({"Cache-Control": "private, no-cache", "ETag": f'W/"{tag}"'})
        if flask.request.if_none_match.contains_weak(tag):
            return flask.Response(status=304, headers=response.headers)
    return response


def _body(kind: type[S]) -> S:
    """Return the request's body; 400, 413 or 415 where it is not what it should be."""
    if flask.request.mimetype != "application/json":
        flask.abort(415, "the body must be application/json")
    try:
        return bodies.decoded(flask.request.get_data(cache=False), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        flask.abort(400, printable(str(error), 300))


def _parameter(name: str, most: int, default: str | None = None) -> str:
    """Return one parameter of the query; 400 where it is missing, empty or too long."""
    value = flask.request.args.get(name, default)
    if value is None or len(value) > most or (not value and default is None):
        flask.abort(400, f"parameter {name}: 1 to {most} characters are needed")
    return value


# --- the page ---------------------------------------------------------------------


def _page() -> flask.Response:
    from web.page import shell

    guard = _served().guard
    if "token" in flask.request.args:
        response = flask.Response(status=303, headers={"Location": "/"})
        if guard.token:
            response.set_cookie(guard.cookie, guard.token, httponly=True, samesite="Lax", path="/")
        return response
    return flask.Response(shell(_served().machine.name), content_type="text/html; charset=utf-8")


def _no_icon() -> flask.Response:
    return flask.Response(status=204)


def _openapi() -> flask.Response:
    from web.openapi import document

    return _json(msgspec.json.encode(document()))


# --- what is ready ----------------------------------------------------------------


def _machine() -> flask.Response:
    return _sent(_served().machine_body)


def _layout() -> flask.Response:
    view = _parameter("view", 200, "")
    bodies = _served().layout_bodies
    if view not in bodies:
        known = ", ".join(name for name in bodies if name)
        raise UsageError(f"no view {printable(view)!r}", f"there are {known}")
    return _sent(bodies[view])


def _state() -> flask.Response:
    live = _served().live
    return _sent(live.body, live.age)


def _jobs() -> flask.Response:
    return _sent(_served().live.jobs)


def _nodes() -> flask.Response:
    from web.people import nodes

    wanted = _parameter("nodes", 2000)
    return _json(msgspec.json.encode(nodes(_served(), wanted)))


def _status() -> flask.Response:
    from web.people import status

    return flask.Response(msgspec.json.encode(status(_served())), mimetype="application/json")


def _no_stream() -> flask.Response:
    if flask.request.method == "HEAD":
        return flask.Response(content_type="text/event-stream")
    return problem(503, "event streams need nidmap's own server", "nidmap web serve")


# --- what is calculated -----------------------------------------------------------


def _figure(name: str, kind: type[msgspec.Struct]) -> Callable[[], flask.Response]:
    """Return the view that answers one of `web.figures`."""

    def view() -> flask.Response:
        wanted = bodies.plain(_body(kind))
        return _json(_served().figure(name, wanted))

    return view


def _hops() -> flask.Response:
    wanted = {"from": _parameter("from", 300), "routing": _parameter("routing", 200, "")}
    return _json(_served().figure("hops", wanted))


def _resolve() -> flask.Response:
    return _json(_served().resolve(_body(bodies.Resolve).text))


def _emit() -> flask.Response:
    from web.people import emitted

    wanted = _body(bodies.Emit)
    return _json(msgspec.json.encode(emitted(_served().machine, wanted)))


def _export() -> flask.Response:
    from web.takeaway import taken

    wanted = _body(bodies.Export)
    raw, kind, name = taken(_served(), bodies.plain(wanted))
    headers: dict[str, Any] = {"Content-Disposition": f'attachment; filename="{name}"'}
    return flask.Response(raw, headers=headers, content_type=kind)
