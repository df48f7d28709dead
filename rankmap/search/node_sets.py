# SPDX-License-Identifier: Apache-2.0
"""Node sets to start from: the planners' choices, and families between packed and spread.

The planners' own answers come first. Between "as packed" and "as spread as can
be" lies a family for each level of the machine: the job spread evenly over the
k freest groups (chassis, leaves …). On tori it is boxes where they are freest,
and the process grid laid on free ones as it is: where the bricks of a process
grid, one per node, make a grid that fits a box of routers, neighbours in the one
are neighbours in the other, and no order of any other set of nodes has shorter
ways. Dimensions may share an axis, then one of them goes in larger steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nidmap.placement import planners
from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.permutation import inverse
from nidmap.placement.planners import Request, nested_units
from nidmap.placement.scheduler.baseline import scheduler_choice
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.arrays import sum_boxes
from nidmap.placement.support.quantities import counted
from nidmap.rankmap.grid.traversal import cells_in
from nidmap.rankmap.search.budget import LIMITS
from nidmap.rankmap.search.rank_orders import brick_shapes

Shape = tuple[int, ...]


def scheduler_nodes(machine: Machine, request: Request) -> Ints | None:
    """Return the scheduler's own choice; None if it would choose nothing."""
    try:
        return scheduler_choice(machine, request)
    except PlanError:
        return None


def node_choices(machine: Machine, request: Request) -> Iterator[tuple[str, Ints]]:
    """Yield the name and the nodes of every planner with its options, and of every family."""
    wanted_planners = [
        (name, name, request) for name in planners.names() if name not in planners.PREDICTING
    ]
    wanted_planners[1:1] = [
        (f"blades --per-blade {most}", "blades", replace(request, per_blade=most))
        for most in range(request.per_blade - 1, 0, -1)
    ]
    for title, name, planner_request in wanted_planners:
        try:
            yield title, planners.find(name)(machine, planner_request)
        except (PlanError, UsageError):
            continue  # does not apply to this machine, or has too few nodes of its kind
    yield from (
        freest_boxes(machine, request)
        if machine.topology.kind == "torus"
        else spread_over_levels(machine, request)
    )


def spread_over_levels(machine: Machine, request: Request) -> Iterator[tuple[str, Ints]]:
    """Yield the job spread over the k emptiest units of each level, for several k."""
    rows = request.rows()
    words = machine.topology.levels
    for depth, unit in enumerate(nested_units(machine, rows)):
        size = np.bincount(unit)
        must = np.isin(rows, request.include)
        forced = np.bincount(unit[must], minlength=len(size)) > 0
        freest = np.lexsort((-size, ~forced))
        for k in _counts_to_try(np.cumsum(size[freest]), request.count, int(forced.sum())):
            within = np.isin(unit, freest[:k])
            yield counted(k, words[depth]), _spread_evenly(machine, request, rows[within])


def _counts_to_try(room: Ints, count: int, least: int) -> list[int]:
    """Return numbers of units to try: the fewest that hold the job, all, and some between."""
    low = max(1, least, int(np.searchsorted(room, count)) + 1)
    high = min(len(room), count)
    if high < low:
        return []
    if high - low < LIMITS.counts:
        return list(range(low, high + 1))
    return list(dict.fromkeys(np.geomspace(low, high, LIMITS.counts).round().astype(int).tolist()))


def _spread_evenly(machine: Machine, request: Request, rows: Ints) -> Ints:
    """Return the job spread evenly over some of the free rows."""
    free = np.zeros(len(machine), dtype=bool)
    free[rows] = True
    return planners.find("spread")(machine, replace(request, free=free))


class _Way(NamedTuple):
    """A way to lay a process grid on a torus: its cost, bricks, and bricks per router."""

    cost: float
    sides: Shape
    brick: Shape
    inner: Shape
    axes: Shape


def grid_on_boxes(
    machine: Machine, request: Request, dims: Shape, ppn: int
) -> Iterator[tuple[str, Ints, Ints]]:
    """Yield name, nodes and slots of a process grid on each free box that it fits.

    `dims`: the process grid. `ppn`: ranks of every node.
    """
    if machine.topology.kind != "torus":
        return
    place = _Free(machine, request)
    seen: set[bytes] = set()
    for way in sorted(set(_ways_to_lie(place.extents, place.nodes, dims, ppn))):
        corner = place.corner(way.sides)
        if corner is None:
            continue
        rows = place.rows(way, dims, corner)
        if rows.tobytes() in seen or not np.isin(request.include, rows).all():
            continue
        seen.add(rows.tobytes())
        yield f"box {'x'.join(map(str, way.sides))}", rows, inverse(cells_in(dims, [way.brick]))
        if len(seen) == LIMITS.shapes:
            return


