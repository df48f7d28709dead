# SPDX-License-Identifier: Apache-2.0
"""A dragonfly as seen by its routings: groups of routers, and the links between groups.

A group that is not in one piece (a router has lost all its links to the others) counts as
several: here a group is such a piece. Inside a group a bundle (black) is one path; links
between groups count one by one, also where several join the same two routers, and so do the
cables of a DragonFly+, from leaf to spine too.

Between groups that neither a link nor a third group joins traffic takes the fewest links
between groups, and of these paths all the shortest (`nidmap.placement.network.shortest_paths`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine, once
from nidmap.placement.network import shortest_paths
from nidmap.placement.network.channel_loads import Channels, from_links, has_spines
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.local_paths import UNREACHED, LocalPaths
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import (
    add_by_key,
    connected_components,
    product,
    ragged_ranges,
    rank_within,
)
from nidmap.placement.topologies import router_coords

#: Maximum numbers of router pairs inside one group, and of pairs of groups.
MOST_INSIDE, MOST_BETWEEN = 50_000_000, 25_000_000


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of routers, padded to the size of the largest."""

    channels: Channels
    # count, width: groups, and routers of the machine's largest one
    count: int
    width: int
    named: int  # groups of the machine: fewer than `count` where some are in several pieces
    # group, place: (r,), group of each router (0 … count-1), and its position in the machine's
    # group
    group: Ints
    place: Ints
    wiring: Ints  # (count,), wiring number of each group; equally wired groups share one
    local: LocalPaths
    inside: Ints  # (x,), channels inside groups
    lane: Ints  # (x,), where each of them is in tables (groups, positions, lanes), flat
    # (x,), paths over each of them: 1, but for parallel blue links inside a group and for cables of
    # a DragonFly+
    paths: Floats
    between: Ints  # (y,), channels between groups, by their pair
    pair: Ints  # (y,), ordered pair of groups of each, g · count + h, ascending
    share: Floats  # (y,), of its pair's bytes
    gate: Ints  # (y,), position in the first group of the pair of each of them
    pair_links: Floats  # (count, count), links from one group to another

    @property
    def routers(self) -> int:
        """Number of the machine's routers."""
        return len(self.group)

    @property
    def lanes(self) -> tuple[int, int, int]:
        """The shape of tables of all channels within groups."""
        return self.count, self.width, self.local.lanes

    def gates(self, units: Ints, others: Ints) -> Floats:
        """Return the share of the links between groups at each position, (u, v, positions).

        `units`, `others` (u,): groups that the links leave, and groups that they lead to.
        """
        size = len(units) * len(others) * self.width
        pairs = (units[:, None] * self.count + others).ravel()
        first, last = (np.searchsorted(self.pair, pairs, side) for side in ("left", "right"))
        spot, link = ragged_ranges(first, last - first)
        table = add_by_key(spot * self.width + self.gate[link], self.share[link], size)
        return table.reshape(len(units), len(others), self.width)

    @cached_property
    def joins(self) -> Floats:
        """Weight of groups as third groups to each other, float64 (count, count).

        The root of their links, of most: a third group gets bytes as links lead to it and on.
        """
        return np.asarray(np.sqrt(self.pair_links / max(1.0, self.pair_links.max(initial=0.0))))

    @cached_property
    def linked(self) -> Mask:
        """Whether a link joins two groups, bool (count, count); False on the diagonal."""
        return np.asarray(self.pair_links > 0)

    @cached_property
    def third_share(self) -> Floats:
        """Share of the bytes from g to h of a third group of weight 1, float64 (count, count).

        0 where no group is linked to both.
        """
        if self.complete:
            thirds = np.full((self.count, self.count), self.count - 2.0)
        else:
            thirds = product(self.joins, self.joins)
        np.fill_diagonal(thirds, 0)
        return np.asarray(np.divide(1.0, thirds, out=np.zeros_like(thirds), where=thirds > 0))

    @cached_property
    def valiant(self) -> Mask:
        """Whether a third group is linked to both, bool (count, count)."""
        return np.asarray(self.third_share > 0)

    @cached_property
    def same(self) -> Mask:
        """Whether two groups are the same, bool (count, count)."""
        return np.eye(self.count, dtype=bool)

    @cached_property
    def complete(self) -> bool:
        """Whether every two groups are joined by equally many links."""
        return bool(((self.joins == 1) | self.same).all())

    @cached_property
    def lines(self) -> Ints:
        """Row and column of each position of the groups of an Aries, int64 (count, width, 2).

        Numbered from 1, the columns after the rows; elsewhere (…, 0).
        """
        coords = router_coords(self.channels.machine)[:, 1:].astype(np.int64)
        if coords.shape[1] < 2:
            return np.zeros((self.count, self.width, 0), dtype=np.int64)
        table = np.zeros((self.count, self.width, coords.shape[1]), dtype=np.int64)
        sides = coords.max(axis=0) + 1
        table[self.group, self.place] = coords + 1 + np.cumsum(sides) - sides
        return table

    def detours(self, units: Ints) -> tuple[Ints, Floats]:
        """Return the routers via which detours between two routers of the same group lead.

        Those of the row or column that both are in, where it has others, else all of the group;
        none on a DragonFly+, whose shortest paths take every spine already. Returns the line of
        each pair (0: the group), int64 (units, positions, positions), and the share of its bytes
        that each of the others gets, float64; 0 where there is none.
        """
        joined = self.local.length[self.wiring[units]] < UNREACHED
        line, others = np.zeros(joined.shape, dtype=np.int64), joined.sum(axis=2)[:, :, None] - 2
        others = np.where(joined, others, 0)
        for number in np.moveaxis(self.lines[units], -1, 0):
            same = joined & (number[:, :, None] == number[:, None, :])
            count = np.where(same, same.sum(axis=2)[:, :, None] - 2, 0)
            line = np.where(count > 0, number[:, :, None], line)
            others = np.where(count > 0, count, others)
        usable = (others > 0) & ~np.eye(self.width, dtype=bool)
        usable &= not has_spines(self.channels.machine)
        share: Floats = np.divide(1.0, others, out=np.zeros(joined.shape), where=usable)
        return np.where(usable, line, 0), share

    @cached_property
    def graph(self) -> shortest_paths.StateGraph:
        """The routers as a graph that minimises links between groups first, then hops."""
        channels = self.channels
        cost = np.full(len(channels), shortest_paths.BETWEEN_GROUPS)
        cost[self.inside] = 1
        count = channels.count.astype(np.float64)
        count[self.inside] = self.paths
        order = channels.kind * np.int64(self.width) + self.place[channels.target]
        return shortest_paths.graph_of(channels, self.routers, count=count, cost=cost, order=order)

    def table(self, of_channels: Floats) -> Floats:
        """Return a property of all channels within groups, (groups, positions, lanes)."""
        size = int(np.prod(self.lanes))
        return add_by_key(self.lane, self.paths * of_channels[self.inside], size).reshape(
            self.lanes
        )

    def far_loads(self, demand: Demand, apart: Mask) -> Floats:
        """Return the loads of a demand between groups over the fewest links, float64 (c,).

        `apart` (count, count): the pairs of groups whose bytes count.
        """
        out = np.zeros(len(self.channels))
        for source, target, amount in demand.blocks():
            far = np.flatnonzero(apart[self.group[source], self.group[target]])
            ends = source[far], target[far]
            out += shortest_paths.pair_loads(self.graph, *ends, amount[far], len(out))
        return out


