# SPDX-License-Identifier: Apache-2.0
"""Distances between nodes, from which J is computed, and the blocks that nodes share.

What a distance is depends on the network; it is 0 only inside a node:

============  ==================================================================
network       distance of two different nodes
============  ==================================================================
tree          the machine's ``dist`` of the level at which the nodes part
fat tree      the level at which they part: 1 below one leaf, 2 below one
              switch of the next level, …
dragonfly     router-to-router links on a minimal path, plus 1: 1 on one
              router (an Aries blade), 2 on two that are linked (one chassis,
              one slot of a group), 3 elsewhere in a group, 2 to 6 between
              groups, by the real links: at most one between groups where the
              groups are joined at all
torus         hops with wrap-around; 1/2 on one router (the two nodes of a
              Gemini), which no hop separates but a network interface does
no machine    1
============  ==================================================================

Every network has *blocks* too, nested sets of nodes (blade, chassis, group,
…): what a tree of switches is, and what an order may walk from the outside in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.errors import NidmapError
from nidmap.placement.machine import Machine, once
from nidmap.placement.network import shortest_paths
from nidmap.placement.network.groups import Groups, groups_of
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Array, Floats, Ints
from nidmap.placement.support.arrays import count_distinct, ragged_ranges

Lengths = NDArray[np.uint8]
Sums = NDArray[np.uint16]

#: Distance of two nodes on one torus router.
ONE_ROUTER = 0.5

#: Routers whose distances to each other are kept in a table (150 MB) at most.
MOST_TABLED = 12288

#: Pairs of routers that are processed together; each has the links of its groups.
_PAIRS = 1 << 16

#: Number of links if there is no path.
UNREACHED = 254

#: Links that are assumed to a node whose router is unknown: one more than the longest path.
LOST = 6


class Distance(ABC):
    """Distances between the nodes of a machine, or of a job.

    `blocks` (n, k): nested blocks of each node, innermost first: numbers that two nodes share
    when they are in one block. The last column is the whole machine. `names`: what a block of
    each column is called (``blade``, …, ``system``). `level_distance` (k + 1,): distance of nodes
    by the level at which they meet (see `level`): 0 inside a node first. Where the distance is
    more than the level says (`exact` False), the least there is.
    """

    exact = False  # True where the level alone decides the distance
    coords: Ints | None = None  # (n, d), router coordinates of the nodes on a torus; None elsewhere
    extents: tuple[int, ...] = ()  # extents of the torus; empty elsewhere

    def __init__(self, blocks: Ints, names: tuple[str, ...], level_distance: Floats) -> None:
        self.blocks = blocks
        self.names = names
        self.level_distance = level_distance

    def __len__(self) -> int:
        return len(self.blocks)

    @abstractmethod
    def between(self, a: Ints, b: Ints) -> Floats:
        """Return the distance between nodes `a` and `b`, element by element.

        `a`, `b`: nodes as indices of this object.
        """

    @abstractmethod
    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the links between routers on a minimal path, element by element."""

    @abstractmethod
    def take(self, nodes: Ints) -> Distance:
        """Return the distances between the nodes at these indices only, in this order."""

    def level(self, a: Ints, b: Ints) -> Ints:
        """Return the level at which nodes meet: 0 same node, 1 same innermost block, … k."""
        a, b = np.broadcast_arrays(np.asarray(a), np.asarray(b))
        met = (a != b).astype(np.int64)
        for column in self.blocks.T[:-1]:
            met += column[a] != column[b]
        return np.asarray(met)

    def from_hops(self, hops: float, by_level: Floats) -> float:
        """Compute J from weight times hops and the weight by level (`level`)."""
        return float(by_level @ self.level_distance)

    def rows(self) -> Iterator[Floats]:
        """Yield each node's distances to all nodes, float64 (n,)."""
        nodes = np.arange(len(self))
        return (self.between(np.full(len(self), node), nodes) for node in nodes)

    def matrix(self) -> Floats:
        """Return all distances, float64 (n, n)."""
        return np.stack(list(self.rows()))


