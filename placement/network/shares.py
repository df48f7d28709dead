"""How the bytes of a demand may be divided between minimal ways and those over a third group.

Every router pair for itself (`Pairs`), or all of a group pair alike (`Between`)
where there are too many. Both say the same in three words: how many bytes can
take the minimal ways (`cap`), which bytes by router and group that makes
(`bytes`), and what a byte costs (`price`). And both bound what can be saved by
any division of router pairs (`saved`).
"""

from __future__ import annotations

import numpy as np

from placement.network.balancing import dot
from placement.network.demand import Demand
from placement.network.group_ways import Bytes, GroupWays, Ways
from placement.support.array_types import Floats, Ints, Mask
from placement.support.arrays import product, summed

__all__ = ["Between", "PairChanges", "Pairs", "Variables", "variables_of"]

#: Router pairs that are divided one by one, at most: all of a machine of some 1,500 routers.
MOST_PAIRS = 2_500_000


class Pairs:
    """Every router pair for itself.

    Parameters
    ----------
    ways : GroupWays
    source, target : int64 (n,)
    amount : float64 (n,)
    """

    name = "router pairs"

    def __init__(self, ways: GroupWays, source: Ints, target: Ints, amount: Floats) -> None:
        self.cap, self.size = amount, 6 * len(amount)
        self.shape = ways.count, ways.groups.width, ways.count
        g, h = ways.unit[source], ways.unit[target]
        self.ends = g, h, ways.groups.place[source], ways.groups.place[target]
        self.away = ways.slot(source) * ways.count + h
        self.home = ways.slot(target) * ways.count + g

    def bytes(self, x: Floats) -> Bytes:
        """Return bytes by router and far group."""
        size = int(np.prod(self.shape))
        away, home = (summed(key, x, size) for key in (self.away, self.home))
        return Bytes(away.reshape(self.shape), home.reshape(self.shape))

    def price(self, cost: Ways) -> Floats:
        """Return what a byte of each variable costs."""
        away = cost.away + cost.across[:, None, :]
        found: Floats = away.reshape(-1)[self.away] + cost.home.reshape(-1)[self.home]
        return found

    def saved(self, cost: Ways) -> float:
        """Return what is saved (below 0) where every router pair takes its cheaper ways."""
        return dot(self.cap, np.minimum(self.price(cost), 0.0))


class Between:
    """One share for all router pairs of a group pair.

    Parameters
    ----------
    every : Bytes
        What can be divided.
    """

    name = "group pairs"

    def __init__(self, every: Bytes) -> None:
        self.every = every
        self.total = every.between
        self.cap = self.total.reshape(-1)
        self.size = 2 * every.away.size

    def bytes(self, x: Floats) -> Bytes:
        """Return bytes by router and far group."""
        shape = self.total.shape
        share = np.divide(x.reshape(shape), self.total, out=np.ones(shape), where=self.total > 0)
        return self.every.times(share)

    def price(self, cost: Ways) -> Floats:
        """Return what a byte of each variable costs."""
        away = np.einsum("gsh,gsh->gh", self.every.away, cost.away)
        home = np.einsum("htg,htg->gh", self.every.home, cost.home)
        mean = np.divide(away + home, self.total, out=np.zeros_like(away), where=self.total > 0)
        found: Floats = (mean + cost.across).reshape(-1)
        return found

    def saved(self, cost: Ways) -> float:
        """Return at most what is saved where every router pair takes its cheaper ways.

        min(a + b, 0) >= min(a - c, 0) + min(b + c, 0) for any c; c is the
        mean of a here, so sums by router and group are enough.
        """
        a, b = cost.away + cost.across[:, None, :], cost.home
        sent = np.einsum("gsh,gsh->gh", self.every.away, a)
        mean = np.divide(sent, self.total, out=np.zeros_like(sent), where=self.total > 0)
        one = (self.every.away * np.minimum(a - mean[:, None, :], 0)).sum()
        other = (self.every.home * np.minimum(b + mean.T[:, None, :], 0)).sum()
        return float(one + other)


Variables = Pairs | Between


class PairChanges:
    """What router pairs change on single channels, when their bytes go minimal ways.

    `placement.network.group_ways` follows a price on every channel through tables of all
    routers. Here each channel is looked at for itself: only paths in its own group pass it.

    Parameters
    ----------
    ways : GroupWays
    g, h, s, t : int64 (n,)
        The group of the source and of the target, one or two, and their positions there.
    """

    def __init__(self, ways: GroupWays, g: Ints, h: Ints, s: Ints, t: Ints) -> None:
        self.ways, self.unit, self.place = ways, (g, h), (s, t)
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


def variables_of(ways: GroupWays, demand: Demand, every: Bytes, free: Mask) -> Variables:
    """Return the finest variables that the size of the demand allows.

    Parameters
    ----------
    ways : GroupWays
    demand : Demand
    every : Bytes
        What can be divided, of `demand`.
    free : bool (groups, groups)
        Group pairs whose bytes can be divided.
    """
    entries = np.bincount(demand.within.line)
    if len(demand.source) + int((entries**2).sum()) <= MOST_PAIRS:
        return Pairs(ways, *_divisible_pairs(ways, demand, free))
    return Between(every)


def _divisible_pairs(ways: GroupWays, demand: Demand, free: Mask) -> tuple[Ints, Ints, Floats]:
    """Return the router pairs that can be divided, ascending."""
    parts = [tuple(map(np.asarray, part)) for part in demand.blocks()]
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0)
    source, target, amount = (np.concatenate([part[i] for part in parts]) for i in range(3))
    unit = ways.unit
    kept = free[unit[source], unit[target]]
    return source[kept].astype(np.int64), target[kept].astype(np.int64), amount[kept]
