"""What each of a few router pairs changes on single channels, when its bytes go minimal ways.

`placement.network.group_ways` follows a price on every channel through tables of all routers.
Here each channel is looked at for itself: only paths in its own group pass it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.support.arrays import product

if TYPE_CHECKING:
    from placement.network.group_ways import GroupWays
    from placement.support.array_types import Floats, Ints


__all__ = ["PairChanges"]


class PairChanges:
    """Router pairs, each with all that its minimal ways have more than its other ways.

    Parameters
    ----------
    ways : GroupWays
    source, target : int64 (n,)
        Routers: of two groups, or of one.
    """

    def __init__(self, ways: GroupWays, source: Ints, target: Ints) -> None:
        self.ways = ways
        self.unit = ways.unit[source], ways.unit[target]
        self.place = ways.groups.place[source], ways.groups.place[target]
        g, h = self.unit
        self.each = ways.each[g, h]
        self.far, self.near = np.flatnonzero(g != h), np.flatnonzero(g == h)
        self.row = np.full(len(ways.groups.channels), -1)
        self.row[ways.groups.inside] = np.arange(len(ways.groups.inside))
        self.by_channel = np.argsort(ways.channel, kind="stable")

    def on(self, channels: Ints) -> Floats:
        """Return the bytes of each channel, by a byte of each pair: float64 (channels, n)."""
        out = np.zeros((len(channels), len(self.each)))
        groups, row = self.ways.groups, self.row[channels]
        inside, some = np.flatnonzero(row >= 0), np.flatnonzero(row < 0)
        out[some] = self._between(channels[some])
        group = groups.group[groups.channels.source[channels[inside]]]
        for k in np.unique(group).tolist():
            some = inside[group == k]
            out[some] = self._inside(k, row[some])
        return out

    def _inside(self, k: int, spot: Ints) -> Floats:
        """Return what channels inside a group of the machine carry."""
        ways, groups, width = self.ways, self.ways.groups, self.ways.groups.width
        table = np.zeros((len(spot), width * width))
        table[np.arange(len(spot)), groups.spot[spot] % width**2] = groups.ways[spot]
        shape = np.full(len(spot), groups.shape[k])
        passing = groups.local.priced(shape, table.reshape(-1, width, width))
        out = np.zeros((len(spot), len(self.each)))
        for unit in np.flatnonzero(ways.home == k):
            self._over_gates(out, int(unit), passing)
        own = self.near[ways.home[self.unit[0][self.near]] == k]
        if len(own):
            s, t = (place[own] for place in self.place)
            paid = passing * (ways.detour[k] > 0)
            over = paid.sum(axis=2)[:, s] + paid.sum(axis=1)[:, t] - 2 * paid[:, s, t]
            out[:, own] = passing[:, s, t] - over * ways.detour[k][s, t]
        return out

    def _over_gates(self, out: Floats, unit: int, passing: Floats) -> None:
        """Add what goes from and to the gates of a group, as the first, the last or the third."""
        ways, gates = self.ways, self.ways.gates[unit]
        more = gates - ways.each[unit][:, None] * product(ways.joins, gates)
        for end, paths in ((0, passing), (1, np.swapaxes(passing, 1, 2))):
            own = self.far[self.unit[end][self.far] == unit]
            carried = product(paths, more.T)
            out[:, own] += carried[:, self.place[end][own], self.unit[1 - end][own]]
        through = product(product(gates, passing), gates.T)
        g, h = (ends[self.far] for ends in self.unit)
        out[:, self.far] -= through[:, g, h] * self.each[self.far]

    def _between(self, channels: Ints) -> Floats:
        """Return what channels between groups carry."""
        ways = self.ways
        row = self.by_channel[np.searchsorted(ways.channel, channels, sorter=self.by_channel)]
        a, b = (x[:, None] for x in np.divmod(ways.between[row], ways.count))
        g, h = self.unit
        minimal = (a == g) & (b == h)
        over = (a == g) * ways.joins[b, h] * (b != h) + (b == h) * ways.joins[g, a] * (a != g)
        found: Floats = (minimal - over * self.each * (g != h)) * ways.share[row][:, None]
        return found
