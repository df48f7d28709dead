# SPDX-License-Identifier: Apache-2.0
"""Planner ``compact``: fewest groups, then chassis, then blades; on a torus fewest hops.

On a torus that is the nodes nearest to a well-chosen router. Elsewhere units are
nested: groups of chassis of blades (or as many levels as a machine has), each
blade with this many free nodes. Wanted are blades with enough nodes that touch as
few groups as possible; among those choices as few chassis; among those as few
blades.

* Fewest groups: the largest.
* Fewest chassis in this many groups: a price is put on a chassis. A group is
  then worth the best of (nodes of its c largest chassis - price x c), and the
  groups of most worth at some price are the choice.
* Fewest blades in this many chassis and groups: b blades of a set hold the
  least of (b t + the sum of (free - t) over its blades with more than t free
  nodes) over t = 0, 1, 2 …, so each t, and each mixture of two of them, gives
  a weight of chassis of which the above makes a choice. Where one needs no more
  blades than the machine's largest would, no other is looked for.

Held against all choices in the tests: of thousands of nests at random it has
found the fewest in every one; nests can be made in which it takes a chassis or
two blades more.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from nidmap.placement.curves import hilbert_key
from nidmap.placement.machine import Machine
from nidmap.placement.planners import Request, free_rows, nested_units, planner
from nidmap.placement.planners.plain import curve_positions
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import sum_boxes

#: Levels above the node that are minimised together.
TOGETHER = 3
#: Pairs of thresholds whose weights are mixed, and the shares.
PAIRS = 12
MIXTURES = ((7, 1), (3, 1), (3, 2), (1, 1), (2, 3), (1, 3), (1, 7), (1, 15), (1, 31))
#: Number of prices per chassis to try for the weights of one mixture.
PRICES = 49

_NEVER = -1e15


@planner("compact")
def compact(machine: Machine, request: Request) -> Ints:
    """Take nodes in the fewest groups, then the fewest chassis, then the fewest blades.

    On a dragonfly no choice of free nodes touches fewer groups; none that
    touches as few groups touches fewer chassis; none that touches as few of
    both fewer blades. On Slingshot the levels are group and switch, on trees
    and fat trees the switches from the outermost level in (as Slurm's tree
    plugin, which first looks for the lowest switch that holds the job). So it
    was in every case that was compared with all choices; levels deeper than
    the three outermost above the node are minimised inside what these chose.

    On a torus it takes nodes that are few hops from each other: those nearest
    to a router, for the router about which the mean number of hops between
    the nodes is least. All routers are tried on tori of up to 512, which
    gives at most twice the least mean possible (S. O. Krumke et al., "Compact
    location problems", Theor. Comput. Sci. 181, 1997; M. A. Bender et al.,
    "Communication-aware processor allocation for supercomputers",
    Algorithmica 50, 2008); on larger ones those about which most nodes are free.

    `request`: included nodes, and what they sit in, count among the fewest. Returns (count,):
    rows in the machine's order; on a torus along the Hilbert curve.
    """
    rows, must = free_rows(request)
    if machine.topology.kind == "torus":
        chosen = _nearest_together(machine, rows, must, request.count)
        return chosen[np.argsort(curve_positions(machine, chosen, hilbert_key), kind="stable")]
    levels = nested_units(machine, rows)
    inside = _choose_members(levels, must, request.count)
    return np.sort(rows[_whole_units(levels[-1], must, inside)[: request.count]])


def _choose_members(levels: list[Ints], must: Mask, count: int) -> Mask:
    """Return the members in the fewest units."""
    together = levels[:TOGETHER]
    parents = [outer[np.unique(inner, return_index=True)[1]] for outer, inner in pairwise(together)]
    units = fewest_units(parents, *_units_held(together[-1], must), count)
    inside = np.isin(together[-1], units)
    for level in levels[TOGETHER:]:
        size, forced = _units_held(np.where(inside, level + 1, 0), must)
        # Members outside have label 0.
        size[0] = 0  # the members outside
        inside &= np.isin(level + 1, largest_units(size, forced, count))
    return inside


def _units_held(level: Ints, must: Mask) -> tuple[Ints, Mask]:
    """Return how many members each unit holds, and which units hold a required one."""
    return np.bincount(level), np.bincount(level, weights=must) > 0


def _whole_units(level: Ints, must: Mask, inside: Mask) -> Ints:
    """Return the members inside: required ones first, then unit by unit, fullest first."""
    members = np.flatnonzero(inside)
    size, forced = _units_held(level[members], must[members])
    unit = level[members]
    order = np.lexsort((unit, -size[unit], ~forced[unit], ~must[members]))
    return members[order]


def fewest_units(parents: list[Ints], size: Ints, must: Mask, need: int) -> Ints:
    """Return innermost units with `need` nodes in the fewest units, outermost level first.

    `parents`: for each of up to three levels but the outermost, from the outside in, the unit
    above each of its units. `size` (units,): free nodes of each innermost unit, at least 1.
    `must` (units,): innermost units that must be taken. `need`: at least 1, at most all nodes
    there are. Returns (k,): those that must be taken first, then by size.
    """
    if not parents:
        return largest_units(size, must, need)
    if len(parents) == 1:
        return fewest_children(parents[0], size, must, need)
    outer, inner = parents
    return _fewest_blades(outer, inner, size, must, need)


def largest_units(size: Ints, must: Mask, need: int) -> Ints:
    """Return the fewest units with `need` nodes: the required ones, then the largest."""
    order = np.lexsort((-size, ~must))
    enough = int(np.searchsorted(np.cumsum(size[order]), need)) + 1
    return order[: max(enough, int(must.sum()))]


def fewest_children(parent: Ints, size: Ints, must: Mask, need: int) -> Ints:
    """Return units with `need` nodes: in the fewest parents, then as few units as possible."""
    held = np.bincount(parent, weights=size).astype(np.int64)
    groups = len(largest_units(held, np.bincount(parent, weights=must) > 0, need))
    # Lagrange: a group with c chassis of weight v(c) is worth max over c of v(c) - price * c. The
    # number of groups is fixed by then; the price that makes the best groups hold just enough nodes
    # gives the fewest chassis.
    prices = np.unique(np.concatenate([[0, 0.5], size, np.arange(min(size.max(), 64))]))
    _, ranking = _price_groups(parent, size, must, prices, groups)
    choices = []
    for chosen in np.unique(np.sort(ranking, axis=1), axis=0):
        inside = np.flatnonzero(np.isin(parent, chosen))
        if size[inside].sum() >= need:
            choices.append(inside[largest_units(size[inside], must[inside], need)])
    return min(choices, key=len)  # the largest groups hold the job, whatever the price


def _price_groups(
    parent: Ints, size: Ints, must: Mask, prices: Floats, groups: int
) -> tuple[Floats, Ints]:
    """Return the value of the best groups at each price per chassis, and these groups.

    `parent` (chassis,): group of each chassis; every group has one. `size` (chassis,): weights.
    `must` (chassis,): chassis that must be taken: they come first in their group, and the group
    must be taken. `prices` (p,). Returns `worth` (p,). Returns `ranking` (p, groups).
    """
    count = np.bincount(parent)
    order = np.lexsort((-size, ~must, parent))
    group = parent[order]
    table = np.zeros((len(count), int(count.max())))
    table[group, np.arange(len(order)) - (np.cumsum(count) - count)[group]] = size[order]
    forced = np.bincount(parent, weights=must)
    chassis = np.arange(1, table.shape[1] + 1)
    lacking = chassis < np.maximum(forced, 1)[:, None]
    # value[g, c - 1] is the weight of the c heaviest chassis of group g, forced ones first;
    # impossible where it has fewer, or where more are forced.
    value = np.where(lacking | (chassis > count[:, None]), _NEVER, np.cumsum(table, axis=1))
    gains = np.full((len(prices), len(count)), _NEVER)
    for c in chassis:
        np.maximum(gains, value[:, c - 1] - c * prices[:, None], out=gains)
    # Groups that must be taken come first, whatever they are worth.
    first = np.argsort(-gains - np.where(forced > 0, 1e14, 0), axis=1, kind="stable")
    ranking = first[:, :groups]
    return np.take_along_axis(gains, ranking, axis=1).sum(axis=1), ranking


def _fewest_blades(outer: Ints, inner: Ints, size: Ints, must: Mask, need: int) -> Ints:
    """Return the fewest blades found in the fewest groups and chassis.

    `outer` (chassis,): group of each chassis. `inner` (blades,): chassis of each blade. `size`,
    `must` (blades,).
    """
    chassis = len(outer)
    held = np.bincount(inner, weights=size, minlength=chassis).astype(np.int64)
    forced = np.bincount(inner, weights=must, minlength=chassis) > 0
    middle = fewest_children(outer, held, forced, need)
    groups = len(np.unique(outer[middle]))
    # b blades of a set hold at most b t + (sum over all its blades of max(size - t, 0)) nodes, for
    # every threshold t: sets of chassis are compared by these sums.
    thresholds = np.concatenate([[0], np.unique(size)[:-1]])
    # nodes beyond t a blade, by chassis; a blade that must be in counts whole
    over = [np.where(must, size, np.maximum(size - t, 0)) for t in thresholds]
    heavy = np.array([np.bincount(inner, w, chassis) for w in over]).astype(np.int64)

    def within(chosen: Ints) -> Ints:
        inside = np.flatnonzero(np.isin(inner, chosen))
        return inside[largest_units(size[inside], must[inside], need)]

    blades = within(middle)
    least = len(largest_units(size, must, need))
    for shares in _mix_weights(len(thresholds)):
        if len(blades) == least:
            break
        weight = shares @ heavy
        prices = np.linspace(0, float(weight.max()), PRICES)
        worth, ranking = _price_groups(outer, weight, forced, prices, groups)
        # The Lagrange dual: least of price * chassis + worth. The best groups lie at that price or
        # next to it.
        best = int(np.argmin(prices * len(middle) + worth))
        near = ranking[max(0, best - 2) : best + 3]
        for some in np.unique(np.sort(near, axis=1), axis=0):
            inside = np.flatnonzero(np.isin(outer, some))
            order = np.lexsort((-weight[inside], ~forced[inside]))
            chosen = inside[order[: len(middle)]]
            if heavy[0][chosen].sum() >= need:
                blades = min(blades, within(chosen), key=len)
    return blades


def _mix_weights(number: int) -> Iterator[Ints]:
    """Yield weightings of the thresholds: each alone, then in pairs."""
    unit = np.eye(number, dtype=np.int64)
    yield from unit[1:]
    pairs = [(j - i, i, j) for i in range(number) for j in range(i + 1, number)]
    for _, i, j in sorted(pairs)[:PAIRS]:
        for a, b in MIXTURES:
            yield a * unit[i] + b * unit[j]


#: Number of routers up to which all are tried as the centre.
ALL = 512
#: Number of centres to try on larger tori for each of the two sizes of neighbourhood.
CENTRES = 32


def _nearest_together(machine: Machine, rows: Ints, must: Mask, count: int) -> Ints:
    """Return rows of a torus with few hops between them.

    `machine`: a torus. `rows` (k,): rows that may be taken, at least `count`. `must` (k,): those
    of them that must be. Returns (count,): in the order of `rows`.
    """
    ball = _Ball(machine, rows, must, count)
    nearest, _ = min(map(ball.around, ball.centres), key=lambda gathered: gathered[1])
    return rows[np.sort(nearest)]


def _ring_hops(extent: int) -> Ints:
    """Return the hops between any two positions on a ring."""
    apart = np.abs(np.arange(extent)[:, None] - np.arange(extent))
    return np.asarray(np.minimum(apart, extent - apart))


class _Ball:
    """The nodes nearest to a centre, for many centres."""

    def __init__(self, machine: Machine, rows: Ints, must: Mask, count: int) -> None:
        self.extents = machine.topology.extents[:-1]
        self.places = machine.coords[rows, :-1].astype(np.int64)
        self.must, self.count = must, count
        self.tie = hilbert_key(self.places, self.extents)
        self.rings = [_ring_hops(extent) for extent in self.extents]
        self.centres = self._centres(machine.topology.extents[-1])

    def _centres(self, nodes: int) -> Ints:
        """Return the routers to try: all of a small torus, else those in the emptiest parts."""
        if np.prod(self.extents) <= ALL:
            return np.unique(self.places, axis=0)
        free = np.zeros(self.extents, dtype=np.int64)
        np.add.at(free, tuple(self.places.T), 1)
        share = len(self.places) / free.size
        centres = [self._freest(free, self.count / density) for density in (nodes, share)]
        return np.unique(np.concatenate(centres), axis=0)

    def _freest(self, free: Ints, routers: float) -> Ints:
        """Return the centres of boxes of about the given size with the most free nodes."""
        # A cube of about as many routers as the job would need.
        side = max(1, round(routers ** (1 / free.ndim)))
        sides = tuple(min(side, extent) for extent in self.extents)
        corners = sum_boxes(free, sides)  # a centre's box begins half a side before it
        near = np.roll(corners, [side // 2 for side in sides], range(free.ndim))
        most = np.argsort(-near, axis=None, kind="stable")[:CENTRES]
        return np.asarray(np.column_stack(np.unravel_index(most, self.extents)))

    def around(self, centre: Ints) -> tuple[Ints, int]:
        """Return the members nearest to a centre, and the total hops between them."""
        hops = np.where(self.must, -1, 0)
        for axis, ring in enumerate(self.rings):
            hops += np.where(self.must, 0, ring[centre[axis]][self.places[:, axis]])
        # The farthest member's hops; of those as far as it the curve decides, so that the answer is
        # compact and the same every time.
        limit = np.partition(hops, self.count - 1)[self.count - 1]
        inside = np.flatnonzero(hops < limit)
        edge = np.flatnonzero(hops == limit)
        edge = edge[np.argsort(self.tie[edge], kind="stable")][: self.count - len(inside)]
        members = np.concatenate([inside, edge])
        between = 0
        for axis, ring in enumerate(self.rings):
            places = np.bincount(self.places[members, axis], minlength=len(ring))
            # Hops add up by axis: the number of pairs at every two places of a ring, times the
            # ring's distance.
            between += int(places @ ring @ places)
        return members, between
