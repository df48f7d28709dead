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
from rankmap.refine import jit
from rankmap.refine.annealing import anneal
from rankmap.refine.kernels import block_splits, multisect, rework
from rankmap.refine.torus import torus_splits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankmap.distance import Distance
    from rankmap.graph import Graph

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["map_ranks", "polish"]

#: Ranks that are mapped where the kernels are not compiled, which is a hundred times slower.
MOST_UNCOMPILED = 4096

#: Temperature that annealing begins with where the beginning is good.
HOT = 0.8

#: Edges of a graph up to which all that is worth while is tried; of larger ones less.
LOOKED_AT = 2.4e5

#: How often ranks are placed anew on average, at the end (most where nodes share many edges)
#: and among the blocks of one larger block.
ANEW, ANEW_IN_BLOCK = 10.0, 8.0

#: How often the blocks of a level that makes most of J are made, the best being taken.
REPEATS = 3

#: Edges a pair of nodes has between it where placing anew does not pay yet, and where it does.
FEW_SHARED, MANY_SHARED = 2.0, 6.0

#: Moves a rank while annealing: so many in all, but no fewer and no more than these for each.
MOVES, FEWEST, MOST = 2.4e6, 200, 600

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
    if not jit.COMPILED and graph.size > MOST_UNCOMPILED:
        raise UsageError(
            f"{graph.size} ranks are mapped as a graph only with numba", "pip install numba"
        )
    state = np.array([2 * seed + 1], dtype=np.uint64)
    ptr, adj = graph.indptr.astype(np.int32), graph.indices.astype(np.int32)
    known = _cuts(distance, counts)
    first = np.append(0, np.cumsum(counts[known.order]))
    effort *= _affordable(graph)
    cuts, family, starts, repeats, work = _families(distance, known, effort)
    progress.step()
    pulling = _pulling(distance, known)
    ranks = multisect(
        ptr, adj, graph.weights, cuts, first, family, starts, repeats, work, pulling, state
    )
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
    state : uint64 (1,) or None
        Of the random numbers.
    known : Cuts or None
        How the nodes are taken apart; None: by the machine's tree.
    hot, effort : float
        See `map_ranks`.
    """
    if state is None:
        state = np.array([3], dtype=np.uint64)
    if known is None:
        known = _cuts(distance, counts)
    if not jit.COMPILED or not len(graph.weights):
        return node
    node = node.copy()
    by_node = np.argsort(node, kind="stable")
    first = np.append(0, np.cumsum(counts))
    for low, high in _pieces(known, counts):
        nodes = known.order[low:high]
        ranks = np.concatenate([by_node[first[p] : first[p + 1]] for p in nodes.tolist()])
        progress.step()
        piece = _Piece(graph, node, nodes, np.sort(ranks), distance)
        if piece.inner:
            piece.improve(node, counts, known.priority()[low:high], hot, effort, state)
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
        effort: float,
        state: NDArray[np.uint64],
    ) -> None:
        """Place ranks anew and anneal, in place, where that is better."""
        place = np.full(len(counts), -1, dtype=np.int32)
        place[self.nodes] = np.arange(len(self.nodes))
        mine, slots = place[node[self.ranks]], counts[self.nodes]
        shared = self._shared(mine)
        if shared:
            first = np.append(0, np.cumsum(slots))
            graph = self.ptr, self.adj, self.weight
            progress.step()
            rework(
                *graph, mine, first, self.far, self.outer, priority, shared * effort * ANEW, state
            )
        progress.step()
        steps = int((3 - 2 * shared) * effort * np.clip(MOVES / len(node), FEWEST, MOST))
        steps = max(1, steps) * len(mine)
        anneal(
            self.ptr, self.adj, self.weight.astype(np.float32), mine, slots,
            self.far.astype(np.float32), self.outer.astype(np.float32),
            hot, steps, steps // 5, state,
        )  # fmt: skip
        node[self.ranks] = self.nodes[mine]

    def _shared(self, mine: NDArray[np.int32]) -> float:
        """Return 1 where the nodes that talk share many edges, 0 where few, or what is between."""
        row = np.repeat(mine, np.diff(self.ptr)).astype(np.int64)
        off = row < mine[self.adj]
        pairs = np.unique(row[off] * len(self.nodes) + mine[self.adj][off])
        edges = float(off.sum()) / max(1, len(pairs))
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
    cuts = block_splits(np.ascontiguousarray(distance.blocks[order]), first)
    level = distance.level(order[cuts[:, 0]], order[cuts[:, 2] - 1])
    return Cuts(order, cuts[np.argsort(-level, kind="stable")])


def _pulling(distance: Distance, known: Cuts) -> Floats:
    """Return the distances of the nodes in the cuts' order where these matter, else none."""
    if distance.exact or len(distance) > MOST_PULLING:
        return np.empty((0, 0))
    return np.ascontiguousarray(distance.between(known.order[:, None], known.order[None, :]))


def _affordable(graph: Graph) -> float:
    """Return the part of all tries and steps that a graph of this size can have."""
    return float(np.clip(LOOKED_AT / max(1, len(graph.indices)), 0.2, 1))


def _families(
    distance: Distance, known: Cuts, effort: float
) -> tuple[Ints, Ints, Ints, Ints, Floats]:
    """Return the cuts of each block in a row, their block, and how much is done for each.

    That is the halvings of a cut, how often a block's cuts are made, and how
    often its ranks are placed anew.

    Most is done where most of J is to be won: J that edges between blocks
    make grows with how much farther these are, and about with the root of
    their number.
    """
    ends = known.order[known.cuts[:, 0]], known.order[known.cuts[:, 2] - 1]
    if distance.coords is not None or not len(known.cuts):
        return (
            np.ascontiguousarray(known.cuts),
            np.arange(len(known.cuts)),
            np.full(len(known.cuts), max(1, round(4 * effort))),
            np.ones(len(known.cuts), dtype=np.int64),
            np.zeros(len(known.cuts)),
        )
    level = distance.level(*ends)
    block = distance.blocks[ends[0], level - 1]
    grouped = np.lexsort((block, -level))
    share = _shares(distance)
    depth = np.arange(len(share)) / max(1, len(share) - 1)
    outermost = (share > 0.5) & (depth > 0) & distance.exact
    repeats = np.where(outermost, max(1, round(REPEATS * effort)), 1)
    some = 1.5 + 1.5 * depth + 9 * np.minimum(share, 0.25) * (depth > 0)
    starts = np.maximum(1, np.rint(effort * some))
    work = effort * np.where(outermost, 1.0, ANEW_IN_BLOCK * share)
    return (
        np.ascontiguousarray(known.cuts[grouped]),
        np.asarray(level * (len(distance) + 1) + block)[grouped],
        starts[level - 1][grouped].astype(np.int64),
        repeats[level - 1][grouped],
        work[level - 1][grouped],
    )


def _shares(distance: Distance) -> Floats:
    """Return which part of J the edges that leave the blocks of each level make, about."""
    parts = [len(distance), *(len(np.unique(c)) for c in distance.blocks.T)]
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
