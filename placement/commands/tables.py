"""Tables for a person."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from placement.errors import printable

__all__ = ["align_columns"]


def align_columns(table: Sequence[Sequence[object]], left: Collection[int] = (0,)) -> str:
    """Return rows in columns, control characters of foreign text escaped.

    Parameters
    ----------
    table : sequence of rows
    left : collection of int
        The columns that stand to the left, words; the others are numbers and
        stand to the right.

    Examples
    --------
    >>> print(align_columns([("class", "links"), ("x", "192")]), end="")
    class  links
    x        192
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
