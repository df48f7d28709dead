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
from placement.support.arrays import summed

__all__ = ["Between", "Pairs", "Variables", "variables_of"]

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
        self.source, self.target, self.cap = source, target, amount
        self.size = 6 * len(amount)
        self.shape = ways.count, ways.groups.width, ways.count
        g, h = ways.unit[source], ways.unit[target]
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
    ways : GroupWays
    every : Bytes
        What can be divided.
    """

    name = "group pairs"

    def __init__(self, ways: GroupWays, every: Bytes) -> None:
        self.every = every
        self.total = every.between
        self.cap = self.total.reshape(-1)
        self.size = 2 * every.away.size

    def _factor(self, x: Floats) -> Floats:
        shape = self.total.shape
        return np.divide(x.reshape(shape), self.total, out=np.ones(shape), where=self.total > 0)

    def bytes(self, x: Floats) -> Bytes:
        """Return bytes by router and far group."""
        return self.every.times(self._factor(x))

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
    if len(demand.source) + _products(demand) <= MOST_PAIRS:
        return Pairs(ways, *_divisible_pairs(ways, demand, free))
    return Between(ways, every)


def _products(demand: Demand) -> int:
    """Return the router pairs of all all-to-alls, each counted as often as it comes."""
    lines = demand.within
    size = np.bincount(lines.line, minlength=len(lines))
    return int((size**2).sum())


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
