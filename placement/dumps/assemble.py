# SPDX-License-Identifier: Apache-2.0
"""Assembles a `Machine` from dumps: names and states from one, links from another.

In one pass: what contradicts itself is refused at the file and line it is on, the nodes
are joined into one table (what a later dump says of a node replaces what an earlier one said),
`nidmap.placement.geometry` finds where they sit, and the columns become a machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nidmap.placement.dumps.contradictions import contradictions
from nidmap.placement.errors import ParseError, at_line
from nidmap.placement.geometry import Geometry, listed, locate_nodes, slurm_tree
from nidmap.placement.geometry.slingshot import GroupRule
from nidmap.placement.lookup import first_repeat
from nidmap.placement.machine import Machine, Switches
from nidmap.placement.names import nid_names
from nidmap.placement.node_table import (
    KEYS,
    UNKNOWN,
    Table,
    is_known,
    match_rows,
    refuse_other_nodes,
)
from nidmap.placement.records import Dump
from nidmap.placement.support.array_types import Array, Ints, Ints32, Strs
from nidmap.placement.support.quantities import counted

if TYPE_CHECKING:
    from nidmap.placement.topologies.source import Source

#: State of a node that Slurm does not list although it lists others.
UNLISTED = "unlisted"

#: Dumps that list nodes are joined before those that add to them; otherwise the order given counts.
_RANKS = {"site": 0, "inventory": 2, "topology": 3, "states": 4}

#: Remarks on a dump that change the machine's contents or layout: every plan repeats them.
_SAID_OF_PLANS = ("two-leaves", "unnamed-host", "discovery")


def assemble(
    dumps: Sequence[Dump],
    site: Source | None = None,
    name: str = "",
    groups: GroupRule | None = None,
    prefer: str = "",
) -> Machine:
    """Build the machine that several dumps describe together.

    `dumps`: in any order. Nodes are joined by NID, cname or name; Slurm's states count more than
    a Cray's. `site`: states what the dumps do not: the numbering, the wiring, bandwidths, what is
    in a node; and the nodes themselves where no dump says where they are. `name`: what to call
    the machine; '' takes the site's or the first dump's. `groups`: how xnames make dragonfly
    groups. `prefer`: ``last`` takes the word of the last dump where some contradict one another;
    '' refuses them. Rows in NID order. A node whose role no source gives is a compute node; one
    whose state no source gives is up.
    """
    for dump in dumps:
        for fault in dump.findings:
            if fault.fault:
                raise fault.error()
    apart = contradictions(dumps, site)
    if apart.findings and prefer != "last":
        raise apart.error()
    dumps = apart.settle(dumps)
    if site is None and not any(d.nodes is not None and len(d.nodes) for d in dumps):
        dumps = [listed.with_nodes(d) for d in dumps]  # a single link list implies its nodes
    table = _join_nodes(dumps, site, as_given=prefer == "last").in_nid_order()
    if apart.findings:
        first = apart.findings[0].text
        table.notes.append(f"of {len(apart.findings)} contradictions the last dump counts: {first}")
    places = None if site is None else _places_of(site, apart.absent)
    network = locate_nodes(table, dumps, site, groups, places)
    table.notes += [note for dump in dumps for note in _what_is_missing(dump)]
    printed = next(filter(None, (d.scheduler for d in dumps)), "")
    scheduler = (site.scheduler if site is not None else "") or printed
    named = [] if site is None else [f"site {site.name}"]
    named += [d.source for d in dumps if d.kind != "site"]
    first = dumps[0].source if site is None else site.name
    machine = _make_machine(table, network, name or first.rpartition("/")[2] or first)
    return replace(
        machine,
        switches=_slurm_switches(dumps, machine.names),
        site="" if site is None else site.name,
        scheduler=scheduler,
        batch=scheduler if site is None else site.batch or scheduler,
        sources=tuple(dict.fromkeys(named)),
    )


def _what_is_missing(dump: Dump) -> list[str]:
    """Return remarks on what the machine's dump leaves out."""
    findings = [fault for fault in dump.findings if fault.kind in _SAID_OF_PLANS]
    more = (
        [f"{len(findings) - 2} more like these in {at_line(dump.source)}"]
        if len(findings) > 3
        else []
    )
    return [str(fault.error()) for fault in findings[: 2 if more else 3]] + more


