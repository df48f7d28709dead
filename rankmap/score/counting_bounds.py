"""Bounds that hold for any graph, by counting.

Two arguments for the weight that leaves the blocks of one level, the better
one being taken:

- *degrees*: in a block of c slots a rank has c - 1 others with it, so all but
  its c - 1 heaviest edges leave.
- *connection*: a connected part of s ranks lies in so many blocks that they
  hold it, k at least, and k - 1 edges without a circle must join them; no
  k - 1 such edges weigh less than the first that Kruskal's algorithm takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.pattern.structured import Lines
from rankmap.score import Bound, by_level_bound, capacities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankmap.pattern import Pattern
    from rankmap.pattern.graph import Graph
    from rankmap.score.distance import Distance
    from rankmap.slots import Slots

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["bound", "cuts"]

#: Structured patterns of more ranks have bounds of their own and are not expanded for this one.
MOST_EXPANDED = 1 << 16


def bound(pattern: Pattern, slots: Slots, distance: Distance) -> Bound | None:
    """Return the counting bound; None for structured patterns too large to expand.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.score.distance import job_distance
    >>> from rankmap.slots import slots_of
    >>> from rankmap.pattern.structured import Ring
    >>> on = slots_of(nidmap.load_machine("tree:2x2,dist=1:3"), None, 2)
    >>> bound(Ring((8,)), on, job_distance(on))
    Bound(value=6.0, why='counting')
    """
    from rankmap.pattern.graph import Graph, expanded

    if not isinstance(pattern, Graph):
        if isinstance(pattern, Lines) or (pattern.ranks or 0) > MOST_EXPANDED:
            return None
        pattern = expanded(pattern)
    return Bound(by_level_bound(cuts(pattern, capacities(slots, distance)), distance), "counting")


def cuts(graph: Graph, capacity: list[Ints]) -> Floats:
    """Return for each level a weight that the edges leaving its blocks have at least.

    Parameters
    ----------
    graph : Graph
    capacity : list of int64 arrays
        Slots of each block, level by level.
    """
    tops = _tops(graph)
    forest = _Forest(graph)
    return np.array([max(_degrees(graph, tops, c), forest.least(c)) for c in capacity])


def _tops(graph: Graph) -> tuple[Ints, Floats]:
    """Return each edge end's place in its rank's row, heaviest first, and its weight."""
    row = np.repeat(np.arange(len(graph.indptr) - 1), np.diff(graph.indptr))
    by_weight = np.lexsort((-graph.weights, row))
    place = np.arange(len(row)) - graph.indptr[row]
    return place, graph.weights[by_weight]


def _degrees(graph: Graph, tops: tuple[Ints, Floats], capacity: Ints) -> float:
    place, weight = tops
    return float(weight[place >= int(capacity.max()) - 1].sum()) / 2


class _Forest:
    """The lightest forest of a graph: Boruvka's rounds, all parts at once."""

    def __init__(self, graph: Graph) -> None:
        a, b, weight = graph.upper()
        part = np.arange(graph.size)
        chosen = np.zeros(len(a), dtype=bool)
        rank = np.empty(len(a), dtype=np.int64)  # ties are broken by place, so no circle closes
        rank[np.argsort(weight, kind="stable")] = np.arange(len(a))
        left = np.arange(len(a))
        while len(left):
            best = np.full(graph.size, len(a))
            np.minimum.at(best, part[a[left]], rank[left])
            np.minimum.at(best, part[b[left]], rank[left])
            taken = left[(rank[left] == best[part[a[left]]]) | (rank[left] == best[part[b[left]]])]
            chosen[taken] = True
            part = _joined(part, part[a[taken]], part[b[taken]])
            left = left[part[a[left]] != part[b[left]]]
        picked = np.flatnonzero(chosen)
        picked = picked[np.argsort(rank[picked])]
        self._part = part[a[picked]]
        self._weight = weight[picked]
        parts, self._sizes = np.unique(part, return_counts=True)
        self._of = np.searchsorted(parts, self._part)

    def least(self, capacity: Ints) -> float:
        """Return the weight that edges between blocks of these capacities have at least."""
        held = np.cumsum(np.sort(capacity)[::-1])
        blocks = np.searchsorted(held, self._sizes, side="left") + 1
        by_part = np.argsort(self._of, kind="stable")
        of = self._of[by_part]
        place = np.arange(len(of)) - np.searchsorted(of, of)
        return float(self._weight[by_part][place < blocks[of] - 1].sum())


def _joined(part: Ints, a: Ints, b: Ints) -> Ints:
    """Return the parts after those at both ends of the edges have become one."""
    label = np.arange(len(part))
    while True:
        low = np.minimum(label[a], label[b])
        np.minimum.at(label, a, low)
        np.minimum.at(label, b, low)
        label = label[label]
        if (label[a] == label[b]).all():
            return np.asarray(label[part])
