"""A torus in slices: two axes in the plane, the others from tile to tile, each way to cut it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from placement.machine import Machine
from placement.support.array_types import Ints
from web.layout.boxes import (
    PITCH,
    AxisText,
    MachineView,
    Pad,
    columns_of,
    distinct_rows,
    empty_cells,
    place_boxes,
    router_middles,
)

#: Units left of and above the tiles, where the axes are named; right of and below them; between.
MARGIN, EDGE, GAP = 24, 6, 14
_TILE = Pad(14, 4)

#: Most empty places that are drawn.
_MOST_HOLES = 200_000


def views(machine: Machine) -> list[MachineView]:
    """Return the slices across each axis, the usual ones (across the last axis) first.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> [(v.id, v.title) for v in views(parse_spec("torus:4x3x2"))]
    [('slices', 'z slices'), ('slices-y', 'y slices'), ('slices-x', 'x slices')]
    >>> [v.title for v in views(parse_spec("torus:4x3"))]
    ['The torus']
    """
    axes = list(range(len(machine.topology.levels) - 1))
    if len(axes) != 3:
        return [view(machine, axes)]
    return [view(machine, [*(a for a in axes if a != across), across]) for across in axes[::-1]]


def view(machine: Machine, axes: list[int]) -> MachineView:
    """Return a torus as tiles, one a slice: in each one axis runs to the right, one down.

    Parameters
    ----------
    machine : Machine
    axes : list of int
        The axis to the right, the one down, and those that change from tile to tile.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> torus = parse_spec("torus:4x3x2,nodes=2")
    >>> found = view(torus, [0, 1, 2])
    >>> [(b.level, len(b)) for b in found.levels], found.levels[0].label
    ([('slice', 2), ('router', 24)], ('z0', 'z1'))
    >>> found = view(torus, [1, 2, 0])
    >>> found.levels[0].label, [text.text for text in found.texts]
    (('x0', 'x1', 'x2', 'x3'), ['y →', 'z ↓'])
    """
    names = [machine.topology.levels[axis] for axis in axes]
    tiles = _TorusTiles(machine, axes)
    x, y = tiles.corner(machine.coords)
    routers, box = distinct_rows(machine.coords[:, :-1].astype(np.int64))
    router_x, router_y = tiles.corner(np.column_stack([routers, np.zeros_like(routers[:, 0])]))
    cut = np.ndindex(*tiles.cut)
    named = (" ".join(f"{n}{v}" for n, v in zip(names[2:], at, strict=True)) for at in cut)
    usual = axes == sorted(axes)
    return MachineView(
        id="slices" if usual else f"slices-{names[2]}",
        title=f"{' '.join(names[2:])} slices" if len(axes) > 2 else "The torus",
        width=tiles.width,
        height=tiles.height,
        x=x,
        y=y,
        box=box,
        levels=(
            place_boxes("slice", (name or "the torus" for name in named),
                        tiles.tile_corner(np.arange(tiles.count)), (tiles.w, tiles.h), pad=_TILE),
            place_boxes("router", (",".join(map(str, row)) for row in routers.tolist()),
                        (router_x - 1, router_y - 1), (tiles.nodes * PITCH + 1, PITCH + 1),
                        tiles.tile(routers), Pad(0, 1)),
        ),
        vacant=_vacant_places(machine, tiles),
        routers=router_middles(machine, x, y),
        texts=(
            AxisText(MARGIN, MARGIN - 8, f"{names[0]} →"),
            *(AxisText(4, MARGIN + 24, f"{name} ↓") for name in names[1:2]),
        ),
    )  # fmt: skip


class _TorusTiles:
    """The tiles of one torus, of `w` x `h` units each, and the places in them."""

    def __init__(self, machine: Machine, axes: list[int]) -> None:
        extents = [machine.topology.extents[axis] for axis in axes]
        self.axes = axes
        self.cut = tuple(extents[2:])
        self.count = math.prod(self.cut)
        self.nodes = int(machine.topology.extents[-1])
        self.step = self.nodes * PITCH + 2
        self.w = extents[0] * self.step + 2 * _TILE.side
        self.h = math.prod(extents[1:2]) * (PITCH + 2) + _TILE.top + 2 * _TILE.side
        self.columns = columns_of(self.count, self.w + GAP, self.h + GAP)
        self.width = MARGIN + EDGE + self.columns * (self.w + GAP) - GAP
        self.height = MARGIN + EDGE + -(-self.count // self.columns) * (self.h + GAP) - GAP

    def tile(self, coords: Ints) -> Ints:
        """Return the tile of each row of coordinates."""
        tile = np.zeros(len(coords), dtype=np.int64)
        for axis, extent in zip(self.axes[2:], self.cut, strict=True):
            tile = tile * extent + coords[:, axis]
        return tile

    def tile_corner(self, tile: Ints) -> tuple[Ints, Ints]:
        """Return the top left corner of each tile."""
        row, column = np.divmod(tile, self.columns)
        return MARGIN + column * (self.w + GAP), MARGIN + row * (self.h + GAP)

    def corner(self, coords: NDArray[np.integer]) -> tuple[Ints, Ints]:
        """Return the top left corner of each node place."""
        places = coords.astype(np.int64)
        left, top = self.tile_corner(self.tile(places))
        across = places[:, self.axes[0]] * self.step + places[:, -1] * PITCH
        down = places[:, self.axes[1]] * (PITCH + 2) if len(self.axes) > 1 else 0
        return left + _TILE.side + 1 + across, top + _TILE.top + _TILE.side + 1 + down


def _vacant_places(machine: Machine, tiles: _TorusTiles) -> Ints:
    """Return the corners of the places that have no node."""
    shape = machine.topology.extents
    if math.prod(shape) - len(machine) > _MOST_HOLES or math.prod(shape) > 50 * _MOST_HOLES:
        return np.empty((0, 2), dtype=np.int64)
    return np.column_stack(tiles.corner(empty_cells(shape, tuple(machine.coords.T))))
