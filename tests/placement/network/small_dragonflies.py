# SPDX-License-Identifier: Apache-2.0
"""Small dragonflies, and what their routings are by enumeration of all paths, in plain Python."""

from collections import defaultdict
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from nidmap.placement.machine import Links
from nidmap.placement.network import Demand
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import links, router_coords
from nidmap.placement.traffic import Traffic

RULES = ("consecutive", "aligned", "same-chassis")


def spec(groups, chassis, blades, nodes, rule, times):
    """Return the spec of a small Aries; `times` scales the links per group pair."""
    unit = {"consecutive": 1, "aligned": chassis * blades, "same-chassis": 2}[rule]
    return (
        f"dragonfly:groups={groups},chassis={chassis},blades={blades},nodes={nodes},"
        f"wiring={rule},global={unit * times},injection=10,blue=4.7"
    )


def without(machine, gone):
    """Return the machine without the routers at these indices and their nodes."""
    coords = router_coords(machine)
    kept = np.array([r for r in range(len(coords)) if r not in gone])
    rank = np.full(len(coords), -1, dtype=np.int32)
    rank[kept] = np.arange(len(kept))
    rows = np.flatnonzero((rank[machine.router] >= 0).all(axis=1))
    columns = {
        name: getattr(machine, name)[rows]
        for name in (
            "nid", "names", "cname", "coords", "role", "state", "mode", "sockets", "cores",
            "memory_mb", "nics", "gpus", "features", "planned",
        )
    }  # fmt: skip
    router = rank[machine.router[rows]]
    return replace(machine, **columns, router=router, router_coords=coords[kept], _cache={})


def wired(machine, rows, kinds=("green", "black", "blue")):
    """Return the machine with these links: (a, b, kind, count) rows."""
    rows = sorted(rows)
    table = np.array([(a, b, k, n) for a, b, k, n in rows], dtype=np.int64).reshape(-1, 4)
    listed = Links(
        a=table[:, 0].astype(np.int32),
        b=table[:, 1].astype(np.int32),
        kind=table[:, 2].astype(np.int8),
        kinds=kinds,
        count=table[:, 3].astype(np.int32),
        bandwidth=np.full(len(table), 5.0),
    )
    topology = replace(machine.topology, wiring="links of a list")
    return replace(machine, links=listed, topology=topology, _cache={})


