"""Cray machines as they stand on the floor: cabinets, chassis, blades, nodes.

Every cabinet has chassis 2 above 1 above 0. On XE its slots stand from left to
right and a blade's nodes from n0 at the bottom to n3, as ``xtnodestat`` prints
them. On XC a chassis is two columns of eight blades that lie flat, slots 0-7 at
the left from the bottom up, 8-15 beside them, a blade's nodes from left to
right, as in the cabinet itself: upright, so that a floor fills a screen.
Columns of cabinets run to the right, rows down; the cabinets of one group
(two on XC) stand closer together than others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.names import parse_cnames
from web.layout.anchors import middles
from web.layout.boxes import CELL, PITCH, Boxes, Pad, Text, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine

    Ints = NDArray[np.int64]

__all__ = ["applies", "view"]

MARGIN = 10
_BLADE = Pad(0, 1)
_CHASSIS = Pad(0, 2)
_CABINET = Pad(13, 3)
_GROUP = Pad(13, 4)
_NODES = 4
_NOTHING: Ints = np.empty(0, dtype=np.int64)
_LONG, _SHORT = _NODES * PITCH - (PITCH - CELL) + 2, CELL + 2
_SEAM = 2
_STEP = _SHORT + 1
_FLAT_SLOTS = 8

#: Missing columns of cabinets that are drawn as empty places; more are left out.
_EMPTY_COLUMNS = 3


def applies(machine: Machine) -> bool:
    """Tell whether most nodes have cnames, which say where they stand."""
    if not len(machine):
        return False
    return bool((parse_cnames(machine.cname)[:, 4] >= 0).mean() > 0.5)


@dataclass(slots=True)
class _Floor:
    """Sizes and offsets of one machine room."""

    slots: int
    cages: int
    columns: Ints
    rows: Ints
    left: Ints
    top: Ints
    grouped: bool
    upright: bool = False

    @property
    def blade_size(self) -> tuple[int, int]:
        """Width and height of a blade."""
        return (_LONG, _SHORT) if self.upright else (_SHORT, _LONG)

    @property
    def chassis_h(self) -> int:
        rows = _FLAT_SLOTS if self.upright else 1
        return 2 * _CHASSIS.side + (rows - 1) * _SHORT + self.blade_size[1]

    @property
    def chassis_step(self) -> int:
        return self.chassis_h + 2

    @property
    def cabinet_w(self) -> int:
        return 2 * _CABINET.side + self.chassis_w

    @property
    def cabinet_h(self) -> int:
        return _CABINET.top + 2 * _CABINET.side + self.cages * self.chassis_step - 2

    @property
    def chassis_w(self) -> int:
        if self.upright:
            return 2 * _CHASSIS.side + self.slots // _FLAT_SLOTS * (_LONG + _SEAM) - _SEAM
        return 2 * _CHASSIS.side + self.slots * _STEP - 1

    def cabinet(self, parts: Ints) -> tuple[Ints, Ints]:
        """Return the top left corner of each row's cabinet."""
        column = np.searchsorted(self.columns, parts[:, 0])
        row = np.searchsorted(self.rows, parts[:, 1])
        return self.left[column], self.top[row]

    def chassis(self, parts: Ints) -> tuple[Ints, Ints]:
        """Return the top left corner of each row's chassis, the first one lowest."""
        x, y = self.cabinet(parts)
        above = self.cages - 1 - parts[:, 2]
        down = _CABINET.top + _CABINET.side + above * self.chassis_step
        return x + _CABINET.side, y + down

    def blade(self, parts: Ints) -> tuple[Ints, Ints]:
        """Return the top left corner of each row's blade."""
        x, y = self.chassis(parts)
        x, y, slot = x + _CHASSIS.side, y + _CHASSIS.side, parts[:, 3]
        if not self.upright:
            return x + slot * _STEP, y
        lowest = _FLAT_SLOTS - 1 - slot % _FLAT_SLOTS
        return x + slot // _FLAT_SLOTS * (_LONG + _SEAM), y + lowest * _SHORT

    def node(self, parts: Ints) -> tuple[Ints, Ints]:
        """Return the top left corner of each row's node, n0 at the bottom or at the left."""
        x, y = self.blade(parts)
        if self.upright:
            return x + 1 + parts[:, 4] * PITCH, y + 1
        return x + 1, y + 1 + (_NODES - 1 - parts[:, 4]) * PITCH


