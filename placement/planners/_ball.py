"""Nodes near each other on a torus: those nearest to a well-chosen router."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.curves import hilbert_key

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.support.array_types import Ints, Mask


__all__ = ["nearest_together"]

#: Up to so many routers all are tried as the centre.
ALL = 512
#: Centres tried on larger tori for each of the two sizes of neighbourhood.
CENTRES = 32
#: Times a centre is moved to the middle of what it gathered.
MOVES = 4


def nearest_together(machine: Machine, rows: Ints, must: Mask, count: int) -> Ints:
    """Return rows of a torus with few hops between them.

    Parameters
    ----------
    machine : Machine
        A torus.
    rows : int64 (k,)
        Rows that may be taken, at least `count`.
    must : bool (k,)
        Those of them that must be.
    count : int

    Returns
    -------
    int64 (count,)
        In the order of `rows`.
    """
    ball = _Ball(machine, rows, must, count)
    best, least = ball.around(ball.centres[0])
    for centre in ball.centres[1:]:
        found, hops = ball.around(centre)
        if hops < least:
            best, least = found, hops
    return rows[np.sort(ball.settled(best, least))]


def _ring(extent: int) -> Ints:
    """Return the hops between any two places of a ring."""
    apart = np.abs(np.arange(extent)[:, None] - np.arange(extent))
    return np.asarray(np.minimum(apart, extent - apart))


class _Ball:
    """The nodes nearest to a centre, for many centres.

    Parameters
    ----------
    machine : Machine
    rows, must, count
        As for `nearest_together`.
    """

    def __init__(self, machine: Machine, rows: Ints, must: Mask, count: int) -> None:
        self.extents = machine.topology.extents[:-1]
        self.places = machine.coords[rows, :-1].astype(np.int64)
        self.must, self.count = must, count
        self.tie = hilbert_key(self.places, self.extents)
        self.rings = [_ring(extent) for extent in self.extents]
        self.centres = self._centres(machine.topology.extents[-1])

    def _centres(self, nodes: int) -> Ints:
        """Return the routers to try: all of a small torus, else those in the freest parts."""
        if np.prod(self.extents) <= ALL:
            return np.unique(self.places, axis=0)
        free = np.zeros(self.extents, dtype=np.int64)
        np.add.at(free, tuple(self.places.T), 1)
        share = len(self.places) / free.size
        found = [self._freest(free, self.count / many) for many in (nodes, share)]
        return np.unique(np.concatenate(found), axis=0)

    def _freest(self, free: Ints, routers: float) -> Ints:
        """Return the centres of the boxes of about so many routers that have most free nodes."""
        side = max(1, round(routers ** (1 / free.ndim)))
        near = free
        for axis, extent in enumerate(self.extents):
            near = _window(near, min(side, extent), axis)
        most = np.argsort(-near, axis=None, kind="stable")[:CENTRES]
        return np.asarray(np.column_stack(np.unravel_index(most, self.extents)))

    def around(self, centre: Ints) -> tuple[Ints, int]:
        """Return the members nearest to a centre, and the hops between all of them."""
        hops = np.where(self.must, -1, 0)
        for axis, ring in enumerate(self.rings):
            hops += np.where(self.must, 0, ring[centre[axis]][self.places[:, axis]])
        limit = np.partition(hops, self.count - 1)[self.count - 1]
        inside = np.flatnonzero(hops < limit)
        edge = np.flatnonzero(hops == limit)
        edge = edge[np.argsort(self.tie[edge], kind="stable")][: self.count - len(inside)]
        found = np.concatenate([inside, edge])
        pairs = zip(self._counts(found), self.rings, strict=True)
        return found, sum(int(count @ ring @ count) for count, ring in pairs)

    def _counts(self, found: Ints) -> list[Ints]:
        return [
            np.bincount(self.places[found, axis], minlength=extent)
            for axis, extent in enumerate(self.extents)
        ]

    def settled(self, best: Ints, least: int) -> Ints:
        """Move the centre to the middle of what it gathered while that brings nodes nearer."""
        for _ in range(MOVES):
            counts = self._counts(best)
            middle = [int(np.argmin(r @ c)) for r, c in zip(self.rings, counts, strict=True)]
            found, hops = self.around(np.array(middle))
            if hops >= least:
                break
            best, least = found, hops
        return best


def _window(values: Ints, side: int, axis: int) -> Ints:
    """Return the sums over `side` neighbouring places about each place, round the ring."""
    back = side // 2
    wrapped = np.concatenate([values] * 2, axis=axis)
    total = np.cumsum(wrapped, axis=axis)
    total = np.concatenate([np.zeros_like(np.take(total, [0], axis=axis)), total], axis=axis)
    extent = values.shape[axis]
    start = (np.arange(extent) - back) % extent
    return np.asarray(np.take(total, start + side, axis) - np.take(total, start, axis))
