"""A torus in slices: two axes in the plane, the others from tile to tile, each way to cut it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from web.layout.anchors import middles
from web.layout.boxes import CELL, PITCH, Boxes, Pad, Text, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine

    Ints = NDArray[np.int32]

__all__ = ["view", "views"]

MARGIN = 24
GAP = 14
_TILE = Pad(14, 4)

#: Most empty places that are drawn.
_MOST_HOLES = 200_000


def views(machine: Machine) -> list[View]:
    """Return the slices across each axis, the usual ones (across the last axis) first.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> [(v.id, v.title) for v in views(parse_spec("torus:4x3x2"))]
    [('slices', 'z slices'), ('slices-y', 'y slices'), ('slices-x', 'x slices')]
    >>> [v.title for v in views(parse_spec("torus:4x3"))]
    ['The torus']
    """
    axes = len(machine.topology.levels) - 1
    return [view(machine, axis) for axis in (range(axes - 1, -1, -1) if axes == 3 else (None,))]


def view(machine: Machine, across: int | None = None) -> View:
    """Return a torus as tiles, one a slice: in each one axis runs to the right, one down.

    Parameters
    ----------
    machine : Machine
    across : int or None
        The axis of a torus of three that changes from tile to tile; None: all
        but the first two.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> torus = parse_spec("torus:4x3x2,nodes=2")
    >>> found = view(torus)
    >>> [(b.level, len(b)) for b in found.levels], found.levels[0].label
    ([('slice', 2), ('router', 24)], ('z0', 'z1'))
    >>> found = view(torus, 0)
    >>> found.levels[0].label, [text.text for text in found.texts]
    (('x0', 'x1', 'x2', 'x3'), ['y →', 'z ↓'])
    """
    grid = _Grid(machine, across)
    coords = machine.coords.astype(np.int64)
    x, y = grid.corner(coords)
    routers, box = np.unique(coords[:, :-1], axis=0, return_inverse=True)
    rx, ry = grid.corner(np.column_stack([routers, np.zeros(len(routers), dtype=np.int64)]))
    inner = Boxes(
        level="router",
        x=rx - 1,
        y=ry - 1,
        w=np.full(len(routers), grid.across * PITCH + 1, dtype=np.int32),
        h=np.full(len(routers), PITCH + 1, dtype=np.int32),
        label=tuple(",".join(map(str, row)) for row in routers.tolist()),
        parent=grid.tile(routers).astype(np.int32),
        pad=Pad(0, 1),
        vacant=np.zeros(len(routers), dtype=bool),
    )
    return View(
        id=grid.id,
        title=grid.title,
        width=grid.width,
        height=grid.height,
        x=x,
        y=y,
        box=box.reshape(-1).astype(np.int32),
        levels=(grid.tiles(), inner),
        vacant=_vacant(machine, grid),
        routers=middles(machine, x, y),
        texts=grid.texts(),
    )


class _Grid:
    """The tiles of one torus and the places in them."""

    def __init__(self, machine: Machine, across: int | None = None) -> None:
        topology = machine.topology
        axes = list(range(len(topology.levels) - 1))
        if across is not None:  # the axes of the plane first
            axes = [axis for axis in axes if axis != across] + [across]
        self.axes = axes
        self.names = [topology.levels[axis] for axis in axes]
        self.extents = tuple(topology.extents[axis] for axis in axes)
        usual = across is None or across == len(axes) - 1
        cut = " ".join(self.names[2:])
        self.id = "slices" if usual else f"slices-{cut}"
        self.title = f"{cut} slices" if len(axes) > 2 else "The torus"
        self.across = int(topology.extents[-1])
        self.plane = (self.extents[0], self.extents[1] if len(self.extents) > 1 else 1)
        self.step = (self.across * PITCH + 2, PITCH + 2)
        self.rest = self.extents[2:]
        self.w = self.plane[0] * self.step[0] + 2 * _TILE.side
        self.h = self.plane[1] * self.step[1] + _TILE.top + 2 * _TILE.side
        count = math.prod(self.rest)
        wanted = round(math.sqrt(count * 1.7 * (self.h + GAP) / (self.w + GAP)))
        self.columns = max(1, min(count, wanted))
        self.width = 2 * MARGIN + self.columns * (self.w + GAP) - GAP
        self.height = 2 * MARGIN + -(-count // self.columns) * (self.h + GAP) - GAP

    def tile(self, coords: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the tile of each row of coordinates."""
        if not self.rest:
            return np.zeros(len(coords), dtype=np.int64)
        more = tuple(coords[:, axis] for axis in self.axes[2:])
        return np.asarray(np.ravel_multi_index(more, self.rest, mode="clip"), dtype=np.int64)

    def corner(self, coords: NDArray[np.int64]) -> tuple[Ints, Ints]:
        """Return the top left corner of each node place."""
        left, top = self._tile_corner(self.tile(coords))
        second = coords[:, self.axes[1]] if len(self.axes) > 1 else 0
        first = coords[:, self.axes[0]]
        x = left + _TILE.side + 1 + first * self.step[0] + coords[:, -1] * PITCH
        y = top + _TILE.top + _TILE.side + 1 + second * self.step[1]
        return x.astype(np.int32), y.astype(np.int32)

    def _tile_corner(self, tile: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        row, column = tile // self.columns, tile % self.columns
        return MARGIN + column * (self.w + GAP), MARGIN + row * (self.h + GAP)

    def tiles(self) -> Boxes:
        """Return the box of each slice."""
        count = math.prod(self.rest)
        x, y = self._tile_corner(np.arange(count))
        return Boxes(
            level="slice",
            x=x.astype(np.int32),
            y=y.astype(np.int32),
            w=np.full(count, self.w, dtype=np.int32),
            h=np.full(count, self.h, dtype=np.int32),
            label=tuple(self._label(k) for k in range(count)),
            parent=np.full(count, -1, dtype=np.int32),
            pad=_TILE,
            vacant=np.zeros(count, dtype=bool),
        )

    def _label(self, tile: int) -> str:
        at = np.unravel_index(tile, self.rest) if self.rest else ()
        named = zip(self.names[2:], at, strict=False)
        return " ".join(f"{name}{int(value)}" for name, value in named) or "the torus"

    def texts(self) -> tuple[Text, ...]:
        """Return the names of the two axes in the plane."""
        right = Text(MARGIN, MARGIN - 8, f"{self.names[0]} →")
        if len(self.names) < 2:
            return (right,)
        return right, Text(4, MARGIN + 24, f"{self.names[1]} ↓")


def _vacant(machine: Machine, grid: _Grid) -> Ints:
    """Return the corners of the places that have no node."""
    shape = machine.topology.extents
    if math.prod(shape) - len(machine) > _MOST_HOLES or math.prod(shape) > 50 * _MOST_HOLES:
        return np.empty((0, 2), dtype=np.int32)
    taken = np.zeros(shape, dtype=bool)
    taken[tuple(machine.coords.T)] = True
    x, y = grid.corner(np.argwhere(~taken))
    return np.column_stack([x, y])


assert CELL < PITCH
