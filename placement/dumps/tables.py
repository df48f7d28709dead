"""The nodes of dumps as tables: what is known, which rows are one node, what contradicts.

Rows are the same node by NID where both sides have NIDs (``nid00045`` is one), else by cname,
else by name; two dumps that disagree on who a node is are refused, the later one at its line.

Dumps that were taken at different dates, or of different machines, can be
joined without anything falling apart. So each difference is named, and a
machine is built of them only where it was said which one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nidmap.placement.errors import ParseError, at_line
from nidmap.placement.lookup import find_rows
from nidmap.placement.names import name_numbers, parse_cnames
from nidmap.placement.records import Dump, Finding, NodeRecords
from nidmap.placement.support.array_types import Array, Ints, Mask

if TYPE_CHECKING:
    from nidmap.placement.topologies.source import Source

#: Columns that every table has, and what stands in them where nothing is known.
_COLUMNS: dict[str, Any] = {
    **dict.fromkeys(("name", "cname", "role", "state", "mode", "router", "features"), ""),
    **dict.fromkeys(("sockets", "cores", "memory_mb", "nics", "gpus"), 0),
    "planned": False,
}
#: The same of all columns.
UNKNOWN = _COLUMNS | {"nid": -1, "coords": -1, "position": -1, "weight": 0}

KEYS = {"nid": "NID", "cname": "cname", "name": "name"}


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
        return cls(np.zeros_like(line), line, _all_columns(dump.nodes), [dump.source], [])

    def has(self, name: str) -> bool:
        """Return True where some row knows the column."""
        return name in self.columns and bool(is_known(name, self.columns[name]).any())

    def known(self, name: str) -> Mask:
        """Return the mask of the rows that know the column."""
        if name not in self.columns:
            return np.zeros(len(self), dtype=np.bool_)
        return is_known(name, self.columns[name])

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
                return str(self.columns[name][row])
        return f"NID {self.columns['nid'][row]}"

    def take(self, rows: Ints) -> Table:
        """Return the table with these rows in this order."""
        kept = {name: column[rows] for name, column in self.columns.items()}
        return Table(self.source[rows], self.line[rows], kept, self.sources, self.notes)

    def in_nid_order(self) -> Table:
        """Return the rows in NID order; NIDs are made of names or places where there are none."""
        if not self.has("nid"):
            self.columns["nid"] = self._numbers()
        nid = self["nid"]
        return self if (np.diff(nid) >= 0).all() else self.take(np.argsort(nid, kind="stable"))

    def _numbers(self) -> Ints:
        """Return the numbers the names end in where they tell all nodes apart, else the index."""
        prefixes, numbers, _ = name_numbers(self["name"])
        alike = len(np.unique(prefixes)) == 1 and bool((numbers >= 0).all())
        distinct = len(np.unique(numbers)) == len(numbers)
        return numbers if alike and distinct else np.arange(len(self), dtype=np.int64)


def is_known(name: str, column: Array) -> Mask:
    """Return the mask of the values that say something."""
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
    """Return the NIDs as given or as the name says (``nid00045``), -1 for none."""
    nid = np.full(len(records), -1) if records.nid is None else records.nid.astype(np.int64)
    if records.name is None or (nid >= 0).all():
        return nid
    prefixes, numbers, _ = name_numbers(records.name)
    return np.where((nid < 0) & (prefixes == "nid"), numbers, nid)


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
    for key in KEYS:
        known = new.known(key)
        have, want = np.flatnonzero(table.known(key)), np.flatnonzero(known & lacking)
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


_KIND = "contradiction"

_HINT = "nidmap machine check lists them all; -m prefer:last takes what the last dump says"

#: A dump of fewer than this share of a site's nodes is an extract, and two dumps with fewer than
#: this share of the shorter one in common are parts of one list: neither says what there is not.
WHOLE = 0.5

_ALWAYS = ("role", "coords", "sockets", "cores", "memory_mb", "gpus")


class Contradictions(NamedTuple):
    """What some dumps say differently.

    Attributes
    ----------
    findings : list of Finding
        Each blames the later dump of the two.
    formats : set of str
        Formats of which two dumps contradict one another.
    absent : set of str
        Cabinets of the site that a whole dump of its nodes lacks.
    """

    findings: list[Finding]
    formats: set[str]
    absent: set[str]

    def error(self) -> ParseError:
        """Return the error that refuses the dumps: the first contradiction, the others counted."""
        others = len(self.findings) - 1
        text = self.findings[0].text + (f", and {others} more" if others else "")
        return replace(self.findings[0], text=text, hint=_HINT).error()

    def settle(self, dumps: Sequence[Dump]) -> list[Dump]:
        """Return the dumps of which the last of each format that contradicts itself is left."""
        last = {dump.format: dump for dump in dumps}
        return [d for d in dumps if d.format not in self.formats or last[d.format] is d]


def contradictions(dumps: Sequence[Dump], site: Source | None = None) -> Contradictions:
    """Return all that some dumps say differently, pair by pair.

    Compared are the role of a node, its coordinates and what is in it, its
    state where both dumps are of one kind (two inventories, two lists of
    states: Slurm's state counts more than a Cray's, and is not a contradiction),
    and which nodes there are where both are of one format. Of a site, only
    the cabinets: what else it says is filled in where no dump does.

    Parameters
    ----------
    dumps : sequence of Dump
    site : Site, SyntheticSite or None

    Examples
    --------
    >>> from nidmap.placement.readers import read_text
    >>> rows = ("1 0x1 c0-0c0s0n1 compute up batch", "1 0x1 c0-0c0s0n1 service up batch")
    >>> apart = contradictions([read_text(row, f"{i}.txt") for i, row in enumerate(rows)])
    >>> print(apart.findings[0])
    1.txt:1: fault: c0-0c0s0n1 is service, but compute in 0.txt:1
    """
    listing = [d for d in dumps if d.nodes is not None and len(d.nodes) and d.kind != "site"]
    apart = Contradictions([], set(), set())
    for earlier, later in combinations(listing, 2):
        differences = list(_contradict(earlier, later))
        apart.findings.extend(differences)
        if differences and earlier.format == later.format:
            apart.formats.add(later.format)
    for dump in listing:
        gone = _absent_cabinets(site, dump)
        apart.absent.update(gone)
        if site is not None and gone:
            some = ", ".join(gone[:3]) + (f" and {len(gone) - 3} more" if len(gone) > 3 else "")
            word = "cabinets" if len(gone) > 1 else "cabinet"
            text = f"{word} {some} of site {site.name} not in it"
            apart.findings.append(Finding(0, _KIND, text, source=dump.source))
    return apart


def _absent_cabinets(site: Source | None, dump: Dump) -> list[str]:
    """Return the cabinets of a site that a whole dump of its nodes does not have.

    A dump that lists far fewer nodes than the site is an extract, and only
    one that lists roles lists all nodes.
    """
    mine = None if site is None else site.records().nodes
    theirs = dump.nodes
    if mine is None or mine.cname is None or theirs is None or dump.kind == "site":
        return []
    if theirs.cname is None or theirs.role is None or len(theirs) < WHOLE * len(mine):
        return []
    floors = []
    for cname in (mine.cname, theirs.cname):
        parts = parse_cnames(cname)
        floors.append(set(map(tuple, np.unique(parts[parts[:, 4] >= 0, :2], axis=0).tolist())))
    return [f"c{column}-{row}" for column, row in sorted(floors[0] - floors[1])]


def _contradict(earlier: Dump, later: Dump) -> Iterator[Finding]:
    """Yield what the later dump says differently."""
    if earlier.lists_jobs or later.lists_jobs:
        return
    mine, theirs = Table.of(earlier), Table.of(later)
    try:
        key, at = match_rows(mine, theirs)
        refuse_other_nodes(mine, theirs, at, key)
    except ParseError:
        return  # not of one machine: the join says so
    rows = np.flatnonzero(at >= 0)
    kinds = {earlier.kind, later.kind}
    alike = kinds in ({"inventory"}, {"states"})  # states of one kind
    for name in (*_ALWAYS, *(["state"] if alike else [])):
        for row in _differing_rows(mine, theirs, name, rows, at).tolist():
            now, before = (
                _value_text(name, theirs[name][row]),
                _value_text(name, mine[name][at[row]]),
            )
            where = at_line(*mine.where(int(at[row])))
            text = f"{theirs.called(row)} is {now}, but {before} in {where}"
            yield theirs.finding(row, _KIND, text)
    parts = len(rows) < WHOLE * min(len(mine), len(theirs))
    if earlier.format == later.format and kinds != {"states"} and not parts:
        for row in np.flatnonzero(at < 0).tolist():
            text = f"{theirs.called(row)} is not in {at_line(earlier.source)}"
            yield theirs.finding(row, _KIND, text)
        for row in np.setdiff1d(np.arange(len(mine)), at[rows]).tolist():
            text = f"{mine.called(row)} of {at_line(*mine.where(row))} is not in it"
            yield Finding(0, _KIND, text, source=later.source)


def _differing_rows(mine: Table, theirs: Table, name: str, rows: Ints, at: Ints) -> Ints:
    """Return those of the later dump's `rows` that both dumps know a column of, and differently."""
    known = theirs.known(name)[rows] & mine.known(name)[at[rows]]
    rows = rows[known]
    if not len(rows):
        return rows
    differ = np.asarray(theirs[name][rows] != mine[name][at[rows]])
    return np.asarray(rows[differ.any(axis=1) if differ.ndim > 1 else differ])


def _value_text(name: str, value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"at ({','.join(map(str, value.tolist()))})"
    return str(value) if name in ("role", "state") else f"of {value} {name.replace('_mb', ' MB')}"
