"""A graph's ranks onto a job's nodes: halved down the machine's tree, placed anew, annealed.

No partitioning library is asked: on the machine's tree with exact sizes, our
own halvings, combined as an evolutionary partitioner does, came out below
KaHIP's and SharedMap's strong settings in a fraction of their time
(`benchmarks.mappers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.errors import UsageError
from rankmap import progress
from rankmap.graph import distinct
from rankmap.refine.native import anneal, block_splits, installed, multisect, rework
from rankmap.refine.torus import torus_splits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankmap.distance import Distance
    from rankmap.graph import Graph

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["map_ranks", "polish", "seconds_for"]

#: Ranks that are mapped where the kernels are not compiled, which is a hundred times slower.
MOST_UNCOMPILED = 4096

#: Temperature that annealing begins with where the beginning is good.
HOT = 0.8

#: Work (`rankmap.refine.kernels.tick`) for so many ranks, and the powers of the ranks with which
#: it is more for more of them, and less for fewer.
WORK, RANKS, MORE, LESS = 1.6e8, 4096, 0.65, 0.35

#: The part of it that is done where the kernels are not compiled.
UNCOMPILED = 0.01

#: Work that is done in a second, about.
A_SECOND = 2.0e8

#: How often ranks are placed anew on average, at most.
MOST_ANEW = 40.0

#: Parts of the work: for the beginning, and of the rest for placing ranks anew where nodes share
#: many edges.
BEGINNING, ANEW = 0.7, 0.75

#: Work of a family of cuts for placing anew, as often as these, beside one halving.
ANEW_IN_BLOCK = 8.0

#: How often the blocks of a level that makes most of J are made, the best being taken.
REPEATS = 3

#: Edges a pair of nodes has between it where placing anew does not pay yet, and where it does.
FEW_SHARED, MANY_SHARED = 2.0, 6.0

#: Work a rank while annealing, at most.
MOST = 12e3

#: Nodes of which all distances are looked at while they are taken apart.
MOST_PULLING = 2048

#: Nodes, and entries of the table of costs, that are looked at in one go.
MOST_NODES = 256
MOST_ENTRIES = 1 << 22


class Cuts(NamedTuple):
    """How a job's nodes are taken apart, from the outside in.

    Attributes
    ----------
    order : int64 (nodes,)
        The nodes so that every part of them stands in a row.
    cuts : int64 (nodes - 1, 3)
        Nodes ``low … cut - 1`` and ``cut … high - 1`` of that order part; outer ones first.
    """

    order: Ints
    cuts: Ints

    def priority(self) -> Ints:
        """Return which cut parts each node of the order from the one before, int64 (nodes,)."""
        out = np.zeros(len(self.order), dtype=np.int64)
        out[self.cuts[:, 1]] = np.arange(len(self.cuts))
        return out


def map_ranks(
    graph: Graph,
    counts: Ints,
    distance: Distance,
    seed: int = 1,
    hot: float = HOT,
    effort: float = 1.0,
) -> Ints:
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

    Raises
    ------
    UsageError
        A large graph where numba is not installed.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.distance import machine_distance
    >>> from rankmap.graph import expanded
    >>> from rankmap.structured import Ring
    >>> d = machine_distance(nidmap.load_machine("tree:2x2"))
    >>> node = map_ranks(expanded(Ring((8,))), np.full(4, 2), d)
    >>> np.bincount(node).tolist()
    [2, 2, 2, 2]
    """
    if not installed() and graph.size > MOST_UNCOMPILED:
        raise UsageError(
            f"{graph.size} ranks are mapped as a graph only with numba", "pip install numba"
        )
    state = np.array([2 * seed + 1, 0], dtype=np.uint64)
    ptr, adj = graph.indptr.astype(np.int32), graph.indices.astype(np.int32)
    known = _cuts(distance, counts)
    first = np.append(0, np.cumsum(counts[known.order]))
    families = _families(distance, known, first)
    allowed = BEGINNING * _work(graph, effort)
    progress.step()
    pulling = _pulling(distance, known)
    ranks = np.arange(graph.size, dtype=np.int32)
    cuts, family, *plan = families
    multisect(ptr, adj, graph.weights, cuts, first, family, *plan, pulling, allowed, state, ranks)
    node = np.empty(graph.size, dtype=np.int64)
    node[ranks] = np.repeat(known.order, counts[known.order])
    return polish(graph, node, counts, distance, state, known, hot, effort)


