# SPDX-License-Identifier: Apache-2.0
"""The positions of a torus, their outgoing links, and vectorised loads on its rings.

A ring of E positions has a channel from each position p to p+1 (direction +)
and one to p-1 (direction -), both known by the position that they leave. The
shorter way is taken; exactly half the ring goes to +. So + serves 1 … E // 2
steps and - serves 1 … (E - 1) // 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nidmap.placement.machine import Machine, once
from nidmap.placement.support.array_types import Array, Floats, Ints, Mask
from nidmap.placement.support.arrays import find_sorted
from nidmap.placement.topologies import number_coords, router_coords
from nidmap.placement.topologies.torus import link_bandwidth


@dataclass(frozen=True, eq=False)
class Grid:
    """The positions of a torus and their outgoing channels.

    A slot is (axis, direction, position), direction 0 being +; positions are
    numbered x fastest.
    """

    extents: tuple[int, ...]
    position: Ints  # (r,), of each router
    router: Ints  # (p,), at each position, -1 where there is none
    gbs: Floats  # (axes, 2, p), of the links that leave each slot
    count: Ints  # (axes, 2, p), how many there are

    @cached_property
    def there(self) -> Mask:
        """Slots that have a channel, bool (axes, 2, p)."""
        return self.count > 0

    @cached_property
    def slots(self) -> Ints:
        """The slots with a channel as flat indices, int64 (c,)."""
        return np.flatnonzero(self.there)

    @cached_property
    def channel(self) -> Ints:
        """Row of each slot's channel; -1 if there is none, int64 (axes, 2, p)."""
        row = np.cumsum(self.there).reshape(self.there.shape) - 1
        return np.where(self.there, row, -1)

    @cached_property
    def gaps(self) -> tuple[Ints, ...]:
        """Number of links missing from each ring (high, low), by axis; none on one position."""
        return tuple(
            (~self.rings(self.there, axis)[0]).sum(axis=1) * (extent > 1)
            for axis, extent in enumerate(self.extents)
        )

    @cached_property
    def reach(self) -> Ints:
        """Hops from each slot on before a missing link, at most the extent, (axes, 2, p)."""
        reach = np.zeros(self.there.shape, dtype=np.int64)
        for axis, extent in enumerate(self.extents):
            far, there = self.rings(reach, axis), self.rings(self.there, axis)
            for _ in range(extent):
                for way, turn in enumerate((-1, 1)):
                    far[way] = np.where(there[way], 1 + np.roll(far[way], turn, axis=1), 0)
        return reach

    def rings(self, of_slots: Array, axis: int) -> Array:
        """Return what is known of slots, (axes, 2, p), by ring: (2, high, extent, low)."""
        rings: Array = of_slots[axis].reshape(2, -1, self.extents[axis], self.stride(axis))
        return rings

    @property
    def size(self) -> int:
        """Number of positions."""
        return math.prod(self.extents)

    def stride(self, axis: int) -> int:
        """Return the index difference between neighbours along an axis."""
        return math.prod(self.extents[:axis])

    def along(self, position: Ints, axis: int) -> Ints:
        """Return the coordinate of positions on an axis."""
        coordinate: Ints = position // self.stride(axis) % self.extents[axis]
        return coordinate

    def moved(self, position: Ints, axis: int, to: Ints) -> Ints:
        """Return the positions with another coordinate on an axis."""
        moved: Ints = position + (to - self.along(position, axis)) * self.stride(axis)
        return moved


@once
def grid_of(machine: Machine) -> Grid:
    """Return the grid of a torus, cached with the machine."""
    extents = machine.topology.extents[: machine.topology.router_levels]
    position = number_coords(router_coords(machine), extents, first_fastest=True)
    cells = np.arange(math.prod(extents))
    router = np.full(len(cells), -1, dtype=np.int64)
    router[position] = np.arange(len(position))
    gbs = np.zeros((len(extents), 2, len(cells)))
    count = np.zeros(gbs.shape, dtype=np.int64)
    for axis, extent in enumerate(extents):
        if extent > 1:
            stride = math.prod(extents[:axis])
            start = cells // stride % extent
            after = cells + ((start + 1) % extent - start) * stride
            gbs[axis, 0], count[axis, 0] = _links_up(machine, axis, start, router, after)
            gbs[axis, 1, after], count[axis, 1, after] = gbs[axis, 0], count[axis, 0]
    gbs = np.where(np.isfinite(gbs), gbs, np.inf)
    return Grid(extents, position, router, gbs, count)


def _links_up(
    machine: Machine, axis: int, start: Ints, router: Ints, after: Ints
) -> tuple[Floats, Ints]:
    """Return GB/s and number of links one step up an axis from each position; 0 for none.

    `start` (p,): coordinate of each position on the axis. `router` (p,). `after` (p,): the
    position one step up.
    """
    topology, links, other = machine.topology, machine.links, router[after]
    ruled = link_bandwidth(
        np.full(len(start), axis, dtype=np.int8),
        start,
        topology.levels[: topology.router_levels],
        topology.bandwidth,
        gemini=topology.fabric == "gemini",
    )
    there = (router >= 0) & (other >= 0)
    if links is None:
        return ruled, there.astype(np.int64)
    name, span = topology.levels[axis], len(router) + 1
    on_axis = np.flatnonzero(links.kind == (links.kinds.index(name) if name in links.kinds else -1))
    key = links.a[on_axis].astype(np.int64) * span + links.b[on_axis]
    order = np.argsort(key)
    place = find_sorted(key[order], np.minimum(router, other) * span + np.maximum(router, other))
    row = np.append(on_axis[order], -1)[np.where(there, place, -1)]
    gbs = np.where(row >= 0, np.append(links.bandwidth, np.nan)[row], np.nan)
    count = np.where(row >= 0, np.append(links.count, 0)[row], 0).astype(np.int64)
    if topology.extents[axis] == 2:  # one row of the list has both links of such a pair
        # Of Gemini's two links of such a pair one may leave its blade and be slower: shares by the
        # rule's bandwidths, halves where it has none.
        share = np.where(np.isnan(ruled), 0.5, ruled / (ruled + ruled[after]))
        return gbs * share, np.where(start == 0, count - count // 2, count // 2)
    return gbs, count


def ring_hops(start: Ints, target: Ints, extent: int) -> tuple[Ints, Ints]:
    """Return the hops in + and in - direction; one of them is 0.

    `start`, `target` (m,): positions on the ring. `extent`: positions that the ring has.
    """
    ahead = (target - start) % extent
    # Half way round both ways are equally long; the + direction is taken.
    plus = 2 * ahead <= extent
    return np.where(plus, ahead, 0), np.where(plus, 0, (extent - ahead) % extent)


def ring_loads(extent: int, flow: Callable[[int], Floats]) -> Floats:
    """Return the loads of rings whose positions send bytes to each other.

    `flow`: given hops (negative in - direction), the bytes from each position to that so far,
    (extent, …). Returns (2, extent, …): of the + channels and of the - channels by the position
    that they leave.
    """
    loads = []
    for way, most in ((1, extent // 2), (-1, (extent - 1) // 2)):
        passed = np.zeros_like(flow(0))
        load = passed.copy()
        for hops in range(most, 0, -1):  # what has this far to go: it came, or begins here
            passed = np.roll(passed, way, axis=0)
            passed += flow(way * hops)
            load += passed
        loads.append(load)
    return np.stack(loads)
