"""Cray machines as they stand on the floor: cabinets, chassis, blades, nodes.

Every cabinet has chassis 2 above 1 above 0. On XE its slots stand from left to
right and a blade's nodes from n0 at the bottom to n3, as ``xtnodestat`` prints
them. On XC a chassis is two columns of eight blades that lie flat, slots 0-7 at
the left from the bottom up, 8-15 beside them, a blade's nodes from left to
right, as in the cabinet itself: upright, so that a floor fills a screen.
Columns of cabinets run to the right, rows down; the cabinets of one group
(two on XC) stand closer together than others.

A place is a row of numbers as a cname has them: column and row of the cabinet,
chassis, slot, node; the shorter ones are those of blades, chassis and cabinets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placement.machine import Machine
from placement.names import parse_cnames
from placement.support.array_types import Ints
from web.layout.boxes import (
    CELL,
    PITCH,
    AxisText,
    Boxes,
    MachineView,
    Pad,
    distinct_rows,
    empty_cells,
    place_boxes,
    router_middles,
)

MARGIN = 10

_BLADE, _CHASSIS, _CABINET, _GROUP = Pad(0, 1), Pad(0, 2), Pad(13, 3), Pad(13, 4)

#: Nodes of a blade, and the blades that lie above each other in an upright chassis.
_NODES, _FLAT_SLOTS = 4, 8

#: A blade's long side and its short one; between two columns of blades that lie.
_LONG, _SHORT, _SEAM = _NODES * PITCH - (PITCH - CELL) + 2, CELL + 2, 2

#: Missing columns of cabinets that are drawn as empty places; more are left out.
_EMPTY_COLUMNS = 3


def has_cnames(machine: Machine) -> bool:
    """Tell whether most nodes have cnames, which say where they stand."""
    return bool(len(machine) and (parse_cnames(machine.cname)[:, 4] >= 0).mean() > 0.5)


def view(machine: Machine) -> MachineView:
    """Return a machine in its cabinets.

    Examples
    --------
    >>> import nidmap
    >>> found = view(nidmap.load_machine("shaheen2"))
    >>> [(b.level, len(b)) for b in found.levels]
    [('group', 18), ('cabinet', 36), ('chassis', 108), ('blade', 1728)]
    """
    cname_parts = parse_cnames(machine.cname).astype(np.int64)
    known = cname_parts[:, 4] >= 0
    places = cname_parts[known]
    grouped = _grouped_cabinets(machine.coords[known, 0], places)
    if machine.topology.levels[0] != "group":
        grouped = None
    floor = _Floor(machine, places, grouped)
    levels, blade = _level_boxes(floor, places, grouped)
    x, y, box = np.zeros((3, len(machine)), dtype=np.int64)
    (x[known], y[known]), box[known] = floor.corner(places), blade
    cuts = floor.left[1:][np.diff(floor.columns) > 1].tolist()  # where columns are left out
    middle = int(floor.top[0]) + floor.cabinet[1] // 2
    width = int(floor.left[-1]) + floor.cabinet[0] + _GROUP.side + MARGIN
    height = int(floor.top[-1]) + floor.cabinet[1] + _GROUP.side + MARGIN
    if not known.all():
        levels, height = _strip_below(levels, np.flatnonzero(~known), x, y, width, height)
        box[~known] = len(levels[-1]) - 1
    return MachineView(
        id="cabinets", title="Cabinets", width=width, height=height, x=x, y=y, box=box,
        levels=levels, vacant=_vacant_places(floor, places), routers=router_middles(machine, x, y),
        texts=tuple(AxisText(left - 14, middle, "…", 14, "middle") for left in cuts),
    )  # fmt: skip


class _Floor:
    """The machine room: what stands in a cabinet, and where cabinets stand.

    `columns` and `rows` are the numbers of those that are drawn, `left` and
    `top` their places; sizes are width and height.
    """

    def __init__(self, machine: Machine, places: Ints, grouped: Ints | None) -> None:
        self.upright = machine.topology.fabric == "aries" or bool(places[:, 3].max() > 7)
        self.slots = 16 if self.upright else 8
        self.cages = max(3, int(places[:, 2].max()) + 1)
        self.blade = (_LONG, _SHORT) if self.upright else (_SHORT, _LONG)
        inside = (2 * (_LONG + _SEAM) - _SEAM, 8 * _SHORT) if self.upright else (79, _LONG)
        self.chassis = (inside[0] + 2 * _CHASSIS.side, inside[1] + 2 * _CHASSIS.side)
        self.cabinet = (
            self.chassis[0] + 2 * _CABINET.side,
            self.cages * (self.chassis[1] + 2) - 2 + _CABINET.top + 2 * _CABINET.side,
        )
        self.columns, self.rows = (_fill_gaps(np.unique(places[:, k])) for k in (0, 1))
        gap = np.full(len(self.columns), 8 if grouped is None else 12 + 2 * _GROUP.side)
        if grouped is not None:  # no gap where a group reaches into the next column
            same = np.diff(grouped[:, 0]) == 0
            gap[np.searchsorted(self.columns, grouped[1:, 1][same])] = 3
        gap[1:][np.diff(self.columns) > 1] += 14  # columns that are left out
        gap[0] = MARGIN + _GROUP.side
        self.left = np.cumsum(gap) + self.cabinet[0] * np.arange(len(self.columns))
        head, foot = (0, 0) if grouped is None else (_GROUP.top + _GROUP.side, _GROUP.side)
        step = self.cabinet[1] + 10 + head + foot
        self.top = MARGIN + head + step * np.arange(len(self.rows))

    def corner(self, places: Ints) -> tuple[Ints, Ints]:
        """Return the top left corners of cabinets, chassis, blades or nodes."""
        depth = places.shape[1]
        x = self.left[np.searchsorted(self.columns, places[:, 0])]
        y = self.top[np.searchsorted(self.rows, places[:, 1])]
        if depth > 2:  # the first chassis is the lowest
            above = self.cages - 1 - places[:, 2]
            x, y = x + _CABINET.side, y + _CABINET.top + _CABINET.side
            y = y + above * (self.chassis[1] + 2)
        if depth > 3:
            column, row = places[:, 3], np.zeros_like(y)
            if self.upright:
                column, row = column // _FLAT_SLOTS, _FLAT_SLOTS - 1 - column % _FLAT_SLOTS
            step = self.blade[0] + (_SEAM if self.upright else 1)
            x, y = x + _CHASSIS.side + column * step, y + _CHASSIS.side + row * _SHORT
        if depth > 4:  # n0 at the left, or at the bottom
            node = places[:, 4] * PITCH
            right, down = (node, 0) if self.upright else (0, (_NODES - 1) * PITCH - node)
            x, y = x + 1 + right, y + 1 + down
        return x, y


def _grouped_cabinets(group: NDArray[np.integer], places: Ints) -> Ints | None:
    """Return (group, column, row) of every cabinet, sorted.

    None where not each group is whole cabinets beside each other in one row.
    """
    cells = np.unique(np.column_stack([group, places[:, :2]]), axis=0)
    if len(distinct_rows(cells[:, 1:])[0]) != len(cells):
        return None  # a cabinet with two groups
    for cabinets in np.split(cells, np.flatnonzero(np.diff(cells[:, 0])) + 1):
        across, down = cabinets[-1, 1:] - cabinets[0, 1:]
        if np.ptp(cabinets[:, 2]) or down or across > 3 or across != len(cabinets) - 1:
            return None
    return cells


def _fill_gaps(values: Ints) -> Ints:
    """Add what is missing between, where it is little.

    Examples
    --------
    >>> _fill_gaps(np.array([0, 1, 3, 90])).tolist()
    [0, 1, 2, 3, 90]
    """
    span = np.arange(values[0], values[-1] + 1)
    next_one = values[np.searchsorted(values, span)]
    before = values[np.searchsorted(values, span, side="right") - 1]
    kept: Ints = span[(span == before) | (next_one - before <= _EMPTY_COLUMNS + 1)]
    return kept


def _level_boxes(
    floor: _Floor, places: Ints, grouped: Ints | None
) -> tuple[tuple[Boxes, ...], Ints]:
    """Return the boxes of all levels, and the blade of each node."""
    blades, blade_of = distinct_rows(places[:, :4])
    chassis, chassis_of = distinct_rows(blades[:, :3])
    cabinets, cabinet_of = distinct_rows(chassis[:, :2])
    group_of, levels = np.full(len(cabinets), -1), []
    if grouped is not None:
        levels = [_group_boxes(floor, grouped)]
        in_order = grouped[np.lexsort((grouped[:, 2], grouped[:, 1])), 0]
        group_of = np.unique(in_order, return_inverse=True)[1]
    cells = np.stack(np.meshgrid(floor.columns, floor.rows, indexing="ij"), axis=-1).reshape(-1, 2)
    if len(cells) <= 2 * len(cabinets):  # behind those that there are, the empty places
        taken = set(map(tuple, cabinets.tolist()))
        empty = [place for place in cells.tolist() if tuple(place) not in taken]
        cabinets = np.array([*cabinets.tolist(), *empty])
    vacant = np.arange(len(cabinets)) >= len(group_of)
    parent = np.r_[group_of, np.full(int(vacant.sum()), -1)]
    names = [f"c{column}-{row}" for column, row in cabinets.tolist()]
    levels += [
        place_boxes("cabinet", names, floor.corner(cabinets), floor.cabinet, parent, _CABINET,
                    vacant),
        place_boxes("chassis", (f"c{cage}" for cage in chassis[:, 2].tolist()),
                    floor.corner(chassis), floor.chassis, cabinet_of, _CHASSIS),
        place_boxes("blade", (f"s{slot}" for slot in blades[:, 3].tolist()),
                    floor.corner(blades), floor.blade, chassis_of, _BLADE),
    ]  # fmt: skip
    return tuple(levels), blade_of


def _group_boxes(floor: _Floor, grouped: Ints) -> Boxes:
    """Return the boxes around the cabinets of each group."""
    x, y = floor.corner(grouped[:, 1:])
    groups, first, count = np.unique(grouped[:, 0], return_index=True, return_counts=True)
    head, last = _GROUP.top + _GROUP.side, first + count - 1
    wide = x[last] - x[first] + floor.cabinet[0] + 2 * _GROUP.side
    corner = x[first] - _GROUP.side, y[first] - head
    size = wide, floor.cabinet[1] + head + _GROUP.side
    return place_boxes("group", (f"g{n}" for n in groups.tolist()), corner, size, pad=_GROUP)


def _vacant_places(floor: _Floor, places: Ints) -> Ints:
    """Return the corners of the places in the cabinets where no node stands."""
    cabinets, which = distinct_rows(places[:, :2])
    inside = places[:, 4] < _NODES
    shape = len(cabinets), floor.cages, floor.slots, _NODES
    free = empty_cells(shape, (which[inside], *places[inside, 2:5].T))
    return np.column_stack(floor.corner(np.column_stack([cabinets[free[:, 0]], free[:, 1:]])))


def _strip_below(
    levels: tuple[Boxes, ...], rows: Ints, x: Ints, y: Ints, width: int, height: int
) -> tuple[tuple[Boxes, ...], int]:
    """Place nodes without a cname in a strip below; return the levels and the new height."""
    columns = max(1, (width - 2 * MARGIN - 2 * _CABINET.side) // PITCH)
    at = np.arange(len(rows))
    x[rows] = MARGIN + _CABINET.side + at % columns * PITCH
    y[rows] = height + _CABINET.top + _CABINET.side + at // columns * PITCH
    high = _CABINET.top + 2 * _CABINET.side + -(-len(rows) // columns) * PITCH
    wide = max(90, 2 * _CABINET.side + min(columns, len(rows)) * PITCH)
    widened: list[Boxes] = []
    for boxes in levels:
        label = ("without cname",) if boxes.level == "cabinet" else ("",)
        parent = len(widened[-1]) - 1 if widened else -1
        more = place_boxes(boxes.level, label, (MARGIN, height), (wide, high), parent)
        widened.append(boxes.joined(more))
    return tuple(widened), height + high + MARGIN