class Levels(Distance):
    """Distances determined by blocks: trees, fat trees, and nodes without a machine."""

    exact = True

    def between(self, a: Ints, b: Ints) -> Floats:
        """Return the distance of the level at which the nodes meet."""
        return self.level_distance[self.level(a, b)]

    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the links between switches, up to the lowest common one and down."""
        return np.maximum(2 * (self.level(a, b) - 1), 0)

    def take(self, nodes: Ints) -> Levels:
        """Return the distances between these nodes only."""
        return Levels(self.blocks[nodes], self.names, self.level_distance)


class TorusDistance(Distance):
    """Hops on a torus, the shorter way round each axis.

    `router` (n,): a number that only the nodes of one router share.
    """

    coords: Ints  # (n, d)

    def __init__(self, coords: Ints, extents: tuple[int, ...], router: Ints) -> None:
        blocks = np.column_stack([router, np.zeros_like(router)])
        super().__init__(blocks, ("router", "system"), np.array([0, ONE_ROUTER, 1]))
        self.coords = coords
        self.extents = extents

    def between(self, a: Ints, b: Ints) -> Floats:
        """Return the hops, or 1/2 between two nodes of the same router."""
        hops = self.hops(a, b).astype(np.float64)
        return np.where((hops == 0) & (np.asarray(a) != np.asarray(b)), ONE_ROUTER, hops)

    def from_hops(self, hops: float, by_level: Floats) -> float:
        """Compute J: the hops, and 1/2 for what stays on a router but leaves its node."""
        return hops + ONE_ROUTER * float(by_level[1])

    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the hops the shorter way round each axis."""
        apart = (np.abs(column[a] - column[b]) for column in self.coords.T)
        hops = (np.minimum(x, e - x) for x, e in zip(apart, self.extents, strict=True))
        return np.asarray(sum(hops), dtype=np.int64)

    def take(self, nodes: Ints) -> TorusDistance:
        """Return the distances between these nodes only."""
        return TorusDistance(self.coords[nodes], self.extents, self.blocks[nodes, 0])


class Routers(Distance):
    """Links on a minimal path of a dragonfly, plus 1 between different nodes.

    `router` (n,): router of each node as an index of the machine's routers; -1: unknown. `paths`:
    between the machine's routers.
    """

    def __init__(self, blocks: Ints, names: tuple[str, ...], router: Ints, paths: Paths) -> None:
        super().__init__(blocks, names, np.minimum(np.arange(len(names) + 1.0), 2))
        self.router = router
        self.paths = paths
        self._table: tuple[Ints, Array] | None = None

    def between(self, a: Ints, b: Ints) -> Floats:
        """Return the links on a minimal path, plus 1 between different nodes."""
        apart = np.asarray(a) != np.asarray(b)
        return np.asarray(self.hops(a, b) + apart, dtype=np.float64)

    def from_hops(self, hops: float, by_level: Floats) -> float:
        """Compute J: the hops, and 1 for whatever leaves a node."""
        return hops + float(by_level[1:].sum())

    def hops(self, a: Ints, b: Ints) -> Ints:
        """Return the links on a minimal path."""
        a, b = np.broadcast_arrays(np.asarray(a), np.asarray(b))
        tabled = self._tabled()
        if tabled is not None:
            place, table = tabled
            return np.where(a == b, 0, table[place[a], place[b]]).astype(np.int64)
        links = self.paths.pairs(self.router[a], self.router[b])
        lost = (links == UNREACHED) | (self.router[a] < 0) | (self.router[b] < 0)
        return np.where(a == b, 0, np.where(lost, LOST, links))

    def _tabled(self) -> tuple[Ints, Array] | None:
        """Return each node's index in a table of path lengths, and the table; None if too large."""
        if self._table is None:
            once, place = np.unique(self.router, return_inverse=True)
            if len(once) > MOST_TABLED:
                return None
            table = self.paths.lengths(once, once)
            table[table == UNREACHED] = LOST
            lost = once < 0
            table[lost] = table[:, lost] = LOST
            self._table = place, table
        return self._table

    def take(self, nodes: Ints) -> Routers:
        """Return the distances between these nodes only."""
        return Routers(self.blocks[nodes], self.names, self.router[nodes], self.paths)


