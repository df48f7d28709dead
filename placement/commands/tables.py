"""Facts and tables for a person: rich on a terminal, plain text elsewhere."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def aligned(table: Sequence[Sequence[str]]) -> str:
    """Return rows in columns: the first to the left, the others to the right.

    Examples
    --------
    >>> print(aligned([("class", "links"), ("x", "192")]), end="")
    class  links
    x        192
    """
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    out = []
    for row in table:
        cells = [f"{row[0]:<{widths[0]}}"]
        cells += [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        out.append("  ".join(cells).rstrip() + "\n")
    return "".join(out)


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
