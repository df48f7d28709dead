"""Ways over a third group on a dragonfly, and both their loads and their prices as products.

What a router sends to another group depends on that group alone, and not on
the router there. So bytes by (router, group) tell all loads, and a price a
channel makes prices by (router, group): the transposed product. Both are a
few products of small tables, whatever the number of router pairs.

A group that is not in one piece (a router has lost all its links to the
others) counts as several here; below, a group is such a piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.errors import UsageError
from placement.network.arrays import product, summed
from placement.network.groups import groups_of
from placement.network.local import UNREACHED
from placement.network.minimal import inner_demand
from placement.network.model import once
from placement.network.unlinked_groups import FewestGlobalHops, left_out

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.demand import Demand
    from placement.network.groups import Groups

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Bytes", "Prices", "ThirdGroups", "Ways", "bytes_of", "third_groups_of"]

#: Numbers in a table of all triples of groups, at most.
MOST_TRIPLES = 60_000_000


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
        found: Floats = self.away.sum(axis=1)
        return found

    def minus(self, other: Bytes) -> Bytes:
        """Return what is left when `other` is taken away."""
        return Bytes(self.away - other.away, self.home - other.home)

    def times(self, factor: Floats | NDArray[np.bool_]) -> Bytes:
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


class Prices(NamedTuple):
    """Prices of the minimal ways and of those over a third group."""

    minimal: Ways
    valiant: Ways

    @property
    def extra(self) -> Ways:
        """Minimal less Valiant: above 0 where the way over a third group is cheaper."""
        return Ways(*(a - b for a, b in zip(self.minimal, self.valiant, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class ThirdGroups:
    """A dragonfly's groups, their links, and the third groups between them.

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
        Channels between groups, each one's ordered pair g · count + h, and
        its share of that pair's bytes.
    linked : bool (count, count)
    third : float64 (count, count, count)
        ``[g, h, k]``: share of the bytes from g to h that go over group k on
        the ways over a third group; all 0 where there is none.
    """

    groups: Groups
    count: int
    unit: Ints
    home: Ints
    gates: Floats
    channel: Ints
    between: Ints
    share: Floats
    linked: NDArray[np.bool_]
    third: Floats

    @property
    def whole(self) -> bool:
        """Whether every group is in one piece."""
        return self.count == self.groups.count

    @property
    def valiant(self) -> NDArray[np.bool_]:
        """Whether a third group is linked to both, bool (count, count)."""
        found: NDArray[np.bool_] = self.third.sum(axis=2) > 0
        return found

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Whether neither a link nor a third group joins two groups, bool (count, count)."""
        return ~(self.linked | self.valiant | np.eye(self.count, dtype=bool))

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
        away, home, between, flow = minimal.away, minimal.home, minimal.between, None
        if valiant is not None:
            over = valiant.between[:, :, None] * self.third
            away = away + product(valiant.away, self.third)
            home = home + product(valiant.home, np.swapaxes(self.third, 0, 1))
            between = between + over.sum(axis=1) + over.sum(axis=0).T
            over = np.ascontiguousarray(over.transpose(2, 0, 1))
            flow = product(np.swapaxes(self.gates, 1, 2), product(over, self.gates))
        crossing = product(away, self.gates) + np.swapaxes(product(home, self.gates), 1, 2)
        flow = crossing if flow is None else crossing + flow
        out = np.zeros(len(self.groups.channels))
        out[self.groups.inside] = self._inside(flow, inner)
        out[self.channel] = between.reshape(-1)[self.between] * self.share
        return out

    def _inside(self, flow: Floats, inner: Floats | None) -> Floats:
        """Return the bytes on the channels inside groups."""
        groups = self.groups
        if not self.whole:
            apart, flow = flow, np.zeros((groups.count, *flow.shape[1:]))
            np.add.at(flow, self.home, apart)
        if inner is not None:
            flow = flow + inner
        return groups.inner(groups.local.carry(groups.shape, flow))

    def prices(self, price: Floats) -> Prices:
        """Return what all ways cost when each channel has a price a byte; `load` transposed.

        Parameters
        ----------
        price : float64 (c,)

        Returns
        -------
        Prices
        """
        inside = self._priced(price)
        turned = np.swapaxes(self.gates, 1, 2)
        away, home = product(inside, turned), product(np.swapaxes(inside, 1, 2), turned)
        cross = summed(self.between, price[self.channel] * self.share, self.count**2)
        cross = cross.reshape(self.count, self.count)
        through = product(self.gates, away)  # [k, g, h]: from the gates to g to those to h
        over = through.transpose(1, 2, 0) + cross[:, None, :] + cross.T[None, :, :]
        valiant = Ways(
            product(away, np.swapaxes(self.third, 1, 2)),
            product(home, self.third.transpose(1, 2, 0)),
            np.einsum("ghk,ghk->gh", self.third, over),
        )
        return Prices(Ways(away, home, cross), valiant)

    def _priced(self, price: Floats) -> Floats:
        """Return the price of the ways inside groups, float64 (count, positions, positions)."""
        groups = self.groups
        found = groups.local.priced(groups.shape, groups.table(price))
        return found if self.whole else found[self.home]


