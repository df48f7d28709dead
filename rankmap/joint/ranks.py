"""Orders of the ranks to start from, on given nodes."""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError
from rankmap import orders
from rankmap.structured import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

    Ints = NDArray[np.int64]
    Make = Callable[[Slots], Ints | None]

__all__ = [
    "brick_shapes",
    "bricked",
    "bricks",
    "dear_orders",
    "indifferent",
    "quick_orders",
    "ready",
]

#: Orders that are made in milliseconds and compile nothing.
QUICK = (
    "hierarchical", "hilbert", "morton", "column-major", "folded", "round-robin", "cells",
    "aligned",
)  # fmt: skip

#: Shapes of bricks that are tried.
SHAPES = 6

#: us that an order may take.
MOST = 1.5e6

#: Ranks of an FFT's grid up to which order boxes is quick.
FEW_RANKS = 4096

#: Vertices up to which order graph begins several times.
STARTED_ONCE = 256


def ready(pattern: Pattern) -> None:
    """Load what maps a graph, where the pattern is one: it may have to be compiled first."""
    from rankmap.graph import Graph, from_edges

    if not isinstance(pattern, Graph):
        return
    from rankmap.slots import Slots

    two = np.array([0]), np.array([1]), np.ones(1)
    on = Slots(np.array(["a", "b"]), np.ones(2, dtype=np.int64))
    with contextlib.suppress(NidmapError):
        orders.find("graph")(from_edges(2, *two), on)


def indifferent(pattern: Pattern, slots: Slots) -> bool:
    """Return whether every order of the ranks is the same: an all-to-all, as many a node.

    Examples
    --------
    >>> from rankmap.pattern import parse_pattern
    >>> from rankmap.slots import Slots
    >>> on = Slots(np.array(["a", "b"]), np.array([2, 2]))
    >>> indifferent(parse_pattern("alltoall").on(on), on)
    True
    """
    whole = isinstance(pattern, Lines) and len([d for d in pattern.dims or () if d > 1]) <= 1
    return whole and slots.ppn is not None


def quick_orders(pattern: Pattern, slots: Slots) -> dict[str, Make]:
    """Return how to make each order that takes milliseconds, row-major first.

    Parameters
    ----------
    pattern : Pattern
        Fitted to the slots.
    slots : Slots
        Of any of the node sets: which orders there are hangs on their number alone.

    Examples
    --------
    >>> from rankmap.pattern import parse_pattern
    >>> from rankmap.slots import Slots
    >>> on = Slots(np.array(["a", "b"]), np.array([2, 2]))
    >>> list(quick_orders(parse_pattern("alltoall").on(on), on))
    ['row-major']
    """
    found: dict[str, Make] = {"row-major": lambda _: None}
    if indifferent(pattern, slots):
        return found
    found |= {name: _by_name(name, pattern) for name in QUICK}
    if pattern.dims is not None and slots.ppn is not None:
        for name, made in itertools.chain(
            bricks(pattern.dims, slots.ppn), _along_lines(pattern, slots.ppn)
        ):
            found[name] = lambda _, made=made: made  # type: ignore[misc]  # bound as it is now
    return found


def _along_lines(pattern: Pattern, ppn: int) -> Iterator[tuple[str, Ints]]:
    """Yield orders that give each node stretches of the lines of an FFT's grid.

    No set of ranks has more of its partners inside than ranks of one line
    (`rankmap.stretches`).
    """
    from rankmap.stretches import stretches

    dims = pattern.dims or ()
    if not isinstance(pattern, Lines) or len(dims) != 2:
        return
    nodes = math.prod(dims) // ppn
    for turned, word in ((False, "rows"), (True, "columns")):
        yield f"stretches of {word}", _as_given(stretches(dims, np.full(nodes, ppn), turned))
        cells = np.arange(math.prod(dims)).reshape(dims)
        made = pieces(cells.T if turned else cells, ppn)
        if made is not None:
            yield f"{word} and pieces", _as_given(made)


def _as_given(cells: Ints) -> Ints:
    """Return the order whose k-th slot has rank ``cells[k]``."""
    found = np.empty_like(cells)
    found[cells] = np.arange(len(cells))
    return found


