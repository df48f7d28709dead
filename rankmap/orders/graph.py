"""Graph: the ranks' graph cut down the machine's own tree, then annealed on real distances.

Made for graphs and matrices that no rule describes (`rankmap.refine`). A
structured pattern of moderate size is expanded for it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError, printable
from rankmap.order import Order
from rankmap.orders import ordering
from rankmap.pattern.graph import Graph, expanded
from rankmap.pattern.structured import GridPattern, Lines
from rankmap.refine.cache import remark
from rankmap.score.distance import job_distance
from rankmap.score.traffic import cost_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankmap.pattern import Pattern
    from rankmap.score.distance import Distance
    from rankmap.slots import Slots

    Ints = NDArray[np.int64]

__all__ = ["as_graph", "graph", "placed"]

#: Edges that a pattern is expanded to at most.
MOST_EDGES = 1 << 22


@ordering("graph")
def graph(pattern: Pattern, slots: Slots, options: str = "") -> Order:
    """Cut the ranks' graph down the machine's own tree, then anneal J on the real distances.

    Every node gets exactly its ranks, in ascending order on it. The same
    graph and slots always give the same order. ``graph:effort=4`` takes four
    times as long, ``graph:effort=0.3`` less than a third.
    """
    effort = effort_of(options)
    found = as_graph(pattern)
    distance = job_distance(slots)
    node = mapped(found, slots, distance, effort)
    return Order(placed(node), slots, remark=remark())


def effort_of(options: str) -> float:
    """Return the effort that options ask for, 1 where they ask for nothing.

    Raises
    ------
    UsageError
        Other options, or no number between 0.01 and 1000.

    Examples
    --------
    >>> effort_of("effort=0.5"), effort_of("")
    (0.5, 1.0)
    """
    name, _, value = options.partition("=")
    try:
        effort = float(value) if options else 1.0
    except ValueError:
        effort = 0.0
    if (options and name != "effort") or not 0.01 <= effort <= 1000:
        raise UsageError(
            f"strategy graph takes effort=NUMBER (0.01 to 1000), not '{printable(options, 40)}'"
        )
    return effort


def mapped(found: Graph, slots: Slots, distance: Distance, effort: float = 1.0) -> Ints:
    """Return the node of each rank: the best of all where ranks are few enough to try them all."""
    from rankmap.refine import budget
    from rankmap.refine.exhaustive import search_all
    from rankmap.refine.mapping import map_ranks

    if found.size > budget.FEW:
        return map_ranks(found, slots.counts, distance, effort=effort)
    best = search_all(found, slots.node, slots.counts, distance)
    if best is not None:
        return best
    effort *= (found.size / budget.RANKS) ** budget.LESS  # all of them take less than a second
    far = distance.level_distance[distance.level_distance > 0]
    hottest = 4 * (distance.matrix().max() / far.min() if len(far) else 1.0)
    starts = budget.STARTS if found.size <= 16 else budget.STARTS_OF_MORE
    heats = np.geomspace(budget.HOT, max(hottest, budget.HOT), starts).tolist()
    tried = [map_ranks(found, slots.counts, distance, k, h, effort) for k, h in enumerate(heats)]
    node = tried[int(np.argmin([cost_of(found, node, distance) for node in tried]))]
    best = search_all(found, node, slots.counts, distance)
    return node if best is None else best


def as_graph(pattern: Pattern, most: int = MOST_EDGES) -> Graph:
    """Return a pattern's graph.

    Raises
    ------
    UsageError
        A structured pattern with more than `most` edges.
    """
    if isinstance(pattern, Graph):
        return pattern
    if edge_count(pattern, most) > most:
        raise UsageError(
            f"pattern {pattern.spec} has more than {most} edges, too many for a graph",
            "strategy boxes works without them",
        )
    return expanded(pattern)


def edge_count(pattern: Pattern, most: int) -> int:
    """Return how many edges a pattern has, or some number above `most`."""
    dims = pattern.dims or ()
    if isinstance(pattern, Lines):
        return math.prod(dims) * sum(e - 1 for e in dims) // 2
    if isinstance(pattern, GridPattern):
        return math.prod(dims) * sum(1 for _ in pattern.steps())
    total = 0
    for edges in pattern.edges():
        total += len(edges.a)
        if total > most:
            break
    return total


def placed(node: Ints) -> Ints:
    """Return the slot of each rank, the ranks of a node ascending.

    Examples
    --------
    >>> placed(np.array([1, 0, 1, 0])).tolist()
    [2, 0, 3, 1]
    """
    slots = np.empty(len(node), dtype=np.int64)
    slots[np.argsort(node, kind="stable")] = np.arange(len(node))
    return slots
