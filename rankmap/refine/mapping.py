# SPDX-License-Identifier: Apache-2.0
"""Maps a graph's ranks to a job's nodes: bisection along the hierarchy, then improvement.

No partitioning library is asked: on the machine's tree with exact sizes, our
own bisections, combined as an evolutionary partitioner does, came out below
KaHIP's and SharedMap's strong settings in a fraction of their time
(`benchmarks.mappers`). Where numba is not installed whole arrays do less of the
same in about the same time (`nidmap.rankmap.refine.plain`).

The nodes are improved part by part: a part's table of costs (ranks by nodes) has to
fit in memory, and the ranks on other nodes stay where they are.
"""

from __future__ import annotations

import math
import time

import numpy as np

from nidmap.placement.traffic import Traffic
from nidmap.rankmap import progress
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.refine import budget
from nidmap.rankmap.refine.cache import numba_installed
from nidmap.rankmap.refine.cuts import Cuts, cut_nodes
from nidmap.rankmap.refine.exchanges import replace_ranks
from nidmap.rankmap.refine.jit import Csr, Floats, Longs, State
from nidmap.rankmap.refine.multisection import multisect, plan_cuts
from nidmap.rankmap.refine.plain import ROUNDS, bisect_down, swap_ranks
from nidmap.rankmap.refine.subgraph import PlacedRanks
from nidmap.rankmap.score.distance import Distance


def map_ranks(
    graph: Graph,
    counts: Longs,
    distance: Distance,
    seed: int = 1,
    effort: float = 1.0,
    seconds: float = math.inf,
) -> Longs:
    """Return the node of each rank.

    `graph`: as many ranks as slots. `counts` (nodes,): slots of each node. `distance`: of these
    nodes. `effort`: of tries and steps, 1 being what pays. `seconds`: of processor time that
    there are: after them no further part of the machine is cut, nor improved; ranks of a part
    that is not cut are dealt to its nodes as they come.
    """
    state = np.array([2 * seed + 1, 0], dtype=np.uint64)
    known = cut_nodes(distance, counts)
    held = np.append(0, np.cumsum(counts[known.order]))
    end = time.thread_time() + seconds
    progress.advance("graph: cut down the machine")
    if numba_installed():
        beginning = budget.BEGINNING if distance.coords is None else budget.TORUS_BEGINNING
        allowed = beginning * effort * budget.total_work(graph.size)
        ends = graph.indptr.astype(np.int32), graph.indices.astype(np.int32)
        no_bias, ones = np.zeros(graph.size), np.ones(graph.size, dtype=np.int32)
        g = Csr(*ends, graph.weights.copy(), no_bias, ones)
        ranks = multisect(g, plan_cuts(distance, known, held), allowed, state, end)
    else:
        edges = Traffic.of(graph.row, graph.indices, graph.weights)
        ranks = bisect_down(edges, held, known, seed, ROUNDS)
    node = np.empty(graph.size, dtype=np.int64)
    node[ranks] = np.repeat(known.order, counts[known.order])
    return _improve_nodes(graph, node, counts, distance, known, state, effort, end)


def polish_nodes(graph: Graph, node: Longs, counts: Longs, distance: Distance) -> Longs:
    """Return nodes of the ranks that never cost more, and mostly less, than the given ones.

    `node` (ranks,): exactly as many ranks on each node as it has slots. `counts` (nodes,).
    """
    state = np.array([3, budget.BEGINNING * budget.total_work(graph.size)], dtype=np.uint64)
    known = cut_nodes(distance, counts)
    return _improve_nodes(graph, node, counts, distance, known, state, 1.0, math.inf)


def _improve_nodes(
    graph: Graph, node: Longs, counts: Longs, distance: Distance, known: Cuts, state: State,
    effort: float, end: float,
) -> Longs:  # fmt: skip
    """Improve the mapping piece by piece of the machine, by actual distances."""
    if not len(graph.weights):
        return node
    node = node.copy()
    by_node = np.argsort(node, kind="stable")
    first = np.append(0, np.cumsum(counts))
    total_work = effort * budget.total_work(graph.size)
    # The work left over by bisection, but at least a fixed share of all, divided over the ranks.
    left = max(budget.ALWAYS * total_work, total_work - float(state[1])) / len(node)
    parts = machine_pieces(known, counts)
    for number, (low, high) in enumerate(parts, start=1):
        if time.thread_time() > end:
            break
        nodes = known.order[low:high]
        ranks = np.concatenate([by_node[first[p] : first[p + 1]] for p in nodes.tolist()])
        progress.advance(f"graph: part {number} of {len(parts)}")
        piece = Piece(graph, node, nodes, np.sort(ranks), distance)
        if piece.inner and numba_installed():
            allowed = left * len(ranks)
            piece.improve(node, counts, known.priority()[low:high], allowed, state)
        elif piece.inner:
            piece.improve_plainly(node, counts, effort * budget.seconds_for(graph.size))
    return node


def machine_pieces(known: Cuts, counts: Longs) -> list[tuple[int, int]]:
    """Return the largest parts of at least two nodes that can be improved in one go."""
    todo, out = [(0, len(known.order))], []
    where = {(low, high): cut for low, cut, high in known.cuts.tolist()}
    held = np.append(0, np.cumsum(counts[known.order]))
    while todo:
        low, high = todo.pop()
        entries = (high - low) * int(held[high] - held[low])
        # Tables of nodes x nodes and ranks x nodes have to fit: larger parts are cut where the
        # machine is.
        if high - low <= budget.MOST_NODES and entries <= budget.MOST_ENTRIES:
            if high - low > 1:
                out.append((low, high))
            continue
        cut = where.get((low, high))
        if cut is not None:
            todo += [(cut, high), (low, cut)]
    return out


class Piece:
    """Some nodes and the ranks on them; ranks elsewhere stay fixed.

    Weights are 1 on average and the least distance is 1.

    `graph`: of all ranks. `node` (all ranks,). `nodes` (k,): of the piece. `ranks` (n,): on these
    nodes, ascending. `distance`: of all nodes.
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
        self.inner = int(inside.sum())  # entries of the rows of these ranks that name one of them
        self.row, self.adj, self.weight = row[inside], local[other[inside]], weight[inside]
        self.ptr = np.searchsorted(self.row, np.arange(len(ranks) + 1)).astype(np.int32)
        near = distance.level_distance[1:][distance.level_distance[1:] > 0]
        scale = float(near.min()) if len(near) else 1.0
        self.far = distance.between(nodes[:, None], nodes[None, :]) / scale
        # Where levels alone decide distances, all ranks elsewhere are equally far from all nodes of
        # the piece, and cannot favour one.
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
        """Place ranks again, in place, if that is better."""
        piece_node, slots = self._local(node, len(counts)).astype(np.int32), counts[self.nodes]
        progress.advance()
        n = len(piece_node)
        g = Csr(self.ptr, self.adj, self.weight, np.zeros(n), np.ones_like(piece_node))
        first, none = np.append(0, np.cumsum(slots)), np.full(n, -1, dtype=np.int32)
        x = PlacedRanks(g, piece_node, first, self.far, self.outer, np.empty_like(piece_node), none)
        replace_ranks(x, priority, budget.MOST_ANEW, allowed, state)
        node[self.ranks] = self.nodes[piece_node]

    def improve_plainly(self, node: Longs, counts: Longs, seconds: float) -> None:
        """Swap ranks without compiled code, in place, within roughly the given seconds."""
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
