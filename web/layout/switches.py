"""Boxes of the network: groups of switches, leaf modules, trees of any depth.

Sizes are worked out from the nodes outwards, places from the outermost box
inwards; both for all boxes of a level at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.topologies import router_names
from web.layout.anchors import STRIP, middles, with_spines
from web.layout.boxes import CELL, PITCH, Boxes, Pad, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from placement.machine import Machine

    Ints = NDArray[np.int64]

__all__ = ["view"]

MARGIN = 8

#: How what is in a box is arranged: in a row, in a column, or width over height.
_XC = {"node": "column", "blade": "row", "chassis": "column"}

_LETTERS = {"group": "g", "chassis": "c", "blade": "s"}

#: Width from which a box has a strip for its label.
_ROOM = 26

#: Units that one character of a label takes.
_CHARACTER = 6.4

#: Boxes of the outermost level up to which each is made as wide as its label.
_FEW = 256

#: Leaves up to which a tree is drawn as one row, each leaf higher than wide.
_ONE_ROW = 12

#: Width over height of the whole, and of a tree, whose leaves hang below their switches.
_WIDE, _WIDE_TREE = 1.7, 2.2


_NO_PAD = Pad(0, 0)


@dataclass(slots=True)
class _Level:
    """One level on the way: who lies in whom, and how large each is."""

    name: str
    coords: Ints
    parent: Ints
    inner: Ints
    w: Ints
    h: Ints
    dx: Ints
    dy: Ints
    vacant: Ints
    pad: Pad = _NO_PAD


def view(machine: Machine) -> View:
    """Return a machine in boxes of its own network's levels.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> found = view(parse_spec("dragonfly:groups=2,chassis=2,blades=4,nodes=2"))
    >>> [(b.level, len(b)) for b in found.levels]
    [('group', 2), ('chassis', 4), ('blade', 16)]
    """
    levels = _levels(machine)
    floor, width, height = _floor(levels[0], _WIDE_TREE if _hangs(machine) else _WIDE)
    top = STRIP if _hangs(machine) else 0
    boxes, node_x, node_y = _placed(machine, levels, floor, top)
    anchors = middles(machine, node_x, node_y)
    if _hangs(machine) and boxes:
        _hung(machine, boxes[-1], levels[-1].parent, anchors)
    above = with_spines(machine, anchors, width)
    return View(
        id="switches",
        title=_title(machine),
        width=width,
        height=height + top,
        x=node_x,
        y=node_y,
        box=levels[-1].parent.astype(np.int32),
        levels=boxes,
        vacant=_vacant(levels, boxes),
        routers=anchors,
        spines=above,
    )


def _hangs(machine: Machine) -> bool:
    """Tell whether there are switches above those that the nodes hang on."""
    return machine.topology.kind in ("fattree", "tree")


def _hung(machine: Machine, leaves: Boxes, box: Ints, anchors: NDArray[np.int32]) -> None:
    """Let the links of a leaf begin at its box's upper edge, so that they hide no node."""
    if not machine.router.shape[1]:
        return
    mine = machine.router[:, 0] >= 0
    router, at = machine.router[mine, 0], box[mine]
    anchors[router, 0] = leaves.x[at] + leaves.w[at] // 2
    anchors[router, 1] = leaves.y[at]


def _title(machine: Machine) -> str:
    level = machine.topology.levels[0]
    words = {"leaf": "Leaf modules", "group": "Groups", "node": "Nodes"}
    return words.get(level, level.capitalize())


def _arrangement(machine: Machine, level: str) -> str:
    topology = machine.topology
    if topology.kind == "dragonfly" and topology.router_levels == 3:
        return _XC.get(level, "")
    return ""


def _levels(machine: Machine) -> list[_Level]:
    """Return the levels, outermost first, the nodes last, each with sizes and inner places."""
    names = machine.topology.levels
    found: list[_Level] = []
    owner = np.zeros(len(machine), dtype=np.int64)
    for depth, name in enumerate(names[:-1]):
        rows, which = np.unique(machine.coords[:, : depth + 1], axis=0, return_inverse=True)
        which = which.reshape(-1).astype(np.int64)
        parent = np.zeros(len(rows), dtype=np.int64)
        parent[which] = owner
        found.append(_empty(name, rows[:, depth].astype(np.int64), parent))
        owner = which
    nodes = _empty("node", machine.coords[:, -1].astype(np.int64), owner)
    nodes.w[:] = nodes.h[:] = CELL
    found.append(nodes)
    for depth in range(len(found) - 1, 0, -1):
        outer, deepest = found[depth - 1], depth == len(found) - 1
        _arrange(machine, found[depth], outer, deepest, outermost=depth == 1)
    if len(found) > 1 and len(found[0].coords) <= _FEW:
        label = max(map(len, _labels(machine, 0, found[0])), default=0)
        found[0].w = np.maximum(found[0].w, int(_CHARACTER * label) + 8)
    return found


