"""Format ``slots``: line r holds the slot of rank r, nothing else.

Slots are numbered node by node over the list as given (`rankmap.placement`). The
``mpich`` format holds the inverse and looks alike; neither is ever guessed.
"""

from __future__ import annotations

from placement.errors import ParseError
from rankmap.emit.text import read_permutation, without_comments
from rankmap.placement import Placement


def write(order: Placement) -> str:
    """Return one slot a line, in rank order."""
    return "\n".join(map(str, order.slot_of_rank.tolist())) + "\n"


def read(text: str, placement: Placement, source: str) -> Placement:
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
    return placement.with_order(read_permutation(text, placement.ranks, source, what="slot"))
