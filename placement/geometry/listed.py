# SPDX-License-Identifier: Apache-2.0
"""Crays' link lists: routers and link bundles as ``rtr --interconnect`` prints them.

Such a list has routers, not nodes. Alone it still makes a machine (`with_nodes`):
every router has all its nodes, four an Aries, two a Gemini, their NIDs follow from the
numbering rule, and as nothing tells service nodes apart, all count as compute nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nidmap.placement import topologies
from nidmap.placement.errors import ParseError
from nidmap.placement.geometry.network import Geometry, numbering_of
from nidmap.placement.machine import LISTED, Links, Topology
from nidmap.placement.names import format_cnames, parse_cnames
from nidmap.placement.names.numbering import GeminiNumbering, Xc
from nidmap.placement.records import Dump, NodeRecords
from nidmap.placement.support.array_types import Ints, Mask, Strs
from nidmap.placement.support.arrays import find_sorted
from nidmap.placement.topologies import bundle_links
from nidmap.placement.topologies.dragonfly import BLACK
from nidmap.placement.topologies.torus import link_bandwidth

#: Nodes per router.
NODES = {"aries": 4, "gemini": 2}


@dataclass(frozen=True, slots=True, eq=False)
class ListedLinks:
    """The routers and links in link lists."""

    topology: Topology  # its wiring is given by the lists
    keys: Ints  # (r,), number of each router's position in the box, ascending
    coords: NDArray[np.int32]  # (r, 3)
    names: Strs  # (r,)
    links: Links

    def network(self, coords: NDArray[np.int32], own: Ints, source: str) -> Geometry:
        """Return the network of nodes, each on its router.

        `coords` (n, 4). `own` (n,): number of the position of each node's router.
        """
        router = find_sorted(self.keys, own)
        missing = np.flatnonzero(router < 0)
        if len(missing):
            *place, _ = coords[missing[0]].tolist()
            aries = self.topology.fabric == "aries"
            at = f"router ({':'.join(map(str, place))})" if aries else f"Gemini {tuple(place)}"
            text = f"{at} is not in it, but {len(missing)} nodes need it"
            raise ParseError(source, 0, text, "are the dumps of the same machine, and complete?")
        return Geometry(
            topology=self.topology,
            coords=coords,
            router=router.astype(np.int32)[:, None],
            router_coords=self.coords,
            router_names=self.names,
            links=self.links,
        )


class _LinkEnds(NamedTuple):
    """Every physical link once: router indices, kind of its first end."""

    a: Ints
    b: Ints
    kind: Strs


def wiring_of(dumps: Sequence[Dump]) -> str:
    """Return the wiring's name for links listed by these dumps."""
    return LISTED + " and ".join(d.source for d in dumps)


def router_lists(dumps: Sequence[Dump]) -> tuple[Strs, NDArray[np.int32]]:
    """Return all routers in the dumps, and their printed coordinates (-1 unknown)."""
    names = np.unique(np.concatenate([d.routers for d in dumps if d.routers is not None]))
    coords = np.full((len(names), 3), -1, dtype=np.int32)
    for dump in dumps:
        links = dump.links
        if links is None or links.coords_a is None or links.coords_b is None:
            continue
        coords[np.searchsorted(names, links.a)] = links.coords_a
        coords[np.searchsorted(names, links.b)] = links.coords_b
    return names, coords


def blades(names: Strs) -> NDArray[np.int32]:
    """Return column, row, cage, slot and first node of routers ``c0-0c0s0a0`` or ``…g1``."""
    node = np.char.replace(np.char.replace(names, "a", "n"), "g", "n")
    parts = parse_cnames(node)
    second: Mask = np.asarray(np.char.endswith(names, "g1"))
    parts[second, 4] = 2
    return parts


def aries(dumps: Sequence[Dump], topology: Topology) -> ListedLinks:
    """Return the routers and links in an XC's link lists.

    `dumps`: with links. `topology`: its ``positions`` tell groups from cnames; its bandwidths
    count.
    """
    names, printed = router_lists(dumps)
    coords = _by_rule(names, printed, topology)
    groups = max(topology.extents[0], int(coords[:, 0].max(initial=0)) + 1)
    topology = replace(topology, extents=(groups, *topology.extents[1:]))
    keys = topologies.number_coords(coords, topology.extents[:3])
    order, ends = _index_links(dumps, names, keys)
    kinds = ("green", "black", "blue")
    single = {k: topology.bandwidth.get(k, np.nan) for k in kinds}
    kind = _kind_index(ends.kind, kinds)
    gbs = np.array([single["green"], single["black"] / BLACK, single["blue"]])[kind]
    links = bundle_links(ends.a, ends.b, kind, kinds, np.ones(len(kind), np.int64), gbs)
    parameters = {k: v for k, v in topology.parameters.items() if k != "global"}
    topology = replace(topology, wiring=wiring_of(dumps), parameters=parameters)
    return ListedLinks(topology, keys[order], coords[order], names[order], links)


