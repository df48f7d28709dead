"""How the bytes of a demand may be divided between minimal ways and those over a third group.

Three answers, from the finest: every router pair for itself (`Pairs`); every
router pair, its share being the sum of one that (source, target's group) and
one that (target, source's group) has (`Sides`); every group pair (`Between`).
All of them say the same in four words: how many bytes can take the minimal
ways (`cap`), which bytes by router and group that makes (`bytes`), what a byte
costs (`price`), and the share of any router pair (`share`). And all of them
bound what can be saved by any division (`saved`), finer ones too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network.balancing import dot
from placement.network.group_ways import Bytes
from placement.support.arrays import summed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.network.demand import Demand
    from placement.network.group_ways import GroupWays, Ways

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Between", "Pairs", "Sides", "Variables", "variables_of"]

#: Router pairs that are divided one by one, at most.
MOST_PAIRS = 250_000

#: Numbers in the table of router pairs that `Sides` needs, at most.
MOST_TABLE = 25_000_000


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
        self.routers = len(ways.unit)
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

    def share(self, x: Floats, source: Ints, target: Ints) -> Floats:
        """Return the share on minimal ways of router pairs; 1 where they exchange nothing."""
        out = np.ones(len(source))
        if not len(self.source):
            return out
        key, wanted = self.source * self.routers + self.target, source * self.routers + target
        place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        known = key[place] == wanted
        out[known] = x[place[known]] / self.cap[place[known]]
        return out


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
        self.every, self.unit = every, ways.unit
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

    def share(self, x: Floats, source: Ints, target: Ints) -> Floats:
        """Return the share on minimal ways of router pairs."""
        found: Floats = self._factor(x)[self.unit[source], self.unit[target]]
        return found


class Sides:
    """A share of its own for every (source, far group) and every (target, far group), added.

    Each is at most a half. For the bytes by router and group, which are all
    that loads depend on, that is nearly as good as every router pair for
    itself where all routers exchange bytes, and a hundred times less to find.

    Parameters
    ----------
    ways : GroupWays
    table : float64 (groups, groups, senders, receivers)
        Bytes that can be divided, ``[g, h, s, t]``.
    senders, receivers : int64 (groups, senders), (groups, receivers)
        Positions that the table's last two axes stand for.
    """

    name = "both sides of group pairs"

    def __init__(self, ways: GroupWays, table: Floats, senders: Ints, receivers: Ints) -> None:
        self.table, self.senders, self.receivers = table, senders, receivers
        self.ways = ways
        self.sent, self.got = table.sum(axis=3), table.sum(axis=2)
        self.cap = np.concatenate([self.sent.reshape(-1), self.got.reshape(-1)]) / 2
        self.groups = np.arange(ways.count)[:, None]
        self.size = table.size + 4 * len(self.cap)

    def _split(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the variables of the senders and of the receivers."""
        size = self.sent.size
        return x[:size].reshape(self.sent.shape), x[size:].reshape(self.got.shape)

    def bytes(self, x: Floats) -> Bytes:
        """Return bytes by router and far group."""
        sent, got = self._split(x)
        p, q = _over(sent, self.sent), _over(got, self.got)
        away = sent + _over_receivers(self.table, q)
        home = got + _over_senders(self.table, p)
        shape = self.ways.count, self.ways.groups.width, self.ways.count
        out = Bytes(np.zeros(shape), np.zeros(shape))
        out.away[self.groups, self.senders] = away.transpose(0, 2, 1)
        out.home[self.groups, self.receivers] = home.transpose(1, 2, 0)
        return out

    def price(self, cost: Ways) -> Floats:
        """Return what a byte of each variable costs."""
        away = (cost.away + cost.across[:, None, :])[self.groups, self.senders].transpose(0, 2, 1)
        home = cost.home[self.groups, self.receivers].transpose(2, 0, 1)
        far = _over(_over_receivers(self.table, home), self.sent)
        near = _over(_over_senders(self.table, away), self.got)
        return np.concatenate([(away + far).reshape(-1), (home + near).reshape(-1)])

    def share(self, x: Floats, source: Ints, target: Ints) -> Floats:
        """Return the share on minimal ways of router pairs."""
        sent, got = self._split(x)
        p, q = _over(sent, self.sent, 0.5), _over(got, self.got, 0.5)
        count, width = self.ways.count, self.ways.groups.width
        by_source, by_target = np.full((2, count, width, count), 0.5)
        by_source[self.groups, self.senders] = p.transpose(0, 2, 1)
        by_target[self.groups, self.receivers] = q.transpose(1, 2, 0)
        unit, place = self.ways.unit, self.ways.groups.place
        g, h = unit[source], unit[target]
        found: Floats = by_source[g, place[source], h] + by_target[h, place[target], g]
        return found

    def saved(self, cost: Ways) -> float:
        """Return what is saved (below 0) where every router pair takes its cheaper ways."""
        away = (cost.away + cost.across[:, None, :])[self.groups, self.senders].transpose(0, 2, 1)
        home = cost.home[self.groups, self.receivers].transpose(2, 0, 1)
        total = 0.0
        for some, a, b in zip(self.table, away, home, strict=True):
            each = a[:, :, None] + b[:, None, :]
            total += float(np.einsum("hst,hst->", some, np.minimum(each, 0, out=each)))
        return total


