"""What the formats that name a node for every rank have in common.

They say nothing of the place inside a node: read back, the ranks of a node
stand in ascending places (`rankmap.order.Order.levelled`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, printable
from rankmap.emit.text import BrokenOrderError, without_comments
from rankmap.order import Order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rankmap.slots import Slots

__all__ = ["Run", "from_runs", "host_counts", "runs", "write_counts"]

#: Host, ranks in a row there, line of the file.
Run = tuple[str, int, int]

_ENTRY = re.compile(r"([^\s:#]+)(?::([0-9]{1,9}))?(?:\s.*)?", re.ASCII)


def runs(order: Order) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Return the host and the length of each run of consecutive ranks on one node.

    Examples
    --------
    >>> from rankmap.slots import Slots
    >>> on = Slots(np.array(["nid00003", "nid00009"]), np.array([2, 1]))
    >>> hosts, many = runs(Order(np.array([0, 2, 1]), on))
    >>> hosts.tolist(), many.tolist()
    (['nid00003', 'nid00009', 'nid00003'], [1, 1, 1])
    """
    node = order.node
    first = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
    return order.on.names[node[first]], np.diff(np.append(first, len(node)))


def write_counts(order: Order) -> str:
    """Return ``host:count`` for each run of consecutive ranks, one a line."""
    hosts, many = runs(order)
    pairs = zip(hosts.tolist(), many.tolist(), strict=True)
    return "".join(f"{host}:{count}\n" for host, count in pairs)


def host_counts(text: str, source: str) -> list[Run]:
    """Return the runs of a text of ``host`` or ``host:count``, one a line; ``#`` begins a comment.

    Raises
    ------
    ParseError
        A line that is neither.
    """
    return [_entry(line, number, source) for number, line in _lines(text)]


def from_runs(found: list[Run], on: Slots, source: str) -> Order:
    """Return the order that puts the ranks on these nodes, in this sequence.

    Raises
    ------
    ParseError
        A node that is not one of `on`.
    BrokenOrderError
        A node that gets more or fewer ranks than it has slots.
    """
    index = {name: k for k, name in enumerate(on.names.tolist())}
    left = on.counts.tolist()
    nodes, many = [], []
    for host, count, line in found:
        at = index.get(host)
        if at is None:
            known = f"one of the job's {len(on.counts)} nodes"
            raise ParseError(source, line, f"'{printable(host, 40)}' is not {known}")
        left[at] -= count
        if left[at] < 0:
            have = int(on.counts[at])
            got = f"{host} gets {have - left[at]} ranks and has {have} slots"
            raise BrokenOrderError(source, line, got)
        nodes.append(at)
        many.append(count)
    _refuse_short(left, found, on, source)
    return levelled(np.repeat(np.array(nodes, dtype=np.int64), many), on)


def levelled(node: NDArray[np.int64], on: Slots) -> Order:
    """Return the order with rank r on node ``node[r]``, ascending within each node."""
    slots = np.empty(len(node), dtype=np.int64)
    slots[np.argsort(node, kind="stable")] = np.arange(len(node))
    return Order(slots, on)


def _refuse_short(left: list[int], found: list[Run], on: Slots, source: str) -> None:
    """Refuse a node that gets fewer ranks than it has slots."""
    short = next((k for k, many in enumerate(left) if many), None)
    if short is None:
        return
    total, has = len(on) - sum(left), int(on.counts[short])
    raise BrokenOrderError(
        source,
        found[-1][2] if found else 1,
        f"{total} ranks for {len(on)} slots: "
        f"{on.names[short]} gets {has - left[short]} ranks and has {has} slots",
        "the file is cut short, or for another number of ranks",
    )


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold something, with their numbers."""
    for number, line in enumerate(without_comments(text).split("\n"), start=1):
        if line.strip():
            yield number, line.strip()


def _entry(line: str, number: int, source: str) -> Run:
    match = _ENTRY.fullmatch(line)
    if not match:
        raise ParseError(source, number, f"'{printable(line, 40)}' is no host or host:count")
    return match[1], int(match[2] or 1), number
