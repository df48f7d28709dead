# SPDX-License-Identifier: Apache-2.0
"""The part of a dragonfly that traffic touches: loads of its groups, and of third groups.

What a router sends to another group by `minimal` or `valiant` depends on that group alone, and
not on the router there: tables by (group, router, group) tell all loads. A sparse table of
router pairs by links says the same, but the paths of 64 nodes of Shaheen II over third groups
are 16 million entries (0.27 s a product), and those of LUMI 300 million. Here are the touched
groups and routers alone, so the work follows the job and not the machine. After the touched
groups are the third groups that are looked at: all others for the loads of a division, and a
few that stand for all while it is sought.

What `TouchedGroups.prices` makes of prices of channels is `TouchedGroups.load` transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nidmap.placement.all_to_alls import AllToAlls, product_over_lines
from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine, once
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.groups import Groups, groups_of
from nidmap.placement.network.local_paths import Ends, Leg
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import add_by_key, product
from nidmap.placement.support.quantities import GB

#: Touched groups from which on what they pass on for others is taken for even over their gates
#: while a division is sought: it is the sum of many, and the work grows with their cube.
MANY = 48

#: Numbers in a table of all pairs of touched groups by gates or third groups, at most.
MOST_TOUCHED = 50_000_000

#: Third groups that represent all that a demand does not touch, if these are more than a few.
THIRDS, FEW_THIRDS = 2, 4


class GroupTraffic(NamedTuple):
    """Bytes by touched router and far group, and within groups."""

    # away, home: (…, n, w, n), from the router at slot s of g to group h, and to that at slot t of
    # h from g
    away: Floats
    home: Floats
    inner: Floats  # (…, n, w, w), between the routers of a group

    def between(self, joined: Mask) -> GroupTraffic:
        """Return the bytes between linked groups, and those within groups."""
        away, home = self.away * joined[:, None, :], self.home * joined.T[:, None, :]
        return GroupTraffic(away, home, self.inner)

    def minus(self, other: GroupTraffic) -> GroupTraffic:
        """Return the rest after subtracting `other`."""
        return GroupTraffic(*(a - b for a, b in zip(self, other, strict=True)))


class ChannelTables(NamedTuple):
    """A value for every channel of the groups considered."""

    inside: Floats  # (…, m, q, lanes), channels inside groups, each of the paths over it
    # out, back: (…, n, m), all links from a touched group to another one, and from that to the
    # touched one
    out: Floats
    back: Floats

    def times(self, factor: ChannelTables) -> ChannelTables:
        """Return the values of all channels multiplied by those of `factor`."""
        return ChannelTables(*(a * b for a, b in zip(self, factor, strict=True)))

    def largest(self) -> Floats:
        """Return each demand's largest value, float64 (demands,)."""
        flat = [table.reshape(len(table), -1).max(axis=1, initial=0.0) for table in self]
        return np.asarray(np.maximum.reduce(flat))

    def powers(self, exponent: int) -> ChannelTables:
        """Return powers 1, 2, 4, 8, … of the values relative to each demand's largest."""
        if exponent == 1:
            return self
        top = self.largest()
        top[top == 0] = 1.0
        powers = ChannelTables(
            self.inside / top[:, None, None, None],
            *(table / top[:, None, None] for table in self[1:]),
        )
        for _ in range(exponent.bit_length() - 1):
            powers = ChannelTables(*(np.square(table, out=table) for table in powers))
        return powers


class PathPrices(NamedTuple):
    """The price of a byte on one kind of path: the sum of the prices of its three parts."""

    # away, home: (…, n, w, n)
    away: Floats
    home: Floats
    across: Floats  # (…, n, n)
    inner: Floats  # (…, n, w, w), of paths inside a group

    def between(self, source: Ints, target: Ints) -> Floats:
        """Return the price of a byte between touched routers, by their rows, float64 (…, m)."""
        width = self.inner.shape[-1]
        (g, s), (h, t) = np.divmod(source, width), np.divmod(target, width)
        apart = self.away[..., g, s, h] + self.home[..., h, t, g] + self.across[..., g, h]
        return np.where(g == h, self.inner[..., g, s, t], apart)


