# SPDX-License-Identifier: Apache-2.0
"""Measured link loads, by their counters: JSON of ``nidmap minicray links``, or a CSV.

A CSV has a head of column names and a row a link: its ``bytes`` over the time that was measured,
and the link by the predictor's name in ``link`` (``c0-0c0s0a0->c0-0c0s1a0 green``,
``nid00001 injection``) or by its ends in ``from`` and ``to``, routers or a router and a node.
Several links from one router to another share what is told of both ends.
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
from nidmap.placement.support.quantities import counted, size_text
from nidmap.placement.support.reading import read_bytes
from nidmap.placement.topologies import router_names, wiring_text
from nidmap.web import link_loads, replies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nidmap.placement.machine import Machine
    from nidmap.placement.network import Channels

#: Largest file of counters that is read, and most bytes that a counter may have.
_MOST_BYTES, _MOST_CARRIED = 64 * 2**20, 1e20


class _Counter(msgspec.Struct):
    """The counters of one link of a mini-Cray."""

    bytes: Annotated[float, msgspec.Meta(ge=0, le=_MOST_CARRIED)]


class _Counters(msgspec.Struct):
    """The output of ``nidmap minicray links --json``."""

    links: dict[str, _Counter]


class _Row(NamedTuple):
    """A link by its name, or by its ends; the line that tells it."""

    line: int
    name: str
    ends: tuple[str, str]
    bytes: float


def measured(machine: Machine, path: str, links: int) -> replies.Measured:
    """Return the loads of a machine's links from a file of counters, the busiest ones listed."""
    if not path:
        raise UsageError("no counters of links are served", "nidmap web serve --link-loads FILE")
    known = channels(machine, "")
    unlimited = replace(known, bandwidth=np.full(len(known), np.inf))  # bytes, whatever time
    load, unknown = _channel_bytes(unlimited, machine, list(_read_rows(path)))
    used = np.flatnonzero(load)
    if not len(used):
        raise ParseError(path, 0, f"names no link of {printable(machine.name)} that carried any")
    nodes = np.zeros(len(machine))
    loads = Loads(unlimited, used, load[used], nodes, nodes, "", wiring_text(machine))
    total = float(load.sum())
    return replies.Measured(
        source=os.path.basename(path),
        taken=os.stat(path).st_mtime,
        bytes=total,
        unknown=unknown,
        links=link_loads.busiest_channels(loads, load, load / load.max(), links),
        groups=link_loads.group_links(loads),
        sentence=f"{size_text(total)} on {counted(len(used), 'link')} of {len(load)},"
        f" by the counters in {os.path.basename(path)}",
    )


def _read_rows(path: str) -> Iterator[_Row]:
    """Yield the links that a file tells."""
    raw = read_bytes(path)
    if len(raw) > _MOST_BYTES:
        raise ParseError(path, 0, f"has {len(raw)} bytes, at most {_MOST_BYTES} are read")
    if raw.lstrip().startswith(b"{"):
        try:
            found = msgspec.json.decode(raw, type=_Counters).links
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = printable(schema_sentence(error), 200)
            raise ParseError(path, 0, reason, "nidmap minicray links --json") from None
        yield from (_Row(0, name, ("", ""), counter.bytes) for name, counter in found.items())
        return
    try:
        yield from _read_table(path, raw.decode("utf-8", errors="replace"))
    except csv.Error as error:
        raise ParseError(path, 0, f"is not CSV: {printable(str(error), 200)}") from None


def _read_table(path: str, text: str) -> Iterator[_Row]:
    """Yield the links that the rows of a CSV tell."""
    table = csv.DictReader(io.StringIO(text))
    heads = {head.strip().lower() for head in table.fieldnames or ()}
    if "bytes" not in heads or not ("link" in heads or {"from", "to"} <= heads):
        hint = "a head of link,bytes or from,to,bytes"
        raise ParseError(path, 1, "no columns bytes, and link or from and to", hint)
    for number, cells in enumerate(table, 2):
        row = {str(key).strip().lower(): (value or "").strip() for key, value in cells.items()
               if isinstance(value, str)}  # fmt: skip
        try:
            size = float(row.get("bytes", ""))
        except ValueError:
            size = np.nan
        if not 0 <= size <= _MOST_CARRIED:
            raise ParseError(path, number, f"bytes {printable(row.get('bytes', ''))!r}: no number")
        yield _Row(number, row.get("link", ""), (row.get("from", ""), row.get("to", "")), size)


def _channel_bytes(
    known: Channels, machine: Machine, rows: list[_Row]
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], int]:
    """Return the bytes of every channel, and how many rows name none; nodes' own links are none."""
    index = {name: row for row, name in enumerate(known.names().tolist())}
    between: dict[tuple[str, str], list[int]] = {}
    names = router_names(machine)
    ends = zip(names[known.source].tolist(), names[known.target].tolist(), strict=True)
    for row, pair in enumerate(ends):
        between.setdefault(pair, []).append(row)
    nodes = set(machine.names.tolist()) | {name for name in machine.cname.tolist() if name}
    load, unknown = np.zeros(len(known)), 0
    for found in rows:
        at = [index[found.name]] if found.name in index else between.get(found.ends, [])
        if at:
            load[at] += found.bytes / len(at)
        elif found.name.partition(" ")[0] not in nodes and not nodes & set(found.ends):
            unknown += 1
    load[load < 1] = 0  # less than a byte is nothing
    return load, unknown
