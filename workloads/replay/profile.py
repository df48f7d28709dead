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
        """Return whether so many nodes are free from now until then."""
        last = int(np.searchsorted(self.times, until, "left"))
        return int(self.free[:last].min(initial=count)) >= count

    def earliest(self, count: int, lasting: float, after: float = -np.inf) -> float:
        """Return the first time, not before `after`, from which so many nodes are free so long."""
        enough = self.free >= count
        enough[: max(0, int(np.searchsorted(self.times, after, "right")) - 1)] = False
        short = np.append(np.flatnonzero(~enough), len(enough))
        starts = np.flatnonzero(enough)
        ends = np.append(self.times, np.inf)[short[np.searchsorted(short, starts)]]
        begin = np.maximum(self.times[starts], after)
        fitting = np.flatnonzero(ends >= begin + lasting)
        return float(begin[fitting[0]]) if len(fitting) else float("inf")

    def take(self, begin: float, end: float, count: int) -> None:
        """Take so many nodes from `begin` to `end`."""
        first, last = self._cut(begin), self._cut(end)
        self.free[first:last] -= count

    def _cut(self, time: float) -> int:
        """Return the step that begins then, which is made where none does."""
        at = int(np.searchsorted(self.times, time, "left"))
        if at == len(self.times) or self.times[at] != time:
            self.times = np.insert(self.times, at, time)
            self.free = np.insert(self.free, at, self.free[at - 1] if at else self.free[0])
        return at
