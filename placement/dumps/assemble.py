"""From dumps to a `Machine`: names and states from one, links from another.

The work is done elsewhere: `tables` joins the nodes, `geometry` finds where
they sit. Here the two are put together, and what contradicts itself is
refused at the file and line it stands on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import placement.views.frames  # noqa: F401  # lets machines export themselves
from placement.dumps.contradictions import absent_cabinets, contradictions
from placement.dumps.tables import Table, fill, join
from placement.errors import place
from placement.geometry import Geometry, locate
from placement.machine import Machine, Switches
from placement.readers import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.geometry.slingshot import GroupRule
    from placement.records import Dump
    from placement.support.array_types import Ints, Ints32, Strs
    from placement.topologies.source import Source

__all__ = ["assemble"]

#: Remarks on a dump that change what the machine has or where: every plan on it says them.
_SAID_OF_PLANS = ("two-leaves", "unnamed-host")


def assemble(
    dumps: Sequence[Dump],
    site: Source | None = None,
    name: str = "",
    groups: GroupRule | None = None,
    prefer: str = "",
) -> Machine:
    """Build the machine that some dumps describe together.

    Parameters
    ----------
    dumps : sequence of Dump
        In any order. Nodes are joined by NID, cname or name; Slurm's states
        count more than a Cray's.
    site : Site, SyntheticSite or None
        States what the dumps do not: the numbering, the wiring, bandwidths,
        what is in a node; and the nodes themselves where no dump says where
        they are.
    name : str
        What to call the machine; '' takes the site's or the first dump's.
    groups : GroupRule or None
        How xnames make dragonfly groups.
    prefer : str
        ``last`` takes the word of the last dump where some contradict one
        another; '' refuses them.

    Returns
    -------
    Machine
        Rows in NID order. A node whose role no source gives is a compute
        node; one whose state no source gives is up.

    Raises
    ------
    ParseError
        At the first contradiction, or fatal fault of a dump.

    Examples
    --------
    >>> from placement.readers import read_text
    >>> dump = read_text("2 c0-0c0s1n0 compute 0 0 1\\n3 c0-0c0s1n1 compute 0 0 1\\n", "t.txt")
    >>> m = assemble([dump])
    >>> m.topology.kind, m.names.tolist(), m.coords.tolist()
    ('torus', ['nid00002', 'nid00003'], [[0, 0, 1, 0], [0, 0, 1, 1]])
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
        from placement.geometry.listed import with_nodes

        dumps = [with_nodes(d) for d in dumps]  # a lone link list implies its nodes
    table = _in_order(_table(dumps, site, as_given=prefer == "last"))
    if apart.findings:
        first = apart.findings[0].text
        table.notes.append(f"of {len(apart.findings)} contradictions the last dump counts: {first}")
    places = None if site is None else _places_of(site, dumps)
    network = locate(table, dumps, site, groups, places)
    table.notes += [note for dump in dumps for note in _remarks(dump)]
    printed = next(filter(None, (find(d.format).scheduler for d in dumps)), "")
    scheduler = (site.scheduler if site is not None else "") or printed
    named = [] if site is None else [f"site {site.name}"]
    named += [d.source for d in dumps if d.format != "site"]
    first = dumps[0].source if site is None else site.name
    machine = _machine(table, network, name or first.rpartition("/")[2] or first)
    return replace(
        machine,
        switches=_switches(dumps, machine.names),
        site="" if site is None else site.name,
        scheduler=scheduler,
        batch=scheduler if site is None else site.batch or scheduler,
        sources=tuple(dict.fromkeys(named)),
    )


def _remarks(dump: Dump) -> list[str]:
    """Return what the user of a machine should know of what its dump leaves out."""
    told = [fault for fault in dump.findings if fault.kind in _SAID_OF_PLANS]
    more = [f"{len(told) - 2} more like these in {place(dump.source)}"] if len(told) > 3 else []
    return [str(fault.error()) for fault in told[: 2 if more else 3]] + more


