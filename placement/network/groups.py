"""A dragonfly as its routings see it: groups of routers, and the bundles between group pairs.

Inside a group a bundle (black) is one channel and one way; links between
groups count one by one, also where several join the same two routers, and so do
the cables of a DragonFly+, from leaf to spine too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.errors import UsageError
from placement.machine import Machine
from placement.network.inside_groups import UNREACHED, InsideGroups
from placement.network.model import Channels, from_links, has_spines
from placement.support.array_types import Floats, Ints, Mask
from placement.support.arrays import summed

__all__ = ["Bundles", "Groups", "groups_of"]

#: Numbers in a table of all router pairs of all groups, at most.
MOST_INSIDE = 50_000_000

#: Numbers in a table of all routers by all groups, at most.
MOST_BETWEEN = 100_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Bundles:
    """The bundles between groups, sorted by group pair (m rows over p pairs).

    Attributes
    ----------
    low, high : int64 (p,)
        The groups of each linked pair, low < high.
    first : int64 (p + 1,)
        Where each pair's bundles begin.
    a, b : int64 (m,)
        Positions of the two routers in their groups, low and high.
    times : float64 (m,)
        Parallel links.
    up, down : int64 (m,)
        Channels from low to high and back.
    """

    low: Ints
    high: Ints
    first: Ints
    a: Ints
    b: Ints
    times: Floats
    up: Ints
    down: Ints

    @property
    def pair(self) -> Ints:
        """Pair of each bundle, int64 (m,)."""
        return np.repeat(np.arange(len(self.low)), np.diff(self.first))


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups of routers, padded to the size of the largest.

    Attributes
    ----------
    channels : Channels
    count, width : int
        Groups, and routers of the largest one.
    group, place : int64 (r,)
        Group of each router (0 … count-1) and its position there.
    shape : int64 (count,)
        Wiring of each group: groups that are wired alike share one.
    local : InsideGroups
    inside : int64 (c,)
        Channels inside groups.
    lane : int64 (c,)
        Where each of them stands in tables (groups, positions, lanes), flat.
    ways : float64 (c,)
        Paths over each of them: 1, but for parallel blue links inside a group and for cables
        of a DragonFly+.
    bundles : Bundles
    part : int64 (count, width)
        Connected part of its group that a position is in, numbered over the
        whole machine; -1 where there is no router.
    """

    channels: Channels
    count: int
    width: int
    group: Ints
    place: Ints
    shape: Ints
    local: InsideGroups
    inside: Ints
    lane: Ints
    ways: Floats
    bundles: Bundles
    part: Ints

    @property
    def routers(self) -> int:
        """Routers of the machine."""
        return len(self.group)

    @property
    def slot(self) -> Ints:
        """Position of each router in the padded tables, int64 (r,)."""
        return self.group * self.width + self.place

    @property
    def parts(self) -> int:
        """Connected parts of all groups together; `count` where every group is in one piece."""
        return int(self.part.max(initial=-1)) + 1

    def spread(self, of_routers: Floats) -> Floats:
        """Return a column of the routers as a table (groups, positions), 0 where there is none."""
        out = np.zeros(self.count * self.width)
        out[self.slot] = of_routers
        return out.reshape(self.count, self.width)

    def inner(self, lanes: Floats) -> Floats:
        """Return the bytes of each channel of `inside` from tables (groups, positions, lanes)."""
        amount: Floats = self.ways * lanes.reshape(-1)[self.lane]
        return amount

    @property
    def lanes(self) -> tuple[int, int, int]:
        """The shape of tables of all channels inside groups."""
        return self.count, self.width, self.local.lanes

    def spots(self, source: Ints, target: Ints, amount: Floats) -> tuple[Ints, Ints, Floats]:
        """Return what pairs of routers of one group put on its channels, one by one.

        Only where `InsideGroups.listed`.

        Parameters
        ----------
        source, target : int64 (m,)
        amount : float64 (m,)

        Returns
        -------
        pair, lane : int64 (n,)
            Place of the pair, and where a channel stands in tables.
        amount : float64 (n,)
        """
        group, places = self.group[source], (self.place[source], self.place[target])
        pair, u, v, sent = self.local.few(self.shape[group], *places, amount)
        group = group[pair]
        lane = self.local.lane[self.shape[group], u, v]
        return pair, (group * self.width + u) * self.local.lanes + lane, sent

    def table(self, of_channels: Floats) -> Floats:
        """Return what is known of all channels as tables (groups, positions, lanes)."""
        size = int(np.prod(self.lanes))
        return summed(self.lane, self.ways * of_channels[self.inside], size).reshape(self.lanes)


