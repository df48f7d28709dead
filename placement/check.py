# SPDX-License-Identifier: Apache-2.0
"""Contradictions within a machine's dumps, and in the machine built from them.

A *fault* contradicts something: no plan should rest on it. A *remark* is
worth knowing and normal: a hole, an absent cabinet, an assumption.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.dumps.contradictions import contradictions
from nidmap.placement.errors import NidmapError, ParseError
from nidmap.placement.fabrics import fabric_of
from nidmap.placement.geometry.cray_nids import first_wrong, most_follow, wrong_nid
from nidmap.placement.geometry.network import numbering_of
from nidmap.placement.load import build
from nidmap.placement.machine import Machine
from nidmap.placement.names import parse_cnames
from nidmap.placement.network.host_cables import say_slow_cables, say_slow_links
from nidmap.placement.node_table import Table
from nidmap.placement.readers.cray_formats import list_faults
from nidmap.placement.readers.slurm_rules import REFUSED
from nidmap.placement.records import Dump, Finding
from nidmap.placement.site_comparison import compare_with_fabric
from nidmap.placement.support.quantities import counted
from nidmap.placement.topologies import links, router_coords, router_names
from nidmap.placement.topologies.source import SyntheticSite
from nidmap.placement.views import count_holes

if TYPE_CHECKING:
    from nidmap.placement.load import Sources

#: Number of findings of one kind that are listed; the rest are counted.
MOST = 100


def check_sources(sources: Sources) -> tuple[Machine | None, list[Finding]]:
    """Check some dumps, each alone and all together, and the machine built from them.

    `sources`: as `nidmap.placement.load.open_sources` returns them. None where a fault leaves no
    machine. Faults come first, each group in the order of files and lines.
    """
    findings = [finding for dump in sources.dumps for finding in dump.findings]
    lines = {x.line for x in findings if x.fault and x.line}
    findings += [x for d in sources.dumps for x in _check_numbering(d) if x.line not in lines]
    if not sources.prefer and not any(x.fault for x in findings):
        findings += contradictions(sources.dumps, sources.site).findings
    machine = None
    if not any(x.fault for x in findings):
        try:
            machine = build(sources)
        except ParseError as error:
            findings.append(Finding.of(error, "contradiction"))
        except NidmapError as error:
            what = (error.message, error.hint)
            findings.append(Finding(0, "contradiction", *what, source="machine"))
    if machine is not None:
        findings += check(machine, sources.dumps)
        if sources.site is not None and not isinstance(sources.site, SyntheticSite):
            findings += compare_with_fabric(sources.site, sources.dumps)
    findings = [replace(x, fault=True) if x.kind == REFUSED else x for x in findings]
    return machine, sorted(findings, key=lambda x: not x.fault)


def _check_numbering(dump: Dump) -> list[Finding]:
    """Return the nodes whose NID differs from what the numbering gives for their cname."""
    nodes = dump.nodes
    if nodes is None or nodes.cname is None or nodes.nid is None:
        return []
    if dump.kind == "site" or dump.fabric == "gemini":  # coordinates are authoritative there
        return []
    parts = parse_cnames(nodes.cname)
    rule = most_follow(parts, nodes.nid)
    if rule is None:
        return []
    table = Table.of(dump)
    rows = first_wrong(table, parts, rule)
    rows = rows[(parts[rows] >= 0).all(axis=1)]
    faults = list_faults(rows, nodes.line, "nid", lambda k: wrong_nid(table, parts, rule, k))
    return [replace(fault, source=dump.source) for fault in faults]


def check(machine: Machine, dumps: Sequence[Dump] = ()) -> list[Finding]:
    """Check a machine that has been built.

    `dumps`: what it was made from, to name it.
    """
    source = dumps[0].source if dumps else machine.name
    checks = (
        _check_names,
        _global_ports,
        _group_pairs,
        _find_holes,
        _check_switches,
        _find_unlinked,
        _find_slow_cables,
    )
    findings = [finding for search in checks for finding in search(machine)]
    dump_notes = {str(finding.error()) for dump in dumps for finding in dump.findings}
    findings += [_make_remark("note", note) for note in machine.notes if note not in dump_notes]
    return [replace(finding, source=source) for finding in findings]


def _make_remark(kind: str, text: str, hint: str = "") -> Finding:
    return Finding(0, kind, text, hint, fault=False)


def _check_names(machine: Machine) -> Iterator[Finding]:
    """Find nodes whose cname contradicts the position in a dump."""
    rule = numbering_of(machine.topology)
    if rule is None:
        return

    parts = parse_cnames(machine.cname)
    known = (parts >= 0).all(axis=1)
    coords = rule.coords(parts)
    for row in np.flatnonzero(known & (coords != machine.coords).any(axis=1))[:MOST].tolist():
        at, by_cname = tuple(machine.coords[row].tolist()), tuple(coords[row].tolist())
        text = f"{machine.names[row]} is at {at}, its cname {machine.cname[row]} says {by_cname}"
        yield Finding(0, "coordinates", text)


def _global_ports(machine: Machine) -> Iterator[Finding]:
    """Find routers with more links to other groups than a router has ports."""
    most = fabric_of(machine.topology).ports
    if machine.topology.kind != "dragonfly" or not most:
        return
    cables = links(machine)
    mine = cables.kind == len(cables.kinds) - 1
    ends = np.concatenate([cables.a[mine], cables.b[mine]])
    count = np.bincount(ends, np.tile(cables.count[mine], 2))
    if not (count > most).any():
        return
    worst = int(np.argmax(count))
    text = (
        f"{int((count > most).sum())} routers have more than {most} {cables.kinds[-1]} links, "
        f"{router_names(machine)[worst]} has {int(count[worst])}"
    )
    yield Finding(0, "ports", text, "more than a router has ports", fault=machine.links is not None)


def _group_pairs(machine: Machine) -> Iterator[Finding]:
    """Find groups without any link between them, and pairs with fewer links than usual."""
    if not machine.topology.kind.startswith("dragonfly"):
        return
    cables = links(machine)
    groups, rank = np.unique(router_coords(machine)[:, 0], return_inverse=True)
    mine = cables.kind == len(cables.kinds) - 1
    table = np.zeros((len(groups), len(groups)), dtype=np.int64)
    np.add.at(table, (rank[cables.a[mine]], rank[cables.b[mine]]), cables.count[mine])
    g, h = np.triu_indices(len(groups), 1)
    count = (table + table.T)[g, h]
    none = np.flatnonzero(count == 0)
    if len(none):
        first = f"{groups[g[none[0]]]} and {groups[h[none[0]]]}"
        yield _make_remark(
            "groups-apart", f"{len(none)} group pairs have no link, the first is {first}"
        )
    uneven = np.unique(count[count > 0])
    if len(uneven) > 1 and "global_table" not in machine.topology.parameters:
        text = f"group pairs have {uneven[0]} to {uneven[-1]} links"
        yield _make_remark("uneven-pairs", text, "links of missing routers are missing too")


def _find_holes(machine: Machine) -> Iterator[Finding]:
    """Report the nodes missing from the box that the machine fills."""
    words = {
        "group": "absent groups",
        "chassis": "chassis missing from groups that have others",
        "blade": "blades missing from chassis that have others",
        "node": "nodes missing from blades that have others",
        "router": "routers without a node",
    }
    if machine.topology.kind == "torus":
        words["node"] = "nodes missing from routers that have others"
    for level, count in count_holes(machine).items():
        yield _make_remark("hole", f"{words[level]}: {count}", "normal")


def _check_switches(machine: Machine) -> Iterator[Finding]:
    """Find compute nodes missing from Slurm's topology."""
    if machine.switches is None or machine.switches.kind == "flat":
        return
    rows = np.flatnonzero(machine.compute & (machine.switches.leaf_of < 0))
    if len(rows):
        text = f"{len(rows)} compute nodes are on no switch, the first is {machine.names[rows[0]]}"
        yield _make_remark("no-switch", text, "Slurm's topology plugin will not use them together")