def polish(
    graph: Graph,
    node: Ints,
    counts: Ints,
    distance: Distance,
    state: NDArray[np.uint64] | None = None,
    known: Cuts | None = None,
    hot: float = HOT,
    effort: float = 1.0,
) -> Ints:
    """Return nodes of the ranks that cost no more than those given, and mostly less.

    Parameters
    ----------
    graph : Graph
    node : int64 (ranks,)
        Exactly as many ranks on each node as it has slots.
    counts : int64 (nodes,)
    distance : Distance
    state : uint64 (2,) or None
        Of the random numbers, and the work done of all that is allowed.
    known : Cuts or None
        How the nodes are taken apart; None: by the machine's tree.
    hot, effort : float
        See `map_ranks`.
    """
    if state is None:
        state = np.array([3, BEGINNING * _work(graph, effort)], dtype=np.uint64)
    if known is None:
        known = _cuts(distance, counts)
    if not installed() or not len(graph.weights):
        return node
    node = node.copy()
    by_node = np.argsort(node, kind="stable")
    first = np.append(0, np.cumsum(counts))
    left = max(0.1 * _work(graph, effort), _work(graph, effort) - float(state[1])) / len(node)
    for low, high in _pieces(known, counts):
        nodes = known.order[low:high]
        ranks = np.concatenate([by_node[first[p] : first[p + 1]] for p in nodes.tolist()])
        progress.step()
        piece = _Piece(graph, node, nodes, np.sort(ranks), distance)
        if piece.inner:
            allowed = left * len(ranks)
            piece.improve(node, counts, known.priority()[low:high], hot, allowed, state)
    return node


class _Piece:
    """Some nodes and the ranks on them; those elsewhere stay where they are.

    Weights are 1 on average and the least distance is 1.
    """

    def __init__(
        self, graph: Graph, node: Ints, nodes: Ints, ranks: Ints, distance: Distance
    ) -> None:
        local = np.full(len(node), -1, dtype=np.int32)
        local[ranks] = np.arange(len(ranks))
        row, entry = _rows(graph, ranks)
        other, weight = graph.indices[entry], graph.weights[entry] / graph.weights.mean()
        inside = local[other] >= 0
        self.nodes, self.ranks = nodes, ranks
        self.inner = int(inside.sum())
        self.ptr = np.searchsorted(row[inside], np.arange(len(ranks) + 1)).astype(np.int32)
        self.adj, self.weight = local[other[inside]], weight[inside]
        near = distance.level_distance[1:][distance.level_distance[1:] > 0]
        scale = float(near.min()) if len(near) else 1.0
        self.far = distance.between(nodes[:, None], nodes[None, :]) / scale
        self.outer: Floats = np.zeros((0, 0))
        if not distance.exact and not inside.all():
            ends = row[~inside], node[other[~inside]], weight[~inside] / scale
            self.outer = _outer(*ends, nodes, distance, len(ranks))

    def improve(
        self,
        node: Ints,
        counts: Ints,
        priority: Ints,
        hot: float,
        allowed: float,
        state: NDArray[np.uint64],
    ) -> None:
        """Place ranks anew and anneal, in place, where that is better."""
        place = np.full(len(counts), -1, dtype=np.int32)
        place[self.nodes] = np.arange(len(self.nodes))
        mine, slots = place[node[self.ranks]], counts[self.nodes]
        shared, end = self._shared(mine), float(state[1]) + allowed
        if shared:
            first = np.append(0, np.cumsum(slots))
            graph = self.ptr, self.adj, self.weight
            part = ANEW * shared * allowed
            progress.step()
            rework(*graph, mine, first, self.far, self.outer, priority, MOST_ANEW, part, state)
        progress.step()
        work = min(MOST * len(mine), max(0.2 * allowed, end - float(state[1])))
        anneal(
            self.ptr, self.adj, self.weight.astype(np.float32), mine, slots,
            self.far.astype(np.float32), self.outer.astype(np.float32),
            hot, 0.7 * work, 0.3 * work, state,
        )  # fmt: skip
        node[self.ranks] = self.nodes[mine]

    def _shared(self, mine: NDArray[np.int32]) -> float:
        """Return 1 where the nodes that talk share many edges, 0 where few, or what is between."""
        row = np.repeat(mine, np.diff(self.ptr)).astype(np.int64)
        off = row < mine[self.adj]
        pairs = distinct(row[off] * len(self.nodes) + mine[self.adj][off])
        edges = float(off.sum()) / max(1, pairs)
        return float(np.clip((edges - FEW_SHARED) / (MANY_SHARED - FEW_SHARED), 0, 1))


def _rows(graph: Graph, ranks: Ints) -> tuple[Ints, Ints]:
    """Return for every entry in the rows of some ranks which of these it is, and the entry."""
    many = graph.indptr[ranks + 1] - graph.indptr[ranks]
    row = np.repeat(np.arange(len(ranks)), many)
    start = np.repeat(graph.indptr[ranks] - np.append(0, np.cumsum(many)[:-1]), many)
    return row, np.arange(len(row)) + start


def _outer(
    row: Ints, there: Ints, weight: NDArray[np.float64], nodes: Ints, distance: Distance, n: int
) -> NDArray[np.float64]:
    """Return what the edges to ranks on other nodes cost with each rank on each of the nodes."""
    once, place = np.unique(there, return_inverse=True)
    table = distance.between(once[:, None], nodes[None, :])
    out = np.zeros((n, len(nodes)))
    np.add.at(out, row, weight[:, None] * table[place.reshape(-1)])
    return out


