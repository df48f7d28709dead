"""The node records of several dumps joined into one table, row by row the same node.

Dumps are joined by NID where both sides have NIDs (``nid00045`` is one), else
by cname, else by name. What a later dump says of a node replaces what an
earlier one said, but two dumps must not disagree on who a node is: then the
later one is refused, at its line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import ParseError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from placement.records import Dump, NodeRecords

__all__ = [
    "INVENTORY",
    "STATES_ONLY",
    "UNLISTED",
    "Table",
    "fill",
    "join",
    "match_rows",
    "refuse_other_nodes",
]

#: State of a node that Slurm does not list although it lists others.
UNLISTED = "unlisted"

#: Formats that only say what state nodes are in: they bring no nodes of their own.
STATES_ONLY = ("sinfo", "scontrol-nodes", "slurm-json", "pbsnodes", "flux-resources", "job-list")

#: Formats that list a machine's nodes, their roles and states.
INVENTORY = ("xtprocadmin", "xtdb2proc", "sls")

_RANK = {"site": 0, "xtprocadmin": 2, "xtdb2proc": 2, "sls": 2}
_TOPOLOGY = ("topology-conf", "topology-yaml", "scontrol-topology")

_WORDS = ("name", "cname", "role", "state", "mode", "router", "features")
_NUMBERS = ("sockets", "cores", "memory_mb", "nics", "gpus")
_KEYS = {"nid": "NID", "cname": "cname", "name": "name"}


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

    # No dataclass: making one costs a start-up that `plan` has to pay.
    __slots__ = ("columns", "line", "notes", "source", "sources")

    def __init__(
        self,
        source: NDArray[np.int64],
        line: NDArray[np.int64],
        columns: dict[str, NDArray[Any]],
        sources: list[str],
        notes: list[str],
    ) -> None:
        self.source = source
        self.line = line
        self.columns = columns
        self.sources = sources
        self.notes = notes

    def __len__(self) -> int:
        return len(self.line)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    @classmethod
    def of(cls, dump: Dump) -> Table:
        """Return the table of one dump that has nodes."""
        assert dump.nodes is not None
        n = len(dump.nodes)
        return cls(
            source=np.zeros(n, dtype=np.int64),
            line=dump.nodes.line.astype(np.int64),
            columns=_columns(dump.nodes) | {"row": np.arange(n)},
            sources=[dump.source],
            notes=[],
        )

    def has(self, name: str) -> bool:
        """Return True where some row knows the column."""
        return name in self.columns and bool(_known(name, self.columns[name]).any())

    def known(self, name: str) -> NDArray[np.bool_]:
        """Return the mask of the rows that know the column."""
        if name not in self.columns:
            return np.zeros(len(self), dtype=np.bool_)
        return _known(name, self.columns[name])

    def where(self, row: int) -> tuple[str, int]:
        """Return the source and line that a row comes from."""
        return self.sources[self.source[row]], int(self.line[row])

    def error(self, row: int, text: str, hint: str = "") -> ParseError:
        """Return the error that blames one row."""
        return ParseError(*self.where(row), text, hint)

    def called(self, row: int) -> str:
        """Return the best name of a row for a message."""
        for name in ("cname", "name"):
            if self.columns[name][row]:
                return printable(str(self.columns[name][row]))
        return f"NID {self.columns['nid'][row]}"

    def take(self, rows: NDArray[np.int64]) -> Table:
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
        table = Table.of(dump) if table is None else _joined(table, dump)
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
    assert site.nodes is not None
    new = _columns(site.nodes)
    try:
        _, at = match_rows(table, new, site)
    except ParseError as error:
        text = f"none of its nodes is in {printable(site.source)}"
        raise ParseError(table.sources[0], 0, text, error.hint) from None
    found = at >= 0
    for name in ("role", *_NUMBERS, "features"):
        given = new[name][found]
        use = _known(name, given) & ~table.known(name)[at[found]]
        _overwrite(table, {name: given[use]}, at[found][use])


def _rank(dump: Dump) -> int:
    if dump.format in STATES_ONLY:
        return 4 + dump.lists_jobs
    return 3 if dump.format in _TOPOLOGY else _RANK.get(dump.format, 1)


def _known(name: str, column: NDArray[Any]) -> NDArray[np.bool_]:
    if name in ("coords", "position"):
        return np.asarray((column >= 0).all(axis=1))
    if column.dtype.kind == "U":
        return np.asarray(column != "")
    if name in ("planned", "weight"):
        return np.ones(len(column), dtype=np.bool_)
    return np.asarray(column >= 0 if name == "nid" else column > 0)


def _columns(records: NodeRecords) -> dict[str, NDArray[Any]]:
    """Return all columns of a dump, those it lacks marked unknown."""
    n = len(records)
    found: dict[str, NDArray[Any]] = {}
    for name in _WORDS:
        given = getattr(records, name)
        found[name] = np.zeros(n, dtype="U1") if given is None else np.asarray(given, np.str_)
    for name in _NUMBERS:
        given = getattr(records, name)
        found[name] = np.zeros(n, np.int64) if given is None else np.asarray(given, np.int64)
    found["planned"] = np.zeros(n, np.bool_) if records.planned is None else records.planned
    found["nid"] = _nids(records)
    for name in ("coords", "position", "weight"):
        if getattr(records, name) is not None:
            found[name] = getattr(records, name)
    return found


def _nids(records: NodeRecords) -> NDArray[np.int64]:
    """Return the NIDs as given or as the name says (``nid00045``), -1 for none."""
    given = np.full(len(records), -1) if records.nid is None else records.nid.astype(np.int64)
    if records.name is None or (given >= 0).all():
        return given
    from placement.names import name_numbers

    prefixes, numbers, _ = name_numbers(records.name)
    return np.where((given < 0) & (prefixes == "nid"), numbers, given)


def _joined(table: Table, dump: Dump) -> Table:
    """Return `table` with what `dump` adds."""
    assert dump.nodes is not None
    new = _columns(dump.nodes)
    key, at = match_rows(table, new, dump)
    refuse_other_nodes(table, new, at, key, dump)
    table, at = _grown(table, new, at, dump)
    found = at >= 0
    _overwrite(table, {name: c[found] for name, c in new.items()}, at[found])
    if dump.format in STATES_ONLY and not dump.lists_jobs:
        _mark_unlisted(table, at[found])
    return table


def match_rows(
    table: Table, new: dict[str, NDArray[Any]], dump: Dump
) -> tuple[str, NDArray[np.int64]]:
    """Return the key that joins and, for each new row, its row in the table (-1: none).

    A new row that lacks that key (``gpu1`` among ``nid00001`` …) is joined by the next one.

    Parameters
    ----------
    table : Table
    new : dict of str to array
        Columns of the dump's nodes.
    dump : Dump
        For errors.

    Raises
    ------
    ParseError
        Where the two share no node.
    """
    joined = ""
    at = np.full(len(new["nid"]), -1, dtype=np.int64)
    lacking = np.ones(len(at), dtype=np.bool_)
    for key in _KEYS:
        known = _known(key, new[key])
        found = _lookup(table[key], table.known(key), new[key], known & lacking)
        at[found >= 0] = found[found >= 0]
        if joined or (found >= 0).any():
            joined = joined or key
            lacking &= ~known
    if joined:
        return joined, at
    mine, theirs = table.called(0), _shown(new, 0)
    raise ParseError(
        dump.source,
        0,
        f"shares no node with {printable(table.sources[0])}",
        f"it names nodes like {theirs}, the other like {mine}",
    )


def _shown(new: dict[str, NDArray[Any]], row: int) -> str:
    for name in ("cname", "name"):
        if new[name][row]:
            return printable(str(new[name][row]))
    return f"NID {new['nid'][row]}"


def _lookup(
    have: NDArray[Any],
    have_known: NDArray[np.bool_],
    want: NDArray[Any],
    want_known: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return the index in `have` of each of `want`, -1 where there is none."""
    out = np.full(len(want), -1, dtype=np.int64)
    rows = np.flatnonzero(have_known)
    if not len(rows) or not want_known.any():
        return out
    order = rows[np.argsort(have[rows], kind="stable")]
    place = np.searchsorted(have[order], want)
    place[place == len(order)] = 0
    candidate = order[place]
    same = want_known & (have[candidate] == want)
    out[same] = candidate[same]
    return out