def groups_of(machine: Machine) -> Groups:
    """Return the groups of a dragonfly; made once a machine.

    Raises
    ------
    UsageError
        Where the links are unknown, or the groups too large for tables of
        all pairs of their routers.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> found = groups_of(parse_spec("dragonfly:groups=3,chassis=2,blades=4,nodes=1"))
    >>> found.count, found.width, found.local.most, len(found.bundles.low)
    (3, 8, 2, 3)
    """
    return machine.once("network.groups", lambda: _make_groups(machine))


def _make_groups(machine: Machine) -> Groups:
    from placement.topologies import router_coords

    channels = from_links(machine)
    number = router_coords(machine)[:, 0].astype(np.int64)
    present, group = np.unique(number, return_inverse=True)
    sizes = np.bincount(group)
    count, width = len(present), int(sizes.max(initial=0))
    _refuse_large(count, width, len(group))
    place = np.empty(len(group), dtype=np.int64)
    order = np.argsort(group, kind="stable")
    place[order] = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    same = group[channels.source] == group[channels.target]
    inside = np.flatnonzero(same)
    source, target = channels.source[inside], channels.target[inside]
    spot = (group[source] * width + place[source]) * width + place[target]
    shape, local = _wirings(channels, inside, spot, count, width)
    at, to = np.divmod(spot, width)
    lane = at * local.lanes + local.lane[shape[at // width], at % width, to]
    exists = np.arange(width) < sizes[:, None]
    return Groups(
        channels=channels,
        count=count,
        width=width,
        group=group,
        place=place,
        shape=shape,
        local=local,
        inside=inside,
        lane=lane,
        ways=_ways(channels, inside),
        bundles=_bundles(channels, ~same, group, place),
        part=_parts(local, shape, exists),
    )


def _refuse_large(count: int, width: int, routers: int) -> None:
    if count * width * width > MOST_INSIDE or routers * count > MOST_BETWEEN:
        raise UsageError(
            f"{count} groups of up to {width} routers are too many to route",
            f"at most {MOST_INSIDE} router pairs inside groups, and {MOST_BETWEEN} "
            "pairs of a router and a group, are possible",
        )


def _ways(channels: Channels, rows: Ints) -> Floats:
    """Return how many ways each channel inside a group is: a bundle is one, blue links are not."""
    spines = has_spines(channels.machine)  # all links of a DragonFly+ count one by one
    single = np.array([spines or kind in ("blue", "global") for kind in channels.kinds])
    return np.where(single[channels.kind[rows]], channels.count[rows], 1).astype(np.float64)


def _wirings(
    channels: Channels, inside: Ints, spot: Ints, count: int, width: int
) -> tuple[Ints, InsideGroups]:
    """Return the wiring of each group by number, and the paths of each wiring."""
    joined = summed(spot, _ways(channels, inside), count * width * width)
    joined = joined.reshape(count, width, width)
    kind = 1024.0 ** channels.kind[inside]  # the classes must be alike too
    looks = np.bincount(spot, kind * channels.count[inside], minlength=joined.size)
    known: dict[bytes, int] = {}
    looks = looks.reshape(count, -1)
    shape = np.array([known.setdefault(table.tobytes(), len(known)) for table in looks], dtype=int)
    _, first = np.unique(shape, return_index=True)
    return shape, InsideGroups(joined[first])


def _bundles(channels: Channels, across: Mask, group: Ints, place: Ints) -> Bundles:
    """Return the rows between groups; of two channels of a link the first half has one each."""
    half = len(channels) // 2
    rows = np.flatnonzero(across[:half])
    a, b = (x[rows].astype(np.int64) for x in (channels.source, channels.target))
    turned = group[a] > group[b]
    up, down = np.where(turned, rows + half, rows), np.where(turned, rows, rows + half)
    a, b = np.where(turned, b, a), np.where(turned, a, b)
    key = group[a] * (int(group.max(initial=0)) + 1) + group[b]
    order = np.argsort(key, kind="stable")
    a, b, up, down = (x[order] for x in (a, b, up, down))
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    times = channels.count[up].astype(np.float64)
    ends = np.append(first, len(order))
    return Bundles(group[a[first]], group[b[first]], ends, place[a], place[b], times, up, down)


def _parts(local: InsideGroups, shape: Ints, exists: Mask) -> Ints:
    """Return a number for the connected part of its group that each position is in."""
    leader = np.argmax(local.length < UNREACHED, axis=2)[shape]
    leads = leader == np.arange(leader.shape[1])
    number = np.cumsum((leads & exists).reshape(-1)).reshape(leader.shape) - 1
    part = np.take_along_axis(number, leader, axis=1)
    return np.where(exists, part, -1)
