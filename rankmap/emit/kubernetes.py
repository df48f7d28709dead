"""Format ``kubernetes``: node names with their ranks, JSON for what writes pods.

One object: ``schema``, and ``nodes``, in the order of their slots, each with its ``name``,
``nodeSelector`` and ``ranks``; the k-th of these is at its k-th place.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from placement.errors import ParseError, printable
from rankmap.emit.hosts import nodes_of
from rankmap.emit.text import refuse_broken
from rankmap.order import Order
from rankmap.permutation import inverse
from rankmap.slots import Slots

__all__ = ["SCHEMA", "read", "write"]

SCHEMA = "nidmap.kubernetes/1"


def write(order: Order) -> str:
    """Return each node with its ranks, a node a line."""
    ends = np.cumsum(order.on.counts)[:-1]
    rows = zip(order.on.names.tolist(), np.split(order.ranks, ends), strict=True)
    lines = [
        json.dumps({
            "name": name,
            "nodeSelector": {"kubernetes.io/hostname": name},
            "ranks": ranks.tolist(),
        })
        for name, ranks in rows
    ]  # fmt: skip
    return f'{{"schema": "{SCHEMA}", "nodes": [\n' + ",\n".join(lines) + "\n]}\n"


def read(text: str, on: Slots, source: str) -> Order:
    """Return the order that such a document holds.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    names, ranks = _lists(text, source)
    many = [len(some) for some in ranks]
    flat = np.array([rank for some in ranks for rank in some], dtype=np.int64)
    refuse_broken(flat, len(on), lambda at: 0, source)
    by_line = nodes_of(names, many, lambda at: 0, on, source)
    sequence = np.argsort(by_line, kind="stable")
    return Order(inverse(flat[sequence]), on)


def _lists(text: str, source: str) -> tuple[list[str], list[list[int]]]:
    """Return the nodes' names and ranks as they stand there."""
    try:
        nodes: Any = json.loads(text)["nodes"]
        names, ranks = [node["name"] for node in nodes], [node["ranks"] for node in nodes]
    except json.JSONDecodeError as error:
        raise ParseError(source, error.lineno, f"no JSON: {error.msg}") from None
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ParseError(source, 0, "no JSON of nodes with their names and ranks") from None
    for name, some in zip(names, ranks, strict=True):
        whole = isinstance(some, list) and all(type(r) is int and abs(r) < 1 << 62 for r in some)
        if not isinstance(name, str) or not whole:
            raise ParseError(source, 0, f"'{printable(str(name), 40)}' has no list of ranks")
    return names, ranks
