# SPDX-License-Identifier: Apache-2.0
"""Routing ``adaptive``: bytes split between minimal paths and detours as well as possible.

Every router pair divides its bytes between two kinds of ways. In different groups
these are the ways of ``minimal`` and those of ``valiant``, over a third group; in one
group all shortest paths, and detours over another router (each alike, shortest paths to it
and from it): of the row or column of an Aries that both are in, else of the whole group.
What detours cost is told by `Loads.losing`.

First all pairs have one share, the best one: loads are linear in it. Then a way weighs as much as
its channels together: high powers of their relative loads (bytes / bandwidth). Pairs shift bytes to
the lighter kind, which makes the largest load about as small as it can be.

All pairs shift at the same time, each by what its two kinds of ways differ, further
where it went the same way before and less where it turned (as Rprop does; Riedmiller and
Braun, 1993). Where more than `FEW` pairs exchange bytes those of two groups have one
share. Nothing is shifted any more where no channel takes longer than is enough, as where nodes'
own links take as long. The cost follows the groups that the demand touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network.channel_loads import Ways, has_spines
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.dragonfly import channels, path_hops
from nidmap.placement.network.groups import groups_of
from nidmap.placement.network.touched import (
    ChannelTables,
    GroupTraffic,
    PathPrices,
    TouchedGroups,
    TouchedRouters,
    TouchedTables,
    touched_tables,
)  # fmt: skip
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import add_by_key

__all__ = ["channels", "divide", "divide_each", "hops", "notes"]

#: Powers by which ways are weighed, one per step, of many groups every second one.
POWERS = (4, 4, 8, 8, 16, 16, 32, 32, 64, 64, 128, 128)

#: Halvings of the shares from none to all, to find the best one for all pairs; what is left of it
#: at both ends.
HALVINGS, LEAST_SHARE = 6, 0.2

#: Numbers in a table of all demands that are divided together.
TOGETHER = 1 << 17

#: Maximum number of router pairs whose bytes are split individually.
FEW = 1024

#: How far a pair shifts at first, by the logarithm of how much fuller its minimal ways are, how
#: much further and less far then, and at most; what they differ, and logits of shares, at most.
FIRST, LONGER, SHORTER, LONGEST, MOST, SURE = 3.0, 1.5, 0.5, 8.0, 4.0, 12.0

#: Weights below this are none.
TINY = 1e-300

FEW_GROUPS = "fewer than three groups: adaptive takes detours inside groups alone"

FEW_WITH_SPINES = "fewer than three groups: adaptive is the same as minimal"


class Pairs:
    """Router pairs in different groups, each with its own share.

    `listed` (p,): of each demand the rows of sources and of targets, and bytes. `joined` (n, n):
    groups between which bytes take the ways here.
    """

    def __init__(
        self, routers: TouchedRouters, listed: list[tuple[Ints, Ints, Floats]], joined: Mask
    ) -> None:
        count, width = len(routers.units), max(1, routers.width)
        demand = np.repeat(np.arange(len(listed)), [len(amount) for *_, amount in listed])
        source, target, amount = (np.concatenate(column) for column in zip(*listed, strict=True))
        g, h = source // width, target // width
        far = np.flatnonzero((g != h) & joined[g, h])
        self.demand, self.g, self.h, self.amount = demand[far], g[far], h[far], amount[far]
        first = self.demand * (count * width)
        self.away = (first + source[far]) * count + self.h
        self.home = (first + target[far]) * count + self.g
        self.shape = len(listed), count, width, count

    def take(self, share: Floats) -> tuple[Floats, Floats]:
        """Return the bytes by router and far group, given a share for each pair."""
        size, part = int(np.prod(self.shape)), share * self.amount
        away, home = add_by_key(self.away, part, size), add_by_key(self.home, part, size)
        return away.reshape(self.shape), home.reshape(self.shape)

    def weigh(self, price: PathPrices) -> Floats:
        """Return the weight of a byte of each pair."""
        away, home = price.away.reshape(-1)[self.away], price.home.reshape(-1)[self.home]
        across = price.across[self.demand, self.g, self.h]
        return np.asarray(across + away + home)


class Between:
    """All router pairs between two groups, with a common share."""

    def __init__(self, total: GroupTraffic) -> None:
        self.total, self.sums = total, total.away.sum(axis=-2)
        self.demand, self.g, self.h = self.at = np.nonzero(self.sums)
        self.amount = self.sums[self.at]

    def take(self, share: Floats) -> tuple[Floats, Floats]:
        """Return the bytes by router and far group, given a share for each pair of groups."""
        table = np.zeros(self.sums.shape)
        table[self.at] = share
        turned = table.swapaxes(-1, -2)
        return self.total.away * table[..., None, :], self.total.home * turned[..., None, :]

    def weigh(self, price: PathPrices) -> Floats:
        """Return the mean weight of a byte of each pair of groups."""
        away = np.einsum("dgsh,dgsh->dgh", self.total.away, price.away)
        home = np.einsum("dhtg,dhtg->dgh", self.total.home, price.home)
        across = price.across[self.at]
        return np.asarray(across + (away[self.at] + home[self.at]) / self.amount)


def notes(machine: Machine, routing: str = "adaptive") -> tuple[str, ...]:
    """Return remarks for a reader of the loads."""
    if groups_of(machine).count > 2:
        return ()
    return (FEW_WITH_SPINES if has_spines(machine) else FEW_GROUPS,)


def divide(machine: Machine, demand: Demand) -> Ways:
    """Split a demand between minimal paths and detours as well as possible; see `divide_each`."""
    return next(divide_each(machine, [demand], np.zeros(1)))


def divide_each(machine: Machine, demands: Sequence[Demand], enough: Floats) -> Iterator[Ways]:
    """Split each demand between minimal paths and detours, as well as possible or enough.

    They go through the same tables together: what takes time is not the sums but to ask for them.

    `machine`: a dragonfly. `demands`: those of the same routers, about. `enough` (demands,):
    seconds of the busiest channel at which a division is good enough.
    """
    if not demands:
        return
    used = np.unique(np.concatenate([demand.routers_used() for demand in demands]))
    touched = touched_tables(machine, used)
    listed = np.array([_pairs_of(demand) <= FEW for demand in demands])
    starts = 1 + np.flatnonzero(listed[1:] != listed[:-1])
    most = max(1, TOGETHER // touched.sought.numbers)
    for run in np.split(np.arange(len(demands)), starts):
        for first in range(0, len(run), most):
            part = run[first : first + most]
            together = [demands[k] for k in part.tolist()]
            yield from _divide_together(touched, together, enough[part], bool(listed[part[0]]))


def _pairs_of(demand: Demand) -> int:
    """Return an upper bound on the number of router pairs that exchange bytes."""
    return len(demand.source) + int((np.bincount(demand.within.line) ** 2).sum())


def _divide_together(
    touched: TouchedTables, demands: Sequence[Demand], enough: Floats, pairwise: bool
) -> Iterator[Ways]:
    """Split demands that share all tables; `pairwise`: each pair of routers has its own share."""
    groups, routers, units = touched.groups, touched.routers, touched.routers.units
    total = routers.traffic(demands)
    # (groups, groups), groups that neither links nor a third group join
    lost = ~(groups.linked | groups.valiant | groups.same)
    apart = lost[np.ix_(units, units)]
    # (demands,), which have bytes between such groups
    beyond = (total.away.sum(axis=-2) * apart).any(axis=(-1, -2))
    if beyond.any():
        total = total.between(~apart)
    variables: Pairs | Between = Between(total)
    if pairwise:
        variables = Pairs(routers, [routers.listed(demand) for demand in demands], ~apart)
    shares = _Shares(touched.sought, total, variables)
    kept = _fill_ways(touched.sought, touched.second, shares, enough)
    certain = shares.take(np.ones(len(shares.free)))
    divisions = [touched.load(part, total.minus(part)) for part in (certain, kept)]
    for k, demand in enumerate(demands):
        minimal, best = (
            at.channel_loads(ChannelTables(*(table[k] for table in tables)))
            for at, tables in divisions
        )
        if beyond[k]:
            far = groups.far_loads(demand, lost)
            minimal, best = minimal + far, best + far
        every_byte = float(total.away[k].sum() + total.inner[k].sum())
        moved = certain.away[k].sum() - kept.away[k].sum()
        moved += certain.inner[k].sum() - kept.inner[k].sum()
        yield Ways(minimal, best, max(0.0, float(moved)) / (every_byte or 1.0))


class _Shares:
    """Shares on minimal paths: of bytes between groups, then of bytes within groups."""

    def __init__(
        self, touched: TouchedGroups, total: GroupTraffic, variables: Pairs | Between
    ) -> None:
        groups, units = touched.groups, touched.routers.units
        self.total, self.variables = total, variables
        g, h = units[variables.g], units[variables.h]
        self.near = np.flatnonzero((total.inner > 0) & (touched.near > 0))
        always = np.ones(len(self.near), dtype=bool)
        self.free = np.concatenate([(groups.linked & groups.valiant)[g, h], always])
        self.certain = np.concatenate([groups.linked[g, h], always]).astype(np.float64)
        # (v,), the demand of each
        self.demand = np.concatenate([variables.demand, self.near // total.inner[0].size])

    def take(self, share: Floats) -> GroupTraffic:
        """Return the bytes that take minimal paths."""
        share = np.where(self.free, share, self.certain)
        count = len(self.variables.g)
        inner = self.total.inner.copy()
        inner.reshape(-1)[self.near] *= share[count:]
        return GroupTraffic(*self.variables.take(share[:count]), inner)

    def weigh(self, price: PathPrices) -> Floats:
        """Return the weight of a byte of each variable on one kind of path, minimal or detour."""
        inner = price.inner.reshape(-1)[self.near]
        weight: Floats = np.maximum(np.concatenate([self.variables.weigh(price), inner]), TINY)
        return weight


def _fill_ways(
    touched: TouchedGroups, second: ChannelTables, shares: _Shares, enough: Floats
) -> GroupTraffic:
    """Return the bytes on minimal paths once pairs displaced others and no channel is fuller.

    High powers may shift too far in the end, so the best division is the best that was come by.

    `enough` (demands,): seconds of the busiest channel at which nothing more is shifted.
    """

    def seconds(minimal: GroupTraffic) -> ChannelTables:
        return touched.load(minimal, shares.total.minus(minimal)).times(second)

    none, every = (shares.take(np.full(len(shares.free), part)) for part in (0.0, 1.0))
    most = seconds(every)
    best, least = every, most.largest()
    if not shares.free.any() or (least <= enough).all():
        return best
    share = _even_share(seconds(none), most)
    logit = np.log(share / (1 - share))[shares.demand]
    before, length = np.zeros(len(logit)), np.full(len(logit), FIRST)
    for power in (*POWERS[:: 2 if touched.mean_passing else 1], 0):
        minimal = shares.take(_share_of(logit))
        load = seconds(minimal)
        best, least = _choose_fewest(best, least, minimal, load.largest(), enough)
        if not power or (least <= enough).all():
            break
        ways, detours = map(shares.weigh, touched.prices(load.powers(power)))
        move = np.clip(np.log(ways / detours) / power, -MOST, MOST)
        length[move * before < 0] *= SHORTER
        length[move * before > 0] *= LONGER
        length, before = np.minimum(length, LONGEST), move
        logit = np.clip(logit - length * move, -SURE, SURE)
    return best


def _even_share(none: ChannelTables, every: ChannelTables) -> Floats:
    """Return the best uniform share of bytes on minimal paths, float64 (demands,).

    `none`, `every`: seconds of the channels where no bytes, and where all, take minimal ways.
    Between them the largest is convex.
    """
    first, last = (
        np.concatenate([table.reshape(len(table), -1) for table in ends], axis=1)
        for ends in (none, every)
    )
    change, rows = last - first, np.arange(len(first))
    low, high = np.zeros(len(first)), np.ones(len(first))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        grows = change[rows, np.argmax(first + middle[:, None] * change, axis=1)] > 0
        low, high = np.where(grows, low, middle), np.where(grows, middle, high)
    return np.clip((low + high) / 2, LEAST_SHARE, 1 - LEAST_SHARE)


def _choose_fewest(
    best: GroupTraffic, least: Floats, minimal: GroupTraffic, largest: Floats, enough: Floats
) -> tuple[GroupTraffic, Floats]:
    """Return, per demand, the better of two splits by largest load, and that load.

    The first that is small enough stays.
    """
    better = (largest < least) & (least > enough)
    chosen = (
        np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        for new, old in zip(minimal, best, strict=True)
    )
    return GroupTraffic(*chosen), np.where(better, largest, least)


def _share_of(logit: Floats) -> Floats:
    """Return the shares for logits, exactly 0 or 1 at both ends."""
    share: Floats = np.where(np.abs(logit) < SURE, 1 / (1 + np.exp(-logit)), logit > 0)
    return share


def hops(machine: Machine, source: Ints, target: Ints, routing: str = "adaptive") -> Floats:
    """Return the expected number of channels of each class between routers, float64 (m, classes).

    On an idle network, where every byte takes minimal ways (those over a
    third group where there are no others).
    """
    groups = groups_of(machine)
    ends = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
    return path_hops(groups, *ends, groups.valiant & ~groups.linked)
