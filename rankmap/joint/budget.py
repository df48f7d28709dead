"""How long a search goes on: so much work, never past a deadline, and until somebody stops it.

The work is counted, not timed: the same question has the same answer on any
machine. The deadline is for machines so slow that the work takes too long;
where it cuts a search short, that is said. Where nobody names a deadline it
is one of processor time, so that a machine that is busy with other things
gives the same answer, only later.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NamedTuple

from rankmap.joint.tuning import TUNING

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.support.array_types import Ints

__all__ = ["DEADLINE", "LONGEST", "Budget", "Moment"]

#: Seconds of processor time after which a search ends, where nobody says a deadline.
DEADLINE = 8.0

#: Seconds by the clock after which it does in any case.
LONGEST = 60.0


class Moment(NamedTuple):
    """What a watcher of a search is told.

    Attributes
    ----------
    share : float
        Of the work that is done, 0 to 1; it never falls.
    text : str
        What is going on.
    best_s : float
        Least predicted time so far; inf before the first.
    best : int64 (n,) or None
        The nodes that have it, as rows of the machine.
    """

    share: float
    text: str
    best_s: float
    best: Ints | None


class Budget:
    """What a search may still spend.

    Parameters
    ----------
    deadline : float or None
        Seconds from now by the clock; None: `DEADLINE` seconds of processor
        time, `LONGEST` by the clock.
    seconds : float
        Of processor time that there are at most, and no more work than is done in them.
    watch : callable or None
        Is told each `Moment`; where it returns True the search ends, and the
        best so far is its answer.

    Attributes
    ----------
    work : float
        us of the whole search.
    late, stopped : bool
        Whether the deadline, or the watcher, came before the work was done.

    Examples
    --------
    >>> one = Budget(60.0)
    >>> one.part(0.5, "node sets")
    >>> half = TUNING.budget / 2
    >>> one.spend(half), one.spend(1), one.late
    (True, False, False)
    """

    def __init__(
        self,
        deadline: float | None = None,
        watch: Callable[[Moment], bool | None] | None = None,
        seconds: float = math.inf,
    ) -> None:
        self.end = time.monotonic() + (LONGEST if deadline is None else deadline)
        usual = DEADLINE if deadline is None else math.inf
        self.end_cpu = time.thread_time() + min(usual, seconds)
        self.work = min(TUNING.budget, seconds * 1e6)
        self.watch = watch
        self.late = self.stopped = False
        self.best_s = math.inf
        self.best: Ints | None = None
        self.text = ""
        self.done = self.limit = self.look = 0.0
        self.begun = self.share = 0.0

    def part(self, share: float, text: str, least: float = 0.0) -> None:
        """Begin a part that may spend a share of the whole, and at least so many us."""
        self.begun += self.share
        self.share, self.text = share, text
        self.done, self.limit, self.look = 0.0, max(share * self.work, least), 0.0
        self._tell()

    def spend(self, us: float, text: str = "") -> bool:
        """Count some work; return whether there was enough left for it."""
        self.done += us
        if self.done >= self.look:
            self.look = self.done + self.limit / 100  # processor time is a system call
            late = time.monotonic() > self.end or time.thread_time() > self.end_cpu
            self.late = self.late or late
        if self.ended:
            return False
        self.text = text or self.text
        self._tell()
        return self.done <= self.limit

    @property
    def ended(self) -> bool:
        """Whether the deadline or the watcher has ended the search."""
        return self.late or self.stopped

    def note(self, seconds: float, rows: Ints) -> None:
        """Remember the best so far."""
        self.best_s, self.best = seconds, rows

    def _tell(self) -> None:
        if self.watch is not None and not self.stopped:
            part = min(1.0, self.done / self.limit) if self.limit else 1.0
            share = min(1.0, self.begun + self.share * part)
            now = Moment(share, self.text, self.best_s, self.best)
            self.stopped = bool(self.watch(now))
