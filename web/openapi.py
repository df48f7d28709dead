"""``/openapi.json``: the API described for programs, made from the requests' own types."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from web import requests

__all__ = ["document"]


class _Path(NamedTuple):
    """One path of the API: what it is for, what it is asked, the answer's keys or its kinds."""

    summary: str
    keys: str = ""
    asked: type[msgspec.Struct] | None = None
    kinds: tuple[str, ...] = ("application/json",)


_GETS = {
    "machine": _Path(
        "The machine in compact columns; never changes while the server runs.",
        "schema name kind levels count nodes routers choices",
    ),
    "layout": _Path(
        "Where everything stands: boxes and nodes in units; all views, or one.",
        "schema views", requests.View,
    ),
    "state": _Path(
        "States of the nodes and the jobs on them, with the time of the data.",
        "schema version source taken stale error state jobs",
    ),
    "jobs": _Path("The jobs that hold nodes, each with its node list.", "jobs taken stale"),
    "slowdowns": _Path(
        "The jobs, the slowest against its best placement first.", "schema pattern jobs taken stale"
    ),
    "recorded": _Path(
        "States and jobs as of one sample of the recording that is replayed.",
        "schema version source taken stale error state jobs", requests.Recorded,
    ),
    "nodes": _Path("All that is known of some nodes.", "nodes", requests.Nodes),
    "hops": _Path("Links from one node to all.", "from hops", requests.Hops),
    "status": _Path("How the server is doing.", "machine version streams calculations"),
    "events": _Path(
        "A stream that says when the state is new; see /api/v1/state.",
        kinds=("text/event-stream",),
    ),
}  # fmt: skip

_POSTS = {
    "resolve": _Path(
        "What a pasted text names; bad words are named where they stand.",
        "ok count rows nodelist errors", requests.Resolve,
    ),
    "describe": _Path(
        "What a set of nodes is worth: a sentence, and what its wires carry.",
        "sentence count touches prediction default", requests.Describe,
    ),
    "compare": _Path(
        "Plans side by side, as nidmap compare makes them. Who accepts application/x-ndjson gets"
        " a line of progress at times, and the answer or a problem in the last one.",
        "rows sentence notes", requests.Compare,
    ),
    "plan": _Path(
        "One plan, as nidmap plan makes it.",
        "schema strategy count nodelist why", requests.Plan,
    ),
    "order": _Path(
        "The slot of every rank, and the file for the launcher.",
        "schema order node_rows text", requests.Order,
    ),
    "finish": _Path(
        "Let the search of a question end with the best so far.", "told", requests.Finish
    ),
    "emit": _Path("Nodes written in a scheduler's format.", "format count text", requests.Emit),
    "export": _Path(
        "A file to take away.", "", requests.Export, ("image/svg+xml", "image/png", "text/html"),
    ),
}  # fmt: skip

#: Answers that any path may give, and those that a calculation may give besides.
_ALWAYS = {
    400: "what was sent is not what was asked for",
    401: "the token is missing or wrong",
    403: "a page of another site asked",
    405: "the method is not allowed",
    408: "the body did not come in time",
    413: "too large",
    421: "the server is not the host that was asked for",
    431: "the head is too large",
}
_CALCULATED = {
    409: "this machine cannot answer it: no such node, too few free ones, a strategy or pattern"
    " that does not fit; the detail says which word, the hint what to do",
    415: "the body is no application/json",
    429: "too many calculations are under way: come again after Retry-After seconds",
    500: "a defect of nidmap",
    503: "busy, or Slurm does not answer",
    504: "it took longer than a calculation may",
}


def document() -> dict[str, Any]:
    """Return the API's description in OpenAPI 3.1.

    Examples
    --------
    >>> found = document()
    >>> found["openapi"], "/api/v1/machine" in found["paths"]
    ('3.1.0', True)
    """
    kinds = [path.asked for path in (*_GETS.values(), *_POSTS.values()) if path.asked]
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    paths = {f"/api/v1/{name}": {"get": _get(name, path, schemas)} for name, path in _GETS.items()}
    paths |= {f"/api/v1/{name}": {"post": _post(name, path)} for name, path in _POSTS.items()}
    words = ("type", "title", "detail", "hint")
    schemas["Problem"] = {
        "type": "object",
        "required": [*words, "status"],
        "properties": {word: {"type": "string"} for word in words}
        | {"status": {"type": "integer"}},
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "nidmap",
            "version": "1",
            "description": "A machine, its jobs and plans. Nothing here changes anything.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _get(name: str, path: _Path, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return a GET; the fields of what it is asked are its parameters."""
    asked = schemas.pop(path.asked.__name__) if path.asked else {"properties": {}}
    parameters = [
        {"name": field, "in": "query", "required": field in asked["required"], "schema": schema}
        for field, schema in asked["properties"].items()
    ]
    statuses = _ALWAYS | (_CALCULATED if path.asked else {})
    if name == "events":
        statuses = statuses | {503: _CALCULATED[503]}
    else:
        statuses = statuses | {304: "as the caller has it (If-None-Match)"}
    return _operation(name, path, statuses, parameters=parameters)


def _post(name: str, path: _Path) -> dict[str, Any]:
    """Return a POST; what it is asked is its body."""
    asked = path.asked.__name__ if path.asked else ""
    body = {"application/json": {"schema": {"$ref": f"#/components/schemas/{asked}"}}}
    return _operation(
        name, path, _ALWAYS | _CALCULATED, requestBody={"required": True, "content": body}
    )


def _operation(name: str, path: _Path, statuses: dict[int, str], **asked: Any) -> dict[str, Any]:
    answer = {"type": "object", "required": path.keys.split()} if path.keys else {"type": "string"}
    content = {kind: {"schema": answer} for kind in path.kinds}
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses: dict[str, Any] = {
        str(status): {"description": text} | ({"content": problem} if status >= 400 else {})
        for status, text in sorted(statuses.items())
    }
    responses["200"] = {"description": "the answer", "content": content}
    return {"operationId": name, "summary": path.summary, **asked, "responses": responses}
