# SPDX-License-Identifier: Apache-2.0
"""Nodes in the order of their switches, and the ring through them with the fewest hops.

Two questions of a list of nodes whose ranks talk to the next one in the list:

*Sorted.* Nodes of a switch are in a row, switches of a group too, and so on up. The block
that is named first comes first: the first node stays the first.

*Ring.* A closed tour, the sum of hops from each node to the next being least. What that is:

- Where the levels alone decide how far two nodes are (trees, fat trees), the sorted list is one.
  Any ring enters each of the b > 1 blocks of a level that the nodes touch, so at least b of its
  hops cross that level; the sorted list crosses it exactly b times, at all levels at once, and
  a step's hops are a sum over the levels that it crosses.
- For up to `EXACT` nodes or routers, dynamic programming over the sets of those visited
  (Held and Karp, 1962).
- For up to `MOST_ROUTERS` a tour that no exchange of two links shortens (2-opt), tried again from
  changed ones, next to a bound that no ring is below.
- For more the sorted list: along a torus' Hilbert curve, or group by group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nidmap.placement.curves import hilbert_key
from nidmap.placement.support.array_types import Ints, Ints32
from nidmap.rankmap.score.distance import Distance, Levels, TorusDistance

#: Nodes, or routers, up to which the shortest ring is found by looking at all of them.
EXACT = 12

#: Number of routers up to which all pairwise hops are computed; a longer ring is the sorted list.
MOST_ROUTERS = 4096

#: Near stops of each that are tried as its neighbours.
NEAR = 12

#: How often a tour that no exchange shortens is changed and retried, for this many stops.
KICKS, MOST_WORK = 2_000, 500_000

#: Stops at most of each of the two stretches that are swapped then.
KICKED = 30


class Tour(NamedTuple):
    """A closed tour."""

    order: Ints  # (n,), the nodes as indices of the input; the first one stays first
    hops: int  # from each to the next and from the last to the first
    least: int  # no ring has fewer


def sort_nodes(distance: Distance) -> Ints:
    """Return nodes in the order of their switches, on a torus along a Hilbert curve.

    `distance`: between the nodes as they are listed.
    """
    if isinstance(distance, TorusDistance):
        return np.argsort(hilbert_key(distance.coords, distance.extents), kind="stable")
    return sort_by_blocks(distance.blocks)


def sort_by_blocks(blocks: Ints) -> Ints:
    """Return rows with each block's contiguous at all levels, the first-listed block first.

    `blocks` (n, k): nested blocks, the innermost first.
    """
    named = []
    for column in blocks.T:
        _, first, block = np.unique(column, return_index=True, return_inverse=True)
        named.append(first[block.reshape(-1)])
    # The last key counts most: the outermost blocks, in the order in which they are first named.
    return np.lexsort(named)


def ring_length(distance: Distance, order: Ints) -> int:
    """Return the hops from each node to the next, and from the last back to the first."""
    return int(distance.hops(order, np.roll(order, -1)).sum())


def shortest_ring(distance: Distance) -> Tour:
    """Return a closed tour of all nodes with few hops, the fewest in the cases named above.

    `distance`: between the nodes as they are listed.
    """
    count = len(distance)
    if isinstance(distance, Levels):
        order = sort_by_blocks(distance.blocks)
        return _close_tour(distance, order, ring_length(distance, order))
    if count <= EXACT:
        order = _tour_by_sets(_all_hops(distance))
        return _close_tour(distance, order, ring_length(distance, order))
    # The nodes of a router are next to each other in some shortest ring: only routers are left to
    # order.
    start = sort_nodes(distance)
    _, first, router = np.unique(distance.blocks[:, 0], return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    router = place[router.reshape(-1)]
    reduced = distance.take(np.sort(first))
    stops, least = _ring_of_routers(reduced, router[start])
    rank = np.argsort(stops)
    order = np.argsort(rank[router], kind="stable")
    return _close_tour(distance, order, least)


def _close_tour(distance: Distance, order: Ints, least: int) -> Tour:
    """Return a tour that starts with the node listed first."""
    order = np.roll(order, -int(np.argmin(order)))
    return Tour(order, ring_length(distance, order), least)


def _ring_of_routers(distance: Distance, walked: Ints) -> tuple[Ints, int]:
    """Return a ring through routers, and a lower bound.

    `distance`: between the routers. `walked` (n,): routers of the nodes in a good order.
    """
    count = len(distance)
    if count == 1:
        return np.zeros(1, dtype=np.int64), 0
    routers, first = np.unique(walked, return_index=True)
    start = routers[np.argsort(first)]
    if count > MOST_ROUTERS:
        return start, count  # one hop to each: nothing is shorter
    hops = _all_hops(distance)
    if count <= EXACT:
        order = _tour_by_sets(hops)
        # Two stops at a router pay nothing where no detour is shorter than the direct way.
        proved = isinstance(distance, TorusDistance)
        return order, ring_length(distance, order) if proved else _least_hops(hops)
    least = _least_hops(hops)
    return improve_tour(hops, start, least), least


def _all_hops(distance: Distance) -> Ints32:
    nodes = np.arange(len(distance))
    return np.asarray(distance.hops(nodes[:, None], nodes), dtype=np.int32)


def _least_hops(hops: Ints32) -> int:
    """Return a lower bound on rings: each router has two distinct nearest neighbours."""
    apart = hops + np.where(np.eye(len(hops), dtype=bool), np.iinfo(np.int32).max // 2, 0)
    if len(hops) == 2:
        return 2 * int(apart[0, 1])
    nearest = np.partition(apart, 1, axis=1)[:, :2]
    # Every link of a ring is counted at both of its ends: half the sum, rounded up.
    return -(-int(nearest.sum()) // 2)


def _tour_by_sets(hops: Ints32) -> Ints:
    """Return a shortest closed tour, by dynamic programming over all sets of stops."""
    count = len(hops)
    if count < 4:
        return np.arange(count)
    last = count - 1  # the tour begins and ends there
    far = np.iinfo(np.int64).max // 4
    # Held and Karp: ways[S, k] is the length of the shortest path from the last stop through all of
    # the set S that ends at k; ways[S, k] = min over j in S - k of ways[S - k, j] + hops[j, k].
    ways = np.full((1 << last, last), far)
    before = np.zeros((1 << last, last), dtype=np.int8)
    ways[1 << np.arange(last), np.arange(last)] = hops[last, :last]
    for visited in range(1, 1 << last):
        inside = [stop for stop in range(last) if visited >> stop & 1]
        if len(inside) < 2:
            continue
        rests = visited & ~(1 << np.array(inside))
        lengths = ways[rests] + hops[:last, inside].T
        before[visited, inside] = np.argmin(lengths, axis=1)
        ways[visited, inside] = lengths.min(axis=1)
    visited = (1 << last) - 1
    stop = int(np.argmin(ways[visited] + hops[:last, last]))
    tour = [last]
    # Back through the sets: before[S, k] is the j that was least.
    while visited:
        tour.append(stop)
        visited, stop = visited & ~(1 << stop), int(before[visited, stop])
    return np.array(tour)


def improve_tour(hops: Ints32, tour: Ints, least: int = -(1 << 30)) -> Ints:
    """Improve a tour until no exchange of two links shortens it.

    Exchanges are tried between each stop and the `NEAR` nearest ones, and again after the
    tour was changed at random places, the same ones each time.

    `hops` (n, n): symmetric. `tour` (n,): a permutation. `least`: a tour of this many hops is taken
    as it is.
    """
    if len(tour) < 5:
        return tour
    changing, random = _Tour(hops, tour.tolist()), np.random.default_rng(len(tour))
    if changing.length() > least:
        changing.improve(changing.stops)
    best, shortest = changing.stops.copy(), changing.length()
    # Iterated local search: a kick that two-link exchanges cannot undo, then only the ends of what
    # it changed are tried again.
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
    """A tour under modification: the stops, and the position of each."""

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
        """Switch to another tour."""
        self.stops = stops.copy()
        for k, stop in enumerate(stops):
            self.place[stop] = k

    def improve(self, ends: Sequence[int]) -> None:
        """Exchange links until no stop has an improving exchange, starting with some."""
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
        """Swap two adjacent segments, which no exchange of two links undoes."""
        count = len(self.stops)
        half = min(KICKED, (count - 2) // 2)
        low, cut, rest = random.integers((0, 1, 1), (count, half + 1, half + 1)).tolist()
        both = [self.stops[(low + k) % count] for k in range(cut + rest)]
        # A double bridge: A B C becomes A C B, with neither stretch reversed.
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

    def _at(self, stop: int, places: int) -> int:
        """Return the stop the given number of positions after another."""
        return self.stops[(self.place[stop] + places) % len(self.stops)]

    def _exchange(self, a: int) -> Sequence[int]:
        """Exchange a link of a stop for one of a nearby stop; return the ends, () for no gain."""
        hops = self.hops
        for way in (1, -1):
            b = self._at(a, way)
            link = hops[a][b]
            for c in self.near[a]:
                # Replacing (a, b) and (c, d) by (a, c) and (b, d). A net gain needs hops(a, c) <
                # hops(a, b) for one of the two links, so near stops in ascending order suffice.
                gain = link - hops[a][c]
                if gain <= 0:
                    break
                d = self._at(c, way)
                if c != b and d != a and gain + hops[c][d] > hops[b][d]:
                    self._reverse(*((b, c) if way > 0 else (c, b)))
                    return a, b, c, d
        return ()

    def _reverse(self, first: int, last: int) -> None:
        """Reverse the tour between two stops, or the rest of it, which gives the same ring."""
        count = len(self.stops)
        low, high = self.place[first], self.place[last]
        inside = (high - low) % count + 1
        # The shorter side: reversing the rest gives the same ring, seen the other way.
        if 2 * inside > count:
            low, high, inside = (high + 1) % count, (low - 1) % count, count - inside
        if low <= high:
            self._write(low, self.stops[low : high + 1][::-1])
        else:
            part = self.stops[low:] + self.stops[: high + 1]
            part.reverse()
            self._write(low, part)

    def _write(self, low: int, part: list[int]) -> None:
        """Write stops into the tour from a position on, wrapping round its end."""
        count = len(self.stops)
        for k, stop in enumerate(part, start=low):
            at = k if k < count else k - count
            self.stops[at] = stop
            self.place[stop] = at
