"""Trees of switches as Slurm's topology files describe them, uneven ones too.

A switch's level counts from the leaves. A leaf's coordinate at level k is the
highest switch above it that stands no higher than k: so two nodes part at the
level of the lowest switch above both, also where some leaves hang higher
than others. Trees without a common root have one more coordinate, the tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.geometry.network import Network
from placement.machine import Switches, Topology
from placement.topologies import grid
from placement.topologies.bundles import bundle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from placement.dumps.tables import Table
    from placement.machine import Links
    from placement.records import Dump, SwitchRecord
    from placement.support.array_types import Ints, Strs

__all__ = ["flat", "locate", "place_in", "switches_of", "torus"]


@dataclass(frozen=True, slots=True, eq=False)
class _Forest:
    """Switches with parents; the leaves are those of level 0."""

    names: tuple[str, ...]
    parent: NDArray[np.int32]
    level: NDArray[np.int32]

    @property
    def height(self) -> int:
        """Levels of switches."""
        return int(self.level.max(initial=0)) + 1

    @property
    def roots(self) -> int:
        """Switches without one above."""
        return int((self.parent < 0).sum())

    def ancestors(self) -> Ints:
        """Return int64 (s, height): the highest switch above each that is no higher than k."""
        out = np.empty((len(self.names), self.height), dtype=np.int64)
        at = np.arange(len(self.names))
        for k in range(self.height):
            while True:
                above = self.parent[at]
                step = (above >= 0) & (self.level[np.maximum(above, 0)] <= k)
                if not step.any():
                    break
                at = np.where(step, above, at)
            out[:, k] = at
        return out


def switches_of(dump: Dump, names: Strs) -> Switches:
    """Return Slurm's switches over the nodes of a machine.

    Parameters
    ----------
    dump : Dump
        With switches (tree, block, ring, torus3d) or ``flat``.
    names : str (n,)
        The machine's node names.

    Returns
    -------
    Switches
        In the dump's order; `leaf_of` is -1 for a node that it does not name.
    """
    forest = _forest(dump.switches)
    found = dump.parameters.get("block_sizes", ())
    sizes = tuple(int(s) for s in found) if isinstance(found, tuple) else ()
    return Switches(
        names=forest.names,
        parent=forest.parent,
        level=forest.level,
        leaf_of=_leaf_of(dump.switches, names),
        kind=dump.fabric or "tree",
        block_sizes=sizes,
    )


def _forest(records: Sequence[SwitchRecord]) -> _Forest:
    index = {s.name: i for i, s in enumerate(records)}
    parent = np.full(len(records), -1, dtype=np.int32)
    for i, switch in enumerate(records):
        for child in switch.children:
            parent[index[child]] = i
    level = np.array([max(0, s.level) for s in records], dtype=np.int32)
    return _Forest(tuple(s.name for s in records), parent, level)


def _leaf_of(records: Sequence[SwitchRecord], names: Strs) -> NDArray[np.int32]:
    out = np.full(len(names), -1, dtype=np.int32)
    leaf = np.repeat(np.arange(len(records)), [len(s.nodes) for s in records])
    if not len(leaf):
        return out
    listed = np.array([n for s in records for n in s.nodes])
    order = np.argsort(listed, kind="stable")
    place = np.searchsorted(listed[order], names)
    place[place == len(order)] = 0
    candidate = order[place]
    same = listed[candidate] == names
    out[same] = leaf[candidate[same]]
    return out


def locate(table: Table, dump: Dump) -> Network:
    """Return the places of nodes that only Slurm's topology describes.

    Parameters
    ----------
    table : Table
        Nodes by name.
    dump : Dump
        A tree, blocks (grouped by their sizes, below one root) or rings
        (below one root).

    Returns
    -------
    Network
        Kind ``tree``; levels ``level<k>`` … ``level1``, ``node``, the leaf
        being level 1; the links are the file's.
    """
    forest = _forest(dump.switches)
    leaf = _leaf_of(dump.switches, table["name"])
    rows = np.flatnonzero(leaf < 0)
    if len(rows):
        hint = "every node of a tree hangs on a switch"
        raise table.error(
            int(rows[0]), f"{table.called(int(rows[0]))} is on no switch of {dump.source}", hint
        )
    if dump.fabric in ("block", "ring"):
        forest = _rooted(_grouped(forest, dump))
    return _placed(forest, leaf, _unrooted(forest, dump))


def _unrooted(forest: _Forest, dump: Dump) -> tuple[str, ...]:
    if forest.roots == 1 or dump.fabric in ("block", "ring"):
        return ()
    return (f"{forest.roots} trees without a common root: Slurm starts no job across them",)


def _grouped(forest: _Forest, dump: Dump) -> _Forest:
    """Put consecutive blocks below one another by BlockSizes: 4,8 joins them in pairs."""
    sizes = dump.parameters.get("block_sizes", ())
    if dump.fabric != "block" or not isinstance(sizes, tuple) or not sizes:
        return forest
    below = np.arange(len(forest.names))
    for size in sorted(int(s) for s in sizes[1:]):
        per = size // int(sizes[0])
        group = np.arange(len(dump.switches)) // per
        if 1 < group.max(initial=0) + 1 < len(np.unique(below)):
            forest, below = _joined(forest, below, group, f"blocks{size}-")
    return forest


def _joined(forest: _Forest, below: Ints, group: Ints, prefix: str) -> tuple[_Forest, Ints]:
    """Add a switch above each group of blocks; `below` is each block's topmost switch."""
    count, first = int(group.max()) + 1, len(forest.names)
    parent = np.concatenate([forest.parent, np.full(count, -1, dtype=np.int32)])
    parent[below] = first + group
    level = np.concatenate([forest.level, np.full(count, forest.height, dtype=np.int32)])
    names = (*forest.names, *(f"{prefix}{i}" for i in range(count)))
    return _Forest(names, parent, level), first + group


