# SPDX-License-Identifier: Apache-2.0
"""Tori under dimension-order routing: x, then y, z, …; exactly half a ring goes in + direction.

The way between two routers is one stretch of one ring an axis: messages are
followed link by link. An all-to-all needs only the sums of its weights: on axis
k of the ring through (t0 … tk-1, ·, sk+1 …), what starts at sk is the weight
of all routers (*, …, sk, sk+1 …) and what ends at tk that of all
(t0 … tk, *, …) (`product_loads`). That is exact and linear in the size of
the machine; no table of all pairs is made.

Every direction of every axis is a channel of its own: an extent of 2 has two
links, and from either end + is its own; an extent of 1 has none. A router
without nodes forwards as any other.

A machine whose links were listed may lack some. Dimension-order routing then
takes the other way round that ring for the messages that need the missing
link; where both ways round a ring are cut, messages that need it take all
shortest paths alike. The routing's notes say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from nidmap.placement.all_to_alls import match_lines
from nidmap.placement.machine import Machine, once
from nidmap.placement.network import shortest_paths
from nidmap.placement.network.channel_loads import Channels
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.shortest_paths import StateGraph, graph_of
from nidmap.placement.network.torus_grid import Grid, grid_of, product_loads, ring_hops
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import ragged_ranges
from nidmap.placement.topologies import router_count

#: Cost of one position of a line on all axes, in pairs.
_DEAR = 0.5

#: Messages whose links are listed together.
TOGETHER = 1 << 18


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


def used_loads(machine: Machine, demand: Demand) -> tuple[Ints, Floats]:
    """Return the channels that carry anything, ascending, and the bytes on each."""
    grid = grid_of(machine)
    dense = np.zeros((len(grid.extents), 2, grid.size))
    if _is_cut(grid):
        listed: Iterable[tuple[Ints, Ints, Floats]] = demand.blocks()
    else:
        listed = _listed_pairs(grid, demand)
        for weight, scale in _wide_lines(grid, demand):
            _add_product(grid, weight, scale, dense)
    for source, target, amount in listed:
        stuck = _find_stuck(grid, grid.position[source], grid.position[target])
        ends = grid.position[source[~stuck]], grid.position[target[~stuck]]
        _add_pairs(grid, *ends, amount[~stuck], dense)
        if stuck.any():
            lost = source[stuck], target[stuck], amount[stuck]
            far = shortest_paths.pair_loads(_search_graph(machine), *lost, len(grid.slots))
            dense.reshape(-1)[grid.slots] += far
    used = np.flatnonzero(dense > 0)
    return grid.channel.reshape(-1)[used], dense.reshape(-1)[used]


def passed_channels(machine: Machine, source: Ints, target: Ints) -> tuple[Ints, Ints] | None:
    """Return the channels that messages between routers pass, message by message.

    `source`, `target` (m,): router indices. Returns `message, channel` (z,): None where some ring
    falls into parts, so that messages may have several paths.
    """
    grid = grid_of(machine)
    if _is_cut(grid):
        return None
    at, to = grid.position[source], grid.position[target]
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
    shortest_paths.refuse_large_table(routers, len(nodes))
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


def _narrow_lines(grid: Grid, demand: Demand) -> tuple[Ints, Mask]:
    """Return where each all-to-all begins, and which ones are small enough to list their pairs."""
    lines = demand.within
    start = np.searchsorted(lines.line, np.arange(len(lines) + 1))
    return start, np.diff(start) ** 2 < grid.size * _DEAR


def _wide_lines(grid: Grid, demand: Demand) -> Iterator[tuple[Floats, float]]:
    """Yield the all-to-alls large enough for a pass over the whole grid: weights, bytes."""
    lines = demand.within
    start, narrow = _narrow_lines(grid, demand)
    for line in np.flatnonzero(~narrow).tolist():
        rows = slice(start[line], start[line + 1])
        weight = np.zeros(grid.size)
        weight[grid.position[lines.end[rows]]] = lines.weight[rows]
        yield weight, float(lines.scale[line])


def _listed_pairs(grid: Grid, demand: Demand) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield routers and bytes of the listed pairs, and of small all-to-alls."""
    if len(demand.source):
        yield demand.source, demand.target, demand.amount
    lines = demand.within
    start, narrow = _narrow_lines(grid, demand)
    chosen = np.flatnonzero(narrow[lines.line])
    for entry, target in match_lines(lines.line[chosen], start):
        source = chosen[entry]
        amount = lines.scale[lines.line[source]] * lines.weight[source] * lines.weight[target]
        yield lines.end[source], lines.end[target], amount


def _add_product(grid: Grid, weight: Floats, scale: float, dense: Floats) -> None:
    """Add the loads of an all-to-all with bytes = scale x weight x weight."""
    for axis, extent in enumerate(grid.extents):
        if extent == 1:
            continue
        low, high = grid.stride(axis), grid.size // grid.stride(axis) // extent
        table = weight.reshape(high, extent, low)
        sent = table.sum(axis=2)  # (high, extent): all that are already in their column
        taken = table.sum(axis=0).T  # (low, extent): what those below this axis will reach
        busy = np.outer(sent.any(axis=1), taken.any(axis=1)).ravel()  # a ring is (high, low)
        broken = (grid.gaps[axis] > 0) & busy
        complete = np.flatnonzero(busy & ~broken)
        both = np.zeros((2, len(busy), extent))
        both[:, complete] = product_loads(sent[complete // low], taken[complete % low])
        by_ring = (both * scale).reshape(2, high, low, extent)
        dense[axis] += np.swapaxes(by_ring, 2, 3).reshape(2, grid.size)
        for line in np.flatnonzero(broken).tolist():  # pair by pair of its positions
            amount = np.outer(sent[line // low], taken[line % low]) * scale
            start, to = np.nonzero(amount)
            spots = grid.spots(axis)[line]
            _add_pairs(grid, spots[start], spots[to], amount[start, to], dense)


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
            yield from _slots_left(grid, axis, at, target)
            at = grid.moved(at, axis, grid.along(target, axis))


def _slots_left(grid: Grid, axis: int, at: Ints, target: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield messages and the slots that they leave along an axis, by direction."""
    extent, stride, start = grid.extents[axis], grid.stride(axis), grid.along(at, axis)
    plus, minus, _ = _axis_hops(grid, axis, at, target)
    for way, hops in ((0, plus), (1, minus)):
        message, hop = ragged_ranges(np.zeros(len(at), dtype=np.int64), hops)
        place = (start[message] + (hop if way == 0 else -hop)) % extent
        position = at[message] + (place - start[message]) * stride
        yield message, (2 * axis + way) * grid.size + position


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
    extent = grid.extents[axis]
    line, start = grid.line(at, axis), grid.along(at, axis)
    gone = grid.missing[axis]
    up = gone[0][line, start + plus] - gone[0][line, start]
    last = start + extent + 1  # channels start, start-1, … as the places before `last`
    down = gone[1][line, last] - gone[1][line, last - minus]
    crosses: Mask = (up + down) > 0
    return crosses
