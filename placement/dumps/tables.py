"""The node records of several dumps joined into one table, row by row the same node.

Dumps are joined by NID where both sides have NIDs (``nid00045`` is one), else
by cname, else by name. What a later dump says of a node replaces what an
earlier one said, but two dumps must not disagree on who a node is: then the
later one is refused, at its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import ParseError, place, printable
from placement.lookup import find_rows
from placement.readers import find
from placement.records import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.records import Dump, NodeRecords
    from placement.support.array_types import Array, Ints, Mask

__all__ = [
    "UNLISTED",
    "Table",
    "fill",
    "join",
    "match_rows",
    "refuse_other_nodes",
]

#: State of a node that Slurm does not list although it lists others.
UNLISTED = "unlisted"

#: What lists nodes is joined before what adds to them; of other kinds the order given counts.
_RANKS = {"site": 0, "inventory": 2, "topology": 3, "states": 4}

#: Columns that every table has, and what stands in them where nothing is known.
_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("name", "cname", "role", "state", "mode", "router", "features"), ""),
    **dict.fromkeys(("sockets", "cores", "memory_mb", "nics", "gpus"), 0),
    "planned": False,
}
#: The same of all columns.
_UNKNOWN = _COLUMNS | {"nid": -1, "coords": -1, "position": -1, "weight": 0}

_KEYS = {"nid": "NID", "cname": "cname", "name": "name"}


@dataclass(slots=True, eq=False)
class Table:
    """One row a node, every column known or marked unknown.

    Attributes
    ----------
    source : int64 (n,)
        Which of `sources` named the node first.
    line : int64 (n,)
        Its line there.
    columns : dict of str to array
        ``nid`` (-1 unknown), words ('' unknown), numbers (0 unknown),
        ``planned``, ``row`` (in the first dump), and, where some dump has
        them, ``coords`` (n, 3), ``position`` (n, levels; -1 unknown) and
        ``weight``.
    sources : list of str
    notes : list of str
        What was left out.
    """

    source: Ints
    line: Ints
    columns: dict[str, Array]
    sources: list[str]
    notes: list[str]

    def __len__(self) -> int:
        return len(self.line)

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    @classmethod
    def of(cls, dump: Dump) -> Table:
        """Return the table of one dump that has nodes."""
        assert dump.nodes is not None
        line = dump.nodes.line.astype(np.int64)
        return cls(np.zeros_like(line), line, _columns(dump.nodes), [dump.source], [])

    def has(self, name: str) -> bool:
        """Return True where some row knows the column."""
        return name in self.columns and bool(_is_known(name, self.columns[name]).any())

    def known(self, name: str) -> Mask:
        """Return the mask of the rows that know the column."""
        if name not in self.columns:
            return np.zeros(len(self), dtype=np.bool_)
        return _is_known(name, self.columns[name])

    def where(self, row: int) -> tuple[str, int]:
        """Return the source and line that a row comes from."""
        return self.sources[self.source[row]], int(self.line[row])

    def finding(self, row: int, kind: str, text: str, hint: str = "") -> Finding:
        """Return what is wrong with one row."""
        source, line = self.where(row)
        return Finding(line, kind, text, hint, source=source)

    def error(self, row: int, text: str, hint: str = "") -> ParseError:
        """Return the error that blames one row."""
        return self.finding(row, "", text, hint).error()

    def called(self, row: int) -> str:
        """Return the best name of a row for a message."""
        for name in ("cname", "name"):
            if self.columns[name][row]:
                return printable(str(self.columns[name][row]))
        return f"NID {self.columns['nid'][row]}"

    def take(self, rows: Ints) -> Table:
        """Return the table with these rows in this order."""
        kept = {name: column[rows] for name, column in self.columns.items()}
        return Table(self.source[rows], self.line[rows], kept, self.sources, self.notes)


def join(dumps: Sequence[Dump], *, as_given: bool = False) -> Table:
    """Join the nodes of all dumps.

    Parameters
    ----------
    dumps : sequence of Dump
        In any order: inventories come before topologies, and these before
        Slurm's states. Where a topology or an inventory is there, dumps that
        only list states bring no nodes of their own.
    as_given : bool
        Let the last of several inventories count most, not the one that says most.

    Returns
    -------
    Table

    Raises
    ------
    ParseError
        Where two dumps contradict one another, share no node, or none of
        them has nodes.
    """
    table: Table | None = None
    for dump in sorted(dumps, key=lambda d: 1 if as_given and _rank(d) == 2 else _rank(d)):
        if dump.nodes is None or not len(dump.nodes):
            continue
        if table is None and dump.lists_jobs:
            text = "says which nodes have jobs, not which there are"
            raise ParseError(dump.source, 0, text, "name the machine with -m as well")
        new = Table.of(dump)
        if table is None:
            table = new
            table.columns["row"] = np.arange(len(new))
        else:
            table = _add_dump(table, new, dump)
    if table is None:
        raise ParseError(
            dumps[0].source if dumps else "-", 0, "no node in it", "give a dump that lists nodes"
        )
    _refuse_twins(table)
    return table


def fill(table: Table, site: Dump) -> None:
    """Fill in what a site says of the nodes and no dump does: roles and what is in a node.

    Raises
    ------
    ParseError
        Where the site has none of the nodes.
    """
    new = Table.of(site)
    try:
        _, at = match_rows(table, new)
    except ParseError as error:
        text = f"none of its nodes is in {printable(site.source)}"
        raise ParseError(table.sources[0], 0, text, error.hint) from None
    found = at >= 0
    for name in ("role", "sockets", "cores", "memory_mb", "nics", "gpus", "features"):
        use = found & new.known(name)
        use[found] &= ~table.known(name)[at[found]]
        _overwrite(table, {name: new[name][use]}, at[use])


def _rank(dump: Dump) -> int:
    """Return where a dump stands among those joined: what lists nodes before what adds to them."""
    return _RANKS.get(find(dump.format).kind, 1) + dump.lists_jobs


def _is_known(name: str, column: Array) -> Mask:
    if name in ("planned", "weight"):
        return np.ones(len(column), dtype=np.bool_)
    known = np.asarray(column != "" if column.dtype.kind == "U" else column > _UNKNOWN[name])
    return known if known.ndim == 1 else np.asarray(known.all(axis=1))


def _columns(records: NodeRecords) -> dict[str, Array]:
    """Return all columns of a dump, those it lacks marked unknown."""
    found: dict[str, Array] = {}
    for name, unknown in _COLUMNS.items():
        given = getattr(records, name)
        made = np.full(len(records), unknown) if given is None else given
        found[name] = np.asarray(made, dtype=type(unknown))
    found["nid"] = _nids(records)
    more = {name: getattr(records, name) for name in ("coords", "position", "weight")}
    return found | {name: column for name, column in more.items() if column is not None}


def _nids(records: NodeRecords) -> Ints:
    """Return the NIDs as given or as the name says (``nid00045``), -1 for none."""
    given = np.full(len(records), -1) if records.nid is None else records.nid.astype(np.int64)
    if records.name is None or (given >= 0).all():
        return given
    from placement.names.columns import name_numbers

    prefixes, numbers, _ = name_numbers(records.name)
    return np.where((given < 0) & (prefixes == "nid"), numbers, given)


def _add_dump(table: Table, new: Table, dump: Dump) -> Table:
    """Return `table` with what the table of `dump` adds."""
    key, at = match_rows(table, new)
    refuse_other_nodes(table, new, at, key)
    if (at < 0).any():
        if find(dump.format).kind in ("states", "topology") or "position" in table.columns:
            rows = np.flatnonzero(at < 0).tolist()
            some = ", ".join(new.called(row) for row in rows[:3])
            more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
            source = printable(new.sources[0])
            note = f"left out, as nothing says where they are: {some}{more} of {source}"
            table.notes.append(note)
        else:
            table, at = _add_rows(table, new, at)
    found = at >= 0
    _overwrite(table, {name: c[found] for name, c in new.columns.items()}, at[found])
    if find(dump.format).kind == "states" and not dump.lists_jobs:
        _mark_unlisted(table, at[found])
    return table


def match_rows(table: Table, new: Table) -> tuple[str, Ints]:
    """Return the key that joins and, for each new row, its row in the table (-1: none).

    A new row that lacks that key (``gpu1`` among ``nid00001`` …) is joined by the next one.

    Raises
    ------
    ParseError
        Where the two share no node.
    """
    joined = ""
    at = np.full(len(new), -1, dtype=np.int64)
    lacking = np.ones(len(at), dtype=np.bool_)
    for key in _KEYS:
        known = new.known(key)
        have, want = np.flatnonzero(table.known(key)), np.flatnonzero(known & lacking)
        found = find_rows(table[key][have], new[key][want])
        at[want[found >= 0]] = have[found[found >= 0]]
        if joined or (found >= 0).any():
            joined = joined or key
            lacking &= ~known
    if joined:
        return joined, at
    raise ParseError(
        new.sources[0],
        0,
        f"shares no node with {printable(table.sources[0])}",
        f"it names nodes like {new.called(0)}, the other like {table.called(0)}",
    )


def refuse_other_nodes(table: Table, new: Table, at: Ints, key: str) -> None:
    """Refuse a dump whose nodes are not those they are joined with.

    Raises
    ------
    ParseError
        Where a joined row has another NID or cname than it had, or two rows are one.
    """
    rows = np.flatnonzero(at >= 0)
    first = np.unique(at[rows], return_index=True)[1]
    if len(first) < len(rows):
        row = int(np.delete(rows, first)[0])
        raise new.error(row, f"{new.called(row)} is the same node as an earlier line's")
    for other in [name for name in ("nid", "cname") if name != key]:
        both = table.known(other)[at[rows]] & new.known(other)[rows]
        wrong = rows[both & (table[other][at[rows]] != new[other][rows])]
        if len(wrong):
            row = int(wrong[0])
            before = int(at[row])
            raise new.error(
                row,
                f"{_KEYS[key]} {printable(str(new[key][row]))} has {_KEYS[other]} "
                f"{printable(str(new[other][row]))} here, but "
                f"{printable(str(table[other][before]))} in {place(*table.where(before))}",
                "are the dumps of the same machine?",
            )


def _add_rows(table: Table, new: Table, at: Ints) -> tuple[Table, Ints]:
    """Return the table with empty rows for the nodes that only `new` has, and their places."""
    missing = np.flatnonzero(at < 0)
    sources = [*table.sources, *new.sources]
    source = np.append(table.source, np.full(len(missing), len(table.sources)))
    line = np.append(table.line, new.line[missing])
    columns = {}
    for name, column in table.columns.items():
        rows = np.full((len(missing), *column.shape[1:]), _UNKNOWN.get(name, 0), column.dtype)
        columns[name] = np.concatenate([column, rows])
    at = at.copy()
    at[missing] = len(table) + np.arange(len(missing))
    return Table(source, line, columns, sources, table.notes), at


def _overwrite(table: Table, new: dict[str, Array], at: Ints) -> None:
    """Put what is known of the rows `at` into the table."""
    for name, values in new.items():
        known = _is_known(name, values)
        if not known.any():
            continue
        if name not in table.columns:
            shape = (len(table), *values.shape[1:])
            table.columns[name] = np.full(shape, _UNKNOWN[name], dtype=values.dtype)
        column = table.columns[name]
        wider = column.dtype.kind == "U" and column.dtype.itemsize < values.dtype.itemsize
        column = column.astype(values.dtype if wider else column.dtype)  # a copy: dumps stay
        column[at[known]] = values[known]
        table.columns[name] = column


def _mark_unlisted(table: Table, listed: Ints) -> None:
    """Mark compute nodes that Slurm does not list: no job can have them."""
    mask = table["role"] != "service"
    mask[listed] = False
    if mask.any():
        table.columns["state"] = np.where(mask, UNLISTED, table["state"])
        table.notes.append(f"{int(mask.sum())} compute nodes are not listed by Slurm: not free")


def _refuse_twins(table: Table) -> None:
    """Raise where two rows of different dumps have the same NID, cname or name."""
    if len(table.sources) == 1:
        return
    for key, word in _KEYS.items():
        rows = np.flatnonzero(table.known(key))
        order = rows[np.argsort(table[key][rows], kind="stable")]
        same = np.flatnonzero(table[key][order][1:] == table[key][order][:-1])
        if len(same):
            row = int(order[same[0] + 1])
            where = place(*table.where(int(order[same[0]])))
            raise table.error(
                row, f"{word} {printable(str(table[key][row]))} is another node's in {where}"
            )
