# SPDX-License-Identifier: Apache-2.0
"""Positions of an HPE Cray EX's nodes: (group, switch, node).

A site's configuration places its own nodes. Where only SLS lists them, their
xnames say the cabinet, chassis and slot; which cabinets make a dragonfly
group follows no universal rule, so it is a choice (`GroupRule`), by default one
cabinet a group. The nodes of a chassis divide evenly, in the order of their
slots, over the switches that SLS lists there; where it lists none, one switch
for every 16 NICs is assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.errors import ParseError
from nidmap.placement.fabrics import FABRICS
from nidmap.placement.geometry.network import Geometry
from nidmap.placement.machine import Topology
from nidmap.placement.names import parse_xname
from nidmap.placement.node_table import Table
from nidmap.placement.options import Options
from nidmap.placement.records import Dump
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.arrays import rank_within
from nidmap.placement.topologies.dragonfly import attachments

#: Ports to nodes that a switch has.
ENDPOINTS = 16

#: Chassis in half a cabinet.
HALF = 4

#: Rules that form groups, in addition to ``2-racks``.
RULES = ("cabinet", "rack", "half-cabinet", "2-racks")


@dataclass(frozen=True, slots=True)
class GroupRule:
    """The rule that assigns xnames to dragonfly groups."""

    # ``cabinet`` or ``rack`` (one per group), ``half-cabinet`` (chassis 0-3 and 4-7), ``racks``
    # (`racks` consecutive ones of those present)
    rule: str = "cabinet"
    racks: int = 1
    nics: int = 1  # NICs per node

    def __str__(self) -> str:
        return f"{self.racks} racks per group" if self.rule == "racks" else f"{self.rule} = group"


def parse_groups(text: str) -> GroupRule:
    """Parse a rule such as ``xname:group=half-cabinet,nics=4``.

    `text`: ``group=`` cabinet, rack, half-cabinet or ``2-racks``; ``nics=`` a node.
    """
    options = Options(text)
    options.only("group", "nics")
    nics = options.whole("nics", 1)
    rule = options.given.get("group", "cabinet")
    if rule.endswith("-racks"):
        racks = options.number(rule.removesuffix("-racks"), "group", 99_999)
        return GroupRule("racks", racks, nics=nics)
    return GroupRule(options.choice("group", RULES, "cabinet"), nics=nics)


def locate_ex(
    table: Table,
    dumps: Sequence[Dump],
    groups: GroupRule | None,
    bandwidth: Mapping[str, float] | None = None,
) -> Geometry:
    """Return the positions of nodes from their xnames.

    `table`: with xnames in ``cname``. `dumps`: `routers` with the switches' xnames where SLS
    lists them. `groups`: None means one cabinet per group, one NIC per node. `bandwidth`: a site's,
    GB/s by link class; None or empty: 200 Gb/s everywhere.
    """
    chosen = groups or GroupRule()
    parts = _split_xnames(table)
    # the chassis present, by cabinet, and the contents of each
    number = parts[:, 0] * 8 + parts[:, 1]
    listed = _count_switches(dumps)
    places = np.unique(np.concatenate([number, np.array([*listed], dtype=np.int64)]))
    group_of = np.unique(_group_keys(places, chosen), return_inverse=True)[1].astype(np.int64)
    chassis = np.searchsorted(places, number)
    nodes = np.bincount(chassis, minlength=len(places))
    known = np.array([listed.get(place, 0) for place in places.tolist()])
    switches = np.where(known > 0, known, -(-nodes * chosen.nics // ENDPOINTS))
    before = np.cumsum(switches) - switches
    first = before - before[np.searchsorted(group_of, group_of)]
    # the nodes of a chassis divide evenly over its switches, in the order of their xnames
    inside = rank_within(chassis, *parts.T)
    switch = first[chassis] + inside * switches[chassis] // nodes[chassis]
    group = group_of[chassis]
    node = rank_within(group * 2**16 + switch, *parts.T)
    coords = np.column_stack([group, switch, node]).astype(np.int32)
    sizes = np.bincount(group_of, weights=switches).astype(np.int64)
    parameters: dict[str, Any] = {"nics": chosen.nics}
    if len(set(sizes.tolist())) > 1:
        parameters["switches"] = tuple(sizes.tolist())
    topology = Topology(
        kind="dragonfly",
        levels=("group", "switch", "node"),
        extents=(len(sizes), int(sizes.max()), int(node.max()) + 1),
        fabric="slingshot",
        wiring="consecutive",
        bandwidth=dict(bandwidth or FABRICS["slingshot"].bandwidth),
        parameters=parameters,
    )
    notes = _what_is_assumed(groups, bool((known == 0).any()))
    return replace(attach_switches(topology, coords), notes=notes)


def _what_is_assumed(groups: GroupRule | None, switches: bool) -> tuple[str, ...]:
    """Report assumptions not covered by dumps: cabinets per group, switches, global links."""
    chosen = f"groups: {groups or GroupRule()}"
    notes = [chosen if groups else f"{chosen} (assumed: no site says)"]
    if switches:
        notes.append(f"switches assumed: one for every {ENDPOINTS} NICs of a chassis")
    notes.append("global links assumed: wiring consecutive, as many as the switches' ports allow")
    return tuple(notes)


def _split_xnames(table: Table) -> Ints:
    """Return int64 (n, 5): cabinet, chassis, slot, board, node of each xname."""
    out = np.empty((len(table), 5), dtype=np.int64)
    for row, text in enumerate(table["cname"].tolist()):
        try:
            name = parse_xname(text)
        except ParseError as error:
            raise table.error(row, str(error)) from None
        if not name.is_node:
            raise table.error(row, f"{text or 'a node without one'} is not a node's xname")
        out[row] = name.parts
    return out


def _count_switches(dumps: Sequence[Dump]) -> Counter[int]:
    """Return the number of switches listed in each chassis, keyed by 8 · cabinet + chassis."""
    lists = [d.routers for d in dumps if d.routers is not None and d.fabric in ("slingshot", "")]
    parts = (parse_xname(text).parts for routers in lists for text in routers.tolist())
    return Counter(cabinet * 8 + chassis for cabinet, chassis, *_ in parts if chassis >= 0)


def _group_keys(places: Ints, groups: GroupRule) -> Ints:
    """Return a number for each chassis's group, ascending in the order of the groups."""
    if groups.rule == "half-cabinet":
        return places // HALF
    rank = np.unique(places // 8, return_inverse=True)[1]
    return (rank // groups.racks).astype(np.int64)


def attach_switches(
    topology: Topology, coords: NDArray[np.int32], switches: Ints | None = None
) -> Geometry:
    """Return a Slingshot machine's network: all switches of its groups, NICs by rule.

    `topology`: `switches` in its parameters where groups differ in size. `coords` (n, 3).
    `switches` (n, k): switches in the group that each node's NICs are on, -1 for none; None takes
    `nidmap.placement.topologies.dragonfly.attachments`.
    """
    most = topology.extents[1]
    sizes = np.array(topology.parameters.get("switches", (most,) * topology.extents[0]))
    first = np.cumsum(sizes) - sizes
    group = np.repeat(np.arange(len(sizes)), sizes)
    box = np.column_stack([group, np.arange(len(group)) - first[group]]).astype(np.int32)
    nics = int(topology.parameters.get("nics", 1))
    if switches is None:
        switches = attachments(coords[:, 1], most, nics) % sizes[coords[:, 0]][:, None]
    router = np.where(switches >= 0, first[coords[:, 0]][:, None] + switches, -1)
    full = len(set(sizes.tolist())) == 1
    return Geometry(topology, coords, router.astype(np.int32), None if full else box)
