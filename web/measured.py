# SPDX-License-Identifier: Apache-2.0
"""Measured link loads from counters: JSON of ``nidmap minicray links``, CSV, perfquery.

A CSV has a head of column names and a row a link: its ``bytes`` over the time that was measured,
and the link by the predictor's name in ``link`` (``c0-0c0s0a0->c0-0c0s1a0 green``,
``nid00001 injection``) or by its ends in ``from`` and ``to``, routers or a router and a node.
Several links from one router to another share what is told of both ends only. InfiniBand's own
counters (`nidmap.web.port_counters`) name ports, which ibnetdiscover's output joins: one of the
files, or what the machine was made of. Of several files with counters, what was counted from the
first to the last is meant.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import numpy as np

from nidmap.placement.errors import ParseError, UsageError, printable, schema_sentence
from nidmap.placement.network import channels
from nidmap.placement.network.channel_loads import Loads
from nidmap.placement.readers import HEAD, find, resembling
from nidmap.placement.support.quantities import counted, size_text
from nidmap.placement.support.reading import load, read_bytes
from nidmap.placement.topologies import router_names, wiring_text
from nidmap.web import link_loads, port_counters, replies

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nidmap.placement.machine import Machine
    from nidmap.placement.network import Channels
    from nidmap.placement.records import LinkRecords
    from nidmap.placement.support.array_types import Floats, Mask

#: Largest file of counters that is read, and most bytes that a counter may have.
_MOST_BYTES, _MOST_CARRIED = 64 * 2**20, 1e20

#: Formats of dumps that say which ports are joined.
_FABRICS = ("ibnetdiscover", "ibnetdiscover-ports")


class _Counter(msgspec.Struct):
    """The counters of one link of a mini-Cray."""

    bytes: Annotated[float, msgspec.Meta(ge=0, le=_MOST_CARRIED)]


class _Counters(msgspec.Struct):
    """The output of ``nidmap minicray links --json``."""

    links: dict[str, _Counter]


class _Row(NamedTuple):
    """A link by name, or by its ends."""

    name: str
    ends: tuple[str, str]
    bytes: float
    of: tuple[int, int] = (0, 0)  # which of how many with these ends


class _Told(NamedTuple):
    """What counter files say about links."""

    rows: list[_Row]
    unknown: int  # ports that no dump of the fabric has
    how: str  # the files, and the time between which readings


def measured(machine: Machine, paths: Sequence[str], links: int) -> replies.Measured:
    """Return the loads of a machine's links from counter files, the busiest ones listed."""
    if not paths:
        raise UsageError("no link counters are served", "nidmap web serve --link-loads FILE")
    known = channels(machine, "")
    unlimited = replace(known, bandwidth=np.full(len(known), np.inf))  # bytes, whatever time
    rows, elsewhere, how = _read_files(machine, paths)
    carried, told, unknown = _channel_bytes(unlimited, machine, rows)
    used = np.flatnonzero(carried)
    if not len(used):
        text = f"no link of {printable(machine.name)} carried any bytes"
        raise ParseError(paths[-1], 0, text)
    nodes = np.zeros(len(machine))
    loads = Loads(unlimited, used, carried[used], nodes, nodes, "", wiring_text(machine))
    total = float(carried.sum())
    silent = f"; {counted(int((~told).sum()), 'link')} without a counter" if not told.all() else ""
    return replies.Measured(
        source=os.path.basename(paths[-1]),
        taken=max(os.stat(path).st_mtime for path in paths),
        bytes=total,
        unknown=unknown + elsewhere,
        links=link_loads.busiest_channels(loads, carried, carried / carried.max(), links),
        groups=link_loads.group_links(loads),
        sentence=f"{size_text(total)} on {counted(len(used), 'link')} of {len(carried)},"
        f" by the counters in {how}{silent}",
    )


