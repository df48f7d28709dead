"""``/openapi.json``: the API described for programs, made from the requests' own types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

__all__ = ["Path", "document"]


class Path(NamedTuple):
    """One path that the server answers.

    Attributes
    ----------
    method, url : str
    answer : callable or None
        Takes the service and what is asked, and returns a response, or the bytes of JSON.
    asked : Struct or None
        What is asked: in the query of a GET, in the body of a POST.
    summary : str
        What it is for.
    keys : str
        Those that every answer has; '' for what is not a JSON.
    kinds : tuple of str
        Media types of its answers.
    """

    method: str
    url: str
    answer: Callable[..., Awaitable[Any]] | None
    asked: type[msgspec.Struct] | None
    summary: str
    keys: str = ""
    kinds: tuple[str, ...] = ("application/json",)


#: Answers that any path may give, and those that a calculation may give besides.
_ALWAYS = {
    400: "the request is malformed",
    401: "the token is missing or wrong",
    403: "the request comes from another site's page",
    405: "the method is not allowed",
    408: "the request body took too long",
    413: "too large",
    421: "the request names another host",
    431: "the request header is too large",
}
_CALCULATED = {
    409: "this machine cannot answer it: no such node, too few free ones, a strategy or pattern"
    " that does not fit; the detail says which word, the hint what to do",
    415: "the body is not application/json",
    429: "too many calculations are under way: come again after Retry-After seconds",
    500: "a bug in nidmap",
    503: "busy, or Slurm does not answer",
    504: "the calculation took too long",
}


def document(api: Sequence[Path]) -> dict[str, Any]:
    """Return the description of an API in OpenAPI 3.1.

    Examples
    --------
    >>> found = document([Path("GET", "/api/v1/jobs", None, None, "The jobs.", "jobs")])
    >>> found["openapi"], found["paths"]["/api/v1/jobs"]["get"]["operationId"]
    ('3.1.0', 'jobs')
    """
    kinds = [path.asked for path in api if path.asked]
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    paths = {path.url: {path.method.lower(): _operation(path, schemas)} for path in api}
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


def _operation(path: Path, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of one path; the fields that a GET asks leave the schemas."""
    question, statuses = path.asked.__name__ if path.asked else "", _ALWAYS
    if path.asked:
        statuses = statuses | _CALCULATED
    if path.method == "POST":
        body = {"application/json": {"schema": {"$ref": f"#/components/schemas/{question}"}}}
        request: dict[str, Any] = {"requestBody": {"required": True, "content": body}}
    else:
        fields = schemas.pop(question) if question else {"properties": {}}
        request = {"parameters": [
            {"name": name, "in": "query", "required": name in fields["required"], "schema": schema}
            for name, schema in fields["properties"].items()
        ]}  # fmt: skip
        event = "text/event-stream" in path.kinds
        more = {503: _CALCULATED[503]} if event else {304: "as the caller has it (If-None-Match)"}
        statuses = statuses | more
    answer = {"type": "object", "required": path.keys.split()} if path.keys else {"type": "string"}
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses: dict[str, Any] = {
        str(status): {"description": text} | ({"content": problem} if status >= 400 else {})
        for status, text in sorted(statuses.items())
    }
    content = {kind: {"schema": answer} for kind in path.kinds}
    responses["200"] = {"description": "the answer", "content": content}
    name = path.url.rpartition("/")[2]
    return {"operationId": name, "summary": path.summary, **request, "responses": responses}
