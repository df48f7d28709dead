# SPDX-License-Identifier: Apache-2.0
"""Shortest paths between arbitrarily connected routers: the search that all modules share.

The network is a graph of states. Where switches are in layers (a fat tree
with cables missing) a path climbs first and then only descends, so that
routes cannot deadlock: each switch is two states, one that may still climb
and one that may not. Where they do not, any path will do and each is one.

A hop costs 1, and links between the groups of a dragonfly cost more than any
path inside groups: so its shortest paths have the fewest such links first
and the fewest hops second. All hops are made from many destinations at
once, distance by distance. Traffic is split equally over all shortest paths,
parallel links counted one by one; ``single`` takes one next hop a destination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network.channel_loads import Channels
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.rails import no_path
from nidmap.placement.support.array_types import Floats, Ints, Ints32
from nidmap.placement.support.arrays import add_by_key

#: Cost of a link between groups: more hops than any path inside groups has.
BETWEEN_GROUPS = 1 << 13

#: The distance to where no path leads.
UNREACHED = 1 << 30

#: Numbers of one table of steps by destinations.
_TABLE = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class StateGraph:
    """Steps from state to state, sorted by source (e rows)."""

    machine: Machine  # for the names in errors
    routers: int  # state i < routers is router i that may still climb
    states: int
    channel: Ints  # (e,), channel of each step
    # source, target: (e,), states
    source: Ints
    target: Ints
    kind: Ints  # (e,), class of the channel
    count: Floats  # (e,), parallel links of the channel
    cost: Ints32  # (e,)

    @property
    def climbs(self) -> bool:
        """Whether paths climb first and then descend."""
        return self.states > self.routers

    @property
    def starts(self) -> Ints:
        """The first step of each state that has one."""
        return np.flatnonzero(np.diff(self.source, prepend=-1))

    @property
    def batch(self) -> int:
        """Number of destinations processed together."""
        return max(1, _TABLE // max(1, len(self.source), self.states))


def graph_of(
    channels: Channels,
    routers: int,
    *,
    level: Ints | None = None,
    count: Floats | None = None,
    cost: Ints | None = None,
    order: Ints | None = None,
) -> StateGraph:
    """Return the graph of channels.

    `level` (routers,): of each router, 1 at the leaves, where paths climb first and then descend;
    None where any path will do. `count` (c,): how many ways each channel is; None means its
    parallel links. `cost` (c,): of a hop over each channel; None means 1. `order` (c,): in which
    order `chosen_channels` takes the hops from one router; None means that of the channels.
    """
    rows = np.arange(len(channels)) if order is None else np.argsort(order, kind="stable")
    source, target = (x[rows].astype(np.int64) for x in (channels.source, channels.target))
    states = routers
    if level is not None:
        # Two copies of each router, i that may still climb and i + routers that only descends: up
        # steps stay in the first copy, down steps lead to the second and from it.
        climbs = level[target] > level[source]
        rows = np.concatenate([rows, rows[~climbs]])
        begin = np.concatenate([source, source[~climbs] + routers])
        last = np.where(climbs, target, target + routers)
        source, target = begin, np.concatenate([last, target[~climbs] + routers])
        states = 2 * routers
    by_source = np.argsort(source, kind="stable")
    rows = rows[by_source]
    ways = channels.count.astype(np.float64) if count is None else count
    costs = np.ones(len(channels)) if cost is None else cost
    kind = channels.kind[rows].astype(np.int64)
    ends = source[by_source], target[by_source]
    return StateGraph(
        channels.machine,
        routers,
        states,
        rows,
        *ends,
        kind,
        ways[rows],
        costs[rows].astype(np.int32),
    )


def distances(graph: StateGraph, targets: Ints) -> Ints32:
    """Return the cost from every state to each target, `UNREACHED` if there is no path.

    Returns (states, targets).
    """
    far = np.full((graph.states, len(targets)), UNREACHED, dtype=np.int32)
    for copy in range(0, graph.states, max(1, graph.routers)):
        far[targets + copy, np.arange(len(targets))] = 0
    hops = []
    # Steps grouped by cost, so that each group is one reduction over all states and targets.
    for cost in np.unique(graph.cost).tolist():
        rows = np.flatnonzero(graph.cost == cost)
        first = np.flatnonzero(np.diff(graph.source[rows], prepend=-1))
        hops.append((cost, graph.target[rows], first, graph.source[rows[first]]))
    waiting = {0}
    while waiting:
        # Dial's buckets in place of a heap: costs are few whole numbers, and all states at one
        # distance are settled together.
        least = min(waiting)
        waiting.remove(least)
        here = far == least
        for cost, target, first, states in hops:
            reached = np.logical_or.reduceat(here[target], first, axis=0)
            nearer = reached & (far[states] > least + cost)
            if nearer.any():
                far[states] = np.where(nearer, least + cost, far[states])
                waiting.add(least + cost)
    return far


class _Search:
    """The shortest paths from every state to some targets."""

    def __init__(self, graph: StateGraph, targets: Ints) -> None:
        self.graph, self.targets = graph, targets
        self.far = distances(graph, targets)  # (states, targets)
        far, into = self.far[graph.source], self.far[graph.target] + graph.cost[:, None]
        # A step is on a shortest path where d(source) = cost + d(target).
        nearer = (far == into) & (far < UNREACHED)
        ways = np.where(nearer, graph.count[:, None], 0.0)
        # (states, targets), how many there are
        self.paths: Floats = (self.far == 0).astype(np.float64)
        self._ascend(self.paths, lambda: self.paths[graph.target] * ways)
        # (e, targets), what each step has of what leaves its state for a target
        # Of the paths from a state, the share that begins with a step: count * paths(target) /
        # paths(source). All shortest paths carry equally much.
        self.share = self.paths[graph.target] * ways / np.maximum(self.paths[graph.source], 1.0)

    def _levels(self) -> list[int]:
        """Return the distinct distances above 0, ascending."""
        distance = np.unique(self.far)
        return [int(x) for x in distance[(distance > 0) & (distance < UNREACHED)]]

    def _ascend(self, table: Floats, terms: Callable[[], Floats]) -> None:
        """Fill a table in order of distance, summing over the steps from each state."""
        first = self.graph.starts
        states = self.graph.source[first]
        # Nearest states first: the terms of a state's value are strictly nearer to the target.
        for level in self._levels():
            total = np.add.reduceat(terms(), first, axis=0)
            table[states] = np.where(self.far[states] == level, total, table[states])

    def refuse_lost(self, source: Ints, column: Ints) -> None:
        """Raise if there is no path from routers to targets, element by element."""
        lost = self.far[source, column] == UNREACHED
        if lost.any():
            row = int(np.argmax(lost))
            ends = int(source[row]), int(self.targets[column[row]])
            raise no_path(self.graph.machine, *ends)

    def carried(self, flow: Floats, channels: int) -> Floats:
        """Return the loads if every state splits its bytes over its shortest paths."""
        graph, out = self.graph, np.zeros(channels)
        by_target = np.argsort(graph.target, kind="stable")
        first = np.flatnonzero(np.diff(graph.target[by_target], prepend=-1))
        states = graph.target[by_target][first]
        # Farthest states first: everything that will pass a state has arrived before it is passed
        # on.
        for level in reversed(self._levels()):
            moved = np.where(self.far == level, flow, 0.0)[graph.source] * self.share
            out += add_by_key(graph.channel, moved.sum(axis=1), channels)
            flow[states] += np.add.reduceat(moved[by_target], first, axis=0)
        return out

    def hops(self, kind: int) -> Floats:
        """Return the expected steps of a class from every state, float64 (states, targets)."""
        graph = self.graph
        out = np.zeros(self.far.shape)
        of_kind = (graph.kind == kind)[:, None]
        self._ascend(out, lambda: self.share * (out[graph.target] + of_kind))
        return out


def _by_target(graph: StateGraph, target: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield batches of distinct targets, the rows for them, and each row's target."""
    once, place = np.unique(target, return_inverse=True)
    for low in range(0, len(once), graph.batch):
        rows = np.flatnonzero((place >= low) & (place < low + graph.batch))
        yield once[low : low + graph.batch], rows, place[rows] - low