def pieces(cells: Ints, ppn: int) -> Ints | None:
    """Return cells node by node: whole rows for each, and an equal piece of a shared one.

    None where rows are longer than a node, or cannot be shared equally.

    Examples
    --------
    >>> pieces(np.arange(12).reshape(6, 2), 3).reshape(4, 3).tolist()
    [[0, 1, 8], [2, 3, 9], [4, 5, 10], [6, 7, 11]]
    """
    length = cells.shape[1]
    whole, rest = divmod(ppn, length)
    nodes = cells.size // ppn
    if not whole or not rest or length % rest or nodes % (length // rest):
        return None
    own = cells[: nodes * whole].reshape(nodes, whole * length)
    shared = cells[nodes * whole :].reshape(nodes, rest)
    return np.concatenate([own, shared], axis=1).ravel()


def dear_orders(pattern: Pattern, slots: Slots) -> dict[str, tuple[float, Make]]:
    """Return how to make each order that is searched for, with the us that it takes, about.

    Graphs and matrices are mapped; a pattern on a grid is too regular to gain
    by that, and the mapper's kernels may have to be compiled first.

    Parameters
    ----------
    pattern : Pattern
        Fitted to the slots.
    slots : Slots
    """
    from rankmap.graph import Graph

    ranks = len(slots)
    if isinstance(pattern, Graph):
        us = _mapping_us(ranks, len(pattern.indices) // 2)
        effort = "" if us <= MOST else f":effort={MOST / us:.2g}"
        return {"graph": (min(us, MOST), _by_name(f"graph{effort}", pattern))}
    torus = slots.machine is not None and slots.machine.topology.kind == "torus"
    if isinstance(pattern, Lines):
        us = 20_000 + (25.0 if ranks <= FEW_RANKS else 110.0) * ranks
    else:
        us = 30_000 + 100.0 * ranks if torus else min(15_000 + 40.0 * ranks, MOST / 3)
    if pattern.dims is None or us > MOST:
        return {}
    return {"boxes": (us, _by_name("boxes", pattern))}


def _mapping_us(vertices: int, edges: int) -> float:
    """Return the us in which a graph is mapped, about."""
    if vertices > STARTED_ONCE:
        return 20_000 + 60.0 * vertices + 8.0 * edges
    return 16_000 + 8 * (100.0 * vertices + 8.0 * edges)


def _by_name(name: str, pattern: Pattern) -> Make:
    def make(slots: Slots) -> Ints | None:
        return np.asarray(orders.find(name)(pattern, slots).slots)

    return make


def bricks(dims: tuple[int, ...], ppn: int) -> Iterator[tuple[str, Ints]]:
    """Yield orders that cut the process grid into equal bricks, one a node.

    Parameters
    ----------
    dims : tuple of int
        Extents of the grid, ranks row-major.
    ppn : int
        Ranks of every node.

    Yields
    ------
    str
    int64 (ranks,)
        Slot of each rank: bricks with the least surface first, one after the
        other row by row and along a Hilbert curve.

    Examples
    --------
    >>> name, slots = next(bricks((6, 6), 4))
    >>> name, slots.reshape(6, 6)[:2].tolist()
    ('bricks 2x2', [[0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]])
    """
    from placement.curves import hilbert_key

    for shape in brick_shapes(dims, ppn)[:SHAPES]:
        name = f"bricks {'x'.join(map(str, shape))}"
        brick, many, place = _cut(dims, shape)
        row = np.ravel_multi_index(tuple(brick.T), many)
        yield name, row * ppn + place
        if 2 <= len(many) <= 4:
            key = hilbert_key(brick, many)
            yield f"{name} along a curve", np.asarray(key * ppn + place)


def bricked(dims: tuple[int, ...], shape: tuple[int, ...]) -> Ints | None:
    """Return the slots of bricks of a shape, row by row; None where rank r has slot r.

    Examples
    --------
    >>> bricked((2, 4), (2, 2)).tolist()
    [0, 1, 4, 5, 2, 3, 6, 7]
    """
    brick, many, place = _cut(dims, shape)
    row = np.ravel_multi_index(tuple(brick.T), many)
    found = np.asarray(row * math.prod(shape) + place)
    return None if np.array_equal(found, np.arange(len(found))) else found


def _cut(dims: tuple[int, ...], shape: tuple[int, ...]) -> tuple[Ints, tuple[int, ...], Ints]:
    """Return the brick of each rank, (ranks, d), how many there are, and its place inside."""
    coords = np.indices(dims).reshape(len(dims), -1).T
    many = tuple(d // s for d, s in zip(dims, shape, strict=True))
    return coords // shape, many, np.ravel_multi_index(tuple((coords % shape).T), shape)


def brick_shapes(dims: tuple[int, ...], ppn: int) -> list[tuple[int, ...]]:
    """Return the bricks of so many ranks that fill a grid, the least surface first.

    Examples
    --------
    >>> brick_shapes((4, 6), 4)
    [(2, 2), (4, 1)]
    """
    found: list[tuple[int, ...]] = [()]
    for extent in dims:
        sides = [side for side in range(1, min(extent, ppn) + 1) if extent % side == 0]
        found = [(*shape, side) for shape in found for side in sides]
        found = [shape for shape in found if ppn % math.prod(shape) == 0]
    whole = [shape for shape in found if math.prod(shape) == ppn]
    return sorted(whole, key=lambda shape: (_surface(shape, dims), shape))


def _surface(shape: tuple[int, ...], dims: tuple[int, ...]) -> float:
    """Return the sides of a brick that have neighbours, in ranks, over its ranks."""
    return sum(1 / side for side, extent in zip(shape, dims, strict=True) if side < extent)
