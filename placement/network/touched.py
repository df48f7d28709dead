"""The part of a dragonfly that a demand touches: its groups, and the third groups between them.

What a router sends to another group depends on that group alone, as in
`placement.network.group_ways`: tables by (group, router, group) tell all loads. Here they have
the touched groups and routers alone. Behind the touched groups stand the third groups that are
looked at: all others for the loads of a division, and a few that stand for all while it is
sought. Loads are relative (bytes / bandwidth), by place in tables; what `weigh_ways` makes of
weights on all places is `load` transposed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placement.all_to_alls import AllToAlls, product_over_lines
from placement.network.demand import Demand
from placement.network.group_ways import GroupWays
from placement.support.array_types import Floats, Ints, Mask
from placement.support.arrays import product, summed

__all__ = ["Places", "Split", "TouchedGroups", "TouchedRouters", "Weights"]


class Split(NamedTuple):
    """Bytes by touched router and far group, and inside groups.

    Attributes
    ----------
    away, home : float64 (n, w, n)
        From the router at slot s of g to group h, and to that at slot t of h from g.
    inner : float64 (n, w, w)
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
    inside : float64 (m, q, q)
        Channels inside groups.
    out, back : float64 (n, m)
        Links from a touched group to another one, and from that to the touched one.
    """

    inside: Floats
    out: Floats
    back: Floats

    @property
    def largest(self) -> float:
        """The largest of all."""
        return max(float(table.max(initial=0.0)) for table in self)

    def times(self, factor: Places) -> Places:
        """Return what each is times another figure of its channel."""
        return Places(*(a * b for a, b in zip(self, factor, strict=True)))

    def powers(self, exponent: int) -> Places:
        """Return powers of two of shares of the largest: 1, 2, 4, 8 and so on."""
        top = self.largest or 1.0
        found = Places(*(table / top for table in self))
        for _ in range(exponent.bit_length() - 1):
            found = Places(*(np.square(table, out=table) for table in found))
        return found


class Weights(NamedTuple):
    """What weights on channels make of one kind of way: those of its three parts add up.

    Attributes
    ----------
    away, home : float64 (n, w, n)
    across : float64 (n, n)
    inner : float64 (n, w, w)
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
    demand : Demand

    Attributes
    ----------
    units : int64 (n,)
        Their groups (pieces, as in `GroupWays`).
    places : int64 (n, w)
        Positions of the touched routers of each group; of others where it has fewer than most.
    row : int64 (routers,)
        Row in tables (n · w, …) of each router of the machine that is touched.
    """

    def __init__(self, ways: GroupWays, demand: Demand) -> None:
        touched = np.zeros(len(ways.unit), dtype=bool)
        for routers in (demand.source, demand.target, demand.within.end):
            touched[routers] = True
        router = np.flatnonzero(touched)
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
        self.router = router

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

    Parameters
    ----------
    ways : GroupWays
    routers : TouchedRouters
    thirds : int64 (k,)
        Other groups that are looked at; together they stand for all others.
    """

    def __init__(self, ways: GroupWays, routers: TouchedRouters, thirds: Ints) -> None:
        self.ways, self.routers = ways, routers
        units, groups, count = routers.units, ways.groups, len(routers.units)
        self.members = np.concatenate([units, thirds])
        self.shape = groups.shape[ways.home[self.members]]
        self.joins = ways.joins[np.ix_(units, self.members)]
        self.each = ways.each[np.ix_(units, units)]
        self.to_touched = ways.gates[np.ix_(self.members, units)]
        self.to_all = ways.gates[np.ix_(units, self.members)]
        self.times = np.ones(len(self.members))
        self.weight = self.joins
        untouched = np.ones(ways.count, dtype=bool)
        untouched[units] = False
        if len(thirds) and len(thirds) < untouched.sum():
            linked = ways.joins[units][:, untouched].sum(axis=1)
            rest = ways.gates[units].sum(axis=1) - self.to_all[:, :count].sum(axis=1)
            mean = rest / np.maximum(linked, 1.0)[:, None]
            self.to_all[:, count:] = mean[:, None, :]
            self.weight = self.joins.copy()
            self.weight[:, count:] = (linked / len(thirds))[:, None]
            self.times[count:] = untouched.sum() / len(thirds)
        place = routers.places
        self.slots = np.arange(count)[:, None], place
        self.pairs = np.arange(count)[:, None, None], place[:, :, None], place[:, None, :]
        self.ranks = np.arange(routers.width)[None, :, None]
        detour = ways.detour[ways.home[units]]
        self.near = detour[self.pairs]
        self.around = (detour[self.slots] > 0).astype(np.float64)

    def load(self, total: Split, minimal: Split) -> Places:
        """Return relative loads where `minimal` of `total` takes minimal ways, the rest others.

        Parameters
        ----------
        total, minimal : Split
        """
        count, each = len(self.each), self.each
        over = total.away - minimal.away
        crossing = over.sum(axis=1) * each
        away = self._to_thirds(over * each[:, None, :])
        away[:, :, :count] += minimal.away
        home = self._to_thirds((total.home - minimal.home) * each.T[:, None, :])
        home[:, :, :count] += minimal.home
        between = minimal.away.sum(axis=1)
        out = product(crossing, self.joins) * self.joins
        back = product(crossing.T, self.joins) * self.joins
        whole = out[:, :count] + back[:, :count].T + between
        out[:, :count], back[:, :count] = whole, whole.T
        flow = product(product(self.to_touched.transpose(0, 2, 1), crossing), self.to_touched)
        leaving, entering = product(away, self.to_all), product(home, self.to_all)
        if total.inner.any():
            kept = (total.inner - minimal.inner) * self.near
            leaving += kept.sum(axis=2)[:, :, None] * self.around
            entering += kept.sum(axis=1)[:, :, None] * self.around
            flow[self.pairs] += minimal.inner - 2 * kept
        flow[self.slots] += leaving
        to = flow.transpose(0, 2, 1)
        to[self.slots] += entering
        inside = self.ways.groups.local.carry(self.shape, flow)
        return Places(inside, out, back)

    def _to_thirds(self, sent: Floats) -> Floats:
        """Return what is sent to far groups by the third groups on the way."""
        found: Floats = product(sent, self.joins) * self.weight[:, None, :]
        return found

    def weigh_ways(self, weight: Places) -> tuple[Weights, Weights]:
        """Return what weights on channels make of minimal ways, and of the others."""
        count = len(self.each)
        local = self.ways.groups.local
        leaving, entering, passing = local.priced_ends(
            self.shape, weight.inside, self.slots, self.to_touched
        )
        gates = self.to_all.transpose(0, 2, 1)
        away, home = product(leaving, gates), product(entering, gates)
        across = (weight.out[:, :count] + weight.back[:, :count].T) / 2
        direct = leaving[np.arange(count)[:, None, None], self.ranks, self.pairs[2]]
        minimal = Weights(away[:, :, :count], home[:, :, :count], across, direct)
        each, joins = self.each, self.joins.T
        both = product(weight.out * self.weight, joins)
        both += product(weight.back * self.weight, joins).T
        both += np.tensordot(self.times, passing, 1)
        first = np.einsum("gsp,gsp->gs", leaving, self.around)[:, :, None]
        second = np.einsum("gsp,gsp->gs", entering, self.around)[:, None, :]
        others = Weights(
            product(away * self.weight[:, None, :], joins) * each[:, None, :],
            product(home * self.weight[:, None, :], joins) * each.T[:, None, :],
            both * each,
            (first + second - 2 * direct) * self.near,
        )
        return minimal, others
