"""What may be asked of the API: one Struct a request, every text and number limited.

`Nodes` and `Hops` are asked in the query of a GET, all others in the body of a POST.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

__all__ = [
    "BODY",
    "TEXT",
    "Choice",
    "Compare",
    "Describe",
    "Emit",
    "Export",
    "Finish",
    "Hops",
    "Mark",
    "Nodes",
    "Order",
    "Plan",
    "Resolve",
    "decode_body",
]

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


class Nodes(Struct):
    """Nodes that are to be described, at most 1,000, in any form of list that is pasted."""

    nodes: Annotated[str, Meta(min_length=1, max_length=2000)]


class Hops(Struct, rename={"from_": "from"}):
    """Links that are to be counted, by a routing of the machine; on shortest paths for none."""

    from_: Annotated[str, Meta(min_length=1, max_length=300)]
    routing: Word = ""


class Resolve(Struct, forbid_unknown_fields=True):
    """A pasted text."""

    text: Text


class Describe(Struct, forbid_unknown_fields=True):
    """A set of nodes that is to be judged."""

    nodes: Some
    ppn: Ppn = 1
    pattern: Word = "alltoall"
    bytes: Size | None = None
    order: Word = ""
    slots: Slots = []
    links: Links = 200


class Choice(Struct, forbid_unknown_fields=True, rename={"from_": "from"}):
    """What binds the choice of nodes.

    Attributes
    ----------
    kind : str
        Nodes of this kind, one of the machine's choices; ``any``: of all kinds in one job.
    partition : str
        Nodes of one of Slurm's partitions; of the default one where neither it nor `from_`
        is given.
    question : str
        The asker's own name for what may take long: a new question takes the place of an
        old one of the same name.
    """

    count: Count
    ppn: Ppn = 1
    bytes: Size | None = None
    from_: Text = ""
    exclude: Text = ""
    kind: Word = ""
    partition: Word = ""
    per_blade: Blade = 4
    seed: Seed = 0
    question: Word = ""


class Compare(Choice, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Plans that are to be set side by side."""

    pattern: Word = "alltoall"
    strategies: Words = []
    orders: Words = []
    links: Links = 50


class Plan(Choice, forbid_unknown_fields=True, rename={"from_": "from"}):
    """Nodes that are wanted."""

    strategy: Word = ""
    pattern: Word = ""
    include: Text = ""


class Order(Struct, forbid_unknown_fields=True):
    """Ranks that are to be ordered."""

    nodes: Some
    ppn: Ppn = 1
    pattern: Word = "alltoall"
    strategy: Word = "auto"
    slots: Slots = []
    format: Word = "slots"
    launcher_order: Literal["sorted", "given"] = "sorted"


class Finish(Struct, forbid_unknown_fields=True):
    """A search that is to end with the best that it has found."""

    question: Annotated[str, Meta(min_length=1, max_length=200)]


class Emit(Struct, forbid_unknown_fields=True):
    """Nodes that are to be written down."""

    nodes: Some
    format: Word = "nodelist"
    ppn: Ppn | None = None


class Mark(Struct, forbid_unknown_fields=True):
    """A named set of nodes."""

    nodes: Text
    name: Word = ""
    hue: Annotated[int, Meta(ge=0, le=7)] | None = None


class Export(Struct, forbid_unknown_fields=True):
    """A picture or a page that is to be taken away.

    Attributes
    ----------
    colour : str
        ``rank`` and ``hops``: of the first mark's job, or from the focus.
    focus : str
        The node from which hops are counted; the first marked one where none is.
    state : str
        How a page begins: what stands behind the # of a link that the page copies.
    """

    format: Literal["svg", "png", "html"] = "svg"
    nodes: Text = ""
    marks: Annotated[list[Mark], Meta(max_length=8)] = []
    view: Word = ""
    colour: Literal["state", "job", "group", "rank", "hops"] = "state"
    focus: Word = ""
    theme: Literal["light", "dark"] = "light"
    width: Annotated[int, Meta(ge=200, le=8000)] = 1600
    ppn: Ppn = 1
    pattern: Word = "alltoall"
    bytes: Size | None = None
    order: Word = ""
    slots: Slots = []
    state: Annotated[str, Meta(max_length=65536)] = ""


def decode_body(raw: bytes | str, kind: type[T]) -> T:
    """Return a body as its Struct.

    Raises
    ------
    msgspec.ValidationError, msgspec.DecodeError
        It is something else.
    """
    return msgspec.convert(_whole_numbers(msgspec.json.decode(raw)), kind)


def _whole_numbers(value: Any) -> Any:
    """Return a value with whole numbers as integers: JSON's 4.0 is one too.

    Examples
    --------
    >>> _whole_numbers({"ppn": 4.0, "marks": [{"hue": 1.0}], "bytes": 0.5})
    {'ppn': 4, 'marks': [{'hue': 1}], 'bytes': 0.5}
    """
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
