"""``/openapi.json``: the API described for programs, made from the requests' own types."""

from __future__ import annotations

from typing import Any

import msgspec

from web import requests

__all__ = ["document"]

_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "hint"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "hint": {"type": "string"},
    },
}

#: Answers that any path may give.
_ALWAYS = {
    400: "what was sent is not what was asked for",
    401: "the token is missing or wrong",
    403: "a page of another site asked",
    405: "the method is not allowed",
    408: "the body did not come in time",
    413: "too large",
    431: "the head is too large",
    421: "the server is not the host that was asked for",
}

#: Answers that a calculation may give besides.
_CALCULATED = {
    409: "this machine cannot answer it: no such node, too few free ones, a strategy or pattern"
    " that does not fit; the detail says which word, the hint what to do",
    415: "the body is no application/json",
    429: "too many calculations are under way: come again after Retry-After seconds",
    500: "a defect of nidmap",
    503: "busy, or Slurm does not answer",
    504: "it took longer than a calculation may",
}

_GETS: dict[str, tuple[str, list[str]]] = {
    "machine": (
        "The machine in compact columns; never changes while the server runs.",
        ["schema", "name", "kind", "levels", "count", "nodes", "routers", "choices"],
    ),
    "state": (
        "States of the nodes and the jobs on them, with the time of the data.",
        ["schema", "version", "source", "taken", "stale", "error", "state", "jobs"],
    ),
    "jobs": ("The jobs that hold nodes, each with its node list.", ["jobs", "taken", "stale"]),
    "status": ("How the server is doing.", ["machine", "version", "streams", "calculations"]),
}

_POSTS: dict[str, tuple[type, str, list[str]]] = {
    "resolve": (
        requests.Resolve,
        "What a pasted text names; bad words are named where they stand.",
        ["ok", "count", "rows", "nodelist", "errors"],
    ),
    "describe": (
        requests.Describe,
        "What a set of nodes is worth: a sentence, and what its wires carry.",
        ["sentence", "count", "touches", "prediction", "default"],
    ),
    "compare": (
        requests.Compare,
        "Plans side by side, as nidmap compare makes them.",
        ["rows", "sentence", "notes"],
    ),
    "plan": (
        requests.Plan,
        "One plan, as nidmap plan makes it.",
        ["schema", "strategy", "count", "nodelist", "why"],
    ),
    "order": (
        requests.Order,
        "The slot of every rank, and the file for the launcher.",
        ["schema", "order", "node_rows", "text"],
    ),
    "emit": (requests.Emit, "Nodes written in a scheduler's format.", ["format", "count", "text"]),
}


def document() -> dict[str, Any]:
    """Return the API's description in OpenAPI 3.1.

    Examples
    --------
    >>> found = document()
    >>> found["openapi"], "/api/v1/machine" in found["paths"]
    ('3.1.0', True)
    """
    kinds = [kind for kind, _, _ in _POSTS.values()] + [requests.Export]
    bodies, schemas = msgspec.json.schema_components(
        kinds, ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, Any] = {
        f"/api/v1/{name}": {"get": _get(name, text, keys)} for name, (text, keys) in _GETS.items()
    }
    for (name, (_, text, keys)), body in zip(_POSTS.items(), bodies, strict=False):
        paths[f"/api/v1/{name}"] = {"post": _post(name, text, body, _json(_object(keys)))}
    paths["/api/v1/export"] = {"post": _post("export", "A file to take away.", bodies[-1], _FILES)}
    paths["/api/v1/nodes"] = {"get": _asking("nodes", _NODES, ["nodes"])}
    paths["/api/v1/layout"] = {"get": _asking("layout", _VIEW, ["schema", "views"])}
    paths["/api/v1/hops"] = {"get": _asking("hops", _HOPS, ["from", "hops"])}
    paths["/api/v1/events"] = {"get": _events()}
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
            "schemas": {**schemas, "Problem": _PROBLEM},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


_FILES = {
    "image/svg+xml": {"schema": {"type": "string"}},
    "image/png": {"schema": {"type": "string", "format": "binary"}},
    "text/html": {"schema": {"type": "string"}},
}

_NODES: list[dict[str, Any]] = [
    {
        "name": "nodes",
        "in": "query",
        "required": True,
        "description": "A node list in any form that is pasted; at most 1,000 nodes.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 2000},
        "example": "12-15",
    }
]

_VIEW: list[dict[str, Any]] = [
    {
        "name": "view",
        "in": "query",
        "description": "One view by its id; usual: the first whole, the others by id and title.",
        "schema": {"type": "string", "maxLength": 200},
        "example": "usual",
    }
]

_HOPS: list[dict[str, Any]] = [
    {
        "name": "from",
        "in": "query",
        "required": True,
        "description": "A node.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 300},
    },
    {
        "name": "routing",
        "in": "query",
        "description": "One of the machine's routings; its default where none is given.",
        "schema": {"type": "string", "maxLength": 200},
    },
]


def _object(keys: list[str]) -> dict[str, Any]:
    return {"type": "object", "required": keys}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _answers(content: dict[str, Any], more: dict[int, str]) -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    said: dict[str, Any] = {"200": {"description": "the answer", "content": content}}
    for status, text in sorted((_ALWAYS | more).items()):
        said[str(status)] = {"description": text, "content": problem}
    return said


def _get(name: str, text: str, keys: list[str]) -> dict[str, Any]:
    answers = _answers(_json(_object(keys)), {})
    answers["304"] = {"description": "as the caller has it (If-None-Match)"}
    return {"operationId": name, "summary": text, "responses": answers}


def _asking(name: str, parameters: list[dict[str, Any]], keys: list[str]) -> dict[str, Any]:
    text = {
        "nodes": "All that is known of some nodes.",
        "hops": "Links from one node to all.",
        "layout": "Where everything stands: boxes and nodes in units; all views, or one.",
    }
    return {
        "operationId": name,
        "summary": text[name],
        "parameters": parameters,
        "responses": _answers(_json(_object(keys)), _CALCULATED)
        | {"304": {"description": "as the caller has it (If-None-Match)"}},
    }


def _post(name: str, text: str, body: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": text,
        "requestBody": {"required": True, "content": _json(body)},
        "responses": _answers(content, _CALCULATED),
    }


def _events() -> dict[str, Any]:
    stream = {"text/event-stream": {"schema": {"type": "string"}}}
    return {
        "operationId": "events",
        "summary": "A stream that says when the state is new; see /api/v1/state.",
        "responses": _answers(stream, {503: _CALCULATED[503]}),
    }
