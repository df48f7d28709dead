# SPDX-License-Identifier: Apache-2.0
"""Positions of a Cray's nodes, and whether it is an XC or an XE/XK, by the best fit.

The rule that gives every node its NID wins; where one node in hundreds
disagrees, that node's line is wrong and is named. A small Gemini machine
numbers its nodes differently: then its coordinate file is what counts.

Coordinates that a dump prints win over the numbering rule: small machines
number differently. Where only some nodes have printed coordinates the rule
must agree with those and tells the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nidmap.placement import topologies
from nidmap.placement.errors import ParseError
from nidmap.placement.fabrics import FABRICS
from nidmap.placement.geometry import listed
from nidmap.placement.geometry.network import Geometry, Rule, numbering_of, refuse_first
from nidmap.placement.lookup import first_repeat
from nidmap.placement.machine import Topology
from nidmap.placement.names.numbering import GeminiNumbering, Xc
from nidmap.placement.node_table import Table
from nidmap.placement.records import Dump
from nidmap.placement.support.array_types import Ints, Ints32

if TYPE_CHECKING:
    from nidmap.placement.topologies.source import Source


def locate_cray(
    table: Table,
    parts: Ints32,
    dumps: Sequence[Dump],
    site: Source | None,
    places: Ints32 | None,
) -> Geometry:
    """Return the network implied by cnames.

    `parts` (n, 5): places of the nodes by their cnames. `dumps`: for links, and the fabric that
    coordinates or links tell. `places` (m, levels): where that site has nodes, listed or not.
    """
    if site is None:
        fabrics = {d.fabric for d in dumps} & {"aries", "gemini"}
        stated, rule = (
            None,
            _fitting_numbering(table, parts, min(fabrics) if len(fabrics) == 1 else ""),
        )
    else:
        stated = site.topology()
        rule = numbering_of(stated)
        if rule is None:
            what = f"{site.name} is {stated.fabric or stated.kind}"
            raise table.error(0, f"its nodes are a Cray XC's or XE's, but {what}")
        if isinstance(rule, Xc) or not table.has("coords"):  # a torus's coordinates decide
            _refuse_wrong_nids(table, parts, rule, f"as {site.name} has")
    if isinstance(rule, Xc):
        return locate_xc(table, parts, rule, dumps, stated, places)
    return locate_xe(table, parts, rule, dumps, stated)


def _fitting_numbering(table: Table, parts: Ints32, fabric: str) -> Rule | None:
    """Return the numbering that yields every node's NID; None for a torus without one."""
    nid = table["nid"]
    kinds: tuple[type[Xc] | type[GeminiNumbering], ...] = (Xc, GeminiNumbering)
    if fabric:
        kinds = (Xc,) if fabric == "aries" else (GeminiNumbering,)
    for kind in kinds:
        if (rule := kind.fit(parts, nid)) is not None:
            return rule
    if fabric == "gemini":
        return None
    for kind in kinds:
        if (rule := _vote_numbering(kind, parts, nid)) is not None:
            by = f"the {rule.title} rule that most nodes follow"
            _refuse_wrong_nids(table, parts, rule, by)
    text, hint = "its nodes have no NIDs", "name the site too: -m SITE -m DUMP"
    if table.has("nid"):
        text = "its NIDs follow neither the numbering of an XC nor that of an XE or XK"
        hint = "add a coordinate file of the machine, or name its site: -m SITE -m DUMP"
    raise ParseError(table.sources[0], 0, text, hint)


def most_follow(parts: Ints32, nid: Ints) -> Rule | None:
    """Return the numbering that most of the nodes follow: an XC's, else an XE's."""
    return _vote_numbering(Xc, parts, nid) or _vote_numbering(GeminiNumbering, parts, nid)


def _vote_numbering(
    kind: type[Xc] | type[GeminiNumbering], parts: Ints32, nid: Ints
) -> Rule | None:
    voted = kind.vote(parts, nid)
    return voted[0] if voted is not None and 2 * voted[1].sum() > len(nid) else None


def first_wrong(table: Table, parts: Ints32, rule: Rule) -> Ints:
    """Return the rows whose NID differs from the one that the rule gives for their cname."""
    nid = table["nid"]
    return np.flatnonzero((nid >= 0) & (rule.nid(parts) != nid))