def _ways_to_lie(extents: Shape, nodes: int, dims: Shape, ppn: int) -> Iterator[_Way]:
    """Yield the ways in which a grid fits on a torus of routers with this many nodes."""
    for brick in brick_shapes(dims, ppn)[: LIMITS.bricks]:
        grid = tuple(d // b for d, b in zip(dims, brick, strict=True))
        for inner in brick_shapes(grid, nodes)[: LIMITS.inner]:
            routers = tuple(g // i for g, i in zip(grid, inner, strict=True))
            choices = [range(len(extents)) if extent > 1 else (-1,) for extent in routers]
            for axes in itertools.product(*choices):
                sides = tuple(
                    math.prod(g for g, a in zip(routers, axes, strict=True) if a == axis)
                    for axis in range(len(extents))
                )
                if all(s <= e for s, e in zip(sides, extents, strict=True)):
                    cost = _links_passed(routers, brick, axes)
                    yield _Way(cost, sides, brick, inner, axes)


def _links_passed(grid: Shape, brick: Shape, axes: Shape) -> float:
    """Return how many links neighbours' bytes cross, by dimension, in sides of bricks."""
    total = 0.0
    for k, (extent, axis) in enumerate(zip(grid, axes, strict=True)):
        if extent > 1:
            after = zip(grid[k + 1 :], axes[k + 1 :], strict=True)
            total += math.prod(g for g, a in after if a == axis) / brick[k]
    return total


class _Free:
    """The free nodes of a torus by router, and the boxes that are entirely free."""

    def __init__(self, machine: Machine, request: Request) -> None:
        count = machine.topology.router_levels
        self.extents = tuple(int(e) for e in machine.topology.extents[:count])
        rows = np.flatnonzero(request.free)
        router = np.ravel_multi_index(tuple(machine.coords[rows, :count].T), self.extents)
        size = math.prod(self.extents)
        router_nodes = np.bincount(machine.router[machine.router[:, 0] >= 0, 0])
        self.nodes = int(router_nodes.max(initial=1))
        order = np.argsort(router, kind="stable")
        held = np.bincount(router, minlength=size)
        first = np.cumsum(held) - held
        self.node_table = np.full((size, self.nodes), -1)
        self.node_table[router[order], np.arange(len(rows)) - first[router[order]]] = rows[order]
        self.full_routers = (held == self.nodes).astype(np.int64).reshape(self.extents)

    def corner(self, sides: Shape) -> Ints | None:
        """Return the first corner of an entirely free box; None if there is none."""
        free_routers = sum_boxes(self.full_routers, sides)
        best = int(np.argmax(free_routers))
        if free_routers.flat[best] < math.prod(sides):
            return None
        return np.array(np.unravel_index(best, free_routers.shape))

    def rows(self, way: _Way, dims: Shape, corner: Ints) -> Ints:
        """Return the node of each brick of the grid, row by row."""
        grid = tuple(d // b for d, b in zip(dims, way.brick, strict=True))
        cell = np.indices(grid).reshape(len(grid), -1)
        part, inside = np.divmod(cell, np.array(way.inner)[:, None])
        routers = tuple(g // i for g, i in zip(grid, way.inner, strict=True))
        at = np.zeros((len(self.extents), cell.shape[1]), dtype=np.int64)
        for k, axis in enumerate(way.axes):
            if axis >= 0:
                at[axis] = at[axis] * routers[k] + part[k]
        at = (at + corner[:, None]) % np.array(self.extents)[:, None]
        node = np.ravel_multi_index(tuple(inside), way.inner)
        return np.asarray(self.node_table[np.ravel_multi_index(tuple(at), self.extents), node])


def freest_boxes(machine: Machine, request: Request) -> Iterator[tuple[str, Ints]]:
    """Yield the nodes of boxes of a torus at the positions with most free nodes.

    The shapes are those that hold the job with least on the busiest axis of
    an all-to-all inside; a box with nodes to spare gives those nearest to its
    middle.
    """
    axes = machine.topology.router_levels
    extents = np.array(machine.topology.extents[:axes])
    rows = request.rows()
    coords = machine.coords[rows, :axes].astype(np.int64)
    grid = np.zeros(extents, dtype=np.int64)
    np.add.at(grid, tuple(coords.T), 1)
    shapes_done = 0
    for shape in _shapes_to_try(machine, extents, grid, request.count):
        free = sum_boxes(grid, shape)
        corner = np.array(np.unravel_index(int(np.argmax(free)), free.shape))
        if free.max() < request.count:
            continue
        away = (coords - corner) % extents
        inside = (away < shape).all(axis=1) | np.isin(rows, request.include)
        middle = np.abs(2 * away[inside] - (np.array(shape) - 1)).max(axis=1)
        must = np.isin(rows[inside], request.include)
        order = np.lexsort((middle, ~must))[: request.count]
        yield f"box {'x'.join(map(str, shape))}", np.sort(rows[inside][order])
        shapes_done += 1
        if shapes_done == LIMITS.shapes:
            return


def _shapes_to_try(
    machine: Machine, extents: Ints, grid: Ints, count: int
) -> list[tuple[int, ...]]:
    """Return shapes of boxes that may hold the job, the best for an all-to-all first."""
    a_router = grid.mean()
    kinds = machine.topology.levels
    gbs = [machine.topology.bandwidth.get(kind, 1.0) for kind in kinds[: len(extents)]]
    best: dict[tuple[int, ...], float] = {}
    for shape in itertools.product(*(_sides_to_try(int(extent)) for extent in extents)):
        if math.prod(shape) * a_router < 0.6 * count:
            continue
        if math.prod(shape) * a_router > 4 * count + 8:
            continue
        rings = [
            (side / 8 if side == extent else side / 4) / rate if side > 1 else 0.0
            for side, extent, rate in zip(shape, extents, gbs, strict=True)
        ]
        best[shape] = max(rings) * (1 + 0.1 * math.prod(shape) * a_router / count)
    return sorted(best, key=lambda shape: (best[shape], shape))[: 6 * LIMITS.shapes]


def _sides_to_try(extent: int) -> list[int]:
    """Return sides of boxes to try on an axis, sampled on long axes."""
    if extent <= 12:
        return list(range(1, extent + 1))
    return sorted({*range(1, 9), *(round(extent * k / 8) for k in range(1, 9))})