def _cuts(distance: Distance, counts: Ints) -> Cuts:
    """Return how the machine takes the nodes apart."""
    if distance.coords is not None:
        order, cuts = torus_splits(distance.coords, distance.extents, counts)
        size = cuts[:, 2] - cuts[:, 0]
        return Cuts(order, cuts[np.argsort(-size, kind="stable")])
    columns = np.stack([np.unique(c, return_inverse=True)[1] for c in distance.blocks.T])
    order = np.lexsort(columns)
    first = np.append(0, np.cumsum(counts[order]))
    cuts = np.empty((len(order) - 1, 3), dtype=np.int64)
    block_splits(np.ascontiguousarray(distance.blocks[order]), first, cuts)
    level = distance.level(order[cuts[:, 0]], order[cuts[:, 2] - 1])
    return Cuts(order, cuts[np.argsort(-level, kind="stable")])


def _pulling(distance: Distance, known: Cuts) -> Floats:
    """Return the distances of the nodes in the cuts' order where these matter, else none."""
    if distance.exact or len(distance) > MOST_PULLING:
        return np.empty((0, 0))
    return np.ascontiguousarray(distance.between(known.order[:, None], known.order[None, :]))


def seconds_for(ranks: int) -> float:
    """Return about how many seconds mapping so many ranks takes."""
    return _whole(ranks) / A_SECOND


def _work(graph: Graph, effort: float) -> float:
    """Return the work that is done for a graph."""
    return effort * _whole(graph.size) * (1.0 if installed() else UNCOMPILED)


def _whole(ranks: int) -> float:
    return float(WORK * (ranks / RANKS) ** (MORE if ranks > RANKS else LESS))


def _families(
    distance: Distance, known: Cuts, first: Ints
) -> tuple[Ints, Ints, Ints, Ints, Floats, Floats]:
    """Return the cuts of each block in a row, their block, and what is done for each.

    That is the halvings of a cut at most, how often a block's cuts are made,
    and the shares of all work for a cut and for placing its block's ranks anew.

    Most is done where most of J is to be won: J that edges between blocks
    make grows with how much farther these are, and about with the root of
    their number.
    """
    cuts = known.cuts
    slots = (first[cuts[:, 2]] - first[cuts[:, 0]]).astype(np.float64)
    if distance.coords is not None or not len(cuts):
        few, none = np.full(len(cuts), 16), np.zeros(len(cuts))
        return cuts.copy(), np.arange(len(cuts)), few, np.ones_like(few), slots, none
    ends = known.order[cuts[:, 0]], known.order[cuts[:, 2] - 1]
    level = distance.level(*ends)
    block = distance.blocks[ends[0], level - 1]
    grouped = np.lexsort((block, -level))
    level, slots = level[grouped] - 1, slots[grouped]
    share = _shares(distance)
    depth = np.arange(len(share)) / max(1, len(share) - 1)
    outermost = (share > 0.5) & (depth > 0) & distance.exact
    some = 1.5 + 1.5 * depth + 9 * np.minimum(share, 0.25) * (depth > 0)
    again = np.where(outermost, 1.0, ANEW_IN_BLOCK * share)
    family = np.asarray(level * (len(distance) + 1) + block[grouped])
    _, begin, which = np.unique(family, return_index=True, return_inverse=True)
    whole = np.zeros(len(cuts))
    whole[begin] = np.maximum.reduceat(slots[np.argsort(which, kind="stable")], _starts(which))
    return (
        np.ascontiguousarray(cuts[grouped]),
        family,
        np.ceil(3 * some).astype(np.int64)[level],
        np.where(outermost, REPEATS, 1)[level],
        some[level] * slots,
        again[level] * whole,
    )


def _starts(which: Ints) -> Ints:
    """Return where each of the numbers 0 … begins once all are sorted."""
    return np.append(0, np.cumsum(np.bincount(which))[:-1])


def _shares(distance: Distance) -> Floats:
    """Return which part of J the edges that leave the blocks of each level make, about."""
    parts = [len(distance), *(distinct(c) for c in distance.blocks.T)]
    rise = np.maximum(np.diff(distance.level_distance), 0)
    value = rise * np.sqrt(parts[: len(rise)])
    return np.asarray(value / max(float(value.sum()), 1e-300))


def _pieces(known: Cuts, counts: Ints) -> list[tuple[int, int]]:
    """Return the largest parts of the nodes, of two at least, that can be looked at in one go."""
    todo, out = [(0, len(known.order))], []
    where = {(low, high): cut for low, cut, high in known.cuts.tolist()}
    held = np.append(0, np.cumsum(counts[known.order]))
    while todo:
        low, high = todo.pop()
        entries = (high - low) * int(held[high] - held[low])
        if high - low <= MOST_NODES and entries <= MOST_ENTRIES:
            if high - low > 1:
                out.append((low, high))
            continue
        cut = where.get((low, high))
        if cut is not None:
            todo += [(cut, high), (low, cut)]
    return out
