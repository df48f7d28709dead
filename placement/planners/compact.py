"""Planner ``compact``: fewest groups, then chassis, then blades; on a torus fewest hops.

On a torus that is the nodes nearest to a well-chosen router.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from placement.curves import hilbert_key
from placement.planners import planner
from placement.planners._fewest import fewest, largest
from placement.planners._units import free_rows, nested_units
from placement.planners.curve import curve_positions

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.request import Request
    from placement.support.array_types import Ints, Mask

__all__ = ["compact", "nearest_together"]

#: Levels above the node that are minimised together.
TOGETHER = 3


@planner("compact")
def compact(machine: Machine, request: Request) -> Ints:
    """Take nodes in the fewest groups, then the fewest chassis, then the fewest blades.

    On a dragonfly no choice of free nodes touches fewer groups; none that
    touches as few groups touches fewer chassis; none that touches as few of
    both fewer blades. On Slingshot the levels are group and switch, on trees
    and fat trees the switches from the outermost level in (as Slurm's tree
    plugin, which first looks for the lowest switch that holds the job). So it
    was in every case that was held against all choices; levels deeper than
    the three outermost above the node are minimised inside what these chose.

    On a torus it takes nodes that are few hops from each other: those nearest
    to a router, for the router about which the mean number of hops between
    the nodes is least. All routers are tried on tori of up to 512, which
    gives at most twice the least mean possible (S. O. Krumke et al., "Compact
    location problems", Theor. Comput. Sci. 181, 1997; M. A. Bender et al.,
    "Communication-aware processor allocation for supercomputers",
    Algorithmica 50, 2008); on larger ones those about which most nodes are free.

    Parameters
    ----------
    machine : Machine
    request : Request
        Included nodes, and what they sit in, count among the fewest.

    Returns
    -------
    int64 (count,)
        Rows in the machine's order; on a torus along the Hilbert curve.

    Raises
    ------
    PlanError
        Where too few nodes are free.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from placement.request import Request
    >>> machine = parse_spec("dragonfly:groups=2,chassis=2,blades=2,nodes=2")
    >>> free = machine.free.copy()
    >>> free[[0, 4]] = False
    >>> compact(machine, Request(count=4, free=free)).tolist()
    [8, 9, 10, 11]
    """
    rows, must = free_rows(request)
    if machine.topology.kind == "torus":
        chosen = nearest_together(machine, rows, must, request.count)
        return chosen[np.argsort(curve_positions(machine, chosen, hilbert_key), kind="stable")]
    levels = nested_units(machine, rows)
    inside = _choose_members(levels, must, request.count)
    return np.sort(rows[_whole_units(levels[-1], must, inside)[: request.count]])


def _choose_members(levels: list[Ints], must: Mask, count: int) -> Mask:
    """Return the members in the fewest units."""
    together = levels[:TOGETHER]
    parents = [_above(inner, outer) for outer, inner in pairwise(together)]
    units = fewest(parents, *_units_held(together[-1], must), count)
    inside = np.isin(together[-1], units)
    for level in levels[TOGETHER:]:
        size, forced = _units_held(np.where(inside, level + 1, 0), must)
        size[0] = 0  # all that is outside
        inside &= np.isin(level + 1, largest(size, forced, count))
    return inside


def _above(inner: Ints, outer: Ints) -> Ints:
    """Return the unit above each unit of the inner level."""
    above = np.zeros(int(inner.max()) + 1, dtype=np.int64)
    above[inner] = outer
    return above


def _units_held(level: Ints, must: Mask) -> tuple[Ints, Mask]:
    """Return how many members each unit holds, and which holds one that must be taken."""
    return np.bincount(level), np.bincount(level, weights=must) > 0


def _whole_units(level: Ints, must: Mask, inside: Mask) -> Ints:
    """Return the members inside, what must be taken first, then unit by unit, the fullest first."""
    members = np.flatnonzero(inside)
    size, forced = _units_held(level[members], must[members])
    unit = level[members]
    order = np.lexsort((unit, -size[unit], ~forced[unit], ~must[members]))
    return members[order]


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