def _refuse_wrong_nids(table: Table, parts: Ints32, rule: Rule, hint: str) -> None:
    """Raise ParseError at the first node whose NID contradicts the rule for its cname."""
    wrong = first_wrong(table, parts, rule)
    if len(wrong):
        row, more = int(wrong[0]), f"; {len(wrong)} such nodes in all" if len(wrong) > 1 else ""
        raise table.error(row, wrong_nid(table, parts, rule, row), hint + more)


def wrong_nid(table: Table, parts: Ints32, rule: Rule, row: int) -> str:
    """Explain why the NID of a row is wrong."""
    expected = int(rule.nid(parts[row : row + 1])[0])
    name, nid = table.called(row), int(table["nid"][row])
    if expected < 0:
        return f"{name} is outside a machine of {rule.floor}"
    return f"NID {nid} is not {name}'s, which is {expected} with {rule.floor}"


XC_LEVELS = ("group", "chassis", "blade", "node")

#: Chassis per group, blades per chassis, nodes per blade: the same on every XC.
GROUP = (6, 16, 4)

#: Blue links per group pair if not stated: two blades per chassis, as on Edison.
ASSUMED_LINKS = 24


def locate_xc(
    table: Table,
    parts: NDArray[np.int32],
    xc: Xc,
    dumps: Sequence[Dump],
    stated: Topology | None,
    places: NDArray[np.int32] | None = None,
) -> Geometry:
    """Return the positions of an XC's nodes.

    `parts` (n, 5): places of the nodes by their cnames. `xc`: the machine's numbering. `dumps`:
    their link lists are the machine's links. `stated`: what a site states. `places` (m, 4): where
    that site has nodes.
    """
    coords = xc.coords(parts)
    _refuse_other_coords(table, coords)
    topology, notes = _xc_shape(coords, xc.positions, stated)
    network = attach_aries(topology, coords, [d for d in dumps if d.fabric == "aries"], places)
    return replace(network, nid=xc.nid(parts), notes=() if network.links else notes)


def _refuse_other_coords(table: Table, coords: NDArray[np.int32]) -> None:
    known = table.known("coords")
    if not known.any():
        return

    def text(row: int) -> str:
        at, is_at = (tuple(x[row].tolist()) for x in (table["coords"], coords[:, :3]))
        return f"{table.called(row)} is at {at} according to one dump, but its name says {is_at}"

    wrong = known & (table["coords"] != coords[:, :3]).any(axis=1)
    refuse_first(table, wrong, text, "are the dumps of the same machine?")


def _xc_shape(
    coords: NDArray[np.int32], positions: int, stated: Topology | None
) -> tuple[Topology, tuple[str, ...]]:
    """Return the topology of an XC with these nodes, and the assumptions made."""
    groups = int(coords[:, 0].max(initial=-1)) + 1
    if stated is not None:
        extents = (max(groups, stated.extents[0]), *stated.extents[1:])
        return replace(stated, extents=extents), ()
    topology = xc_topology(groups, positions, "same-chassis", ASSUMED_LINKS)
    note = (
        f"blue links assumed: wiring same-chassis with {ASSUMED_LINKS} per group pair "
        "(stated by no link list or site)"
    )
    return topology, (note,)


def xc_topology(groups: int, positions: int, wiring: str, links: int) -> Topology:
    """Return the topology of an XC.

    `groups`: absent ones counted. `positions`: cabinet positions in a row. `wiring`: how blue
    links join groups (`nidmap.placement.topologies.dragonfly`). `links`: blue links per group
    pair.
    """
    parameters = {"positions": positions, "global": links}
    extents, gbs = (groups, *GROUP), dict(FABRICS["aries"].bandwidth)
    return Topology("dragonfly", XC_LEVELS, extents, "aries", wiring, gbs, parameters)


def attach_aries(
    topology: Topology,
    coords: NDArray[np.int32],
    dumps: Sequence[Dump],
    places: NDArray[np.int32] | None = None,
) -> Geometry:
    """Return the network with its routers: those in link lists, else those of the nodes.

    A site's routers (`places`) are there too when a dump lists only some of
    the nodes: the wiring rules count the groups that the machine has.
    """
    lists = [d for d in dumps if d.links is not None]
    router_place = topologies.number_coords(coords[:, :3], topology.extents[:3])
    if not lists:
        more = (
            router_place[:0]
            if places is None
            else topologies.number_coords(places[:, :3], topology.extents[:3])
        )
        keys, inverse = np.unique(np.concatenate([router_place, more]), return_inverse=True)
        router = inverse[: len(router_place)].astype(np.int32)[:, None]
        box = np.column_stack(np.unravel_index(keys, topology.extents[:3]))
        return Geometry(topology, coords, router, box.astype(np.int32))
    return listed.aries(lists, topology).network(coords, router_place, lists[0].source)


