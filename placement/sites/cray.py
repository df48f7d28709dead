"""Cray XC, XE and XK: the nodes in cabinets on a floor, their NIDs by rule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placement.machine import Topology
from placement.names.columns import format_cnames
from placement.names.gemini import Gemini as GeminiRule
from placement.names.xc import Xc
from placement.records import NodeRecords
from placement.sites.cabinets import COMPUTE, SERVICE, cabinet_count, floor, select
from placement.sites.naming import node_names
from placement.sites.schema import Aries, Cabinets, Config, Gemini
from placement.sites.shared import ON_SLINGSHOT, Layout, WrongFigure, forbid, inventory, same

__all__ = ["lay_out"]

#: What every XC has: chassis a group, blades a chassis, nodes a blade.
_FIXED = {"chassis": 6, "blades": 16, "nodes": 4}


def lay_out(config: Config, network: Aries | Gemini) -> Layout:
    """Return the nodes on the floor of a Cray XC, XE or XK."""
    if config.cabinets is None:
        raise WrongFigure("cabinets", "missing: columns and rows of cabinets")
    forbid(config, "a Cray with cabinets", ON_SLINGSHOT)
    places = floor(config.cabinets, 16 if isinstance(network, Aries) else 8)
    where = np.nonzero(places)
    parts = np.column_stack([where[axis] for axis in (1, 0, 2, 3, 4)]).astype(np.int32)
    columns, rows = config.cabinets.columns.value, config.cabinets.rows.value
    gemini = isinstance(network, Gemini)
    rule = GeminiRule(columns, rows) if gemini else Xc(columns)
    nid, service = rule.nid(parts), places[where] == SERVICE
    of = np.where(service, -1, _partitions(config, places)[where])
    order = np.argsort(nid, kind="stable")
    nid, parts, service, of = nid[order], parts[order], service[order], of[order]
    coords = rule.coords(parts)
    name = config.nodes.name.value if config.nodes.name else "nid{nid:05}"
    nodes = NodeRecords(
        nid=nid,
        name=node_names("nodes.name", name, {"nid": nid}),
        cname=format_cnames(parts),
        role=np.where(service, "service", "compute"),
        position=coords,
        **inventory(config, of),
    )
    return Layout(_cray_topology(config.cabinets, network, places, coords), nodes)


def _cray_topology(
    cabinets: Cabinets, network: Aries | Gemini, places: NDArray[np.int8], coords: NDArray[np.int32]
) -> Topology:
    same("cabinets.count", cabinets.count, cabinet_count(places), "the number on the floor")
    columns, rows = cabinets.columns.value, cabinets.rows.value
    if isinstance(network, Gemini):
        extents = (columns, 2 * rows, 24)
        same("network.extents", network.extents, extents, "what columns, 2 x rows and 24 give")
        shape = {"columns": columns, "rows": rows}
        return Topology("torus", ("x", "y", "z", "node"), (*extents, 2), 3, parameters=shape)
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


def _partitions(config: Config, places: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the number of the partition that each place belongs to, -1 where none is known."""
    of = np.full(places.shape, -1, np.int64)
    compute = places == COMPUTE
    rest = [number for number, part in enumerate(config.partition) if part.where is None]
    for number, part in enumerate(config.partition):
        if part.where is not None:
            key = f"partition.{part.name}.where"
            mask = select(key, part.where.value, places.shape) & compute
            if (of[mask] >= 0).any():
                raise WrongFigure(key, "some of these places belong to another partition already")
            of[mask] = number
            same(f"partition.{part.name}.count", part.count, int(mask.sum()), "what it selects")
    if len(rest) == 1:
        part, left = config.partition[rest[0]], (of < 0) & compute
        of[left] = rest[0]
        same(f"partition.{part.name}.count", part.count, int(left.sum()), "what is left for it")
    return of