def _places_of(site: Source, dumps: Sequence[Dump]) -> Ints32 | None:
    """Return where a site has nodes, those of cabinets left out that a whole dump lacks."""
    nodes = site.records().nodes
    if nodes is None or nodes.position is None or nodes.cname is None:
        return None if nodes is None else nodes.position
    absent = {cabinet for dump in dumps for cabinet in absent_cabinets(site, dump)}
    if not absent:
        return nodes.position
    gone = [name[: name.index("c", 1)] in absent for name in nodes.cname.tolist()]
    return np.asarray(nodes.position[~np.array(gone)])


def _table(dumps: Sequence[Dump], site: Source | None, *, as_given: bool) -> Table:
    """Join the nodes, a site's own where no dump says where its nodes are."""
    if site is None or any(d.format == "site" for d in dumps):
        table = join(dumps, as_given=as_given)
        if {find(d.format).kind for d in dumps} == {"links"}:
            table.notes.append("a link list tells no service nodes: all count as compute nodes")
        return table
    if not any(_places(d) for d in dumps):
        return join([site.records(), *dumps], as_given=as_given)
    table = join(dumps, as_given=as_given)
    fill(table, site.records())
    return table


def _places(dump: Dump) -> bool:
    """Return True where a dump says where its nodes are, without a site's help."""
    if dump.nodes is None:
        return False
    if find(dump.format).kind == "cables" or dump.nodes.coords is not None:
        return True
    cname = dump.nodes.cname
    return cname is not None and bool(np.char.startswith(cname, "c").any())


def _in_order(table: Table) -> Table:
    """Return the rows in NID order; NIDs are made of names or places where there are none."""
    if not table.has("nid"):
        table.columns["nid"] = _numbers(table)
    nid = table["nid"]
    if (np.diff(nid) >= 0).all():
        return table
    return table.take(np.argsort(nid, kind="stable"))


def _numbers(table: Table) -> Ints:
    """Return the numbers that the names end in where they tell all nodes apart, else the index."""
    from placement.names.columns import name_numbers

    prefixes, numbers, _ = name_numbers(table["name"])
    alike = len(np.unique(prefixes)) == 1 and bool((numbers >= 0).all())
    if alike and len(np.unique(numbers)) == len(numbers):
        return numbers
    return np.arange(len(table), dtype=np.int64)


def _machine(table: Table, network: Geometry, name: str) -> Machine:
    nid = table["nid"]
    if network.nid is not None:
        nid = np.where(nid < 0, network.nid, nid)
    every = int(network.topology.parameters.get("nics", 0))  # what the network says of all nodes
    as_they_are = ("cname", "mode", "features", "planned", "sockets", "cores", "memory_mb", "gpus")
    columns: dict[str, Any] = {key: table[key] for key in as_they_are}
    return Machine(
        name=name,
        topology=network.topology,
        nid=nid,
        names=_names(table, nid),
        coords=network.coords,
        role=np.where(table.known("role"), table["role"], "compute"),
        state=np.where(table.known("state"), table["state"], "up"),
        nics=np.where(table["nics"] > 0, table["nics"], every) if every else table["nics"],
        router=network.router,
        router_names=network.router_names,
        links=network.links,
        router_coords=network.router_coords,
        weight=table.columns.get("weight"),
        notes=(*network.notes, *table.notes),
        **columns,
    )


def _names(table: Table, nid: Ints) -> Strs:
    """Return the host names: as given, else by NID, else by cname."""
    from placement.names.columns import nid_names

    known = table.known("name")
    if known.all():
        return table["name"]
    made = nid_names(nid)
    if not known.any() and (nid >= 0).all():
        return made
    return np.where(known, table["name"], np.where(nid >= 0, made, table["cname"]))


def _switches(dumps: Sequence[Dump], names: Strs) -> Switches | None:
    """Return Slurm's switches where a dump has them."""
    for dump in reversed(dumps):
        if find(dump.format).kind == "topology" and (dump.switches or dump.fabric == "flat"):
            from placement.geometry.slurm_tree import switches_of

            return switches_of(dump, names)
    return None