def _find_unlinked(machine: Machine) -> Iterator[Finding]:
    """Find routers that have nodes but no links, on machines whose other routers have links."""
    cables = links(machine)
    if not len(cables):
        return
    used = np.unique(machine.router[machine.router >= 0])
    alone = np.setdiff1d(used, np.concatenate([cables.a, cables.b]))
    # A node with another attachment, to a router that has links, is not cut off.
    cut_off = ((machine.router < 0) | np.isin(machine.router, alone)).all(axis=1)
    alone = np.intersect1d(alone, machine.router[cut_off])
    for router in alone[:MOST].tolist():
        nodes = machine.names[(machine.router == router).any(axis=1) & cut_off]
        text = (
            f"router {router_names(machine)[router]} has no link: its {counted(len(nodes), 'node')}"
        )
        yield _make_remark("no-link", f"{text}, {nodes[0]} the first, reach no other router")
    if len(alone) > MOST:
        yield _make_remark("no-link", f"{len(alone) - MOST} more routers have no link")


def _find_slow_cables(machine: Machine) -> Iterator[Finding]:
    """Find nodes and switches with cables slower than most."""
    for text in say_slow_cables(machine):
        hint = "degraded, or another generation of hosts?"
        yield _make_remark("cable-rate", text, hint)
    for text in say_slow_links(machine):
        yield _make_remark("cable-rate", text, "degraded, or another generation of switches?")
