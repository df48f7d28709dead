"""The part of a dragonfly that a demand touches: its groups, and the third groups between them.

What a router sends to another group depends on that group alone, as in
`placement.network.group_ways`: tables by (group, router, group) tell all loads. Here they have
the touched groups and routers alone. Behind the touched groups stand the third groups that are
looked at: all others for the loads of a division, and a few that stand for all while it is
sought. Loads are relative (bytes / bandwidth), by place in tables; what `weigh_ways` makes of
weights on all places is `load` transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from placement.all_to_alls import AllToAlls, product_over_lines
from placement.network.demand import Demand
from placement.network.group_ways import GroupWays
from placement.network.inside_groups import Ends
from placement.support.array_types import Floats, Ints, Mask
from placement.support.arrays import product, summed

__all__ = ["Places", "Split", "TouchedGroups", "TouchedRouters", "Weights"]


class Split(NamedTuple):
    """Bytes by touched router and far group, and inside groups.

    Attributes
    ----------
    away, home : float64 (…, n, w, n)
        From the router at slot s of g to group h, and to that at slot t of h from g.
    inner : float64 (…, n, w, w)
        Between the routers of a group.
    """

    away: Floats
    home: Floats
    inner: Floats

    def between(self, joined: Mask) -> Split:
        """Return the bytes between groups that are joined, and those inside groups."""
        away, home = self.away * joined[:, None, :], self.home * joined.T[:, None, :]
        return Split(away, home, self.inner)


class Places(NamedTuple):
    """Something of every channel of the groups that are looked at.

    Attributes
    ----------
    inside : float64 (…, m, q, lanes)
        Channels inside groups.
    out, back : float64 (…, n, m)
        Links from a touched group to another one, and from that to the touched one.
    """

    inside: Floats
    out: Floats
    back: Floats

    def times(self, factor: Places) -> Places:
        """Return the figures of all channels, multiplied by those of `factor`."""
        return Places(*(a * b for a, b in zip(self, factor, strict=True)))

    def largest(self) -> Floats:
        """Return each demand's largest figure, float64 (demands,)."""
        flat = [table.reshape(len(table), -1).max(axis=1, initial=0.0) for table in self]
        return np.asarray(np.maximum.reduce(flat))

    def powers(self, exponent: int) -> Places:
        """Return powers of two of shares of each demand's largest: 1, 2, 4, 8 and so on."""
        if exponent == 1:
            return self
        top = self.largest()
        top[top == 0] = 1.0
        powers = Places(
            self.inside / top[:, None, None, None],
            *(table / top[:, None, None] for table in self[1:]),
        )
        for _ in range(exponent.bit_length() - 1):
            powers = Places(*(np.square(table, out=table) for table in powers))
        return powers


class Weights(NamedTuple):
    """What weights on channels make of one kind of way: those of its three parts add up.

    Attributes
    ----------
    away, home : float64 (…, n, w, n)
    across : float64 (…, n, n)
    inner : float64 (…, n, w, w)
        Of ways inside a group.
    """

    away: Floats
    home: Floats
    across: Floats
    inner: Floats


