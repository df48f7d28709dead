"""Parts of a machine that are improved in one go, and the improvement of one.

A part's table of costs (ranks by nodes) has to fit in memory; the ranks on other
nodes stay where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap import progress
from rankmap.pattern.edges import distinct
from rankmap.refine import budget

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankmap.pattern.graph import Graph
    from rankmap.refine.arrays import Floats, Longs, State
    from rankmap.refine.cuts import Cuts
    from rankmap.score.distance import Distance

__all__ = ["Piece", "pieces"]


def pieces(known: Cuts, counts: Longs) -> list[tuple[int, int]]:
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
        many = graph.indptr[ranks + 1] - graph.indptr[ranks]
        row = np.repeat(np.arange(len(ranks)), many)
        before = np.repeat(graph.indptr[ranks] - np.append(0, np.cumsum(many)[:-1]), many)
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
        self, node: Longs, counts: Longs, priority: Longs, hot: float, allowed: float, state: State
    ) -> None:
        """Place ranks anew and anneal, in place, where that is better."""
        from rankmap.refine.annealing import anneal
        from rankmap.refine.replacement import replace_ranks

        mine, slots = self._local(node, len(counts)).astype(np.int32), counts[self.nodes]
        shared, end = self._shared(mine), float(state[1]) + allowed
        if shared:
            progress.step()
            replace_ranks(
                self.ptr, self.adj, self.weight, mine, np.append(0, np.cumsum(slots)), self.far,
                self.outer, priority, budget.MOST_ANEW, budget.ANEW * shared * allowed, state,
            )  # fmt: skip
        progress.step()
        left = max(0.2 * allowed, end - float(state[1]))
        work = min(budget.MOST_ANNEALING * len(mine), left)
        anneal(
            self.ptr, self.adj, self.weight.astype(np.float32), mine, slots,
            self.far.astype(np.float32), self.outer.astype(np.float32),
            hot, budget.MOVES * work, budget.SWAPS * work, state,
        )  # fmt: skip
        node[self.ranks] = self.nodes[mine]

    def improve_plainly(self, node: Longs, counts: Longs, seconds: float) -> None:
        """Swap ranks without compiled code, in place; about so many seconds for all ranks."""
        from rankmap.refine.plain import Edges, swap_ranks

        edges = Edges(self.row, self.adj.astype(np.int64), self.weight)
        share = seconds * len(self.ranks) / len(node)
        rounds = share * budget.ENTRIES_A_SECOND / (len(self.nodes) * len(self.ranks))
        most = int(np.clip(rounds, budget.FEWEST_ROUNDS, budget.MOST_ROUNDS))
        mine = swap_ranks(edges, self._local(node, len(counts)), self.far, self.outer, most)
        node[self.ranks] = self.nodes[mine]

    def _local(self, node: Longs, nodes: int) -> Longs:
        """Return the node of each of the piece's ranks as an index of its nodes."""
        place = np.full(nodes, -1, dtype=np.int64)
        place[self.nodes] = np.arange(len(self.nodes))
        return np.asarray(place[node[self.ranks]])

    def _shared(self, mine: NDArray[np.int32]) -> float:
        """Return 1 where the nodes that talk share many edges, 0 where few, or what is between."""
        here, there = mine[self.row].astype(np.int64), mine[self.adj]
        off = here < there
        pairs = distinct(here[off] * len(self.nodes) + there[off])
        edges = float(off.sum()) / max(1, pairs)
        few, many = budget.FEW_SHARED, budget.MANY_SHARED
        return float(np.clip((edges - few) / (many - few), 0, 1))
