"""CrayPat's text tables of who sent how much to whom.

``pat_report`` prints tables in columns that bars part, one line a pair, under
a heading that names the columns in whatever order was asked for; exported
ones (``-s … csv``) are the same with commas. Wanted are three columns: the
sender (``PE``, ``Source``, ``Send PE``), the receiver (``Dest``, ``Partner
PE``, ``Recv PE``) and bytes (``Bytes``, ``Sent Msg Bytes``, ``Total bytes``).
Lines of totals name no PE and are left out.
"""

from __future__ import annotations

import re

import numpy as np

from placement.errors import ParseError
from rankmap.readers import Entries, checked

__all__ = ["read", "table"]

_SPLIT = re.compile(r"\s*[|,;\t]\s*|\s{2,}")
_SENDER = re.compile(r"\b(send(er|ing)?|source|src|from|pe|rank)\b", re.IGNORECASE)
_RECEIVER = re.compile(r"\b(recv|receiv\w*|dest\w*|dst|partner|peer|to|target)\b", re.IGNORECASE)
_BYTES = re.compile(r"\bbytes?\b|\bvolume\b", re.IGNORECASE)
_PE = re.compile(r"(?:pe|rank)?[.\s]?(\d{1,9})", re.IGNORECASE)


def read(raw: bytes, source: str) -> Entries:
    """Return the entries of a pat_report table.

    Raises
    ------
    ParseError
        No table with a sender, a receiver and bytes.

    Examples
    --------
    >>> text = b"CrayPat/X\\nPE | Dest PE | Sent Bytes\\npe.0 | pe.1 | 1,024\\npe.1 | pe.0 | 7\\n"
    >>> read(text, "-").weight.tolist()
    [1024.0, 7.0]
    """
    return table(raw, source, "pat_report")


def table(raw: bytes, source: str, tool: str) -> Entries:
    """Return the entries of every table in a report that names sender, receiver and bytes."""
    columns: tuple[int, int, int] | None = None
    found: list[tuple[int, int, float, int]] = []
    for number, line in enumerate(raw.decode("utf-8", "replace").split("\n"), start=1):
        cells = _cells(line)
        heading = _heading(cells)
        if heading is not None:
            columns = heading
        elif columns is not None:
            entry = _entry(cells, columns)
            if entry is not None:
                found.append((*entry, number))
    if not found:
        raise ParseError(
            source,
            0,
            f"no table of {tool} that names sender, receiver and bytes",
            "without receivers nothing says who talks to whom",
        )
    a, b, weight, line_of = (np.array(c) for c in zip(*found, strict=True))
    ranks = int(max(a.max(), b.max())) + 1
    return checked(Entries(ranks, a, b, weight, stated=False), source, line_of)


def _cells(line: str) -> list[str]:
    """Return the cells of a line; thousands' commas are no separators where bars are."""
    bare = line.strip().strip("|").strip()
    if "|" in bare:
        return [cell.strip() for cell in bare.split("|")]
    return [cell for cell in _SPLIT.split(bare) if cell]


def _heading(cells: list[str]) -> tuple[int, int, int] | None:
    """Return the columns of sender, receiver and bytes of a heading."""
    if any(_PE.fullmatch(cell) for cell in cells):
        return None
    receiver = next((k for k, c in enumerate(cells) if _RECEIVER.search(c)), None)
    sender = next((k for k, c in enumerate(cells) if _SENDER.search(c) and k != receiver), None)
    size = next((k for k, c in enumerate(cells) if _BYTES.search(c) and "%" not in c), None)
    if sender is None or receiver is None or size is None:
        return None
    return sender, receiver, size


def _entry(cells: list[str], columns: tuple[int, int, int]) -> tuple[int, int, float] | None:
    if len(cells) <= max(columns):
        return None
    a, b = (_PE.fullmatch(cells[k]) for k in columns[:2])
    try:
        size = float(cells[columns[2]].replace(",", ""))
    except ValueError:
        return None
    return (int(a[1]), int(b[1]), size) if a and b else None
