# SPDX-License-Identifier: Apache-2.0
"""Switch trees from Slurm's topology files, including uneven ones.

A switch's level counts from the leaves. A leaf's coordinate at level k is the
highest switch above it that is no higher than k: so two nodes part at the
level of the lowest switch above both, also where some leaves hang higher
than others. Trees without a common root have one more coordinate, the tree.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nidmap.placement.fabrics import GPU_INSIDE, GPU_OUTSIDE, GPUS
from nidmap.placement.geometry.network import Geometry, refuse_first, switch_positions
from nidmap.placement.lookup import find_hosts
from nidmap.placement.machine import Links, Switches, Topology
from nidmap.placement.node_table import Table
from nidmap.placement.records import Dump
from nidmap.placement.support.array_types import Ints, Strs
from nidmap.placement.topologies import bundle_links


def switches_of(dump: Dump, names: Strs) -> Switches:
    """Return Slurm's switches over the nodes of a machine.

    `dump`: with switches (tree, block, ring) or ``flat``. `names` (n,): the machine's node names.
    In the dump's order; `leaf_of` is -1 for a node that it does not name.
    """
    records = dump.switches
    index = {s.name: i for i, s in enumerate(records)}
    parent = np.full(len(records), -1, dtype=np.int32)
    for i, switch in enumerate(records):
        parent[[index[child] for child in switch.children]] = i
    leaf = np.repeat(np.arange(len(records)), [len(s.nodes) for s in records])
    listed = np.array([n for s in records for n in s.nodes], dtype=np.str_)
    at = find_hosts(listed, names, dump.source)
    sizes = dump.parameters.get("block_sizes", ())
    uplinks = np.array([s.uplinks for s in records], dtype=np.int32)
    return Switches(
        names=tuple(s.name for s in records),
        parent=parent,
        level=np.array([max(0, s.level) for s in records], dtype=np.int32),
        leaf_of=np.append(leaf, -1)[at].astype(np.int32),
        kind=dump.fabric or "tree",
        block_sizes=tuple(int(s) for s in sizes) if isinstance(sizes, tuple) else (),
        uplinks=uplinks if (uplinks > 1).any() else None,
    )


def locate_leaves(table: Table, dump: Dump) -> Geometry:
    """Return the positions of nodes that only Slurm's topology describes.

    `table`: nodes by name. `dump`: a tree, blocks (grouped by their sizes, below one root) or
    rings (below one root). Kind ``tree``; levels ``level<k>`` … ``level1``, ``node``, the leaf
    being level 1; the links are the file's.
    """
    forest = switches_of(dump, table["name"])
    hint = "every node of a tree needs a switch"
    alone = forest.leaf_of < 0
    refuse_first(
        table, alone, lambda row: f"{table.called(row)} is on no switch of {dump.source}", hint
    )
    if forest.kind in ("block", "ring"):
        forest = _add_root(_group_blocks(forest))
    placed = place_forest(forest)
    return _as_domains(placed) if forest.kind == "block" else placed


def _as_domains(network: Geometry) -> Geometry:
    """Return a tree whose leaves are accelerator domains: fast links inside, NICs between.

    The bandwidths are assumed. Each node's NICs are one cable out of its domain, which carries
    what this node sends and receives there, and nothing of others (``own_cables``).
    """
    links = network.links
    assert links is not None
    below = np.bincount(network.router[:, 0], minlength=len(network.router_names)).astype(float)
    for low, high in zip(links.a.tolist(), links.b.tolist(), strict=True):
        below[high] += below[low]  # links of the lowest switches come first
    inside, outside = GPUS * GPU_INSIDE, GPUS * GPU_OUTSIDE
    note = (
        f"blocks are assumed to be NVLink domains, {inside:g} GB/s per node inside and {outside:g}"
        f" out of them ({GPUS} GPUs of {GPU_INSIDE:g} and {GPU_OUTSIDE:g}); figures laid over"
        " (bandwidth.up0 and up1 of a node) state them"
    )
    marks = dict.fromkeys(("memory_mark", "process_mark"), "assumed")
    speeds = {"memory": inside, "process": GPU_INSIDE, "own_cables": True, **marks}
    topology = network.topology
    topology = replace(
        topology,
        bandwidth={**topology.bandwidth, "up0": inside},
        parameters={**topology.parameters, **speeds},
    )
    return replace(
        network,
        topology=topology,
        links=replace(
            links,
            count=np.where(links.kind == 0, np.maximum(1, below[links.a]), 1).astype(np.int32),
            bandwidth=below[links.a] * outside,
        ),
        notes=(*network.notes, note),
    )


def _tree_height(forest: Switches) -> int:
    return int(forest.level.max(initial=0)) + 1


def _group_blocks(forest: Switches) -> Switches:
    """Nest consecutive blocks by BlockSizes: 4,8 joins them in pairs."""
    below = np.arange(len(forest.names))
    blocks = len(below)
    for size in sorted(forest.block_sizes[1:]):
        group = np.arange(blocks) // (size // forest.block_sizes[0])
        if 1 < group.max(initial=0) + 1 < len(np.unique(below)):
            names = [f"blocks{size}-{i}" for i in range(int(group.max()) + 1)]
            below, forest = len(forest.names) + group, _below_new(forest, below, group, names)
    return forest


def _add_root(forest: Switches) -> Switches:
    """Return the forest under a single new root."""
    roots = np.flatnonzero(forest.parent < 0)
    if len(roots) == 1:
        return forest
    return _below_new(forest, roots, np.zeros_like(roots), ["root"])


def _below_new(forest: Switches, below: Ints, group: Ints, names: list[str]) -> Switches:
    """Add a level of switches with these names, one above each group of the switches `below`."""
    parent = np.append(forest.parent, np.full(len(names), -1, dtype=np.int32))
    parent[below] = len(forest.names) + group
    level = np.append(forest.level, np.full(len(names), _tree_height(forest), dtype=np.int32))
    return replace(forest, names=(*forest.names, *names), parent=parent, level=level)


def place_forest(forest: Switches) -> Geometry:
    """Return coordinates, routers and links of nodes on the leaves of a forest.

    `forest`: those of a level before those above it.
    """
    height, roots = _tree_height(forest), int((forest.parent < 0).sum())
    kept = height if roots > 1 or height == 1 else height - 1
    first = np.arange(len(forest.names))
    places = switch_positions(
        forest.leaf_of, forest.level, _highest_ancestors(forest)[:kept], first
    )
    topology = Topology(
        kind="tree",
        levels=(*(f"level{k}" for k in range(kept, 0, -1)), "node"),
        extents=tuple(int(v) + 1 for v in places.coords.max(axis=0, initial=0)),
        parameters={"dist": tuple(range(1, kept + 2 if height > 1 else 2))},
    )
    apart = f"{roots} trees without a common root: Slurm runs no job across them"
    return Geometry(
        topology=topology,
        coords=places.coords,
        router=places.rank[forest.leaf_of].astype(np.int32)[:, None],
        router_coords=places.switches,
        router_names=np.array(forest.names)[places.order],
        links=_uplinks(forest, places.rank),
        notes=(apart,) if roots > 1 else (),
    )


def _highest_ancestors(forest: Switches) -> list[Ints]:
    """Return, for each level k, every switch's highest ancestor no higher than level k."""
    ancestors = []
    at = np.arange(len(forest.names))
    for k in range(_tree_height(forest)):
        while True:
            above = forest.parent[at]
            rises = (above >= 0) & (forest.level[above] <= k)
            if not rises.any():
                break
            at = np.where(rises, above, at)
        ancestors.append(at)
    return ancestors


def _uplinks(forest: Switches, rank: Ints) -> Links:
    """Return the links from each switch to its parent; class ``up<k>`` starts at level k."""
    child = np.flatnonzero(forest.parent >= 0)
    kinds = tuple(f"up{k}" for k in range(1, _tree_height(forest))) or ("up1",)
    ends, level = (rank[child], rank[forest.parent[child]]), forest.level[child].astype(np.int8)
    count = np.ones(len(child), dtype=np.int64)
    if forest.uplinks is not None:
        count = forest.uplinks[child].astype(np.int64)
    return bundle_links(*ends, level, kinds, count, np.full(len(child), np.nan))


def place_alike(table: Table) -> Geometry:
    """Return positions for nodes of unknown location: all equally near."""
    n = len(table)
    topology = Topology(
        kind="tree",
        levels=("level1", "node"),
        extents=(1, n),
        parameters={"dist": (1,), "up": (1,)},
    )
    return Geometry(
        topology=topology,
        coords=np.column_stack([np.zeros(n), np.arange(n)]).astype(np.int32),
        router=np.zeros((n, 1), dtype=np.int32),
        notes=("node locations are unknown: all nodes count as equally near",),
    )