def refuse_other_nodes(
    table: Table, new: dict[str, NDArray[Any]], at: NDArray[np.int64], key: str, dump: Dump
) -> None:
    """Refuse a dump whose nodes are not those they are joined with.

    Raises
    ------
    ParseError
        Where a joined row has another NID or cname than it had, or two rows are one.
    """
    assert dump.nodes is not None
    rows = np.flatnonzero(at >= 0)
    twice = len(np.unique(at[rows])) < len(rows)
    if twice:
        again = rows[np.setdiff1d(np.arange(len(rows)), np.unique(at[rows], return_index=True)[1])]
        row = int(again[0])
        text = f"{_shown(new, row)} is the same node as an earlier line's"
        raise ParseError(dump.source, int(dump.nodes.line[row]), text)
    for other, word in _KEYS.items():
        if other in (key, "name"):
            continue
        both = table.known(other)[at[rows]] & _known(other, new[other])[rows]
        wrong = rows[both & (table[other][at[rows]] != new[other][rows])]
        if len(wrong):
            row = int(wrong[0])
            before = table[other][at[row]]
            source, line = table.where(int(at[row]))
            raise ParseError(
                dump.source,
                int(dump.nodes.line[row]),
                f"{_KEYS[key]} {printable(str(new[key][row]))} has {word} "
                f"{printable(str(new[other][row]))} here, but "
                f"{printable(str(before))} in {printable(source)}" + (f":{line}" if line else ""),
                "are the dumps of the same machine?",
            )


