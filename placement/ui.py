"""What a person sees besides the result: remarks, and how far long work has come, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from nidmap.placement.errors import printable

if TYPE_CHECKING:
    from rich import progress


def say(text: str) -> None:
    """Write one line of talk to stderr, unless ``--quiet``: stdout carries the result only."""
    if not is_quiet():
        warn(text)


def is_quiet() -> bool:
    """Return whether ``--quiet`` was given."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get("quiet"))


def warn(text: str) -> None:
    """Write one line to stderr, under ``--quiet`` too: the answer is no, or another than asked."""
    lines = (printable(line, limit=len(line)) for line in text.split("\n"))
    click.echo("\n".join(lines), err=True)


#: Seconds before a bar is shown.
AFTER = 0.5


@contextmanager
def bar(after: float | None = None) -> Iterator[Callable[[float, str], None] | None]:
    """Yield what is told how much is done (0 to 1) and what is going on; None without a terminal.

    The bar goes to stderr, after so many seconds (None: `AFTER`), and is taken away at the end.
    """
    if not sys.stderr.isatty():
        yield None
        return
    begun, shown = time.monotonic(), None

    def show(done: float, text: str) -> None:
        """Show how much is done, from the first moment that a person would wonder."""
        nonlocal shown
        if shown is None and time.monotonic() >= begun + (AFTER if after is None else after):
            shown = _show_progress()
            shown.start()
        if shown is not None:
            shown.update(shown.task_ids[0], completed=done, description=text)

    try:
        yield show
    finally:
        if shown is not None:
            shown.stop()


def _show_progress() -> progress.Progress:
    from rich import console, progress  # noqa: PLC0415  # most commands end before a bar is shown

    columns = (
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.description}", markup=False),
    )
    shown = progress.Progress(*columns, console=console.Console(stderr=True), transient=True)
    shown.add_task("", total=1.0)
    return shown