class Paths:
    """Path lengths between the routers of a dragonfly.

    A minimal route takes links inside the first group, one link to the other
    group, and links inside that one. Where two groups have no link of their own,
    any shortest path counts.
    """

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self._inside = np.minimum(groups.local.length, UNREACHED).astype(np.uint16)

    def lengths(self, sources: Ints, targets: Ints | None = None) -> Lengths:
        """Return the links on a minimal path from each source to some routers.

        `sources` (s,): router indices; -1 is a router that nothing is known of. `targets` (t,):
        the same; None means every router. Returns (s, t): `UNREACHED` where there is no path.
        """
        groups, place = self.groups, self.groups.place
        if targets is None:
            targets = np.arange(groups.routers)
        out = np.full((len(sources), len(targets)), UNREACHED, dtype=np.uint8)
        home, goal = (np.where(end >= 0, groups.group[end], -1) for end in (sources, targets))
        columns = {h: np.flatnonzero(goal == h) for h in np.unique(goal[goal >= 0]).tolist()}
        for g in np.unique(home[home >= 0]).tolist():
            rows = np.flatnonzero(home == g)
            local = self._inside[groups.wiring[g]][place[sources[rows]]]
            for h, column in columns.items():
                spot = place[targets[column]]
                if h == g:
                    out[np.ix_(rows, column)] = local[:, spot]
                elif groups.linked[g, h]:
                    out[np.ix_(rows, column)] = self._over_best_link(local, g, h, spot)
        lost = np.flatnonzero((out[:, goal >= 0] == UNREACHED).any(axis=1) & (home >= 0))
        if len(lost):
            graph = shortest_paths.graph_of(groups.channels, groups.routers)
            for low in range(0, len(lost), graph.batch):
                rows = lost[low : low + graph.batch]
                any_path = shortest_paths.distances(graph, sources[rows]).T[:, targets]
                known = out[rows]
                out[rows] = np.where(known == UNREACHED, np.minimum(any_path, UNREACHED), known)
        return out

    def _over_best_link(self, local: Sums, g: int, h: int, spot: Ints) -> Sums:
        """Return the path length between groups over the best link, for routers of both.

        `local` (s, positions): links from each router to every position of its group. `g`, `h`:
        the groups. `spot` (t,): positions in the other group.
        """
        groups, pair = self.groups, g * self.groups.count + h
        first, last = np.searchsorted(groups.pair, [pair, pair + 1])
        links = groups.between[first:last]
        here, there = (
            groups.place[ends[links]] for ends in (groups.channels.source, groups.channels.target)
        )
        onward = self._inside[groups.wiring[h]][:, spot]
        best = np.full((len(local), onward.shape[1]), UNREACHED, dtype=np.uint16)
        for begin, end in zip(here.tolist(), there.tolist(), strict=True):
            np.minimum(best, local[:, begin, None] + onward[end] + 1, out=best)
        return best

    def pairs(self, a: Ints, b: Ints) -> Ints:
        """Return the links on a minimal path from each of `a` to its partner in `b`."""
        left, right = a.reshape(-1), b.reshape(-1)
        if 4 * len(left) > count_distinct(left) * count_distinct(right):
            return self._pairs_of_table(left, right).reshape(a.shape)
        out = np.full(len(left), UNREACHED, dtype=np.int64)
        for low in range(0, len(left), _PAIRS):
            some = slice(low, low + _PAIRS)
            out[some] = self._over_own_links(left[some], right[some])
        lost = np.flatnonzero((out == UNREACHED) & (left >= 0) & (right >= 0))
        if len(lost):  # no link of their groups joins them
            out[lost] = self._pairs_of_table(left[lost], right[lost])
        return out.reshape(a.shape)

    def _over_own_links(self, a: Ints, b: Ints) -> Ints:
        """Return the path length between partners in one group, or over one of their own links."""
        groups, place = self.groups, self.groups.place
        g, h = groups.group[a], groups.group[b]
        known = (a >= 0) & (b >= 0)
        out = np.full(len(a), UNREACHED, dtype=np.int64)
        same = np.flatnonzero(known & (g == h))
        out[same] = self._inside[groups.wiring[g[same]], place[a[same]], place[b[same]]]
        apart = np.flatnonzero(known & (g != h) & groups.linked[g, h])
        if not len(apart):
            return out
        pair = g[apart] * groups.count + h[apart]
        first, last = (np.searchsorted(groups.pair, pair + k) for k in (0, 1))
        which, at = ragged_ranges(first, last - first)
        row, links = apart[which], groups.between[at]
        here, there = place[groups.channels.source[links]], place[groups.channels.target[links]]
        length = self._inside[groups.wiring[g[row]], place[a[row]], here].astype(np.int64)
        length += self._inside[groups.wiring[h[row]], there, place[b[row]]] + 1
        begins = np.flatnonzero(np.diff(which, prepend=-1))
        out[apart] = np.minimum(np.minimum.reduceat(length, begins), UNREACHED)
        return out

    def _pairs_of_table(self, left: Ints, right: Ints) -> Ints:
        """Return the same as `pairs`, looked up in tables of all sources and targets."""
        out = np.empty(len(left), dtype=np.int64)
        by_source = np.argsort(left, kind="stable")
        once, starts = np.unique(left[by_source], return_index=True)
        goals, column = np.unique(right, return_inverse=True)
        ends = np.append(starts[1:], len(left))
        for low in range(0, len(once), 1024):
            table = self.lengths(once[low : low + 1024], goals)
            chosen = by_source[starts[low] : ends[min(low + 1024, len(once)) - 1]]
            out[chosen] = table[np.searchsorted(once, left[chosen]) - low, column[chosen]]
        return out


