# SPDX-License-Identifier: Apache-2.0
"""Messages besides the result: remarks and progress, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from nidmap.placement.errors import printable


def say(text: str) -> None:
    """Write a line to stderr, unless ``--quiet``: stdout carries only the result."""
    if not is_quiet():
        warn(text)


def is_quiet() -> bool:
    """Return whether ``--quiet`` was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get("quiet"))


def warn(text: str) -> None:
    """Write a line to stderr even under ``--quiet``: the answer is negative, or not as asked."""
    lines = (printable(line, limit=len(line)) for line in text.split("\n"))
    click.echo("\n".join(lines), err=True)


#: Seconds before a bar is shown.
AFTER = 0.5

#: Width of a full bar, and of the text next to it.
_PARTS, _LETTERS = 100, 40

#: Clears the line, and shows the cursor again, which click's bar hides.
_ERASE = "\r\x1b[K\x1b[?25h"


@contextmanager
def bar(after: float | None = None) -> Iterator[Callable[[float, str], None] | None]:
    """Yield a function that shows progress (0 to 1) and a text; None without a terminal.

    The bar goes to stderr, after this many seconds (None: `AFTER`), and is removed at the end.
    """
    if not sys.stderr.isatty():
        yield None
        return
    begun = time.monotonic()
    shown: list[Any] = []

    def show(done: float, text: str) -> None:
        """Show the progress, once it has taken long enough to be of interest."""
        if not shown:
            if time.monotonic() < begun + (AFTER if after is None else after):
                return
            shown.append(
                click.progressbar(
                    length=_PARTS, file=sys.stderr, width=0, show_eta=False, show_percent=True,
                    item_show_func=lambda item: item,
                )
            )  # fmt: skip
        parts = int(_PARTS * min(max(done, 0.0), 1.0)) - shown[0].pos
        shown[0].update(parts, printable(text, limit=_LETTERS))

    try:
        yield show
    finally:
        if shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
