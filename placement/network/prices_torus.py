"""Costs on tori under dimension-order routing: one stretch of one ring an axis.

What a stretch of an axis costs is known by its ring, start and end. The ring
is that of the coordinates below the axis of the target and above it of the
source, so its place in a table is a number of the source plus one of the
target. A ring that lacks a link is taken as whole: the way round a gap is not
followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network import rings
from placement.network.torus_grid import made

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.prices import Costs
    from placement.network.torus_grid import Grid

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["between"]

#: Numbers in the table of an axis, at most.
MOST = 1 << 25


def between(machine: Machine, price: Floats) -> Costs | None:
    """Return the cost of a byte between nodes; between routers where nodes have several.

    None where the rings are too long for a table.
    """
    grid = made(machine)[0]
    if any(grid.size * extent > MOST for extent in grid.extents):
        return None
    dense = np.zeros(grid.there.shape)
    dense[grid.there] = price
    one = machine.router.shape[1] == 1
    position = grid.position[machine.router[:, 0]] if one else grid.position
    axes = [axis for axis, extent in enumerate(grid.extents) if extent > 1]
    tables = [_stretches(grid, axis, dense[axis]) for axis in axes]
    ends = [_ends(grid, axis, position) for axis in axes]

    def cost(a: Ints, b: Ints) -> Floats:
        out = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))
        for table, (source, target) in zip(tables, ends, strict=True):
            out += table[source[a] + target[b]]
        return out

    return cost


def _ends(grid: Grid, axis: int, position: Ints) -> tuple[Ints, Ints]:
    """Return what a source and a target add to the place in the table of an axis."""
    extent, low = grid.extents[axis], grid.stride(axis)
    at = grid.along(position, axis)
    high = position // (low * extent)
    square = extent * extent
    return high * low * square + at * extent, position % low * square + at


def _stretches(grid: Grid, axis: int, price: Floats) -> Floats:
    """Return the cost by (ring, start, end), flat."""
    spots, extent = grid.spots(axis), grid.extents[axis]
    sums = np.zeros((2, len(spots), 2 * extent + 1))
    for way in (0, 1):
        np.cumsum(np.tile(price[way][spots], 2), axis=1, out=sums[way, :, 1:])
    start, end = np.indices((extent, extent))
    plus, minus = rings.steps(start, end, extent)
    last = start + extent + 1  # channels start, start-1, … as the places before `last`
    up = sums[0][:, start + plus] - sums[0][:, start]
    found: Floats = up + sums[1][:, last] - sums[1][:, last - minus]
    return found.ravel()
