# SPDX-License-Identifier: Apache-2.0
"""The nested units of an allocation: nodes sorted from the outside in, and level sizes.

An order that walks the grid unit by unit needs no more of a machine than
this: which nodes are in one blade, chassis, group, how many slots that is,
and how much farther apart ranks are that part there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints, Shape
from nidmap.rankmap.score.distance import Distance

#: Number of nodes whose distances are sampled to determine those of a level.
SAMPLE = 192


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Units of one level, in the sorted order of the nodes."""

    # (units + 1,), first slot of each unit, counted along the sorted nodes, and the end
    starts: Ints
    added_distance: float  # additional distance between ranks in different units of this level

    @property
    def size(self) -> int | None:
        """Slots per unit if all have equally many, else None."""
        sizes = np.diff(self.starts)
        return int(sizes[0]) if (sizes == sizes[0]).all() else None


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """An allocation's nodes sorted from the outside in, and its levels."""

    slots: Ints  # (s,), the slots, node after node in sorted order
    # Nodes first, then blades and so on; levels that part nothing are left out
    levels: tuple[Level, ...]
    nodes: Ints  # (n,), the nodes in sorted order, as positions of the allocation

    def order(self, cells: Ints) -> Ints:
        """Return each rank's slot if the k-th slot in sorted order gets rank `cells[k]`."""
        slot_of_rank = np.empty_like(self.slots)
        slot_of_rank[cells] = self.slots
        return slot_of_rank


def units_of(placement: Placement, distance: Distance, blocks: Ints | None = None) -> Units:
    """Return the units of an allocation.

    `distance`: of the slots' nodes. `blocks` (n, k): nested blocks to go by, innermost first;
    None means the network's own without the last, the whole system.
    """
    blocks = distance.blocks[:, :-1] if blocks is None else blocks
    nodes = np.lexsort((np.arange(len(blocks)), *blocks.T))
    ends = np.cumsum(placement.counts[nodes])
    levels: list[Level] = []
    columns = [np.arange(len(blocks)), *blocks[nodes].T]
    for column, added in zip(
        columns, np.diff(level_distances(distance, blocks)).tolist(), strict=True
    ):
        change = np.flatnonzero(column[1:] != column[:-1])
        starts = np.concatenate([[0], ends[change], ends[-1:]])
        if levels and len(levels[-1].starts) == len(starts):  # equal units are one level
            levels[-1] = Level(starts, levels[-1].added_distance + added)
        elif len(starts) > 2:
            levels.append(Level(starts, added))
    return Units(slots_by_node(placement, nodes), tuple(levels), nodes)


def slots_by_node(placement: Placement, nodes: Ints) -> Ints:
    """Return the slots node by node, in another order of the nodes, int64 (s,)."""
    counts = placement.counts[nodes]
    before = np.cumsum(counts) - counts
    return np.repeat(placement.first_slot[nodes] - before, counts) + np.arange(placement.ranks)


def level_distances(distance: Distance, blocks: Ints) -> Floats:
    """Return the distance of nodes by the level at which they meet, float64 (k + 2,).

    0 for one node, then for nodes of one innermost block …, then for nodes
    that share none: exact where the level decides, else the mean of a sample.
    It never falls from one level to the next.
    """
    levels = blocks.shape[1]
    if distance.exact and distance.blocks.shape[1] == levels + 1:
        return np.maximum.accumulate(distance.level_distance)
    sample = _sample_nodes(len(blocks))
    a, b = np.divmod(np.arange(len(sample) ** 2), len(sample))
    # Nodes are sorted from the outside in before some are taken: near ones are together.
    sample = np.lexsort(tuple(blocks.T))[sample]
    far = distance.take(sample).between(a, b)
    a, b = sample[a], sample[b]
    met = (a != b).astype(np.int64) + (blocks[a] != blocks[b]).sum(axis=1)
    count = np.bincount(met, minlength=levels + 2)
    total = np.bincount(met, far, minlength=levels + 2)
    mean = np.where(count > 0, total / np.maximum(count, 1), 0.0)
    mean[0] = 0.0
    return np.maximum.accumulate(mean)


def _sample_nodes(nodes: int) -> Ints:
    """Return a sample of nodes, some near each other and some far; all if there are few."""
    if nodes <= SAMPLE:
        return np.arange(nodes)
    gaps = np.unique(np.geomspace(1, nodes // 4, 24).astype(np.int64)) - 1
    starts = np.arange(SAMPLE // 24) * nodes // (SAMPLE // 24)
    return np.unique((starts[:, None] + gaps) % nodes)


def unwrap_coords(coords: Ints, extents: Shape) -> Ints:
    """Shift torus coordinates so that each axis's widest gap is at its end.

    An allocation that goes round the edge of the torus becomes one piece.
    """
    out = np.empty_like(coords)
    for k, extent in enumerate(extents):
        used = np.unique(coords[:, k])
        gaps = np.diff(np.append(used, used[0] + extent))
        first = used[(int(np.argmax(gaps)) + 1) % len(used)] if gaps.max() > 1 else 0
        out[:, k] = (coords[:, k] - first) % extent
    return out


def bisect_points(coords: Ints) -> Ints:
    """Return nested blocks of points, repeatedly halved along their longest side.

    `coords` (n, d). Returns (n, k): innermost blocks first, each of points with equal
    coordinates.
    """
    part = np.zeros(len(coords), dtype=np.int64)
    columns: list[Ints] = []
    while True:
        halved = _halve_parts(part, coords)
        if (halved == part).all():
            return np.array(columns[::-1], dtype=np.int64).reshape(len(columns), len(coords)).T
        part = halved
        columns.append(part)


def _halve_parts(part: Ints, coords: Ints) -> Ints:
    """Cut all parts in the middle of their longest side, all at once."""
    size = np.bincount(part)
    first, by_part = np.cumsum(size) - size, np.argsort(part, kind="stable")
    low = np.minimum.reduceat(coords[by_part], first)
    longest = np.argmax(np.maximum.reduceat(coords[by_part], first) - low, axis=1)
    side = coords[np.arange(len(coords)), longest[part]]
    middle = np.minimum(first + size // 2, len(side) - 1)
    pivot = side[np.lexsort((side, part))][middle]
    least = low[np.arange(len(size)), longest]
    pivot = np.where(pivot == least, least + 1, pivot)
    halves: Ints = np.unique(2 * part + (side >= pivot[part]), return_inverse=True)[1].reshape(-1)
    return halves