def _empty(name: str, coords: Ints, parent: Ints) -> _Level:
    w, h, dx, dy = (np.zeros(len(coords), dtype=np.int64) for _ in range(4))
    none = np.empty((0, 3), dtype=np.int64)
    return _Level(name, coords, parent, np.arange(len(coords)), w, h, dx, dy, none)


def _pad(level: str, outermost: bool, room: int) -> Pad:
    """Return a level's pad: with a strip for its label where that has room."""
    if outermost:
        return Pad(14, 4)
    if level in ("blade", "chassis"):
        return Pad(0, 1 if level == "blade" else 2)
    return Pad(10 if room >= _ROOM else 0, 2)


def _gap(level: str) -> int:
    return {"node": PITCH - CELL, "blade": 1, "chassis": 2}.get(level, 4)


def _arrange(
    machine: Machine, inner: _Level, outer: _Level, deepest: bool, outermost: bool
) -> None:
    """Give each inner box its place in its outer one, and the outer ones their sizes."""
    style = _arrangement(machine, inner.name)
    count = len(outer.coords)
    if style:  # each coordinate has its place, also where nothing stands
        extent = int(machine.topology.extents[machine.topology.levels.index(inner.name)])
        place, size = inner.coords, np.full(count, extent)
        columns = size if style == "row" else np.ones(count, dtype=np.int64)
    else:
        place = _ordinal(inner.parent)
        size = np.bincount(inner.parent, minlength=count)
        columns = _columns(inner, size, _aspect(machine, count, deepest, outermost))
    gap = _gap(inner.name)
    width = _widest(inner, count)
    pad = outer.pad = _pad(outer.name, outermost, int((columns * (width + gap)).max(initial=0)))
    row, column = place // columns[inner.parent], place % columns[inner.parent]
    if style == "column":  # the first stands at the bottom, as in a cabinet
        row = size[inner.parent] - 1 - row
    rows = -(-size // columns)
    top, row_sum = _row_tops(inner, row, rows, gap, count)
    inner.dx = pad.side + column * (width[inner.parent] + gap)
    inner.dy = pad.top + pad.side + top
    outer.w = 2 * pad.side + columns * (width + gap) - gap
    outer.h = pad.top + 2 * pad.side + row_sum - gap
    if style and deepest:
        inner.vacant = _holes(inner, size[0], pad, gap)


def _aspect(machine: Machine, count: int, deepest: bool, outermost: bool) -> float:
    """Return how wide over high the inside of a box should be."""
    if not deepest:
        return 1.6
    if _hangs(machine) and outermost and count <= _ONE_ROW:
        return 0.55
    return 1.4 if outermost else 0.8


def _ordinal(parent: Ints) -> Ints:
    """Return each row's number among those of the same parent, in the order of the rows."""
    order = np.argsort(parent, kind="stable")
    starts = np.r_[0, np.cumsum(np.bincount(parent))]
    out = np.empty(len(parent), dtype=np.int64)
    out[order] = np.arange(len(parent)) - starts[parent[order]]
    return out


def _columns(inner: _Level, size: Ints, aspect: float) -> Ints:
    """Return how many columns each outer box gets, to be about `aspect` times as wide as high.

    Of the counts near that the one is taken that leaves the fewest places empty.
    """
    sizes, which = np.unique(size, return_inverse=True)
    shape = aspect * (_mean(inner.h) + 4) / (float(inner.w.max(initial=1)) + 4)
    return np.array([_across(n, (n * shape) ** 0.5) for n in sizes.tolist()])[which.reshape(-1)]


def _across(count: int, wanted: float) -> int:
    """Return columns for `count` things where `wanted` would look best.

    Examples
    --------
    >>> _across(32, 9.0), _across(5, 3.6), _across(1, 0.2), _across(5, 2.6)
    (8, 5, 1, 3)
    """
    low, high = max(1, int(wanted * 0.7)), max(1, -int(-wanted * 1.6 // 1))
    near = range(min(low, count), max(1, min(high, count)) + 1)
    return min(near, key=lambda c: (-(-count // c) * c / count + abs(math.log(c / wanted)) / 2, c))


def _mean(values: Ints) -> float:
    return float(values.mean()) if len(values) else 1.0


def _widest(inner: _Level, count: int) -> Ints:
    width = np.ones(count, dtype=np.int64)
    np.maximum.at(width, inner.parent, inner.w)
    return width


def _row_tops(inner: _Level, row: Ints, rows: Ints, gap: int, count: int) -> tuple[Ints, Ints]:
    """Return the top of each inner box in its outer one, and the height of all rows together."""
    start = np.r_[0, np.cumsum(rows)]
    key = start[inner.parent] + row
    height = np.full(start[-1], CELL, dtype=np.int64)
    np.maximum.at(height, key, inner.h)
    edge = np.r_[0, np.cumsum(height + gap)]
    top = edge[key] - edge[start[inner.parent]]
    return top, edge[start[1:]] - edge[start[:-1]]


def _holes(inner: _Level, extent: int, pad: Pad, gap: int) -> Ints:
    """Return (outer box, dx, dy) of the places in a column where no node stands."""
    taken = np.zeros((int(inner.parent.max(initial=-1)) + 1, extent), dtype=bool)
    taken[inner.parent, inner.coords] = True
    box, place = np.nonzero(~taken)
    dy = pad.top + pad.side + (extent - 1 - place) * (CELL + gap)
    return np.column_stack([box, np.full(len(box), pad.side), dy])


def _floor(outermost: _Level, aspect: float) -> tuple[tuple[Ints, Ints], int, int]:
    """Return where the outermost boxes stand, and the size of the whole."""
    count = len(outermost.coords)
    whole = _empty("floor", np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    size = np.array([count])
    columns = _columns(outermost, size, aspect)
    outermost_parent = np.zeros(count, dtype=np.int64)
    place = np.arange(count)
    row, column = place // columns[0], place % columns[0]
    gap = MARGIN if outermost.name != "node" else PITCH - CELL
    width = int(outermost.w.max(initial=CELL))
    probe = _Level(
        outermost.name, outermost.coords, outermost_parent, whole.inner,
        outermost.w, outermost.h, whole.dx, whole.dy, whole.vacant,
    )  # fmt: skip
    top, high = _row_tops(probe, row, -(-size // columns), gap, 1)
    x, y = MARGIN + column * (width + gap), MARGIN + top
    across = int(columns[0]) * (width + gap) - gap + 2 * MARGIN
    return (x, y), across, int(high[0]) - gap + 2 * MARGIN


def _placed(
    machine: Machine, levels: Sequence[_Level], floor: tuple[Ints, Ints], top: int
) -> tuple[tuple[Boxes, ...], NDArray[np.int32], NDArray[np.int32]]:
    """Return the boxes of all levels but the nodes', and the nodes' corners."""
    x, y = floor[0], floor[1] + top
    found = []
    for depth, level in enumerate(levels):
        if depth:
            x, y = x[level.parent] + level.dx, y[level.parent] + level.dy
        if depth == len(levels) - 1:
            break
        found.append(
            Boxes(
                level=level.name,
                x=x.astype(np.int32),
                y=y.astype(np.int32),
                w=level.w.astype(np.int32),
                h=level.h.astype(np.int32),
                label=_labels(machine, depth, level),
                parent=level.parent.astype(np.int32) if depth else np.full(len(x), -1, np.int32),
                pad=level.pad,
                vacant=np.zeros(len(x), dtype=bool),
            )
        )
    return tuple(found), x.astype(np.int32), y.astype(np.int32)


def _labels(machine: Machine, depth: int, level: _Level) -> tuple[str, ...]:
    """Return what the boxes of a level are called: switches by name, groups by number."""
    topology = machine.topology
    if depth == topology.router_levels - 1 and level.name not in _LETTERS:
        names = _switch_names(machine, depth, len(level.coords))
        if names:
            return names
    letter = _LETTERS.get(level.name, f"{level.name} ")
    return tuple(f"{letter}{value}" for value in level.coords.tolist())


def _switch_names(machine: Machine, depth: int, count: int) -> tuple[str, ...]:
    """Return the name of the switch that each box's nodes hang on; () where there is no telling."""
    _, first = np.unique(machine.coords[:, : depth + 1], axis=0, return_index=True)
    if len(first) != count or not machine.router.shape[1]:
        return ()
    router = machine.router[first, 0]
    return tuple(router_names(machine)[router].tolist()) if (router >= 0).all() else ()


def _vacant(levels: Sequence[_Level], boxes: tuple[Boxes, ...]) -> NDArray[np.int32]:
    holes = levels[-1].vacant
    if not len(holes) or not boxes:
        return np.empty((0, 2), dtype=np.int32)
    box = holes[:, 0]
    corner = np.column_stack([boxes[-1].x[box], boxes[-1].y[box]])
    return (corner + holes[:, 1:]).astype(np.int32)
