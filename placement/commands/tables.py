"""Facts and tables for a person: rich on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from placement.errors import printable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["aligned", "rendered"]


def rendered(
    facts: Sequence[tuple[str, str]], table: Sequence[Sequence[str]], output: str | None
) -> str:
    """Return facts and a table as text, coloured where it goes to a terminal.

    Parameters
    ----------
    facts : sequence of (str, str)
        A word and what is to be said of it.
    table : sequence of rows
        The first is the header; numbers stand to the right.
    output : str or None
        Where it goes; None or ``-`` is stdout.

    Returns
    -------
    str
    """
    if output in (None, "-") and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        return _rich(facts, table)
    width = max(len(word) for word, _ in facts)
    lines = [f"{word:<{width}}  {text}" for word, text in facts]
    return "\n".join(lines) + "\n\n" + aligned(table)


def aligned(table: Sequence[Sequence[object]], left: Collection[int] = (0,)) -> str:
    """Return rows in columns, control characters of foreign text escaped.

    Parameters
    ----------
    table : sequence of rows
    left : collection of int
        The columns that stand to the left, words; the others are numbers and
        stand to the right.

    Examples
    --------
    >>> print(aligned([("class", "links"), ("x", "192")]), end="")
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


def _rich(facts: Sequence[tuple[str, str]], table: Sequence[Sequence[str]]) -> str:
    from io import StringIO

    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    stream = StringIO()
    console = Console(file=stream, force_terminal=True, highlight=False)
    left = Table(box=None, show_header=False, pad_edge=False)
    left.add_column(style="bold")
    left.add_column(overflow="fold")
    for word, text in facts:
        left.add_row(Text(word), Text(text))
    right = Table(box=box.SIMPLE_HEAD)
    for i, word in enumerate(table[0]):
        right.add_column(word, justify="left" if i == 0 else "right")
    for row in table[1:]:
        right.add_row(*map(Text, row))
    console.print(left)
    console.print(right)
    return stream.getvalue()
