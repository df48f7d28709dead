# SPDX-License-Identifier: Apache-2.0
"""Planners without a search: first free nodes, random, evenly spread, or along a curve.

``spread`` deals a job over the whole machine, ``level-spread`` over the
smallest level of the network that holds it; ``hilbert`` and ``morton`` take the
tightest stretch of a space-filling curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.curves import hilbert_key, morton_key
from nidmap.placement.machine import Machine
from nidmap.placement.planners import Request, free_rows, nested_units, planner
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.placement.support.arrays import rank_within
from nidmap.placement.topologies import number_coords

if TYPE_CHECKING:
    Key = Callable[[NDArray[np.int32], tuple[int, ...]], Ints]


@planner("nid-order")
def take_first(machine: Machine, request: Request) -> Ints:
    """Take the first free nodes in the machine's order, those to include among them."""
    rows, must = free_rows(request)
    return np.sort(np.concatenate([rows[must], rows[~must][: request.count - int(must.sum())]]))


@planner("random")
def draw_nodes(machine: Machine, request: Request) -> Ints:
    """Draw nodes at random, every set of free nodes being equally likely.

    `request`: `seed` decides the lot; the same seed on the same free nodes draws the same.
    Returns (count,): rows in the machine's order: the nodes are random, their order is not, so
    that a comparison shows what the choice alone costs.
    """
    rows, must = free_rows(request)
    lot = np.random.default_rng(request.seed)
    drawn = lot.choice(rows[~must], request.count - int(must.sum()), replace=False, shuffle=False)
    return np.sort(np.concatenate([rows[must], drawn]))


@planner("spread")
def spread(machine: Machine, request: Request) -> Ints:
    """Spread a job as evenly as possible over the machine.

    The shares of the outermost units (groups; x planes of a torus; leaves of
    a two-level fat tree) differ by one node at most, save where a unit has not
    as many free nodes; among the choices for which that holds the shares of
    the next level (chassis; y lines; …) are evened out in the same way, and so
    on down to blades, routers or leaves.

    Returns (count,): rows in the machine's order.
    """
    rows, must = free_rows(request)
    order = _even_order(nested_units(machine, rows), must)
    return np.sort(rows[order[: request.count]])


@planner("level-spread")
def level_spread(machine: Machine, request: Request) -> Ints:
    """Spread a job evenly within the smallest network level that it fits in.

    Y. Zhang, O. Tuncer, F. Kaplan, K. Olcoz, V. J. Leung and A. K. Coskun,
    "Level-Spread: A New Job Allocation Policy for Dragonfly Networks", IPDPS
    2018: a job that fits into the free nodes of one router goes to the router
    with most free nodes; else, if it fits into one group, to the group with
    most free nodes, over whose routers it is spread in turns; else it is
    spread over all groups in turns. The paper's dragonfly has no chassis.
    Here they are a level of their own (all blades of a chassis are joined
    directly), and the turns go over all levels below the chosen one: groups,
    in each group chassis, in each chassis blades. Of units with equally many
    free nodes the first is taken. Included nodes must all lie in the chosen
    unit. On a torus the levels are router, line and plane of its coordinates;
    on a tree they are its switches.

    Returns (count,): rows in the machine's order.
    """
    rows, must = free_rows(request)
    levels = nested_units(machine, rows)
    depth, unit = _smallest_unit(levels, must, request.count)
    inside = np.arange(len(rows)) if depth == 0 else np.flatnonzero(levels[depth - 1] == unit)
    order = _even_order([level[inside] for level in levels[depth:]], must[inside])
    return np.sort(rows[inside[order[: request.count]]])


@planner("hilbert")
def hilbert(machine: Machine, request: Request) -> Ints:
    """Take the tightest window of free nodes on the Hilbert curve through the machine.

    The curve runs through (x, y, z) on a torus, the nodes of a router
    together; through (group, chassis, blade, node) on a dragonfly, (group,
    switch, node) on Slingshot; along the leaves on trees and fat trees. Of all
    stretches of as many free nodes as wanted it takes the one that spans the
    fewest places of the curve, busy and absent ones counted; of several the
    first.

    On a dragonfly a level is only the same or different: group 3 is no nearer
    to group 4 than to group 9. What the curve means there is that nodes near
    each other on it share most of their coordinates, and that the differing
    ones take few values: a stretch of n nodes lies in about n^(1/4) groups,
    as many chassis of each, and so on, a small copy of the whole dragonfly. Where
    few groups count for more, take `hilbert-groups`.

    `request`: included nodes belong to the set whose span is made least. Returns (count,): rows
    in the order of the curve.
    """
    return _take_along(machine, request, hilbert_key)


