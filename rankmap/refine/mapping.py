"""A graph's ranks onto a job's nodes: bisected down the machine's tree, then placed anew.

No partitioning library is asked: on the machine's tree with exact sizes, our
own bisections, combined as an evolutionary partitioner does, came out below
KaHIP's and SharedMap's strong settings in a fraction of their time
(`benchmarks.mappers`). Where numba is not installed whole arrays do less of the
same in about the same time (`rankmap.refine.plain`).

The nodes are improved part by part: a part's table of costs (ranks by nodes) has to
fit in memory, and the ranks on other nodes stay where they are.
"""

from __future__ import annotations

import math
import time

import numpy as np

from placement.support.arrays import count_distinct
from placement.traffic import Traffic
from rankmap import progress
from rankmap.pattern.graph import Graph
from rankmap.refine import budget
from rankmap.refine.cache import numba_installed
from rankmap.refine.cuts import Cuts, cut_nodes
from rankmap.refine.exchanges import replace_ranks
from rankmap.refine.jit import Csr, Floats, Longs, State
from rankmap.refine.multisection import CutPlan, multisect
from rankmap.refine.plain import ROUNDS, bisect_down, swap_ranks
from rankmap.refine.subgraph import PlacedRanks
from rankmap.score.distance import Distance


def map_ranks(
    graph: Graph,
    counts: Longs,
    distance: Distance,
    seed: int = 1,
    effort: float = 1.0,
    seconds: float = math.inf,
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
    effort : float
        Of tries and steps, 1 being what pays.
    seconds : float
        Of processor time that there are: after them no further part of the machine is cut, nor
        improved; ranks of a part that is not cut are dealt to its nodes as they come.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.score.distance import machine_distance
    >>> from rankmap.pattern.graph import expand_pattern
    >>> from rankmap.pattern.structured import Ring
    >>> d = machine_distance(nidmap.load_machine("tree:2x2"))
    >>> node = map_ranks(expand_pattern(Ring((8,))), np.full(4, 2), d)
    >>> np.bincount(node).tolist()
    [2, 2, 2, 2]
    """
    state = np.array([2 * seed + 1, 0], dtype=np.uint64)
    known = cut_nodes(distance, counts)
    held = np.append(0, np.cumsum(counts[known.order]))
    end = time.thread_time() + seconds
    progress.step("graph: cut down the machine")
    if numba_installed():
        ranks = _bisect_slots(graph, distance, known, held, effort, state, end)
    else:
        edges = Traffic.of(graph.row, graph.indices, graph.weights)
        ranks = bisect_down(edges, held, known, seed, ROUNDS)
    node = np.empty(graph.size, dtype=np.int64)
    node[ranks] = np.repeat(known.order, counts[known.order])
    return _improve_nodes(graph, node, counts, distance, known, state, effort, end)


def polish_nodes(graph: Graph, node: Longs, counts: Longs, distance: Distance) -> Longs:
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
    return _improve_nodes(graph, node, counts, distance, known, state, 1.0, math.inf)


def _bisect_slots(
    graph: Graph, distance: Distance, known: Cuts, held: Longs, effort: float, state: State,
    end: float,
) -> Longs:  # fmt: skip
    """Return the ranks in slot order, cut after cut as long as there is time."""
    ranks = np.arange(graph.size, dtype=np.int32)
    allowed = budget.BEGINNING * effort * budget.total_work(graph.size)
    ends = graph.indptr.astype(np.int32), graph.indices.astype(np.int32)
    g = Csr(*ends, graph.weights.copy(), np.zeros(graph.size), np.ones_like(ranks))
    plan = _plan_cuts(distance, known, held)
    where = np.tile(np.array([0, len(held) - 1], dtype=np.int32), (graph.size, 1))
    begin = 0
    for stop in _stopping_cuts(plan, math.isfinite(end)):
        if time.thread_time() > end:
            break
        progress.step()
        multisect(g, plan, begin, stop, allowed, state, ranks, where)
        begin = stop
    return ranks.astype(np.int64)


def _stopping_cuts(plan: CutPlan, several: bool) -> list[int]:
    """Return after which cuts the time may be looked at: some of half of all slots."""
    cuts = len(plan.cuts)
    if not several or not cuts:
        return [cuts]
    held = np.cumsum(plan.first[plan.cuts[:, 2]] - plan.first[plan.cuts[:, 0]])
    ends = np.append(np.flatnonzero(np.diff(plan.family)) + 1, cuts)
    part = held[ends - 1] * 2 // int(plan.first[-1])
    return [int(stop) for stop in ends[np.append(np.diff(part) > 0, True)]]


def _improve_nodes(
    graph: Graph, node: Longs, counts: Longs, distance: Distance, known: Cuts, state: State,
    effort: float, end: float,
) -> Longs:  # fmt: skip
    """Return nodes that cost no more: piece by piece of the machine, on the real distances."""
    if not len(graph.weights):
        return node
    node = node.copy()
    by_node = np.argsort(node, kind="stable")
    first = np.append(0, np.cumsum(counts))
    total_work = effort * budget.total_work(graph.size)
    left = max(budget.ALWAYS * total_work, total_work - float(state[1])) / len(node)
    parts = machine_pieces(known, counts)
    for number, (low, high) in enumerate(parts, start=1):
        if time.thread_time() > end:
            break
        nodes = known.order[low:high]
        ranks = np.concatenate([by_node[first[p] : first[p + 1]] for p in nodes.tolist()])
        progress.step(f"graph: part {number} of {len(parts)}")
        piece = Piece(graph, node, nodes, np.sort(ranks), distance)
        if piece.inner and numba_installed():
            allowed = left * len(ranks)
            piece.improve(node, counts, known.priority()[low:high], allowed, state)
        elif piece.inner:
            piece.improve_plainly(node, counts, effort * budget.seconds_for(graph.size))
    return node


def _plan_cuts(distance: Distance, known: Cuts, held: Longs) -> CutPlan:
    """Return what is done at each cut.

    Most is done where most of J is to be won: J that edges between blocks
    make grows with how much farther these are, and about with the root of
    their number.
    """
    cuts, far = known.cuts, np.empty((0, 0))
    if not distance.exact and len(distance) <= budget.MOST_PULLING:
        far = np.ascontiguousarray(distance.between(known.order[:, None], known.order[None, :]))
    slots = (held[cuts[:, 2]] - held[cuts[:, 0]]).astype(np.float64)
    if distance.coords is not None or not len(cuts):
        tries, families = np.full(len(cuts), 16), np.arange(len(cuts))
        return CutPlan(
            held, far, cuts.copy(), families, tries, np.ones_like(tries), slots, 0 * slots
        )
    ends = known.order[cuts[:, 0]], known.order[cuts[:, 2] - 1]
    level = distance.level(*ends)
    block = distance.blocks[ends[0], level - 1]
    grouped = np.lexsort((block, -level))
    level, slots = level[grouped] - 1, slots[grouped]
    share = _level_shares(distance)
    depth = np.arange(len(share)) / max(1, len(share) - 1)
    outermost = (share > 0.5) & (depth > 0) & distance.exact
    effort = 1.5 + 1.5 * depth + 9 * np.minimum(share, 0.25) * (depth > 0)
    starts, repeats = np.ceil(3 * effort).astype(np.int64), np.where(outermost, budget.REPEATS, 1)
    again = np.where(outermost, 1.0, budget.ANEW_IN_BLOCK * share)
    family = np.asarray(level * (len(distance) + 1) + block[grouped])
    _, begin, family_of_cut = np.unique(family, return_index=True, return_inverse=True)
    block_slots = np.zeros(len(cuts))  # the slots of each block, at its first cut
    np.maximum.at(block_slots, begin[family_of_cut], slots)
    often = starts[level], repeats[level]
    cuts = np.ascontiguousarray(cuts[grouped])
    return CutPlan(
        held, far, cuts, family, *often, effort[level] * slots, again[level] * block_slots
    )


def _level_shares(distance: Distance) -> Floats:
    """Return which part of J the edges that leave the blocks of each level make, about."""
    parts = [len(distance), *(count_distinct(c) for c in distance.blocks.T)]
    rise = np.maximum(np.diff(distance.level_distance), 0)
    value = rise * np.sqrt(parts[: len(rise)])
    return np.asarray(value / max(float(value.sum()), 1e-300))


def machine_pieces(known: Cuts, counts: Longs) -> list[tuple[int, int]]:
    """Return the largest parts of the nodes, of two at least, that can be improved in one go."""
    todo, out = [(0, len(known.order))], []
    where = {(low, high): cut for low, cut, high in known.cuts.tolist()}
    held = np.append(0, np.cumsum(counts[known.order]))
    while todo:
        low, high = todo.pop()
        entries = (high - low) * int(held[high] - held[low])
        if high - low <= budget.MOST_NODES and entries <= budget.MOST_ENTRIES:
            if high - low > 1:
                out.append((low, high))
            continue
        cut = where.get((low, high))
        if cut is not None:
            todo += [(cut, high), (low, cut)]
    return out


class Piece:
    """Some nodes and the ranks on them; those elsewhere stay where they are.

    Weights are 1 on average and the least distance is 1.

    Parameters
    ----------
    graph : Graph
        Of all ranks.
    node : int64 (all ranks,)
    nodes : int64 (k,)
        Of the piece.
    ranks : int64 (n,)
        On these nodes, ascending.
    distance : Distance
        Of all nodes.

    Attributes
    ----------
    inner : int
        Entries of the rows of these ranks that name one of them.
    """

    def __init__(
        self, graph: Graph, node: Longs, nodes: Longs, ranks: Longs, distance: Distance
    ) -> None:
        local = np.full(len(node), -1, dtype=np.int32)
        local[ranks] = np.arange(len(ranks))
        degree = graph.indptr[ranks + 1] - graph.indptr[ranks]
        row = np.repeat(np.arange(len(ranks)), degree)
        before = np.repeat(graph.indptr[ranks] - np.append(0, np.cumsum(degree)[:-1]), degree)
        entry = np.arange(len(row)) + before
        other, weight = graph.indices[entry], graph.weights[entry] / graph.weights.mean()
        inside = local[other] >= 0
        self.nodes, self.ranks = nodes, ranks
        self.inner = int(inside.sum())
        self.row, self.adj, self.weight = row[inside], local[other[inside]], weight[inside]
        self.ptr = np.searchsorted(self.row, np.arange(len(ranks) + 1)).astype(np.int32)
        near = distance.level_distance[1:][distance.level_distance[1:] > 0]
        scale = float(near.min()) if len(near) else 1.0
        self.far = distance.between(nodes[:, None], nodes[None, :]) / scale
        self.outer: Floats = np.zeros((0, 0))
        if not distance.exact and not inside.all():
            there, place = np.unique(node[other[~inside]], return_inverse=True)
            table = distance.between(there[:, None], nodes[None, :])
            self.outer = np.zeros((len(ranks), len(nodes)))
            cost = (weight[~inside] / scale)[:, None] * table[place.reshape(-1)]
            np.add.at(self.outer, row[~inside], cost)

    def improve(
        self, node: Longs, counts: Longs, priority: Longs, allowed: float, state: State
    ) -> None:
        """Place ranks anew, in place, where that is better."""
        piece_node, slots = self._local(node, len(counts)).astype(np.int32), counts[self.nodes]
        progress.step()
        n = len(piece_node)
        g = Csr(self.ptr, self.adj, self.weight, np.zeros(n), np.ones_like(piece_node))
        first, none = np.append(0, np.cumsum(slots)), np.full(n, -1, dtype=np.int32)
        x = PlacedRanks(g, piece_node, first, self.far, self.outer, np.empty_like(piece_node), none)
        replace_ranks(x, priority, budget.MOST_ANEW, allowed, state)
        node[self.ranks] = self.nodes[piece_node]

    def improve_plainly(self, node: Longs, counts: Longs, seconds: float) -> None:
        """Swap ranks without compiled code, in place; about so many seconds for all ranks."""
        edges = Traffic.of(self.row, self.adj, self.weight)
        share = seconds * len(self.ranks) / len(node)
        rounds = share * budget.ENTRIES_A_SECOND / (len(self.nodes) * len(self.ranks))
        most = int(np.clip(rounds, budget.FEWEST_ROUNDS, budget.MOST_ROUNDS))
        piece_node = swap_ranks(edges, self._local(node, len(counts)), self.far, self.outer, most)
        node[self.ranks] = self.nodes[piece_node]

    def _local(self, node: Longs, nodes: int) -> Longs:
        """Return the node of each of the piece's ranks as an index of its nodes."""
        place = np.full(nodes, -1, dtype=np.int64)
        place[self.nodes] = np.arange(len(self.nodes))
        return np.asarray(place[node[self.ranks]])
