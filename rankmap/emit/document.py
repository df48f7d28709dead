"""Format ``json``: the order with its nodes, for programs.

One object with the keys ``schema``, ``strategy``, ``pattern``, ``ranks``,
``nodelist`` (folded, in slot order), ``nodes``, ``counts`` (slots of each
node) and ``slots`` (entry r: the slot of rank r).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import ParseError, printable
from rankmap.emit.text import BrokenOrderError
from rankmap.order import Order
from rankmap.permutation import broken

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankmap.slots import Slots

__all__ = ["SCHEMA", "document", "read", "write"]

SCHEMA = "nidmap.order/1"


def write(order: Order) -> str:
    """Return the order as a JSON object, a key a line."""
    # Whole arrays on one line: indented, a million ranks would be a million lines.
    body = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in document(order).items())
    return f"{{\n{body}\n}}\n"


def document(order: Order) -> dict[str, Any]:
    """Return the order as the document ``nidmap.order/1``."""
    from placement.nodelist import NodeList

    names = order.on.names.tolist()
    return {
        "schema": SCHEMA,
        "strategy": order.strategy,
        "pattern": order.pattern,
        "ranks": len(order),
        "nodelist": NodeList(names).fold(),
        "nodes": names,
        "counts": order.on.counts.tolist(),
        "slots": order.slots.tolist(),
    }


def read(text: str, on: Slots, source: str) -> Order:
    """Return the order that a JSON document holds.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    said = _document(text, source)
    _same_nodes(said, on, source)
    slots = _slots(said, source)
    found = broken(slots, len(on))
    if found is None:
        return Order(slots, on, str(said.get("strategy", "")), str(said.get("pattern", "")))
    if len(slots) != len(on):
        raise BrokenOrderError(source, 0, f"{len(slots)} ranks for {len(on)} slots")
    if found.kind == "outside":
        raise BrokenOrderError(
            source, 0, f"rank {found.at} has slot {found.value}, not one of 0 to {len(on) - 1}"
        )
    raise BrokenOrderError(
        source, 0, f"ranks {found.first} and {found.at} both have slot {found.value}"
    )


def _document(text: str, source: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParseError(source, error.lineno, f"no JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise ParseError(source, 0, "no JSON of an order") from None
    if not isinstance(document, dict) or "slots" not in document:
        raise ParseError(source, 0, "no order: the key 'slots' is missing")
    schema = document.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise ParseError(source, 0, f"schema '{printable(str(schema), 30)}' is not {SCHEMA}")
    return document


def _same_nodes(document: dict[str, Any], on: Slots, source: str) -> None:
    """Refuse an order that was made for other nodes, another order of them, or other counts."""
    mine = {"nodes": on.names.tolist(), "counts": on.counts.tolist()}
    for key, expected in mine.items():
        if key in document and document[key] != expected:
            raise ParseError(source, 0, f"its {key} are not those of this job, in this order")


def _slots(document: dict[str, Any], source: str) -> NDArray[np.int64]:
    values = document["slots"]
    fine = isinstance(values, list) and all(type(v) is int and abs(v) < 1 << 62 for v in values)
    if not fine:
        raise ParseError(source, 0, "'slots' is no list of whole numbers")
    return np.array(values, dtype=np.int64)