def _places_of(site: Source, absent: set[str]) -> Ints32 | None:
    """Return a site's node positions, without cabinets that are missing from a complete dump."""
    nodes = site.records().nodes
    if nodes is None or nodes.position is None or nodes.cname is None:
        return None if nodes is None else nodes.position
    if not absent:
        return nodes.position
    gone = [name[: name.index("c", 1)] in absent for name in nodes.cname.tolist()]
    return np.asarray(nodes.position[~np.array(gone)])


def _join_nodes(dumps: Sequence[Dump], site: Source | None, *, as_given: bool) -> Table:
    """Join the nodes; where no dump locates its nodes, they are the site's own."""
    if site is None or any(d.kind == "site" for d in dumps):
        table = join_dumps(dumps, as_given=as_given)
        if {d.kind for d in dumps} == {"links"}:
            table.notes.append(
                "a link list does not mark service nodes: all are taken as compute nodes"
            )
        return table
    if not any(_says_places(d) for d in dumps):
        return join_dumps([site.records(), *dumps], as_given=as_given)
    table = join_dumps(dumps, as_given=as_given)
    fill_from_site(table, site.records())
    return table


def _says_places(dump: Dump) -> bool:
    """Tell whether a dump locates its nodes without a site's help."""
    if dump.nodes is None:
        return False
    if dump.kind == "cables" or dump.nodes.coords is not None:
        return True
    cname = dump.nodes.cname
    return cname is not None and bool(np.char.startswith(cname, "c").any())


def join_dumps(dumps: Sequence[Dump], *, as_given: bool = False) -> Table:
    """Join the nodes of all dumps.

    `dumps`: in any order: inventories come before topologies, and these before Slurm's states.
    Where a topology or an inventory is there, dumps that only list states bring no nodes of their
    own. `as_given`: let the last of several inventories count most, not the one that says most.
    """
    table: Table | None = None

    def rank(dump: Dump) -> int:
        rank = _RANKS.get(dump.kind, 1) + dump.lists_jobs
        return 1 if as_given and rank == 2 else rank

    for dump in sorted(dumps, key=rank):
        if dump.nodes is None or not len(dump.nodes):
            continue
        if table is None and dump.lists_jobs:
            text = "lists the nodes with jobs, not all nodes"
            raise ParseError(dump.source, 0, text, "name the machine with -m as well")
        new = Table.of(dump)
        if table is None:
            table = new
            table.columns["row"] = np.arange(len(new))
        else:
            table = _add_dump(table, new, dump)
    if table is None:
        raise _no_nodes(dumps)
    _refuse_twins(table)
    return table


def _no_nodes(dumps: Sequence[Dump]) -> ParseError:
    """Return the error for dumps without nodes; it names other topologies in the file with some."""
    for dump in dumps:
        topologies = dump.parameters.get("topologies")
        if isinstance(topologies, dict) and len(topologies) > 1:
            others = {name: topology for name, topology in topologies.items()
                      if getattr(topology, "nodes", None) is not None}  # fmt: skip
            text = f"its default topology {dump.parameters['topology']} is flat and lists no nodes"
            there = ", ".join(
                f"{name} ({topology.fabric}, {counted(len(topology.nodes), 'node')})"
                for name, topology in others.items()
            )
            first = next(iter(others), "")
            hint = f"-m {dump.source},topology={first} takes one of {there}" if others else ""
            return ParseError(dump.source, 0, text, hint)
    source = dumps[0].source if dumps else "-"
    return ParseError(source, 0, "lists no nodes", "give a dump that lists nodes")


def fill_from_site(table: Table, site: Dump) -> None:
    """Add what only a site knows about the nodes: roles and hardware."""
    new = Table.of(site)
    try:
        _, at = match_rows(table, new)
    except ParseError as error:
        text = f"none of its nodes is in {site.source}"
        raise ParseError(table.sources[0], 0, text, error.hint) from None
    known = at >= 0
    for name in ("role", "sockets", "cores", "memory_mb", "nics", "gpus", "features"):
        use = known & new.known(name)
        use[known] &= ~table.known(name)[at[known]]
        _overwrite_rows(table, {name: new[name][use]}, at[use])


def _add_dump(table: Table, new: Table, dump: Dump) -> Table:
    """Return `table` with the information from `dump`'s table added."""
    key, at = match_rows(table, new)
    refuse_other_nodes(table, new, at, key)
    if (at < 0).any():
        if dump.kind in ("states", "topology") or "position" in table.columns:
            rows = np.flatnonzero(at < 0).tolist()
            some = ", ".join(new.called(row) for row in rows[:3])
            more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
            source = new.sources[0]
            note = f"left out, location unknown: {some}{more} of {source}"
            table.notes.append(note)
        else:
            table, at = _add_rows(table, new, at)
    joined = at >= 0
    _overwrite_rows(table, {name: c[joined] for name, c in new.columns.items()}, at[joined])
    if dump.kind == "states" and not dump.lists_jobs:
        _mark_unlisted(table, at[joined])
    return table


