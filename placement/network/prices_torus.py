"""Costs on tori under dimension-order routing: differences of running sums along each ring.

A ring that lacks a link is taken as whole: the way round a gap is not followed.
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


def between(machine: Machine, price: Floats) -> Costs:
    """Return the cost of a byte between nodes; between routers where nodes have several."""
    grid = made(machine)[0]
    dense = np.zeros(grid.there.shape)
    dense[grid.there] = price
    sums = [_running(grid, axis, dense[axis]) for axis in range(len(grid.extents))]
    one = machine.router.shape[1] == 1
    position = grid.position[machine.router[:, 0]] if one else grid.position

    def cost(a: Ints, b: Ints) -> Floats:
        at, to = np.broadcast_arrays(position[a], position[b])
        out = np.zeros(at.shape)
        for axis, extent in enumerate(grid.extents):
            start, end = grid.along(at, axis), grid.along(to, axis)
            plus, minus = rings.steps(start, end, extent)
            out += _paid(sums[axis], grid.line(at, axis), start, plus, minus, extent)
            at = grid.moved(at, axis, end)
        return out

    return cost


def _running(grid: Grid, axis: int, price: Floats) -> Floats:
    """Return running sums of the prices along each ring twice round, (2, lines, 2 extent + 1)."""
    spots = grid.spots(axis)
    out = np.zeros((2, len(spots), 2 * spots.shape[1] + 1))
    for way in (0, 1):
        np.cumsum(np.tile(price[way][spots], 2), axis=1, out=out[way, :, 1:])
    return out


def _paid(sums: Floats, line: Ints, start: Ints, plus: Ints, minus: Ints, extent: int) -> Floats:
    """Return what so many steps in direction + or - cost from a place on a ring."""
    up = sums[0][line, start + plus] - sums[0][line, start]
    last = start + extent + 1  # channels start, start-1, … as the places before `last`
    found: Floats = up + sums[1][line, last] - sums[1][line, last - minus]
    return found