def pair_loads(
    graph: StateGraph, source: Ints, target: Ints, amount: Floats, channels: int
) -> Floats:
    """Return the bytes on every channel if pairs split over all shortest paths.

    `source`, `target` (m,): routers. `amount` (m,). `channels`: how many there are.
    """
    out = np.zeros(channels)
    for some, rows, column in _by_target(graph, target):
        search = _Search(graph, some)
        search.refuse_lost(source[rows], column)
        key = source[rows] * len(some) + column
        flow = add_by_key(key, amount[rows], graph.states * len(some)).reshape(graph.states, -1)
        out += search.carried(flow, channels)
    return out


def loads(graph: StateGraph, demand: Demand, channels: int) -> Floats:
    """Return the same loads for an entire demand."""
    out = np.zeros(channels)
    for target, source, amount in demand.reversed().blocks():
        out += pair_loads(graph, source, target, amount, channels)
    return out


def mean_hops(graph: StateGraph, source: Ints, target: Ints, kinds: int) -> Floats:
    """Return the expected channels of each class on the shortest paths, float64 (m, kinds)."""
    out = np.zeros((len(source), kinds))
    for some, rows, column in _by_target(graph, target):
        search = _Search(graph, some)
        search.refuse_lost(source[rows], column)
        for kind in range(kinds):
            out[rows, kind] = search.hops(kind)[source[rows], column]
    return out