XE_LEVELS = ("x", "y", "z", "node")


def locate_xe(
    table: Table,
    parts: NDArray[np.int32],
    rule: GeminiNumbering | None,
    dumps: Sequence[Dump],
    stated: Topology | None,
) -> Geometry:
    """Return the positions of an XE's or XK's nodes.

    `parts` (n, 5): places of the nodes by their cnames. `rule`: the numbering that fits; None
    where coordinates alone tell. `dumps`: their link lists are the machine's links. `stated`:
    what a site states.
    """
    coords, ruled = _torus_coords(table, parts, rule)
    lists = [d for d in dumps if d.links is not None and d.fabric == "gemini"]
    reach = [listed.router_lists(lists)[1].max(axis=0)] if lists else []
    topology = _xe_shape(np.vstack([coords, *reach]), rule if ruled else None, stated)
    _refuse_outside(table, coords, topology)
    coords = np.column_stack([coords, parts[:, 4] % 2]).astype(np.int32)
    network = attach_geminis(table, topology, coords, lists)
    return replace(network, nid=None if rule is None else rule.nid(parts))


def _torus_coords(
    table: Table, parts: NDArray[np.int32], rule: GeminiNumbering | None
) -> tuple[NDArray[np.int32], bool]:
    """Return x, y, z of all nodes, and whether the numbering rule holds."""
    known = table.known("coords")
    if rule is None:
        hint = "add a file that lists all coordinates"
        refuse_first(
            table, ~known, lambda row: f"the location of {table.called(row)} is unknown", hint
        )
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

        refuse_first(table, (printed != ruled).any(axis=1), text, hint)
    return printed, agree


def _xe_shape(
    coords: NDArray[np.int32], rule: GeminiNumbering | None, stated: Topology | None
) -> Topology:
    if stated is not None:
        return stated
    if rule is not None:
        return xe_topology(rule.columns, rule.rows)
    extents = (*(int(v) + 1 for v in coords.max(axis=0)), 2)
    return Topology(
        "torus", XE_LEVELS, extents, "gemini", bandwidth=dict(FABRICS["gemini"].bandwidth)
    )


def xe_topology(columns: int, rows: int) -> Topology:
    """Return the topology of an XE or XK with the given columns and rows of cabinets."""
    extents, parameters = (columns, 2 * rows, 24, 2), {"columns": columns, "rows": rows}
    return Topology(
        "torus", XE_LEVELS, extents, "gemini", "", dict(FABRICS["gemini"].bandwidth), parameters
    )


def _refuse_outside(table: Table, coords: NDArray[np.int32], topology: Topology) -> None:
    extents = topology.extents[:3]

    def text(row: int) -> str:
        size, at = "x".join(map(str, extents)), tuple(coords[row].tolist())
        return f"{table.called(row)} is at {at}, outside a {size} torus"

    refuse_first(table, ((coords < 0) | (coords >= np.array(extents))).any(axis=1), text)


def attach_geminis(
    table: Table, topology: Topology, coords: NDArray[np.int32], lists: Sequence[Dump]
) -> Geometry:
    """Return the network with a Gemini at every position, or those in the link lists."""
    extents = topology.extents[:3]
    topologies.refuse_huge(extents, table.sources[0])
    router_place = topologies.number_coords(coords[:, :3], extents, first_fastest=True)
    _refuse_crowded(table, router_place, coords)
    if not lists:
        return Geometry(topology, coords, router_place.astype(np.int32)[:, None])
    return listed.gemini(lists, topology).network(coords, router_place, lists[0].source)


def _refuse_crowded(table: Table, router: Ints, coords: NDArray[np.int32]) -> None:
    """Raise where two nodes occupy the same place on the same Gemini."""
    if repeat := first_repeat(router * 2 + coords[:, 3]):
        first, row = repeat
        at = tuple(coords[row, :3].tolist())
        raise table.error(row, f"{table.called(row)} and {table.called(first)} are both at {at}")