def third_groups_of(machine: Machine) -> ThirdGroups:
    """Return the ways over a third group; made once a machine.

    Raises
    ------
    UsageError
        Where the links are unknown, or there are too many groups.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=4,chassis=1,blades=4,nodes=1,global=2")
    >>> found = third_groups_of(m)
    >>> found.third[0, 1].tolist()
    [0.0, 0.0, 0.5, 0.5]
    """
    found: ThirdGroups = once(machine, "network.third_groups", lambda: _made(groups_of(machine)))
    return found


def _made(groups: Groups) -> ThirdGroups:
    found, count = groups.bundles, groups.parts
    _refuse_large(groups, count)
    pair = found.pair
    low, high = groups.part[found.low[pair], found.a], groups.part[found.high[pair], found.b]
    between = np.concatenate([low * count + high, high * count + low])
    times = np.tile(found.times, 2)
    share = times / summed(between, times, count * count)[between]
    gates = summed(
        between * groups.width + np.concatenate([found.a, found.b]), share, count**2 * groups.width
    )
    linked = (np.bincount(between, minlength=count * count) > 0).reshape(count, count)
    home = np.zeros(count, dtype=np.int64)
    unit = groups.part[groups.group, groups.place]
    home[unit] = groups.group
    return ThirdGroups(
        groups=groups,
        count=count,
        unit=unit,
        home=home,
        gates=gates.reshape(count, count, groups.width),
        channel=np.concatenate([found.up, found.down]),
        between=between,
        share=share,
        linked=linked,
        third=_third(linked),
    )


def _refuse_large(groups: Groups, count: int) -> None:
    if count**2 * max(count, groups.width) > MOST_TRIPLES:
        raise UsageError(
            f"{count} groups are too many for ways over a third group",
            f"at most {MOST_TRIPLES} triples of groups are possible; take minimal or shortest",
        )


def _third(linked: NDArray[np.bool_]) -> Floats:
    """Return the share of each third group: equal among those linked to both, the ends not."""
    both = linked[:, None, :] & linked.T[None, :, :]
    every = np.arange(len(linked))
    both[every, every, :] = False
    number = both.sum(axis=2, keepdims=True)
    share: Floats = both / np.maximum(number, 1)
    return share


def bytes_of(thirds: ThirdGroups, demand: Demand) -> tuple[Bytes, Floats, Floats]:
    """Return a demand by router and far group, what stays inside groups, and other loads.

    Returns
    -------
    bytes : Bytes
        Between groups that a link or a third group joins.
    inner : float64 (machine's groups, positions, positions)
    far : float64 (c,)
        Loads between other groups: as ``minimal`` routes them, by the fewest
        links between groups.

    Raises
    ------
    NidmapError
        Where no path joins two routers that exchange bytes.
    """
    groups, count = thirds.groups, thirds.count
    away, home = (_folded(thirds, way) for way in (demand, demand.reversed()))
    every = np.arange(count)
    away[every, :, every] = home[every, :, every] = 0
    inner = inner_demand(groups, demand)
    inner *= groups.local.length[groups.shape] < UNREACHED
    found = Bytes(away, home)
    far = np.zeros(len(groups.channels))
    lost = thirds.lost & (found.between > 0)
    if lost.any():
        source, target, amount = left_out(groups, demand)
        kept = lost[thirds.unit[source], thirds.unit[target]]
        far = FewestGlobalHops(groups).loads(source[kept], target[kept], amount[kept])
        found = found.times(~lost)
    return found, inner, far


def _folded(thirds: ThirdGroups, demand: Demand) -> Floats:
    width, count = thirds.groups.width, thirds.count
    out = np.zeros((count * width, count))
    out[thirds.slot(np.arange(len(thirds.unit)))] = demand.folded(thirds.unit, count)
    found: Floats = np.maximum(out, 0).reshape(count, width, count)
    return found