@st.composite
def ruled(draw):
    """Draw a machine by one of the rules, whole or with holes."""
    groups, chassis, blades = (draw(st.integers(1, n)) for n in (4, 3, 4))
    rule = draw(st.sampled_from(RULES))
    machine = parse_spec(
        spec(groups, chassis, blades, draw(st.integers(1, 2)), rule, draw(st.integers(1, 5)))
    )
    count = len(router_coords(machine))
    gone = draw(st.sets(st.integers(0, count - 1), max_size=count // 3))
    return without(machine, gone) if gone else machine


@st.composite
def slingshots(draw):
    """Draw a Slingshot whose nodes have one or more NICs."""
    groups, switches = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    return parse_spec(
        f"slingshot:groups={groups},switches={switches},nodes={draw(st.integers(1, 2))},"
        f"nics={draw(st.integers(1, 3))},global={draw(st.integers(1, 7))}"
    )


@st.composite
def listed(draw):
    """Draw a machine with any links: routers and groups may be left alone."""
    groups, blades = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    machine = parse_spec(f"dragonfly:groups={groups},chassis=1,blades={blades},nodes=1,global=1")
    pairs = list(combinations(range(groups * blades), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    rows = []
    for a, b in chosen:
        inside = a // blades == b // blades
        kind = draw(st.sampled_from((0, 1))) if inside else 2
        rows.append((a, b, kind, 3 if kind == 1 else draw(st.integers(1, 2)) if kind == 2 else 1))
    return wired(machine, rows)


class Reference:
    """Channels and paths of a dragonfly, path by path."""

    def __init__(self, machine):
        self.machine = machine
        self.group = router_coords(machine)[:, 0].tolist()
        self.spines = machine.topology.kind == "dragonfly+"
        found = links(machine)
        self.leader = None
        self.ends = []
        self.out = defaultdict(list)
        columns = (found.a, found.b, found.kind, found.count)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        self.kinds = [found.kinds[k] for _, _, k, _ in rows] * 2
        for turned in (False, True):
            for a, b, kind, count in rows:
                a, b = (b, a) if turned else (a, b)
                single = found.kinds[kind] in ("blue", "global") or self.spines
                for _ in range(count if single else 1):
                    self.out[a].append((b, len(self.ends)))
                self.ends.append((a, b))
        self.fewest = cache(self._fewest)  # asked again for every router

    def _fewest(self, there, most):
        """Return {(router, global hops): fewest hops} of walks to a router, so many at most."""
        found, level = {(there, 0): 0}, [(there, 0)]
        while level:
            after = []
            for here, crossings in level:
                for to, _ in self.out[here]:
                    key = to, crossings + (self.group[here] != self.group[to])
                    if key not in found and key[1] <= most:
                        found[key] = found[here, crossings] + 1
                        after.append(key)
            level = after
        return found

    def walks(self, here, there, crossings, hops, need):
        """Return all paths, as channels, with exactly so many global hops and hops.

        `need` says where it is in vain to go on.
        """
        if hops == 0:
            return [()] if here == there and crossings == 0 else []
        found = []
        for to, channel in self.out[here]:
            left = crossings - (self.group[here] != self.group[to])
            if need.get((to, left), hops) < hops:
                rest = self.walks(to, there, left, hops - 1, need)
                found += [(channel, *path) for path in rest]
        return found

    def least(self, here, there, most):
        """Return all paths with the fewest global hops, at most so many, and then the fewest."""
        need = self.fewest(there, most)
        for crossings in range(most + 1):
            if (here, crossings) in need:
                return self.walks(here, there, crossings, need[here, crossings], need)
        return []

    def inside(self, here, there):
        """Return all shortest paths inside a group."""
        return self.least(here, there, 0)

    def shortest(self, here, there):
        """Return all paths with the fewest global hops and then the fewest hops."""
        return self.least(here, there, len(self.group) - 1)

    def split_shortest(self, here, there):
        """Return {channel: share}."""
        found = self.shortest(here, there)
        share = defaultdict(float)
        for path in found:
            for channel in path:
                share[channel] += 1 / len(found)
        return share

    def over_links(self, here, there):
        """Return (paths before, channel, paths after) of every link between the groups."""
        ways = []
        mine = [r for r, group in enumerate(self.group) if group == self.group[here]]
        for gate, (other, channel) in ((r, step) for r in mine for step in self.out[r]):
            if self.group[other] == self.group[there]:
                ways.append((self.inside(here, gate), channel, self.inside(other, there)))
        return [(before, channel, after) for before, channel, after in ways if before and after]

    def split_minimal(self, here, there):
        """Return {channel: share}."""
        ways = self.over_links(here, there)
        if self.group[here] == self.group[there] or not ways:
            return self.split_shortest(here, there)
        share = defaultdict(float)
        for before, channel, after in ways:
            share[channel] += 1 / len(ways)
            for paths in (before, after):
                for local in (local for path in paths for local in path):
                    share[local] += 1 / len(ways) / len(paths)
        return share

    def loads(self, messages, routing):
        """Return the bytes on every channel of (node, node, bytes) messages."""
        split = {"shortest": self.split_shortest, "minimal": self.split_minimal}[routing]
        total = [0.0] * len(self.ends)
        for s, t, amount in self.router_messages(messages):
            for channel, part in split(s, t).items():
                total[channel] += part * amount
        return total

    def router_messages(self, messages):
        """Yield (router, router, bytes): every attachment has an equal share."""
        sums = defaultdict(float)
        for a, b, amount in messages:
            if a == b:
                continue
            here = [int(r) for r in self.machine.router[a] if r >= 0]
            there = [int(r) for r in self.machine.router[b] if r >= 0]
            for s in here:
                for t in there:
                    if s != t:
                        sums[s, t] += amount / len(here) / len(there)
        return [(s, t, amount) for (s, t), amount in sums.items()]

    def hops(self, pairs, routing):
        """Return the expected channels of each class, one row a pair of routers."""
        split = {"shortest": self.split_shortest, "minimal": self.split_minimal}[routing]
        names = links(self.machine).kinds
        found = []
        for s, t in pairs:
            row = dict.fromkeys(names, 0.0)
            for channel, share in split(s, t).items() if s != t else ():
                row[self.kinds[channel]] += share
            found.append(list(row.values()))
        return found

    def connected(self, messages):
        """Return whether a path joins all that exchange bytes."""
        return self.joined((s, t) for s, t, _ in self.router_messages(messages))

    def joined(self, pairs):
        """Return whether a path joins every pair of routers."""
        if self.leader is None:
            self.leader = list(range(len(self.group)))
            for _ in self.leader:
                for a, b in self.ends:
                    self.leader[a] = self.leader[b] = min(self.leader[a], self.leader[b])
        return all(self.leader[s] == self.leader[t] for s, t in pairs)


@st.composite
def messages(draw, machine):
    """Draw (node, node, bytes) of a machine, some twice, some to themselves."""
    node = st.integers(0, len(machine) - 1)
    return draw(
        st.lists(st.tuples(node, node, st.sampled_from([1.0, 2.5, 1e6])), min_size=1, max_size=12)
    )


def every_pair(rows, ranks, amount):
    """Return the messages of an all-to-all."""
    count = dict(zip(rows, ranks, strict=True))
    return [(a, b, amount * count[a] * count[b]) for a in rows for b in rows if a != b]


def in_lines(entries, amount):
    """Return the messages of an all-to-all in every line of (line, node, ranks) entries."""
    return [
        (a, b, amount * m * n)
        for k, a, m in entries
        for other, b, n in entries
        if k == other and a != b
    ]


def listed_traffic(sent):
    """Return the traffic of (node, node, bytes) messages."""
    return Traffic.of(*(np.array(x) for x in zip(*sent, strict=True)))


def listed_demand(machine, sent):
    """Return the demand of (node, node, bytes) messages."""
    return Demand.of(machine, listed_traffic(sent))


def relabelled(machine, order):
    """Return the machine with group g called order[g], and the new number of each router."""
    coords = router_coords(machine).copy()
    coords[:, 0] = np.array(order)[coords[:, 0]]
    rows = np.lexsort(coords.T[::-1])
    rank = np.empty(len(rows), dtype=np.int32)
    rank[rows] = np.arange(len(rows))
    found = links(machine)
    listed = [
        (min(rank[a], rank[b]), max(rank[a], rank[b]), k, n)
        for a, b, k, n in zip(found.a, found.b, found.kind, found.count, strict=True)
    ]
    own = machine.coords.copy()
    own[:, 0] = np.array(order)[own[:, 0]]
    router = np.where(machine.router >= 0, rank[machine.router], -1).astype(np.int32)
    turned = replace(machine, coords=own, router=router, router_coords=coords[rows], _cache={})
    return wired(turned, listed, found.kinds), rank
