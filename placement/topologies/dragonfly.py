# SPDX-License-Identifier: Apache-2.0
"""Dragonflies: Aries (group, chassis, blade) and Slingshot (group, switch).

Aries: green links join all blades of a chassis, black bundles the same slot
of all chassis of a group (three links each), blue links the groups.
Slingshot: local links join all switches of a group, global links the groups.
Only routers that exist are joined.

Rules by name say how groups are joined. A rule takes the groups that are present by
their rank (0 … G-1), so that an absent group leaves no gap, and lists every link of every
pair g < h by the routers at both ends, numbered chassis-major inside the group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nidmap.placement import topologies
from nidmap.placement.errors import UsageError
from nidmap.placement.fabrics import fabric_of
from nidmap.placement.machine import Links, Machine, Topology
from nidmap.placement.names import numbering
from nidmap.placement.support.array_types import Ints, Strs
from nidmap.placement.topologies import all_pairs, bundle_links, refuse_many

#: Links in a black bundle (three to the same slot of another chassis).
BLACK = 3


def router_coords(machine: Machine) -> NDArray[np.int32]:
    """Return the routers that the nodes imply, or the complete box if they imply none."""
    topology = machine.topology
    of_nodes = topologies.coords_from_nodes(machine)
    return (
        topologies.box_coords(topology.extents[: topology.router_levels])
        if of_nodes is None
        else of_nodes
    )


def router_names(machine: Machine) -> Strs:
    """Return Aries cnames (``c0-0c0s0a0``) if the cabinet row is known, else ``g0c0b0``."""
    coords = topologies.router_coords(machine)
    if machine.topology.router_levels == 2:
        return _write_names("g%ds%d", coords)
    positions = machine.topology.parameters.get("positions")
    if machine.topology.fabric != "aries" or not positions:
        return _write_names("g%dc%db%d", coords)
    coords_of_node = np.column_stack([coords, np.zeros(len(coords), dtype=np.int32)])
    parts = numbering.Xc(int(positions)).parts_of_coords(coords_of_node)
    return _write_names("c%d-%dc%ds%da0", parts[:, :4])


def _write_names(form: str, rows: NDArray[np.int32]) -> Strs:
    return np.array([form % tuple(row) for row in rows.tolist()], dtype=np.str_)


def links(machine: Machine) -> Links:
    """Return the links by the machine's wiring rule."""
    table = _RouterTable(machine, topologies.router_coords(machine))
    if machine.topology.router_levels == 2:
        return _join_links(machine, [table.local(), table.between()], ("local", "global"))
    parts = [table.inside(2), table.inside(1, BLACK), table.between()]
    return _join_links(machine, parts, ("green", "black", "blue"))


def _join_links(
    machine: Machine, parts: Sequence[tuple[Ints, Ints, int | Ints]], names: tuple[str, ...]
) -> Links:
    """Join the classes; the figure of a black bundle covers all its links."""
    single = {n: machine.topology.bandwidth.get(n, math.nan) for n in names}
    if "black" in single:
        single["black"] /= BLACK
    count = np.concatenate([np.broadcast_to(c, len(a)) for a, _, c in parts])
    kind = np.repeat(np.arange(len(names)), [len(a) for a, _, _ in parts]).astype(np.int8)
    gbs = np.array([single[n] for n in names])[kind] * count
    a = np.concatenate([p[0] for p in parts])
    b = np.concatenate([p[1] for p in parts])
    return bundle_links(a, b, kind, names, count, gbs)


def global_links(topology: Topology, groups: int) -> int:
    """Return the links per group pair: the topology's own number or the rule's default.

    `groups`: groups present.
    """
    rule = _global_rule(topology)
    count = topology.parameters.get("global")
    if count is None:
        count = default_links(rule, _group_shape(topology, groups, 0), fabric_of(topology).ports)
    if int(count) != count:
        raise UsageError(f"{count} links per group pair is not a whole number")
    check_rule(rule, _group_shape(topology, groups, int(count)))
    return int(count)


def wiring_text(machine: Machine) -> str:
    """Describe the rule that connects the groups, and the range of links per pair."""
    topology = machine.topology
    table = topology.parameters.get("global_table")
    if table is not None:
        counts = {n for g, row in enumerate(table) for h, n in enumerate(row) if g != h}
        return f"{_global_rule(topology)}, {min(counts)} to {max(counts)} links per group pair"
    group = topologies.router_coords(machine)[:, 0]
    groups = np.flatnonzero(np.bincount(group))  # np.unique costs 6 ms cold
    return f"{_global_rule(topology)}, {global_links(topology, len(groups))} links per group pair"


