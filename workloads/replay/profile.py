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

from nidmap.placement.support.array_types import Floats, Ints, Mask
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

    def _grow(self, more: int) -> None:
        """Make room for more steps, and one to end with."""
        if len(self.times) <= more or self.times[-more - 1] < math.inf:
            self.times = np.append(self.times, np.full(2 * more, math.inf))
            self.free = np.append(self.free, np.zeros(2 * more, dtype=np.int64))

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
        self._grow(2)
        _take(self.times, self.free, begin, end, count)

    def reserve(
        self, counts: Ints, limits: Floats, bound: Mask, left: int, barrier: float,
        spare: bool, resolution: float,
    ) -> tuple[int, float]:  # fmt: skip
        """Reserve nodes for waiting jobs, up to the first that might start now or is bound.

        `counts`, `limits`, `bound` (k,): nodes and seconds of each, and whether it is restricted
        to some nodes. `left`: free nodes. `barrier`: begin of the first reservation. Returns how
        many jobs got a reservation, and the begin of the first of all.
        """
        self._grow(2 * len(counts))
        rules = left, barrier, spare, resolution
        done, first = _reserve(self.times, self.free, counts, limits, bound, *rules)
        return int(done), float(first)


@kernel
def _round_up(time: float, resolution: float) -> float:
    return np.ceil(time / resolution) * resolution if resolution > 0 else time


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


@kernel
def _reserve(
    times: Floats, free: Ints, counts: Ints, limits: Floats, bound: Mask, left: int,
    barrier: float, spare: bool, resolution: float,
) -> tuple[int, float]:  # fmt: skip
    for k in range(len(counts)):
        now, count, limit = times[0], counts[k], limits[k]
        end = _round_up(now + limit, resolution)
        may = count <= left and (end <= barrier or (spare and _fits(times, free, count, end)))
        if bound[k] or may:
            return k, barrier
        after = times[1] if count <= left and times[1] < np.inf else now
        begin = _earliest(times, free, count, limit, after)
        if begin < np.inf:
            barrier = min(barrier, begin)
            end = _round_up(begin + limit, resolution)
            _take(times, free, begin, end, count)
    return len(counts), barrier
