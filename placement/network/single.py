# SPDX-License-Identifier: Apache-2.0
"""Routing ``single`` on dragonflies: the next hop depends only on router and destination.

Every hop brings a packet nearer to its destination (fewest links between groups, then fewest
hops), so a table of next hops leads there on one of the shortest paths and can be installed as
routes. Where several next hops are as good they are taken in turn: with p and t the positions
of the router and of the destination in their groups, j = p + t says which. First a link to the
destination's group (number j mod n of the n best ones, sorted by the positions of their ends),
then a way to it inside the group (number j div n, mod the w shortest first hops). Positions,
not numbers of the whole machine: relabelling the groups changes nothing. Only where two groups
have no link of their own do the routers' numbers decide.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nidmap.placement.machine import Machine, once
from nidmap.placement.network import shortest_paths
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.groups import Groups, groups_of
from nidmap.placement.network.local_paths import UNREACHED, LocalPaths
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import add_by_key, rank_within

#: Numbers of one table of routers, links and destinations, or of routers by destinations.
_TABLE = 1 << 22

#: Number of a machine's router pairs up to which channels are cached, since the next demand has the
#: same targets.
_KEPT = 1 << 24


class NextHops:
    """Channels by which routers forward to others.

    `hop` (wirings, positions, positions, most): first hops of the shortest paths from one to
    another position, ascending. `hops` (wirings, positions, positions): how many there are.
    """

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        size = groups.count, groups.width
        # (count, positions), router at each position of each group, -1 where there is none
        self.router = np.full(size, -1, dtype=np.int64)
        self.router[groups.group, groups.place] = np.arange(groups.routers)
        # (count, positions, positions), channel from one to the other position, of parallel ones
        # the first
        self.channel = np.full((*size, groups.width), -1, dtype=np.int64)
        rows = groups.inside[::-1]  # of parallel channels the first is written last
        source, target = (end[rows] for end in (groups.channels.source, groups.channels.target))
        self.channel[groups.group[source], groups.place[source], groups.place[target]] = rows
        self.hop, self.hops = _first_hops(groups.local)
        self.known = np.zeros(groups.routers, dtype=bool)
        most = groups.routers if groups.routers**2 <= _KEPT else 0
        self.kept = np.empty((most, most), dtype=np.int32)

    def inside(self, group: Ints, here: Ints, there: Ints, turn: Ints) -> Ints:
        """Return the channel from a position of a group to another one; -1 for none.

        `turn`: number ``turn`` mod n of the n first hops.
        """
        wiring = self.groups.wiring[group]
        choices = self.hops[wiring, here, there]
        hop = self.hop[wiring, here, there, turn % np.maximum(choices, 1)]
        return np.where(choices > 0, self.channel[group, here, hop], -1)

    def towards(self, target: Ints) -> Ints:
        """Return the channel from every router to each target, int64 (routers, m).

        -1 at the target itself, and where no path leads there.
        """
        if not len(self.kept):
            return self._find(target)
        new = target[~self.known[target]]
        self.kept[:, new] = self._find(new)
        self.known[new] = True
        return self.kept[:, target].astype(np.int64)

    def _find(self, target: Ints) -> Ints:
        groups = self.groups
        out = np.full((groups.routers, len(target)), -1, dtype=np.int64)
        for group in np.unique(groups.group[target]).tolist():
            column = np.flatnonzero(groups.group[target] == group)
            to, mine = groups.place[target[column]], np.flatnonzero(groups.group == group)
            here = groups.place[mine][:, None]
            out[np.ix_(mine, column)] = self.inside(np.array(group), here, to, here + to)
            for some, routers, channel in self._between(group, to):
                out[routers[:, None], column[some]] = channel
        if not groups.complete:
            self._around(target, out)
        return out

    def _between(self, group: int, to: Ints) -> Iterator[tuple[slice, Ints, Ints]]:
        """Yield positions of a group, routers of linked groups, and channels to them."""
        groups, local = self.groups, self.groups.local
        rows = np.flatnonzero(groups.pair % groups.count == group)
        if not len(rows):
            return
        channels, place = groups.channels, groups.place
        channel = groups.between[rows]
        a, b = place[channels.source[channel]], place[channels.target[channel]]
        order = np.lexsort((channel, b, a, groups.pair[rows]))
        channel, a, b, pair = (column[order] for column in (channel, a, b, groups.pair[rows]))
        sources, group_row = np.unique(pair // groups.count, return_inverse=True)
        link = rank_within(group_row)
        table = np.zeros((3, len(sources), int(link.max()) + 1), dtype=np.int64)
        table[:, group_row, link] = a, b, channel
        gate, enter, channel = table
        exists = np.zeros(gate.shape, dtype=bool)
        exists[group_row, link] = True
        before = local.length[groups.wiring[sources][:, None], gate]
        after = np.where(exists[:, :, None], local.length[groups.wiring[group], enter], UNREACHED)
        router = self.router[sources]
        there = router >= 0
        place_here = np.arange(groups.width)[:, None]
        batch = max(1, _TABLE // before.size)
        for low in range(0, len(to), batch):
            some = slice(low, low + batch)
            far = before[:, :, :, None] + after[:, :, None, to[some]]
            least = far.min(axis=1)
            best = np.cumsum(far == least[:, None], axis=1, dtype=np.int16)
            again, chosen = np.divmod(place_here + to[some], best[:, -1])
            nth = (best > chosen[:, None]).argmax(axis=1)
            row = np.arange(len(sources))[:, None, None]
            goal = gate[row, nth]
            inside = self.inside(sources[:, None, None], place_here, goal, again)
            hop = np.where(goal == place_here, channel[row, nth], inside)
            yield some, router[there], np.where(least < UNREACHED, hop, -1)[there]

    def _around(self, target: Ints, out: Ints) -> None:
        """Fill in the channels to groups without a direct link to a router's own."""
        groups = self.groups
        apart = ~(groups.linked | groups.same)[groups.group[target]][:, groups.group]
        far = np.flatnonzero(apart.any(axis=1))
        turn = groups.place[:, None] + groups.place[target[far]]
        around = shortest_paths.chosen_channels(groups.graph, target[far], turn)
        out[:, far] = np.where(apart[far].T, around, out[:, far])


