"""Rankfile for Open MPI's ``--map-by rankfile:file=F``: ``rank 0=nid00100 slot=0``.

A slot is a core of the node (its logical number), to which the rank is bound; rank r at place p
of its node gets core p, or those that its place has (`rankmap.binding`). Checked on Open MPI
5.0.11, which refuses a core that the node does not have and wants the nodes in its allocation or
host file besides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from placement.errors import ParseError
from rankmap.emit.hosts import nodes_of
from rankmap.emit.text import BrokenOrderError, numbered_lines, refuse_broken
from rankmap.permutation import inverse
from rankmap.placement import Placement

_LINE = re.compile(r"rank\s+([0-9]{1,9})\s*=\s*(\S+?)(?:\s+slots?\s*=\s*(\S+))?", re.ASCII)
_SLOT = re.compile(r"(?:([0-9]{1,9}):)?([0-9]{1,9})(?:[-,][0-9,;:-]*)?", re.ASCII)
_RELATIVE = re.compile(r"\+n([0-9]{1,9})", re.ASCII | re.IGNORECASE)


class _RankfileLine(NamedTuple):
    """One line: socket and core are -1 where no slot is given."""

    rank: int
    host: str
    socket: int
    core: int
    line: int


def write(order: Placement, places: Mapping[int, Sequence[Sequence[int]]] | None = None) -> str:
    """Return one line a rank, in rank order.

    Parameters
    ----------
    order : Placement
    places : mapping of int to sequence of sequence of int, or None
        The cores of each place of a node by their logical numbers, by the node's count of
        ranks; None: one each.
    """
    at = (order.slot_of_rank - order.first_slot[order.node_of_rank]).tolist()
    slots = at
    if places:
        counts = order.counts[order.node_of_rank].tolist()
        slots = [",".join(map(str, places[n][p])) for n, p in zip(counts, at, strict=True)]
    rows = enumerate(zip(order.host_of_rank.tolist(), slots, strict=True))
    return "".join(f"rank {r}={host} slot={slot}\n" for r, (host, slot) in rows)


def read(text: str, placement: Placement, source: str) -> Placement:
    """Return the order that a rankfile holds.

    The ranks of a node stand in the order of the first core of each, or by
    rank where no slots are given. Lines may be in any order; hosts may be
    relative (``+n0`` is the first node of the job).

    Raises
    ------
    ParseError, BrokenOrderError
        See `rankmap.emit.read_order`.
    """
    rows = [_parse_row(line, number, placement, source) for number, line in numbered_lines(text)]
    ranks = np.array([row.rank for row in rows], dtype=np.int64)
    lines = [*(row.line for row in rows), *(row.line for row in rows[-1:]), 1]
    refuse_broken(ranks, placement.ranks, lines.__getitem__, source)
    rows.sort()
    hosts = [row.host for row in rows]
    node = nodes_of(hosts, [1] * len(rows), lambda at: rows[at].line, placement, source)
    without = [row for row in rows if row.core < 0]
    if len(without) == len(rows):
        return placement.with_ranks_on(node)
    if without:
        fault = f"rank {without[0].rank} has no slot, others have"
        raise ParseError(source, without[0].line, fault)
    where = np.array([(row.core, row.socket, at) for row, at in zip(rows, node, strict=True)]).T
    by_core = np.lexsort(where)
    same = (np.diff(where[:, by_core]) == 0).all(axis=0)
    if same.any():
        first, second = sorted(by_core[int(np.argmax(same)) :][:2].tolist())
        fault = f"ranks {first} and {second} both begin on one core"
        raise BrokenOrderError(source, rows[second].line, fault)
    return placement.with_order(inverse(by_core))


def _parse_row(line: str, number: int, placement: Placement, source: str) -> _RankfileLine:
    match = _LINE.fullmatch(line)
    slot = match and match[3] and _SLOT.fullmatch(match[3])
    if not match or (match[3] and not slot):
        wanted = "rank R=HOST slot=CORE"
        raise ParseError(source, number, f"'{line[:50]}' is not {wanted}")
    host = match[2]
    relative = _RELATIVE.fullmatch(host)
    if relative and int(relative[1]) < len(placement.names):
        host = str(placement.names[int(relative[1])])
    socket, core = (int(slot[1] or 0), int(slot[2])) if slot else (-1, -1)
    return _RankfileLine(int(match[1]), host, socket, core, number)
