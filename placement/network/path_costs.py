# SPDX-License-Identifier: Apache-2.0
"""The cost of a byte between two nodes when every channel has a price: loads, transposed.

`loads` answers what a demand puts on each channel; here each channel has a
price a byte, and a message pays for the channels it takes, each by the share
of it that goes there. So for any prices u and any demand

    sum over channels of u x load  =  sum over messages of bytes x cost

(a property test holds it). With prices on the channels that bind, a node's
bill says how much it feeds them, and what another node in its place would.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from nidmap.placement.machine import Machine, once
from nidmap.placement.network.groups import groups_of
from nidmap.placement.network.rails import rails_of
from nidmap.placement.network.torus_grid import Grid, grid_of, ring_hops
from nidmap.placement.network.touched import TouchedGroups, TouchedTables
from nidmap.placement.network.trees import counts_by_node, tree_of
from nidmap.placement.support.array_types import Floats, Ints

#: Maximum size of the table of stretches along an axis of a torus.
MOST_STRETCHES = 1 << 25


class PathCosts(Protocol):
    """The costs of bytes between the ends of messages, at given prices."""

    def __call__(self, a: Ints, b: Ints) -> Floats:
        """Return the cost of a byte from nodes `a` to nodes `b`.

        Rows of the machine, which broadcast; without meaning between a node and itself.
        """


def path_costs(machine: Machine, price: Floats) -> PathCosts | None:
    """Return the cost of a byte between nodes, given a price for every channel.

    On a dragonfly by ``minimal`` ways, else by the one path of the default routing.

    `price` (c,): of a byte on each channel of ``channels(machine)``. None where the network is
    not regular: groups without a link of their own, a fat tree with cables missing.
    """
    by_kind = {
        "dragonfly": _on_dragonfly,
        "dragonfly+": _on_dragonfly,
        "torus": _on_torus,
        "fattree": _on_tree,
        "tree": _on_tree,
    }
    kind = machine.topology.kind
    between = by_kind[kind](machine, price) if kind in by_kind else None
    if between is None or counts_by_node(machine):
        return between
    return _over_switches(machine, between)


def _over_switches(machine: Machine, between: PathCosts) -> PathCosts:
    """Return the mean over the pairs of attachments that carry the nodes' traffic.

    `between`: costs between routers.
    """
    rails, table = rails_of(machine), machine.router.astype(np.int64)

    def cost(a: Ints, b: Ints) -> Floats:
        out = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))
        for i, j, share in rails.shares(a, b):
            s, t = np.maximum(table[a, i], 0), np.maximum(table[b, j], 0)
            out += share * np.where(s == t, 0.0, between(s, t))
        return out

    return cost


def _on_dragonfly(machine: Machine, price: Floats) -> PathCosts | None:
    """Return the cost of a byte under ``minimal``; None if groups lack a direct link."""
    groups = groups_of(machine)
    if not groups.complete:
        return None
    every = _every_router(machine)
    [minimal] = every.prices(every.price_tables(price))
    rows = (
        every.routers.row[machine.router[:, 0]]
        if machine.router.shape[1] == 1
        else every.routers.row
    )
    group, slot = np.divmod(rows, every.routers.width)
    out = (minimal.away + minimal.across[:, None, :]).ravel()
    into, inner = minimal.home.ravel(), minimal.inner.ravel()

    def cost(a: Ints, b: Ints) -> Floats:
        here, there = group[a], group[b]
        apart = out[rows[a] * groups.count + there] + into[rows[b] * groups.count + here]
        inside = inner[rows[a] * every.routers.width + slot[b]]
        return np.where(here == there, inside, apart)

    return cost


@once
def _every_router(machine: Machine) -> TouchedGroups:
    """Return the tables of all routers, for minimal paths only."""
    groups = groups_of(machine)
    return TouchedTables(groups, np.arange(groups.routers)).minimal


def _on_torus(machine: Machine, price: Floats) -> PathCosts | None:
    """Return the cost of a byte in dimension order; None if rings are too long for a table.

    What a stretch of an axis costs is known by its ring, start and end. The
    ring is that of the coordinates below the axis of the target and above it
    of the source, so its place in a table is a number of the source plus one
    of the target. A ring that lacks a link is taken as whole: the way round a
    gap is not followed.
    """
    grid = grid_of(machine)
    if any(grid.size * extent > MOST_STRETCHES for extent in grid.extents):
        return None
    rows = np.flatnonzero(price)
    axis_of, way, position = np.unravel_index(grid.slots[rows], grid.there.shape)
    tables = []
    for axis, extent in enumerate(grid.extents):
        if extent > 1:
            some = np.flatnonzero(axis_of == axis)
            priced = way[some], position[some], price[rows[some]]
            tables.append(_price_stretches(grid, axis, *priced))
    ends = _axis_places(machine)

    def cost(a: Ints, b: Ints) -> Floats:
        out = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))
        for table, (source, target) in zip(tables, ends, strict=True):
            out += table[source[a] + target[b]]
        return out

    return cost


@once
def _axis_places(machine: Machine) -> list[tuple[Ints, Ints]]:
    """Return the contributions of source and target to the table index of each axis."""
    grid = grid_of(machine)
    one_switch = machine.router.shape[1] == 1
    position = grid.position[machine.router[:, 0]] if one_switch else grid.position
    ends = []
    for axis, extent in enumerate(grid.extents):
        if extent > 1:
            at = grid.along(position, axis)
            high, low = position // (grid.stride(axis) * extent), grid.stride(axis)
            square = extent * extent
            ends.append((high * low * square + at * extent, position % low * square + at))
    return ends


def _price_stretches(grid: Grid, axis: int, way: Ints, position: Ints, price: Floats) -> Floats:
    """Return the cost by (ring, start, end), flat; most rings have no prices at all.

    `way`, `position`, `price`: of the channels along the axis that have one.
    """
    extent = grid.extents[axis]
    out = np.zeros((grid.lines(axis), extent, extent))
    rings, ring = np.unique(grid.line(position, axis), return_inverse=True)
    once = np.zeros((2, len(rings), extent))
    once[way, ring, grid.along(position, axis)] = price
    sums = np.zeros((2, len(rings), 2 * extent + 1))
    np.cumsum(np.tile(once, 2), axis=2, out=sums[:, :, 1:])
    start, end = np.indices((extent, extent))
    plus, minus = ring_hops(start, end, extent)
    last = start + extent + 1  # channels start, start-1, … as the places before `last`
    up = sums[0][:, start + plus] - sums[0][:, start]
    out[rings] = up + sums[1][:, last] - sums[1][:, last - minus]
    return out.ravel()


def _on_tree(machine: Machine, price: Floats) -> PathCosts | None:
    """Return the cost of a byte up to the lowest common switch and down; None without a tree.

    By the prices of the cables of each part below a layer.
    """
    tree = tree_of(machine)
    if tree is None:
        return None
    priced, layers = np.append(price, 0.0), []  # row -1: no cable
    place = np.arange(len(tree.root))
    if counts_by_node(machine):
        place = machine.router[:, 0].astype(np.int64)
    for layer in tree.layers:
        port = layer.port if counts_by_node(machine) else np.zeros(len(place), dtype=np.int64)
        prices = priced[layer.up], priced[layer.down]
        layers.append((layer.part[place], port, *prices, layer.by_sender))

    def cost(a: Ints, b: Ints) -> Floats:
        out = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))
        for part, port, up, down, by_sender in layers:
            here, there = part[a], part[b]
            out += (here != there) * (up[here, port[a if by_sender else b]] + down[there, port[b]])
        return out

    return cost
