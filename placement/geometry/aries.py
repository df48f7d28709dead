"""Where the nodes of a Cray XC sit: (group, chassis, blade, node) by their cnames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from placement.dumps.tables import Table
from placement.fabrics import FABRICS
from placement.geometry import listed
from placement.geometry.network import Geometry, refuse
from placement.machine import Topology
from placement.names.xc import Xc
from placement.records import Dump
from placement.topologies import grid

__all__ = ["LEVELS", "attach_routers", "locate_xc", "topology_of"]

LEVELS = ("group", "chassis", "blade", "node")

#: Chassis a group, blades a chassis, nodes a blade: the same on every XC.
GROUP = (6, 16, 4)

#: Blue links a group pair where nothing states them: two blades a chassis, as on Edison.
ASSUMED_LINKS = 24


def locate_xc(
    table: Table,
    parts: NDArray[np.int32],
    xc: Xc,
    dumps: Sequence[Dump],
    given: Topology | None,
    places: NDArray[np.int32] | None = None,
) -> Geometry:
    """Return where the nodes of an XC sit.

    Parameters
    ----------
    table : Table
    parts : int32 (n, 5)
        Places of the nodes by their cnames.
    xc : Xc
        The machine's numbering.
    dumps : sequence of Dump
        Their link lists are the machine's links.
    given : Topology or None
        What a site states.
    places : int32 (m, 4) or None
        Where that site has nodes.

    Raises
    ------
    ParseError
        Where coordinates contradict a cname, or a node's router is in no
        link list.
    """
    coords = xc.coords(parts)
    _refuse_other_coords(table, coords)
    topology, notes = _shape(coords, xc.positions, given)
    network = attach_routers(topology, coords, [d for d in dumps if d.fabric == "aries"], places)
    return replace(network, nid=xc.nid(parts), notes=() if network.links else notes)


def _refuse_other_coords(table: Table, coords: NDArray[np.int32]) -> None:
    known = table.known("coords")
    if not known.any():
        return

    def text(row: int) -> str:
        at, is_at = (tuple(x[row].tolist()) for x in (table["coords"], coords[:, :3]))
        return f"{table.called(row)} is at {at} by one dump, but its name says {is_at}"

    wrong = known & (table["coords"] != coords[:, :3]).any(axis=1)
    refuse(table, wrong, text, "are the dumps of the same machine?")


def _shape(
    coords: NDArray[np.int32], positions: int, stated: Topology | None
) -> tuple[Topology, tuple[str, ...]]:
    """Return the topology of an XC with these nodes, and what was assumed."""
    groups = int(coords[:, 0].max(initial=-1)) + 1
    if stated is not None:
        extents = (max(groups, stated.extents[0]), *stated.extents[1:])
        return replace(stated, extents=extents), ()
    topology = topology_of(groups, positions, "same-chassis", ASSUMED_LINKS)
    note = (
        f"blue links assumed: wiring same-chassis with {ASSUMED_LINKS} a group pair "
        "(stated by no link list or site)"
    )
    return topology, (note,)


def topology_of(groups: int, positions: int, wiring: str, links: int) -> Topology:
    """Return the topology of an XC.

    Parameters
    ----------
    groups : int
        Absent ones counted.
    positions : int
        Cabinet positions in a row.
    wiring : str
        How blue links join groups (`placement.topologies.wiring`).
    links : int
        Blue links a group pair.
    """
    parameters = {"positions": positions, "global": links}
    extents, gbs = (groups, *GROUP), dict(FABRICS["aries"].bandwidth)
    return Topology("dragonfly", LEVELS, extents, "aries", wiring, gbs, parameters)


def attach_routers(
    topology: Topology,
    coords: NDArray[np.int32],
    dumps: Sequence[Dump],
    places: NDArray[np.int32] | None = None,
) -> Geometry:
    """Return the network with its routers: those of the link lists, else those of the nodes.

    A site's routers (`places`) are there too when a dump lists only some of
    the nodes: the wiring rules count the groups that the machine has.
    """
    lists = [d for d in dumps if d.links is not None]
    router_place = grid.number(coords[:, :3], topology.extents[:3])
    if not lists:
        more = (
            router_place[:0] if places is None else grid.number(places[:, :3], topology.extents[:3])
        )
        keys, inverse = np.unique(np.concatenate([router_place, more]), return_inverse=True)
        router = inverse[: len(router_place)].astype(np.int32)[:, None]
        box = np.column_stack(np.unravel_index(keys, topology.extents[:3]))
        return Geometry(topology, coords, router, box.astype(np.int32))
    return listed.aries(lists, topology).network(coords, router_place, lists[0].source)