def _grown(
    table: Table, new: dict[str, NDArray[Any]], at: NDArray[np.int64], dump: Dump
) -> tuple[Table, NDArray[np.int64]]:
    """Return the table with empty rows for the nodes that only `dump` has, and their places."""
    assert dump.nodes is not None
    missing = np.flatnonzero(at < 0)
    if not len(missing):
        return table, at
    if dump.format in STATES_ONLY or _rank(dump) == 3 or _rank_of(table) == 0:
        table.notes.append(_left_out(new, missing, dump.source))
        return table, at
    table.sources.append(dump.source)
    count = len(missing)
    source = np.full(count, len(table.sources) - 1, dtype=np.int64)
    columns = {name: _extended(name, column, count) for name, column in table.columns.items()}
    line = np.concatenate([table.line, dump.nodes.line[missing].astype(np.int64)])
    at = at.copy()
    at[missing] = len(table) + np.arange(count)
    source = np.concatenate([table.source, source])
    return Table(source, line, columns, table.sources, table.notes), at


def _rank_of(table: Table) -> int:
    """Return 0 where a site or a spec placed the nodes (they have positions)."""
    return 0 if "position" in table.columns else 1


def _left_out(new: dict[str, NDArray[Any]], rows: NDArray[np.int64], source: str) -> str:
    some = ", ".join(_shown(new, int(row)) for row in rows[:3])
    more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
    return f"left out, as nothing says where they are: {some}{more} of {printable(source)}"


def _extended(name: str, column: NDArray[Any], count: int) -> NDArray[Any]:
    """Return a column with `count` unknown rows at its end."""
    unknown = -1 if name in ("coords", "position", "nid") else 0
    if column.dtype.kind == "U":
        return np.concatenate([column, np.zeros(count, dtype="U1")])
    fill = np.full((count, *column.shape[1:]), unknown, dtype=column.dtype)
    return np.concatenate([column, fill])


def _overwrite(table: Table, new: dict[str, NDArray[Any]], at: NDArray[np.int64]) -> None:
    """Put what is known of the rows `at` into the table."""
    for name, values in new.items():
        known = _known(name, values)
        if not known.any():
            continue
        if name not in table.columns:
            shape = (len(table), *values.shape[1:])
            fill = 0 if name == "weight" else -1
            table.columns[name] = np.full(shape, fill, dtype=values.dtype)
        column = table.columns[name]
        wider = column.dtype.kind == "U" and column.dtype.itemsize < values.dtype.itemsize
        column = column.astype(values.dtype if wider else column.dtype)  # a copy: dumps stay
        column[at[known]] = values[known]
        table.columns[name] = column


def _mark_unlisted(table: Table, listed: NDArray[np.int64]) -> None:
    """Say of compute nodes that Slurm does not list that they cannot be had."""
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
            other, line = table.where(int(order[same[0]]))
            text = f"{word} {printable(str(table[key][row]))} is another node's in "
            raise table.error(row, text + printable(other) + (f":{line}" if line else ""))
