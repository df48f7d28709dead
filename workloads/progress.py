# SPDX-License-Identifier: Apache-2.0
"""One line that shows the progress of a long run, on rank 0 and terminals only.

Ranks write through their launcher's pipes, so that a terminal is seen only by
the process that started them: it says so in the environment.
"""

from __future__ import annotations

import os
import sys
import time

#: Set to 1 for ranks whose words reach a terminal.
TERMINAL = "NIDMAP_BENCH_TERMINAL"

#: Seconds before anything is shown, and between two lines.
_PATIENCE, _EVERY = 1.0, 0.2


class Progress:
    """A line on stderr that is overwritten, and removed at the end.

    `shown`: False on all ranks but one.
    """

    def __init__(self, title: str, total: int, shown: bool = True) -> None:
        self.title, self.total = title, total
        self.shown = shown and (sys.stderr.isatty() or os.environ.get(TERMINAL) == "1")
        self.began = self.last = time.monotonic()
        self.wrote = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self.wrote:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def at(self, done: int) -> None:
        """Show that this many steps are done."""
        now = time.monotonic()
        if not self.shown or now - self.began < _PATIENCE or now - self.last < _EVERY:
            return
        self.last, self.wrote = now, True
        sys.stderr.write(f"\r\x1b[K{self.line(done, now - self.began)}")
        sys.stderr.flush()

    def line(self, done: int, seconds: float) -> str:
        """Return the line for this many steps in this many seconds."""
        left = seconds / done * (self.total - done) if done else 0.0
        spent = f"{seconds:.0f} s, about {left:.0f} s left"
        return f"{self.title[:60]}: {done} of {self.total}, {spent}"
