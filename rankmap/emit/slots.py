"""Format ``slots``: line r holds the slot of rank r, nothing else.

Slots are numbered node by node over the list as given (`rankmap.slots`). The
``mpich`` format holds the inverse and looks alike; neither is ever guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import ParseError
from rankmap.emit.text import BrokenOrderError, line_of, numbers, without_comments
from rankmap.order import Order
from rankmap.permutation import broken

if TYPE_CHECKING:
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
    n = len(on)
    _one_a_line(text, source)
    slots = numbers(text, n, source, what="slot")
    found = broken(slots, n)
    if found is None:
        return Order(slots, on)
    line = line_of(text, found.at)
    if found.kind == "outside":
        raise BrokenOrderError(
            source, line, f"rank {found.at} has slot {found.value}, not one of 0 to {n - 1}"
        )
    if found.kind == "twice":
        raise BrokenOrderError(
            source,
            line,
            f"ranks {found.first} and {found.at} both have slot {found.value}",
            f"rank {found.first} stands on line {line_of(text, found.first)}",
        )
    more = f" and {found.count - 1} more" if found.count > 1 else ""
    raise BrokenOrderError(
        source,
        line,
        f"{len(slots)} ranks for {n} slots: slot {found.value}{more} is left empty",
        "the file is cut short, or for another number of ranks",
    )


def _one_a_line(text: str, source: str) -> None:
    """Refuse a line with several numbers: that is another format."""
    for number, line in enumerate(without_comments(text).split("\n"), start=1):
        if "," in line or len(line.split(None, 1)) > 1 or "-" in line.strip()[1:]:
            raise ParseError(
                source, number, "more than one slot on a line", "is this --format mpich?"
            )
