# SPDX-License-Identifier: Apache-2.0
"""The parts of a view: nested boxes, nodes in the innermost ones, and their arrangement.

A view says of each of its levels who lies in whom, and in which row and column. Sizes are
worked out from the nodes outwards, places from the outermost box inwards (`nest`); both for
all boxes of a level at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.placement.support.arrays import rank_within
from nidmap.placement.topologies import router_count

#: Width and height of a node, in units.
CELL = 7

#: Distance from one node to the next.
PITCH = 8

#: Aspect ratio (width over height) of the page's map on most screens.
ASPECT = 1.54

#: Shelves of boxes of different widths: how many widths of the whole are tried, and the share of
#: the widest from which on all widths are alike.
_WIDTHS, _ALIKE = 64, 0.8

#: Width from which a box has a strip for its label.
_ROOM = 20

#: Most empty places that are drawn.
_MOST_HOLES = 200_000

_NONE: Ints = np.empty(0, dtype=np.int64)


class AxisText(NamedTuple):
    """A text next to the boxes, such as the name of an axis."""

    x: int
    y: int
    text: str
    size: int = 10
    anchor: str = "start"


class Pad(NamedTuple):
    """Space between a box's edge and its contents, with its label at the top."""

    top: int
    side: int


NO_PAD = Pad(0, 0)


