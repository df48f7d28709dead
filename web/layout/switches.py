"""Boxes of the network: groups of switches, leaf modules, trees of any depth.

Sizes are worked out from the nodes outwards, places from the outermost box
inwards; both for all boxes of a level at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from placement.machine import Machine
from placement.support.array_types import Ints
from placement.support.arrays import rank_within
from placement.topologies import router_coords, router_count, router_names
from web.layout.boxes import (
    CELL,
    NO_PAD,
    PITCH,
    Boxes,
    MachineView,
    Pad,
    columns_of,
    distinct_rows,
    empty_cells,
    place_boxes,
    router_middles,
)

MARGIN = 8

#: How an XC's nodes, blades and chassis stand in what is around them: as in a cabinet.
_XC = {"node": "column", "blade": "row", "chassis": "column"}

_LETTERS = {"group": "g", "chassis": "c", "blade": "s"}

_TITLES = {"leaf": "Leaf modules", "group": "Groups", "node": "Nodes"}

#: Between two of a level.
_GAPS = {"node": PITCH - CELL, "blade": 1, "chassis": 2}

#: Width from which a box has a strip for its label.
_ROOM = 26

#: Units that one character of a label takes.
_CHARACTER = 6.4

#: Boxes of the outermost level up to which each is made as wide as its label.
_FEW = 256

#: Leaves up to which a tree is drawn as one row, each leaf higher than wide.
_ONE_ROW = 12

#: Units that a group keeps for its spines, below its leaves.
_SPINE_ROW = 12

#: Height of the strip in which switches without nodes stand, and how many are drawn.
_STRIP, _MOST_SPINES = 34, 2048


@dataclass(slots=True)
class _SwitchLevel:
    """One level on the way: who lies in whom, and how large each is."""

    name: str
    coords: Ints
    parent: Ints
    w: Ints
    h: Ints
    dx: Ints
    dy: Ints
    pad: Pad = NO_PAD


def view(machine: Machine) -> MachineView:
    """Return a machine in boxes of its own network's levels.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> found = view(parse_spec("dragonfly:groups=2,chassis=2,blades=4,nodes=2"))
    >>> [(b.level, len(b)) for b in found.levels]
    [('group', 2), ('chassis', 4), ('blade', 16)]
    """
    floor, *levels = _box_levels(machine)
    inside = machine.topology.kind == "dragonfly+"  # its spines stand in their groups
    strip = _STRIP if _has_upper_switches(machine) and not inside else 0
    x, y, boxes = np.zeros(1, dtype=np.int64), np.full(1, strip), []
    for depth, level in enumerate(levels):
        x, y = x[level.parent] + level.dx, y[level.parent] + level.dy
        parent = level.parent if depth else -1
        size, label = (level.w, level.h), _box_labels(machine, depth, level)
        boxes.append(place_boxes(level.name, label, (x, y), size, parent, level.pad))
    del boxes[-1]  # the nodes
    width, routers = int(floor.w[0]), router_middles(machine, x, y)
    if _has_upper_switches(machine) and boxes:
        _hang_links(machine, boxes[-1], levels[-1].parent, routers, low=inside)
        boxes[-1], width = _with_bare_leaves(machine, boxes[-1], routers, width)
    return MachineView(
        id="switches",
        title=_TITLES.get(levels[0].name, levels[0].name.capitalize()),
        width=width,
        height=int(floor.h[0]) + strip,
        x=x,
        y=y,
        box=levels[-1].parent,
        levels=tuple(boxes),
        vacant=_vacant_places(machine, levels[-1], boxes),
        routers=routers,
        spines=_place_spines(machine, routers, width, boxes[0] if inside else None)
        if _has_upper_switches(machine)
        else None,
    )


def _has_upper_switches(machine: Machine) -> bool:
    """Tell whether there are switches above those that the nodes hang on."""
    return machine.topology.kind in ("dragonfly+", "fattree", "tree")


def _box_levels(machine: Machine) -> list[_SwitchLevel]:
    """Return the whole, the levels inwards, the nodes last, each with sizes and inner places."""
    levels = [_SwitchLevel("floor", *np.zeros((6, 1), dtype=np.int64))]
    owner = np.zeros(len(machine), dtype=np.int64)
    for depth, name in enumerate(machine.topology.levels):
        coords, which = machine.coords[:, depth].astype(np.int64), np.arange(len(machine))
        parent = owner
        if name != machine.topology.levels[-1]:
            rows, which = distinct_rows(machine.coords[:, : depth + 1].astype(np.int64))
            coords, parent = rows[:, depth], np.zeros(len(rows), dtype=np.int64)
            parent[which] = owner
        levels.append(
            _SwitchLevel(name, coords, parent, *np.zeros((4, len(coords)), dtype=np.int64))
        )
        owner = which
    levels[-1].w[:] = levels[-1].h[:] = CELL
    for depth in range(len(levels) - 1, 0, -1):
        if depth == 1 < len(levels) - 1 and len(levels[1].coords) <= _FEW:
            label = max(map(len, _box_labels(machine, 0, levels[1])), default=0)
            levels[1].w = np.maximum(levels[1].w, int(_CHARACTER * label) + 8)
        deepest = depth == len(levels) - 1
        _arrange_boxes(machine, levels[depth], levels[depth - 1], deepest, outermost=depth == 2)
    return levels


def _arrange_boxes(
    machine: Machine, inner: _SwitchLevel, outer: _SwitchLevel, deepest: bool, outermost: bool
) -> None:
    """Give each inner box its place in its outer one, and the outer ones their sizes."""
    style, count, parent = _level_style(machine, inner.name), len(outer.coords), inner.parent
    on_floor = outer.name == "floor"
    if style:  # each coordinate has its place, also where nothing stands
        extent = int(machine.topology.extents[machine.topology.levels.index(inner.name)])
        place, size = inner.coords, np.full(count, extent)
        columns = size if style == "row" else np.ones(count, dtype=np.int64)
    else:
        size = np.bincount(parent, minlength=count)
        place = rank_within(parent)
        columns = _count_columns(
            inner, size, _inner_aspect(machine, count, deepest, outermost, on_floor)
        )
        if on_floor and not deepest and not _has_upper_switches(machine):
            columns[:] = columns_of(int(size[0]), inner.w.max() + MARGIN, inner.h.mean() + MARGIN)
    gap = MARGIN if on_floor and inner.name != "node" else _GAPS.get(inner.name, 4)
    width = np.ones(count, dtype=np.int64)
    np.maximum.at(width, parent, inner.w)
    room = int((columns * (width + gap)).max(initial=0))
    pad = outer.pad = Pad(0, MARGIN) if on_floor else _level_pad(outer.name, outermost, room)
    row, column = np.divmod(place, columns[parent])
    if style == "column":  # the first stands at the bottom, as in a cabinet
        row = size[parent] - 1 - row
    top, height = _row_tops(inner, row, -(-size // columns), gap)
    inner.dx = pad.side + column * (width[parent] + gap)
    inner.dy = pad.top + pad.side + top
    outer.w = 2 * pad.side + columns * (width + gap) - gap
    outer.h = pad.top + 2 * pad.side + height - gap
    if machine.topology.kind == "dragonfly+" and outer.name == "group":
        outer.h += _SPINE_ROW


def _level_style(machine: Machine, level: str) -> str:
    """Return whether a level stands in a row or a column; '' where it is set as it looks best."""
    topology = machine.topology
    cray = topology.kind == "dragonfly" and topology.router_levels == 3
    return _XC.get(level, "") if cray else ""


def _level_pad(level: str, outermost: bool, room: int) -> Pad:
    """Return a level's pad: with a strip for its label where that has room."""
    if outermost:
        return Pad(14, 4)
    if level in ("blade", "chassis"):
        return Pad(0, 1 if level == "blade" else 2)
    return Pad(10 if room >= _ROOM else 0, 2)


