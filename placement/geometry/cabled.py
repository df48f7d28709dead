# SPDX-License-Identifier: Apache-2.0
"""Fabrics whose dumps list the cables: fat trees, DragonFly+, dragonflies.

*DragonFly+.* Leaves have hosts and cables to spines of their own group only. So what
cables at leaves hold together is a group, and cables between spines join groups.
A spine may have a few hosts of its own (ibdiagnet looks for spines in the same way).

*Dragonfly.* All switches of a group are joined. Two that are have all of the group as
neighbours, two of different groups hardly any: by the share of neighbours that the ends of
a cable have in common the cables inside groups stand out.

Cables may be missing: a partition is taken where most of what it needs is there, and
none where it is not.

A leaf is a switch with hosts on it, or with no cable but to the spines of one
pod; a switch's level counts from the leaves. Where every cable goes from one
level to the next it is a fat tree, whose switches of level k and below fall
into parts (pods) that are coordinates. Where not, the groups of a DragonFly+ or a
dragonfly are looked for; where there are none it is a graph of switches, and only
the switch of a node counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.errors import ParseError
from nidmap.placement.geometry.host_rails import Attachments, HostCables, attach_hosts
from nidmap.placement.geometry.listed import wiring_of
from nidmap.placement.geometry.network import Geometry, refuse_first, switch_positions
from nidmap.placement.lookup import find_hosts
from nidmap.placement.machine import Topology
from nidmap.placement.node_table import Table
from nidmap.placement.records import Dump
from nidmap.placement.support.array_types import Array, Floats, Ints, Mask, Strs
from nidmap.placement.support.arrays import connected_components, product
from nidmap.placement.topologies import bundle_links

#: Minimum share of group pairs that must be joined, and of pairs within a dragonfly's group.
MOST_PAIRS, MOST_OF_A_GROUP = 0.5, 0.7

#: Maximum share of the switches without hosts that may be joined to no leaf.
LOOSE = 0.2

#: A switch with no more hosts than this share of the usual number may be a spine.
FEW_HOSTS = 0.25

#: Number of switches up to which all pairs are examined.
MOST_SWITCHES = 5000


class Islands(NamedTuple):
    """A partition of s switches into groups."""

    kind: str  # ``dragonfly`` or ``dragonfly+``
    group: Ints  # (s,), any number for each group
    level: Ints  # (s,), 0 where nodes are, or would be; 1 at a spine


def find_islands(a: Ints, b: Ints, hosts: Ints) -> Islands | None:
    """Return the groups of a DragonFly+ or a dragonfly; None if the cables form neither.

    `a`, `b` (m,): ends of cables between switches. `hosts` (s,): hosts on each switch.
    """
    usual = np.median(hosts[hosts > 0]) if hosts.any() else 0.0
    for limit in sorted({0, *hosts[hosts <= FEW_HOSTS * usual].tolist()}):
        islands = _with_spines(a, b, hosts > limit)
        if islands is not None:
            return islands._replace(level=np.where(hosts > 0, 0, islands.level))
    return _clique_groups(a, b, hosts)


def _with_spines(a: Ints, b: Ints, leaf: Mask) -> Islands | None:
    """Return the groups of a DragonFly+, given its leaves."""
    count = len(leaf)
    leaf = leaf | idle_leaves(a, b, leaf)
    group = _first_switch(a, b, leaf)
    between = ~leaf[a] & ~leaf[b]
    if not between.any() or (leaf[a] & leaf[b]).any() or (group[a] == group[b])[between].any():
        return None
    loose = ~leaf & (np.bincount(group[leaf], minlength=count) == 0)[group]
    if loose.sum() > LOOSE * (~leaf).sum():
        return None
    groups = np.intersect1d(group[leaf], group[~leaf])
    ends = group[a[between]], group[b[between]]
    if not _mostly_joined(ends, groups):
        return None
    return Islands("dragonfly+", group, (~leaf).astype(np.int64))


def _first_switch(a: Ints, b: Ints, leaf: Mask) -> Ints:
    """Return a number for each set of cabled leaves: that of its first switch."""
    inside = leaf[a] | leaf[b]
    return connected_components(len(leaf), a[inside], b[inside])


def idle_leaves(a: Ints, b: Ints, leaf: Mask) -> Mask:
    """Return host-less switches cabled only to the spines of a single group.

    Those are leaves whose hosts are all switched off; a spine's cables go to other groups,
    and so do those of the core of a fat tree, to other pods.

    `a`, `b` (m,): ends of cables between switches. `leaf` (s,): those with hosts.
    """
    count, group = len(leaf), _first_switch(a, b, leaf)
    alone = ~leaf & (np.bincount(np.concatenate([a[leaf[b]], b[leaf[a]]]), minlength=count) == 0)
    ends = np.concatenate([a, b]), np.concatenate([b, a])
    low, high = np.full(count, count), np.full(count, -1)
    np.minimum.at(low, ends[0], group[ends[1]])
    np.maximum.at(high, ends[0], group[ends[1]])
    degree = np.bincount(ends[0], minlength=count)
    return np.asarray(alone & (low == high) & (degree > 1))


def _clique_groups(a: Ints, b: Ints, hosts: Ints) -> Islands | None:
    """Return a dragonfly's groups: the largest groups that are nearly cliques."""
    count = len(hosts)
    if count > MOST_SWITCHES or (hosts > 0).sum() < count / 2:
        return None
    near = np.eye(count)
    near[a, b] = near[b, a] = 1
    a, b = np.nonzero(np.triu(near, 1))
    common = product(near, near)[a, b]
    degree = near.sum(axis=1)
    alike = common / (degree[a] + degree[b] - common)
    for least in np.unique(np.round(alike, 3)).tolist():
        inside = alike >= least - 5e-4
        group = connected_components(count, a[inside], b[inside])
        across = group[a] != group[b]
        groups = np.unique(group)
        if _nearly_cliques(group, near) and _mostly_joined(
            (group[a[across]], group[b[across]]), groups
        ):
            return Islands("dragonfly", group, np.zeros(count, dtype=np.int64))
    return None


