# SPDX-License-Identifier: Apache-2.0
"""Node tables built from dumps: which values are known, and which rows are the same node.

Rows are the same node by NID where both sides have NIDs (``nid00045`` is one), else by cname,
else by name; two dumps that disagree on who a node is are refused, the later one at its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nidmap.placement.errors import ParseError, at_line
from nidmap.placement.lookup import find_hosts, find_rows
from nidmap.placement.names import name_numbers
from nidmap.placement.records import Dump, Finding, NodeRecords
from nidmap.placement.support.array_types import Array, Ints, Mask

#: Columns of every table, and their values for unknown.
_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("name", "cname", "role", "state", "mode", "router", "features"), ""),
    **dict.fromkeys(("sockets", "cores", "memory_mb", "nics", "gpus"), 0),
    "planned": False,
}
#: All columns and their values for unknown.
UNKNOWN = _COLUMNS | {"nid": -1, "coords": -1, "position": -1, "weight": 0}

KEYS = {"nid": "NID", "cname": "cname", "name": "name"}


@dataclass(slots=True, eq=False)
class Table:
    """One row per node, every column known or marked unknown."""

    source: Ints  # (n,), which of `sources` named the node first
    line: Ints  # (n,), its line there
    # ``nid`` (-1 unknown), words ('' unknown), numbers (0 unknown), ``planned``, ``row`` (in the
    # first dump), and, where some dump has them, ``coords`` (n, 3), ``position`` (n, levels; -1
    # unknown) and ``weight``
    columns: dict[str, Array]
    sources: list[str]
    notes: list[str]  # remarks on what was left out

    def __len__(self) -> int:
        return len(self.line)

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    @classmethod
    def of(cls, dump: Dump) -> Table:
        """Return the table of a single dump that lists nodes."""
        assert dump.nodes is not None
        line = dump.nodes.line.astype(np.int64)
        return cls(np.zeros_like(line), line, _all_columns(dump.nodes), [dump.source], [])

    def has(self, name: str) -> bool:
        """Tell whether the column is known in any row."""
        return name in self.columns and bool(is_known(name, self.columns[name]).any())

    def known(self, name: str) -> Mask:
        """Return the mask of the rows in which the column is known."""
        if name not in self.columns:
            return np.zeros(len(self), dtype=np.bool_)
        return is_known(name, self.columns[name])

    def where(self, row: int) -> tuple[str, int]:
        """Return the source and line of a row."""
        return self.sources[self.source[row]], int(self.line[row])

    def finding(self, row: int, kind: str, text: str, hint: str = "") -> Finding:
        """Return a fault found in one row."""
        source, line = self.where(row)
        return Finding(line, kind, text, hint, source=source)

    def error(self, row: int, text: str, hint: str = "") -> ParseError:
        """Return the error caused by one row."""
        return self.finding(row, "", text, hint).error()

    def called(self, row: int) -> str:
        """Return the best available name of a row for a message."""
        for name in ("cname", "name"):
            if self.columns[name][row]:
                return str(self.columns[name][row])
        return f"NID {self.columns['nid'][row]}"

    def take(self, rows: Ints) -> Table:
        """Return the table with these rows in this order."""
        kept = {name: column[rows] for name, column in self.columns.items()}
        return Table(self.source[rows], self.line[rows], kept, self.sources, self.notes)

    def in_nid_order(self) -> Table:
        """Return the rows in NID order; missing NIDs are derived from names or places."""
        if not self.has("nid"):
            self.columns["nid"] = self._numbers()
        nid = self["nid"]
        return self if (np.diff(nid) >= 0).all() else self.take(np.argsort(nid, kind="stable"))

    def _numbers(self) -> Ints:
        """Return the trailing numbers of the names if they are all distinct, else the index."""
        prefixes, numbers, _ = name_numbers(self["name"])
        alike = len(np.unique(prefixes)) == 1 and bool((numbers >= 0).all())
        distinct = len(np.unique(numbers)) == len(numbers)
        return numbers if alike and distinct else np.arange(len(self), dtype=np.int64)


def is_known(name: str, column: Array) -> Mask:
    """Return the mask of the values that are not marked unknown."""
    if name in ("planned", "weight"):
        return np.ones(len(column), dtype=np.bool_)
    known = np.asarray(column != "" if column.dtype.kind == "U" else column > UNKNOWN[name])
    return known if known.ndim == 1 else np.asarray(known.all(axis=1))


def _all_columns(records: NodeRecords) -> dict[str, Array]:
    """Return all columns of a dump, those it lacks marked unknown."""
    columns: dict[str, Array] = {}
    for name, unknown in _COLUMNS.items():
        listed = getattr(records, name)
        filled = np.full(len(records), unknown) if listed is None else listed
        columns[name] = np.asarray(filled, dtype=type(unknown))
    columns["nid"] = _find_nids(records)
    more = {name: getattr(records, name) for name in ("coords", "position", "weight")}
    return columns | {name: column for name, column in more.items() if column is not None}


def _find_nids(records: NodeRecords) -> Ints:
    """Return the NIDs as given or as part of the name (``nid00045``); -1 for none."""
    nid = np.full(len(records), -1) if records.nid is None else records.nid.astype(np.int64)
    if records.name is None or (nid >= 0).all():
        return nid
    prefixes, numbers, _ = name_numbers(records.name)
    return np.where((nid < 0) & (prefixes == "nid"), numbers, nid)


def match_rows(table: Table, new: Table) -> tuple[str, Ints]:
    """Return the column to join by and, for each new row, its row in the table (-1: none).

    A new row that lacks that key (``gpu1`` among ``nid00001`` …) is joined by the next one.
    """
    joined = ""
    at = np.full(len(new), -1, dtype=np.int64)
    lacking = np.ones(len(at), dtype=np.bool_)
    for key in KEYS:
        known = new.known(key)
        have, want = np.flatnonzero(table.known(key)), np.flatnonzero(known & lacking)
        if key == "name":
            row = find_hosts(table[key][have], new[key][want], new.sources[0])
        else:
            row = find_rows(table[key][have], new[key][want])
        at[want[row >= 0]] = have[row[row >= 0]]
        if joined or (row >= 0).any():
            joined = joined or key
            lacking &= ~known
    if joined:
        return joined, at
    raise ParseError(
        new.sources[0],
        0,
        f"shares no node with {table.sources[0]}",
        f"it names nodes like {new.called(0)}, the other like {table.called(0)}",
    )


def refuse_other_nodes(table: Table, new: Table, at: Ints, key: str) -> None:
    """Refuse a dump with repeated nodes, or with NIDs or cnames that contradict the table."""
    rows = np.flatnonzero(at >= 0)
    first = np.unique(at[rows], return_index=True)[1]
    if len(first) < len(rows):
        row = int(np.delete(rows, first)[0])
        raise new.error(row, f"{new.called(row)} repeats the node of an earlier line")
    for other in [name for name in ("nid", "cname") if name != key]:
        both = table.known(other)[at[rows]] & new.known(other)[rows]
        wrong = rows[both & (table[other][at[rows]] != new[other][rows])]
        if len(wrong):
            row = int(wrong[0])
            before = int(at[row])
            raise new.error(
                row,
                f"{KEYS[key]} {new[key][row]} has {KEYS[other]} "
                f"{new[other][row]} here, but "
                f"{table[other][before]} in {at_line(*table.where(before))}",
                "are the dumps of the same machine?",
            )
