# SPDX-License-Identifier: Apache-2.0
"""Rank orders to start from, on given nodes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from nidmap.placement.errors import NidmapError
from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.specs import parse_spec
from nidmap.placement.support.array_types import Ints
from nidmap.rankmap import orders, progress
from nidmap.rankmap.grid.dims import boxes_of
from nidmap.rankmap.grid.traversal import cells_in, line_stretches
from nidmap.rankmap.orders.auto import COMPILING
from nidmap.rankmap.orders.cells import CellOptions, rank_list
from nidmap.rankmap.pattern import Pattern, parse_pattern
from nidmap.rankmap.pattern.graph import Graph, stencil_of
from nidmap.rankmap.pattern.structured import Lines
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.predict.job import ALGORITHMS, fit_pattern
from nidmap.rankmap.refine.budget import LEAST_EFFORT, seconds_for
from nidmap.rankmap.refine.cache import kernels_compiled
from nidmap.rankmap.score.distance import job_distance
from nidmap.rankmap.search.budget import LIMITS

Make = Callable[[Placement], Ints | None]

#: A machine and a grid on it whose map as a graph takes all kernels there are.
EVERY_KERNEL = "tree:4x4x4,dist=1:2:3", "stencil:8x8x4"


def compile_first(
    model: Predictor,
    placement: Placement,
    seconds: float = math.inf,
    tell: Callable[[str], object] = progress.advance,
) -> None:
    """Compile the search's kernels unless they are compiled already; this takes long.

    `placement`: some of those that are searched. `seconds`: what there is time for: where nobody
    has compiled the kernels, and they would take longer, no graph is mapped. `tell`: is told what
    takes long.
    """
    if model.pattern.dims is not None or kernels_compiled() or not _may_map(seconds):
        return
    tell("compiling the kernels of graph maps, once")
    spec, grid = EVERY_KERNEL
    machine = parse_spec(spec)
    slots = Placement.on_rows(machine, np.arange(len(machine)), np.full(len(machine), 4))
    orders.find("graph")(fit_pattern(parse_pattern(grid), slots), slots)


def _may_map(seconds: float) -> bool:
    """Return whether there is time to map a graph, whose kernels may have to be compiled."""
    return seconds >= COMPILING or kernels_compiled()


def ranks_alike(pattern: Pattern, algorithms: Sequence[str] = ALGORITHMS[:1]) -> bool:
    """Return whether every rank sends to every other at once, so that all are equivalent.

    With as many ranks on each node every order is the same then; where it is sent step by
    step, the order says who sends to whom at the same time.
    """
    single_line = isinstance(pattern, Lines) and len([d for d in pattern.dims or () if d > 1]) <= 1
    return single_line and set(algorithms) == {ALGORITHMS[0]}


def quick_orders(pattern: Pattern, placement: Placement) -> dict[str, Make]:
    """Return functions for all orders that take milliseconds, row-major first.

    `pattern`: fitted to the slots. `placement`: of any of the node sets: which orders there are
    hangs on their number alone.
    """
    makers: dict[str, Make] = {"row-major": lambda _: None}
    pattern = _grid_of(pattern)
    makers |= {name: _by_name(name, pattern) for name in orders.QUICK}
    if pattern.dims is not None and placement.ppn is not None:
        for name, slot_of_rank in itertools.chain(
            brick_orders(pattern.dims, placement.ppn), _along_lines(pattern, placement.ppn)
        ):
            makers[name] = lambda _, slot_of_rank=slot_of_rank: slot_of_rank  # type: ignore[misc]  # bound as it is now
    return makers


def _grid_of(pattern: Pattern) -> Pattern:
    """Return the stencil that a pattern's graph (or recording) forms, else the pattern."""
    return stencil_of(pattern) or pattern if isinstance(pattern, Graph) else pattern


