# SPDX-License-Identifier: Apache-2.0
"""Recursive cuts of a job's nodes, outermost first: block by block, or a torus side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nidmap.placement.support.array_types import Ints
from nidmap.rankmap.score.distance import Distance
from nidmap.rankmap.units import unwrap_coords

Chooser = Callable[[int, int], int]


class Cuts(NamedTuple):
    """Recursive cuts of a job's nodes, outermost first."""

    order: Ints  # (nodes,), the nodes in an order in which every part is contiguous
    # (nodes - 1, 3), nodes ``low … cut - 1`` and ``cut … high - 1`` of that order part; outer ones
    # first
    cuts: Ints

    def priority(self) -> Ints:
        """Return the cut that separates each node of the order from the last, int64 (nodes,)."""
        out = np.zeros(len(self.order), dtype=np.int64)
        out[self.cuts[:, 1]] = np.arange(len(self.cuts))
        return out


def cut_nodes(distance: Distance, counts: Ints) -> Cuts:
    """Return the cuts that follow the machine's structure.

    `counts` (nodes,): slots of each node: a cut has about as many on both sides.
    """
    torus = distance.coords is not None
    return _torus_cuts(distance, counts) if torus else _block_cuts(distance, counts)


def _block_cuts(distance: Distance, counts: Ints) -> Cuts:
    """Return cuts between blocks, the outermost first."""
    columns = np.stack([np.unique(c, return_inverse=True)[1] for c in distance.blocks.T])
    order = np.lexsort(columns)
    blocks = distance.blocks[order]
    held = np.append(0, np.cumsum(counts[order]))
    apart = blocks[1:] != blocks[:-1]

    def choose(low: int, high: int) -> int:
        parted = np.flatnonzero(blocks[low] != blocks[high - 1])
        clean = apart[low : high - 1, parted[-1]] if len(parted) else np.ones(high - low - 1, bool)
        choices = low + 1 + np.flatnonzero(clean)
        return int(choices[np.argmin(np.abs(held[choices] - (held[low] + held[high]) / 2))])

    cuts = _cut_again(len(order), choose)
    level = distance.level(order[cuts[:, 0]], order[cuts[:, 2] - 1])
    return Cuts(order, cuts[np.argsort(-level, kind="stable")])


def _torus_cuts(distance: Distance, counts: Ints) -> Cuts:
    """Return cuts that halve the nodes' longest side each time, largest parts first."""
    assert distance.coords is not None
    place = unwrap_coords(distance.coords, distance.extents)
    used = np.array([len(np.unique(column)) for column in place.T])
    # A ring without a gap is parted after its first node.
    place = (place - (used == distance.extents)) % distance.extents
    order = np.arange(len(place))

    def choose(low: int, high: int) -> int:
        part = order[low:high]
        axis = int(np.argmax(np.ptp(place[part], axis=0)))
        keys = [*np.delete(place[part], axis, axis=1).T, place[part, axis]]
        order[low:high] = part = part[np.lexsort(keys)]
        held, value = np.cumsum(counts[part])[:-1], place[part, axis]
        clean = np.flatnonzero(value[1:] != value[:-1])
        choices = clean if len(clean) else np.arange(len(part) - 1)
        off = np.abs(held[choices] - counts[part].sum() / 2)
        return low + 1 + int(choices[np.argmin(off)])

    cuts = _cut_again(len(order), choose)
    return Cuts(order, cuts[np.argsort(cuts[:, 0] - cuts[:, 2], kind="stable")])


def _cut_again(nodes: int, choose: Chooser) -> Ints:
    """Cut all nodes, then both sides, and so on, as `choose` decides; returns (nodes - 1, 3)."""
    cuts, todo = [], [(0, nodes)]
    while todo:
        low, high = todo.pop()
        if high - low > 1:
            cut = choose(low, high)
            cuts.append((low, cut, high))
            todo += [(low, cut), (cut, high)]
    return np.array(cuts, dtype=np.int64).reshape(-1, 3)