@planner("morton")
def morton(machine: Machine, request: Request) -> Ints:
    """Take the tightest window of free nodes on the Morton curve through the machine.

    As `hilbert`, on the Morton curve (Z order): simpler, with jumps.

    Returns (count,): rows in the order of the curve.
    """
    return _take_along(machine, request, morton_key)


@planner("hilbert-groups", kinds=("dragonfly", "dragonfly+"))
def hilbert_groups(machine: Machine, request: Request) -> Ints:
    """Take the tightest window of a Hilbert curve that fills group after group.

    As `hilbert`, with the group outermost: the curve runs through (chassis,
    blade, node) of one group, then of the next.
    """
    return _take_along(machine, request, _group_by_group(hilbert_key))


@planner("morton-groups", kinds=("dragonfly", "dragonfly+"))
def morton_groups(machine: Machine, request: Request) -> Ints:
    """Take the tightest window of a Morton curve that fills group after group.

    As `hilbert_groups`, on the Morton curve.
    """
    return _take_along(machine, request, _group_by_group(morton_key))


def _smallest_unit(levels: list[Ints], must: Mask, count: int) -> tuple[int, int]:
    """Return the deepest level with a unit that fits the job, and its unit with most free nodes.

    Level 0 is the machine.
    """
    for depth in range(len(levels), 0, -1):
        level = levels[depth - 1]
        free = np.bincount(level)
        forced = np.unique(level[must])
        if len(forced) > 1:
            continue
        unit = int(forced[0]) if len(forced) else int(np.argmax(free))
        if free[unit] >= count:
            return depth, unit
    return 0, 0


def _even_order(levels: list[Ints], must: Mask) -> Ints:
    """Return an order of which every prefix is spread as evenly as possible.

    The first n members are, for any n (at least as many as must be taken),
    spread over the outermost units so that the sum of squares of their
    shares is least, among those choices over the units of the next level,
    and so on. It is dealing in turns: each unit has its own such order, and a
    unit's turn comes when its share is the smallest; of several, that one
    whose own next share below is the smallest. What must be taken is dealt
    first and counts in the shares.

    `levels` (k,): units of the members, outermost level first (see
    `nidmap.placement.planners.nested_units`). `must` (k,). Returns (k,).
    """
    shares: list[Ints] = []
    for level in reversed(levels):
        shares.insert(0, rank_within(level, ~must, *shares))
    return np.lexsort((*shares[::-1], ~must))


def _group_by_group(key: Key) -> Key:
    """Return the key of a curve that restarts in each group, one group after another."""

    def grouped(coords: NDArray[np.int32], extents: tuple[int, ...]) -> Ints:
        return coords[:, 0] * np.int64(math.prod(extents[1:])) + key(coords[:, 1:], extents[1:])

    return grouped


def _take_along(machine: Machine, request: Request, key: Key) -> Ints:
    rows, must = free_rows(request)
    place = curve_positions(machine, rows, key)
    order = np.argsort(place, kind="stable")
    taken = _tightest_window(place[order], must[order], request.count)
    return rows[order[taken]]


def curve_positions(machine: Machine, rows: Ints, key: Key) -> Ints:
    """Return the positions of rows along a curve through the machine.

    `rows` (k,). `key`: `nidmap.placement.curves.hilbert_key` or `morton_key`. Returns (k,).
    """
    coords = machine.coords[rows]
    extents = machine.topology.extents
    kind = machine.topology.kind
    if kind.startswith("dragonfly"):
        return key(coords, extents)
    if kind == "torus":
        return key(coords[:, :-1], extents[:-1]) * extents[-1] + coords[:, -1]
    return number_coords(coords, extents)


def _tightest_window(place: Ints, must: Mask, count: int) -> Ints:
    """Return which sorted positions to take: the smallest span with all required ones.

    What need not be in is one run among its like: of runs that give the same
    span and start with what must be in, the one least long itself.
    """
    fixed, others = np.flatnonzero(must), np.flatnonzero(~must)
    more = count - len(fixed)
    if more == 0:
        return fixed
    low = place[others[: len(others) - more + 1]]
    high = place[others[more - 1 :]]
    start = np.minimum(low, place[fixed].min(initial=place[-1]))
    end = np.maximum(high, place[fixed].max(initial=0))
    first = int(np.lexsort((high - low, start, end - start))[0])
    return np.sort(np.concatenate([fixed, others[first : first + more]]))
