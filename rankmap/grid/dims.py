# SPDX-License-Identifier: Apache-2.0
"""Process grids: how to factor a number of ranks, and which boxes tile the grid.

DASH lets a program state whether it wants its units *compact* or
*node-balanced* (section 3.2 of "Effective use of the PGAS Paradigm"): the
first is the grid of the least surface, what MPI_Dims_create is meant to be;
the second is one that boxes of a node's ranks tile, so that no node has ranks
left over, and of these the one that cuts the domain least between nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.support.array_types import Array, Ints, Shape

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine

#: Values that a caller may pass.
PREFERENCES = ("auto", "compact", "node-balanced")


def dims(
    n: int,
    ndims: int,
    machine: Machine | None = None,
    *,
    ppn: int | Sequence[int] | None = None,
    prefer: str = "auto",
) -> Shape:
    """Choose a process grid for `n` ranks.

    Parameters
    ----------
    n : int
        Ranks.
    ndims : int
        Dimensions of the grid, 1 to 4.
    machine : Machine or None
        Whose nodes the ranks are to fill: its cores per node are the ranks per
        node where `ppn` is None.
    ppn : int, sequence of int or None
        Ranks per node, one number or one per node; None: the machine's cores,
        where all compute nodes have equally many.
    prefer : str
        ``compact``: the least surface; ``node-balanced``: one that boxes of a
        node's ranks tile; ``auto``: node-balanced where there is one, else compact.

    Returns
    -------
    tuple of int
        Extents, descending as MPI_Dims_create gives them.

    Raises
    ------
    UsageError
        A number that makes no sense, or no node-balanced grid where one is asked for.

    Examples
    --------
    >>> dims(9216, 3, prefer="compact"), dims(9216, 3, ppn=24)
    ((24, 24, 16), (24, 24, 16))
    >>> dims(4096, 2, ppn=32)
    (64, 64)
    """
    if n < 1 or not 1 <= ndims <= 4:
        raise UsageError(f"no grid of {ndims} dimensions for {n} ranks", "use 1 to 4 dimensions")
    if prefer not in PREFERENCES:
        raise UsageError(f"unknown preference {prefer!r}", f"choose from {', '.join(PREFERENCES)}")
    held = _ranks_a_node(machine, ppn)
    best = None if prefer == "compact" or held is None else _tiled_grid(n, ndims, held)
    if best is None and prefer == "node-balanced":
        raise UsageError(
            f"boxes of a node's ranks tile no grid of {ndims} dimensions for {n} ranks",
            "give a --ppn that divides them, or use the compact grid",
        )
    return best or balanced_factors(n, ndims)


@lru_cache(maxsize=256)
def balanced_factors(n: int, ndims: int) -> Shape:
    """Return the factors of `n` with the least sum, descending: the box of least surface."""
    return min(grid_shapes(n, ndims), key=lambda grid: (sum(n // e for e in grid), sum(grid), grid))


def grid_shapes(n: int, ndims: int, most: int | None = None) -> Iterator[Shape]:
    """Yield all ways to write `n` as a product of this many factors, each descending."""
    if ndims == 1:
        if most is None or n <= most:
            yield (n,)
        return
    for first in reversed(divisors(n)):
        if first**ndims < n:
            return
        if most is None or first <= most:
            for rest in grid_shapes(n // first, ndims - 1, first):
                yield (first, *rest)


def _ranks_a_node(machine: Machine | None, ppn: int | Sequence[int] | None) -> int | None:
    """Return a number that divides every node's rank count; None if unknown."""
    if ppn is not None:
        counts = [ppn] if isinstance(ppn, int) else list(ppn)
        if not counts or min(counts) < 1:
            raise UsageError("every node needs at least 1 rank")
        return math.gcd(*counts)
    if machine is None:
        return None
    cores = np.unique(machine.cores[machine.compute])
    return int(cores[0]) if len(cores) == 1 and cores[0] > 0 else None


def _tiled_grid(n: int, ndims: int, held: int) -> Shape | None:
    """Return the best grid that boxes of `held` ranks tile; None if there is none.

    The domain being given, what crosses a cut through it is its cross
    section: so the planes between nodes are counted, and with half their
    weight those between all ranks.
    """
    if n % held:
        return None
    tiled = [(grid, boxes_of(held, grid)) for grid in grid_shapes(n, ndims)]
    costs = [
        (int((np.array(grid) // boxes).sum(axis=1).min()) + sum(grid) / 2, grid)
        for grid, boxes in tiled
        if len(boxes)
    ]
    return min(costs)[1] if costs else None


def shape_turns(shape: Sequence[int]) -> list[Shape]:
    """Return the distinct permutations of a shape's sides, the given one first."""
    return list(dict.fromkeys(permutations(shape)))


@lru_cache(maxsize=4096)
def divisors(n: int) -> tuple[int, ...]:
    """Return the divisors of a number, ascending."""
    low = [k for k in range(1, math.isqrt(n) + 1) if n % k == 0]
    return tuple(low + [n // k for k in reversed(low) if k * k != n])


def factorisations(n: int, extents: Sequence[int]) -> Iterator[Shape]:
    """Yield every way to write `n` as a product of one divisor of each extent."""
    if len(extents) == 1:
        if extents[0] % n == 0:
            yield (n,)
        return
    for first in divisors(math.gcd(n, extents[0])):
        for rest in factorisations(n // first, extents[1:]):
            yield (first, *rest)


def boxes_of(volume: int, grid: Sequence[int]) -> Ints:
    """Return the boxes of a volume that tile a grid, int64 (boxes, dimensions)."""
    boxes = list(factorisations(volume, tuple(grid)))
    return np.array(boxes, dtype=np.int64).reshape(len(boxes), len(grid))


Window = tuple[slice, ...]


@lru_cache(1 << 12)  # carving a grid asks for the same ones thousands of times
def offset_window(shape: Shape, offset: Shape) -> tuple[Window, Window]:
    """Return an open grid's cells that have a neighbour at an offset, and these neighbours."""
    sides = list(zip(shape, offset, strict=True))
    here = tuple(slice(max(0, -s), max(0, min(n, n - s))) for n, s in sides)
    there = tuple(slice(max(0, s), max(0, min(n, n + s))) for n, s in sides)
    return here, there


def offset_ends(table: Array, periodic: Sequence[bool], offset: Shape) -> tuple[Array, Array]:
    """Return a table's entries at cells with a neighbour at an offset, and at these neighbours.

    Nothing where every cell would be its own other.
    """
    moves = [
        s % n if wraps else s for n, wraps, s in zip(table.shape, periodic, offset, strict=True)
    ]
    if not any(moves):
        return table[:0], table[:0]
    around = tuple(-s if wraps else 0 for wraps, s in zip(periodic, offset, strict=True))
    here, there = offset_window(
        table.shape, tuple(s + a for s, a in zip(offset, around, strict=True))
    )
    moved = np.roll(table, around, tuple(range(table.ndim))) if any(around) else table
    return table[here], moved[there]
