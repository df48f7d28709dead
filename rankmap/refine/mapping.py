"""A graph's ranks onto a job's nodes: bisected down the machine's tree, placed anew, annealed.

No partitioning library is asked: on the machine's tree with exact sizes, our
own bisections, combined as an evolutionary partitioner does, came out below
KaHIP's and SharedMap's strong settings in a fraction of their time
(`benchmarks.mappers`). Where numba is not installed whole arrays do less of the
same in about the same time (`rankmap.refine.plain`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankmap import progress
from rankmap.refine import budget
from rankmap.refine.cache import installed
from rankmap.refine.cuts import Cuts, cut_nodes
from rankmap.refine.pieces import Piece, pieces

if TYPE_CHECKING:
    from rankmap.pattern.graph import Graph
    from rankmap.refine.arrays import Floats, Longs, State
    from rankmap.score.distance import Distance

__all__ = ["map_ranks", "polish"]


def map_ranks(
    graph: Graph,
    counts: Longs,
    distance: Distance,
    seed: int = 1,
    hot: float = budget.HOT,
    effort: float = 1.0,
) -> Longs:
    """Return the node of each rank.

    Parameters
    ----------
    graph : Graph
        As many ranks as slots.
    counts : int64 (nodes,)
        Slots of each node.
    distance : Distance
        Of these nodes.
    seed : int
    hot : float
        Temperature that annealing begins with, in units of the mean weight
        times the least distance.
    effort : float
        Of tries and steps, 1 being what pays.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.score.distance import machine_distance
    >>> from rankmap.pattern.graph import expanded
    >>> from rankmap.pattern.structured import Ring
    >>> d = machine_distance(nidmap.load_machine("tree:2x2"))
    >>> node = map_ranks(expanded(Ring((8,))), np.full(4, 2), d)
    >>> np.bincount(node).tolist()
    [2, 2, 2, 2]
    """
    state = np.array([2 * seed + 1, 0], dtype=np.uint64)
    known = cut_nodes(distance, counts)
    held = np.append(0, np.cumsum(counts[known.order]))
    progress.step()
    if installed():
        ranks = _bisect(graph, distance, known, held, effort, state)
    else:
        from rankmap.refine.plain import ROUNDS, Edges, bisect_down

        edges = Edges(graph.row, graph.indices, graph.weights)
        ranks = bisect_down(edges, held, known, seed, ROUNDS)
    node = np.empty(graph.size, dtype=np.int64)
    node[ranks] = np.repeat(known.order, counts[known.order])
    return _improve(graph, node, counts, distance, known, state, hot, effort)


def polish(graph: Graph, node: Longs, counts: Longs, distance: Distance) -> Longs:
    """Return nodes of the ranks that cost no more than those given, and mostly less.

    Parameters
    ----------
    graph : Graph
    node : int64 (ranks,)
        Exactly as many ranks on each node as it has slots.
    counts : int64 (nodes,)
    distance : Distance
    """
    state = np.array([3, budget.BEGINNING * budget.total_work(graph.size)], dtype=np.uint64)
    known = cut_nodes(distance, counts)
    return _improve(graph, node, counts, distance, known, state, budget.HOT, 1.0)


def _bisect(
    graph: Graph, distance: Distance, known: Cuts, held: Longs, effort: float, state: State
) -> Longs:
    """Return the ranks in slot order."""
    from rankmap.refine.multisection import multisect

    pulling = np.empty((0, 0))
    if not distance.exact and len(distance) <= budget.MOST_PULLING:
        pulling = np.ascontiguousarray(distance.between(known.order[:, None], known.order[None, :]))
    plan = _plan(distance, known, held)
    ranks = np.arange(graph.size, dtype=np.int32)
    allowed = budget.BEGINNING * effort * budget.total_work(graph.size)
    multisect(
        graph.indptr.astype(np.int32), graph.indices.astype(np.int32), graph.weights.copy(),
        plan.cuts, held, plan.family, plan.starts, plan.repeats, plan.shares, plan.again,
        pulling, allowed, state, ranks,
    )  # fmt: skip
    return ranks.astype(np.int64)


def _improve(
    graph: Graph,
    node: Longs,
    counts: Longs,
    distance: Distance,
    known: Cuts,
    state: State,
    hot: float,
    effort: float,
) -> Longs:
    """Return nodes that cost no more: piece by piece of the machine, on the real distances."""
    if not len(graph.weights):
        return node
    node = node.copy()
    by_node = np.argsort(node, kind="stable")
    first = np.append(0, np.cumsum(counts))
    whole = effort * budget.total_work(graph.size)
    left = max(budget.ALWAYS * whole, whole - float(state[1])) / len(node)
    for low, high in pieces(known, counts):
        nodes = known.order[low:high]
        ranks = np.concatenate([by_node[first[p] : first[p + 1]] for p in nodes.tolist()])
        progress.step()
        piece = Piece(graph, node, nodes, np.sort(ranks), distance)
        if not piece.inner:
            continue
        if installed():
            allowed = left * len(ranks)
            piece.improve(node, counts, known.priority()[low:high], hot, allowed, state)
        else:
            piece.improve_plainly(node, counts, effort * budget.seconds_for(graph.size))
    return node


class _Plan(NamedTuple):
    """What is done at each cut, the cuts of a block in a row.

    Attributes
    ----------
    cuts : int64 (nodes - 1, 3)
    family : int64 (nodes - 1,)
        The block whose parts a cut parts.
    starts : int64 (nodes - 1,)
        Bisections from nothing, at most.
    repeats : int64 (nodes - 1,)
        How often a block's cuts are made.
    shares, again : float64 (nodes - 1,)
        Of all work, for a cut and for placing its block's ranks anew.
    """

    cuts: Longs
    family: Longs
    starts: Longs
    repeats: Longs
    shares: Floats
    again: Floats


def _plan(distance: Distance, known: Cuts, held: Longs) -> _Plan:
    """Return what is done at each cut.

    Most is done where most of J is to be won: J that edges between blocks
    make grows with how much farther these are, and about with the root of
    their number.
    """
    cuts = known.cuts
    slots = (held[cuts[:, 2]] - held[cuts[:, 0]]).astype(np.float64)
    if distance.coords is not None or not len(cuts):
        few, none = np.full(len(cuts), 16), np.zeros(len(cuts))
        return _Plan(cuts.copy(), np.arange(len(cuts)), few, np.ones_like(few), slots, none)
    ends = known.order[cuts[:, 0]], known.order[cuts[:, 2] - 1]
    level = distance.level(*ends)
    block = distance.blocks[ends[0], level - 1]
    grouped = np.lexsort((block, -level))
    level, slots = level[grouped] - 1, slots[grouped]
    share = _shares(distance)
    depth = np.arange(len(share)) / max(1, len(share) - 1)
    outermost = (share > 0.5) & (depth > 0) & distance.exact
    some = 1.5 + 1.5 * depth + 9 * np.minimum(share, 0.25) * (depth > 0)
    again = np.where(outermost, 1.0, budget.ANEW_IN_BLOCK * share)
    family = np.asarray(level * (len(distance) + 1) + block[grouped])
    _, begin, which = np.unique(family, return_index=True, return_inverse=True)
    starts = np.append(0, np.cumsum(np.bincount(which))[:-1])
    whole = np.zeros(len(cuts))
    whole[begin] = np.maximum.reduceat(slots[np.argsort(which, kind="stable")], starts)
    return _Plan(
        np.ascontiguousarray(cuts[grouped]),
        family,
        np.ceil(3 * some).astype(np.int64)[level],
        np.where(outermost, budget.REPEATS, 1)[level],
        some[level] * slots,
        again[level] * whole,
    )


def _shares(distance: Distance) -> Floats:
    """Return which part of J the edges that leave the blocks of each level make, about."""
    from rankmap.pattern.edges import distinct

    parts = [len(distance), *(distinct(c) for c in distance.blocks.T)]
    rise = np.maximum(np.diff(distance.level_distance), 0)
    value = rise * np.sqrt(parts[: len(rise)])
    return np.asarray(value / max(float(value.sum()), 1e-300))