def _along_lines(pattern: Pattern, ppn: int) -> Iterator[tuple[str, Ints]]:
    """Yield orders that give each node stretches of the lines of an FFT's grid.

    No set of ranks has more of its partners inside than ranks of one line
    (`nidmap.rankmap.grid.traversal`).
    """
    dims = pattern.dims or ()
    if not isinstance(pattern, Lines) or len(dims) != 2:
        return
    nodes = math.prod(dims) // ppn
    for turned, word in ((False, "rows"), (True, "columns")):
        yield f"stretches of {word}", inverse(line_stretches(dims, np.full(nodes, ppn), turned))
        cells = np.arange(math.prod(dims)).reshape(dims)
        ordered = row_pieces(cells.T if turned else cells, ppn)
        if ordered is not None:
            yield f"{word} and pieces", inverse(ordered)


def row_pieces(cells: Ints, ppn: int) -> Ints | None:
    """Return cells node by node: entire rows each, and an equal piece of a shared row.

    None where rows are longer than a node, or cannot be shared equally.
    """
    length = cells.shape[1]
    rows_a_node, rest = divmod(ppn, length)
    nodes = cells.size // ppn
    if not rows_a_node or not rest or length % rest or nodes % (length // rest):
        return None
    full_rows = cells[: nodes * rows_a_node].reshape(nodes, rows_a_node * length)
    shared = cells[nodes * rows_a_node :].reshape(nodes, rest)
    return np.concatenate([full_rows, shared], axis=1).ravel()


def searched_orders(
    pattern: Pattern, placement: Placement, seconds: Callable[[], float] = lambda: math.inf
) -> dict[str, Make]:
    """Return functions for all orders that need a search.

    Graphs and matrices are mapped; a pattern on a grid is too regular to gain
    by that, and the mapper's kernels may have to be compiled first.

    `pattern`: fitted to the slots. `seconds`: returns the processor time that there is for one of
    them.
    """
    makers = {"graph": _map_as_graph(pattern, seconds)} if isinstance(pattern, Graph) else {}
    grid = _grid_of(pattern)
    if grid.dims is not None and placement.ranks <= LIMITS.most_ranks:
        makers["boxes"] = _by_name("boxes", grid)
    return makers


def _map_as_graph(graph: Graph, seconds: Callable[[], float]) -> Make:
    from nidmap.rankmap.orders.graph import map_graph

    def make(placement: Placement) -> Ints:
        left = seconds()
        if left < LEAST_EFFORT * seconds_for(placement.ranks) or not _may_map(left):
            raise NidmapError("no time is left for strategy graph")
        node = map_graph(graph, placement, job_distance(placement), seconds=left)
        return np.asarray(placement.with_ranks_on(node).slot_of_rank)

    return make


def _by_name(name: str, pattern: Pattern) -> Make:
    def make(placement: Placement) -> Ints | None:
        return np.asarray(orders.find(name)(pattern, placement).slot_of_rank)

    return make


def brick_orders(dims: tuple[int, ...], ppn: int) -> Iterator[tuple[str, Ints]]:
    """Yield orders that cut the process grid into equal bricks, one per node.

    `dims`: extents of the grid, ranks row-major. `ppn`: ranks of every node. Yields (ranks,):
    slot of each rank: bricks with the least surface first, one after the other row by row and
    along a Hilbert curve.
    """
    for shape in brick_shapes(dims, ppn)[: LIMITS.bricks]:
        name = f"bricks {'x'.join(map(str, shape))}"
        yield name, inverse(cells_in(dims, [shape]))
        if 2 <= len(dims) <= 4:
            yield f"{name} along a curve", inverse(rank_list(dims, shape, CellOptions(walk="H")))


def brick_shapes(dims: tuple[int, ...], ppn: int) -> list[tuple[int, ...]]:
    """Return the bricks of this many ranks that fill a grid, the smallest surface first."""

    def surface(shape: tuple[int, ...]) -> float:  # sides with neighbours, in ranks, over its ranks
        return sum(1 / side for side, extent in zip(shape, dims, strict=True) if side < extent)

    shapes: list[tuple[int, ...]] = [tuple(box) for box in boxes_of(ppn, dims).tolist()]
    return sorted(shapes, key=lambda shape: (surface(shape), shape))