def gemini(dumps: Sequence[Dump], topology: Topology) -> ListedLinks:
    """Return the Geminis and links in an XE's or XK's link lists.

    A direction of a Gemini (x+ …) has several tiles; all of them together are
    one link of the torus with one bandwidth, and `count` says how many tiles.
    """
    names, coords = router_lists(dumps)
    coords = _router_coordinates(names, coords, topology, dumps[0].source)
    extents = topology.extents[:3]
    keys = topologies.number_coords(coords, extents, first_fastest=True)
    order, ends = _index_links(dumps, names, keys)
    at = coords[order]
    kinds = ("x", "y", "z")
    axis = _kind_index(np.char.replace(np.char.replace(ends.kind, "+", ""), "-", ""), kinds)
    up: Mask = np.asarray(np.char.endswith(ends.kind, "+"))
    start = np.where(up, at[ends.a, axis], at[ends.b, axis])
    gbs = link_bandwidth(axis, start, kinds, topology.bandwidth, gemini=True)
    gbs = gbs / _tiles_of_links(ends, axis, start, extents)
    links = bundle_links(ends.a, ends.b, axis, kinds, np.ones(len(axis), np.int64), gbs)
    topology = replace(topology, wiring=wiring_of(dumps))
    return ListedLinks(topology, keys[order], at, names[order], links)


def _by_rule(names: Strs, printed: NDArray[np.int32], topology: Topology) -> NDArray[np.int32]:
    """Return the routers' coordinates: as printed, else by the stated rule."""
    rule = numbering_of(topology) if (printed < 0).any() else None
    ruled = printed if rule is None else rule.coords(blades(names))[:, :3]
    return np.where(printed[:, :1] >= 0, printed, ruled)


def _router_coordinates(
    names: Strs, printed: NDArray[np.int32], topology: Topology, source: str
) -> NDArray[np.int32]:
    """Return x, y, z of all Geminis: as printed, else by the numbering rule."""
    coords = _by_rule(names, printed, topology)
    wrong = ((coords < 0) | (coords >= np.array(topology.extents[:3]))).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        at = tuple(coords[row].tolist())
        where = "has no coordinates" if min(at) < 0 else f"is at {at}, outside the machine"
        raise ParseError(source, 0, f"{names[row]} {where}", "are the dumps of one machine?")
    return coords


def _tiles_of_links(
    ends: _LinkEnds, axis: NDArray[np.int8], start: Ints, extents: Sequence[int]
) -> Ints:
    """Return, for each tile-to-tile link, how many tiles form the same torus link."""
    low, high = np.minimum(ends.a, ends.b), np.maximum(ends.a, ends.b)
    size = int(np.prod(extents))
    key = ((low * size + high) * 3 + axis) * max(extents) + start
    _, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    tiles: Ints = count[inverse]
    return tiles


def _kind_index(words: Strs, kinds: Sequence[str]) -> NDArray[np.int8]:
    return np.asarray(np.argmax(words[:, None] == np.array(kinds), axis=1), dtype=np.int8)


def _index_links(dumps: Sequence[Dump], names: Strs, position: Ints) -> tuple[Ints, _LinkEnds]:
    """Return the routers' order by position, and each physical link between them once."""
    order = np.argsort(position, kind="stable")
    rank = np.argsort(order)
    rows = [_drop_far_ends(d, names, rank) for d in dumps if d.links is not None]
    port = np.concatenate([r[0] for r in rows])
    _, first = np.unique(port, return_index=True)  # two dumps may list the same link
    return order, _LinkEnds(*(np.concatenate([r[i] for r in rows])[first] for i in (1, 2, 3)))


def _drop_far_ends(dump: Dump, names: Strs, rank: Ints) -> tuple[Ints, Ints, Ints, Strs]:
    """Keep one row per link, its lower end's, of a dump that lists both ends."""
    links = dump.links
    assert links is not None
    a, b = rank[np.searchsorted(names, links.a)], rank[np.searchsorted(names, links.b)]
    near, far = a * 1024 + links.a_port, b * 1024 + links.b_port
    kept = near < far
    return near[kept], a[kept], b[kept], links.kind[kept]


def with_nodes(dump: Dump) -> Dump:
    """Return the dump with its routers' nodes, or unchanged if it lists none."""
    if dump.fabric not in NODES or dump.routers is None or dump.nodes is not None:
        return dump
    per = NODES[dump.fabric]
    names, coords = router_lists([dump])
    parts = np.repeat(blades(names), per, axis=0)
    parts[:, 4] += np.tile(np.arange(per, dtype=np.int32), len(names))
    rule = (
        _xc_numbering(dump, parts)
        if dump.fabric == "aries"
        else _gemini_numbering(dump, parts, coords)
    )
    nodes = NodeRecords(
        line=np.zeros(len(parts), dtype=np.int32),
        nid=rule.nid(parts),
        cname=format_cnames(parts),
    )
    return replace(dump, nodes=nodes)


def _xc_numbering(dump: Dump, parts: NDArray[np.int32]) -> Xc:
    stated = dump.parameters.get("positions")
    if isinstance(stated, int):
        return Xc(stated)
    if parts[:, 1].max() > 0:
        hint = "add xtprocadmin's output or name the site"
        raise ParseError(
            dump.source, 0, "the number of cabinets per row does not follow from its groups", hint
        )
    return Xc(int(parts[:, 0].max()) // 2 * 2 + 2)


def _gemini_numbering(
    dump: Dump, parts: NDArray[np.int32], coords: NDArray[np.int32]
) -> GeminiNumbering:
    extents = dump.parameters.get("extents")
    if isinstance(extents, tuple):
        rule = GeminiNumbering(int(extents[0]), max(1, int(extents[1]) // 2))
        if bool((rule.coords(parts)[::2, :3] == coords).all()):
            return rule
    hint = "add the nodes: xtprocadmin's output, a system map or a coordinate file"
    raise ParseError(dump.source, 0, "the NIDs do not follow from its coordinates", hint)
