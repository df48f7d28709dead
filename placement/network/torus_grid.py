"""The positions of a torus, its rings, and the channels that leave each position."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.network.model import Channels, once

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Grid", "made"]


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The positions of a torus and the channels that leave them.

    A slot is (axis, direction, position), direction 0 being +; positions are
    numbered x fastest.

    Attributes
    ----------
    extents : tuple of int
    position : int64 (r,)
        Of each router.
    router : int64 (p,)
        At each position, -1 where there is none.
    there : bool (axes, 2, p)
        Slots that have a channel.
    channel : int32 (axes, 2, p)
        Its row, -1 where there is none.
    whole : tuple of bool
        Axes of which no ring lacks a channel.
    back : bool
        Half a ring to coordinate 0 goes to -.
    """

    extents: tuple[int, ...]
    position: Ints
    router: Ints
    there: Bools
    channel: NDArray[np.int32]
    whole: tuple[bool, ...]
    back: bool = False

    @property
    def size(self) -> int:
        """Positions."""
        return math.prod(self.extents)

    def stride(self, axis: int) -> int:
        """Return the numbers between neighbours along an axis."""
        return math.prod(self.extents[:axis])

    def along(self, position: Ints, axis: int) -> Ints:
        """Return the coordinate of positions on an axis."""
        found: Ints = position // self.stride(axis) % self.extents[axis]
        return found

    def moved(self, position: Ints, axis: int, to: Ints) -> Ints:
        """Return the positions with another coordinate on an axis."""
        found: Ints = position + (to - self.along(position, axis)) * self.stride(axis)
        return found

    def lines(self, axis: int) -> int:
        """Return how many rings an axis has."""
        return self.size // self.extents[axis]

    def line(self, position: Ints, axis: int) -> Ints:
        """Return the ring of each position: the other coordinates, the lowest axis fastest."""
        low = self.stride(axis)
        found: Ints = position // (low * self.extents[axis]) * low + position % low
        return found

    def spots(self, axis: int) -> Ints:
        """Return the positions of each ring, int64 (lines, extent)."""
        index = np.arange(self.size).reshape(-1, self.extents[axis], self.stride(axis))
        return np.swapaxes(index, 1, 2).reshape(-1, self.extents[axis])

    def broken(self, axis: int) -> Bools:
        """Return which rings of an axis lack a channel, bool (lines,)."""
        if self.whole[axis]:
            return np.zeros(self.lines(axis), dtype=np.bool_)
        gone = ~self.there[axis].all(axis=0)
        found: Bools = gone[self.spots(axis)].any(axis=1)
        return found


def made(machine: Machine) -> tuple[Grid, Channels]:
    """Return the grid and the channels, made once a machine."""
    found: tuple[Grid, Channels] = once(machine, "network torus", lambda: _grid(machine))
    return found


def _grid(machine: Machine) -> tuple[Grid, Channels]:
    from placement.topologies import router_coords
    from placement.topologies.grid import number

    topology = machine.topology
    extents = topology.extents[: topology.router_levels]
    position = number(router_coords(machine), extents, first_fastest=True)
    router = np.full(math.prod(extents), -1, dtype=np.int64)
    router[position] = np.arange(len(position))
    gbs, count = _figures(machine, extents, position, router)
    there = count > 0
    channel = np.where(there, np.cumsum(there).reshape(there.shape) - 1, -1).astype(np.int32)
    whole = tuple(e == 1 or bool(t.all()) for e, t in zip(extents, there, strict=True))
    grid = Grid(extents, position, router, there, channel, whole)
    return grid, _channels(machine, grid, gbs, count)


