# SPDX-License-Identifier: Apache-2.0
"""DragonFly+: groups of leaf and spine routers, and links between the spines of groups.

Nodes hang on leaves; in a group every leaf is joined to every spine. The links of
all group pairs are dealt over each group's spines in turn, so that none has two more than
another (A. Shpiner et al., "Dragonfly+: Low cost topology for scaling
datacenters", HiPINEB 2017). Routers are numbered leaves first, group by
group, then spines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.machine import Links, Machine, Topology
from nidmap.placement.support.array_types import Strs
from nidmap.placement.support.quantities import counted
from nidmap.placement.topologies import all_pairs, bundle_links, refuse_many

#: What the places of a DragonFly+ are called.
LEVELS = ("group", "leaf router", "node")


def topology_of(
    sizes: tuple[int, int, int],
    spines: int,
    between: int,
    cables: int = 1,
    bandwidth: Mapping[str, float] | None = None,
    **parameters: Any,
) -> Topology:
    """Return the topology of a DragonFly+ wired by the rule.

    `sizes`: groups, leaves of a group, nodes of a leaf. `spines`: of a group. `between`: links of
    each group pair. `cables`: from each leaf to each spine of its group. `bandwidth`: GB/s a
    direction of one link, ``injection``, ``local`` (leaf to spine) and ``global``. `parameters`:
    further ones.
    """
    return Topology(
        kind="dragonfly+",
        levels=LEVELS,
        extents=sizes,
        fabric="infiniband",
        bandwidth=dict(bandwidth or {}),
        parameters={"spines": spines, "global": between, "links": cables, **parameters},
    )


def links(machine: Machine) -> Links:
    """Return the links between routers by the rule."""
    groups, leaves, spines, between, cables = _group_sizes(machine)
    refuse_many(groups * (leaves * spines + groups * between / 2), machine.name)
    group, leaf, spine = (x.ravel() for x in np.indices((groups, leaves, spines)))
    first = groups * leaves
    low, high = (np.repeat(end, between) for end in all_pairs(groups))
    turn = np.tile(np.arange(between), len(low) // between)
    # In each group the links to the others, in their order, go to the spines in turn.
    here = ((high - 1) * between + turn) % spines
    there = (low * between + turn) % spines
    ends = (
        np.concatenate([group * leaves + leaf, first + low * spines + here]),
        np.concatenate([first + group * spines + spine, first + high * spines + there]),
    )
    kind = np.repeat(np.array([0, 1], dtype=np.int8), [len(leaf), len(low)])
    kinds = ("local", "global")
    count = np.array([cables, 1])[kind]
    gbs = np.array([machine.topology.bandwidth.get(name, math.nan) for name in kinds])[kind]
    return bundle_links(*ends, kind, kinds, count, gbs * count)


def router_coords(machine: Machine) -> NDArray[np.int32]:
    """Return group and leaf of all routers; a spine has leaf -1."""
    groups, leaves, spines, *_ = _group_sizes(machine)
    leaf = np.indices((groups, leaves)).reshape(2, -1).T
    spine = np.column_stack([np.repeat(np.arange(groups), spines), np.full(groups * spines, -1)])
    return np.concatenate([leaf, spine]).astype(np.int32)


def router_names(machine: Machine) -> Strs:
    """Return a name for each router."""
    groups, leaves, spines, *_ = _group_sizes(machine)
    names = [f"g{g}leaf{k}" for g in range(groups) for k in range(leaves)]
    names += [f"g{g}spine{k}" for g in range(groups) for k in range(spines)]
    return np.array(names, dtype=np.str_)


def wiring_text(machine: Machine) -> str:
    """Describe how the routers are connected."""
    _, _, spines, between, cables = _group_sizes(machine)
    parallel = f"{counted(cables, 'link')} from each leaf to each, " if cables > 1 else ""
    global_text = f"{counted(between, 'link')} per group pair"
    return f"{counted(spines, 'spine')} per group, {parallel}{global_text}"


def _group_sizes(machine: Machine) -> tuple[int, int, int, int, int]:
    """Return groups, leaves and spines per group, links per group pair, and per leaf and spine."""
    topology = machine.topology
    groups, leaves = topology.extents[:2]
    spines, between, cables = (int(topology.parameters[k]) for k in ("spines", "global", "links"))
    return groups, leaves, spines, between, cables
