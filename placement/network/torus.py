# SPDX-License-Identifier: Apache-2.0
"""Tori under dimension-order routing: x, then y, z, …; exactly half a ring goes in + direction.

The way between two routers is one stretch of one ring an axis: messages are
followed link by link. All-to-alls need only the sums of their weights: on axis
k of the ring through (t0 … tk-1, ·, sk+1 …), what starts at sk is the weight
of all routers (*, …, sk, sk+1 …) and what ends at tk that of all
(t0 … tk, *, …) (`_ring_flows`). That is exact, and no table of all pairs is made.

Every direction of every axis is a channel of its own: an extent of 2 has two
links, and from either end + is its own; an extent of 1 has none. A router
without nodes forwards as any other.

A machine whose links were listed may lack some. Dimension-order routing then
takes the other way round that ring for the messages that need the missing
link; where both ways round a ring are cut, messages that need it take all
shortest paths alike. The routing's notes say so.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from nidmap.placement.all_to_alls import AllToAlls, product_over_lines
from nidmap.placement.machine import Machine, once
from nidmap.placement.network import shortest_paths
from nidmap.placement.network.channel_loads import Channels
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.shortest_paths import StateGraph, graph_of
from nidmap.placement.network.torus_grid import Grid, grid_of, ring_hops, ring_loads
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import add_by_key, product, ragged_ranges, sum_by_pair
from nidmap.placement.topologies import router_count

#: Pairs for each position of the grid up to which all-to-alls are listed.
FEW_PAIRS = 1.0

#: All-to-alls up to which the bytes between the positions of rings are not listed.
FEW_LINES = 16

#: Numbers in a table of the positions of rings, by each other or by few all-to-alls.
RINGS_TOGETHER = 1 << 22

#: Messages whose links are listed together.
TOGETHER = 1 << 16


@once
def channels(machine: Machine) -> Channels:
    """Return the channels of a torus: x+ of all routers, then x-, y+ and so on.

    Classes ``x``, ``y``, …. Where links are listed, those that are.
    """
    grid = grid_of(machine)
    axis, way, at = np.nonzero(grid.there)
    target = np.empty_like(at)
    for k, extent in enumerate(grid.extents):
        rows = axis == k
        to = (grid.along(at[rows], k) + np.where(way[rows] == 0, 1, -1)) % extent
        target[rows] = grid.moved(at[rows], k, to)
    return Channels(
        machine=machine,
        source=grid.router[at].astype(np.int32),
        target=grid.router[target].astype(np.int32),
        kind=axis.astype(np.int8),
        kinds=machine.topology.levels[: len(grid.extents)],
        count=grid.count[grid.there].astype(np.int32),
        bandwidth=grid.gbs[grid.there],
    )


def loads(machine: Machine, demand: Demand, routing: str) -> Floats:
    """Return the bytes on every channel, float64 (c,)."""
    grid = grid_of(machine)
    dense = np.zeros((len(grid.extents), 2, grid.size))
    lines = demand.within
    listed: Iterable[tuple[Ints, Ints, Floats]] = [(demand.source, demand.target, demand.amount)]
    if _is_cut(grid):
        listed = demand.blocks()
    elif (np.bincount(lines.line) ** 2).sum() < grid.size * FEW_PAIRS:
        listed = [*listed, lines.pairs()[:3]]
    else:
        _add_all_to_alls(grid, lines, dense)
    for source, target, amount in listed:
        stuck = _find_stuck(grid, grid.position[source], grid.position[target])
        ends = grid.position[source[~stuck]], grid.position[target[~stuck]]
        _add_pairs(grid, *ends, amount[~stuck], dense)
        if stuck.any():
            lost = source[stuck], target[stuck], amount[stuck]
            far = shortest_paths.pair_loads(_search_graph(machine), *lost, len(grid.slots))
            dense.reshape(-1)[grid.slots] += far
    return dense.reshape(-1)[grid.slots]


def passed_channels(machine: Machine, a: Ints, b: Ints) -> tuple[Ints, Ints] | None:
    """Return the channels that messages between nodes pass, message by message.

    `a`, `b` (m,): rows of the machine. Returns `message, channel` (z,): None where some ring
    falls into parts, so that messages may have several paths.
    """
    grid = grid_of(machine)
    if _is_cut(grid):
        return None
    at, to = (grid.position[machine.router[end, 0]] for end in (a, b))
    columns = (at[:0], at[:0]), *_slots_passed(grid, at, to)
    message, slot = (np.concatenate(column) for column in zip(*columns, strict=True))
    return message, grid.channel.reshape(-1)[slot]


def hops(machine: Machine, source: Ints, target: Ints, routing: str = "") -> Floats:
    """Return the steps along each axis between routers.

    `source`, `target` (m,): router indices. Returns (m, axes).
    """
    grid, source, target = grid_of(machine), np.asarray(source), np.asarray(target)
    at, to = grid.position[source], grid.position[target]
    far = np.flatnonzero(_find_stuck(grid, at, to))
    out = np.zeros((len(at), len(grid.extents)))
    for axis in range(len(grid.extents)):
        plus, minus, _ = _axis_hops(grid, axis, at, to)
        out[:, axis] = plus + minus
        at = grid.moved(at, axis, grid.along(to, axis))
    if len(far):
        out[far] = shortest_paths.mean_hops(
            _search_graph(machine), source[far], target[far], len(grid.extents)
        )
    return out


def next_channel(machine: Machine, routing: str, nodes: Ints) -> Ints:
    """Return the channel by which each router forwards to some nodes.

    To a node that some router cannot reach along the axes all take one of
    the shortest paths.

    Returns (routers, nodes): -1 where the node is attached to the router.
    """
    grid = grid_of(machine)
    routers = len(grid.position)
    router = machine.router[nodes, 0].astype(np.int64)
    goal, column = np.unique(router[router >= 0], return_inverse=True)
    table = np.full((routers, len(goal)), -1, dtype=np.int64)
    at, to = np.repeat(grid.position, len(goal)), np.tile(grid.position[goal], routers)
    flat = table.reshape(-1)
    for axis in reversed(range(len(grid.extents))):  # the first axis that differs wins
        rows = np.flatnonzero(grid.along(at, axis) != grid.along(to, axis))
        plus, _, _ = _axis_hops(grid, axis, at[rows], to[rows])
        flat[rows] = grid.channel[axis, np.where(plus > 0, 0, 1), at[rows]]
    far = np.flatnonzero(_find_stuck(grid, at, to).reshape(table.shape).any(axis=0))
    if len(far):
        turn = np.arange(routers)[:, None] + goal[far]
        table[:, far] = shortest_paths.chosen_channels(_search_graph(machine), goal[far], turn)
    out = np.full((routers, len(nodes)), -1, dtype=np.int64)
    out[:, router >= 0] = table[:, column]
    return out


def notes(machine: Machine, routing: str = "") -> tuple[str, ...]:
    """Return remarks on what was assumed; none if every ring is complete."""
    grid = grid_of(machine)
    rings_cut = sum(int(np.count_nonzero(gaps)) for gaps in grid.gaps)
    if not rings_cut:
        return ()
    more = ", and where both ways are cut all shortest paths" if _is_cut(grid) else ""
    text = (
        f"{rings_cut} rings of the torus lack a link in the list: messages that need one go the "
        f"other way round{more}"
    )
    return (text,)


def _is_cut(grid: Grid) -> bool:
    """Return whether some ring is cut into parts."""
    return any(bool((gaps > 1).any()) for gaps in grid.gaps)


def _find_stuck(grid: Grid, at: Ints, to: Ints) -> Mask:
    """Return which messages need a ring that is cut in both directions."""
    stuck = np.zeros(len(at), dtype=np.bool_)
    for axis in range(len(grid.extents)) if _is_cut(grid) else ():
        stuck |= _axis_hops(grid, axis, at, to)[2]
        at = grid.moved(at, axis, grid.along(to, axis))
    return stuck


@once
def _search_graph(machine: Machine) -> StateGraph:
    """Return the routers as a graph."""
    two = channels(machine)
    return graph_of(two, router_count(machine), count=np.ones(len(two)))


def _add_all_to_alls(grid: Grid, lines: AllToAlls, dense: Floats) -> None:
    """Add the loads of all-to-alls, some rings at a time."""
    for axis, extent in enumerate(grid.extents):
        low = grid.stride(axis)
        high = grid.size // (low * extent)
        rings = max(1, RINGS_TOGETHER // extent // max(extent, FEW_LINES))
        highs, lows = min(high, max(1, rings // low)), min(low, rings)
        table = grid.rings(dense, axis)
        for up, down in itertools.product(range(0, high, highs), range(0, low, lows)):
            block = slice(up, min(up + highs, high)), slice(down, min(down + lows, low))
            flow = _ring_flows(grid, axis, block, lines, dense)
            table[:, block[0], :, block[1]] += np.moveaxis(ring_loads(extent, flow), 1, 2)


def _ring_flows(
    grid: Grid, axis: int, block: tuple[slice, slice], lines: AllToAlls, dense: Floats
) -> Callable[[int], Floats]:
    """Return the bytes from each position of some rings to that so many hops on.

    On the ring through (t0 … tk-1, ·, sk+1 …) those of all (*, sk, sk+1 …) start at sk, those to
    all (t0 … tk, *, …) end at tk. `block`: some of the upper and of the lower coordinates. Where
    links are missing the bytes are added here.
    """
    extent, low, position = grid.extents[axis], grid.stride(axis), grid.position[lines.end]
    here = grid.along(position, axis)
    sides: list[tuple[Ints, Ints, Floats, int]] = []
    for place, part in zip((position // (low * extent), position % low), block, strict=True):
        rows = np.flatnonzero((place >= part.start) & (place < part.stop))
        size = part.stop - part.start
        key = here[rows] * size + place[rows] - part.start
        sides.append((*sum_by_pair(lines.line[rows], key, lines.weight[rows], extent * size), size))
    if len(lines) <= FEW_LINES and not grid.gaps[axis].any():
        sent, taken = (
            add_by_key(line * (extent * size) + key, weight, len(lines) * extent * size)
            .reshape(len(lines), extent, size)
            .swapaxes(0, 1)
            for line, key, weight, size in sides
        )
        sent, taken = (sent * lines.scale[:, None]).swapaxes(1, 2), np.concatenate([taken, taken])
        return lambda hops: product(sent, taken[hops % extent :][:extent])
    shape, at = (extent, sides[0][3], extent, sides[1][3]), np.arange(extent)
    size = math.prod(shape[:2]), math.prod(shape[2:])
    flow = product_over_lines(sides[0][:3], sides[1][:3], lines.scale, *size).reshape(shape)
    broken = grid.gaps[axis][block] > 0
    if broken.any():  # pair by pair of their positions
        start, up, to, down = np.nonzero(flow * broken[:, None])
        first = (up + block[0].start) * extent * low + down + block[1].start
        amount = flow[start, up, to, down]
        _add_pairs(grid, first + start * low, first + to * low, amount, dense)
        flow[start, up, to, down] = 0
    return lambda hops: flow[at, :, (at + hops) % extent]


def _add_pairs(grid: Grid, source: Ints, target: Ints, amount: Floats, dense: Floats) -> None:
    """Add the loads of listed pairs of positions, link by link, in batches of messages.

    Running sums along the rings take half of the time for a million messages, and twice of it
    for the few of a step of an exchange, which a search asks for.
    """
    for low in range(0, len(source), TOGETHER):
        some = slice(low, low + TOGETHER)
        for message, slot in _slots_passed(grid, source[some], target[some]):
            np.add.at(dense.reshape(-1), slot, amount[some][message])


def _slots_passed(grid: Grid, at: Ints, target: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield messages and the slots that they leave, by axis and direction."""
    for axis, extent in enumerate(grid.extents):
        if extent > 1:
            start, none = grid.along(at, axis), np.zeros(len(at), dtype=np.int64)
            for way, hops in enumerate(_axis_hops(grid, axis, at, target)[:2]):
                message, hop = ragged_ranges(none, hops)
                place = (start[message] + (-hop if way else hop)) % extent
                position = at[message] + (place - start[message]) * grid.stride(axis)
                yield message, (2 * axis + way) * grid.size + position
            at = grid.moved(at, axis, grid.along(target, axis))


def _axis_hops(grid: Grid, axis: int, at: Ints, target: Ints) -> tuple[Ints, Ints, Mask]:
    """Return the hops in + and - direction along an axis, one of them 0, and whether cut.

    The shorter way, unless a link of it is missing: then the other.
    """
    extent, start = grid.extents[axis], grid.along(at, axis)
    plus, minus = ring_hops(start, grid.along(target, axis), extent)
    cut = np.zeros(len(at), dtype=np.bool_)
    if not grid.gaps[axis].any():
        return plus, minus, cut
    turn = np.flatnonzero(_crosses_gap(grid, axis, at, plus, minus))
    other = np.where(minus[turn] > 0, extent - minus[turn], 0)
    minus[turn] = np.where(plus[turn] > 0, extent - plus[turn], 0)
    plus[turn] = other
    cut[turn] = _crosses_gap(grid, axis, at[turn], plus[turn], minus[turn])
    return plus, minus, cut


def _crosses_gap(grid: Grid, axis: int, at: Ints, plus: Ints, minus: Ints) -> Mask:
    """Return which directions along an axis cross a slot without a channel."""
    up, down = grid.reach[axis][:, at]
    return np.asarray((plus > up) | (minus > down))