def view(machine: Machine) -> View:
    """Return a machine in its cabinets.

    Examples
    --------
    >>> import nidmap
    >>> found = view(nidmap.load_machine("shaheen2"))
    >>> [(b.level, len(b)) for b in found.levels]
    [('group', 18), ('cabinet', 36), ('chassis', 108), ('blade', 1728)]
    """
    parts = parse_cnames(machine.cname).astype(np.int64)
    known = parts[:, 4] >= 0
    floor = _floor(machine, parts, known)
    levels, box = _boxes(machine, parts, known, floor)
    x, y = np.zeros(len(parts), dtype=np.int64), np.zeros(len(parts), dtype=np.int64)
    x[known], y[known] = floor.node(parts[known])
    width = int(floor.left[-1]) + floor.cabinet_w + _GROUP.side + MARGIN
    height = int(floor.top[-1]) + floor.cabinet_h + _GROUP.side + MARGIN
    if not known.all():
        levels, height = _elsewhere(levels, known, box, x, y, width, height)
    corner = (x.astype(np.int32), y.astype(np.int32))
    return View(
        id="cabinets",
        title="Cabinets",
        width=width,
        height=height,
        x=corner[0],
        y=corner[1],
        box=box.astype(np.int32),
        levels=levels,
        vacant=_vacant(parts[known], floor),
        routers=middles(machine, *corner),
        texts=_gaps(floor),
    )


def _floor(machine: Machine, parts: Ints, known: NDArray[np.bool_]) -> _Floor:
    """Work out how many columns and rows there are, and where each begins."""
    mine = parts[known]
    slots = 16 if machine.topology.fabric == "aries" or mine[:, 3].max() > 7 else 8
    cages = max(3, int(mine[:, 2].max()) + 1)
    grouped = machine.topology.levels[0] == "group" and _together(machine, parts, known)
    upright = slots % _FLAT_SLOTS == 0 and slots > _FLAT_SLOTS
    floor = _Floor(slots, cages, *_lines(mine), _NOTHING, _NOTHING, grouped, upright)
    group = machine.coords[known, 0] if grouped else np.zeros(len(mine), dtype=np.int64)
    close = _close(floor, mine, group) if grouped else np.zeros(len(floor.columns), dtype=bool)
    gap = np.where(close, 3, 8 + (2 * _GROUP.side + 4 if grouped else 0))
    gap[1:][np.diff(floor.columns) > 1] += 14  # columns that are left out
    gap[0] = MARGIN + _GROUP.side
    floor.left = np.cumsum(gap + np.r_[0, np.full(len(gap) - 1, floor.cabinet_w)])
    step = floor.cabinet_h + (_GROUP.top + 2 * _GROUP.side + 10 if grouped else 10)
    head = MARGIN + (_GROUP.top + _GROUP.side if grouped else 0)
    floor.top = head + step * np.arange(len(floor.rows))
    return floor


def _lines(parts: Ints) -> tuple[Ints, Ints]:
    """Return the columns and rows of cabinets that are drawn."""
    return _drawn(np.unique(parts[:, 0])), _drawn(np.unique(parts[:, 1]))


def _drawn(values: Ints) -> Ints:
    """Add what is missing between, where it is little.

    Examples
    --------
    >>> _drawn(np.array([0, 1, 3, 90])).tolist()
    [0, 1, 2, 3, 90]
    """
    steps = np.diff(values)
    fill = [np.arange(a, a + s) if s <= _EMPTY_COLUMNS + 1 else np.array([a])
            for a, s in zip(values[:-1].tolist(), steps.tolist(), strict=True)]  # fmt: skip
    return np.concatenate([*fill, values[-1:]]).astype(np.int64)


