# SPDX-License-Identifier: Apache-2.0
"""Demand: the bytes between nodes that a network has to carry.

A demand is a sum of listed pairs (a stencil, a graph, a measured matrix) and
of all-to-alls in product form (`nidmap.placement.all_to_alls`), so that an
all-to-all of 100,000 nodes needs no table of all pairs. Nodes count by their
rows of the machine; what a node sends to itself never leaves it and is not
part of a demand.

What two nodes with several attachments exchange is split over those that a
path joins (`nidmap.placement.network.rails`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from nidmap.placement.all_to_alls import NO_ALL_TO_ALLS, AllToAlls
from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.network.rails import Rails, rails_of
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import add_by_key, sum_by_pair
from nidmap.placement.support.quantities import GB
from nidmap.placement.topologies import router_count
from nidmap.placement.traffic import NO_TRAFFIC, Traffic

Pairs = tuple[Ints, Ints, Floats]

#: Router pairs of one block of `Demand.blocks` (more where one router has more).
BLOCK = 1 << 22

#: Kinds of network whose routing looks at the destination node: d-mod-k, and
#: ``single`` among switches that make no tree.
BY_NODE = ("fattree", "tree")


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Bytes between the nodes of a machine.

    Made of `Traffic` by `of`.
    """

    routers: int  # routers of the machine
    # out, into: (n,), bytes that leave and enter each node
    out: Floats
    into: Floats
    # source, target: (m,), listed router pairs, ascending, source != target
    source: Ints
    target: Ints
    # (m,), their bytes. What an all-to-all counts too much between two switches of one node is
    # subtracted here, so a sum alone means something.
    amount: Floats
    within: AllToAlls = NO_ALL_TO_ALLS  # the all-to-alls
    # The same node by node, on machines whose routing looks at the destination node (fat trees);
    # else empty
    nodewise: Traffic = NO_TRAFFIC
    key: int = 0  # identifies the demand among others of the machine

    @classmethod
    def of(cls, machine: Machine, traffic: Traffic) -> Demand:
        """Return the demand of traffic between nodes on the network.

        `traffic`: ends are rows of the machine; what a node sends to itself is left out.
        """
        traffic, nodes = traffic.away(), len(machine)
        ends = traffic.source, traffic.target
        out, into = traffic.sent_and_received(nodes)
        _require_routers(machine, np.flatnonzero((out != 0) | (into != 0)))
        parts = _attachment_pairs(machine, *ends) if len(traffic) else []
        listed = [(s, t, traffic.bytes[kept] * share) for s, t, kept, share in parts]
        within, twice = _on_routers(machine, traffic.all_to_alls)
        between = _between_routers(router_count(machine), [*listed, *twice])
        nodewise = traffic if machine.topology.kind in BY_NODE else NO_TRAFFIC
        return cls(router_count(machine), out, into, *between, within, nodewise, traffic.key)

    @property
    def total(self) -> float:
        """Total bytes that leave the nodes."""
        return float(self.out.sum())

    def own_s(self, machine: Machine) -> float:
        """Return the seconds of the busiest node's own link; 0 if it is unlimited."""
        sent = np.maximum(self.out, self.into) / (injection_bandwidth(machine) * GB)
        return float(sent.max(initial=0.0))

    def refuse_other(self, machine: Machine) -> None:
        """Raise UsageError if this is the demand of another machine."""
        if len(machine) != len(self.out) or router_count(machine) != self.routers:
            raise UsageError("this demand belongs to another machine")

    def routers_used(self) -> Ints:
        """Return the routers that send or receive anything, ascending."""
        used = np.zeros(self.routers, dtype=bool)
        for routers in (self.source, self.target, self.within.end):
            used[routers] = True
        return np.flatnonzero(used)

    def blocks(self) -> Iterator[Pairs]:
        """Yield all router pairs with their bytes, block by block, sources ascending.

        Yields `source, target` (b,): source != target; each pair comes once over all blocks.
        Yields `bytes` (b,): more than 0.
        """
        used = self.routers_used()
        size, rank = len(used), np.zeros(self.routers, dtype=np.int64)
        rank[used] = np.arange(size)
        key = rank[self.source] * size + rank[self.target]
        within = self.within.moved(rank, size)
        rows = max(1, BLOCK // max(1, size))
        for low in range(0, size, rows):
            high = min(size, low + rows)
            first, last = np.searchsorted(key, [low * size, high * size])
            pair, amount = key[first:last], self.amount[first:last]
            if len(within):
                table = within.rows(low, high, size).reshape(-1)
                table[np.arange(high - low) * (size + 1) + low] = 0  # to itself
                table += add_by_key(pair - low * size, amount, len(table))
                pair, amount = np.arange(low * size, high * size), table
            kept = np.flatnonzero(amount > 0)
            source, target = np.divmod(pair[kept], size)
            yield used[source], used[target], amount[kept]

    def leaving(self, label: Ints, count: int) -> tuple[Floats, Floats]:
        """Return the bytes that leave, and that enter, the routers with each label.

        `label` (routers,): 0 … count-1; -1 for a router of no part. Returns `out, into` (count,).
        """
        a, b = label[self.source], label[self.target]
        both = self.within.leaving(label, count)
        out, into = (
            both + add_by_key(end[rows], self.amount[rows], count)
            for end in (a, b)
            for rows in [np.flatnonzero((a != b) & (end >= 0))]
        )
        return np.maximum(out, 0.0), np.maximum(into, 0.0)

    def reversed(self) -> Demand:
        """Return the demand with every message in the opposite direction."""
        turned = _between_routers(self.routers, [(self.target, self.source, self.amount)])
        back = self.nodewise.reversed()
        key = hash((self.key, "reversed"))
        return Demand(self.routers, self.into, self.out, *turned, self.within, back, key)


def _require_routers(machine: Machine, rows: Ints) -> None:
    """Raise if a node has no router."""
    lost = (machine.router[rows] < 0).all(axis=1)
    if lost.any():
        name = machine.names[rows[int(np.argmax(lost))]]
        raise NidmapError(
            f"{name} has no known router, so its traffic cannot be routed",
            "is the machine's dump complete?",
        )


def _attachment_pairs(
    machine: Machine, a: Ints, b: Ints
) -> Iterator[tuple[Ints, Ints, Mask | slice, Floats | float]]:
    """Yield, for each pair of attachments, routers, messages that use it, and their share."""
    table = machine.router
    if table.shape[1] == 1:
        yield table[a, 0].astype(np.int64), table[b, 0].astype(np.int64), slice(None), 1.0
        return
    rails = rails_of(machine)
    rails.refuse_apart(a, b)
    for i, j, share in rails.shares(a, b):
        kept = share > 0
        s, t = table[a[kept], i].astype(np.int64), table[b[kept], j].astype(np.int64)
        yield s, t, kept, share[kept]


def _between_routers(
    routers: int, listed: list[tuple[Ints, Ints, Floats]]
) -> tuple[Ints, Ints, Floats]:
    """Return each router pair once with its total bytes, ascending; s == t dropped."""
    none = np.zeros(0, dtype=np.int64)
    columns = zip((none, none, np.zeros(0)), *listed, strict=True)
    source, target, amount = (np.concatenate(column) for column in columns)
    apart = source != target
    if not apart.all():
        source, target, amount = source[apart], target[apart], amount[apart]
    return sum_by_pair(source, target, amount, routers)


def _on_routers(
    machine: Machine, lines: AllToAlls
) -> tuple[AllToAlls, list[tuple[Ints, Ints, Floats]]]:
    """Return all-to-alls over routers, corrected for a node's own switches."""
    if not len(lines):
        return NO_ALL_TO_ALLS, []
    line, row, ranks, routers = lines.line, lines.end, lines.weight, router_count(machine)
    columns = [column[row].astype(np.int64) for column in machine.router.T]
    if len(columns) == 1:
        return AllToAlls(*sum_by_pair(line, columns[0], ranks, routers), lines.scale).merged(), []
    rails = rails_of(machine)
    part, alike = rails.part[row], rails.alike[row]
    within = NO_ALL_TO_ALLS
    for kinds, where, share in _shared_parts(rails, line, row):
        entry, k = np.nonzero((part == where) & np.isin(rails.kind[row], kinds)[:, None])
        used, at = np.unique(line[entry], return_inverse=True)
        weight = ranks[entry] / alike[entry, k]
        piece = sum_by_pair(at, machine.router[row[entry], k].astype(np.int64), weight, routers)
        within = within.joined(AllToAlls(*piece, lines.scale[used] * share))
    within = within.merged()
    self_bytes = lines.scale[line] * ranks * ranks / rails.count[row]
    twice = [
        (s[both], t[both], -(self_bytes / alike[:, i])[both])
        for i, s in enumerate(columns)
        for j, t in enumerate(columns)
        if i != j
        for both in [(part[:, i] >= 0) & (part[:, i] == part[:, j]) & (s != t)]
    ]
    return within, twice


def _shared_parts(
    rails: Rails, line: Ints, row: Ints
) -> Iterator[tuple[tuple[int, int], int, float]]:
    """Yield pairs of node kinds, a part that both are on, and the factor for pairs there.

    What nodes of two kinds exchange is what all of both do, less what those of each do among
    themselves; that has a factor of its own.
    """
    kind = rails.kind[row]
    kinds = np.unique(kind).tolist()
    among: dict[tuple[int, int], float] = {}
    for low, high in combinations(kinds, 2):
        shares = rails.between(low, high)
        if not shares:
            _refuse_apart(rails, line, row, (low, high))
        for part, share in shares.items():
            yield (low, high), part, share
            for member in (low, high):
                among[member, part] = among.get((member, part), 0.0) - share
    for member in kinds:
        for part, share in rails.between(member, member).items():
            factor = among.get((member, part), 0.0) + share
            if factor:
                yield (member, member), part, factor


def _refuse_apart(rails: Rails, line: Ints, row: Ints, kinds: tuple[int, int]) -> None:
    """Raise if a line has nodes of two kinds that no path connects."""
    low, high = (np.flatnonzero(rails.kind[row] == kind) for kind in kinds)
    _, a, b = np.intersect1d(line[low], line[high], return_indices=True)
    rails.refuse_apart(row[low[a]], row[high[b]])
