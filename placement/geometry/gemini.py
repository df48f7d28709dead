"""Where the nodes of a Cray XE or XK sit: (x, y, z, node) on Gemini's torus.

Coordinates that a dump prints win over the numbering rule: small machines
number differently. Where only some nodes have printed coordinates the rule
must agree with those and tells the others.
"""

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
from placement.names.gemini import GeminiNumbering
from placement.records import Dump
from placement.support.array_types import Ints
from placement.topologies import grid

__all__ = ["LEVELS", "attach_routers", "locate_xe", "topology_of"]

LEVELS = ("x", "y", "z", "node")


def locate_xe(
    table: Table,
    parts: NDArray[np.int32],
    rule: GeminiNumbering | None,
    dumps: Sequence[Dump],
    given: Topology | None,
) -> Geometry:
    """Return where the nodes of an XE or XK sit.

    Parameters
    ----------
    table : Table
    parts : int32 (n, 5)
        Places of the nodes by their cnames.
    rule : GeminiNumbering or None
        The numbering that fits; None where coordinates alone tell.
    dumps : sequence of Dump
        Their link lists are the machine's links.
    given : Topology or None
        What a site states.

    Raises
    ------
    ParseError
        Where a node's coordinates are unknown, outside the machine, or are
        three nodes'.
    """
    coords, ruled = _coords(table, parts, rule)
    lists = [d for d in dumps if d.links is not None and d.fabric == "gemini"]
    reach = [listed.router_lists(lists)[1].max(axis=0)] if lists else []
    topology = _shape(np.vstack([coords, *reach]), rule if ruled else None, given)
    _refuse_outside(table, coords, topology)
    coords = np.column_stack([coords, parts[:, 4] % 2]).astype(np.int32)
    network = attach_routers(table, topology, coords, lists)
    return replace(network, nid=None if rule is None else rule.nid(parts))


def _coords(
    table: Table, parts: NDArray[np.int32], rule: GeminiNumbering | None
) -> tuple[NDArray[np.int32], bool]:
    """Return x, y, z of all nodes, and whether the rule holds."""
    known = table.known("coords")
    if rule is None:
        hint = "add a file that lists all coordinates"
        refuse(table, ~known, lambda row: f"the location of {table.called(row)} is unknown", hint)
        return table["coords"], False
    ruled = rule.coords(parts)[:, :3]
    if not known.any():
        return ruled, True
    printed = np.where(known[:, None], table["coords"], ruled)
    agree = bool((printed == ruled).all())
    if not agree and not known.all():
        hint = "so the nodes without coordinates cannot be placed: add a file that lists them all"

        def text(row: int) -> str:
            at, is_at = (tuple(x[row].tolist()) for x in (printed, ruled))
            return f"{table.called(row)} is at {at}, which the numbering rule says is {is_at}"

        refuse(table, (printed != ruled).any(axis=1), text, hint)
    return printed, agree


def _shape(
    coords: NDArray[np.int32], rule: GeminiNumbering | None, stated: Topology | None
) -> Topology:
    if stated is not None:
        return stated
    if rule is not None:
        return topology_of(rule.columns, rule.rows)
    extents = (*(int(v) + 1 for v in coords.max(axis=0)), 2)
    return Topology("torus", LEVELS, extents, "gemini", bandwidth=dict(FABRICS["gemini"].bandwidth))


def topology_of(columns: int, rows: int) -> Topology:
    """Return the topology of an XE or XK on a floor of so many columns and rows of cabinets."""
    extents, parameters = (columns, 2 * rows, 24, 2), {"columns": columns, "rows": rows}
    return Topology(
        "torus", LEVELS, extents, "gemini", "", dict(FABRICS["gemini"].bandwidth), parameters
    )


def _refuse_outside(table: Table, coords: NDArray[np.int32], topology: Topology) -> None:
    extents = topology.extents[:3]

    def text(row: int) -> str:
        size, at = "x".join(map(str, extents)), tuple(coords[row].tolist())
        return f"{table.called(row)} is at {at}, outside a {size} torus"

    refuse(table, ((coords < 0) | (coords >= np.array(extents))).any(axis=1), text)


def attach_routers(
    table: Table, topology: Topology, coords: NDArray[np.int32], lists: Sequence[Dump]
) -> Geometry:
    """Return the network: every position has a Gemini, or those of the link lists do."""
    extents = topology.extents[:3]
    grid.refuse_huge(extents, table.sources[0])
    router_place = grid.number(coords[:, :3], extents, first_fastest=True)
    _refuse_crowded(table, router_place, coords)
    if not lists:
        return Geometry(topology, coords, router_place.astype(np.int32)[:, None])
    return listed.gemini(lists, topology).network(coords, router_place, lists[0].source)


def _refuse_crowded(table: Table, router: Ints, coords: NDArray[np.int32]) -> None:
    """Raise where two nodes have the same place on the same Gemini."""
    key = router * 2 + coords[:, 3]
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order][1:] == key[order][:-1])
    if len(same):
        first, row = (int(order[same[0] + i]) for i in (0, 1))
        at = tuple(coords[row, :3].tolist())
        raise table.error(row, f"{table.called(row)} and {table.called(first)} are both at {at}")
