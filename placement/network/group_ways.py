"""How the groups of a dragonfly are joined: by links of their own, and over a third group.

What a router sends to another group by ``minimal`` or ``valiant`` depends on
that group alone, and not on the router there. So bytes by (router, group)
tell all loads, and a price a channel makes prices by (router, group): the
transposed product. Both are a few products of small tables, whatever the
number of router pairs.

A group that is not in one piece (a router has lost all its links to the
others) counts as several here; below, a group is such a piece. Between groups
that nothing here joins traffic takes the fewest links between groups, and of
these paths all the shortest (`placement.network.shortest_paths`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placement.errors import UsageError
from placement.machine import Machine
from placement.network import shortest_paths
from placement.network.demand import Demand
from placement.network.groups import Groups, groups_of
from placement.network.inside_groups import UNREACHED
from placement.network.model import has_spines
from placement.support.array_types import Floats, Ints, Mask
from placement.support.arrays import product, summed

__all__ = ["Bytes", "GroupWays", "Ways", "group_ways_of", "inner_demand", "line_weights"]

#: Numbers in a table of all pairs of groups by routers, at most.
MOST_BETWEEN = 100_000_000

#: So many lines are multiplied out one by one; more are put into tables.
FEW_LINES = 4

#: Router pairs that are looked at together.
_PAIRS = 1 << 22


class Bytes(NamedTuple):
    """Bytes by router and far group.

    Attributes
    ----------
    away : float64 (groups, positions, groups)
        ``[g, s, h]``: from the router at s of g to group h; 0 where g == h.
    home : float64 (groups, positions, groups)
        ``[h, t, g]``: to the router at t of h from group g.
    """

    away: Floats
    home: Floats

    @property
    def between(self) -> Floats:
        """Bytes from group to group, float64 (groups, groups)."""
        between: Floats = self.away.sum(axis=1)
        return between

    def minus(self, other: Bytes) -> Bytes:
        """Return what is left when `other` is taken away."""
        return Bytes(self.away - other.away, self.home - other.home)

    def times(self, factor: Floats | Mask) -> Bytes:
        """Return the bytes from group g to h times ``factor[g, h]``."""
        return Bytes(self.away * factor[:, None, :], self.home * factor.T[:, None, :])


class Ways(NamedTuple):
    """What a price on every channel makes of one kind of way, by its three independent parts.

    The way from the router at s of g to that at t of h costs
    ``away[g, s, h] + home[h, t, g] + across[g, h]``.
    """

    away: Floats
    home: Floats
    across: Floats

    def cost(self, g: Ints, s: Ints, h: Ints, t: Ints) -> Floats:
        """Return what ways cost, element by element."""
        cost: Floats = self.away[g, s, h] + self.home[h, t, g] + self.across[g, h]
        return cost


@dataclass(frozen=True, eq=False)
class GroupWays:
    """The links between a dragonfly's groups, and the third groups between them.

    Attributes
    ----------
    groups : Groups
    count : int
        Groups (pieces).
    unit : int64 (r,)
        Group (piece) of each router.
    home : int64 (count,)
        Group of the machine that a piece is part of.
    gates : float64 (count, count, positions)
        ``[g, h, p]``: share of the links between g and h that are at p of g.
    channel, between, share : int64, int64, float64 (x,)
        Channels between groups, each one's ordered pair g · count + h
        (ascending), and its share of that pair's bytes.
    linked : bool (count, count)
        Whether a link joins two groups; not a group and itself.
    """

    groups: Groups
    count: int
    unit: Ints
    home: Ints
    gates: Floats
    channel: Ints
    between: Ints
    share: Floats
    linked: Mask

    @cached_property
    def joins(self) -> Floats:
        """1 where a link joins two groups, else 0, float64 (count, count)."""
        return self.linked.astype(np.float64)

    def over_links(self, table: Floats) -> Floats:
        """Return sums over the groups that are linked to each, ``table @ joins``.

        Where a link joins every two groups that is each row's sum without the own entry.

        Parameters
        ----------
        table : float64 (…, count)
            Not negative.
        """
        if not self.all_linked:
            return product(table, self.joins)
        sums: Floats = table.sum(axis=-1, keepdims=True) - table
        return np.maximum(sums, 0.0, out=sums)

    @cached_property
    def all_linked(self) -> bool:
        """Whether a link joins every two groups."""
        return bool((self.linked != self.one).all())

    @cached_property
    def each(self) -> Floats:
        """Share of the bytes from g to h that every third group takes, float64 (count, count).

        Equal among the groups that are linked to both; 0 where there are none.
        """
        thirds = self.over_links(self.joins)
        np.fill_diagonal(thirds, 0)
        share: Floats = np.divide(1.0, thirds, out=np.zeros_like(thirds), where=thirds > 0)
        return share

    @cached_property
    def first(self) -> Ints:
        """Where the channels of each ordered pair begin, int64 (count² + 1,)."""
        return np.searchsorted(self.between, np.arange(self.count**2 + 1)).astype(np.int64)

    @cached_property
    def valiant(self) -> Mask:
        """Whether a third group is linked to both, bool (count, count)."""
        return np.asarray(self.each > 0)

    @cached_property
    def gates_of(self) -> Floats:
        """The gates by the far group, float64 (count, count · positions)."""
        return self.gates.transpose(1, 0, 2).reshape(self.count, -1)

    @cached_property
    def detour(self) -> Floats:
        """Share of the bytes between two routers that a detour sends over each other one.

        float64 (machine's groups, positions, positions), equal among the
        routers of the group that paths join to both; 0 where there is none,
        and on a DragonFly+, whose shortest paths take every spine already.
        """
        groups = self.groups
        if has_spines(groups.channels.machine):
            return np.zeros((groups.count, groups.width, groups.width))
        joined = groups.local.length[groups.shape] < UNREACHED
        others = joined.sum(axis=2)[:, :, None] - 2  # all that are joined to one are to the other
        joined &= (others > 0) & ~np.eye(groups.width, dtype=bool)
        share: Floats = np.divide(1.0, others, out=np.zeros(joined.shape), where=joined)
        return share

    @cached_property
    def apart(self) -> Ints:
        """Pairs of positions of a group that no path inside joins, flat in a table of all."""
        return np.flatnonzero(self.groups.local.length[self.groups.shape] >= UNREACHED)

    @cached_property
    def one(self) -> Mask:
        """Whether two groups are the same, bool (count, count)."""
        return np.eye(self.count, dtype=bool)

    @cached_property
    def whole(self) -> bool:
        """Whether a path with at most one link between groups joins every two routers."""
        return bool((self.linked | self.one).all())

    @cached_property
    def search(self) -> shortest_paths.StateGraph:
        """The routers as a graph: the fewest links between groups first, the fewest hops second."""
        groups, channels = self.groups, self.groups.channels
        cost = np.full(len(channels), shortest_paths.BETWEEN_GROUPS)
        cost[groups.inside] = 1
        count = channels.count.astype(np.float64)
        count[groups.inside] = groups.ways
        order = channels.kind * np.int64(groups.width) + groups.place[channels.target]
        return shortest_paths.graph_of(
            channels, groups.routers, count=count, cost=cost, order=order
        )

    def slot(self, router: Ints) -> Ints:
        """Return the position of routers in the padded tables (count x positions)."""
        return self.unit[router] * self.groups.width + self.groups.place[router]

    def load(
        self, minimal: Bytes, valiant: Bytes | None = None, inner: Floats | None = None
    ) -> Floats:
        """Return the bytes on every channel.

        Parameters
        ----------
        minimal, valiant : Bytes
            What takes the minimal ways, and those over a third group.
        inner : float64 (machine's groups, positions, positions) or None
            Bytes that stay inside groups.

        Returns
        -------
        float64 (c,)
        """
        away, home, between = minimal.away, minimal.home, minimal.between
        if valiant is not None:
            over = valiant.between * self.each
            away = away + self._to_thirds(valiant.away * self.each[:, None, :])
            home = home + self._to_thirds(valiant.home * self.each.T[:, None, :])
            over_third = self.over_links(over) + self.over_links(over.T).T
            between = between + over_third * self.joins
        home = np.swapaxes(home, 1, 2)
        if valiant is not None:  # a third group passes on from gates to gates
            to_gates = product(over, self.gates_of).reshape(self.count, self.count, -1)
            home = home + to_gates.transpose(1, 0, 2)
        out = np.zeros(len(self.groups.channels))
        out[self.groups.inside] = self._inside(away, home, inner)
        out[self.channel] = between.reshape(-1)[self.between] * self.share
        return out

    def _to_thirds(self, table: Floats) -> Floats:
        """Return the sums of a table (group, position, far group) by third instead of far group."""
        rows = table.reshape(-1, self.count)
        return self.over_links(rows).reshape(table.shape) * self.joins[:, None, :]

    def _inside(self, away: Floats, home: Floats, inner: Floats | None) -> Floats:
        """Return the bytes on the channels inside groups: to gates, from gates and others."""
        groups, local = self.groups, self.groups.local
        left = np.concatenate([away, np.swapaxes(self.gates, 1, 2)], axis=2)
        right = np.concatenate([self.gates, home], axis=1)
        lanes = local.carry_product(groups.shape[self.home], left, right)
        if self.count != groups.count:
            apart, lanes = lanes, np.zeros(groups.lanes)
            np.add.at(lanes, self.home, apart)
        if inner is not None:
            some = inner.any(axis=(1, 2))
            lanes[some] += local.carry(groups.shape[some], inner[some])
        return groups.inner(lanes)

    def inside_price(self, price: Floats) -> Floats:
        """Return the price of ways inside groups, (machine's groups, positions, positions)."""
        groups = self.groups
        return groups.local.priced(groups.shape, groups.table(price))

    def minimal_price(self, price: Floats, inside: Floats) -> Ways:
        """Return what minimal ways cost when each channel has a price a byte: `load` transposed.

        Parameters
        ----------
        price : float64 (c,)
        inside : float64 (machine's groups, positions, positions)
            `inside_price` of it.
        """
        if self.count != self.groups.count:
            inside = inside[self.home]
        turned = np.swapaxes(self.gates, 1, 2)
        cross = summed(self.between, price[self.channel] * self.share, self.count**2)
        return Ways(
            away=product(inside, turned),
            home=product(np.swapaxes(inside, 1, 2), turned),
            across=cross.reshape(self.count, self.count),
        )

    def valiant_price(self, minimal: Ways) -> Ways:
        """Return what ways over a third group cost, from what minimal ways do."""
        cross = minimal.across
        over = product(self.gates_of, minimal.away.reshape(-1, self.count))
        over += self.over_links(cross) + self.over_links(cross.T).T
        away, home = map(self.over_links, minimal[:2])
        share = self.each
        return Ways(away * share[:, None, :], home * share.T[:, None, :], over * share)

    def bytes(self, demand: Demand, joined: Mask) -> tuple[Bytes, Floats, Floats]:
        """Return a demand by router and far group, what stays inside groups, and other loads.

        Parameters
        ----------
        demand : Demand
        joined : bool (count, count)
            Groups between which bytes take the ways here.

        Returns
        -------
        bytes : Bytes
            Between groups that are joined.
        inner : float64 (machine's groups, positions, positions)
        far : float64 (c,)
            Loads between other groups, by the fewest links between groups.

        Raises
        ------
        NidmapError
            Where no path joins two routers that exchange bytes.
        """
        groups = self.groups
        away = self._folded(demand)
        home = self._folded(demand.reversed()) if len(demand.source) else away.copy()
        group = np.arange(self.count)
        away[group, :, group] = home[group, :, group] = 0
        inner = inner_demand(groups, demand)
        inner.reshape(-1)[self.apart] = 0
        amount, lost = Bytes(away, home), ~(joined | self.one)
        if not lost.any() or not amount.between[lost].any():
            return amount, inner, np.zeros(len(groups.channels))
        return amount.times(~lost), inner, self.far_loads(demand, lost)

    def _folded(self, demand: Demand) -> Floats:
        width, count = self.groups.width, self.count
        out = np.zeros((count * width, count))
        out[self.slot(np.arange(len(self.unit)))] = demand.folded(self.unit, count)
        folded: Floats = np.maximum(out, 0).reshape(count, width, count)
        return folded

    def far_loads(self, demand: Demand, lost: Mask) -> Floats:
        """Return the loads of a demand between groups that are lost to each other, float64 (c,)."""
        out = np.zeros(len(self.groups.channels))
        lacking = np.asarray(lost.any(axis=1))[self.unit]
        step = max(1, _PAIRS // max(1, self.groups.routers))
        for low in range(0, self.groups.routers, step):
            some = np.flatnonzero(lacking[low : low + step])
            if len(some):
                first, last = low + int(some[0]), low + int(some[-1]) + 1
                sent = demand.table(first, last)
                sent *= lost[self.unit[first:last]][:, self.unit]
                s, t = np.nonzero(sent)
                out += shortest_paths.pair_loads(self.search, s + first, t, sent[s, t], len(out))
        return out

    def hops(self, source: Ints, target: Ints, over: Mask | None = None) -> Floats:
        """Return the expected channels of each class between routers, float64 (m, classes).

        A channel's price is 1 in its class: what a way costs is the hops it has.

        Parameters
        ----------
        source, target : int64 (m,)
            Routers.
        over : bool (count, count) or None
            Groups between which traffic goes over a third group.

        Raises
        ------
        NidmapError
            Where no path joins a pair.
        """
        channels, place = self.groups.channels, self.groups.place
        g, h, s, t = self.unit[source], self.unit[target], place[source], place[target]
        out = np.zeros((len(source), len(channels.kinds)))
        for kind in range(len(channels.kinds)):
            price = (channels.kind == kind).astype(np.float64)
            inside = self.inside_price(price)
            ways = self.minimal_price(price, inside)
            cost = ways.cost(g, s, h, t)
            if over is not None:
                cost = np.where(over[g, h], self.valiant_price(ways).cost(g, s, h, t), cost)
            out[:, kind] = np.where(g == h, inside[self.home[g], s, t], cost)
        joined = self.linked | self.one if over is None else self.linked | self.one | over
        far = np.flatnonzero(~joined[g, h])
        if len(far):
            ends = source[far], target[far]
            out[far] = shortest_paths.mean_hops(self.search, *ends, out.shape[1])
        return out


def group_ways_of(machine: Machine) -> GroupWays:
    """Return how the groups of a dragonfly are joined; made once a machine.

    Raises
    ------
    UsageError
        Where the links are unknown, or there are too many groups.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=4,chassis=1,blades=4,nodes=1,global=2")
    >>> found = group_ways_of(m)
    >>> found.gates[0, 1].tolist(), found.each[0, 1].tolist()
    ([0.5, 0.5, 0.0, 0.0], 0.5)
    """
    return machine.once("network.group_ways", lambda: _join_groups(groups_of(machine)))


def _join_groups(groups: Groups) -> GroupWays:
    bundles, count = groups.bundles, groups.parts
    if count**2 * groups.width > MOST_BETWEEN:
        raise UsageError(f"{count} groups, or parts of groups, are too many to route")
    pair = bundles.pair
    low, high = (
        groups.part[bundles.low[pair], bundles.a],
        groups.part[bundles.high[pair], bundles.b],
    )
    between = np.concatenate([low * count + high, high * count + low])
    times = np.tile(bundles.times, 2)
    share = times / summed(between, times, count * count)[between]
    at = between * groups.width + np.concatenate([bundles.a, bundles.b])
    order, channel = np.argsort(between, kind="stable"), np.concatenate([bundles.up, bundles.down])
    unit, home = groups.part[groups.group, groups.place], np.zeros(count, dtype=np.int64)
    home[unit] = groups.group
    return GroupWays(
        groups=groups,
        count=count,
        unit=unit,
        home=home,
        gates=summed(at, share, count**2 * groups.width).reshape(count, count, groups.width),
        channel=channel[order],
        between=between[order],
        share=share[order],
        linked=(np.bincount(between, minlength=count * count) > 0).reshape(count, count),
    )


def inner_demand(groups: Groups, demand: Demand) -> Floats:
    """Return the bytes between the positions of each group, float64 (groups, q, q).

    The diagonal, what a router sends itself, has no meaning.
    """
    count, width = groups.count, groups.width
    inner = groups.group[demand.source] == groups.group[demand.target]
    key = groups.slot[demand.source[inner]] * width + groups.place[demand.target[inner]]
    out = summed(key, demand.amount[inner], count * width * width).reshape(count, width, width)
    lines = demand.within
    if len(lines) > FEW_LINES:
        group = groups.group[lines.end]
        for g in range(count):
            out[g] += lines.among(group == g, groups.place, width)
    else:
        for scale, weight in line_weights(groups, demand):
            out += scale * weight[:, :, None] * weight[:, None, :]
    return out


def line_weights(groups: Groups, demand: Demand) -> list[tuple[float, Floats]]:
    """Return the scale of each line and its weights by position, float64 (groups, q)."""
    lines = demand.within
    weights = []
    for k, scale in enumerate(lines.scale.tolist()):
        some = slice(*np.searchsorted(lines.line, [k, k + 1]))
        load = summed(lines.end[some], lines.weight[some], groups.routers)
        weights.append((scale, groups.spread(load)))
    return weights
