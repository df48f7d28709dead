# SPDX-License-Identifier: Apache-2.0
"""Node positions: one module per kind of machine, selected by the evidence.

A site's own positions count first, then cables that a dump lists,
then cnames (an XC, an XE or XK, or an EX, told apart by how the NIDs and
coordinates fit), then a torus or tree that Slurm describes.
Where nothing says anything, all nodes count as equally near.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nidmap.placement import topologies
from nidmap.placement.geometry import cabled, cray_nids, slingshot, slurm_tree
from nidmap.placement.geometry.network import Geometry, refuse_first
from nidmap.placement.machine import Topology
from nidmap.placement.names import parse_cnames
from nidmap.placement.node_table import Table
from nidmap.placement.records import Dump
from nidmap.placement.support.array_types import Ints

if TYPE_CHECKING:
    from nidmap.placement.geometry.slingshot import GroupRule
    from nidmap.placement.topologies.source import Source

__all__ = ["Geometry", "locate_nodes", "number_positions"]


def locate_nodes(
    table: Table,
    dumps: Sequence[Dump],
    site: Source | None = None,
    groups: GroupRule | None = None,
    places: NDArray[np.int32] | None = None,
) -> Geometry:
    """Return the topology of a machine and the positions of its nodes.

    `table`: the nodes, in their final order. `dumps`: for links, switches and what fabric they
    are of. `site`: the site (or the spec) that states the network. `groups`: how xnames make
    groups. `places` (m, levels): where that site has nodes, listed or not.
    """
    stated = None if site is None else site.topology()
    if stated is not None and table.known("position").all():
        return _network_as_given(table, dumps, stated)
    lists = [dump for dump in dumps if dump.links is not None and dump.kind == "cables"]
    if lists:
        return cabled.locate_hosts(table, lists, stated)
    if not table.has("cname"):
        return _by_slurm(table, dumps)
    parts = parse_cnames(table["cname"])
    good = (parts >= 0).all(axis=1)
    if not good.any():
        bandwidth = None if stated is None else stated.bandwidth
        return slingshot.locate_ex(table, dumps, groups, bandwidth)
    refuse_first(
        table, ~good, lambda row: f"{table.called(row)} is not a node's cname, unlike the others"
    )
    return cray_nids.locate_cray(table, parts, dumps, site, places)


def _network_as_given(table: Table, dumps: Sequence[Dump], topology: Topology) -> Geometry:
    """Return the network of a site or spec that positions its nodes itself."""
    coords = table["position"].astype(np.int32)
    lists = [d for d in dumps if d.links is not None and d.fabric == topology.fabric]
    if topology.fabric == "aries":
        return cray_nids.attach_aries(topology, coords, lists)
    if topology.fabric == "gemini":
        return cray_nids.attach_geminis(table, topology, coords, lists)
    return number_positions(topology, coords, _stated_attachments(table, dumps))


def _stated_attachments(table: Table, dumps: Sequence[Dump]) -> Ints | None:
    """Return the switches of each node's NICs as a site states them, in table order."""
    for dump in dumps:
        switches = dump.parameters.get("attachments")
        if isinstance(switches, np.ndarray) and len(switches) == len(table):
            rows: Ints = switches[table["row"]]
            return rows
    return None


def number_positions(
    topology: Topology, coords: NDArray[np.int32], switches: Ints | None = None
) -> Geometry:
    """Return a network in which every position has a router.

    `coords` (n, levels). `switches` (n, k): with several NICs: the group's switches that each
    node's are on; None takes a rule.
    """
    if topology.kind.startswith("dragonfly") and topology.router_levels == 2:
        return slingshot.attach_switches(topology, coords, switches)
    extents = topology.extents[: topology.router_levels]
    first = topologies.number_coords(coords[:, : len(extents)], extents, topology.kind == "torus")
    nics = int(topology.parameters.get("up", (1,))[0]) if topology.kind == "fattree" else 1
    router = first[:, None] * nics + np.arange(nics)
    return Geometry(topology, coords, router.astype(np.int32))


def _by_slurm(table: Table, dumps: Sequence[Dump]) -> Geometry:
    """Return the network that Slurm's topology describes."""
    for dump in reversed(dumps):
        if dump.switches:
            return slurm_tree.locate_leaves(table, dump)
    return slurm_tree.place_alike(table)
