"""A progress bar on a terminal's stderr, for what takes more than a second."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    one = _Bar()
    try:
        yield one.tell
    finally:
        one.close()


class _Bar:
    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.shown: Any = None
        self.task: Any = None

    def tell(self, done: float, text: str) -> None:
        """Show how much is done, from the first moment that a person would wonder."""
        if self.shown is None:
            if time.monotonic() < self.begun + AFTER:
                return
            self._open()
        self.shown.update(self.task, completed=done, description=text)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self.shown = Progress(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.shown.add_task("", total=1.0)
        self.shown.start()

    def close(self) -> None:
        """Take the bar away."""
        if self.shown is not None:
            self.shown.stop()
