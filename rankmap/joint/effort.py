"""How long a search goes on: so much work, and never past a deadline.

The work is counted, not timed: the same question has the same answer on any
machine. The deadline is for machines so slow that the work takes too long;
where it cuts a search short, that is said. Where nobody names a deadline it
is one of processor time, so that a machine that is busy with other things
gives the same answer, only later.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Told = Callable[[float, str], None]

__all__ = ["DEADLINE", "LONGEST", "Effort"]

#: Seconds of processor time after which a search ends, where nobody says a deadline.
DEADLINE = 8.0

#: Seconds by the clock after which it does in any case.
LONGEST = 60.0

#: How often a part of a search looks at the clock.
LOOKS = 100


class Effort:
    """What a search may still spend.

    Parameters
    ----------
    deadline : float or None
        Seconds from now by the clock; None: `DEADLINE` seconds of processor
        time, `LONGEST` by the clock.
    told : callable or None
        Is told how much of the work is done, 0 to 1, and what is going on.

    Attributes
    ----------
    late : bool
        The deadline came before the work was done.

    Examples
    --------
    >>> one = Effort(60.0)
    >>> one.begin(2, "search")
    >>> one.spend(1), one.spend(1), one.spend(1), one.late
    (True, True, False, False)
    """

    def __init__(self, deadline: float | None = None, told: Told | None = None) -> None:
        self.end = time.monotonic() + (LONGEST if deadline is None else deadline)
        self.spent = time.thread_time() + (DEADLINE if deadline is None else math.inf)
        self.told = told
        self.late = False
        self.work = self.done = self._next = 0.0
        self.span = (0.0, 1.0)
        self.text = ""

    def begin(self, work: float, text: str, span: tuple[float, float] = (0.0, 1.0)) -> None:
        """Begin a part of the search that may spend so much, `span` of the whole."""
        self.work, self.done, self.text, self.span = float(work), 0.0, text, span
        self._next = 0.0
        self._tell()

    def spend(self, work: float, text: str = "") -> bool:
        """Count some work; return whether there was enough left for it."""
        self.done += work
        if self.done >= self._next:
            self._next = self.done + self.work / LOOKS
            self.over()
        if self.late:
            return False
        self.text = text or self.text
        self._tell()
        return self.done <= self.work

    def over(self) -> bool:
        """Return whether the deadline has passed."""
        late = time.monotonic() > self.end or time.thread_time() > self.spent
        self.late = self.late or late
        return self.late

    def _tell(self) -> None:
        if self.told is not None:
            low, high = self.span
            part = min(1.0, self.done / self.work) if self.work else 1.0
            self.told(low + (high - low) * part, self.text)
