"""A configuration's network against a real list of links: routers, counts, the wiring rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from placement.errors import UsageError
from placement.machine import Topology
from placement.records import Dump, LinkRecords
from placement.sites.findings import Finding, examples
from placement.sites.model import Site
from placement.topologies.wiring import Shape, cables

Ints = NDArray[np.int64]

__all__ = ["leaf_findings", "link_findings"]

#: Link classes that join groups.
_GLOBAL = ("blue", "global")


def link_findings(site: Site, links: LinkRecords) -> Iterator[Finding]:
    """Yield what a link list and a configuration both say of the network.

    Parameters
    ----------
    site : Site
    links : LinkRecords
        With coordinates of the routers; without them there is nothing to compare.
    """
    coords_a, coords_b, topology = links.coords_a, links.coords_b, site.topology()
    if coords_a is None or coords_b is None:
        return
    if topology.kind == "torus":
        extents = topology.extents[:3], tuple((coords_a.max(axis=0) + 1).tolist())
        here, there = (" x ".join(map(str, extent)) for extent in extents)
        yield Finding("torus", here, there, here == there)
    elif topology.fabric == "aries":
        mine, theirs = _routers(site), np.unique(coords_a, axis=0)
        same = np.array_equal(np.unique(mine, axis=0), theirs)
        same = same and not (coords_a >= np.array(topology.extents[:3])).any()
        yield Finding("routers", str(len(mine)), str(len(theirs)), same)
        stated, groups = np.unique(mine[:, 0]), np.unique(theirs[:, 0])
        same = np.array_equal(groups, stated)
        yield Finding("groups with routers", str(len(stated)), str(len(groups)), same)
        blue = np.isin(links.kind, _GLOBAL)
        if blue.any():
            real = _crossing(coords_a[blue], coords_b[blue])
            yield _pairs(topology, real)
            yield _wiring(topology, real, groups)


def _routers(site: Site) -> NDArray[np.int32]:
    """Return the routers of all cabinets: also those of service blades and vacant places."""
    position = site.records().nodes
    assert position is not None
    assert position.position is not None
    halves = np.unique(position.position[:, :2] // np.array([1, 3]), axis=0)
    chassis = np.repeat(halves * np.array([1, 3]), 3, axis=0)
    chassis[:, 1] += np.tile(np.arange(3), len(halves))
    rows = np.repeat(chassis, 16, axis=0)
    return np.column_stack([rows, np.tile(np.arange(16), len(chassis))]).astype(np.int32)


def _crossing(a: NDArray[np.int32], b: NDArray[np.int32]) -> Ints:
    """Return (g, c, s, h, c', s') of all link ends between groups g < h; sorted."""
    rows = np.concatenate([np.column_stack([a, b]), np.column_stack([b, a])])
    rows = rows[rows[:, 0] < rows[:, 3]].astype(np.int64)
    return rows[np.lexsort(rows.T[::-1])]


def _pairs(topology: Topology, real: Ints) -> Finding:
    """Compare the number of links of every group pair."""
    # a dump prints each link from both ends
    _, ends = np.unique(real[:, [0, 3]], axis=0, return_counts=True)
    found = sorted(set((ends // 2).tolist()))
    stated = int(topology.parameters["global"])
    text = f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"
    return Finding("links a group pair", str(stated), text, found == [stated])


def _wiring(topology: Topology, real: Ints, groups: NDArray[np.int32]) -> Finding:
    """Compare the real list with what the rule makes for the groups that are there."""
    count = int(topology.parameters["global"])
    try:
        made = cables(topology.wiring, Shape(len(groups), 6, 16, count))
    except UsageError as error:
        return Finding("wiring", topology.wiring, str(error), False)
    ends = [groups[made.g], *np.divmod(made.a, 16), groups[made.h], *np.divmod(made.b, 16)]
    rule = np.repeat(np.column_stack(ends).astype(np.int64), 2 * made.count, axis=0)
    shared = _shared(rule, real)
    text = f"{shared} of {len(real) // 2} links are the rule's"
    return Finding("wiring", topology.wiring, text, 2 * shared == len(rule) == len(real))


def _shared(rule: Ints, real: Ints) -> int:
    """Return how many links both lists have, each as often as it occurs in both."""
    both = np.concatenate([rule, real])
    _, of = np.unique(both, axis=0, return_inverse=True)
    lists = of.ravel()[: len(rule)], of.ravel()[len(rule) :]
    mine, theirs = (np.bincount(rows, minlength=int(of.max()) + 1) for rows in lists)
    return int(np.minimum(mine, theirs).sum()) // 2


def leaf_findings(site: Site, dump: Dump) -> Iterator[Finding]:
    """Yield whether the nodes of each leaf module share a switch in the dump, and no other does.

    Parameters
    ----------
    site : Site
        Only a fat tree has leaf modules.
    dump : Dump
        With Slurm's switches, or with the switch of every node.
    """
    nodes, there = site.records().nodes, _switch_of(dump)
    if site.topology().kind != "fattree" or nodes is None or not there:
        return
    assert nodes.name is not None
    assert nodes.position is not None
    leaf = dict(zip(nodes.name.tolist(), nodes.position[:, 0].tolist(), strict=True))
    pairs = {(leaf[name], switch) for name, switch in there.items() if name in leaf}
    leaves, switches = Counter(k for k, _ in pairs), Counter(s for _, s in pairs)
    mixed = sorted(switch for switch, times in switches.items() if times > 1)
    split = sorted(k for k, times in leaves.items() if times > 1)
    wrong = np.array([*mixed, *(site.config.leaf[k].name for k in split)])
    text = f"{len(switches)} with the same nodes"
    text = f"mixed or split: {examples(wrong)}" if len(wrong) else text
    if pairs:
        yield Finding("leaf modules", str(len(site.config.leaf)), text, not len(wrong))


def _switch_of(dump: Dump) -> dict[str, str]:
    """Return the switch that each node hangs on, by the node's name."""
    found = {node: record.name for record in dump.switches for node in record.nodes}
    nodes = dump.nodes
    if found or nodes is None or nodes.name is None or nodes.router is None:
        return found
    names, routers = nodes.name.tolist(), nodes.router.tolist()
    return {name: router for name, router in zip(names, routers, strict=True) if router}