def _nearly_cliques(group: Ints, near: Floats) -> bool:
    """Tell whether most switches of every group are connected, and none is isolated."""
    size = np.bincount(group)
    rows, columns = np.nonzero(near)
    inside = group[rows] == group[columns]
    joined = np.bincount(group[rows[inside]], minlength=len(size))
    there = size > 0
    return bool((size[there] > 1).all() and (joined >= MOST_OF_A_GROUP * size**2)[there].all())


def _mostly_joined(ends: tuple[Ints, Ints], groups: Ints) -> bool:
    """Tell whether there are several groups, and cables between most pairs of them.

    `ends` (m,): groups at the ends of cables between groups. `groups` (g,): the groups that
    count.
    """
    low, high = np.minimum(*ends), np.maximum(*ends)
    counts = np.isin(low, groups) & np.isin(high, groups)
    pairs = len(np.unique(low[counts] << 32 | high[counts]))
    return len(groups) > 1 and pairs >= MOST_PAIRS * len(groups) * (len(groups) - 1) / 2


#: A host with more cables than this is a mistake in the list.
MOST_CABLES = 64


@dataclass(frozen=True, slots=True, eq=False)
class _ListedCables:
    """The cables of a fabric, each listed once."""

    names: Strs  # (s,), switches, sorted
    # a, b: (m,), switches at the ends of cables between switches
    a: Ints
    b: Ints
    gbs: Floats  # (m,)
    host: Strs  # (h,), host of each host cable
    at: Ints  # (h,), its switch
    host_gbs: Floats  # (h,)
    adapter: Strs  # (h,), the host's name for its end


