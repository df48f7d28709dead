# SPDX-License-Identifier: Apache-2.0
"""Write ``rtr --interconnect`` of an XE or XK: every link from both of its ends."""

from __future__ import annotations

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Links, Machine
from nidmap.placement.readers.rtr_gemini import MEDIA
from nidmap.placement.support.array_types import Floats, Ints, Strs
from nidmap.placement.topologies import router_coords, router_names
from nidmap.placement.topologies.torus import link_bandwidth
from tests.writers.rtr import deal, network_of

_AXES = ("x", "y", "z")
_DIRECTIONS = ("X+", "X-", "Y+", "Y-", "Z+", "Z-")
#: Tiles of the network: the middle eight, l23 to l54, lead to the nodes.
_TILES = np.array([t for t in range(48) if not (2 <= t // 8 <= 5 and t % 8 in (3, 4))])


def write(machine: Machine) -> str:
    """Return the links of a machine as ``rtr --interconnect`` prints them.

    Parameters
    ----------
    machine : Machine
        A Cray XE or XK with a link list of its own. Its nodes are not in the
        format. Tiles are dealt in the order X+, X-, Y+, Y-, Z+, Z-; the link
        type is told from the bandwidth of a link and left out where that is
        no Gemini's.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        Where it is another machine, no dump lists its links, a router has
        more than 40, or a link joins no neighbours.
    """
    routers, coords, links = network_of(machine, "gemini", _AXES, len(_TILES))
    axis = np.array([_AXES.index(kind) for kind in links.kinds], dtype=np.int64)[links.kind]
    bandwidth = machine.topology.bandwidth
    figures = [  # GB/s of each bundle's links up from `a`, and of those up from `b`
        link_bandwidth(
            axis.astype(np.int8), coords[end, axis].astype(np.int64), _AXES, bandwidth, gemini=True
        )
        for end in (links.a, links.b)
    ]
    ways = _upward(machine, links, axis, figures)
    row = np.repeat(np.arange(len(links)), links.count)
    up = np.arange(len(row)) - np.searchsorted(row, row) < ways[row]
    a, b = links.a[row].astype(np.int64), links.b[row].astype(np.int64)
    way, back = 2 * axis[row] + ~up, 2 * axis[row] + up
    tile_a, tile_b = _TILES[deal(a, b, way, back)]
    medium = _media(links, ways, figures)[1 - up.astype(np.int64), row]
    ends = [f"[({x},{y},{z})]" for x, y, z in coords.tolist()]
    lines: list[tuple[int, int, str]] = []
    columns = (a, tile_a, way, b, tile_b, back, medium)
    for i, s, w, j, t, v, m in zip(*(c.tolist() for c in columns), strict=True):
        here = f"{routers[i]}l{s:02o}{ends[i]}"
        there = f"{routers[j]}l{t:02o}{ends[j]}"
        lines.append((i, s, f"{here} {_DIRECTIONS[w]} -> {there}{m}"))
        lines.append((j, t, f"{there} {_DIRECTIONS[v]} -> {here}{m}"))
    return "\n".join((*(line for _, _, line in sorted(lines)), ""))


def _upward(machine: Machine, links: Links, axis: Ints, figures: list[Floats]) -> Ints:
    """Return how many links of each bundle go up their axis from `a`.

    On an axis of two routers a bundle can hold the links of both ways round.
    Their bandwidth tells whether it does: each way has one of its own.
    """
    extent = np.array(machine.topology.extents[:3], dtype=np.int64)
    coords = router_coords(machine)
    step = (coords[links.b] - coords[links.a]) % extent
    rows = np.arange(len(links))
    own = step[rows, axis]
    step[rows, axis] = 0
    up, down = own == 1, own == extent[axis] - 1
    wrong = np.flatnonzero(step.any(axis=1) | ~(up | down))
    if wrong.size:
        i = int(wrong[0])
        routers = router_names(machine)
        names = f"{routers[links.a[i]]} and {routers[links.b[i]]}"
        raise UsageError(f"{names} have a link along {_AXES[axis[i]]} but are not neighbours")
    one, other = figures
    total = links.bandwidth
    both = np.isnan(total) | np.isclose(total, one + other) | (links.count < 2)
    either = np.where(np.isclose(total, one), links.count, 0)
    either = np.where(both, (links.count + 1) // 2, either)
    return np.where(up & down, either, np.where(up, links.count, 0))


def _media(links: Links, ways: Ints, figures: list[Floats]) -> Strs:
    """Return the ends of the lines of links up from `a` and of those up from `b`, (2, bundles).

    They say the link type as far as its bandwidth tells.
    """
    split = (ways > 0) & (ways < links.count)
    total = np.where(split, figures, links.bandwidth)
    speed = total / np.maximum([ways, links.count - ways], 1)
    medium = np.full(speed.shape, "", dtype="U22")
    for name, value in MEDIA.items():
        medium[np.isclose(speed, value)] = f" LinkType: {name}"
    return medium
