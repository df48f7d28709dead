# SPDX-License-Identifier: Apache-2.0
"""Text tables: edges (from, to[, weight]) or a whole matrix, one row per line; lists of messages.

Split by commas, semicolons, tabs or blanks. A table of as many columns as
lines is a matrix; two or three columns are edges, ranks counted from 0. A
first line of words (``source,target,bytes``) makes a list of edges of it.
``# ranks=64`` in a comment states the number of ranks.

A list of messages is source, destination and bytes, one message per line. Unlike a matrix's
entries, two lines of the same two ranks are two messages.
"""

from __future__ import annotations

import re

import numpy as np

from nidmap.placement.errors import ParseError
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.readers.entries import Entries, check_entries, gather_numbers, whole

_RANKS = re.compile(rb"^[ \t]*#[^\n]*?\branks\s*[=:]\s*([0-9]{1,12})", re.IGNORECASE | re.MULTILINE)
_WORDS = re.compile(rb"[ \t\"']*[A-Za-z_]")


def read(raw: bytes, source: str) -> Entries:
    """Return the entries of a text table."""
    rows, at, header = _read_rows(raw, source)
    width = rows.shape[1]
    if len(rows) == width and not (header and width in (2, 3)):
        return _read_matrix(rows, at, source)
    if width not in (2, 3):
        fault = f"{len(rows)} lines of {width} numbers: neither a square matrix nor edges"
        raise ParseError(source, int(at[-1]), fault, "is the file cut short?")
    return _read_edges(rows, at, raw, source)


def read_messages(raw: bytes, source: str) -> Entries:
    """Return the messages of a list, each as an entry of its own."""
    rows, at, _ = _read_rows(raw, source)
    if rows.shape[1] != 3:
        fault = f"{rows.shape[1]} numbers, not 3: source, destination and bytes"
        raise ParseError(source, int(at[0]), fault)
    return _read_edges(rows, at, raw, source)


def _read_rows(raw: bytes, source: str) -> tuple[Floats, Ints, int]:
    """Return the numbers in lines of equal length, their line numbers, and the header's length."""
    header = _header_lines(raw)
    values, line, _ = gather_numbers(raw, source, skip=header)
    if not len(values):
        raise ParseError(source, 0, "no numbers")
    at, counts = np.unique(line, return_counts=True)
    width = int(counts[0])
    odd = np.flatnonzero(counts != width)
    if len(odd):
        fault = f"{counts[odd[0]]} numbers where the lines above have {width}"
        raise ParseError(source, int(at[odd[0]]), fault, "is the file cut short?")
    return values.reshape(-1, width), at, header


def _read_edges(rows: Floats, at: Ints, raw: bytes, source: str) -> Entries:
    """Return lines of from, to and weight (1 if missing) as entries."""
    ends = whole(rows[:, :2].ravel(), np.repeat(at, 2), source, "rank").reshape(-1, 2)
    weight = rows[:, 2] if rows.shape[1] == 3 else np.ones(len(rows))
    stated = _RANKS.search(raw)
    n = int(stated[1]) if stated else int(ends.max()) + 1
    entries = Entries(n, Traffic.of(ends[:, 0], ends[:, 1], weight), stated=stated is not None)
    return check_entries(entries, source, at)


def _header_lines(raw: bytes) -> int:
    """Return the number of heading lines, including comments above them."""
    for number, line in enumerate(raw[:65536].split(b"\n"), start=1):
        if line.strip() and not line.lstrip().startswith((b"#", b"%")):
            return number if _WORDS.match(line) and b"nan" not in line.lower() else 0
    return 0


def _read_matrix(rows: Floats, at: Ints, source: str) -> Entries:
    a, b = np.nonzero(rows)
    notes: tuple[str, ...] = ()
    if len(rows) in (2, 3):
        notes = (f"taken as a {len(rows)}x{len(rows)} matrix; a header line makes it edges",)
    return check_entries(
        Entries(len(rows), Traffic.of(a, b, rows[a, b]), notes=notes), source, at[a]
    )
