"""Orders of the ranks to start from, on given nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError
from rankmap import orders
from rankmap.structured import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

    Ints = NDArray[np.int64]

__all__ = ["bricks", "indifferent", "orders_of"]

#: Orders that are made in milliseconds and compile nothing.
QUICK = (
    "hierarchical", "hilbert", "morton", "column-major", "folded", "round-robin", "cells",
    "aligned",
)  # fmt: skip

#: Shapes of bricks that are tried.
SHAPES = 6


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


def orders_of(pattern: Pattern, slots: Slots) -> Iterator[tuple[str, Ints | None]]:
    """Yield the name and the slots of each order that fits, row-major (None) first.

    Parameters
    ----------
    pattern : Pattern
        Fitted to the slots.
    slots : Slots
    """
    yield "row-major", None
    if indifferent(pattern, slots):
        return
    for name in QUICK:
        try:
            made = orders.find(name)(pattern, slots)
        except NidmapError:
            continue  # does not fit this pattern or these nodes
        yield name, np.asarray(made.slots)
    if pattern.dims is not None and slots.ppn is not None:
        yield from bricks(pattern.dims, slots.ppn)


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

    coords = np.indices(dims).reshape(len(dims), -1).T
    for shape in _shapes(dims, ppn)[:SHAPES]:
        name = f"bricks {'x'.join(map(str, shape))}"
        brick, inside = coords // shape, coords % shape
        many = tuple(d // s for d, s in zip(dims, shape, strict=True))
        place = np.ravel_multi_index(tuple(inside.T), shape)
        row = np.ravel_multi_index(tuple(brick.T), many)
        yield name, row * ppn + place
        if 2 <= len(many) <= 4:
            key = hilbert_key(brick, many)
            yield f"{name} along a curve", np.asarray(key * ppn + place)


def _shapes(dims: tuple[int, ...], ppn: int) -> list[tuple[int, ...]]:
    """Return the bricks of so many ranks that fill a grid, the least surface first.

    Examples
    --------
    >>> _shapes((4, 6), 4)
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
