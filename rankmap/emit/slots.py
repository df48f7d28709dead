"""Format ``slots``: line r holds the slot of rank r, nothing else.

Slots are numbered node by node over the list as given (`rankmap.slots`). The
``mpich`` format holds the inverse and looks alike; neither is ever guessed.
"""

from __future__ import annotations

from placement.errors import ParseError
from rankmap.emit.text import permutation, without_comments
from rankmap.order import Order
from rankmap.slots import Slots

__all__ = ["read", "write"]


def write(order: Order) -> str:
    """Return one slot a line, in rank order."""
    return "\n".join(map(str, order.slots.tolist())) + "\n"


def read(text: str, on: Slots, source: str) -> Order:
    """Return the order that a file of slots holds.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    for number, line in enumerate(without_comments(text).split("\n"), start=1):
        if "," in line or len(line.split(None, 1)) > 1 or "-" in line.strip()[1:]:
            hint = "is this --format mpich?"
            raise ParseError(source, number, "more than one slot on a line", hint)
    return Order(permutation(text, len(on), source, what="slot"), on)
