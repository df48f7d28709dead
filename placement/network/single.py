"""Routing ``single``: one path, and the next hop a function of (router, destination) alone.

Every hop brings a packet nearer to its destination by the measure of
``shortest`` (fewest global hops, then fewest hops), so a table of next hops
leads there on one of the shortest paths and can be installed as routes.
Where several next hops are as good they are taken in turn: with p and t the
positions of the router and of the destination in their groups, j = p + t says
which. First a link to the destination's group (number j mod n of the n best
ones, sorted by the positions of their ends), then a way to it inside the
group (number j div n, mod the w shortest first hops). Positions, not numbers
of the whole machine: relabelling the groups changes nothing. Only where two
groups have no link of their own do the routers' numbers decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network import shortest_paths
from placement.network.crossings import Crossing, Side, crossings
from placement.network.inside_groups import UNREACHED, InsideGroups
from placement.network.rails import no_path
from placement.network.switches import stop_at_switches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.demand import Demand
    from placement.network.group_ways import GroupWays
    from placement.network.groups import Groups
    from placement.support.array_types import Floats, Ints, Mask

    Small = NDArray[np.int32]

__all__ = ["hops", "loads", "next_channel"]

#: Router pairs of a machine whose whole table is made, and kept.
_WHOLE = 1 << 24

#: Router pairs of the table of one part of the destinations elsewhere.
_PART = 1 << 21

#: Numbers of one table of starts, ends and first hops.
_NUMBERS = 1 << 23


class Routes:
    """Next channels towards the routers of some groups.

    Parameters
    ----------
    ways : GroupWays
    first, last : int
        Destinations: the groups first … last-1.

    Attributes
    ----------
    next : int32 (h, q, g, q)
        Channel towards position ``[h, t]`` at router ``[g, p]``; -1 at the
        destination itself and where no router is.
    steps : int16 (h, q, g, q)
        Hops from there, 0 where `next` is -1.
    """

    def __init__(self, ways: GroupWays, first: int, last: int) -> None:
        groups = ways.groups
        self.ways, self.groups, self.first, self.last = ways, groups, first, last
        size = last - first, groups.width, groups.count, groups.width
        self.next = np.full(size, -1, dtype=np.int32)
        self.steps = np.zeros(size, dtype=np.int16)
        machine = groups.channels.machine
        self._inner = machine.once("network.first_hops", lambda: FirstHops(groups))
        self._inside()
        bundles = groups.bundles
        wanted = [(x >= first) & (x < last) for x in (bundles.low, bundles.high)]
        for batch in crossings(groups, np.flatnonzero(wanted[0] | wanted[1])):
            self._between(batch, up=True)
            self._between(batch, up=False)
        if not ways.whole:
            self._around()

    def _inside(self) -> None:
        groups = self.groups
        place = np.arange(groups.width, dtype=np.int32)
        for group in range(self.first, self.last):
            to, here = place[:, None], place[None, :]
            channel = self._inner.channel(np.full_like(to, group), here, to, here + to)
            self.next[group - self.first, :, group] = channel
            length = groups.local.length[groups.shape[group]].T
            self.steps[group - self.first, :, group] = np.where(channel >= 0, length, 0)

    def _between(self, batch: Crossing, up: bool) -> None:
        """Enter the routes of a batch of group pairs, from low to high or back."""
        source, target = (batch.low, batch.high) if up else (batch.high, batch.low)
        chosen = np.flatnonzero((target >= self.first) & (target < self.last))
        if not len(chosen):
            return
        links = _BestLinks(self.groups, batch, chosen, up)
        place = np.arange(self.groups.width, dtype=np.int32)
        link, again = links.pick(place[None, None, :] + place[None, :, None])
        gate = links.gate.take(link)
        group = source[chosen].astype(np.int32)[:, None, None]
        local = self._inner.channel(group, place, gate, again)
        channel = np.where(gate == place, links.channel.take(link), local)
        channel[links.total < 0] = -1
        at = target[chosen] - self.first, slice(None), source[chosen]
        self.next[at] = channel
        self.steps[at] = links.total + 1

    def _around(self) -> None:
        """Enter the routes to where no path with one global hop leads."""
        groups, ways = self.groups, self.ways
        goal = np.flatnonzero((groups.group >= self.first) & (groups.group < self.last))
        lost = ~(ways.linked | ways.one)[ways.unit[goal]][:, ways.unit]
        goal, lost = goal[lost.any(axis=1)], lost[lost.any(axis=1)]
        turn = groups.place[:, None] + groups.place[goal]
        channel = shortest_paths.chosen_channels(ways.search, goal, turn)
        place, source = np.nonzero(lost & (channel.T >= 0))
        target = goal[place]
        to = groups.group[target] - self.first, groups.place[target]
        at = (*to, groups.group[source], groups.place[source])
        self.next[at] = channel[source, place]
        far = shortest_paths.mean_hops(ways.search, source, target, len(groups.channels.kinds))
        self.steps[at] = np.rint(far.sum(axis=1))

    def loads(self, sent: Floats) -> Floats:
        """Return the bytes on every channel, float64 (c,).

        Parameters
        ----------
        sent : float64 (h * q, routers)
            Bytes to each destination (padded as `next`) from each router;
            overwritten.
        """
        groups = self.groups
        columns = groups.count * groups.width
        flow = sent
        if not np.array_equal(groups.slot, np.arange(columns)):
            flow = np.zeros((len(sent), columns))
            flow[:, groups.slot] = sent
        flat, steps, channel = flow.reshape(-1), self.steps.reshape(-1), self.next.reshape(-1)
        enters = groups.slot[groups.channels.target]
        load = np.zeros(len(groups.channels))
        self._refuse_lost(flow)
        for hop in range(int(steps.max(initial=0)), 0, -1):
            at = np.flatnonzero((steps == hop) & (flat != 0))
            used, moved = channel[at], flat[at]
            load += np.bincount(used, moved, minlength=len(load))
            np.add.at(flat, at - at % columns + enters[used], moved)
        return load

    def _refuse_lost(self, flow: Floats) -> None:
        """Raise where bytes are sent to a router that no path leads to."""
        size = self.next.shape
        lost = (flow.reshape(size) != 0) & (self.next < 0)
        to, place = np.arange(size[0])[:, None], np.arange(size[1])
        lost[to, place, to + self.first, place] = False
        if lost.any():
            at = [int(x[0]) for x in np.nonzero(lost)]
            slot = self.groups.slot
            ends = (at[2] * size[1] + at[3], (at[0] + self.first) * size[1] + at[1])
            machine = self.groups.channels.machine
            raise no_path(machine, *(int(np.flatnonzero(slot == x)[0]) for x in ends))

    def walked(self, source: Ints, target: Ints) -> Floats:
        """Return the channels of each class on the way between routers, float64 (m, classes)."""
        groups, channels = self.groups, self.groups.channels
        out = np.zeros((len(source), len(channels.kinds)))
        here, going = source.copy(), np.flatnonzero(source != target)
        to = groups.group[target] - self.first, groups.place[target]
        while len(going):
            at = here[going]
            used = self.next[to[0][going], to[1][going], groups.group[at], groups.place[at]]
            if (used < 0).any():
                row = going[int(np.argmax(used < 0))]
                raise no_path(channels.machine, int(source[row]), int(target[row]))
            out[going, channels.kind[used]] += 1
            here[going] = channels.target[used]
            going = going[here[going] != target[going]]
        return out


class FirstHops:
    """Which channels lead from one position of a group towards another.

    Parameters
    ----------
    groups : Groups

    Examples
    --------
    >>> from placement.network.groups import groups_of
    >>> from placement.specs import parse_spec
    >>> groups = groups_of(parse_spec("dragonfly:groups=1,chassis=2,blades=2,nodes=1"))
    >>> found = FirstHops(groups)
    >>> j, g = np.arange(3, dtype=np.int32), np.zeros(3, np.int32)
    >>> channel = found.channel(g, g, np.array([3, 3, 3]), j)
    >>> groups.channels.names()[channel].tolist()
    ['g0c0b0->g0c0b1 green', 'g0c0b0->g0c1b0 black', 'g0c0b0->g0c0b1 green']
    """

    def __init__(self, groups: Groups) -> None:
        self._width = groups.width
        self._shape = groups.shape.astype(np.int32)
        parts = [_first_hops(groups.local, shape) for shape in range(len(groups.local.length))]
        self._hop = np.concatenate([hop for hop, _ in parts])
        self._count = np.concatenate([count for _, count in parts])
        self._start = (np.cumsum(self._count) - self._count).astype(np.int32)
        channels, rows = groups.channels, groups.inside[::-1]
        source, target = channels.source[rows], channels.target[rows]
        self._channel = np.full(groups.count * groups.width**2, -1, dtype=np.int32)
        key = groups.slot[source] * groups.width + groups.place[target]
        self._channel[key] = rows  # of parallel ones the first

    def channel(
        self, group: Ints | Small, here: Ints | Small, there: Ints | Small, turn: Ints | Small
    ) -> Small:
        """Return the channel towards a position, element by element.

        Parameters
        ----------
        group, here, there : int32, shapes that broadcast
            Positions `here` and `there` of a group.
        turn : int32
            Number ``turn`` mod n of the n first hops, sorted by position.

        Returns
        -------
        int32
            -1 where there is none, or `here` is `there`.
        """
        key = (self._shape[group] * self._width + here) * self._width + there
        place = self._start.take(key) + turn % self._count.take(key)
        key = (group * self._width + here) * self._width
        channel: Small = self._channel.take(key + self._hop.take(place))
        return channel


def _first_hops(local: InsideGroups, shape: int) -> tuple[Small, Small]:
    """Return the first hops of all pairs one after another, and how many each pair has.

    A pair that has none gets a hop from the router to itself, which no
    channel makes.
    """
    length, joined = local.length[shape], local.joined[shape] > 0
    size = len(length)
    step = max(1, _NUMBERS // (size * size))
    hops, counts = [], []
    for low in range(0, size, step):
        far = length[low : low + step, :, None]
        nearer = (length.T[None, :, :] == far - 1) & joined[low : low + step, None, :] & (far > 0)
        place, there = np.nonzero(~nearer.any(axis=2))
        nearer[place, there, place + low] = True
        counts.append(nearer.sum(axis=2, dtype=np.int32).reshape(-1))
        hops.append(np.nonzero(nearer)[2].astype(np.int32))
    return np.concatenate(hops), np.concatenate(counts)


class _BestLinks:
    """The best links of some group pairs, seen from the source's side."""

    def __init__(self, groups: Groups, batch: Crossing, chosen: Ints, up: bool) -> None:
        bundles = groups.bundles
        bundle = batch.bundle[chosen]
        ends = (bundles.a[bundle], bundles.b[bundle])
        here, there = ends if up else ends[::-1]
        channel = bundles.up if up else bundles.down
        order = np.lexsort((channel[bundle], there, here, ~batch.there[chosen]), axis=1)
        here, bundle = (np.take_along_axis(x, order, axis=1) for x in (here, bundle))
        self.gate, self.channel = here.astype(np.int32), channel[bundle].astype(np.int32)
        sides = (batch.here, batch.yonder) if up else (batch.yonder, batch.here)
        total = np.where(batch.count[chosen] > 0, batch.total[chosen], -1)
        total = total if up else np.swapaxes(total, 1, 2)
        exists = np.take_along_axis(batch.there[chosen], order, axis=1)
        before, after = (_class_far(side, chosen, order) for side in sides)
        self._list(before, after, total, exists)
        kinds = [side.kind[chosen] for side in sides]
        row = np.arange(len(chosen))[:, None]
        first = ((row * total.shape[1] + kinds[0]) * total.shape[2]).astype(np.int32)
        self._at = first[:, None, :] + kinds[1].astype(np.int32)[:, :, None]
        self.total = total.astype(np.int16).take(self._at)

    def _list(self, before: Ints, after: Ints, total: Ints, exists: Mask) -> None:
        """List the best links between any two classes one after another."""
        far = np.swapaxes(before, 1, 2)[:, :, None, :] + np.swapaxes(after, 1, 2)[:, None, :, :]
        best = (far == total[:, :, :, None]) & exists[:, None, None, :]
        best[:, :, :, 0] |= total < 0  # so that there is one to pick
        self._count = best.sum(axis=3, dtype=np.int32).reshape(-1)
        row, _, _, link = np.nonzero(best)
        self._link = (row * best.shape[3] + link).astype(np.int32)
        self._start = (np.cumsum(self._count) - self._count).astype(np.int32)

    def pick(self, turn: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the link from each source position (last axis) to each target.

        Returns
        -------
        link : int32 (b, q, q)
            Number ``turn`` mod n of the n best, as an index of `gate` and `channel`.
        again : int32 (b, q, q)
            ``turn`` div n, for the next choice.
        """
        again, place = np.divmod(turn, self._count.take(self._at))
        return self._link.take(self._start.take(self._at) + place), again


def _class_far(side: Side, chosen: Ints, order: Ints) -> Ints:
    """Return the hops from each link's end to each class, float64 (b, l, c)."""
    first = side.first[chosen][:, None, :]
    far = np.take_along_axis(side.far[chosen], first, axis=2)
    far = np.take_along_axis(far, order[:, :, None], axis=1).astype(np.int64)
    return np.where(far >= UNREACHED, 4 * UNREACHED, far)


def _parts(groups: Groups) -> Iterator[tuple[int, int]]:
    """Yield spans of destination groups whose tables are of a bearable size."""
    entries = groups.width * groups.width * groups.count
    step = groups.count if entries * groups.count <= _WHOLE else max(1, _PART // max(1, entries))
    for first in range(0, groups.count, step):
        yield first, min(groups.count, first + step)


def _routes(ways: GroupWays, first: int, last: int) -> Routes:
    """Return the routes to some groups; those to all groups are made once a machine."""
    if (first, last) != (0, ways.groups.count):
        return Routes(ways, first, last)
    machine = ways.groups.channels.machine
    return machine.once("network.single", lambda: Routes(ways, first, last))


def loads(ways: GroupWays, demand: Demand) -> Floats:
    """Return the bytes on every channel, float64 (c,).

    Raises
    ------
    NidmapError
        Where no path joins two routers that exchange bytes.
    """
    load = np.zeros(len(ways.groups.channels))
    arriving = demand.reversed()
    for first, last in _parts(ways.groups):
        sent = _arriving(ways.groups, arriving, first, last)
        if sent.any():
            load += _routes(ways, first, last).loads(sent)
    return load


def _arriving(groups: Groups, arriving: Demand, first: int, last: int) -> Floats:
    """Return the bytes to all positions of some groups, float64 (h * q, routers)."""
    goal = np.flatnonzero((groups.group >= first) & (groups.group < last))
    low, high = int(goal[0]), int(goal[-1]) + 1
    sent = np.zeros(((last - first) * groups.width, groups.routers))
    sent[groups.slot[goal] - first * groups.width] = arriving.table(low, high)[goal - low]
    return sent


def hops(ways: GroupWays, source: Ints, target: Ints) -> Floats:
    """Return the channels of each class on the way between routers, float64 (m, classes).

    Raises
    ------
    NidmapError
        Where no path joins two of them.
    """
    out = np.zeros((len(source), len(ways.groups.channels.kinds)))
    goal = ways.groups.group[target]
    for first, last in _parts(ways.groups):
        rows = np.flatnonzero((goal >= first) & (goal < last))
        if len(rows):
            out[rows] = _routes(ways, first, last).walked(source[rows], target[rows])
    return out


def next_channel(ways: GroupWays, machine: Machine, nodes: Ints) -> Ints:
    """Return the channel by which a router forwards to some nodes, (routers, nodes).

    Raises
    ------
    UsageError
        Where the table would be too large.
    """
    groups = ways.groups
    shortest_paths.refuse_large_table(groups.routers, len(nodes))
    out = np.full((groups.routers, len(nodes)), -1, dtype=np.int64)
    router = machine.router[nodes, 0].astype(np.int64)
    goal = np.where(router >= 0, groups.group[router], -1)
    for first, last in _parts(groups):
        rows = np.flatnonzero((goal >= first) & (goal < last))
        if len(rows):
            hops = _routes(ways, first, last).next
            table = hops[goal[rows] - first, groups.place[router[rows]]]
            out[:, rows] = table[:, groups.group, groups.place].T
    return stop_at_switches(machine, nodes, out)