def _add_rows(table: Table, new: Table, at: Ints) -> tuple[Table, Ints]:
    """Append empty rows for nodes that only `new` has; return the table and their positions."""
    missing = np.flatnonzero(at < 0)
    sources = [*table.sources, *new.sources]
    source = np.append(table.source, np.full(len(missing), len(table.sources)))
    line = np.append(table.line, new.line[missing])
    columns = {}
    for name, column in table.columns.items():
        rows = np.full((len(missing), *column.shape[1:]), UNKNOWN.get(name, 0), column.dtype)
        columns[name] = np.concatenate([column, rows])
    at = at.copy()
    at[missing] = len(table) + np.arange(len(missing))
    return Table(source, line, columns, sources, table.notes), at


def _overwrite_rows(table: Table, new: dict[str, Array], at: Ints) -> None:
    """Copy the known columns into the table's rows `at`."""
    for name, values in new.items():
        known = is_known(name, values)
        if not known.any():
            continue
        if name not in table.columns:
            shape = (len(table), *values.shape[1:])
            table.columns[name] = np.full(shape, UNKNOWN[name], dtype=values.dtype)
        column = table.columns[name]
        wider = column.dtype.kind == "U" and column.dtype.itemsize < values.dtype.itemsize
        column = column.astype(values.dtype if wider else column.dtype)  # dumps must not change
        column[at[known]] = values[known]
        table.columns[name] = column


def _mark_unlisted(table: Table, listed: Ints) -> None:
    """Mark compute nodes that Slurm does not list, since no job can have them."""
    mask = table["role"] != "service"
    mask[listed] = False
    if mask.any():
        table.columns["state"] = np.where(mask, UNLISTED, table["state"])
        table.notes.append(f"{int(mask.sum())} compute nodes are not listed by Slurm: not free")


def _refuse_twins(table: Table) -> None:
    """Raise where rows of different dumps share a NID, cname or name."""
    if len(table.sources) == 1:
        return
    for key, word in KEYS.items():
        rows = np.flatnonzero(table.known(key))
        if repeat := first_repeat(table[key][rows]):
            first, row = rows[list(repeat)].tolist()
            where = at_line(*table.where(first))
            raise table.error(row, f"{word} {table[key][row]} belongs to another node in {where}")


def _make_machine(table: Table, network: Geometry, name: str) -> Machine:
    nid = table["nid"]
    if network.nid is not None:
        nid = np.where(nid < 0, network.nid, nid)
    # the network's remarks on all nodes
    usual_nics = int(network.topology.parameters.get("nics", 0))
    as_they_are = ("cname", "mode", "features", "planned", "sockets", "cores", "memory_mb", "gpus")
    columns: dict[str, Any] = {key: table[key] for key in as_they_are}
    return Machine(
        name=name,
        topology=network.topology,
        nid=nid,
        names=_host_names(table, nid),
        coords=network.coords,
        role=np.where(table.known("role"), table["role"], "compute"),
        state=np.where(table.known("state"), table["state"], "up"),
        nics=np.where(table["nics"] > 0, table["nics"], usual_nics)
        if usual_nics
        else table["nics"],
        router=network.router,
        router_names=network.router_names,
        links=network.links,
        router_coords=network.router_coords,
        attachment_gbs=network.attachment_gbs,
        weight=table.columns.get("weight"),
        notes=(*network.notes, *table.notes),
        **columns,
    )


def _host_names(table: Table, nid: Ints) -> Strs:
    """Return the host names: as given, else by NID, else by cname."""
    known = table.known("name")
    if known.all():
        return table["name"]
    nid_name = nid_names(nid)
    if not known.any() and (nid >= 0).all():
        return nid_name
    return np.where(known, table["name"], np.where(nid >= 0, nid_name, table["cname"]))


def _slurm_switches(dumps: Sequence[Dump], names: Strs) -> Switches | None:
    """Return Slurm's switches, if a dump has them."""
    for dump in reversed(dumps):
        if dump.kind == "topology" and (dump.switches or dump.fabric == "flat"):
            return slurm_tree.switches_of(dump, names)
    return None