def _inner_aspect(
    machine: Machine, count: int, deepest: bool, outermost: bool, on_floor: bool
) -> float:
    """Return how wide over high the inside of a box should be."""
    if on_floor:  # a tree's leaves hang below their switches
        return 2.2 if _has_upper_switches(machine) else 1.7
    if not deepest:
        return 1.6
    if _has_upper_switches(machine) and outermost and count <= _ONE_ROW:
        return 0.55
    return 1.4 if outermost else 0.8


def _count_columns(inner: _SwitchLevel, size: Ints, aspect: float) -> Ints:
    """Return how many columns each outer box gets, to be about `aspect` times as wide as high.

    Of the counts near that the one is taken that leaves the fewest places empty.
    """
    sizes, which = np.unique(size, return_inverse=True)
    high = float(inner.h.mean()) if len(inner.h) else 1.0
    shape = aspect * (high + 4) / (float(inner.w.max(initial=1)) + 4)
    return np.array([_best_columns(n, (n * shape) ** 0.5) for n in sizes.tolist()])[
        which.reshape(-1)
    ]


def _best_columns(count: int, wanted: float) -> int:
    """Return columns for `count` things where `wanted` would look best.

    Examples
    --------
    >>> _best_columns(32, 9.0), _best_columns(5, 3.6), _best_columns(1, 0.2), _best_columns(5, 2.6)
    (8, 5, 1, 3)
    """
    low, high = max(1, int(wanted * 0.7)), max(1, math.ceil(wanted * 1.6))
    near = range(min(low, count), max(1, min(high, count)) + 1)
    return min(near, key=lambda c: (-(-count // c) * c / count + abs(math.log(c / wanted)) / 2, c))


def _row_tops(inner: _SwitchLevel, row: Ints, rows: Ints, gap: int) -> tuple[Ints, Ints]:
    """Return the top of each inner box in its outer one, and the height of all rows together."""
    start = np.r_[0, np.cumsum(rows)]
    key = start[inner.parent] + row
    height = np.full(start[-1], CELL, dtype=np.int64)
    np.maximum.at(height, key, inner.h)
    edge = np.r_[0, np.cumsum(height + gap)]
    return edge[key] - edge[start[inner.parent]], edge[start[1:]] - edge[start[:-1]]


def _box_labels(machine: Machine, depth: int, level: _SwitchLevel) -> list[str]:
    """Return what the boxes of a level are called: switches by name, groups by number."""
    if depth == machine.topology.router_levels - 1 and level.name not in _LETTERS:
        _, first = np.unique(machine.coords[:, : depth + 1], axis=0, return_index=True)
        router = machine.router[first, :1]
        if router.size and (router >= 0).all():
            names: list[str] = router_names(machine)[router[:, 0]].tolist()
            return names
    letter = _LETTERS.get(level.name, f"{level.name} ")
    return [f"{letter}{value}" for value in level.coords.tolist()]


def _vacant_places(machine: Machine, nodes: _SwitchLevel, boxes: list[Boxes]) -> Ints:
    """Return the corners of the places in a blade where no node stands."""
    if not boxes or not _level_style(machine, nodes.name):
        return np.empty((0, 2), dtype=np.int64)
    blades, extent = boxes[-1], int(machine.topology.extents[-1])
    box, place = empty_cells((len(blades), extent), (nodes.parent, nodes.coords)).T
    down = blades.pad.top + blades.pad.side + (extent - 1 - place) * PITCH
    return np.column_stack([blades.x[box] + blades.pad.side, blades.y[box] + down])


def _hang_links(machine: Machine, leaves: Boxes, box: Ints, routers: Ints, low: bool) -> None:
    """Let the links of a leaf begin at its box's edge towards the spines: they hide no node."""
    if machine.router.shape[1]:
        attached = machine.router[:, 0] >= 0
        router, at = machine.router[attached, 0], box[attached]
        edge = leaves.y[at] + leaves.h[at] if low else leaves.y[at]
        routers[router] = np.column_stack([leaves.x[at] + leaves.w[at] // 2, edge])


def _bare_switches(machine: Machine) -> tuple[Ints, Ints]:
    """Return the switches without nodes: leaves, by their coordinates, and those above."""
    bare = np.ones(router_count(machine), dtype=bool)
    bare[machine.router[machine.router >= 0]] = False
    leaf = (router_coords(machine) >= 0).all(axis=1) & (machine.topology.router_levels > 0)
    return np.flatnonzero(bare & leaf), np.flatnonzero(bare & ~leaf)


def _with_bare_leaves(
    machine: Machine, leaves: Boxes, routers: Ints, width: int
) -> tuple[Boxes, int]:
    """Return the leaves of a fat tree with those that have no nodes behind them."""
    rows = _bare_switches(machine)[0]
    if machine.topology.kind != "fattree" or machine.topology.router_levels > 1 or not len(rows):
        return leaves, width
    last = int(np.lexsort((leaves.x, leaves.y))[-1])
    w, h, y = int(leaves.w.max()), int(leaves.h[last]), int(leaves.y[last])
    x = int(leaves.x[last] + leaves.w[last]) + MARGIN + (w + MARGIN) * np.arange(len(rows))
    routers[rows] = np.column_stack([x + w // 2, np.full(len(rows), y)])
    names = router_names(machine)[rows].tolist()
    more = place_boxes(leaves.level, names, (x, y), (w, h), -1, leaves.pad)
    return leaves.joined(more), max(width, int(x[-1]) + w + 8)


def _place_spines(
    machine: Machine, routers: Ints, width: int, groups: Boxes | None
) -> Boxes | None:
    """Place the switches above the leaves in a strip at the top, or at the foot of their groups.

    Their links begin at the edge towards the leaves.
    """
    rows = _bare_switches(machine)[1][:_MOST_SPINES]
    if not len(rows):
        return None
    if groups is not None:
        return _spines_of_groups(machine, routers, rows, groups)
    pitch = max(4, min(90, (width - 8) // len(rows)))
    x = max(4, (width - pitch * len(rows)) // 2) + pitch * np.arange(len(rows))
    w = max(2, pitch - 4)
    routers[rows] = np.column_stack([x + w // 2, np.full(len(rows), 20)])  # the lower edge
    return place_boxes("switch", router_names(machine)[rows].tolist(), (x, 4), (w, 16))


def _spines_of_groups(machine: Machine, routers: Ints, rows: Ints, groups: Boxes) -> Boxes:
    """Place each group's spines in a row below its leaves."""
    present = np.unique(machine.coords[:, 0])
    group = router_coords(machine)[rows, 0]
    rows, group = rows[np.isin(group, present)], group[np.isin(group, present)]
    box = np.searchsorted(present, group)
    count = np.bincount(box, minlength=len(groups))[box]
    left, room = groups.x[box] + 4, groups.w[box] - 8
    place = rank_within(box)
    x, end = left + place * room // count, left + (place + 1) * room // count - 1
    y, w = groups.y[box] + groups.h[box] - _SPINE_ROW, np.maximum(1, end - x)
    routers[rows] = np.column_stack([x + w // 2, y])
    names = router_names(machine)[rows].tolist()
    return place_boxes("switch", names, (x, y), (w, _SPINE_ROW - 4))
