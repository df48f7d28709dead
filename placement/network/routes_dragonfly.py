"""Routes between few routers of a dragonfly under ``minimal``, all at once.

What a router's messages put on the links of its own group depends on the
group they go to, and what arrives on that group they come from. So one pass
over the group of each router tells the routes to and from all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network import minimal
from placement.network.arrays import product, summed
from placement.network.groups import groups_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.groups import Groups

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["routes"]


def routes(machine: Machine, routers: Ints) -> tuple[Ints, Floats] | None:
    """Return the channels between some routers, and the share of a message on each.

    Parameters
    ----------
    machine : Machine
        A dragonfly.
    routers : int64 (k,)
        Each once.

    Returns
    -------
    channels : int64 (c,)
        Rows of the machine's channels that any route takes.
    share : float64 (k, k, c)
    None
        Where groups lack a link of their own.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=1,chassis=2,blades=2,nodes=1")
    >>> used, share = routes(m, np.array([0, 3]))
    >>> used.tolist(), share[0, 1].tolist()
    ([0, 1, 2, 3, 4, 5, 6, 7], [0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
    """
    groups = groups_of(machine)
    if not minimal.applies(groups):
        return None
    ends = _Ends(groups, routers)
    used = np.flatnonzero(ends.used())
    place = np.full(len(groups.channels), -1)
    place[used] = np.arange(len(used))
    share = np.zeros((len(routers), len(routers), len(used)))
    for i in range(len(routers)):
        for j in range(len(routers)):
            for channel, part in ends.between(i, j) if i != j else ():
                kept = part > 0
                share[i, j, place[channel[kept]]] += part[kept]
    return used, share


class _Ends:
    """What each of some routers sends and receives by the channels of its own group."""

    def __init__(self, groups: Groups, routers: Ints) -> None:
        self.groups = groups
        self.group, self.place = groups.group[routers], groups.place[routers]
        gates = minimal.gates(groups)
        source, target = (
            x[groups.inside].astype(np.int64)
            for x in (groups.channels.source, groups.channels.target)
        )
        home = groups.group[source]
        self.own = {g: np.flatnonzero(home == g) for g in np.unique(self.group).tolist()}
        self.start, self.end = groups.place[source], groups.place[target]
        self.out = [self._inside(g, p, True) for g, p in zip(self.group, self.place, strict=True)]
        self.into = [self._inside(g, p, False) for g, p in zip(self.group, self.place, strict=True)]
        self.away = [product(gates[g], out) for g, out in zip(self.group, self.out, strict=True)]
        self.home = [product(gates[g], into) for g, into in zip(self.group, self.into, strict=True)]
        found = groups.bundles
        self.share = found.times / summed(found.pair, found.times)[found.pair]
        self.number = np.full((groups.count, groups.count), -1)
        self.number[found.low, found.high] = np.arange(len(found.low))

    def _inside(self, group: int, at: int, leaving: bool) -> Floats:
        """Return the share on each channel of the group, (positions, channels).

        Of a message from `at` to each position, or (not `leaving`) from each to `at`.
        """
        local, shape = self.groups.local, self.groups.shape[group]
        rows = self.own[int(group)]
        ways, length = local.ways[shape], local.length[shape].astype(np.int64)
        u, v = self.start[rows], self.end[rows]
        many = self.groups.ways[rows]
        near, far = (u, v) if leaving else (v, u)
        on = length[at][near][None, :] + 1 + length[:, far] == length[at][:, None]
        paths = ways[at][near][None, :] * many * ways[:, far]
        return np.asarray(np.where(on, paths, 0.0) / np.maximum(ways[at], 1.0)[:, None])

    def between(self, i: int, j: int) -> list[tuple[Ints, Floats]]:
        """Return (channels, shares) of the stretches of the way from one router to another."""
        g, h = int(self.group[i]), int(self.group[j])
        own = self.groups.inside[self.own[g]]
        if g == h:
            return [(own, self.out[i][self.place[j]])]
        found = self.groups.bundles
        pair = self.number[min(g, h), max(g, h)]
        links = slice(found.first[pair], found.first[pair + 1])
        across = (found.up if g < h else found.down)[links]
        there = self.groups.inside[self.own[h]]
        return [
            (own, self.away[i][h]),
            (across, self.share[links]),
            (there, self.home[j][g]),
        ]

    def used(self) -> NDArray[np.bool_]:
        """Return which channels any route takes."""
        used = np.zeros(len(self.groups.channels), dtype=bool)
        for i in range(len(self.group)):
            for j in range(len(self.group)):
                for channel, part in self.between(i, j) if i != j else ():
                    used[channel[part > 0]] = True
        return used