def locate_hosts(table: Table, dumps: Sequence[Dump], given: Topology | None) -> Geometry:
    """Return the positions of hosts on the switches of a fabric.

    `table`: hosts by name, in their final order. `dumps`: of hosts, switches and cables. `given`:
    a site's, for its bandwidths. Kind ``fattree`` with levels ``…, level2, leaf, node``;
    ``dragonfly+`` or ``dragonfly`` with ``group`` and the router; ``tree`` with ``level1, node``
    where the cables make neither layers nor groups.
    """
    cables = _join_ends(dumps)
    wanted = [name for dump in dumps for name in _named_rails(dump)]
    attached = _attach_hosts(table, cables, wanted)
    hosts = np.bincount(cables.at, minlength=len(cables.names))
    idle = idle_leaves(cables.a, cables.b, hosts > 0)
    level = _switch_levels(cables, np.flatnonzero((hosts > 0) | idle))
    layered = bool((np.abs(level[cables.a] - level[cables.b]) == 1).all())
    islands = None if layered else find_islands(cables.a, cables.b, hosts)
    stated = {} if given is None else dict(given.bandwidth)
    if islands is None:
        shape = _shape_of_levels(cables, level, layered)
    else:
        shape = _shape_of_groups(cables, islands)
    network = _make_network(cables, attached, shape, stated)
    topology = replace(network.topology, wiring=wiring_of(dumps), fabric=dumps[0].fabric)
    return replace(network, topology=topology, notes=(*network.notes, *attached.notes))


def _named_rails(dump: Dump) -> tuple[str, ...]:
    names = dump.parameters.get("rails", ())
    return names if isinstance(names, tuple) else ()


def _join_ends(dumps: Sequence[Dump]) -> _ListedCables:
    """Return each cable once, even if both of its ends are listed."""
    names = np.unique(np.concatenate([d.routers for d in dumps if d.routers is not None]))
    # ordered by the lower end
    cables: dict[tuple[str, int | str], tuple[bool, str, float, str]] = {}
    for links in (dump.links for dump in dumps if dump.links is not None):
        gbs = np.full(len(links), np.nan) if links.bandwidth is None else links.bandwidth
        a, b = ((links.host_a, links.a, links.a_port), (links.host_b, links.b, links.b_port))
        ends = (zip(*(_listed(column) for column in end), strict=True) for end in (a, b))
        words = np.full(len(links), "") if links.adapter is None else links.adapter
        for *pair, rate, word in zip(*ends, gbs.tolist(), words.tolist(), strict=True):
            (_, low, port), (host, high, _) = sorted(pair)  # hosts behind switches
            cables.setdefault((low, port), (host, high, rate, word))
    at = dict(zip(names.tolist(), range(len(names)), strict=True))
    rows = [(at[low], *cable) for (low, _), cable in cables.items()]
    inner = [(low, at[high], rate) for low, host, high, rate, _ in rows if not host]
    outer = [(high, low, rate, word) for low, host, high, rate, word in rows if host]
    switches = np.array(inner, dtype=np.float64).reshape(-1, 3)
    return _ListedCables(
        names=names,
        a=switches[:, 0].astype(np.int64),
        b=switches[:, 1].astype(np.int64),
        gbs=switches[:, 2],
        host=np.array([host for host, *_ in outer], dtype=np.str_),
        at=np.array([switch for _, switch, *_ in outer], dtype=np.int64),
        host_gbs=np.array([rate for _, _, rate, _ in outer], dtype=np.float64),
        adapter=np.array([word for *_, word in outer], dtype=np.str_),
    )


def _listed(column: Array | None) -> list[Any]:
    assert column is not None
    return list(column.tolist())


def _attach_hosts(table: Table, cables: _ListedCables, wanted: Sequence[str]) -> Attachments:
    """Return each node's switches and cable rates, its first rail first."""
    rows = find_hosts(table["name"], cables.host, table.sources[0])
    listed = np.flatnonzero(rows >= 0)
    counts = np.bincount(rows[listed], minlength=len(table))
    refuse_first(
        table,
        counts == 0,
        lambda row: f"{table.called(row)} has no cable in the fabric",
        "every node of a fabric needs a switch",
    )
    if counts.max(initial=0) > MOST_CABLES:
        name, most = table["name"][np.argmax(counts)], counts.max()
        raise ParseError(table.sources[0], 0, f"{name} has {most} cables")
    part = connected_components(len(cables.names), cables.a, cables.b)
    ends = HostCables(
        rows[listed], cables.at[listed], cables.adapter[listed], cables.host_gbs[listed]
    )
    return attach_hosts(ends, part, len(table), wanted)