@once
def groups_of(machine: Machine) -> Groups:
    """Return the groups of a dragonfly, cached with the machine."""
    channels = from_links(machine)
    _, label = np.unique(router_coords(machine)[:, 0], return_inverse=True)
    source, target = channels.source.astype(np.int64), channels.target.astype(np.int64)
    near = label[source] == label[target]
    piece = connected_components(len(label), source[near], target[near])
    _, group = np.unique(label * len(label) + piece, return_inverse=True)
    place = rank_within(label)
    count, width = int(group.max(initial=-1)) + 1, int(place.max(initial=-1)) + 1
    _refuse_large(count, width)
    inside, between = np.flatnonzero(near), np.flatnonzero(~near)
    paths = _count_paths(channels, inside)
    spot = (group * width + place)[source[inside]] * width + place[target[inside]]
    wiring, local = _tell_wirings(channels, inside, spot, paths, (count, width))
    at, to = np.divmod(spot, width)
    pair = group[source[between]] * count + group[target[between]]
    order = np.argsort(pair, kind="stable")
    between, pair = between[order], pair[order]
    links = channels.count[between].astype(np.float64)
    pair_links = add_by_key(pair, links, count * count)
    share = links / pair_links[pair]
    return Groups(
        channels=channels,
        count=count,
        width=width,
        named=int(label.max(initial=-1)) + 1,
        group=group,
        place=place,
        wiring=wiring,
        local=local,
        inside=inside,
        lane=at * local.lanes + local.lane[wiring[at // width], at % width, to],
        paths=paths,
        between=between,
        pair=pair,
        share=share,
        gate=place[source[between]],
        pair_links=pair_links.reshape(count, count),
    )


def _refuse_large(count: int, width: int) -> None:
    if width * width > MOST_INSIDE or count * count > MOST_BETWEEN:
        raise UsageError(
            f"{count} groups of up to {width} routers are too many to route",
            f"at most {MOST_INSIDE} router pairs inside a group, and {MOST_BETWEEN} pairs of"
            " groups, are possible",
        )


def _count_paths(channels: Channels, rows: Ints) -> Floats:
    """Return how many paths each channel within a group counts as."""
    spines = has_spines(channels.machine)  # all links of a DragonFly+ count one by one
    single = np.array([spines or kind in ("blue", "global") for kind in channels.kinds])
    return np.where(single[channels.kind[rows]], channels.count[rows], 1).astype(np.float64)


def _tell_wirings(
    channels: Channels, inside: Ints, spot: Ints, paths: Floats, size: tuple[int, int]
) -> tuple[Ints, LocalPaths]:
    """Return the wiring of each group by number, and the paths of each wiring."""
    count, square = size[0], size[1] ** 2
    kind = channels.kind[inside].astype(np.int64)  # the classes must be alike too
    order = np.lexsort((channels.count[inside], kind, spot))
    group, place = np.divmod(spot[order], square)
    looks = np.column_stack([place, kind[order], channels.count[inside][order]])
    first = np.searchsorted(group, np.arange(count + 1))
    known: dict[bytes, int] = {}
    tables: list[Floats] = []
    wiring = np.zeros(count, dtype=np.int64)
    for number in range(count):
        some = slice(first[number], first[number + 1])
        look = looks[some].tobytes()
        if look not in known:
            known[look] = len(tables)
            tables.append(add_by_key(place[some], paths[order[some]], square))
        wiring[number] = known[look]
    if len(tables) * square > MOST_INSIDE:
        raise UsageError(
            f"{len(tables)} groups of {size[1]} routers, all wired differently, are too many"
        )
    return wiring, LocalPaths(np.stack(tables).reshape(-1, size[1], size[1]))
