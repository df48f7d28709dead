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

from placement.errors import UsageError
from placement.network import unlinked_groups
from placement.network.first_hops import FirstHops
from placement.network.global_links import crossings, reach
from placement.network.local import UNREACHED
from placement.network.model import once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.demand import Demand
    from placement.network.global_links import Crossing, Side
    from placement.network.groups import Groups

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Routes", "hops", "loads", "next_channel", "routes"]

#: Router pairs of a machine whose whole table is made, and kept.
_WHOLE = 1 << 24

#: Router pairs of the table of one part of the destinations elsewhere.
_PART = 1 << 21

#: Entries of the largest table of next channels.
MOST_NEXT = 1 << 28


class Routes:
    """Next channels towards the routers of some groups.

    Parameters
    ----------
    groups : Groups
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

    def __init__(self, groups: Groups, first: int, last: int) -> None:
        self.groups, self.first, self.last = groups, first, last
        size = last - first, groups.width, groups.count, groups.width
        self.next = np.full(size, -1, dtype=np.int32)
        self.steps = np.zeros(size, dtype=np.int16)
        self._inner = _first_hops(groups)
        self._inside()
        found = groups.bundles
        wanted = [(x >= first) & (x < last) for x in (found.low, found.high)]
        for batch in crossings(
            groups, reach(groups, "shortest"), np.flatnonzero(wanted[0] | wanted[1])
        ):
            self._between(batch, up=True)
            self._between(batch, up=False)
        if not unlinked_groups.whole(groups):
            self._around()

    def _inside(self) -> None:
        groups = self.groups
        place = np.arange(groups.width, dtype=np.int32)
        for group in range(self.first, self.last):
            to, here = place[:, None], place[None, :]
            found = self._inner.channel(np.full_like(to, group), here, to, here + to)
            self.next[group - self.first, :, group] = found
            length = groups.local.length[groups.shape[group]].T
            self.steps[group - self.first, :, group] = np.where(found >= 0, length, 0)

    def _between(self, batch: Crossing, up: bool) -> None:
        """Enter the routes of a batch of group pairs, from low to high or back."""
        source, target = (batch.low, batch.high) if up else (batch.high, batch.low)
        chosen = np.flatnonzero((target >= self.first) & (target < self.last))
        if not len(chosen):
            return
        links = _Links(self.groups, batch, chosen, up)
        place = np.arange(self.groups.width, dtype=np.int32)
        link, again = links.pick(place[None, None, :] + place[None, :, None])
        gate = links.gate.take(link)
        group = source[chosen].astype(np.int32)[:, None, None]
        local = self._inner.channel(group, place, gate, again)
        found = np.where(gate == place, links.channel.take(link), local)
        found[links.total < 0] = -1
        at = target[chosen] - self.first, slice(None), source[chosen]
        self.next[at] = found
        self.steps[at] = links.total + 1

    def _around(self) -> None:
        """Enter the routes to where no path with one global hop leads."""
        groups = self.groups
        table = self.next.reshape(-1, groups.count * groups.width)[:, groups.slot]
        goal = np.flatnonzero((groups.group >= self.first) & (groups.group < self.last))
        row = groups.slot[goal] - self.first * groups.width
        lost = (table[row] < 0) & (goal[:, None] != np.arange(groups.routers))
        place, source = np.nonzero(lost)
        if not len(place):
            return
        target = goal[place]
        channel, steps = unlinked_groups.FewestGlobalHops(groups).next_hops(target, source)
        to = groups.group[target] - self.first, groups.place[target]
        at = (*to, groups.group[source], groups.place[source])
        self.next[at] = channel
        self.steps[at] = steps

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
            unlinked_groups.refuse_apart(
                self.groups, *(int(np.flatnonzero(slot == x)[0]) for x in ends)
            )

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
                unlinked_groups.refuse_apart(groups, int(source[row]), int(target[row]))
            out[going, channels.kind[used]] += 1
            here[going] = channels.target[used]
            going = going[here[going] != target[going]]
        return out


def _first_hops(groups: Groups) -> FirstHops:
    found: FirstHops = once(
        groups.channels.machine, "network.first_hops", lambda: FirstHops(groups)
    )
    return found


class _Links:
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

    def _list(self, before: Ints, after: Ints, total: Ints, exists: NDArray[np.bool_]) -> None:
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
    each = groups.width * groups.width * groups.count
    step = groups.count if each * groups.count <= _WHOLE else max(1, _PART // max(1, each))
    for first in range(0, groups.count, step):
        yield first, min(groups.count, first + step)


def routes(groups: Groups, first: int, last: int) -> Routes:
    """Return the routes to some groups; those to all groups are made once a machine."""
    if (first, last) != (0, groups.count):
        return Routes(groups, first, last)
    machine = groups.channels.machine
    found: Routes = once(machine, "network.single", lambda: Routes(groups, first, last))
    return found


def loads(groups: Groups, demand: Demand) -> Floats:
    """Return the bytes on every channel, float64 (c,).

    Raises
    ------
    NidmapError
        Where no path joins two routers that exchange bytes.
    """
    load = np.zeros(len(groups.channels))
    arriving = demand.reversed()
    for first, last in _parts(groups):
        sent = _arriving(groups, arriving, first, last)
        if sent.any():
            load += routes(groups, first, last).loads(sent)
    return np.maximum(load, 0)


def _arriving(groups: Groups, arriving: Demand, first: int, last: int) -> Floats:
    """Return the bytes to all positions of some groups, float64 (h * q, routers)."""
    goal = np.flatnonzero((groups.group >= first) & (groups.group < last))
    low, high = int(goal[0]), int(goal[-1]) + 1
    table = arriving.table(low, high)
    row = groups.slot[goal] - first * groups.width
    if len(row) == len(table) == (last - first) * groups.width and (np.diff(row) == 1).all():
        return table
    sent = np.zeros(((last - first) * groups.width, groups.routers))
    sent[row] = table[goal - low]
    return sent


def hops(groups: Groups, source: Ints, target: Ints) -> Floats:
    """Return the channels of each class on the way between routers, float64 (m, classes).

    Raises
    ------
    NidmapError
        Where no path joins two of them.
    """
    out = np.zeros((len(source), len(groups.channels.kinds)))
    goal = groups.group[target]
    for first, last in _parts(groups):
        rows = np.flatnonzero((goal >= first) & (goal < last))
        if len(rows):
            out[rows] = routes(groups, first, last).walked(source[rows], target[rows])
    return out


def next_channel(groups: Groups, machine: Machine) -> NDArray[np.int32]:
    """Return the channel by which a router forwards to a node, int32 (routers, nodes).

    Raises
    ------
    UsageError
        Where the table would be too large.
    """
    entries = groups.routers * len(machine)
    if entries > MOST_NEXT:
        raise UsageError(
            f"a table of {groups.routers} routers by {len(machine)} nodes is too large",
            f"at most {MOST_NEXT} entries are possible",
        )
    out = np.full((groups.routers, len(machine)), -1, dtype=np.int32)
    own = machine.router[:, 0].astype(np.int64)
    for first, last in _parts(groups):
        rows = np.flatnonzero(
            (own >= 0) & (groups.group[own] >= first) & (groups.group[own] < last)
        )
        found = routes(groups, first, last)
        table = found.next[groups.group[own[rows]] - first, groups.place[own[rows]]]
        out[:, rows] = table[:, groups.group, groups.place].T
    for column in machine.router.T:
        rows = np.flatnonzero(column >= 0)
        out[column[rows], rows] = -1
    return out
