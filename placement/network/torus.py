"""Tori under dimension-order routing: x first, then y, z, …; exactly half a ring goes to +.

The way between two routers is one stretch of one ring an axis. So the load of
a million messages is a running sum along the rings of each axis in turn
(`rings.split`), and an all-to-all needs only the sums of its weights: on axis
k of the ring through (t0 … tk-1, ·, sk+1 …), what starts at sk is the weight
of all routers (*, …, sk, sk+1 …) and what ends at tk that of all
(t0 … tk, *, …) (`rings.products`). Both are exact and linear in the size of
the machine; no table of all pairs is made.

Every direction of every axis is a channel of its own: an extent of 2 has two
links, and from either end + is its own; an extent of 1 has none. A router
without nodes forwards as any other.

A machine whose links were listed may lack some. Dimension-order routing then
takes the other way round that ring for the messages that need the missing
link, and the routing's notes say so; where both ways are cut it cannot reach
all, and an error names the place.

``dimension-order-simgrid`` differs in one case: from coordinate extent / 2 to
0, exactly half an even ring, it goes to -. So does SimGrid's torus, which it
is there to be compared with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError, UsageError
from placement.network import rings
from placement.network.torus_grid import made
from placement.topologies.torus import AXES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.demand import Demand
    from placement.network.model import Channels
    from placement.network.torus_grid import Grid

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["channels", "hops", "loads", "next_channel", "notes"]

#: Lines of an all-to-all that are cheaper as pairs are expanded this many pairs at a time.
_EXPANDED = 1 << 21

#: The routing that goes half a ring to coordinate 0 the other way.
LIKE_SIMGRID = "dimension-order-simgrid"

#: Rows times columns of the largest table of next channels.
_MOST = 1 << 28

#: What one position of a line costs on all axes, in pairs.
_DEAR = 0.5


def channels(machine: Machine, routing: str = "") -> Channels:
    """Return the channels of a torus: x+ of all routers, x-, y+ and so on.

    Parameters
    ----------
    machine : Machine
        Of kind ``torus``.
    routing : str
        All routings of a torus use the same.

    Returns
    -------
    Channels
        Classes ``x``, ``y``, …. Where links are listed, those that are.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> two = channels(parse_spec("torus:2x1,bw=5"))
    >>> two.names().tolist(), two.bandwidth.tolist()
    (['x0y0->x1y0 x', 'x1y0->x0y0 x', 'x0y0->x1y0 x#2', 'x1y0->x0y0 x#2'], [5.0, 5.0, 5.0, 5.0])
    """
    found: Channels = made(machine)[1]
    return found


def loads(machine: Machine, demand: Demand, routing: str = "") -> Floats:
    """Return the bytes on every channel.

    Parameters
    ----------
    machine : Machine
    demand : Demand
    routing : str

    Returns
    -------
    float64 (c,)

    Raises
    ------
    NidmapError
        Where missing links leave no way along a ring.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.network.demand import Demand
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("torus:4")
    >>> loads(m, Demand.complete(m, np.arange(4), 1, 1.0)).tolist()
    [3.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    """
    grid = _grid(machine, routing)
    dense = np.zeros((len(grid.extents), 2, grid.size))
    for weight, scale in _wide(grid, demand):
        _product(grid, weight, scale, dense)
    for source, target, amount in _listed(grid, demand):
        _pairs(grid, source, target, amount, dense)
    return np.asarray(np.maximum(dense, 0.0)[grid.there])


def hops(machine: Machine, source: Ints, target: Ints, routing: str = "") -> Floats:
    """Return the steps along each axis between routers.

    Parameters
    ----------
    machine : Machine
    source, target : int (m,)
        Router indices.
    routing : str

    Returns
    -------
    float64 (m, axes)

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> hops(parse_spec("torus:8x4"), np.array([0]), np.array([13])).tolist()
    [[3.0, 1.0]]
    """
    grid = made(machine)[0]
    at, to = grid.position[np.asarray(source)], grid.position[np.asarray(target)]
    out = np.zeros((len(at), len(grid.extents)))
    for axis in range(len(grid.extents)):
        plus, minus = _steps(grid, axis, at, to)
        out[:, axis] = plus + minus
        at = grid.moved(at, axis, grid.along(to, axis))
    return out


def next_channel(machine: Machine, routing: str = "") -> NDArray[np.int32]:
    """Return the channel by which each router forwards to each node.

    Returns
    -------
    int32 (routers, nodes)
        -1 where the node is attached to the router.

    Raises
    ------
    NidmapError
        As `loads`.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> next_channel(parse_spec("torus:3")).tolist()
    [[-1, 0, 3], [4, -1, 1], [2, 5, -1]]
    """
    grid = _grid(machine, routing)
    routers = len(grid.position)
    if routers * max(routers, len(machine)) > _MOST:
        raise UsageError(f"a table of {routers} x {len(machine)} next hops is too large")
    out = np.full((routers, routers), -1, dtype=np.int32)
    at = np.repeat(grid.position, routers)
    to = np.tile(grid.position, routers)
    flat = out.reshape(-1)
    for axis in reversed(range(len(grid.extents))):  # the first axis that differs wins
        rows = np.flatnonzero(grid.along(at, axis) != grid.along(to, axis))
        plus, _ = _steps(grid, axis, at[rows], to[rows])
        flat[rows] = grid.channel[axis, np.where(plus > 0, 0, 1), at[rows]]
    first = machine.router[:, 0]
    return np.where(first >= 0, out[:, first], -1).astype(np.int32)


def notes(machine: Machine, routing: str = "") -> tuple[str, ...]:
    """Return what was assumed: nothing where every ring is whole.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> notes(parse_spec("torus:3x3"))
    ()
    """
    grid = made(machine)[0]
    rings_cut = sum(int(grid.broken(axis).sum()) for axis in range(len(grid.extents)))
    if not rings_cut:
        return ()
    text = (
        f"{rings_cut} rings of the torus lack a link in the list: messages that need one go the "
        "other way round"
    )
    return (text,)


def _grid(machine: Machine, routing: str) -> Grid:
    """Return the grid of a machine as a routing goes round it."""
    return replace(made(machine)[0], back=routing == LIKE_SIMGRID)


def _wide(grid: Grid, demand: Demand) -> Iterator[tuple[Floats, float]]:
    """Yield the all-to-alls that are worth a pass over the whole grid: weights, bytes."""
    lines = demand.within
    start, narrow = _narrow(grid, demand)
    for line in np.flatnonzero(~narrow).tolist():
        rows = slice(start[line], start[line + 1])
        weight = np.zeros(grid.size)
        weight[grid.position[lines.router[rows]]] = lines.weight[rows]
        yield weight, float(lines.scale[line])


def _narrow(grid: Grid, demand: Demand) -> tuple[Ints, Bools]:
    """Return where each all-to-all begins, and which have so few pairs that these are listed."""
    lines = demand.within
    start = np.searchsorted(lines.line, np.arange(len(lines) + 1))
    ends = np.diff(start)
    return start, ends * ends < grid.size * _DEAR


def _listed(grid: Grid, demand: Demand) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Yield positions and bytes of the listed pairs, and of all-to-alls with few pairs."""
    position = grid.position
    if len(demand.source):
        yield position[demand.source], position[demand.target], demand.amount
    lines = demand.within
    start, narrow = _narrow(grid, demand)
    ends = np.diff(start)
    for some in _batches(np.flatnonzero(narrow), ends * ends):
        entry = np.flatnonzero(np.isin(lines.line, some))
        each = ends[lines.line[entry]]
        first = np.repeat(start[lines.line[entry]], each)
        inside = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
        source, target = np.repeat(entry, each), first + inside
        scale = lines.scale[lines.line[source]]
        amount = scale * lines.weight[source] * lines.weight[target]
        yield position[lines.router[source]], position[lines.router[target]], amount


def _batches(which: Ints, sizes: Ints) -> Iterator[Ints]:
    """Yield some of `which` at a time, of not much more than `_EXPANDED` pairs together."""
    batch = np.cumsum(sizes[which]) // _EXPANDED
    for one in np.flatnonzero(np.bincount(batch)).tolist() if len(which) else ():
        yield which[batch == one]


def _product(grid: Grid, weight: Floats, scale: float, dense: Floats) -> None:
    """Add the loads of an all-to-all, bytes = scale x weight x weight."""
    for axis, extent in enumerate(grid.extents):
        if extent == 1:
            continue
        low, high = grid.stride(axis), grid.size // grid.stride(axis) // extent
        table = weight.reshape(high, extent, low)
        sent = table.sum(axis=2)  # (high, extent): all that are already in their column
        taken = table.sum(axis=0).T  # (low, extent): what those below this axis will reach
        busy = np.outer(sent.any(axis=1), taken.any(axis=1)).ravel()  # a ring is (high, low)
        broken = grid.broken(axis) & busy
        whole = np.flatnonzero(busy & ~broken)
        both = np.zeros((2, len(busy), extent))
        both[:, whole] = rings.products(sent[whole // low], taken[whole % low], grid.back)
        _spread(grid, axis, both * scale, dense)
        for line in np.flatnonzero(broken).tolist():
            amount = np.outer(sent[line // low], taken[line % low]) * scale
            _expanded(grid, axis, line, amount, dense)


def _spread(grid: Grid, axis: int, both: Floats, dense: Floats) -> None:
    """Add loads by ring (2, lines, extent) to the slots of an axis."""
    low, extent = grid.stride(axis), grid.extents[axis]
    table = both.reshape(2, -1, low, extent)
    dense[axis] += np.swapaxes(table, 2, 3).reshape(2, grid.size)


def _expanded(grid: Grid, axis: int, line: int, amount: Floats, dense: Floats) -> None:
    """Add the loads of one ring that lacks a link, pair by pair of its positions."""
    spots = grid.spots(axis)[line]
    start, target = np.nonzero(amount)
    _one_axis(grid, axis, spots[start], spots[target], amount[start, target], dense)


def _pairs(grid: Grid, source: Ints, target: Ints, amount: Floats, dense: Floats) -> None:
    """Add the loads of listed pairs of positions."""
    at = source
    for axis, extent in enumerate(grid.extents):
        if extent > 1:
            _one_axis(grid, axis, at, target, amount, dense)
            at = grid.moved(at, axis, grid.along(target, axis))


def _one_axis(grid: Grid, axis: int, at: Ints, target: Ints, amount: Floats, dense: Floats) -> None:
    """Add the loads of the way along one axis."""
    start, to, line = grid.along(at, axis), grid.along(target, axis), grid.line(at, axis)
    some = np.flatnonzero(start != to)
    plus, minus = _steps(grid, axis, at[some], target[some])
    both = rings.split(
        grid.lines(axis), grid.extents[axis], line[some], start[some], plus, minus, amount[some]
    )
    _spread(grid, axis, both, dense)


def _steps(grid: Grid, axis: int, at: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Return the steps in direction + and - along an axis, one of them 0.

    The shorter way, unless a link of it is missing: then the other.
    """
    extent = grid.extents[axis]
    start = grid.along(at, axis)
    plus, minus = rings.steps(start, grid.along(target, axis), extent, grid.back)
    if grid.whole[axis]:
        return plus, minus
    cut = _cut(grid, axis, at, plus, minus)
    ahead = plus + np.where(minus > 0, extent - minus, 0)
    other_plus = np.where(cut, np.where(plus > 0, 0, ahead), plus)
    other_minus = np.where(cut, np.where(minus > 0, 0, extent - ahead), minus)
    stuck = cut & _cut(grid, axis, at, other_plus, other_minus)
    if stuck.any():
        row = int(np.argmax(stuck))
        raise _no_way(grid, axis, int(at[row]), int(target[row]))
    return other_plus, other_minus


def _cut(grid: Grid, axis: int, at: Ints, plus: Ints, minus: Ints) -> Bools:
    """Return which ways along an axis cross a slot without a channel."""
    extent, spots = grid.extents[axis], grid.spots(axis)
    line, start = grid.line(at, axis), grid.along(at, axis)
    gone = np.zeros((2, len(spots), 2 * extent + 1), dtype=np.int64)
    for way in (0, 1):
        np.cumsum(np.tile(~grid.there[axis, way][spots], 2), axis=1, out=gone[way, :, 1:])
    up = gone[0][line, start + plus] - gone[0][line, start]
    last = start + extent + 1  # channels start, start-1, … as the places before `last`
    down = gone[1][line, last] - gone[1][line, last - minus]
    found: Bools = (up + down) > 0
    return found


def _no_way(grid: Grid, axis: int, at: int, target: int) -> NidmapError:
    axes = range(len(grid.extents))
    here, there = (tuple(int(grid.along(np.array(p), k)) for k in axes) for p in (at, target))
    return NidmapError(
        f"no way along {AXES[axis]} of the torus from {here} towards {there}: its ring lacks "
        "links on both sides",
        "dimension-order routing needs the rings; is the link list whole?",
    )
