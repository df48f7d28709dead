# SPDX-License-Identifier: Apache-2.0
"""Requests to the API: one Struct per request, every text and number limited.

`Nodes`, `View`, `Hops` and `Recorded` are asked in the query of a GET, all others in the
body of a POST.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct

from nidmap.web import replies

T = TypeVar("T")

#: Bytes of the largest body that is read.
BODY = 4 * 2**20

#: Characters of the longest text in it.
TEXT = 2 * 2**20

Text = Annotated[str, Meta(max_length=TEXT)]
Some = Annotated[str, Meta(min_length=1, max_length=TEXT)]
Word = Annotated[str, Meta(max_length=200)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Ppn = Annotated[int, Meta(ge=1, le=4096)]
Size = Annotated[float, Meta(ge=0, le=1e15)]
Links = Annotated[int, Meta(ge=0, le=5000)]
Seed = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Blade = Annotated[int, Meta(ge=1, le=4)]
#: An order that is known: the slot of every rank.
Slots = Annotated[list[Annotated[int, Meta(ge=0, lt=2**20)]], Meta(max_length=2**20)]
Words = Annotated[list[Word], Meta(max_length=8)]
Kind = Annotated[Word, Meta(
    description="Nodes of this kind, one of the machine's choices; any: of all kinds in one job.")
]  # fmt: skip
Partition = Annotated[Word, Meta(
    description="Nodes of one of Slurm's partitions; the default one where neither it nor from "
    "is given.")
]  # fmt: skip
Choosing = Annotated[Word, Meta(
    description="Slurm's partition that the scheduler chooses from; all nodes where none is given.")
]  # fmt: skip
#: The asker's own name for a question that may take long.
Question = Annotated[Word, Meta(
    description="A name: a new question takes the place of an old one of the same name.")
]  # fmt: skip


class Nodes(Struct):
    """Nodes to describe."""

    nodes: Annotated[str, Meta(
        min_length=1, max_length=2000, examples=["12-15"],
        description="A node list in any form that is pasted; at most 1,000 nodes.")]  # fmt: skip


class View(Struct):
    """A part of the layout."""

    view: Annotated[str, Meta(
        max_length=200, examples=["usual"],
        description="One view by its id; usual: the first whole, the others by id and title.")
    ] = ""  # fmt: skip


class Hops(Struct, rename={"from_": "from"}):
    """Links to count."""

    from_: Annotated[str, Meta(min_length=1, max_length=300, description="A node.")]
    routing: Annotated[Word, Meta(
        description="One of the machine's routings; shortest paths if none is given.")
    ] = ""  # fmt: skip


class Measured(Struct):
    """Links whose counters are requested."""

    links: Annotated[Links, Meta(description="How many, the busiest first.")] = 200


class Slowdowns(Struct, frozen=True):
    """The pattern of running jobs, if the site's applications file does not state it."""

    pattern: Annotated[Word, Meta(
        description="Any pattern; a stencil and an all-to-all if none is given.")
    ] = ""  # fmt: skip
    ppn: Annotated[Ppn, Meta(
        description="Ranks per node of jobs that do not tell their own.")
    ] = 1  # fmt: skip
    bytes: Size | None = None


class Resolve(Struct, forbid_unknown_fields=True):
    """A pasted text."""

    text: Text


class Describe(Struct, forbid_unknown_fields=True):
    """A set of nodes to evaluate."""

    nodes: Some
    ppn: Ppn = 1
    pattern: Word = "alltoall"
    bytes: Size | None = None
    order: Word = ""
    slots: Slots = []
    kind: Kind = ""
    partition: Choosing = ""
    links: Links = 200
    groups: Annotated[bool, Meta(
        description="Whether the busiest link of every pair of groups is listed.")
    ] = False  # fmt: skip


class Choice(Struct, forbid_unknown_fields=True, rename={"from_": "from"}):
    """The restrictions on a choice of nodes."""

    count: Count
    ppn: Ppn = 1
    bytes: Size | None = None
    from_: Text = ""
    exclude: Text = ""
    kind: Kind = ""
    partition: Partition = ""
    per_blade: Blade = 4
    seed: Seed = 0
    question: Question = ""


