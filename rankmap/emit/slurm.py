"""Host file for SLURM_HOSTFILE (srun's arbitrary distribution): one host a line, in rank order.

It names a node for every rank and says nothing of the place inside it, so
what is read back has each node's ranks in ascending places.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, printable
from rankmap.emit.text import BrokenOrderError, without_comments
from rankmap.order import Order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankmap.slots import Slots

__all__ = ["read", "write"]

#: What a list of plain names does not have.
_FOLDED = re.compile(r"[\[*:=]")


def write(order: Order) -> str:
    """Return one host a line: line r is the node of rank r."""
    hosts = list(map(order.on.names.tolist().__getitem__, order.node.tolist()))
    return "\n".join(hosts) + "\n"


def read(text: str, on: Slots, source: str) -> Order:
    """Return the order that a host file holds.

    Entries may be split by newline, comma or space, be folded
    (``nid[00045,00012]``) and repeat (``nid00045*3``), as srun reads them.

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    hosts = _hosts(text, len(on), source)
    index = {name: k for k, name in enumerate(on.names.tolist())}
    found = list(map(index.get, hosts))
    if None in found:
        at = found.index(None)
        raise ParseError(
            source,
            _line_of(text, at, source),
            f"'{printable(hosts[at], 40)}' is not one of the job's {len(on.counts)} nodes",
        )
    node = np.array(found, dtype=np.int64)
    _right_counts(node, on, text, source)
    ranks = np.argsort(node, kind="stable")
    slots = np.empty(len(on), dtype=np.int64)
    slots[ranks] = np.arange(len(on))
    return Order(slots, on)


def _hosts(text: str, n: int, source: str) -> list[str]:
    """Return the host of each rank; plain lists, the usual ones, without the slow parser."""
    bare = without_comments(text)
    if not _FOLDED.search(bare):
        return bare.replace(",", " ").split()
    from placement.nodelist import NodeList

    hosts = list(NodeList.parse(bare, source))
    if len(hosts) > n:
        raise BrokenOrderError(
            source, _line_of(text, n, source), f"{len(hosts)} ranks for {n} slots"
        )
    return hosts


def _right_counts(node: NDArray[np.int64], on: Slots, text: str, source: str) -> None:
    """Refuse a node that gets more or fewer ranks than it has slots."""
    have = np.bincount(node, minlength=len(on.counts))
    over = np.flatnonzero(have > on.counts)
    if len(over):
        full = int(over[0])
        at = int(np.flatnonzero(node == full)[int(on.counts[full])])
        raise BrokenOrderError(
            source,
            _line_of(text, at, source),
            f"{on.names[full]} gets {have[full]} ranks and has {on.counts[full]} slots",
        )
    short = np.flatnonzero(have < on.counts)
    if len(short):
        first = int(short[0])
        raise BrokenOrderError(
            source,
            _line_of(text, len(node), source),
            f"{len(node)} ranks for {len(on)} slots: "
            f"{on.names[first]} gets {have[first]} ranks and has {on.counts[first]} slots",
            "the file is cut short, or for another number of ranks",
        )


def _line_of(text: str, index: int, source: str) -> int:
    """Return the line on which the entry at `index` stands; the last where there is none."""
    from placement.nodelist import NodeList

    seen = 0
    lines = without_comments(text).split("\n")
    for number, line in enumerate(lines, start=1):
        folded = _FOLDED.search(line)
        words = line.replace(",", " ").split()
        seen += NodeList.length_of(line, source) if folded else len(words)
        if seen > index:
            return number
    return len(lines) - (len(lines) > 1 and not lines[-1])