class TouchedRouters:
    """The routers at which a demand has bytes, group by group.

    `router` (k,): the routers, ascending. `units` (n,): their groups.
    """

    def __init__(self, groups: Groups, router: Ints) -> None:
        router = router[np.argsort(groups.group[router], kind="stable")]
        self.units, group = np.unique(groups.group[router], return_inverse=True)
        here = np.zeros((len(self.units), groups.width), dtype=bool)
        place = groups.place[router]
        here[group, place] = True
        slot = np.cumsum(here, axis=1)[group, place] - 1
        self.width = int(slot.max(initial=0)) + 1
        # (n, w), positions of the touched routers of each group; of others where it has fewer than
        # most
        self.places = np.argsort(~here, axis=1, kind="stable")[:, : self.width]
        # (routers,), row in tables (n · w, …) of each router of the machine that is touched
        self.row = np.zeros(groups.routers, dtype=np.int64)
        self.row[router] = group * self.width + slot

    def listed(self, demand: Demand) -> tuple[Ints, Ints, Floats]:
        """Return the rows of all router pairs that exchange bytes, including lines."""
        none = np.zeros(0, dtype=np.int64)
        blocks = (none, none, np.zeros(0)), *demand.blocks()
        source, target, amount = (np.concatenate(column) for column in zip(*blocks, strict=True))
        return self.row[source], self.row[target], amount

    def traffic(self, demands: Sequence[Demand]) -> GroupTraffic:
        """Return all bytes of demands between routers, demand by demand."""
        columns = zip(*(self._traffic(demand) for demand in demands), strict=True)
        return GroupTraffic(*(np.stack(tables) for tables in columns))

    def _traffic(self, demand: Demand) -> GroupTraffic:
        count, width = len(self.units), self.width
        source, target = self.row[demand.source], self.row[demand.target]
        g, h = source // width, target // width
        between = count * width * count
        away = add_by_key(source * count + h, demand.amount, between)
        home = add_by_key(target * count + g, demand.amount, between)
        near = np.flatnonzero(g == h)
        key = source[near] * width + target[near] % width
        inner = add_by_key(key, demand.amount[near], count * width**2)
        if len(demand.within):
            both, inside = self._traffic_of_lines(demand.within)
            away, home, inner = away + both, home + both, inner + inside
        elsewhere = ~np.eye(count, dtype=bool)[:, None, :]
        others = ~np.eye(width, dtype=bool)
        return GroupTraffic(
            np.maximum(away, 0.0).reshape(count, width, count) * elsewhere,
            np.maximum(home, 0.0).reshape(count, width, count) * elsewhere,
            np.maximum(inner, 0.0).reshape(count, width, width) * others,
        )

    def _traffic_of_lines(self, lines: AllToAlls) -> tuple[Floats, Floats]:
        """Return the bytes of all-to-alls to each group, and to each router of a group."""
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
    """Loads of the groups that traffic touches, and of some others.

    Paths inside a touched group begin and end at sets of its routers: at each of the touched
    ones, at the gates to each group that is looked at, and at those that detours inside it pass.

    `thirds` (k,): other groups that are looked at; together they stand for all others. `detours`:
    whether anything takes a detour; no third group is looked at where nothing does.
    `mean_passing`: whether what a touched group passes on for others is taken for even over its
    gates.
    """

    def __init__(
        self,
        groups: Groups,
        routers: TouchedRouters,
        thirds: Ints,
        detours: bool = True,
        mean_passing: bool = False,
    ) -> None:
        self.groups, self.routers, self.thirds = groups, routers, thirds
        self.detours, self.mean_passing = detours, mean_passing
        units, count = routers.units, len(routers.units)
        self.members = np.concatenate([units, thirds])
        _refuse_many(groups, count, len(self.members) if detours else 0)
        self.joins = groups.joins[np.ix_(units, self.members)]
        self.third_share = groups.third_share[np.ix_(units, units)]
        self.times, self.weight = np.ones(len(thirds)), self.joins
        self.wiring = groups.wiring[self.members]
        self.to_gates = groups.gates(units, self.members)
        self.alike = False
        if len(thirds):
            self._stand_for_others()
        place = routers.places
        here = np.zeros((count, routers.width, groups.width))
        here[np.arange(count)[:, None], np.arange(routers.width), place] = 1.0
        self.starts = self._ends(here)
        self.turning = self.to_gates.shape[1]
        far = [self.to_gates]
        if detours:
            far.append(self._turn_over_lines(place))
        self.far = self._ends(np.concatenate(far, axis=1))
        self.every = self._ends(np.concatenate([*far, here], axis=1))
        self.here = slice(sum(sets.shape[1] for sets in far), None)

    def _turn_over_lines(self, place: Ints) -> Floats:
        """Return the intermediate routers of detours within groups, (n, sets, positions).

        `place` (n, w): positions of the touched routers.
        """
        groups, units = self.groups, self.routers.units
        pairs = np.arange(len(units))[:, None, None], place[:, :, None], place[:, None]
        line, share = groups.detours(units)
        # near, turn: (n, w, w), share of a pair's bytes that each router on its detours gets, and
        # the set of these
        self.near = share[pairs]
        lines, turn = np.unique(line[pairs], return_inverse=True)
        self.turn = turn.reshape(self.near.shape)
        numbers = groups.lines[units][:, None]
        within = (numbers == lines[:, None, None]).any(axis=-1) | (lines == 0)[:, None]
        return np.asarray(within & np.any(share > 0, axis=1, keepdims=True), dtype=np.float64)

    def _by_turns(self, table: Floats) -> Floats:
        """Convert a table by pairs of touched routers to one by router and intermediate set."""
        sets = self.here.start - self.turning
        row = np.arange(table.size // table.shape[-1]).reshape(*table.shape[:-1], 1)
        sums = add_by_key((row * sets + self.turn).ravel(), table.ravel(), row.size * sets)
        return sums.reshape(*table.shape[:-1], sets)

    def _of_turns(self, price: Floats) -> Floats:
        """Convert a table by router and intermediate set to one by pairs of touched routers."""
        index = self.turn.reshape(*[1] * (price.ndim - 3), *self.turn.shape)
        return np.take_along_axis(price[..., self.turning : self.here.start], index, axis=-1)

    def _stand_for_others(self) -> None:
        """Let third groups represent all untouched ones.

        Where all of these get the same bytes the mean of their gates will do.
        """
        groups, units, count = self.groups, self.routers.units, len(self.third_share)
        others = third_groups(groups, units)
        sampled = len(self.thirds) < len(others)
        linked = groups.joins[np.ix_(units, others)] ** 2
        self.alike = bool(sampled or groups.complete)
        if self.alike:
            rest = np.einsum("gk,gkp->gp", linked, groups.gates(units, others))
            mean = rest / np.maximum(linked.sum(axis=1), 1e-9)[:, None]
            self.to_gates = np.concatenate([self.to_gates[:, :count], mean[:, None, :]], axis=1)
        if sampled:
            self.weight = self.joins.copy()
            self.weight[:, count:] = (linked.sum(axis=1) / len(self.thirds))[:, None]
            self.times[:] = len(others) / len(self.thirds)

    def _ends(self, share: Floats) -> tuple[Ends, ...]:
        """Return sets of positions of the touched groups."""
        return self.groups.local.ends(self.wiring[: len(share)], share)

    @cached_property
    def passed_on(self) -> tuple[Ends, ...]:
        """The mean of the gates of each touched group to the others."""
        count = len(self.third_share)
        joins = self.joins[:, :count]
        gates = np.einsum("gk,gkp->gp", joins, self.to_gates[:, :count])
        return self._ends((gates / np.maximum(joins.sum(axis=1), 1e-9)[:, None])[:, None, :])

    @cached_property
    def passed_share(self) -> Floats:
        """Return the bytes between others that cross each considered group, float64 (m, n, n)."""
        joins = self.joins.T
        return np.asarray(joins[:, :, None] * joins[:, None, :])

    @cached_property
    def passed_by_thirds(self) -> tuple[Ends, ...]:
        """Gates of the third groups to the touched ones."""
        gates = self.groups.gates(self.thirds, self.routers.units)
        return self.groups.local.ends(self.wiring[len(self.third_share) :], gates)

    @property
    def numbers(self) -> int:
        """Size of the largest table of a demand."""
        groups, count, sets = self.groups, len(self.third_share), self.here.start or 1
        inside = len(self.members) * groups.width * max(groups.local.lanes, count)
        return int(max(1, inside, count * sets * max(sets, groups.width)))

    def load(self, minimal: GroupTraffic, detoured: GroupTraffic | None = None) -> ChannelTables:
        """Return the bytes on the channels.

        `minimal`: what takes minimal paths. `detoured`: what takes a detour: over a third group,
        inside a group over another router.
        """
        count, members = len(self.third_share), len(self.members)
        sums, local = minimal.away.sum(axis=-2), self.groups.local
        if detoured is None:
            direct = np.concatenate([minimal.away, minimal.inner], axis=-1)
            legs = [
                Leg(self.starts, self.every, direct),
                Leg(self.far, self.starts, minimal.home.swapaxes(-1, -2)),
            ]
            return ChannelTables(local.carry(legs), sums, sums.swapaxes(-1, -2))
        crossing = detoured.away.sum(axis=-2) * self.third_share
        away = product(detoured.away * self.third_share[:, None, :], self.joins)
        home = product(detoured.home * self.third_share.T[:, None, :], self.joins)
        away, home = away * self.weight[:, None, :], home * self.weight[:, None, :]
        away[..., :count] += minimal.away
        home[..., :count] += minimal.home
        out = product(crossing, self.joins) * self.joins
        back = product(crossing.swapaxes(-1, -2), self.joins) * self.joins
        both_ways = out[..., :count] + back[..., :count].swapaxes(-1, -2) + sums
        out[..., :count], back[..., :count] = both_ways, both_ways.swapaxes(-1, -2)
        kept = detoured.inner * self.near
        leaving = [self._by_gates(away), self._by_turns(kept), minimal.inner - 2 * kept]
        entering = [self._by_gates(home), self._by_turns(kept.swapaxes(-1, -2))]
        inside = local.carry(
            self._legs(
                np.concatenate(leaving, axis=-1),
                np.concatenate(entering, axis=-1).swapaxes(-1, -2),
                crossing,
            )
        )
        if members > count:
            passing = crossing[..., None, :, :] * self.passed_share[count:]
            through = local.carry([Leg(self.passed_by_thirds, self.passed_by_thirds, passing)])
            inside = np.concatenate([inside, through], axis=-3)
        return ChannelTables(inside, out, back)

    def _legs(self, leaving: Floats, entering: Floats, crossing: Floats) -> list[Leg]:
        """Return the bytes that cross touched groups: from their routers, to them, and in transit.

        One leg takes least time where groups are few, three where what they pass on for
        others is taken in the mean.

        `leaving` (…, n, w, k + w): from each touched router to each set. `entering` (…, n, k, w):
        from each other set to each touched router. `crossing` (…, n, n): between two other
        groups, over each that is linked to both.
        """
        count = len(self.third_share)
        if not self.mean_passing:
            sent = np.zeros((*leaving.shape[:-2], leaving.shape[-1], leaving.shape[-1]))
            sent[..., :count, :count] = crossing[..., None, :, :] * self.passed_share[:count]
            sent[..., self.here, :], sent[..., : self.here.start, self.here] = leaving, entering
            return [Leg(self.every, self.every, sent)]
        joins = self.joins[:, :count]
        passed = (product(joins, crossing) * joins).sum(axis=-1)[..., None, None]
        return [
            Leg(self.starts, self.every, leaving),
            Leg(self.far, self.starts, entering),
            Leg(self.passed_on, self.passed_on, passed),
        ]

    def _by_gates(self, table: Floats) -> Floats:
        """Convert a table by group to one by gates, summing groups with equal gates."""
        if not self.alike:
            return table
        count = len(self.third_share)
        rest = table[..., count:].sum(axis=-1, keepdims=True)
        return np.concatenate([table[..., :count], rest], axis=-1)

    def prices(self, price: ChannelTables) -> list[PathPrices]:
        """Return the price of a byte on minimal paths, and on detours if there are any.

        `price`: of a byte on each channel, and on all links of two groups together.
        """
        count, members = len(self.third_share), len(self.members)
        inside = price.inside
        leaving, entering, passed = self._leg_prices(inside[..., :count, :, :])
        entering = entering.swapaxes(-1, -2)
        gate = np.minimum(np.arange(members), self.turning - 1)
        away, home, direct = leaving[..., gate], entering[..., gate], leaving[..., self.here]
        across = (price.out[..., :count] + price.back[..., :count].swapaxes(-1, -2)) / 2
        minimal = PathPrices(away[..., :count], home[..., :count], across, direct)
        if not self.detours:
            return [minimal]
        both = product(price.out * self.weight, self.joins.T)
        both += product(price.back * self.weight, self.joins.T).swapaxes(-1, -2)
        both += self._passing_price(passed, inside)
        first, second = self._of_turns(leaving), self._of_turns(entering).swapaxes(-1, -2)
        share = self.third_share
        detours = PathPrices(
            product(away * self.weight[:, None, :], self.joins.T) * share[:, None, :],
            product(home * self.weight[:, None, :], self.joins.T) * share.T[:, None, :],
            both * share,
            (first + second - 2 * direct) * self.near,
        )
        return [minimal, detours]

    def _leg_prices(self, inside: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the price of a byte on each leg of `_legs`; transit bytes by pairs of groups."""
        count, local = len(self.third_share), self.groups.local
        ends = [(self.starts, self.every), (self.far, self.starts)]
        if self.mean_passing:
            leaving, entering, mean = local.price([*ends, (self.passed_on,) * 2], inside)
            joins = self.joins[:, :count]
            passed = product((joins * mean[..., 0]).swapaxes(-1, -2), joins)
            return leaving, entering, passed
        if not self.detours:
            leaving, entering = local.price(ends, inside)
            return leaving, entering, np.zeros(0)
        [cost] = local.price([(self.every, self.every)], inside)
        passed = (cost[..., :count, :count] * self.passed_share[:count]).sum(axis=-3)
        return cost[..., self.here, :], cost[..., : self.here.start, self.here], passed

    def _passing_price(self, passed: Floats, inside: Floats) -> Floats:
        """Return the price of bytes between two groups within all others that they cross."""
        if not len(self.thirds):
            return passed
        ends, thirds = self.passed_by_thirds, inside[..., len(self.third_share) :, :, :]
        [by_thirds] = self.groups.local.price([(ends, ends)], thirds)
        share = self.times[:, None, None] * self.passed_share[len(self.third_share) :]
        return np.asarray(passed + np.einsum("mgh,...mgh->...gh", share, by_thirds))

    def price_tables(self, price: Floats) -> ChannelTables:
        """Return prices of channels, (…, c), as tables, averaged over links between two groups."""
        groups, units = self.groups, self.routers.units
        count = groups.count
        between = add_by_key(groups.pair, price[groups.between] * groups.share, count * count)
        between = between.reshape(count, count)
        inside = groups.table(price)[self.members]
        pairs = np.ix_(units, self.members)
        return ChannelTables(inside, between[pairs], between.T[pairs])

    def channel_loads(self, tables: ChannelTables) -> Floats:
        """Return the bytes on every channel, float64 (c,)."""
        groups, units = self.groups, self.routers.units
        inside = np.zeros(groups.lanes)
        inside[self.members] = tables.inside
        between = np.zeros((groups.count, groups.count))
        between[np.ix_(units, self.members)] = tables.out
        between[np.ix_(self.members, units)] = tables.back.T
        out = np.zeros(len(groups.channels))
        out[groups.inside] = groups.paths * inside.reshape(-1)[groups.lane]
        out[groups.between] = between.reshape(-1)[groups.pair] * groups.share
        return out


def _refuse_many(groups: Groups, touched: int, members: int) -> None:
    """Raise if a job touches so many groups that their tables would be too large."""
    if touched**2 * max(groups.width, members) > MOST_TOUCHED:
        raise UsageError(
            f"{touched} of {groups.count} groups are too many for one job",
            "use nodes in fewer groups",
        )


def third_groups(groups: Groups, units: Ints) -> Ints:
    """Return the other groups via which detours between some groups may lead, int64 (k,).

    A router that has lost its links to the rest of its group is a group too, and often leads
    nowhere.
    """
    leads_on = groups.linked[units].sum(axis=0) > 1
    leads_on[units] = False
    return np.flatnonzero(leads_on)


class TouchedTables:
    """Tables that all demands of the same routers share, computed on first use.

    `routers` (k,): ascending.
    """

    def __init__(self, groups: Groups, routers: Ints) -> None:
        self.groups, self.routers = groups, TouchedRouters(groups, routers)
        # (k,), groups that they are not in, and that detours between theirs lead over
        self.others = third_groups(groups, self.routers.units)

    @cached_property
    def minimal(self) -> TouchedGroups:
        """For minimal paths only."""
        return TouchedGroups(self.groups, self.routers, self.others[:0], detours=False)

    @cached_property
    def every(self) -> TouchedGroups:
        """With all third groups."""
        sought = self.sought
        if len(sought.thirds) == len(self.others) and not sought.mean_passing:
            return sought
        return TouchedGroups(self.groups, self.routers, self.others)

    def load(
        self, minimal: GroupTraffic, detoured: GroupTraffic
    ) -> tuple[TouchedGroups, ChannelTables]:
        """Return the bytes on the channels, and the groups they belong to; others get none."""
        if not any(table.any() for table in detoured):
            return self.minimal, self.minimal.load(minimal)
        return self.every, self.every.load(minimal, detoured)

    @cached_property
    def sought(self) -> TouchedGroups:
        """With a few third groups, used while searching for a split."""
        seen = self.others
        if len(seen) > FEW_THIRDS:  # of those with most links
            links = self.groups.joins[np.ix_(self.routers.units, seen)].sum(axis=0)
            seen = seen[links >= links.max() * (1 - 1e-9)]
            seen = seen[np.linspace(0, len(seen) - 1, THIRDS).astype(np.int64)]
        mean_passing = len(self.routers.units) >= MANY
        return TouchedGroups(self.groups, self.routers, seen, mean_passing=mean_passing)

    @cached_property
    def second(self) -> ChannelTables:
        """Seconds per byte on the channels of `sought`.

        Of links to third groups those of the slowest: a few third groups stand for all.
        """
        members, units, count = self.sought.members, self.routers.units, len(self.routers.units)
        inside, between = _link_seconds(self.groups.channels.machine)
        out, back = (table[np.ix_(units, members)] for table in (between, between.T))
        if len(members) > count:
            pairs = np.ix_(units, self.others)
            gets = self.groups.joins[pairs] ** 2
            out[:, count:] = (between[pairs] * gets).max(axis=1)[:, None]
            back[:, count:] = (between.T[pairs] * gets).max(axis=1)[:, None]
        return ChannelTables(inside[members], out, back)


@once
def _link_seconds(machine: Machine) -> tuple[Floats, Floats]:
    """Return seconds per byte on channels within groups, and on the slowest between two."""
    groups = groups_of(machine)
    scale = 1 / (groups.channels.bandwidth * GB)
    inside, between = np.zeros(groups.lanes), np.zeros((groups.count, groups.count))
    inside.reshape(-1)[groups.lane] = groups.paths * scale[groups.inside]
    np.maximum.at(between.reshape(-1), groups.pair, groups.share * scale[groups.between])
    return inside, between


def touched_tables(machine: Machine, routers: Ints) -> TouchedTables:
    """Return the tables of some routers, keeping the last ones.

    The steps of an exchange, and what a search judges, come from the same routers again and again.
    """
    known, key = _known_tables(machine), routers.tobytes()
    tables = known.get(key)
    if tables is None:
        tables = TouchedTables(groups_of(machine), routers)
        known.clear()
        known[key] = tables
    return tables


@once
def _known_tables(machine: Machine) -> dict[bytes, TouchedTables]:
    """Return a machine's last tables."""
    return {}
