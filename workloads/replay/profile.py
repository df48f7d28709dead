# SPDX-License-Identifier: Apache-2.0
"""How many nodes are free at which time to come, as far as the jobs' limits say."""

from __future__ import annotations

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints


class Profile:
    """Nodes that are free from now on, a step function."""

    def __init__(self, now: float, free: int, ends: Floats, nodes: Ints) -> None:
        order = np.argsort(ends, kind="stable")
        self.times: Floats = np.concatenate([[now], ends[order]])
        self.free: Ints = free + np.concatenate([[0], np.cumsum(nodes[order])])

    def advance(self, now: float) -> None:
        """Forget what is over."""
        first = int(np.searchsorted(self.times, now, "right")) - 1
        if first > 0:
            self.times, self.free = self.times[first:].copy(), self.free[first:].copy()
        self.times[0] = now

    def fits(self, count: int, until: float) -> bool:
        """Return whether this many nodes are free from now until then."""
        last = int(np.searchsorted(self.times, until, "left"))
        return int(self.free[:last].min(initial=count)) >= count

    def earliest(self, count: int, lasting: float, after: float = -np.inf) -> float:
        """Return the first time from `after` on at which this many nodes stay free that long."""
        times, enough = self.times, self.free >= count
        at = max(0, int(np.searchsorted(times, after, "right")) - 1)
        while at < len(enough):
            at += int(enough[at:].argmax())
            begin = max(float(times[at]), after)
            last = int(np.searchsorted(times, begin + lasting, "left"))
            span = enough[at:last]
            short = int(span.argmin()) if len(span) else 0
            if enough[at] and (not len(span) or span[short]):
                return begin
            if not enough[at]:
                break
            at += short
        return float("inf")

    def take(self, begin: float, end: float, count: int) -> None:
        """Take this many nodes from `begin` to `end`."""
        first, last = self._cut(begin), self._cut(end)
        self.free[first:last] -= count

    def _cut(self, time: float) -> int:
        """Return the step that begins then, which is made where none does."""
        at = int(np.searchsorted(self.times, time, "left"))
        if at == len(self.times) or self.times[at] != time:
            times, free = self.times, self.free
            self.times = np.concatenate((times[:at], (time,), times[at:]))
            self.free = np.concatenate((free[:at], free[max(at - 1, 0) : max(at, 1)], free[at:]))
        return at
