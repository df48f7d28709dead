# SPDX-License-Identifier: Apache-2.0
"""Node-by-node differences between a machine's dumps.

Dumps that were taken at different dates, or of different machines, can be
joined without anything falling apart. So each difference is named, and a
machine is built of them only where it was said which one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nidmap.placement.errors import ParseError, at_line
from nidmap.placement.names import parse_cnames
from nidmap.placement.node_table import Table, match_rows, refuse_other_nodes
from nidmap.placement.records import Dump, Finding
from nidmap.placement.support.array_types import Ints

if TYPE_CHECKING:
    from nidmap.placement.topologies.source import Source

_KIND = "contradiction"

_HINT = "nidmap machine check lists them all; -m prefer:last takes what the last dump says"

#: A dump with fewer than this share of a site's nodes is an extract, and two dumps with fewer than
#: this share of the shorter one in common are parts of one list: neither implies that other nodes
#: are absent.
WHOLE = 0.5

_ALWAYS = ("role", "coords", "sockets", "cores", "memory_mb", "gpus")


class Contradictions(NamedTuple):
    """The differences between dumps."""

    findings: list[Finding]  # each is attributed to the later of two dumps
    formats: set[str]  # formats of which two dumps contradict one another
    absent: set[str]  # cabinets of the site that a whole dump of its nodes lacks

    def error(self) -> ParseError:
        """Return the error that refuses the dumps: the first contradiction and how many more."""
        others = len(self.findings) - 1
        text = self.findings[0].text + (f", and {others} more" if others else "")
        return replace(self.findings[0], text=text, hint=_HINT).error()

    def settle(self, dumps: Sequence[Dump]) -> list[Dump]:
        """Keep only the last dump of each format that contradicts another."""
        last = {dump.format: dump for dump in dumps}
        return [d for d in dumps if d.format not in self.formats or last[d.format] is d]


def contradictions(dumps: Sequence[Dump], site: Source | None = None) -> Contradictions:
    """Return all contradictions between dumps, pair by pair.

    Compared are the role of a node, its coordinates and what is in it, its
    state where both dumps are of one kind (two inventories, two lists of
    states: Slurm's state counts more than a Cray's, and is not a contradiction),
    and which nodes there are where both are of one format. Of a site, only
    the cabinets: what else it says is filled in where no dump does.
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
    """Return the cabinets of a site that are missing from a complete dump of its nodes.

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
    """Yield the values of the later dump that differ."""
    if earlier.lists_jobs or later.lists_jobs:
        return
    mine, theirs = Table.of(earlier), Table.of(later)
    try:
        key, at = match_rows(mine, theirs)
        refuse_other_nodes(mine, theirs, at, key)
    except ParseError:
        return  # different machines, which the join reports
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
    """Return the later dump's `rows` in which a column known to both dumps differs."""
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
