# SPDX-License-Identifier: Apache-2.0
"""How many nodes will be free at which time, according to the time limits of jobs.

A step function: `free[k]` nodes from `times[k]` on, for the first `size` entries of the arrays.
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
        self.times: Floats = np.array([now, *times])
        self.free: Ints = np.cumsum([free, *map(freed.__getitem__, times)], dtype=np.int64)
        self.size = len(self.times)

    def _grow(self, more: int) -> None:
        """Make room for more steps."""
        if self.size + more > len(self.times):
            room = np.zeros(self.size + 2 * more)
            self.times = np.concatenate([self.times, room])
            self.free = np.concatenate([self.free, room.astype(np.int64)])

    def advance(self, now: float) -> None:
        """Forget what lies before now."""
        first = max(0, int(np.searchsorted(self.times[: self.size], now, "right")) - 1)
        self.times, self.free = self.times[first:], self.free[first:]
        self.size -= first
        self.times[0] = now

    def fits(self, count: int, until: float) -> bool:
        """Return whether this many nodes are free from now until then."""
        return bool(_fits(self.times, self.free, self.size, count, until))

    def earliest(self, count: int, lasting: float, after: float = -math.inf) -> float:
        """Return the first time from `after` on at which this many nodes stay free that long."""
        return float(_earliest(self.times, self.free, self.size, count, lasting, after))

    def take(self, begin: float, end: float, count: int) -> None:
        """Take this many nodes from `begin` to `end`."""
        self._grow(2)
        self.size = int(_take(self.times, self.free, self.size, begin, end, count))

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
        done, size, first = _reserve(
            self.times, self.free, self.size, counts, limits, bound, left, barrier, spare,
            resolution,
        )  # fmt: skip
        self.size = int(size)
        return int(done), float(first)


@kernel
def _round_up(time: float, resolution: float) -> float:
    return np.ceil(time / resolution) * resolution if resolution > 0 else time


@kernel
def _fits(times: Floats, free: Ints, size: int, count: int, until: float) -> bool:
    at = 0
    while at < size and times[at] < until:
        if free[at] < count:
            return False
        at += 1
    return True


@kernel
def _earliest(
    times: Floats, free: Ints, size: int, count: int, lasting: float, after: float
) -> float:
    at = int(np.searchsorted(times[:size], after))
    if at > 0 and (at == size or times[at] > after):
        at -= 1
    begin = end = np.inf
    while at < size and times[at] < end:
        if free[at] < count:
            begin = end = np.inf
        elif begin == np.inf:
            begin = max(times[at], after)
            end = begin + lasting
        at += 1
    return begin


@kernel
def _cut(times: Floats, free: Ints, size: int, time: float) -> tuple[int, int]:
    """Return the step that begins at `time`, made if need be, and the number of steps."""
    at = int(np.searchsorted(times[:size], time))
    if at < size and times[at] == time:
        return at, size
    for k in range(size, at, -1):
        times[k] = times[k - 1]
        free[k] = free[k - 1]
    times[at] = time
    if at > 0:
        free[at] = free[at - 1]
    return at, size + 1


@kernel
def _take(times: Floats, free: Ints, size: int, begin: float, end: float, count: int) -> int:
    first, size = _cut(times, free, size, begin)
    last, size = _cut(times, free, size, end)
    for at in range(first, last):
        free[at] -= count
    return size


@kernel
def _reserve(
    times: Floats, free: Ints, size: int, counts: Ints, limits: Floats, bound: Mask, left: int,
    barrier: float, spare: bool, resolution: float,
) -> tuple[int, int, float]:  # fmt: skip
    for k in range(len(counts)):
        now, count, limit = times[0], counts[k], limits[k]
        end = _round_up(now + limit, resolution)
        may = count <= left and (end <= barrier or (spare and _fits(times, free, size, count, end)))
        if bound[k] or may:
            return k, size, barrier
        after = times[1] if count <= left and size > 1 else now
        begin = _earliest(times, free, size, count, limit, after)
        if begin < np.inf:
            barrier = min(barrier, begin)
            end = _round_up(begin + limit, resolution)
            size = _take(times, free, size, begin, end, count)
    return len(counts), size, barrier
