"""A configuration's network against a real list of links: routers, counts, the wiring rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError
from placement.sites.findings import Finding, examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.machine import Topology
    from placement.records import Dump, LinkRecords
    from placement.sites.model import Site

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
    if links.coords_a is None or links.coords_b is None:
        return
    topology = site.topology()
    if topology.kind == "torus":
        yield from _torus(topology, links)
    elif topology.fabric == "aries":
        yield from _dragonfly(site, topology, links)


def _torus(topology: Topology, links: LinkRecords) -> Iterator[Finding]:

    assert links.coords_a is not None
    there = tuple((links.coords_a.max(axis=0) + 1).tolist())
    here = topology.extents[:3]
    yield Finding("torus", _by(here), _by(there), here == there)


def _by(extents: tuple[int, ...]) -> str:
    return " x ".join(map(str, extents))


def _dragonfly(site: Site, topology: Topology, links: LinkRecords) -> Iterator[Finding]:

    assert links.coords_a is not None
    assert links.coords_b is not None
    here, there = _routers(site), _unique(links.coords_a)
    outside = (links.coords_a >= np.array(topology.extents[:3])).any()
    yield Finding("routers", str(len(here)), str(len(there)), not outside and _same(here, there))
    groups = np.unique(there[:, 0]), np.unique(here[:, 0])
    same = np.array_equal(*groups)
    yield Finding("groups with routers", str(len(groups[1])), str(len(groups[0])), same)
    blue = np.isin(links.kind, _GLOBAL)
    if blue.any():
        real = _crossing(links.coords_a[blue], links.coords_b[blue])
        yield from _pairs(topology, real)
        yield _wiring(topology, real, groups[0])


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


def _unique(coords: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.unique(coords, axis=0)


def _same(a: NDArray[np.int32], b: NDArray[np.int32]) -> bool:
    return np.array_equal(_unique(a), _unique(b))


def _crossing(a: NDArray[np.int32], b: NDArray[np.int32]) -> Ints:
    """Return (g, c, s, h, c', s') of all link ends between groups g < h; sorted."""
    rows = np.concatenate([np.column_stack([a, b]), np.column_stack([b, a])])
    rows = rows[rows[:, 0] < rows[:, 3]].astype(np.int64)
    return rows[np.lexsort(rows.T[::-1])]


def _pairs(topology: Topology, real: Ints) -> Iterator[Finding]:
    """Compare the number of links of every group pair."""
    # a dump prints each link from both ends
    _, ends = np.unique(real[:, [0, 3]], axis=0, return_counts=True)
    found = sorted(set((ends // 2).tolist()))
    stated = int(topology.parameters["global"])
    text = f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"
    yield Finding("links a group pair", str(stated), text, found == [stated])


def _wiring(topology: Topology, real: Ints, groups: NDArray[np.int32]) -> Finding:
    """Compare the real list with what the rule makes for the groups that are there."""
    from placement.topologies.wiring import Shape, cables

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
    _, inverse = np.unique(both, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    mine = np.bincount(inverse[: len(rule)], minlength=inverse.max() + 1)
    theirs = np.bincount(inverse[len(rule) :], minlength=inverse.max() + 1)
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
    from placement.sites.findings import Finding

    nodes, there = site.records().nodes, _switch_of(dump)
    if site.topology().kind != "fattree" or nodes is None or not there:
        return
    assert nodes.name is not None
    assert nodes.position is not None
    leaf = dict(zip(nodes.name.tolist(), nodes.position[:, 0].tolist(), strict=True))
    pairs = {(leaf[name], switch) for name, switch in there.items() if name in leaf}
    mixed = [s for s in {s for _, s in pairs} if sum(s == t for _, t in pairs) > 1]
    split = [k for k in {k for k, _ in pairs} if sum(k == m for m, _ in pairs) > 1]
    count = len({switch for _, switch in pairs})
    wrong = np.array(sorted(mixed) + [site.config.leaf[k].name for k in sorted(split)])
    text = f"mixed or split: {examples(wrong)}" if len(wrong) else f"{count} with the same nodes"
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