def _together(machine: Machine, parts: Ints, known: NDArray[np.bool_]) -> bool:
    """Tell whether each group is whole cabinets beside each other in one row."""
    cells = np.unique(np.column_stack([machine.coords[known, 0], parts[known, :2]]), axis=0)
    if len(np.unique(cells[:, 1:], axis=0)) != len(cells):
        return False  # a cabinet with two groups
    first = np.flatnonzero(np.r_[True, cells[1:, 0] != cells[:-1, 0]])
    size = np.diff(np.r_[first, len(cells)])
    low, high = np.minimum.reduceat(cells, first), np.maximum.reduceat(cells, first)
    beside = (high[:, 1] - low[:, 1] < 4) & (low[:, 2] == high[:, 2])
    return bool((beside & (size == high[:, 1] - low[:, 1] + 1)).all())


def _close(floor: _Floor, parts: Ints, group: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return for each column whether a group reaches from the one before into it."""
    cells = np.unique(np.column_stack([parts[:, 1], parts[:, 0], group]), axis=0)
    same = (cells[1:, 0] == cells[:-1, 0]) & (cells[1:, 2] == cells[:-1, 2])
    joined = np.zeros(len(floor.columns), dtype=bool)
    joined[np.searchsorted(floor.columns, cells[1:, 1][same])] = True
    return joined


def _boxes(
    machine: Machine, parts: Ints, known: NDArray[np.bool_], floor: _Floor
) -> tuple[tuple[Boxes, ...], Ints]:
    """Return the boxes of all levels, and the blade of each node."""
    mine = parts[known]
    box = np.zeros(len(parts), dtype=np.int64)
    blades, box_of = np.unique(mine[:, :4], axis=0, return_inverse=True)
    box[known] = box_of.reshape(-1)
    chassis, in_chassis = np.unique(blades[:, :3], axis=0, return_inverse=True)
    cabinets, in_cabinet = np.unique(chassis[:, :2], axis=0, return_inverse=True)
    size = (
        (floor.cabinet_w, floor.cabinet_h),
        (floor.chassis_w, floor.chassis_h),
        floor.blade_size,
    )
    group, group_of = _groups(machine, mine, known, cabinets, floor)
    holes = _absent(cabinets, floor)
    own = _level("cabinet", floor.cabinet(cabinets), size[0], _cabinet_names(cabinets), group_of,
                 _CABINET)  # fmt: skip
    empty = _level("cabinet", floor.cabinet(holes), size[0], _cabinet_names(holes),
                   np.full(len(holes), -1), _CABINET)  # fmt: skip
    found = (
        _joined(own, empty),
        _level(
            "chassis",
            floor.chassis(chassis),
            size[1],
            _names("c", chassis[:, 2]),
            in_cabinet.reshape(-1),
            _CHASSIS,
        ),
        _level(
            "blade",
            floor.blade(blades),
            size[2],
            _names("s", blades[:, 3]),
            in_chassis.reshape(-1),
            _BLADE,
        ),
    )
    return ((group, *found) if group is not None else found), box


def _level(
    name: str,
    corner: tuple[Ints, Ints],
    size: tuple[int, int],
    label: tuple[str, ...],
    parent: Ints,
    pad: Pad,
) -> Boxes:
    count = len(label)
    return Boxes(
        level=name,
        x=corner[0].astype(np.int32),
        y=corner[1].astype(np.int32),
        w=np.full(count, size[0], dtype=np.int32),
        h=np.full(count, size[1], dtype=np.int32),
        label=label,
        parent=parent.astype(np.int32),
        pad=pad,
        vacant=np.zeros(count, dtype=bool),
    )


def _joined(own: Boxes, empty: Boxes) -> Boxes:
    """Return the boxes that hold something and, behind them, those that do not."""
    both = {name: np.concatenate([getattr(own, name), getattr(empty, name)])
            for name in ("x", "y", "w", "h", "parent")}  # fmt: skip
    vacant = np.r_[np.zeros(len(own), dtype=bool), np.ones(len(empty), dtype=bool)]
    return Boxes(own.level, label=own.label + empty.label, pad=own.pad, vacant=vacant, **both)


def _names(letter: str, values: Ints) -> tuple[str, ...]:
    return tuple(f"{letter}{value}" for value in values.tolist())


def _cabinet_names(cabinets: Ints) -> tuple[str, ...]:
    return tuple(f"c{column}-{row}" for column, row in cabinets.tolist())


def _groups(
    machine: Machine, mine: Ints, known: NDArray[np.bool_], cabinets: Ints, floor: _Floor
) -> tuple[Boxes | None, Ints]:
    """Return the boxes around the cabinets of each group, and the group of each cabinet."""
    if not floor.grouped:
        return None, np.full(len(cabinets), -1)
    _, first = np.unique(mine[:, :2], axis=0, return_index=True)
    values, group_of = np.unique(machine.coords[known, 0][first], return_inverse=True)
    x, y = floor.cabinet(cabinets)
    left = np.full(len(values), np.iinfo(np.int64).max)
    right, top = np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.int64)
    np.minimum.at(left, group_of, x)
    np.maximum.at(right, group_of, x)
    np.maximum.at(top, group_of, y)
    head = _GROUP.top + _GROUP.side
    boxes = _level("group", (left - _GROUP.side, top - head), (0, 0), _names("g", values),
                   np.full(len(values), -1), _GROUP)  # fmt: skip
    boxes.w[:] = right - left + floor.cabinet_w + 2 * _GROUP.side
    boxes.h[:] = floor.cabinet_h + head + _GROUP.side
    return boxes, group_of.reshape(-1)


def _absent(cabinets: Ints, floor: _Floor) -> Ints:
    """Return the floor places without a cabinet, where most places have one."""
    every = np.stack(np.meshgrid(floor.columns, floor.rows, indexing="ij"), axis=-1).reshape(-1, 2)
    if len(every) > 2 * len(cabinets):
        return np.empty((0, 2), dtype=np.int64)
    base = int(every.max()) + 1
    return every[~np.isin(every[:, 0] * base + every[:, 1], cabinets[:, 0] * base + cabinets[:, 1])]


def _vacant(parts: Ints, floor: _Floor) -> NDArray[np.int32]:
    """Return the corners of the places in the cabinets where no node stands."""
    cabinets, which = np.unique(parts[:, :2], axis=0, return_inverse=True)
    taken = np.zeros((len(cabinets), floor.cages, floor.slots, _NODES), dtype=bool)
    inside = parts[:, 4] < _NODES
    taken[(which.reshape(-1)[inside], *parts[inside, 2:5].T)] = True
    place = np.argwhere(~taken)
    x, y = floor.node(np.column_stack([cabinets[place[:, 0]], place[:, 1:]]))
    return np.column_stack([x, y]).astype(np.int32)


def _elsewhere(
    levels: tuple[Boxes, ...], known: NDArray[np.bool_], box: Ints, x: Ints, y: Ints,
    width: int, height: int,
) -> tuple[tuple[Boxes, ...], int]:  # fmt: skip
    """Place the nodes without a cname in a strip below; return the levels and the new height."""
    rows = np.flatnonzero(~known)
    columns = max(1, (width - 2 * MARGIN - 2 * _CABINET.side) // PITCH)
    x[rows] = MARGIN + _CABINET.side + (np.arange(len(rows)) % columns) * PITCH
    y[rows] = height + _CABINET.top + _CABINET.side + (np.arange(len(rows)) // columns) * PITCH
    high = _CABINET.top + 2 * _CABINET.side + -(-len(rows) // columns) * PITCH
    wide = 2 * _CABINET.side + min(columns, len(rows)) * PITCH
    corner = (np.array([MARGIN]), np.array([height]))
    out: list[Boxes] = []
    for boxes in levels:
        parent = np.array([len(out[-1]) - 1 if out else -1])
        label = ("without cname",) if boxes.level == "cabinet" else ("",)
        more = _level(boxes.level, corner, (max(wide, 90), high), label, parent, boxes.pad)
        out.append(_shown(_joined(boxes, more), boxes))
    box[rows] = len(out[-1]) - 1
    return tuple(out), height + high + MARGIN


def _shown(both: Boxes, before: Boxes) -> Boxes:
    """Undo what `_joined` says of the last box: it holds something."""
    both.vacant[: len(before)] = before.vacant
    both.vacant[len(before) :] = False
    return both


def _gaps(floor: _Floor) -> tuple[Text, ...]:
    """Return a mark wherever columns of cabinets are left out."""
    at = np.flatnonzero(np.diff(floor.columns) > 1) + 1
    y = int(floor.top[0]) + floor.cabinet_h // 2
    return tuple(Text(int(floor.left[k]) - 14, y, "…", 14, "middle") for k in at.tolist())
