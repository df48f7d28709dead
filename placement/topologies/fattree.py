# SPDX-License-Identifier: Apache-2.0
"""Fat trees, as extended generalised fat trees XGFT(h; m1…mh; w1…wh).

A node has w1 parents; a switch of level l has m_l children and, below the
top, w(l+1) parents. Switches of a level are numbered subtree by subtree and,
inside one, by (s_l, …, s_1), the up-port taken at the highest level first: up
port p of switch (T, S) of level l leads to switch (T div m(l+1), p·w1…wl + S)
of level l+1. So d-mod-k routing (up port at level l = d div (w1…wl) mod
w(l+1), d the destination's index) can be written down without a search. Two
levels with `spines` top switches are the common case.

A tree is a fat tree with one parent everywhere, in which nodes that part at
level k are `dist[k-1]` apart. Uneven trees (a topology.conf) bring their own links.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nidmap.placement import topologies
from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Links, Machine, Topology
from nidmap.placement.support.array_types import Ints, Strs
from nidmap.placement.topologies import bundle_links, refuse_many


@dataclass(frozen=True, slots=True)
class TreeShape:
    """The parameters of an XGFT, level 1 (the leaves) first."""

    down: tuple[int, ...]  # m1 … mh: children of a switch of each level (m1: nodes per leaf)
    up: tuple[int, ...]  # w1 … wh: parents of each switch or node below a level (w1: of a node)
    parallel: tuple[int, ...]  # links that join each such pair

    @property
    def height(self) -> int:
        """Number of switch levels."""
        return len(self.down)

    def trees(self, level: int) -> int:
        """Return the number of subtrees of a level (1 … h): m(level+1) · … · mh."""
        return math.prod(self.down[level:])

    def twins(self, level: int) -> int:
        """Return the number of top switches per such subtree: w1 · … · w(level)."""
        return math.prod(self.up[:level])

    def switches(self, level: int) -> int:
        """Return the number of switches of a level."""
        return self.trees(level) * self.twins(level)

    def first(self, level: int) -> int:
        """Return the index of a level's first switch; levels are consecutive."""
        return sum(self.switches(below) for below in range(1, level))

    @property
    def total(self) -> int:
        """Number of switches over all levels."""
        return self.first(self.height + 1)


def shape(topology: Topology) -> TreeShape:
    """Return the shape given by a topology's extents and parameters.

    `up` (w1 … wh; levels beyond it have extent 1) and `parallel` are read
    from the parameters; `spines` and `links` are their short forms for the
    top level. A tree has one parent everywhere.
    """
    down = tuple(reversed(topology.extents))
    parameters = topology.parameters
    up = tuple(parameters.get("up", ())) or _fill_heights(len(down), parameters.get("spines", 1))
    parallel = tuple(parameters.get("parallel", ())) or _fill_heights(
        len(up), parameters.get("links", 1)
    )
    if len(up) != len(parallel) or math.prod(down[len(up) :]) != 1:
        raise UsageError(f"a fat tree of {len(down)} levels needs {len(down)} numbers in up=")
    return TreeShape(down[: len(up)], up, parallel)


def _fill_heights(height: int, top: int) -> tuple[int, ...]:
    return (1,) * (height - 1) + (int(top),) if height > 1 else (1,)


def regular_shape(machine: Machine) -> TreeShape | None:
    """Return the shape of a complete fat tree; None if the listed cables do not form one.

    Listed ones make a whole tree of two levels where they join every leaf to every spine alike.
    """
    links, topology = machine.links, machine.topology
    if links is None:
        return shape(topology)
    if topology.router_levels != 1 or (machine.router >= 0).sum(axis=1).max() > 1:
        return None
    leaves, most = topology.extents
    spines = len(links) // leaves
    bipartite = (links.a < leaves).all() and (links.b >= leaves).all()
    if not spines or len(links) != leaves * spines or not bipartite:
        return None
    if len(np.unique(links.b)) != spines or len(np.unique(links.count)) != 1:
        return None
    if not np.array_equal(machine.router[:, 0], machine.coords[:, 0]):
        return None
    return TreeShape((most, leaves), (1, spines), (1, int(links.count[0])))


def node_numbers(machine: Machine) -> Ints:
    """Return each node's position in a complete fat tree, leaf by leaf, int64 (n,)."""
    return topologies.number_coords(machine.coords, machine.topology.extents)


def router_coords(machine: Machine) -> NDArray[np.int32]:
    """Return the coordinates of all switches, leaves first; -1 below a switch's own level."""
    topology = machine.topology
    tree = shape(topology)
    out = np.full((tree.total, topology.router_levels), -1, dtype=np.int32)
    for level in range(1, tree.height + 1):
        kept = topology.router_levels - (level - 1)
        rows = (
            topologies.box_coords(topology.extents[:kept])
            if kept
            else np.empty((1, 0), dtype=np.int32)
        )
        start = tree.first(level)
        out[start : start + tree.switches(level), :kept] = np.repeat(
            rows, tree.twins(level), axis=0
        )
    return out


def router_names(machine: Machine) -> Strs:
    """Return ``leaf0`` …, ``level2-0`` …, and ``spine0`` … at the top; ``level1-0`` … in a tree.

    Leaves have the names that a site gives them (``leaf_names`` of the topology).
    """
    tree = shape(machine.topology)
    words = [f"level{n}-" for n in range(1, tree.height + 1)]
    if machine.topology.kind == "fattree":
        words = ["leaf", *words[1:-1], "spine"]
    names = [
        f"{words[level - 1]}{i}"
        for level in range(1, tree.height + 1)
        for i in range(tree.switches(level))
    ]
    stated = machine.topology.parameters.get("leaf_names", ())
    return np.array([*stated, *names[len(stated) :]], dtype=np.str_)


def links(machine: Machine) -> Links:
    """Return the links between switches; class ``up1`` joins leaves to level 2, and so on.

    A row's `a` is the lower switch: from a to b is up, from b to a down.
    """
    tree = shape(machine.topology)
    kinds = tuple(f"up{level}" for level in range(1, tree.height)) or ("up1",)
    links_above = [_links_above(tree, level) for level in range(1, tree.height)]
    if not links_above:
        none = np.empty(0, dtype=np.int64)
        return bundle_links(none, none, none.astype(np.int8), kinds, none, none.astype(float))
    kind = np.repeat(np.arange(len(links_above)), [len(a) for a, _ in links_above]).astype(np.int8)
    count = np.array(tree.parallel[1:])[kind]
    figures = machine.topology.bandwidth
    cable_gbs = np.array([figures.get(k, figures.get("up", math.nan)) for k in kinds])
    a, b = (np.concatenate([joined[end] for joined in links_above]) for end in (0, 1))
    return bundle_links(a, b, kind, kinds, count, cable_gbs[kind] * count)


def wiring_text(machine: Machine) -> str:
    """Describe how switches are connected."""
    single = machine.topology.kind == "tree"
    return "every switch to the one above" if single else "every switch to all above it"


def _links_above(tree: TreeShape, level: int) -> tuple[Ints, Ints]:
    """Return all links from `level` to the level above it."""
    parents = tree.up[level]
    refuse_many(tree.switches(level) * parents, "this fat tree")
    lower = np.repeat(np.arange(tree.switches(level)), parents)
    port = np.tile(np.arange(parents), tree.switches(level))
    subtree, twin = np.divmod(lower, tree.twins(level))
    above = subtree // tree.down[level] * tree.twins(level + 1)
    upper = above + port * tree.twins(level) + twin
    return tree.first(level) + lower, tree.first(level + 1) + upper