def _read_files(machine: Machine, paths: Sequence[str]) -> _Told:
    """Return the links in files; of several with counters, the last minus the first."""
    readings, tables, fabric = list[port_counters.Reading](), dict[str, list[_Row]](), list[str]()
    for path in paths:
        raw = read_bytes(path)
        text = raw.decode("utf-8", errors="replace")
        if port_counters.is_report(text):
            readings += port_counters.read_ports(text.replace("\r\n", "\n"), path)
        elif resembling(text[:HEAD]) in _FABRICS:
            fabric.append(path)
        else:
            tables[path] = list(_read_rows(path, raw))
    if len(tables) + bool(readings) != 1:
        text = "more counters of links than one table" if tables else "has no counters"
        hint = "of several files only perfquery's are subtracted" if tables else "perfquery -x"
        raise ParseError(list(tables or paths)[-1], 0, text, hint)
    if tables:
        ((path, rows),) = tables.items()
        return _Told(rows, 0, os.path.basename(path))
    links = _fabric_links(machine, fabric)
    if links is None:
        text, hint = "names ports by LID or GUID", "add ibnetdiscover's output: --link-loads FILE"
        raise ParseError(readings[0].source, readings[0].line, text, hint)
    cables, unknown, twice = port_counters.carried_bytes(readings, links)
    rows = [_Row("", cable.ends, cable.bytes, cable.of) for cable in cables]
    first, last = (os.path.basename(found.source) for found in (readings[0], readings[-1]))
    since = "their reset" if not twice else first if first != last else "its first reading"
    return _Told(rows, unknown, f"{last}, since {since}")


def _fabric_links(machine: Machine, files: list[str]) -> LinkRecords | None:
    """Return the links in ibnetdiscover's output, from a file or the machine's own dump."""
    for path in files or [path for path in machine.sources if os.path.isfile(path)]:
        text = load(path)
        name = resembling(text[:HEAD])
        if name in _FABRICS:
            return find(name).read(text, path).links
    return None


def _read_rows(path: str, raw: bytes) -> Iterator[_Row]:
    """Yield the links in a table."""
    if len(raw) > _MOST_BYTES:
        raise ParseError(path, 0, f"has {len(raw)} bytes; at most {_MOST_BYTES} are read")
    if raw.lstrip().startswith(b"{"):
        try:
            counters = msgspec.json.decode(raw, type=_Counters).links
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = printable(schema_sentence(error), 200)
            raise ParseError(path, 0, reason, "nidmap minicray links --json") from None
        yield from (_Row(name, ("", ""), counter.bytes) for name, counter in counters.items())
        return
    try:
        yield from _read_table(path, raw.decode("utf-8", errors="replace"))
    except csv.Error as error:
        raise ParseError(path, 0, f"is not CSV: {printable(str(error), 200)}") from None


def _read_table(path: str, text: str) -> Iterator[_Row]:
    """Yield the links in the rows of a CSV."""
    table = csv.DictReader(io.StringIO(text))
    heads = {head.strip().lower() for head in table.fieldnames or ()}
    if "bytes" not in heads or not ("link" in heads or {"from", "to"} <= heads):
        hint = "a head of link,bytes or from,to,bytes"
        raise ParseError(path, 1, "needs columns bytes and link, or bytes, from and to", hint)
    for number, cells in enumerate(table, 2):
        row = {str(key).strip().lower(): (value or "").strip() for key, value in cells.items()
               if isinstance(value, str)}  # fmt: skip
        try:
            size = float(row.get("bytes", ""))
        except ValueError:
            size = np.nan
        if not 0 <= size <= _MOST_CARRIED:
            raise ParseError(
                path, number, f"bytes {printable(row.get('bytes', ''))!r} is not a number"
            )
        yield _Row(row.get("link", ""), (row.get("from", ""), row.get("to", "")), size)


def _channel_bytes(known: Channels, machine: Machine, rows: list[_Row]) -> tuple[Floats, Mask, int]:
    """Return the bytes of every channel, which ones are known, and unnamed rows' count.

    Nodes' own links are none, and known.
    """
    index = {name: row for row, name in enumerate(known.names().tolist())}
    between: dict[tuple[str, str], list[int]] = {}
    names = router_names(machine)
    ends = zip(names[known.source].tolist(), names[known.target].tolist(), strict=True)
    for row, pair in enumerate(ends):
        between.setdefault(pair, []).append(row)
    nodes = set(machine.names.tolist()) | {name for name in machine.cname.tolist() if name}
    load, told, unknown = np.zeros(len(known)), np.zeros(len(known), dtype=np.bool_), 0
    for found in rows:
        at = [index[found.name]] if found.name in index else between.get(found.ends, [])
        number, cables = found.of
        at = at[number : number + 1] if cables == len(at) else at
        if at:
            load[at] += found.bytes / len(at)
            told[at] = True
        elif found.name.partition(" ")[0] not in nodes and not nodes & set(found.ends):
            unknown += 1
    load[load < 1] = 0  # less than a byte is nothing
    return load, told, unknown