def _rooted(forest: _Forest) -> _Forest:
    """Return the forest below one root."""
    if forest.roots == 1:
        return forest
    root = len(forest.names)
    parent = np.where(forest.parent < 0, root, forest.parent).astype(np.int32)
    return _Forest(
        (*forest.names, "root"),
        np.append(parent, np.int32(-1)),
        np.append(forest.level, np.int32(forest.height)),
    )


def _placed(forest: _Forest, leaf: NDArray[np.int32], notes: tuple[str, ...]) -> Network:
    """Return coordinates, routers and links of nodes on the leaves of a forest."""
    above = forest.ancestors()
    kept = forest.height if forest.roots > 1 or forest.height == 1 else forest.height - 1
    coords = _switch_coords(forest, above, kept)
    order = _router_order(forest, coords)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    node = place_in(leaf)
    whole = np.column_stack([coords[leaf], node]).astype(np.int32)
    topology = Topology(
        kind="tree",
        levels=(*(f"level{k}" for k in range(kept, 0, -1)), "node"),
        extents=tuple(int(v) + 1 for v in whole.max(axis=0, initial=0)),
        router_levels=kept,
        parameters={"dist": tuple(range(1, kept + 2 if forest.height > 1 else 2))},
    )
    return Network(
        topology=topology,
        coords=whole,
        router=rank[leaf].astype(np.int32)[:, None],
        router_coords=coords[order],
        router_names=np.array(forest.names)[order],
        links=_links(forest, rank),
        notes=notes,
    )


def _switch_coords(forest: _Forest, above: Ints, kept: int) -> NDArray[np.int32]:
    """Return the coordinates of all switches, outermost first, -1 below their own level.

    The coordinate at a level is the rank of the switch there among those
    below the same switch of the next level, in the order of their first
    leaves in the dump.
    """
    count = len(forest.names)
    out = np.full((count, kept), -1, dtype=np.int32)
    leaves = np.flatnonzero(forest.level == 0)
    for k in range(kept):
        rows = np.flatnonzero(forest.level <= k)
        parent = above[rows, k + 1] if k + 1 < forest.height else np.zeros_like(rows)
        first_leaf = np.full(count, count)
        np.minimum.at(first_leaf, above[leaves, k], leaves)
        key = first_leaf[above[rows, k]]
        pairs, inverse = np.unique(parent * (count + 1) + key, return_inverse=True)
        first = np.searchsorted(pairs, pairs // (count + 1) * (count + 1))
        out[rows, kept - 1 - k] = (np.arange(len(pairs)) - first)[inverse]
    return out


def _router_order(forest: _Forest, coords: NDArray[np.int32]) -> Ints:
    """Return the switches, leaves first, each level in the order of its coordinates."""
    return np.lexsort((*coords.T[::-1], forest.level)).astype(np.int64)


def place_in(leaf: NDArray[np.int32]) -> Ints:
    """Return the rank of each node among those of its leaf, in the nodes' order.

    Examples
    --------
    >>> import numpy as np
    >>> place_in(np.array([1, 0, 1, 1])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(leaf, kind="stable")
    ordered = leaf[order]
    out = np.empty(len(leaf), dtype=np.int64)
    out[order] = np.arange(len(leaf)) - np.searchsorted(ordered, ordered)
    return out


def _links(forest: _Forest, rank: Ints) -> Links:
    """Return one link from every switch to the one above; class ``up<k>`` starts at level k."""
    child = np.flatnonzero(forest.parent >= 0)
    kinds = tuple(f"up{k}" for k in range(1, forest.height)) or ("up1",)
    one = np.ones(len(child), dtype=np.int64)
    return bundle(
        rank[child],
        rank[forest.parent[child]],
        forest.level[child].astype(np.int8),
        kinds,
        one,
        np.full(len(child), np.nan),
    )


def torus(table: Table, dump: Dump) -> Network:
    """Return the places of nodes in the cells of Slurm's torus3d topology.

    Parameters
    ----------
    table : Table
        With x, y, z of every node.
    dump : Dump
        Its parameters have the ``extents``.
    """
    xyz = table["coords"]
    missing = np.flatnonzero(~table.known("coords"))
    if len(missing):
        row = int(missing[0])
        raise table.error(row, f"{table.called(row)} is in no cell of the torus")
    stated = dump.parameters.get("extents")
    extents = tuple(stated) if isinstance(stated, tuple) else tuple((xyz.max(axis=0) + 1).tolist())
    grid.refuse_huge(extents, dump.source)
    first = grid.number(xyz, extents, first_fastest=True)
    node = place_in(first.astype(np.int32))
    topology = Topology(
        kind="torus",
        levels=("x", "y", "z", "node"),
        extents=(*extents, int(node.max(initial=0)) + 1),
        router_levels=3,
    )
    coords = np.column_stack([xyz, node]).astype(np.int32)
    return Network(topology, coords, first.astype(np.int32)[:, None])


def flat(table: Table) -> Network:
    """Return the places of nodes of which nothing says where they are: all equally near."""
    n = len(table)
    topology = Topology(
        kind="tree",
        levels=("level1", "node"),
        extents=(1, n),
        router_levels=1,
        parameters={"dist": (1,), "up": (1,)},
    )
    return Network(
        topology=topology,
        coords=np.column_stack([np.zeros(n), np.arange(n)]).astype(np.int32),
        router=np.zeros((n, 1), dtype=np.int32),
        notes=("nothing says where the nodes are: all count as equally near",),
    )
