"""Rankfile for Open MPI's ``--map-by rankfile:file=F``: ``rank 0=nid00100 slot=0``.

A slot is a core of the node (its logical number), to which the rank is bound;
rank r at place p of its node gets core p, with several cores a rank the cores
p·c to p·c+c-1. Checked on Open MPI 5.0.11, which refuses a core that the node
does not have and wants the nodes in its allocation or host file besides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, printable
from rankmap.emit.hosts import levelled
from rankmap.emit.text import BrokenOrderError, without_comments
from rankmap.order import Order
from rankmap.permutation import broken

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankmap.slots import Slots

__all__ = ["read", "write"]

_LINE = re.compile(r"rank\s+([0-9]{1,9})\s*=\s*(\S+?)(?:\s+slots?\s*=\s*(\S+))?", re.ASCII)
_SLOT = re.compile(r"(?:([0-9]{1,9}):)?([0-9]{1,9})(?:[-,][0-9,;:-]*)?", re.ASCII)
_RELATIVE = re.compile(r"\+n([0-9]{1,9})", re.ASCII | re.IGNORECASE)

#: Rank, host, (socket, core) or None where no slot is given, line.
_Row = tuple[int, str, tuple[int, int] | None, int]


def write(order: Order, cores: int = 1) -> str:
    """Return one line a rank, in rank order.

    Parameters
    ----------
    order : Order
    cores : int
        Cores of each rank.
    """
    place = (order.slots - order.on.first[order.node]) * cores
    rows = enumerate(zip(order.hosts.tolist(), place.tolist(), strict=True))
    if cores == 1:
        return "".join(f"rank {r}={host} slot={p}\n" for r, (host, p) in rows)
    return "".join(f"rank {r}={host} slot={p}-{p + cores - 1}\n" for r, (host, p) in rows)


def read(text: str, on: Slots, source: str) -> Order:
    """Return the order that a rankfile holds.

    The ranks of a node stand in the order of the first core of each, or by
    rank where no slots are given. Lines may be in any order; hosts may be
    relative (``+n0`` is the first node of the job).

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    lines = enumerate(without_comments(text).split("\n"), start=1)
    rows = [_row(line.strip(), number, on, source) for number, line in lines if line.strip()]
    ranks = np.array([row[0] for row in rows], dtype=np.int64)
    _refuse_broken(ranks, rows, len(on), source)
    by_rank = sorted(rows)
    node = _nodes(by_rank, on, source)
    without = [row for row in rows if row[2] is None]
    if len(without) == len(rows):
        return levelled(node, on)
    if without:
        raise ParseError(source, without[0][3], f"rank {without[0][0]} has no slot, others have")
    return _by_core(by_rank, node, on, source)


def _row(line: str, number: int, on: Slots, source: str) -> _Row:
    match = _LINE.fullmatch(line)
    slot = match and match[3] and _SLOT.fullmatch(match[3])
    if not match or (match[3] and not slot):
        wanted = "rank R=HOST slot=CORE"
        raise ParseError(source, number, f"'{printable(line, 50)}' is not {wanted}")
    host = match[2]
    relative = _RELATIVE.fullmatch(host)
    if relative and int(relative[1]) < len(on.names):
        host = str(on.names[int(relative[1])])
    core = (int(slot[1] or 0), int(slot[2])) if slot else None
    return int(match[1]), host, core, number


def _refuse_broken(ranks: NDArray[np.int64], rows: list[_Row], n: int, source: str) -> None:
    found = broken(ranks, n)
    if found is None:
        return
    if found.kind == "missing":
        more = f" and {found.count - 1} more" if found.count > 1 else ""
        line = rows[-1][3] if rows else 1
        text = f"{len(ranks)} ranks for {n} slots: rank {found.value}{more} missing"
        raise BrokenOrderError(source, line, text, "the file is cut short, or for another job")
    line = rows[found.at][3]
    if found.kind == "outside":
        raise BrokenOrderError(source, line, f"rank {found.value} is not one of 0 to {n - 1}")
    first = rows[found.first][3]
    raise BrokenOrderError(source, line, f"rank {found.value} stands twice, first on line {first}")


def _nodes(by_rank: list[_Row], on: Slots, source: str) -> NDArray[np.int64]:
    """Return the node of each rank; refuse hosts that are not the job's, or get too many."""
    index = {name: k for k, name in enumerate(on.names.tolist())}
    left = on.counts.tolist()
    for _, host, _, line in sorted(by_rank, key=lambda row: row[3]):
        at = index.get(host)
        if at is None:
            known = f"one of the job's {len(on.counts)} nodes"
            raise ParseError(source, line, f"'{printable(host, 40)}' is not {known}")
        left[at] -= 1
        if left[at] < 0:
            have = int(on.counts[at])
            raise BrokenOrderError(source, line, f"{host} gets more ranks than its {have} slots")
    return np.array([index[row[1]] for row in by_rank], dtype=np.int64)


def _by_core(by_rank: list[_Row], node: NDArray[np.int64], on: Slots, source: str) -> Order:
    """Return the order in which a node's ranks stand as their cores do."""
    cores = [row[2] or (0, 0) for row in by_rank]
    socket = np.array([core[0] for core in cores], dtype=np.int64)
    core = np.array([core[1] for core in cores], dtype=np.int64)
    ranks = np.lexsort((core, socket, node))
    same = (np.diff(node[ranks]) == 0) & (np.diff(socket[ranks]) == 0) & (np.diff(core[ranks]) == 0)
    if same.any():
        at = int(np.argmax(same))
        one, other = sorted((int(ranks[at]), int(ranks[at + 1])))
        line = by_rank[other][3]
        raise BrokenOrderError(source, line, f"ranks {one} and {other} both begin on one core")
    slots = np.empty(len(node), dtype=np.int64)
    slots[ranks] = np.arange(len(node))
    return Order(slots, on)
