"""MPICH_RANK_ORDER: what Cray MPICH reads with MPICH_RANK_REORDER_METHOD=3.

Entry s is the rank at slot s, the slots being numbered over the launcher's
own node list. Native Slurm sorts that list whatever was asked for, so a file
made for the list as given puts ranks on the wrong nodes.
"""

from __future__ import annotations

import re

import numpy as np

from placement.nodelist import NodeList
from rankmap.emit.text import read_permutation
from rankmap.permutation import inverse
from rankmap.placement import Placement

#: Ranks on one line at most: whoever reads lines into a buffer shall not need a large one.
ENTRIES = 64

#: A node list in lines of 76 characters, split behind a comma where one is near.
_COLUMNS = re.compile(r".{1,75}(?:,|$)|.{1,76}")


def write(order: Placement) -> str:
    """Return the ranks in slot order, each node on a new line, below comments naming the nodes."""
    place = np.arange(order.ranks) - np.repeat(order.first_slot, order.counts)
    ends = place % ENTRIES == ENTRIES - 1
    ends[np.cumsum(order.counts) - 1] = True
    pieces = [""] * (2 * order.ranks)
    pieces[::2] = map(str, order.rank_at_slot.tolist())
    pieces[1::2] = np.where(ends, "\n", ",").tolist()
    nodes = NodeList(order.names.tolist()).fold()
    listed = "\n".join(f"# {line}" for line in _COLUMNS.findall(nodes))
    title = f"{order.origin.strategy or 'given'}" + (
        f" for {order.origin.pattern}" if order.origin.pattern else ""
    )
    return (
        f"# nidmap order: {title}\n"
        f"# {order.words()}, each on a new line, nodes in this order:\n"
        f"{listed}\n"
        "# read with MPICH_RANK_REORDER_METHOD=3\n"
    ) + "".join(pieces)


def read(text: str, placement: Placement, source: str) -> Placement:
    """Return the order that a MPICH_RANK_ORDER file holds; ranges such as ``0-15`` are read.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    return placement.with_order(inverse(read_permutation(text, placement.ranks, source)))
