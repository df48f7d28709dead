"""A progress bar on a terminal's stderr, for what takes more than a second."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

__all__ = ["bar"]

#: Seconds before a bar is shown.
AFTER = 0.5


@contextmanager
def bar() -> Iterator[Callable[[float, str], None] | None]:
    """Yield what is told how much is done (0 to 1) and what is going on; None without a terminal.

    The bar goes to stderr and is taken away at the end.
    """
    if not sys.stderr.isatty():
        yield None
        return
    begun, shown = time.monotonic(), None

    def show(done: float, text: str) -> None:
        """Show how much is done, from the first moment that a person would wonder."""
        nonlocal shown
        if shown is None and time.monotonic() >= begun + AFTER:
            shown = _progress()
            shown.start()
        if shown is not None:
            shown.update(shown.task_ids[0], completed=done, description=text)

    try:
        yield show
    finally:
        if shown is not None:
            shown.stop()


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}", markup=False))
    shown = Progress(*columns, console=Console(stderr=True), transient=True)
    shown.add_task("", total=1.0)
    return shown
