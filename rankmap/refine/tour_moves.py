"""Shorter closed tours by exchanges: 2-opt with lists of near stops, tried again and again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from placement.support.array_types import Ints, Ints32

#: Near stops of each that are tried as its neighbours.
NEAR = 12

#: How often a tour that no exchange shortens is changed and tried again, for so many stops in all.
KICKS, MOST_WORK = 2_000, 500_000

#: Stops at most of each of the two stretches that are swapped then.
KICKED = 30


def improve_tour(hops: Ints32, tour: Ints, least: int = -(1 << 30)) -> Ints:
    """Return a tour that no exchange of two links shortens.

    Exchanges are tried between each stop and the `NEAR` nearest ones, and again after the
    tour was changed at random places, the same ones each time.

    Parameters
    ----------
    hops : int32 (n, n)
        Symmetric.
    tour : int64 (n,)
        A permutation.
    least : int
        A tour of so many hops is taken as it is.

    Examples
    --------
    >>> line = np.abs(np.subtract.outer(np.arange(6), np.arange(6))).astype(np.int32)
    >>> tour = improve_tour(line, np.array([0, 3, 1, 4, 2, 5]))
    >>> int(line[tour, np.roll(tour, -1)].sum())
    10
    """
    if len(tour) < 5:
        return tour
    changing, random = _Tour(hops, tour.tolist()), np.random.default_rng(len(tour))
    if changing.length() > least:
        changing.improve(changing.stops)
    best, shortest = changing.stops.copy(), changing.length()
    for _ in range(min(KICKS, MOST_WORK // len(tour))):
        if shortest <= least:
            break
        changing.improve(changing.kick(random))
        length = changing.length()
        if length > shortest:
            changing.set(best)
        else:
            best, shortest = changing.stops.copy(), length
    return np.array(best)


class _Tour:
    """A tour that is being changed: the stops, and where each stands."""

    def __init__(self, hops: Ints32, stops: list[int]) -> None:
        apart = hops + np.where(np.eye(len(hops), dtype=bool), 1 << 20, 0)
        near = np.argpartition(apart, min(NEAR, len(stops) - 1), axis=1)[:, :NEAR]
        nearest = np.argsort(np.take_along_axis(apart, near, axis=1), axis=1, kind="stable")
        self.near: list[list[int]] = np.take_along_axis(near, nearest, axis=1).tolist()
        self.hops = [memoryview(row) for row in np.ascontiguousarray(hops)]
        self.stops: list[int] = []
        self.place = [0] * len(stops)
        self.set(stops)

    def set(self, stops: list[int]) -> None:
        """Take another tour."""
        self.stops = stops.copy()
        for k, stop in enumerate(stops):
            self.place[stop] = k

    def improve(self, ends: Sequence[int]) -> None:
        """Change the tour until no stop finds an exchange, beginning with some."""
        waiting = deque(ends)
        queued = [False] * len(self.stops)
        for stop in ends:
            queued[stop] = True
        while waiting:
            stop = waiting.popleft()
            queued[stop] = False
            for end in self._exchange(stop):
                if not queued[end]:
                    queued[end] = True
                    waiting.append(end)

    def length(self) -> int:
        """Return the hops of the tour."""
        behind = [*self.stops[1:], self.stops[0]]
        return sum(self.hops[a][b] for a, b in zip(self.stops, behind, strict=True))

    def kick(self, random: np.random.Generator) -> list[int]:
        """Swap two stretches that lie side by side, which no exchange of two links undoes."""
        count = len(self.stops)
        half = min(KICKED, (count - 2) // 2)
        low, cut, rest = random.integers((0, 1, 1), (count, half + 1, half + 1)).tolist()
        both = [self.stops[(low + k) % count] for k in range(cut + rest)]
        left, right = both[:cut], both[cut:]
        ends = [
            self._at(left[0], -1),
            left[0],
            left[-1],
            right[0],
            right[-1],
            self._at(right[-1], 1),
        ]
        self._write(low, right + left)
        return ends

    def _at(self, stop: int, step: int) -> int:
        """Return the stop so many steps behind another."""
        return self.stops[(self.place[stop] + step) % len(self.stops)]

    def _exchange(self, a: int) -> Sequence[int]:
        """Exchange a link of a stop and one of a near stop; return the ends, () for no gain."""
        hops = self.hops
        for step in (1, -1):
            b = self._at(a, step)
            link = hops[a][b]
            for c in self.near[a]:
                gain = link - hops[a][c]
                if gain <= 0:
                    break
                d = self._at(c, step)
                if c != b and d != a and gain + hops[c][d] > hops[b][d]:
                    self._reverse(*((b, c) if step > 0 else (c, b)))
                    return a, b, c, d
        return ()

    def _reverse(self, first: int, last: int) -> None:
        """Reverse the tour from one stop forward to another, or all the rest: the same ring."""
        count = len(self.stops)
        low, high = self.place[first], self.place[last]
        inside = (high - low) % count + 1
        if 2 * inside > count:
            low, high, inside = (high + 1) % count, (low - 1) % count, count - inside
        if low <= high:
            self._write(low, self.stops[low : high + 1][::-1])
        else:
            part = self.stops[low:] + self.stops[: high + 1]
            part.reverse()
            self._write(low, part)

    def _write(self, low: int, part: list[int]) -> None:
        """Put stops into the tour from a place on, round its end where need be."""
        count = len(self.stops)
        for k, stop in enumerate(part, start=low):
            at = k if k < count else k - count
            self.stops[at] = stop
            self.place[stop] = at
