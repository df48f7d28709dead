# SPDX-License-Identifier: Apache-2.0
"""Tables as text, and for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence

from nidmap.placement.errors import printable


def align_columns(table: Sequence[Sequence[object]], left: Collection[int] = (0,)) -> str:
    """Align rows in columns, escaping control characters.

    `left`: the columns of words, aligned to the left; the others are numbers, aligned to the
    right.
    """
    rows = [[printable(str(cell), limit=200) for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        "  ".join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        + "\n"
        for row in rows
    )


def csv_table(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV in which a spreadsheet finds no formulas."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(harmless_cell, row) for row in rows)
    return out.getvalue()


def harmless_cell(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula, since others wrote it."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value
