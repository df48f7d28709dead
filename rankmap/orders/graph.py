# SPDX-License-Identifier: Apache-2.0
"""Graph: the ranks' graph cut along the machine's hierarchy, then refined by real distances.

Made for graphs and matrices that no rule describes (`nidmap.rankmap.refine`). A
structured pattern of moderate size is expanded for it.
"""

from __future__ import annotations

import math

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints
from nidmap.rankmap.orders import ordering
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.graph import Graph, expand_pattern
from nidmap.rankmap.pattern.structured import GridPattern, Lines
from nidmap.rankmap.refine import budget
from nidmap.rankmap.refine.budget import seconds_for
from nidmap.rankmap.refine.cache import remark
from nidmap.rankmap.refine.exhaustive import search_all
from nidmap.rankmap.score.distance import Distance, job_distance
from nidmap.rankmap.score.traffic import cost_of

#: The least and the most effort of a search.
LEAST, MOST = 0.01, 1000

#: Edges that a pattern is expanded to at most.
MOST_EDGES = 1 << 22


@ordering("graph")
def graph(pattern: Pattern, placement: Placement, options: str = "") -> Placement:
    """Cut the ranks' graph along the machine's hierarchy, then refine the placement.

    Every node gets exactly its ranks, in ascending order on it. The same
    graph and slots always give the same order. ``graph:effort=4`` takes four
    times as long, ``graph:effort=0.3`` less than a third. ``graph:seconds=20`` takes no
    more effort than there is time for, by what it is known to take.
    """
    name, number = _parse_option(options)
    seconds, effort, remarks = math.inf, number, [remark()]
    if name == "seconds":
        seconds = number
        effort = max(min(1.0, seconds / seconds_for(placement.ranks)), LEAST)
        if effort < 1:
            remarks.append(f"mapped with {effort:.0%} of the usual search, to end in time")
    node = map_graph(as_graph(pattern), placement, job_distance(placement), effort, seconds)
    return placement.with_ranks_on(node).with_origin(remark="; ".join(filter(None, remarks)))


def _parse_option(options: str) -> tuple[str, float]:
    """Return the strategy's option that a text sets, and its value."""
    name, _, value = (options or "effort=1").partition("=")
    low, high = (0, math.inf) if name == "seconds" else (LEAST, MOST)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if name not in ("effort", "seconds") or not low <= number <= high:
        takes = f"effort=NUMBER ({LEAST:g} to {MOST:g}) or seconds=NUMBER"
        raise UsageError(f"strategy graph takes {takes}, not '{printable(options, 40)}'")
    return name, number


def map_graph(
    pattern: Graph,
    placement: Placement,
    distance: Distance,
    effort: float = 1.0,
    seconds: float = math.inf,
) -> Ints:
    """Return each rank's node; small graphs are searched exhaustively or from several starts."""
    from nidmap.rankmap.refine import mapping

    if pattern.size > budget.FEW:
        return mapping.map_ranks(
            pattern, placement.counts, distance, effort=effort, seconds=seconds
        )
    best = search_all(pattern, placement.node_of_slot, placement.counts, distance)
    if best is not None:
        return best
    effort *= (pattern.size / budget.RANKS) ** budget.LESS  # together they take below a second
    starts = budget.STARTS if pattern.size <= 16 else budget.STARTS_OF_MORE
    tried = [
        mapping.map_ranks(pattern, placement.counts, distance, seed, effort)
        for seed in range(starts)
    ]
    node = tried[int(np.argmin([cost_of(pattern, node, distance) for node in tried]))]
    best = search_all(pattern, node, placement.counts, distance)
    return node if best is None else best


def as_graph(pattern: Pattern) -> Graph:
    """Return a pattern as a graph."""
    if isinstance(pattern, Graph):
        return pattern
    if edge_count(pattern, MOST_EDGES) > MOST_EDGES:
        raise UsageError(
            f"pattern {pattern.spec} has more than {MOST_EDGES} edges, too many for a graph",
            "use strategy boxes, which needs none",
        )
    return expand_pattern(pattern)


def edge_count(pattern: Pattern, most: int) -> int:
    """Return how many edges a pattern has, or some number above `most`."""
    dims = pattern.dims or ()
    if isinstance(pattern, Lines):
        return math.prod(dims) * sum(e - 1 for e in dims) // 2
    if isinstance(pattern, GridPattern):
        return math.prod(dims) * sum(1 for _ in pattern.offsets())
    total = 0
    for edges in pattern.edges():
        total += len(edges)
        if total > most:
            break
    return total