def _first_hops(local: LocalPaths) -> tuple[Ints, Ints]:
    """Return the first hops between all positions of each wiring, and their numbers."""
    parts = []
    for length, joined in zip(local.length, local.joined > 0, strict=True):
        nearer = joined[:, None, :] & (length[None, :, :] == length[:, :, None] - 1)
        parts.append((nearer.sum(axis=2), np.argsort(~nearer, axis=2, kind="stable")))
    most = max((int(count.max(initial=1)) for count, _ in parts), default=1)
    return np.stack([hop[:, :, :most] for _, hop in parts]), np.stack([n for n, _ in parts])


@once
def _next_hops(machine: Machine) -> NextHops:
    return NextHops(groups_of(machine))


def _target_batches(groups: Groups, target: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield batches of distinct targets, with the table of channels to them."""
    batch = max(1, _TABLE // max(1, groups.routers))
    for low in range(0, len(target), batch):
        some = target[low : low + batch]
        yield some, _next_hops(groups.channels.machine).towards(some)


def loads(groups: Groups, demand: Demand) -> Floats:
    """Return the bytes on every channel, float64 (c,)."""
    load = np.zeros(len(groups.channels))
    for target, source, amount in demand.reversed().blocks():
        for rows, message, channel in _follow_batches(groups, source, target):
            load += add_by_key(channel, amount[rows[message]], len(load))
    return load


def hops(groups: Groups, source: Ints, target: Ints) -> Floats:
    """Return the number of channels of each class between routers, float64 (m, classes)."""
    out = np.zeros((len(source), len(groups.channels.kinds)))
    for rows, message, channel in _follow_batches(groups, source, target):
        np.add.at(out, (rows[message], groups.channels.kind[channel]), 1)
    return out


def _follow_batches(
    groups: Groups, source: Ints, target: Ints
) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield batches of messages between routers, by rows, with the channels that they take."""
    channels, order = groups.channels, np.argsort(target, kind="stable")
    for some, table in _target_batches(groups, np.unique(target)):
        first, last = np.searchsorted(target, [some[0], some[-1] + 1], sorter=order)
        rows = order[first:last]
        column = np.searchsorted(some, target[rows])
        message, channel, ends = shortest_paths.follow_messages(
            channels, table, source[rows], column
        )
        shortest_paths.refuse_lost(channels.machine, ends, target[rows])
        yield rows, message, channel


def next_channel(groups: Groups, machine: Machine, nodes: Ints) -> Ints:
    """Return the channel by which a router forwards to some nodes, (routers, nodes)."""
    out = np.full((groups.routers, len(nodes)), -1, dtype=np.int64)
    router = machine.router[nodes, 0].astype(np.int64)
    for some, table in _target_batches(groups, np.unique(router[router >= 0])):
        rows = np.flatnonzero(np.isin(router, some))
        out[:, rows] = table[:, np.searchsorted(some, router[rows])]
    return out