def _channels(machine: Machine, grid: Grid, gbs: Floats, count: Ints) -> Channels:
    axis, way, at = np.nonzero(grid.there)
    step = np.where(way == 0, 1, -1)
    target = np.empty_like(at)
    for k, extent in enumerate(grid.extents):
        own = axis == k
        to = (grid.along(at[own], k) + step[own]) % extent
        target[own] = grid.moved(at[own], k, to)
    limited = np.isfinite(gbs[grid.there])
    return Channels(
        machine=machine,
        source=grid.router[at].astype(np.int32),
        target=grid.router[target].astype(np.int32),
        kind=axis.astype(np.int8),
        kinds=machine.topology.levels[: len(grid.extents)],
        count=count[grid.there].astype(np.int32),
        bandwidth=np.where(limited, gbs[grid.there], np.inf),
    )


def _figures(
    machine: Machine, extents: tuple[int, ...], position: Ints, router: Ints
) -> tuple[Floats, Ints]:
    """Return GB/s and links of every slot, (axes, 2, positions); 0 links where there is none."""
    gbs = np.zeros((len(extents), 2, len(router)))
    count = np.zeros((len(extents), 2, len(router)), dtype=np.int64)
    for axis, extent in enumerate(extents):
        if extent == 1:
            continue
        after = _after(extents, axis)
        gbs[axis, 0], count[axis, 0] = _links_up(machine, extents, axis, router, after)
        gbs[axis, 1, after], count[axis, 1, after] = gbs[axis, 0], count[axis, 0]
    return gbs, count


def _after(extents: tuple[int, ...], axis: int) -> Ints:
    """Return the position one step up an axis from each."""
    index = np.arange(math.prod(extents)).reshape(extents[::-1])
    return np.roll(index, -1, axis=len(extents) - 1 - axis).ravel()


def _links_up(
    machine: Machine, extents: tuple[int, ...], axis: int, router: Ints, after: Ints
) -> tuple[Floats, Ints]:
    """Return GB/s and number of the links one step up an axis from each position."""
    ruled = _ruled(machine, extents, axis)
    if machine.links is None:
        return ruled, ((router >= 0) & (router[after] >= 0)).astype(np.int64)
    a, b = router, router[after]
    gbs, count = _looked_up(machine, axis, a, b)
    if extents[axis] == 2:  # one row of the list has both links of such a pair
        share = np.where(np.isnan(ruled), 0.5, ruled / (ruled + ruled[after]))
        return gbs * share, np.where(_start(extents, axis) == 0, count - count // 2, count // 2)
    return gbs, count


def _start(extents: tuple[int, ...], axis: int) -> Ints:
    """Return the coordinate on an axis of each position."""
    return np.arange(math.prod(extents)) // math.prod(extents[:axis]) % extents[axis]


def _ruled(machine: Machine, extents: tuple[int, ...], axis: int) -> Floats:
    """Return GB/s of the links one step up an axis by the machine's figures, NaN unknown."""
    from placement.topologies.torus import link_bandwidth

    topology = machine.topology
    start = _start(extents, axis)
    which = np.full(len(start), axis, dtype=np.int8)
    kinds = topology.levels[: len(extents)]
    return link_bandwidth(
        which, start, kinds, topology.bandwidth, gemini=topology.fabric == "gemini"
    )


def _looked_up(machine: Machine, axis: int, a: Ints, b: Ints) -> tuple[Floats, Ints]:
    """Return what the list says of the links of a class between routers; 0 links for none."""
    links = machine.links
    assert links is not None
    span = int(max(a.max(), b.max())) + 1
    name = machine.topology.levels[axis]
    own = np.flatnonzero(links.kind == (links.kinds.index(name) if name in links.kinds else -1))
    key = links.a[own].astype(np.int64) * span + links.b[own]
    order = np.argsort(key)
    wanted = np.minimum(a, b) * span + np.maximum(a, b)
    place = np.minimum(np.searchsorted(key[order], wanted), max(0, len(own) - 1))
    if not len(own):
        return np.full(len(a), np.nan), np.zeros(len(a), dtype=np.int64)
    row = own[order[place]]
    same = (key[order[place]] == wanted) & (a >= 0) & (b >= 0)
    return links.bandwidth[row], np.where(same, links.count[row], 0).astype(np.int64)