class Compare(Choice, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Plans to compare."""

    pattern: Word = "alltoall"
    strategies: Words = []
    orders: Words = []
    links: Links = 50


class Plan(Choice, forbid_unknown_fields=True, rename={"from_": "from"}):
    """A request for nodes."""

    strategy: Word = ""
    pattern: Word = ""
    include: Text = ""


class Order(Struct, forbid_unknown_fields=True):
    """Ranks to order."""

    nodes: Some
    ppn: Ppn = 1
    pattern: Word = "alltoall"
    strategy: Word = "auto"
    slots: Slots = []
    format: Word = "slots"
    launcher_order: Literal["sorted", "given"] = "sorted"


class Finish(Struct, forbid_unknown_fields=True):
    """A search that shall end with the best found so far."""

    question: Annotated[str, Meta(min_length=1, max_length=200)]


class Emit(Struct, forbid_unknown_fields=True):
    """Nodes to write in some format."""

    nodes: Some
    format: Word = "nodelist"
    ppn: Ppn | None = None


class Mark(Struct, forbid_unknown_fields=True):
    """A named set of nodes."""

    nodes: Text
    name: Word = ""
    hue: Annotated[int, Meta(ge=0, le=7)] | None = None


class Export(Struct, forbid_unknown_fields=True):
    """A picture or page to export."""

    format: Literal["svg", "png", "html"] = "svg"
    nodes: Text = ""
    marks: Annotated[list[Mark], Meta(max_length=8)] = []
    view: Word = ""
    colour: Annotated[Literal["state", "job", "group", "rank", "hops"], Meta(
        description="rank and hops: of the first mark's job, or from the focus.")
    ] = "state"  # fmt: skip
    focus: Annotated[Word, Meta(
        description="The node from which hops are counted; the first marked one where none is.")
    ] = ""  # fmt: skip
    theme: Literal["light", "dark"] = "light"
    width: Annotated[int, Meta(ge=200, le=8000)] = 1600
    ppn: Ppn = 1
    pattern: Word = "alltoall"
    bytes: Size | None = None
    order: Word = ""
    slots: Slots = []
    kind: Kind = ""
    partition: Choosing = ""
    state: Annotated[str, Meta(
        max_length=65536,
        description="How a page begins: what stands behind the # of a link that the page copies.")
    ] = ""  # fmt: skip


def decode_body(raw: bytes | str, kind: type[T]) -> T:
    """Return a body as its Struct."""
    return msgspec.convert(_whole_numbers(msgspec.json.decode(raw)), kind)


def _whole_numbers(value: Any) -> Any:
    """Return a value with whole numbers as integers, such as JSON's 4.0."""
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Path(NamedTuple):
    """One path that the server answers."""

    method: str
    url: str
    # Takes the service and what is asked, and returns a response, or the bytes of JSON
    answer: Callable[..., Awaitable[Any]] | None
    # What is asked: in the query of a GET, in the body of a POST
    request: type[msgspec.Struct] | None
    summary: str  # what it is for
    reply: type[msgspec.Struct] | None = None  # what is answered; None for what is not JSON
    kinds: tuple[str, ...] = ("application/json",)  # media types of its answers


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
    """Return the description of an API in OpenAPI 3.1."""
    asked, schemas = _describe_structs([path.request for path in api if path.request], "")
    answers = [path.reply for path in api if path.reply]
    told, components = _describe_structs([*answers, replies.Problem], "Reply.")
    paths = {path.url: {path.method.lower(): _describe_path(path, asked | told, schemas)}
             for path in api}  # fmt: skip
    schemas |= components
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


def _describe_structs(
    kinds: Sequence[type[msgspec.Struct]], prefix: str
) -> tuple[dict[type[msgspec.Struct], Any], dict[str, Any]]:
    """Return the schema of each Struct, and all parts by name after a prefix."""
    schemas, parts = msgspec.json.schema_components(
        kinds, ref_template=f"#/components/schemas/{prefix}{{name}}"
    )
    named = {f"{prefix}{name}": schema for name, schema in parts.items()}
    return dict(zip(kinds, schemas, strict=True)), named


def _describe_path(
    path: Path, known: dict[type[msgspec.Struct], Any], schemas: dict[str, Any]
) -> dict[str, Any]:
    """Return the description of a path; the fields of a GET are moved out of the schemas."""
    question, statuses = path.request.__name__ if path.request else "", _ALWAYS
    if path.request:
        statuses = statuses | _CALCULATED
    if path.method == "POST":
        assert path.request is not None
        body = {"application/json": {"schema": known[path.request]}}
        request: dict[str, Any] = {"requestBody": {"required": True, "content": body}}
    else:
        fields = schemas.pop(question) if question else {"properties": {}}
        request = {"parameters": [
            {"name": name, "in": "query", "required": name in fields["required"], "schema": schema}
            for name, schema in fields["properties"].items()
        ]}  # fmt: skip
        statuses = statuses | {304: "as the caller has it (If-None-Match)"}
    answer = known[path.reply] if path.reply else {"type": "string"}
    problem = {"application/problem+json": {"schema": known[replies.Problem]}}
    responses: dict[str, Any] = {
        str(status): {"description": text} | ({"content": problem} if status >= 400 else {})
        for status, text in sorted(statuses.items())
    }
    content = {kind: {"schema": answer} for kind in path.kinds}
    responses["200"] = {"description": "the answer", "content": content}
    name = path.url.rpartition("/")[2]
    return {"operationId": name, "summary": path.summary, **request, "responses": responses}