Variables = Pairs | Sides | Between


def _over_receivers(table: Floats, by: Floats) -> Floats:
    """Return sums of bytes over the receivers times ``by[g, h, t]``."""
    found: Floats = np.einsum("ghst,ght->ghs", table, by)
    return found


def _over_senders(table: Floats, by: Floats) -> Floats:
    """Return sums of bytes over the senders times ``by[g, h, s]``."""
    found: Floats = np.einsum("ghst,ghs->ght", table, by)
    return found


def _over(part: Floats, whole: Floats, otherwise: float = 0.0) -> Floats:
    """Return part / whole, and `otherwise` where there is nothing."""
    out: Floats = np.divide(part, whole, out=np.full(whole.shape, otherwise), where=whole > 0)
    return out


def variables_of(
    ways: GroupWays, demand: Demand, every: Bytes, free: NDArray[np.bool_]
) -> Variables:
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
    sends, gets = (x.sum(axis=2) > 0 for x in every)
    if len(demand.source) + _products(demand) <= MOST_PAIRS:
        return Pairs(ways, *_listed(ways, demand, free))
    senders, receivers = (_compact(x) for x in (sends, gets))
    if ways.count**2 * senders.shape[1] * receivers.shape[1] <= MOST_TABLE:
        return _sides(ways, demand, free, senders, receivers)
    return Between(ways, every)


def _products(demand: Demand) -> int:
    """Return the router pairs of all all-to-alls, each counted as often as it comes."""
    lines = demand.within
    size = np.bincount(lines.line, minlength=len(lines))
    return int((size**2).sum())


def _listed(ways: GroupWays, demand: Demand, free: NDArray[np.bool_]) -> tuple[Ints, Ints, Floats]:
    """Return the router pairs that can be divided, ascending."""
    parts = [tuple(map(np.asarray, part)) for part in demand.blocks()]
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0)
    source, target, amount = (np.concatenate([part[i] for part in parts]) for i in range(3))
    unit = ways.unit
    kept = free[unit[source], unit[target]]
    return source[kept].astype(np.int64), target[kept].astype(np.int64), amount[kept]


def _compact(used: NDArray[np.bool_]) -> Ints:
    """Return the positions in use of each group, filled up with others to the same number."""
    most = max(1, int(used.sum(axis=1).max(initial=0)))
    return np.argsort(~used, axis=1, kind="stable")[:, :most]


def _sides(
    ways: GroupWays, demand: Demand, free: NDArray[np.bool_], senders: Ints, receivers: Ints
) -> Sides:
    count, width = ways.count, ways.groups.width
    at = np.full(count * width, -1, dtype=np.int64)
    every = np.arange(len(ways.unit))
    at[ways.slot(every)] = every
    router = at.reshape(count, width)
    rows, columns = (np.take_along_axis(router, x, axis=1) for x in (senders, receivers))
    table = np.zeros((count, count, senders.shape[1], receivers.shape[1]))
    for g in np.flatnonzero((rows >= 0).any(axis=1)).tolist():
        low, high = int(rows[g][rows[g] >= 0].min()), int(rows[g].max()) + 1
        block = demand.table(low, high)
        picked = block[np.maximum(rows[g] - low, 0)][:, np.maximum(columns, 0)]
        picked *= (rows[g] >= 0)[:, None, None] & (columns >= 0) & free[g][:, None]
        table[g] = picked.transpose(1, 0, 2)
    return Sides(ways, table, senders, receivers)