@once
def machine_distance(machine: Machine) -> Distance:
    """Return the distances between all nodes of a machine (indices are its rows).

    Hops on a torus, links on a dragonfly whose links are known, else levels: as the machine
    states them, else the number of the level itself.

    It is made once per machine.
    """
    depth = machine.topology.router_levels
    coords = machine.coords[:, :depth].astype(np.int64)
    nested = _nested_prefixes(coords)
    if machine.topology.kind == "torus":
        return TorusDistance(coords, machine.topology.extents[:depth], nested[:, 0])
    blocks = np.concatenate([nested, np.zeros((len(machine), 1), dtype=np.int64)], axis=1)
    names = (*reversed(machine.topology.levels[:depth]), "system")
    far = np.arange(len(names) + 1, dtype=np.float64)
    if machine.topology.kind.startswith("dragonfly"):
        try:
            paths = Paths(groups_of(machine))
        except NidmapError:  # no rule can create such links: only the levels remain
            return Levels(blocks, names, far)
        return Routers(blocks, names, machine.router[:, 0].astype(np.int64), paths)
    stated = tuple(machine.topology.parameters.get("dist", ()))[: len(names)]
    far[1 : len(stated) + 1] = stated
    return Levels(blocks, names, far)


def job_distance(placement: Placement) -> Distance:
    """Return the distances between the nodes of a job (indices are positions in ``names``).

    Where only the nodes' names are known, all are 1 apart.
    """
    if placement.machine is None:
        flat = np.zeros((len(placement.counts), 1), dtype=np.int64)
        return Levels(flat, ("system",), np.array([0.0, 1.0]))
    return machine_distance(placement.machine).take(placement.rows)


def _nested_prefixes(coords: Ints) -> Ints:
    """Return one number per node for each prefix of its coordinates, longest first.

    A node without a coordinate is in no block with any other.
    """
    n, depth = coords.shape
    out = np.zeros((n, depth), dtype=np.int64)
    above = np.zeros(n, dtype=np.int64)
    lost = (coords < 0).any(axis=1)
    for k in range(depth):
        key = above * (int(coords[:, k].max(initial=0)) + 2) + coords[:, k] + 1
        key[lost] = -1 - np.flatnonzero(lost)
        above = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
        out[:, depth - 1 - k] = above
    return out