def _global_rule(topology: Topology) -> str:
    rule = topology.wiring or DEFAULT
    if rule == "same-chassis" and topology.router_levels == 2:
        raise UsageError(
            "wiring same-chassis needs chassis, which Slingshot groups do not have",
            "use aligned or consecutive",
        )
    return rule


def _group_shape(topology: Topology, groups: int, count: int) -> DragonflyShape:
    inner = topology.extents[1 : topology.router_levels]
    return DragonflyShape(groups, inner[0] if len(inner) == 2 else 1, inner[-1], count)


class _RouterTable:
    """Router index by (rank of the group present, chassis, blade); -1 if there is none."""

    def __init__(self, machine: Machine, coords: NDArray[np.int32]) -> None:
        self.topology = machine.topology
        present, rank = np.unique(coords[:, 0], return_inverse=True)
        self.groups = len(present)
        self.present = present
        shape = _group_shape(self.topology, self.groups, 0)
        self.index = np.full((self.groups, shape.chassis, shape.blades), -1, dtype=np.int64)
        chassis = coords[:, 1] if coords.shape[1] == 3 else 0
        self.index[rank, chassis, coords[:, -1]] = np.arange(len(coords))

    def inside(self, axis: int, count: int = 1) -> tuple[Ints, Ints, int]:
        """Connect all blades of a chassis (axis 2), or one slot in all chassis of a group (1)."""
        size = self.index.shape[axis]
        refuse_many(self.index.size * (size - 1) / 2, "this dragonfly")
        i, j = all_pairs(size)
        return (*_keep_present(self.index.take(i, axis), self.index.take(j, axis)), count)

    def local(self) -> tuple[Ints, Ints, int | Ints]:
        """Connect all switches of a group with as many links as all have ports for."""
        a, b, once = self.inside(2)
        ports = self.topology.parameters.get("local_ports", 0)
        sizes = (self.index >= 0).sum(axis=(1, 2))
        group = np.empty(self.index.max(initial=0) + 1, dtype=np.int64)
        rank, *_ = present = np.nonzero(self.index >= 0)
        group[self.index[present]] = rank
        return a, b, np.maximum(once, ports // np.maximum(1, sizes[group[a]] - 1))

    def between(self) -> tuple[Ints, Ints, int]:
        """Connect the groups by the wiring rule."""
        count = global_links(self.topology, self.groups)
        shape, here = _group_shape(self.topology, self.groups, count), self.present
        sizes, table = (self.topology.parameters.get(k) for k in ("switches", "global_table"))
        if sizes is not None:
            shape = replace(shape, sizes=np.array(sizes)[here])
        if table is not None:
            shape = replace(shape, table=np.array(table)[np.ix_(here, here)])
        cables = wire_groups(_global_rule(self.topology), shape)
        flat = self.index.reshape(self.groups, -1)
        return (*_keep_present(flat[cables.g, cables.a], flat[cables.h, cables.b]), cables.count)


def _keep_present(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    both = (a >= 0) & (b >= 0)
    return a[both], b[both]


def attachments(switch: Ints | NDArray[np.int32], switches: int, nics: int) -> Ints:
    """Return the switches of a Slingshot node's NICs, within its group.

    The switches of a group are in blocks of as many as a node has NICs, and
    NIC j of a node of switch s is on the j-th switch after s in its block,
    round the block: so the first NIC is on the node's own switch and the four
    NICs of a LUMI-G or Perlmutter GPU node are on four.

    `switch` (n,): of the nodes. `switches`: switches per group. `nics`: NICs per node. Returns (n,
    nics).
    """
    block = switch.astype(np.int64) // nics * nics
    turn = (switch - block)[:, None] + np.arange(nics)
    return np.asarray((block[:, None] + turn % nics) % switches)


# --- how groups are joined: rules by name ---------------------------------------------------

#: The rule of a synthetic dragonfly where its spec names none.
DEFAULT = "consecutive"


@dataclass(frozen=True, slots=True, eq=False)
class DragonflyShape:
    """A dragonfly's dimensions as used by wiring rules."""

    groups: int  # groups present
    # chassis, blades: chassis per group and routers per chassis (Slingshot: 1 and the switches)
    chassis: int
    blades: int
    links: int  # links per group pair
    # (groups,), routers of each group where they differ; None where every group has `routers`
    sizes: Ints | None = None
    # (groups, groups), links of each group pair where they differ; None where every pair has
    # `links`
    table: Ints | None = None

    @property
    def routers(self) -> int:
        """Number of routers in a full group."""
        return self.chassis * self.blades


@dataclass(frozen=True, slots=True, eq=False)
class GroupLinks:
    """Links between groups, one per row (or bundles of `count`)."""

    # g, h: (m,), ranks of the two groups, g < h
    g: Ints
    h: Ints
    # a, b: (m,), router of g and of h, numbered chassis-major inside the group
    a: Ints
    b: Ints
    count: int = 1  # parallel links in every row


def wire_groups(rule: str, shape: DragonflyShape) -> GroupLinks:
    """Return the links that `rule` creates."""
    check_rule(rule, shape)
    most = shape.links if shape.table is None else int(shape.table.max(initial=0))
    refuse_many(shape.groups * (shape.groups - 1) / 2 * most, f"wiring {rule}")
    return RULES[rule](shape)


def default_links(rule: str, shape: DragonflyShape, ports: int) -> int:
    """Return the links per group pair if nothing states them.

    `aligned` takes one link per router pair, `same-chassis` two blades per chassis
    as Edison has, and any other rule as many as the routers' ports allow, at
    least one.
    """
    if rule == "aligned":
        return shape.routers
    if rule == "same-chassis":
        return 2 * min(2, shape.blades) * shape.chassis
    return max(1, ports * shape.routers // max(1, shape.groups - 1))


def check_rule(rule: str, shape: DragonflyShape) -> None:
    """Refuse an unknown rule, or one that cannot create `shape.links` links per pair."""
    if rule not in RULES:
        raise UsageError(f"unknown wiring rule {rule!r}", f"choose from {', '.join(RULES)}")
    if rule != "consecutive" and (shape.table is not None or shape.sizes is not None):
        raise UsageError(
            f"wiring {rule} needs groups of equal size and the same number of links for every pair",
            "consecutive does not",
        )
    unit = {"aligned": shape.routers, "same-chassis": 2}.get(rule, 1)
    if shape.links < 1 or shape.links % unit:
        raise UsageError(
            f"wiring {rule} cannot give {shape.links} links per group pair",
            f"it gives multiples of {unit}",
        )


def _spread_links(shape: DragonflyShape, count: int) -> tuple[Ints, ...]:
    """Return g, h and k for `count` links (k = 0 …) of every group pair."""
    g, h = all_pairs(shape.groups)
    k = np.tile(np.arange(count, dtype=np.int64), len(g))
    return np.repeat(g, count), np.repeat(h, count), k


def _wire_aligned(shape: DragonflyShape) -> GroupLinks:
    """Link router r of every group to router r of every other (the job-placement paper's cube)."""
    g, h, k = _spread_links(shape, shape.routers)
    return GroupLinks(g, h, k, k, shape.links // shape.routers)


def _consecutive_routers(shape: DragonflyShape) -> GroupLinks:
    """Let the k-th link from g to h leave router (s·L + k) mod R, s = h if h < g else h - 1.

    s·L is the number of links from g to the groups before h, and that is
    what is taken where the pairs differ.
    """
    routers = np.full(shape.groups, shape.routers) if shape.sizes is None else shape.sizes
    size = (shape.groups, shape.groups)
    table = np.array(np.full(size, shape.links) if shape.table is None else shape.table)
    np.fill_diagonal(table, 0)
    before = np.cumsum(table, axis=1) - table
    g, h = all_pairs(shape.groups)
    count = table[g, h]
    first = np.cumsum(count) - count
    g, h, first = (np.repeat(x, count) for x in (g, h, first))
    k = np.arange(len(g)) - first
    return GroupLinks(g, h, (before[g, h] + k) % routers[g], (before[h, g] + k) % routers[h])


def _same_chassis(shape: DragonflyShape) -> GroupLinks:
    """Link blade (k·i(g,h) + j) mod B of g to (k·i(h,g) + j) mod B of h in every chassis.

    i(g,h) is the rank of h among the other groups present, j = 0 … k-1, two
    links each: so it is on all 210 directed group pairs of Edison (k = 2) and
    all 72 of Theta (k = 4). A cable holds the links of two blades, so blades
    are dealt out by twos at least. Where the links are not a multiple of two a
    chassis, which no known machine has, the first chassis have one blade more
    than the others.
    """
    k, more = divmod(shape.links // 2, shape.chassis)
    stride = max(k, 2)
    blades = k + (np.arange(shape.chassis) < more)
    first = np.repeat(np.cumsum(blades) - blades, blades)
    g, h, place = _spread_links(shape, shape.links // 2)
    chassis = np.repeat(np.arange(shape.chassis), blades)[place]
    j = place - first[place]
    leave = chassis * shape.blades + (stride * (h - 1) + j) % shape.blades
    enter = chassis * shape.blades + (stride * g + j) % shape.blades
    return GroupLinks(g, h, leave, enter, 2)


#: The rules by name.
RULES = {
    "aligned": _wire_aligned,
    "consecutive": _consecutive_routers,
    "same-chassis": _same_chassis,
}
