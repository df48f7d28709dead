"""Boxes of a torus with the process grid laid on them as it is.

Where the bricks of a process grid, one a node, make a grid that fits a box of
routers, neighbours in the one are neighbours in the other: no order of any
other set of nodes has shorter ways. Dimensions may share an axis, then one of
them goes in larger steps.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankmap.joint.ranks import brick_shapes, bricked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.request import Request

    Ints = NDArray[np.int64]
    Shape = tuple[int, ...]

__all__ = ["laid"]

#: Ways to lay a grid that are offered.
MOST = 16

#: Shapes of bricks on a node, and of grids on a router, that are tried.
SHAPES, INNER = 6, 3


class _Way(NamedTuple):
    """One way to lay the grid: steps between neighbours, bricks, what a router holds, axes."""

    cost: float
    sides: Shape
    brick: Shape
    inner: Shape
    axes: Shape


def laid(
    machine: Machine, request: Request, dims: Shape, ppn: int
) -> Iterator[tuple[str, Ints, Ints | None]]:
    """Yield a name, the nodes and the slots of a process grid on each free box that it fits.

    Parameters
    ----------
    machine : Machine
    request : Request
    dims : tuple of int
        The process grid.
    ppn : int
        Ranks of every node.

    Examples
    --------
    >>> from placement.request import Request
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("torus:4x4")
    >>> name, rows, slots = next(laid(m, Request(4, m.free), (2, 2), 1))
    >>> name, rows.tolist(), slots
    ('box 2x2', [0, 4, 1, 5], None)
    """
    if machine.topology.kind != "torus":
        return
    place = _Free(machine, request)
    seen: set[bytes] = set()
    for way in sorted(set(_ways(place.extents, place.nodes, dims, ppn))):
        corner = place.corner(way.sides)
        if corner is None:
            continue
        rows = place.rows(way, dims, corner)
        if rows.tobytes() in seen or not np.isin(request.include, rows).all():
            continue
        seen.add(rows.tobytes())
        yield f"box {'x'.join(map(str, way.sides))}", rows, bricked(dims, way.brick)
        if len(seen) == MOST:
            return


def _ways(extents: Shape, nodes: int, dims: Shape, ppn: int) -> Iterator[_Way]:
    """Yield the ways in which a grid can lie on a torus of routers with so many nodes."""
    for brick in brick_shapes(dims, ppn)[:SHAPES]:
        grid = tuple(d // b for d, b in zip(dims, brick, strict=True))
        for inner in brick_shapes(grid, nodes)[:INNER]:
            routers = tuple(g // i for g, i in zip(grid, inner, strict=True))
            for axes in _assigned(routers, len(extents)):
                sides = _sides(routers, axes, len(extents))
                if all(s <= e for s, e in zip(sides, extents, strict=True)):
                    cost = _steps(routers, brick, axes)
                    yield _Way(cost, sides, brick, inner, axes)


def _assigned(grid: Shape, axes: int) -> Iterator[Shape]:
    """Yield the axis of each dimension, -1 for those of one place."""
    choices = [range(axes) if extent > 1 else (-1,) for extent in grid]
    yield from itertools.product(*choices)


def _sides(grid: Shape, axes: Shape, count: int) -> Shape:
    return tuple(
        math.prod(g for g, a in zip(grid, axes, strict=True) if a == axis) for axis in range(count)
    )


def _steps(grid: Shape, brick: Shape, axes: Shape) -> float:
    """Return how many links neighbours' bytes pass, dimension by dimension, in bricks' sides."""
    total = 0.0
    for k, (extent, axis) in enumerate(zip(grid, axes, strict=True)):
        if extent > 1:
            after = zip(grid[k + 1 :], axes[k + 1 :], strict=True)
            total += math.prod(g for g, a in after if a == axis) / brick[k]
    return total


class _Free:
    """Where boxes of a torus are free as a whole."""

    def __init__(self, machine: Machine, request: Request) -> None:
        count = machine.topology.router_levels
        self.extents = tuple(int(e) for e in machine.topology.extents[:count])
        rows = np.flatnonzero(request.free)
        router = np.ravel_multi_index(tuple(machine.coords[rows, :count].T), self.extents)
        size = math.prod(self.extents)
        every = np.bincount(machine.router[machine.router[:, 0] >= 0, 0])
        self.nodes = int(every.max(initial=1))
        order = np.argsort(router, kind="stable")
        held = np.bincount(router, minlength=size)
        first = np.cumsum(held) - held
        self.table = np.full((size, self.nodes), -1)
        self.table[router[order], np.arange(len(rows)) - first[router[order]]] = rows[order]
        self.whole = (held == self.nodes).astype(np.int64).reshape(self.extents)

    def corner(self, sides: Shape) -> Ints | None:
        """Return the first corner of a box that is all free; None where there is none."""
        from rankmap.joint.starts import held

        found = held(self.whole, sides)
        best = int(np.argmax(found))
        if found.flat[best] < math.prod(sides):
            return None
        return np.array(np.unravel_index(best, found.shape))

    def rows(self, way: _Way, dims: Shape, corner: Ints) -> Ints:
        """Return the node of each brick of the grid, row by row."""
        grid = tuple(d // b for d, b in zip(dims, way.brick, strict=True))
        cell = np.indices(grid).reshape(len(grid), -1)
        part, inside = np.divmod(cell, np.array(way.inner)[:, None])
        routers = tuple(g // i for g, i in zip(grid, way.inner, strict=True))
        at = np.zeros((len(self.extents), cell.shape[1]), dtype=np.int64)
        for k, axis in enumerate(way.axes):
            if axis >= 0:
                at[axis] = at[axis] * routers[k] + part[k]
        at = (at + corner[:, None]) % np.array(self.extents)[:, None]
        node = np.ravel_multi_index(tuple(inside), way.inner)
        return np.asarray(self.table[np.ravel_multi_index(tuple(at), self.extents), node])
