# SPDX-License-Identifier: Apache-2.0
"""How many nodes will be free at which time, according to the time limits of jobs.

A step function: `free[k]` nodes from `times[k]` on, until `times[k + 1]`. Steps at an infinite time
are room for more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints
from nidmap.rankmap.refine.jit import kernel


class Profile:
    """The number of free nodes over time, from now on."""

    def __init__(self, now: float, free: int, ends: Iterable[tuple[float, int]]) -> None:
        freed: Counter[float] = Counter()
        for end, nodes in ends:
            freed[end] += nodes
        times = sorted(freed)
        self.times: Floats = np.array([now, *times, math.inf])
        counts = [free, *map(freed.__getitem__, times), 0]
        self.free: Ints = np.cumsum(counts, dtype=np.int64)

    def _grow(self) -> None:
        """Make room for two more steps, and one to end with."""
        if len(self.times) < 3 or self.times[-3] < math.inf:
            size = len(self.times)
            self.times = np.append(self.times, np.full(size, math.inf))
            self.free = np.append(self.free, np.zeros(size, dtype=np.int64))

    def advance(self, now: float) -> None:
        """Forget what lies before now."""
        first = max(0, int(np.searchsorted(self.times, now, "right")) - 1)
        self.times, self.free = self.times[first:], self.free[first:]
        self.times[0] = now

    def fits(self, count: int, until: float) -> bool:
        """Return whether this many nodes are free from now until then."""
        return bool(_fits(self.times, self.free, count, until))

    def earliest(self, count: int, lasting: float, after: float = -math.inf) -> float:
        """Return the first time from `after` on at which this many nodes stay free that long."""
        return float(_earliest(self.times, self.free, count, lasting, after))

    def take(self, begin: float, end: float, count: int) -> None:
        """Take this many nodes from `begin` to `end`."""
        self._grow()
        _take(self.times, self.free, begin, end, count)


@kernel
def _fits(times: Floats, free: Ints, count: int, until: float) -> bool:
    at = 0
    while times[at] < until:
        if free[at] < count:
            return False
        at += 1
    return True


@kernel
def _earliest(times: Floats, free: Ints, count: int, lasting: float, after: float) -> float:
    at = int(np.searchsorted(times, after))
    if at > 0 and times[at] > after:
        at -= 1
    begin = end = np.inf
    while times[at] < end:
        if free[at] < count:
            begin = end = np.inf
        elif begin == np.inf:
            begin = max(times[at], after)
            end = begin + lasting
        at += 1
    return begin


@kernel
def _cut(times: Floats, free: Ints, time: float) -> int:
    """Return the step that begins at `time`, made if need be."""
    at = int(np.searchsorted(times, time))
    if times[at] > time:
        for k in range(len(times) - 1, at, -1):
            times[k] = times[k - 1]
            free[k] = free[k - 1]
        times[at] = time
        if at > 0:
            free[at] = free[at - 1]
    return at


@kernel
def _take(times: Floats, free: Ints, begin: float, end: float, count: int) -> None:
    first = _cut(times, free, begin)
    for at in range(first, _cut(times, free, end)):
        free[at] -= count
