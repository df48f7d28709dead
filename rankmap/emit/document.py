"""Format ``json``: the order with its nodes, for programs.

One object with the keys ``schema``, ``strategy``, ``pattern``, ``ranks``,
``nodelist`` (folded, in slot order), ``nodes``, ``counts`` (slots of each
node) and ``slots`` (entry r: the slot of rank r); where orders were compared,
also ``optimised``: by what (``time`` or ``J``), with its figures and the default's.
It says its nodes itself, so it is read for them in any order.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from placement.errors import ParseError
from placement.nodelist import NodeList
from placement.support.array_types import Ints
from rankmap.emit.text import refuse_broken
from rankmap.permutation import inverse
from rankmap.placement import Origin, Placement

__all__ = ["SCHEMA", "document", "read", "write"]

SCHEMA = "nidmap.order/1"


def write(order: Placement, **more: Any) -> str:
    """Return the order as a JSON object, a key a line, `more` behind its own."""
    fields = {**document(order), **more}
    # Whole arrays on one line: indented, a million ranks would be a million lines.
    body = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in fields.items())
    return f"{{\n{body}\n}}\n"


def document(order: Placement) -> dict[str, Any]:
    """Return the order as the document ``nidmap.order/1``."""
    names = order.names.tolist()
    chosen = {} if order.origin.optimised is None else {"optimised": order.origin.optimised}
    return {
        "schema": SCHEMA,
        "strategy": order.origin.strategy,
        "pattern": order.origin.pattern,
        "ranks": order.ranks,
        "nodelist": NodeList(names).fold(),
        "nodes": names,
        "counts": order.counts.tolist(),
        "slots": order.slot_of_rank.tolist(),
        **chosen,
    }


def read(text: str, placement: Placement, source: str) -> Placement:
    """Return the order that a JSON document holds.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    fields = _document(text, source)
    positions = _positions(fields, placement, source)
    values = fields["slots"]
    if not isinstance(values, list) or any(type(v) is not int or abs(v) >= 1 << 62 for v in values):
        raise ParseError(source, 0, "'slots' is not a list of whole numbers")
    slots = np.array(values, dtype=np.int64)
    refuse_broken(slots, placement.ranks, lambda at: 0, source, what="slot")
    origin = Origin(str(fields.get("strategy", "")), str(fields.get("pattern", "")))
    return placement.take(positions).with_order(slots, origin).renumbered(inverse(positions))


def _positions(fields: dict[str, Any], placement: Placement, source: str) -> Ints:
    """Return where each of the document's nodes stands among the job's, int64 (n,).

    Raises
    ------
    ParseError
        Other nodes, or other ranks on them.
    """
    names = placement.names.tolist()
    nodes = fields.get("nodes", names)
    place = {name: k for k, name in enumerate(names)}
    if not isinstance(nodes, list) or sorted(map(str, nodes)) != sorted(names):
        raise ParseError(source, 0, "its nodes are not those of this job")
    positions = np.array([place[name] for name in nodes], dtype=np.int64)
    counts = placement.counts[positions].tolist()
    if fields.get("counts", counts) != counts:
        raise ParseError(source, 0, "its counts are not those of this job")
    return positions


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
        raise ParseError(source, 0, f"schema '{schema}' is not {SCHEMA}")
    return document