@dataclass(slots=True, eq=False)
class Boxes:
    """The b boxes of one level, or the nodes."""

    level: str  # ``group``, ``cabinet``, ``chassis``, ``blade``, ``switch``, ``leaf`` …
    label: list[str]  # (b,)
    parent: Ints  # (b,), index into the level before
    _: KW_ONLY
    # row, column: (b,), place in the box around it; found by `nest` where there is an `aspect`
    row: Ints = field(default_factory=lambda: _NONE)
    column: Ints = field(default_factory=lambda: _NONE)
    # Rows and columns of each box around them, where every place is drawn, also an empty one
    grid: tuple[int, int] | None = None
    # How wide over high they are in the box around them; 0: as `row` and `column` say
    aspect: float = 0.0
    gap: int = 4  # between two of them
    pad: Pad = NO_PAD
    # least, foot: least width of each, and height that is kept below what is in it
    least: int = 0
    foot: int = 0
    # (b,), True for empty positions
    vacant: Mask = field(default_factory=lambda: np.empty(0, dtype=bool))
    # x, y, w, h: (b,), what `nest` finds
    x: Ints = field(default_factory=lambda: _NONE)
    y: Ints = field(default_factory=lambda: _NONE)
    w: Ints = field(default_factory=lambda: _NONE)
    h: Ints = field(default_factory=lambda: _NONE)

    def __post_init__(self) -> None:
        if not len(self.vacant):
            self.vacant = np.zeros(len(self), dtype=bool)

    def __len__(self) -> int:
        return len(self.label)

    def document(self) -> dict[str, Any]:
        """Return the level as JSON."""
        return {
            "level": self.level,
            **{name: getattr(self, name).tolist() for name in ("x", "y", "w", "h")},
            "label": self.label,
            "parent": self.parent.tolist(),
            "vacant": self.vacant.astype(np.int8).tolist(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class MachineView:
    """One way to draw a machine: the position of each of its n nodes."""

    id: str
    title: str
    width: int
    height: int
    # x, y: (n,), top left corners of the nodes, `CELL` wide and high
    x: Ints
    y: Ints
    box: Ints  # (n,), index into the innermost level
    levels: tuple[Boxes, ...]  # outermost first
    vacant: Ints  # (v, 2), top left corners of places where no node is
    routers: Ints  # (r, 2), where links begin; -1 where a router has no place
    texts: tuple[AxisText, ...] = ()
    spines: Boxes | None = None  # switches above the leaves

    def document(self) -> dict[str, Any]:
        """Return the view as JSON."""
        return {
            "id": self.id,
            "title": self.title,
            "width": self.width,
            "height": self.height,
            "node": {
                "w": CELL, "h": CELL,
                "x": self.x.tolist(), "y": self.y.tolist(), "box": self.box.tolist(),
            },
            "vacant": {"x": self.vacant[:, 0].tolist(), "y": self.vacant[:, 1].tolist()},
            "levels": [boxes.document() for boxes in self.levels],
            "pad": {boxes.level: list(boxes.pad) for boxes in self.levels},
            "routers": {"x": self.routers[:, 0].tolist(), "y": self.routers[:, 1].tolist()},
            "spines": None if self.spines is None else self.spines.document(),
            "texts": [text._asdict() for text in self.texts],
        }  # fmt: skip


def in_line(
    level: str, label: list[str], parent: Ints, place: Ints, extent: int, *, upwards: bool,
    **look: Any,
) -> Boxes:  # fmt: skip
    """Return boxes in one row, or one column from below, each at its own position."""
    none = np.zeros_like(place)
    row, column = (extent - 1 - place, none) if upwards else (none, place)
    grid = (extent, 1) if upwards else (1, extent)
    return Boxes(level, label, parent, row=row, column=column, grid=grid, **look)


def nest(levels: Sequence[Boxes], pad: Pad, top: int = 0) -> tuple[int, int]:
    """Assign sizes and positions to all boxes and nodes; return the total width and height.

    `levels`: outermost first, the nodes last. `pad`: around the outermost boxes. `top`: height of
    what is above.
    """
    levels[-1].w = levels[-1].h = np.full(len(levels[-1]), CELL)
    floor = Boxes("floor", [""], _NONE, pad=pad)
    for outer, inner in reversed(list(pairwise((floor, *levels)))):
        _arrange_boxes(inner, outer)
    floor.x, floor.y = np.array([0]), np.array([top])
    for outer, inner in pairwise((floor, *levels)):
        inner.x, inner.y = inner.x + outer.x[inner.parent], inner.y + outer.y[inner.parent]
    levels[0].parent = np.full(len(levels[0]), -1)
    return int(floor.w[0]), top + int(floor.h[0])


def _arrange_boxes(inner: Boxes, outer: Boxes) -> None:
    """Assign each inner box its position in its outer one, and the outer ones their sizes."""
    if inner.aspect and len(outer) == 1 and inner.w.min() < _ALIKE * inner.w.max():
        _shelve_boxes(inner, outer)
        return
    count, parent, gap = len(outer), inner.parent, inner.gap
    if inner.aspect:
        columns = _count_columns(inner, np.maximum(1, np.bincount(parent, minlength=count)))
        inner.row, inner.column = np.divmod(rank_within(parent), columns[parent])
    rows, columns = np.ones((2, count), dtype=np.int64) * np.array(inner.grid or (1, 1))[:, None]
    np.maximum.at(rows, parent, inner.row + 1)
    np.maximum.at(columns, parent, inner.column + 1)
    least = (
        (inner.w.max(), inner.h.max()) if inner.grid else (CELL, CELL)
    )  # in a grid all are alike
    width = np.full(count, least[0])
    np.maximum.at(width, parent, inner.w)
    start = np.r_[0, np.cumsum(rows)]
    height = np.full(start[-1], least[1])
    np.maximum.at(height, start[parent] + inner.row, inner.h)
    edge = np.r_[0, np.cumsum(height + gap)]
    across = columns * (width + gap) - gap
    if max(outer.least, across.max(initial=0)) < _ROOM:
        outer.pad = Pad(0, outer.pad.side)
    head, side = outer.pad.top + outer.pad.side, outer.pad.side
    inner.x = side + inner.column * (width[parent] + gap)
    inner.y = head + edge[start[parent] + inner.row] - edge[start[parent]]
    outer.w = np.maximum(outer.least, across + 2 * side)
    outer.h = head + edge[start[1:]] - edge[start[:-1]] - gap + side + outer.foot
    bare = np.bincount(parent, minlength=count) == 0  # as large as the others
    outer.w[bare], outer.h[bare] = outer.w.max(), outer.h.max()


def _shelve_boxes(inner: Boxes, outer: Boxes) -> None:
    """Place boxes of different widths row by row, as large as possible overall."""
    ends = np.cumsum(inner.w + inner.gap)
    tried = np.linspace(inner.w.max(), ends[-1], _WIDTHS)
    shelves = [_fill_shelves(inner, width) for width in tried.tolist()]
    sizes = [((x + inner.w).max(), (y + inner.h).max()) for x, y in shelves]
    best = min(range(_WIDTHS), key=lambda k: max(sizes[k][0] / inner.aspect, sizes[k][1]))
    head, side = outer.pad.top + outer.pad.side, outer.pad.side
    (x, y), (width, height) = shelves[best], sizes[best]
    inner.x, inner.y = x + side, y + head
    outer.w = np.maximum(outer.least, np.array([width]) + 2 * side)
    outer.h = head + np.array([height]) + side + outer.foot


def _fill_shelves(inner: Boxes, width: float) -> tuple[Ints, Ints]:
    """Return the corners of boxes in rows of limited width, each as high as its highest box."""
    x, y = np.zeros((2, len(inner)), dtype=np.int64)
    left = top = row_height = 0
    for box, (w, h) in enumerate(zip(inner.w.tolist(), inner.h.tolist(), strict=True)):
        if left and left + w > width:
            left, top, row_height = 0, top + row_height + inner.gap, 0
        x[box], y[box] = left, top
        left, row_height = left + w + inner.gap, max(row_height, h)
    return x, y


def _count_columns(inner: Boxes, size: Ints) -> Ints:
    """Return each outer box's number of columns for about the desired aspect ratio.

    Of the counts near that the one is taken that leaves the fewest places empty.
    """
    sizes, which = np.unique(size, return_inverse=True)
    shape = inner.aspect * (inner.h.mean() + inner.gap) / (inner.w.max() + inner.gap)
    return np.array([best_columns(n, (n * shape) ** 0.5) for n in sizes.tolist()])[which]


def best_columns(count: int, wanted: float) -> int:
    """Return the columns for `count` items where `wanted` would look best."""
    low, high = max(1, int(wanted * 0.7)), max(1, math.ceil(wanted * 1.6))
    near = range(min(low, count), max(1, min(high, count)) + 1)
    return min(near, key=lambda c: (-(-count // c) * c / count + abs(math.log(c / wanted)) / 2, c))


def vacant_places(levels: Sequence[Boxes], around: Mask | None = None) -> Ints:
    """Return the corners of the inner grids' positions without a node, (v, 2).

    `levels`: as they are nested. `around`: the boxes around the grids that have such places; None
    means all.
    """
    depth = next((k for k, boxes in enumerate(reversed(levels)) if boxes.grid is None), 0)
    owner = np.arange(len(levels[-1]))
    places: list[Ints] = []
    shape: list[int] = []
    for boxes in reversed(levels[len(levels) - depth :]):
        places[:0], shape[:0] = (boxes.row[owner], boxes.column[owner]), boxes.grid or ()
        owner = boxes.parent[owner]
    outer = levels[-1 - depth]
    if not depth or math.prod(shape) * len(outer) - len(levels[-1]) > _MOST_HOLES:
        return np.empty((0, 2), dtype=np.int64)
    empty = np.ones((len(outer), *shape), dtype=np.bool_)
    empty[(owner, *places)] = False
    if around is not None:
        empty[~around] = False
    box, *cells = np.nonzero(empty)
    x, y = outer.x[box], outer.y[box]
    for k, boxes in enumerate(levels[len(levels) - depth :]):
        row, column = cells[2 * k : 2 * k + 2]
        x = x + outer.pad.side + column * (int(boxes.w[0]) + boxes.gap)
        y = y + outer.pad.top + outer.pad.side + row * (int(boxes.h[0]) + boxes.gap)
        outer = boxes
    return np.column_stack([x, y])


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of a table, sorted, and each row's index in them."""
    table, which = np.unique(rows, axis=0, return_inverse=True)
    return table, which.reshape(-1)


def make_view(
    view_id: str,
    title: str,
    machine: Machine,
    levels: Sequence[Boxes],
    pad: Pad,
    *,
    top: int = 0,
    around: Mask | None = None,
) -> MachineView:
    """Return a machine in nested boxes; the arguments are those of `nest` and `vacant_places`."""
    width, height = nest(levels, pad, top)
    *outer, nodes = levels
    return MachineView(
        view_id, title, width, height, nodes.x, nodes.y, nodes.parent, tuple(outer),
        vacant_places(levels, around), _router_middles(machine, nodes.x, nodes.y),
    )  # fmt: skip


def _router_middles(machine: Machine, x: Ints, y: Ints) -> Ints:
    """Return the centre of each router's nodes, (r, 2); -1 if it has none."""
    count = router_count(machine)
    first = machine.router[:, 0] if machine.router.shape[1] else np.full(len(machine), -1)
    attached, nodes = first >= 0, np.bincount(first[first >= 0], minlength=count)
    sums = [
        np.bincount(first[attached], weights=v[attached] + CELL / 2, minlength=count)
        for v in (x, y)
    ]
    return np.where(nodes > 0, sums / np.maximum(nodes, 1), -1).T.astype(int)
