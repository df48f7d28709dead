# SPDX-License-Identifier: Apache-2.0
"""Format ``json``: the order with its nodes, for programs.

One object with the keys ``schema``, ``strategy``, ``pattern``, ``ranks``,
``nodelist`` (folded, in slot order), ``nodes``, ``counts`` (slots of each
node) and ``slots`` (entry r: the slot of rank r); where orders were compared,
also ``optimised``: by what (``time`` or ``J``), with its figures and the default's.
It says its nodes itself, so it is read for them in any order.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from nidmap.placement.errors import ParseError, schema_sentence
from nidmap.placement.nodelist import NodeList
from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Origin, Placement
from nidmap.rankmap.emit.text import refuse_broken

SCHEMA = "nidmap.order/1"


class OrderDocument(Struct):
    """The part of an order document that is read; other keys are for other programs."""

    slots: list[Annotated[int, Meta(gt=-(1 << 62), lt=1 << 62)]]
    schema: Literal["nidmap.order/1"] = "nidmap.order/1"
    nodes: list[str] | None = None
    counts: list[int] | None = None
    strategy: str = ""
    pattern: str = ""


def write(order: Placement, **more: Any) -> str:
    """Return the order as a JSON object, one key per line, followed by `more`."""
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
    """Return the order in a JSON document."""
    try:
        fields = msgspec.json.decode(text, type=OrderDocument)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ParseError(source, 0, f"not a JSON order: {schema_sentence(error)}") from None
    names = placement.names.tolist()
    nodes = names if fields.nodes is None else fields.nodes
    if sorted(nodes) != sorted(names):
        raise ParseError(source, 0, "its nodes are not those of this job")
    place = {name: k for k, name in enumerate(names)}
    positions = np.array([place[name] for name in nodes], dtype=np.int64)
    if fields.counts not in (None, placement.counts[positions].tolist()):
        raise ParseError(source, 0, "its counts are not those of this job")
    slots = np.array(fields.slots, dtype=np.int64)
    refuse_broken(slots, placement.ranks, lambda at: 0, source, what="slot")
    origin = Origin(fields.strategy, fields.pattern)
    return placement.take(positions).with_order(slots, origin).renumbered(inverse(positions))
