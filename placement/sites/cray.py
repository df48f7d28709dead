"""Cray XC, XE and XK: the nodes in cabinets on a floor, their NIDs by rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.machine import Topology
from placement.records import NodeRecords
from placement.sites.cabinets import COMPUTE, SERVICE, cabinet_count, floor, select
from placement.sites.naming import node_names
from placement.sites.schema import Aries, Gemini
from placement.sites.shared import ON_SLINGSHOT, Layout, forbid, inventory, same
from placement.sites.wrong import WrongFigure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.names import Gemini as GeminiRule
    from placement.names import Xc
    from placement.sites.schema import Cabinets, Config

    Ints = NDArray[np.int64]

__all__ = ["lay_out"]

#: What every XC has: chassis a group, blades a chassis, nodes a blade.
_FIXED = {"chassis": 6, "blades": 16, "nodes": 4}


def lay_out(config: Config, network: Aries | Gemini) -> Layout:
    """Return the nodes on the floor of a Cray XC, XE or XK."""
    if config.cabinets is None:
        raise WrongFigure("cabinets", "missing: columns and rows of cabinets")
    forbid(config, "a Cray with cabinets", ON_SLINGSHOT)
    places = floor(config.cabinets, 16 if isinstance(network, Aries) else 8)
    row, column, cage, slot, node = np.nonzero(places)
    parts = np.column_stack([column, row, cage, slot, node]).astype(np.int32)
    rule = _rule(config.cabinets, network)
    nid = rule.nid(parts)
    role = places[row, column, cage, slot, node]
    of = _partitions(config, places)[row, column, cage, slot, node]
    if (np.diff(nid) < 0).any():
        order = np.argsort(nid)
        nid, parts, role, of = nid[order], parts[order], role[order], of[order]
    coords = rule.coords(parts)
    return Layout(
        _cray_topology(config.cabinets, network, places, coords),
        _cray_nodes(config, nid, parts, coords, role, of),
    )


def _rule(cabinets: Cabinets, network: Aries | Gemini) -> Xc | GeminiRule:
    from placement.names import Gemini as GeminiRule
    from placement.names import Xc

    columns, rows = cabinets.columns.value, cabinets.rows.value
    if isinstance(network, Gemini):
        return GeminiRule(columns, rows)
    return Xc(columns)


def _cray_nodes(
    config: Config,
    nid: Ints,
    parts: NDArray[np.int32],
    coords: NDArray[np.int32],
    role: NDArray[np.int8],
    of: Ints,
) -> NodeRecords:
    from placement.names import format_cnames

    name = config.nodes.name.value if config.nodes.name else "nid{nid:05}"
    return NodeRecords(
        nid=nid,
        name=node_names("nodes.name", name, {"nid": nid}),
        cname=format_cnames(parts),
        role=np.where(role == SERVICE, "service", "compute"),
        position=coords,
        **inventory(config, np.where(role == SERVICE, -1, of)),
    )


def _cray_topology(
    cabinets: Cabinets,
    network: Aries | Gemini,
    places: NDArray[np.int8],
    coords: NDArray[np.int32],
) -> Topology:
    same("cabinets.count", cabinets.count, cabinet_count(places), "the number on the floor")
    columns, rows = cabinets.columns.value, cabinets.rows.value
    if isinstance(network, Gemini):
        extents = (columns, 2 * rows, 24)
        text = "what columns, 2 x rows and 24 give"
        same("network.extents", network.extents, extents, text)
        levels: tuple[str, ...] = ("x", "y", "z", "node")
        shape = {"columns": columns, "rows": rows}
        return Topology("torus", levels, (*extents, 2), 3, parameters=shape)
    present = np.flatnonzero(np.bincount(coords[:, 0]))
    same("network.groups", network.groups, len(present), "the number of groups on the floor")
    for key, size in _FIXED.items():
        same(f"network.{key}", getattr(network, key), size, "what an XC has")
    return Topology(
        kind="dragonfly",
        levels=("group", "chassis", "blade", "node"),
        extents=(int(present[-1]) + 1, 6, 16, 4),
        router_levels=3,
        wiring=network.wiring.value,
        parameters={"positions": columns, "global": network.links.value},
    )


def _partitions(config: Config, places: NDArray[np.int8]) -> Ints:
    """Return the number of the partition that each place belongs to, -1 where none is known."""
    of = np.full(places.shape, -1, np.int64)
    for number, part in enumerate(config.partition):
        if part.where is not None:
            key = f"partition.{part.name}.where"
            mask = select(key, part.where.value, places.shape) & (places == COMPUTE)
            if (of[mask] >= 0).any():
                raise WrongFigure(key, "some of these places belong to another partition already")
            of[mask] = number
            same(f"partition.{part.name}.count", part.count, int(mask.sum()), "what it selects")
    rest = [number for number, part in enumerate(config.partition) if part.where is None]
    if len(rest) == 1:
        left = (of < 0) & (places == COMPUTE)
        of[left] = rest[0]
        part = config.partition[rest[0]]
        same(f"partition.{part.name}.count", part.count, int(left.sum()), "what is left for it")
    return of
