# SPDX-License-Identifier: Apache-2.0
"""How many nodes are free at which time to come, as far as the jobs' limits say."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate


class Profile:
    """Nodes that are free from now on, a step function; its few hundred steps are lists."""

    def __init__(self, now: float, free: int, ends: Iterable[tuple[float, int]]) -> None:
        freed: Counter[float] = Counter()
        for end, nodes in ends:
            freed[end] += nodes
        self.times = [now, *sorted(freed)]
        self.free = list(accumulate(map(freed.__getitem__, self.times[1:]), initial=free))

    def advance(self, now: float) -> None:
        """Forget what is over."""
        first = max(0, bisect_right(self.times, now) - 1)
        del self.times[:first], self.free[:first]
        self.times[0] = now

    def fits(self, count: int, until: float) -> bool:
        """Return whether this many nodes are free from now until then."""
        return min(self.free[: bisect_left(self.times, until)], default=count) >= count

    def earliest(self, count: int, lasting: float, after: float = -math.inf) -> float:
        """Return the first time from `after` on at which this many nodes stay free that long."""
        begin = end = math.inf
        for at in range(max(0, bisect_right(self.times, after) - 1), len(self.times)):
            if self.times[at] >= end:
                break
            if self.free[at] < count:
                begin = end = math.inf
            elif begin == math.inf:
                begin = max(self.times[at], after)
                end = begin + lasting
        return begin

    def take(self, begin: float, end: float, count: int) -> None:
        """Take this many nodes from `begin` to `end`."""
        for at in range(self._cut(begin), self._cut(end)):
            self.free[at] -= count

    def _cut(self, time: float) -> int:
        """Return the step that begins then, which is made where none does."""
        at = bisect_left(self.times, time)
        if at == len(self.times) or self.times[at] != time:
            self.times.insert(at, time)
            self.free.insert(at, self.free[max(at - 1, 0)])
        return at