def _place_switches(cables: _ListedCables, cabled: Ints) -> Ints:
    """Return the switch that locates each node: that of its first cable.

    Of rails that no cable joins the first says the place. Where a node has lost it, it is taken
    to be where most of the others are that share the switch it has left; where these are on many
    switches, as the clients of a storage server are, it is a place of its own.
    """
    count, first = len(cables.names), cabled[:, 0]
    part = connected_components(count, cables.a, cables.b)
    row, k = np.nonzero(cabled >= 0)
    switch, far = cabled[row, k], first[row]
    away = part[switch] != part[far]
    later = 2 * np.bincount(part[switch], away, count) > np.bincount(part[switch], minlength=count)
    pair, nodes = np.unique((switch * count + far)[away], return_counts=True)
    most = 2 * nodes > np.bincount(pair // count, nodes, count)[pair // count]
    pair = pair[most]
    usual = np.arange(count)
    usual[pair // count] = pair % count
    return np.where(later[part[first]], usual[first], first)


def _switch_levels(cables: _ListedCables, leaves: Ints) -> Ints:
    """Return each switch's level: 1 for a leaf, else one above its lowest neighbour.

    A switch that no cable joins to the leaves is at level 2.
    """
    level = np.zeros(len(cables.names), dtype=np.int64)
    level[leaves] = 1
    a = np.concatenate([cables.a, cables.b])
    b = np.concatenate([cables.b, cables.a])
    for below in range(1, len(level) + 1):
        new = b[(level[a] == below) & (level[b] == 0)]
        if not len(new):
            break
        level[new] = below + 1
    level[level == 0] = 2
    return level


def _switch_parts(cables: _ListedCables, level: Ints) -> list[Ints]:
    """Return which part of the fabric each switch is in, for every level below the top."""
    top = int(level.max(initial=1))
    parts = [np.arange(len(level))]
    for k in range(2, top):
        inside = np.maximum(level[cables.a], level[cables.b]) <= k
        parts.append(connected_components(len(level), cables.a[inside], cables.b[inside]))
    return parts


@dataclass(frozen=True, slots=True, eq=False)
class _NetworkShape:
    """The kind of network that the cables form."""

    kind: str
    levels: tuple[str, ...]  # of the switches, outermost first
    level: Ints  # (s,), of each switch, 0 where nodes are
    # (s,), for each level of the coordinates, the leaves' own first, a number of the unit that each
    # switch is in
    units: list[Ints]
    classes: tuple[str, ...]  # link classes
    host_class: str  # the class of the cables of nodes
    kind_of: Ints  # (m,), class of each cable between switches
    parameters: dict[str, Any]
    notes: tuple[str, ...]


def _shape_of_levels(cables: _ListedCables, level: Ints, layered: bool) -> _NetworkShape:
    """Return a fat tree, or a graph of switches where the cables form no layers."""
    units = _switch_parts(cables, level) if layered else [np.arange(len(level))]
    lower = np.minimum(level[cables.a], level[cables.b])
    top = max(1, int(level.max(initial=1)) - 1)
    joined = np.unique(np.concatenate([cables.a, cables.b]))
    spines = int((level[joined] == level.max()).sum()) if len(joined) else 0
    names = [*(f"level{k}" for k in range(len(units), 1, -1)), "leaf"] if layered else ["level1"]
    return _NetworkShape(
        kind="fattree" if layered else "tree",
        levels=tuple(names),
        level=level - 1,
        units=units,
        classes=tuple(f"up{k}" for k in range(1, top + 1)) if layered else ("ib",),
        host_class="up0",
        kind_of=lower - 1 if layered else np.zeros_like(lower),
        parameters={"spines": spines} if layered else {"dist": (1, 2)},
        notes=_say_parts(cables, layered),
    )


def _shape_of_groups(cables: _ListedCables, islands: Islands) -> _NetworkShape:
    """Return a DragonFly+ or a dragonfly."""
    group, kind = islands.group, islands.kind
    across = group[cables.a] != group[cables.b]
    groups = len(np.unique(group[islands.level == 0]))
    leaves, spines = (int((islands.level == k).sum()) for k in (0, 1))
    roles = f"{leaves} leaf and {spines} spine routers" if spines else f"{leaves} routers"
    return _NetworkShape(
        kind=kind,
        levels=("group", "leaf router" if kind == "dragonfly+" else "switch"),
        level=islands.level,
        units=[np.arange(len(group)), group],
        classes=("local", "global"),
        host_class="injection",
        kind_of=across.astype(np.int64),
        parameters={},
        notes=(f"{groups} groups of {roles} in all were inferred from the cables alone",),
    )


def _make_network(
    cables: _ListedCables, attached: Attachments, shape: _NetworkShape, stated: dict[str, float]
) -> Geometry:
    """Assemble coordinates, routers and links; `stated` holds a site's bandwidths."""
    cabled, usual = attached.switch, _usual_bandwidths(cables, shape)
    leaf = _place_switches(cables, cabled)
    first = np.full(len(cables.names), len(leaf), dtype=np.int64)
    np.minimum.at(first, leaf, np.arange(len(leaf)))
    places = switch_positions(leaf, shape.level, shape.units, first)
    topology = Topology(
        kind=shape.kind,
        levels=(*shape.levels, "node"),
        extents=tuple(int(v) + 1 for v in places.coords.max(axis=0, initial=0)),
        bandwidth=stated or usual,
        parameters=shape.parameters,
    )
    ends, single = (
        (places.rank[cables.a], places.rank[cables.b]),
        np.ones(len(cables.a), dtype=np.int64),
    )
    return Geometry(
        topology=topology,
        coords=places.coords,
        router=np.where(cabled >= 0, places.rank[cabled], -1).astype(np.int32),
        router_coords=places.switches,
        router_names=cables.names[places.order],
        links=bundle_links(*ends, shape.kind_of.astype(np.int8), shape.classes, single, cables.gbs),
        attachment_gbs=_uneven_rates(attached.gbs, usual.get(shape.host_class, 0.0), topology),
        notes=shape.notes,
    )


def _uneven_rates(gbs: Floats, usual: float, topology: Topology) -> Floats | None:
    """Return GB/s of each attachment; None if all are equal.

    Where a site states another figure than the usual one of the list, each is as many times as
    fast as the usual one.
    """
    known = gbs[gbs > 0]
    if not len(known) or (known == usual).all():
        return None
    figures = topology.bandwidth
    stated = figures.get("injection", figures.get("up0", figures.get("up", usual)))
    return np.asarray(gbs * (stated / usual))


def _usual_bandwidths(cables: _ListedCables, shape: _NetworkShape) -> dict[str, float]:
    """Return the most common rate of each class's cables, the fastest in a tie."""
    rates = {shape.host_class: cables.host_gbs}
    for k, name in enumerate(shape.classes):
        rates[name] = cables.gbs[shape.kind_of == k]
    figures = {}
    for name, gbs in rates.items():
        values, counts = np.unique(gbs[gbs > 0], return_counts=True)
        if len(values):
            figures[name] = float(values[len(counts) - 1 - np.argmax(counts[::-1])])
    return figures


def _say_parts(cables: _ListedCables, layered: bool) -> tuple[str, ...]:
    if not layered:
        return ("the switches are not a fat tree: only a node's own switch is a coordinate",)
    count = len(cables.names)
    parts = len(np.unique(connected_components(count, cables.a, cables.b)))
    if parts == 1:
        return ()
    return (f"the listed fabric has {parts} parts with no cable between them",)
