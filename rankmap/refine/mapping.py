"""A graph's ranks onto a job's nodes: bisection down the machine's tree, then annealing.

No partitioning library is asked: on the machine's tree with exact sizes, the
best of several of our own bisections at every cut came out below KaHIP's and
SharedMap's strong settings in a fraction of their time (`benchmarks.mappers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError
from rankmap.refine import jit
from rankmap.refine.kernels import anneal, block_splits, multisect
from rankmap.refine.torus import torus_splits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rankmap.distance import Distance
    from rankmap.graph import Graph

    Ints = NDArray[np.int64]

__all__ = ["map_ranks", "polish"]

#: Ranks that are mapped where the kernels are not compiled, which is a hundred times slower.
MOST_UNCOMPILED = 4096

#: Temperature that annealing begins with where the beginning is good.
HOT = 0.8

#: Bisections that are tried for a cut on average, and edges that all tries of a level look at.
TRIES, LOOKED_AT = 10.0, 2.1e6

#: Moves a rank while annealing: so many in all, but no fewer and no more than these for each.
MOVES, FEWEST, MOST = 6e6, 240, 1500

#: Nodes, and entries of the table of costs, that are annealed in one go.
MOST_NODES = 256
MOST_ENTRIES = 1 << 22


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
    if _far_apart(distance):
        return _outside_in(graph, counts, distance, seed, hot, effort)
    state = np.array([2 * seed + 1], dtype=np.uint64)
    ptr, adj = graph.indptr.astype(np.int32), graph.indices.astype(np.int32)
    order, cuts = _cuts(distance, counts)
    first = np.append(0, np.cumsum(counts[order]))
    tries = _tries(distance, order, cuts, first, effort * _average(graph))
    ranks = multisect(ptr, adj, graph.weights, cuts, first, tries, state)
    node = np.empty(graph.size, dtype=np.int64)
    node[ranks] = np.repeat(order, counts[order])
    return polish(graph, node, counts, distance, state, _pieces(order, cuts, counts), hot, effort)


def _far_apart(distance: Distance) -> bool:
    """Return True where most of the distance lies between the outermost blocks."""
    far = distance.level_distance
    return distance.exact and len(far) > 2 and bool(far[-1] > 2.5 * far[-2] > 0)


def _outside_in(
    graph: Graph, counts: Ints, distance: Distance, seed: int, hot: float, effort: float
) -> Ints:
    """Return the node of each rank, the outermost blocks being settled for good first."""
    from rankmap.distance import Levels

    _, block = np.unique(distance.blocks[:, -2], return_inverse=True)
    room = np.bincount(block, counts).astype(np.int64)
    outer = Levels(np.zeros((len(room), 1), dtype=np.int64), ("system",), np.array([0.0, 1.0]))
    where = map_ranks(graph, room, outer, seed, hot, effort * 0.8)
    node = np.empty(graph.size, dtype=np.int64)
    for k in range(len(room)):
        ranks, nodes = np.flatnonzero(where == k), np.flatnonzero(block == k)
        inner = distance.take(nodes)
        finer = (graph.part(ranks), counts[nodes], _less(inner), seed, hot, effort * 0.8)
        node[ranks] = nodes[map_ranks(*finer)]
    return polish(graph, node, counts, distance, hot=hot, effort=effort * 0.8)


def _less(distance: Distance) -> Distance:
    """Return the distances within one outermost block, that level being left out."""
    from rankmap.distance import Levels

    return Levels(distance.blocks[:, :-1], distance.names[:-1], distance.level_distance[:-1])


def polish(
    graph: Graph,
    node: Ints,
    counts: Ints,
    distance: Distance,
    state: NDArray[np.uint64] | None = None,
    pieces: list[Ints] | None = None,
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
    pieces : list of int64 arrays or None
        Sets of nodes that are looked at together; None: cut from the machine's tree.
    hot, effort : float
        See `map_ranks`.
    """
    if state is None:
        state = np.array([3], dtype=np.uint64)
    if pieces is None:
        pieces = _pieces(*_cuts(distance, counts), counts)
    if not jit.COMPILED or not len(graph.weights):
        return node
    node = node.copy()
    steps = max(1, int(effort * np.clip(MOVES / graph.size, FEWEST, MOST)))
    by_node = np.argsort(node, kind="stable")
    first = np.append(0, np.cumsum(counts))
    for nodes in pieces:
        if len(nodes) > 1:
            ranks = np.concatenate([by_node[first[p] : first[p + 1]] for p in nodes.tolist()])
            _polish_piece(graph, node, nodes, np.sort(ranks), counts, distance, steps, state, hot)
    return node