def chosen_channels(graph: StateGraph, target: Ints, turn: Ints) -> Ints:
    """Return the one channel by which each router forwards to each target.

    `target` (m,): routers. `turn` (routers, m): number ``turn`` mod n of the n hops to the
    neighbours nearest to the target (as ones that may still climb) is taken. Returns (routers,
    m): -1 at the target, and where no path leads there.
    """
    out = np.full((graph.routers, len(target)), -1, dtype=np.int64)
    last = int(np.searchsorted(graph.source, graph.routers))
    if not last:
        return out
    source, ahead = graph.source[:last], graph.target[:last] % graph.routers
    first = np.flatnonzero(np.diff(source, prepend=-1))
    for some, rows, column in _by_target(graph, target):
        near = distances(graph, some)[: graph.routers]
        length = near[ahead] + graph.cost[:last, None]
        least = np.repeat(
            np.minimum.reduceat(length, first, axis=0), np.diff(first, append=last), 0
        )
        nearer = (near[ahead] < near[source]) & (near[source] < UNREACHED)
        hop, goal = np.nonzero(nearer & (length == least))
        key = source[hop] * len(some) + goal
        listed = graph.channel[hop[np.argsort(key, kind="stable")]]
        choices = np.bincount(key, minlength=near.size).reshape(near.shape)
        start = (np.cumsum(choices) - choices.ravel()).reshape(near.shape)
        place = start[:, column] + turn[:, rows] % np.maximum(choices[:, column], 1)
        if len(listed):
            channel = listed[np.minimum(place, len(listed) - 1)]
            out[:, rows] = np.where(choices[:, column] > 0, channel, -1)
    return out


def follow_messages(
    channels: Channels, table: Ints | Ints32, router: Ints, column: Ints
) -> tuple[Ints, Ints, Ints]:
    """Follow messages from router to router by a table of next channels.

    `table` (routers, m): channel from each router towards each target, -1 where nothing goes on.
    `router`, `column` (k,): where each message starts, and its column of the table. Returns
    `message, channel` (z,): each hop: first those of all messages from where they start, then
    their second ones. Returns `last` (k,): router at which each message ends.
    """
    message, last = np.arange(len(router)), router.astype(np.int64)
    hops = [(message[:0], message[:0])]
    while len(message):
        channel = table[last[message], column[message]].astype(np.int64)
        message, channel = message[channel >= 0], channel[channel >= 0]
        hops.append((message, channel))
        last[message] = channels.target[channel]
    message, channel = (np.concatenate(columns) for columns in zip(*hops, strict=True))
    return message, channel, last


def refuse_lost(machine: Machine, last: Ints, target: Ints) -> None:
    """Raise NidmapError if a message has ended at a router other than its target."""
    lost = np.flatnonzero(last != target)
    if len(lost):
        raise no_path(machine, int(last[lost[0]]), int(target[lost[0]]))