class TouchedRouters:
    """The routers that a demand has bytes at, group by group.

    Parameters
    ----------
    ways : GroupWays
    router : int64 (k,)
        The routers, ascending.

    Attributes
    ----------
    units : int64 (n,)
        Their groups (pieces, as in `GroupWays`).
    places : int64 (n, w)
        Positions of the touched routers of each group; of others where it has fewer than most.
    row : int64 (routers,)
        Row in tables (n · w, …) of each router of the machine that is touched.
    """

    def __init__(self, ways: GroupWays, router: Ints) -> None:
        router = router[np.argsort(ways.unit[router], kind="stable")]
        self.units, group = np.unique(ways.unit[router], return_inverse=True)
        here = np.zeros((len(self.units), ways.groups.width), dtype=bool)
        place = ways.groups.place[router]
        here[group, place] = True
        slot = np.cumsum(here, axis=1)[group, place] - 1
        self.width = int(slot.max(initial=-1)) + 1
        self.places = np.argsort(~here, axis=1, kind="stable")[:, : self.width]
        self.row = np.zeros(len(ways.unit), dtype=np.int64)
        self.row[router] = group * self.width + slot

    @classmethod
    def of(cls, ways: GroupWays, demand: Demand) -> TouchedRouters:
        """Return the routers of a demand."""
        return cls(ways, demand.routers_used())

    def listed(self, demand: Demand) -> tuple[Ints, Ints, Floats]:
        """Return the rows of all pairs of routers that exchange bytes, those of lines too."""
        source, target = self.row[demand.source], self.row[demand.target]
        lines = demand.within
        if not len(lines):
            return source, target, demand.amount
        size = len(self.units) * self.width
        side = lines.line, self.row[lines.end], lines.weight
        table = product_over_lines(side, side, lines.scale, size, size)
        table[np.diag_indices(size)] = 0
        np.add.at(table, (source, target), demand.amount)
        source, target = np.nonzero(table > 0)
        return source, target, table[source, target]

    def splits(self, demands: Sequence[Demand]) -> Split:
        """Return all bytes of demands between routers, one demand after the other."""
        columns = zip(*(self.split(demand) for demand in demands), strict=True)
        return Split(*(np.stack(tables) for tables in columns))

    def split(self, demand: Demand) -> Split:
        """Return all bytes of a demand between routers."""
        count, width = len(self.units), self.width
        source, target = self.row[demand.source], self.row[demand.target]
        g, h = source // max(1, width), target // max(1, width)
        between = count * width * count
        away = summed(source * count + h, demand.amount, between)
        home = summed(target * count + g, demand.amount, between)
        near = np.flatnonzero(g == h)
        key = source[near] * width + target[near] % max(1, width)
        inner = summed(key, demand.amount[near], count * width**2)
        if len(demand.within):
            both, inside = self._split_lines(demand.within)
            away, home, inner = away + both, home + both, inner + inside
        elsewhere = ~np.eye(count, dtype=bool)[:, None, :]
        others = ~np.eye(width, dtype=bool)
        return Split(
            np.maximum(away, 0.0).reshape(count, width, count) * elsewhere,
            np.maximum(home, 0.0).reshape(count, width, count) * elsewhere,
            np.maximum(inner, 0.0).reshape(count, width, width) * others,
        )

    def _split_lines(self, lines: AllToAlls) -> tuple[Floats, Floats]:
        """Return what all-to-alls send to each group, and to each router of a group."""
        count, width = len(self.units), self.width
        row = self.row[lines.end]
        unit, slot = np.divmod(row, width)
        left, right = ((lines.line, end, lines.weight) for end in (row, unit))
        both = product_over_lines(left, right, lines.scale, count * width, count)
        kept, part = np.unique(lines.line * count + unit, return_inverse=True)
        order = np.argsort(part, kind="stable")
        left, right = ((part[order], end[order], lines.weight[order]) for end in (row, slot))
        inside = product_over_lines(left, right, lines.scale[kept // count], count * width, width)
        return both.reshape(-1), inside.reshape(-1)


class TouchedGroups:
    """Loads of the groups that a demand touches, and of some others.

    Ways inside a touched group begin and end at sets of its routers: at each of the touched
    ones, at the gates to each group that is looked at, and at all together, where detours turn.

    Parameters
    ----------
    ways : GroupWays
    routers : TouchedRouters
    thirds : int64 (k,)
        Other groups that are looked at; together they stand for all others.
    """

    def __init__(
        self,
        ways: GroupWays,
        routers: TouchedRouters,
        thirds: Ints,
        mean_passing: bool = False,
    ) -> None:
        self.ways, self.routers = ways, routers
        units, groups, count = routers.units, ways.groups, len(routers.units)
        self.members = np.concatenate([units, thirds])
        self.joins = ways.joins[np.ix_(units, self.members)]
        apart = 1 - self.joins
        apart[:, :count][np.diag_indices(count)] = 0
        self.lacking = np.flatnonzero(apart.any(axis=1))
        self.apart: Floats = apart[self.lacking]
        self.each = ways.each[np.ix_(units, units)]
        to_all = ways.gates[np.ix_(units, self.members)]
        self.times = np.ones(len(thirds))
        self.weight = self.joins
        untouched = np.ones(ways.count, dtype=bool)
        untouched[units] = False
        sampled = len(thirds) < untouched.sum()
        linked = ways.joins[units][:, untouched].sum(axis=1)
        self.alike = len(thirds) > 0 and (sampled or ways.all_linked)
        if self.alike:  # all third groups have the same bytes, and the mean of their gates
            rest = ways.gates[units].sum(axis=1) - to_all[:, :count].sum(axis=1)
            mean = rest / np.maximum(linked, 1.0)[:, None]
            to_all = np.concatenate([to_all[:, :count], mean[:, None, :]], axis=1)
        if len(thirds) and sampled:
            self.weight = self.joins.copy()
            self.weight[:, count:] = (linked / len(thirds))[:, None]
            self.times[:] = untouched.sum() / len(thirds)
        detour = ways.detour[ways.home[units]]
        place = routers.places
        self.near = detour[np.arange(count)[:, None, None], place[:, :, None], place[:, None, :]]
        here = np.zeros((count, routers.width, groups.width))
        here[np.arange(count)[:, None], np.arange(routers.width), place] = 1.0
        around = np.any(detour > 0, axis=1, keepdims=True).astype(np.float64)
        shape = groups.shape[ways.home[self.members]]
        local, own = groups.local, shape[:count]
        sets = np.concatenate([to_all, around, here], axis=1)
        self.here, self.turning = slice(sets.shape[1] - routers.width, None), to_all.shape[1]
        self.every = local.ends(own, sets)
        self.mean: tuple[Ends, ...] = ()
        if mean_passing:
            linked_here = np.maximum(self.joins[:, :count].sum(axis=1), 1.0)
            gates = to_all[:, :count].sum(axis=1) / linked_here[:, None]
            self.mean = local.ends(own, gates[:, None, :])
            self.starts = local.ends(own, here)
            self.others = local.ends(own, sets[:, : self.here.start])
        self.passing = local.ends(shape[count:], ways.gates[np.ix_(thirds, units)])

    @property
    def numbers(self) -> int:
        """Numbers of the largest table of a demand."""
        groups, count, sets = self.ways.groups, len(self.each), self.turning + 1
        inside = len(self.members) * groups.width * max(groups.local.lanes, count)
        return int(max(inside, count * sets * max(sets, groups.width)))

    def load(self, total: Split, minimal: Split) -> Places:
        """Return relative loads where `minimal` of `total` takes minimal ways, the rest others.

        Parameters
        ----------
        total, minimal : Split
        """
        count, members = len(self.each), len(self.members)
        over = total.away - minimal.away
        crossing = over.sum(axis=-2) * self.each
        away = self._to_thirds(over * self.each[:, None, :])
        away[..., :count] += minimal.away
        home = self._to_thirds((total.home - minimal.home) * self.each.T[:, None, :])
        home[..., :count] += minimal.home
        between = minimal.away.sum(axis=-2)
        out = self._over_links(crossing) * self.joins
        back = self._over_links(crossing.swapaxes(-1, -2)) * self.joins
        both_ways = out[..., :count] + back[..., :count].swapaxes(-1, -2) + between
        out[..., :count], back[..., :count] = both_ways, both_ways.swapaxes(-1, -2)
        kept = (total.inner - minimal.inner) * self.near
        leaving = [self._by_gates(away), kept.sum(axis=-1)[..., None], minimal.inner - 2 * kept]
        entering = [self._by_gates(home), kept.sum(axis=-2)[..., None]]
        inside = self._carried(
            np.concatenate(leaving, axis=-1),
            np.concatenate(entering, axis=-1).swapaxes(-1, -2),
            crossing,
        )
        if members > count:
            demands = crossing.shape[:-2]
            passing = crossing[..., None, :, :]
            passing = np.broadcast_to(passing, (*demands, members - count, count, count))
            through = self.ways.groups.local.carry_between(self.passing, self.passing, passing)
            inside = np.concatenate([inside, through], axis=-3)
        return Places(inside, out, back)

    def _carried(self, leaving: Floats, entering: Floats, crossing: Floats) -> Floats:
        """Return the bytes on the channels inside the touched groups.

        Parameters
        ----------
        leaving : float64 (…, n, w, k)
            From each touched router to each set.
        entering : float64 (…, n, k - w, w)
            From each other set to each touched router.
        crossing : float64 (…, n, n)
            Between two other groups, over each that is linked to both.
        """
        local, count = self.ways.groups.local, len(self.each)
        if self.mean:
            joins = self.joins[:, :count]
            passed = (product(joins, crossing) * joins).sum(axis=-1)[..., None, None]
            inside = local.carry_between(self.starts, self.every, leaving)
            inside += local.carry_between(self.others, self.starts, entering)
            return inside + local.carry_between(self.mean, self.mean, passed)
        sent = np.zeros((*leaving.shape[:-2], leaving.shape[-1], leaving.shape[-1]))
        sent[..., :count, :count] = crossing[..., None, :, :]
        sent[..., self.here, :], sent[..., : self.here.start, self.here] = leaving, entering
        return local.carry_between(self.every, self.every, sent)

    def _priced(self, inside: Floats) -> tuple[Floats, Floats, Floats]:
        """Return what `_carried` of weights on the channels makes of its three parts."""
        local, count = self.ways.groups.local, len(self.each)
        if self.mean:
            joins = self.joins[:, :count]
            passed = local.price_between(self.mean, self.mean, inside)[..., 0]
            return (
                local.price_between(self.starts, self.every, inside),
                local.price_between(self.others, self.starts, inside),
                product((joins * passed).swapaxes(-1, -2), joins),
            )
        cost = local.price_between(self.every, self.every, inside)
        passed = cost[..., :count, :count].sum(axis=-3)
        return cost[..., self.here, :], cost[..., : self.here.start, self.here], passed

    def _by_gates(self, table: Floats) -> Floats:
        """Return a table by group as one by gates: groups with the same gates are summed."""
        if not self.alike:
            return table
        count = len(self.each)
        rest = table[..., count:].sum(axis=-1, keepdims=True)
        return np.concatenate([table[..., :count], rest], axis=-1)

    def _to_thirds(self, sent: Floats) -> Floats:
        """Return the bytes sent to far groups by the third group over which they go."""
        amount: Floats = self._over_links(sent) * self.weight[:, None, :]
        return amount

    def _over_links(self, table: Floats) -> Floats:
        """Return ``table @ joins``: for each member the sum over the touched groups linked to it.

        Nearly all are, so what those have that are not is taken away from the sum of all.
        """
        count, members = len(self.each), len(self.members)
        sums: Floats = np.repeat(table.sum(axis=-1, keepdims=True), members, axis=-1)
        sums[..., :count] -= table
        if len(self.lacking):
            sums -= product(table[..., self.lacking], self.apart)
        return np.maximum(sums, 0.0, out=sums)

    def _over_members(self, table: Floats) -> Floats:
        """Return ``table @ joins.T``: for each group the sum over the members linked to it."""
        sums: Floats = table.sum(axis=-1, keepdims=True) - table[..., : len(self.each)]
        if len(self.lacking):
            sums[..., self.lacking] -= product(table, self.apart.T)
        return np.maximum(sums, 0.0, out=sums)

    def weigh_ways(self, weight: Places) -> tuple[Weights, Weights]:
        """Return what weights on channels make of minimal ways, and of the others."""
        count, members = len(self.each), len(self.members)
        gate = np.minimum(np.arange(members), self.turning - 1)
        share, inside = self.each, weight.inside
        leaving, entering, passed = self._priced(inside[..., :count, :, :])
        entering = entering.swapaxes(-1, -2)
        away, home, direct = leaving[..., gate], entering[..., gate], leaving[..., self.here]
        across = (weight.out[..., :count] + weight.back[..., :count].swapaxes(-1, -2)) / 2
        minimal = Weights(away[..., :count], home[..., :count], across, direct)
        both = self._over_members(weight.out * self.weight)
        both += self._over_members(weight.back * self.weight).swapaxes(-1, -2)
        both += passed
        if members > count:
            local, thirds = self.ways.groups.local, inside[..., count:, :, :]
            passing = local.price_between(self.passing, self.passing, thirds)
            both += np.einsum("m,...mgh->...gh", self.times, passing)
        turning = slice(self.turning, self.turning + 1)
        first, second = leaving[..., turning], entering[..., turning].swapaxes(-1, -2)
        others = Weights(
            self._over_members(away * self.weight[:, None, :]) * share[:, None, :],
            self._over_members(home * self.weight[:, None, :]) * share.T[:, None, :],
            both * share,
            (first + second - 2 * direct) * self.near,
        )
        return minimal, others