def _polish_piece(
    graph: Graph,
    node: Ints,
    nodes: Ints,
    ranks: Ints,
    counts: Ints,
    distance: Distance,
    steps: int,
    state: NDArray[np.uint64],
    hot: float,
) -> None:
    """Anneal the ranks on some of the nodes, those elsewhere staying where they are."""
    local = np.full(len(node), -1, dtype=np.int32)
    local[ranks] = np.arange(len(ranks))
    place = np.full(len(counts), -1, dtype=np.int32)
    place[nodes] = np.arange(len(nodes))
    row, entry = _rows(graph, ranks)
    other, weight = graph.indices[entry], graph.weights[entry]
    inside = local[other] >= 0
    if not inside.any():
        return
    mean = float(graph.weights.mean())
    near = float(distance.level_distance[1:][distance.level_distance[1:] > 0].min(initial=np.inf))
    scale = 1.0 if near == np.inf else near
    far = distance.between(nodes[:, None], nodes[None, :]) / scale
    outer: NDArray[np.float64] = np.zeros((0, 0))
    if not distance.exact and not inside.all():
        outer = _outer(
            row[~inside], node[other[~inside]], weight[~inside], nodes, distance, len(ranks)
        )
        outer /= mean * scale
    ptr = np.searchsorted(row[inside], np.arange(len(ranks) + 1)).astype(np.int32)
    mine = place[node[ranks]].astype(np.int32)
    gained = anneal(
        ptr, local[other[inside]], (weight[inside] / mean).astype(np.float32), mine,
        counts[nodes], far.astype(np.float32), outer.astype(np.float32),
        hot, steps * len(ranks), steps * len(ranks) // 5, state,
    )  # fmt: skip
    if gained > 0:
        node[ranks] = nodes[mine]


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


def _cuts(distance: Distance, counts: Ints) -> tuple[Ints, Ints]:
    """Return the nodes in the machine's order, and the cuts that take them apart."""
    if distance.coords is not None:
        return torus_splits(distance.coords, distance.extents, counts)
    columns = np.stack([np.unique(c, return_inverse=True)[1] for c in distance.blocks.T])
    order = np.lexsort(columns)
    first = np.append(0, np.cumsum(counts[order]))
    return order, block_splits(np.ascontiguousarray(distance.blocks[order]), first)


def _average(graph: Graph) -> float:
    """Return how often a cut is tried on average."""
    return float(np.clip(2 * LOOKED_AT / max(1, len(graph.indices)), 2, TRIES))


def _tries(distance: Distance, order: Ints, cuts: Ints, first: Ints, average: float) -> Ints:
    """Return how often each cut is tried: more where the parts are far, and most where by far."""
    if not len(cuts):
        return np.empty(0, dtype=np.int64)
    far = distance.between(order[cuts[:, 0]], order[cuts[:, 2] - 1])
    steps = np.append(0.0, np.unique(far))
    rise = far - steps[np.searchsorted(steps, far) - 1]
    whole = max(float(far.max()), 1e-300)
    share = 1 + 2 * far / whole + 8 * np.maximum(rise / whole - 0.5, 0)
    work = first[cuts[:, 2]] - first[cuts[:, 0]]
    mean = float((share * work).sum() / work.sum())
    return np.asarray(np.maximum(1, share / mean * average), dtype=np.int64)


def _pieces(order: Ints, cuts: Ints, counts: Ints) -> list[Ints]:
    """Return the largest parts of the nodes that can be annealed in one go."""
    todo, out = [(0, len(order))], []
    where = {(low, high): cut for low, cut, high in cuts.tolist()}
    held = np.append(0, np.cumsum(counts[order]))
    while todo:
        low, high = todo.pop()
        entries = (high - low) * int(held[high] - held[low])
        if high - low <= MOST_NODES and entries <= MOST_ENTRIES:
            out.append(order[low:high])
            continue
        cut = where.get((low, high))
        if cut is not None:
            todo += [(cut, high), (low, cut)]
    return out
