# SPDX-License-Identifier: Apache-2.0
"""Cray machines as on the floor: cabinets, chassis, blades, nodes.

Every cabinet has chassis 2 above 1 above 0. On XE its slots are from left to
right and a blade's nodes from n0 at the bottom to n3, as ``xtnodestat`` prints
them. On XC a chassis is two columns of eight blades that lie flat, slots 0-7 at
the left from the bottom up, 8-15 next to them, a blade's nodes from left to
right, as in the cabinet itself: upright, so that a floor fills a screen.
Columns of cabinets run to the right, rows down; the cabinets of one group
(two on XC) stand closer together than others.

A place is a row of numbers as a cname has them: column and row of the cabinet,
chassis, slot, node.
"""

from __future__ import annotations

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.names import parse_cnames
from nidmap.placement.support.array_types import Ints, Mask
from nidmap.web.layout.boxes import (
    CELL,
    PITCH,
    Boxes,
    MachineView,
    Pad,
    distinct_rows,
    in_line,
    make_view,
)

MARGIN = 10

_CABINET = Pad(13, 3)

#: Nodes of a blade, and the blades that lie above each other in an upright chassis.
_NODES, _FLAT_SLOTS = 4, 8

#: Most cabinets of a group, and of missing columns that are drawn as empty places.
_MOST_COLUMNS, _EMPTY_COLUMNS = 4, 3


def has_cnames(machine: Machine) -> bool:
    """Tell whether most nodes have cnames, which determine their positions."""
    return bool(len(machine) and (parse_cnames(machine.cname)[:, 4] >= 0).mean() > 0.5)


def view(machine: Machine) -> MachineView:
    """Return a machine in its cabinets."""
    places = parse_cnames(machine.cname).astype(np.int64)
    known = places[:, 4] >= 0
    upright = machine.topology.fabric == "aries" or bool(places[:, 3].max() >= _FLAT_SLOTS)
    most = np.maximum(places.max(axis=0) + 1, (0, 0, 3, 16 if upright else 8, _NODES))
    cages, slots, nodes = most[2:].tolist()
    _place_unknown(places, ~known, (cages, slots, nodes))
    blades, blade_of = distinct_rows(places[:, :4])
    chassis, chassis_of = distinct_rows(blades[:, :3])
    cabinets, cabinet_of = distinct_rows(chassis[:, :2])
    cabinet_of_node = cabinet_of[chassis_of[blade_of]]
    groups = _whole_groups(machine, cabinets, cabinet_of_node, known)
    levels = _free_cabinets(cabinets) if groups is None else _grouped_cabinets(cabinets, groups)
    with_cnames = np.zeros(len(levels[-1]), dtype=bool)
    with_cnames[cabinet_of_node[known]] = True
    for row in cabinet_of_node[~known].tolist():
        levels[-1].label[row] = "without cname"
    slot, cage = blades[:, 3], chassis[:, 2]
    grid = (_FLAT_SLOTS, -(-slots // _FLAT_SLOTS)) if upright else (1, slots)
    column, above = np.divmod(slot, _FLAT_SLOTS) if upright else (slot, np.zeros_like(slot))
    levels += [
        in_line("chassis", [f"c{number}" for number in cage.tolist()], cabinet_of, cage, cages,
                upwards=True, gap=2, pad=Pad(0, 2)),
        Boxes("blade", [f"s{number}" for number in slot.tolist()], chassis_of,
              gap=0 if upright else 1, pad=Pad(-1 if upright else 0, 1),
              row=grid[0] - 1 - above, column=column, grid=grid),
        in_line("node", [""] * len(places), blade_of, places[:, 4], nodes, upwards=not upright,
                gap=PITCH - CELL),
    ]  # fmt: skip
    return make_view("cabinets", "Cabinets", machine, levels, Pad(0, MARGIN), around=with_cnames)


def _place_unknown(places: Ints, unknown: Mask, cabinet: tuple[int, ...]) -> None:
    """Place nodes without a cname in extra cabinets, in a row below the others."""
    number = np.arange(int(unknown.sum()))
    column, *inside = np.unravel_index(number, (len(number) + 1, *cabinet))
    below = np.full(len(number), places[:, 1].max() + 1)
    places[unknown] = np.column_stack([column, below, *inside])


def _whole_groups(machine: Machine, cabinets: Ints, cabinet_of: Ints, known: Mask) -> Ints | None:
    """Return each cabinet's group; None if groups are not complete adjacent cabinets."""
    group_of = np.where(known, machine.coords[:, 0], np.iinfo(np.int32).max)
    group = np.zeros(len(cabinets), dtype=np.int64)
    group[cabinet_of] = group_of
    if machine.topology.levels[0] != "group" or (group[cabinet_of] != group_of).any():
        return None
    for number in np.unique(group).tolist():
        column, row = cabinets[group == number].T
        if np.ptp(row) or np.ptp(column) != len(column) - 1 or len(column) > _MOST_COLUMNS:
            return None
    return group


def _grouped_cabinets(cabinets: Ints, group: Ints) -> list[Boxes]:
    """Return the groups on the floor, then the empty places, and the cabinets in them."""
    numbers, first, of, wide = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    corners = cabinets[first]
    inside = cabinets[:, 0] - corners[of, 0]
    width = int(wide.max())
    if np.ptp(corners[:, 0] % width):  # groups do not begin at every this many columns
        columns = np.unique(corners[:, 0])
    else:
        columns = _fill_gaps(corners[:, 0] // width) * width + corners[0, 0] % width
    rows = _fill_gaps(corners[:, 1])
    empty = _empty_cells(corners, columns, rows)
    labels = [f"g{number}" if number < np.iinfo(np.int32).max else "" for number in numbers]
    names = [f"c{column}-{row}" for column, row in cabinets.tolist()]
    labels += [f"c{column}-{row}" for column, row in empty]
    corners = np.array([*corners.tolist(), *empty])
    return [
        Boxes("group", labels, np.zeros(len(corners), dtype=np.int64), gap=12, pad=Pad(13, 4),
              row=np.searchsorted(rows, corners[:, 1]),
              column=np.searchsorted(columns, corners[:, 0]),
              vacant=np.arange(len(corners)) >= len(numbers)),
        Boxes("cabinet", names, of, gap=3, pad=_CABINET, row=0 * inside, column=inside),
    ]  # fmt: skip


def _free_cabinets(cabinets: Ints) -> list[Boxes]:
    """Return the cabinets on the floor, followed by the empty places."""
    columns, rows = (_fill_gaps(numbers) for numbers in cabinets.T)
    count = len(cabinets)
    cabinets = np.array([*cabinets.tolist(), *_empty_cells(cabinets, columns, rows)])
    names = [f"c{column}-{row}" for column, row in cabinets.tolist()]
    return [
        Boxes("cabinet", names, np.zeros(len(cabinets), dtype=np.int64), gap=8, pad=_CABINET,
              row=np.searchsorted(rows, cabinets[:, 1]),
              column=np.searchsorted(columns, cabinets[:, 0]),
              vacant=np.arange(len(cabinets)) >= count),
    ]  # fmt: skip


def _empty_cells(taken: Ints, columns: Ints, rows: Ints) -> list[list[int]]:
    """Return the columns and rows without any node, unless these are the majority."""
    if len(columns) * len(rows) > 2 * len(taken):
        return []
    cells = np.stack(np.meshgrid(columns, rows, indexing="ij"), axis=-1).reshape(-1, 2)
    known = set(map(tuple, taken.tolist()))
    return [cell for cell in cells.tolist() if tuple(cell) not in known]


def _fill_gaps(numbers: Ints) -> Ints:
    """Return the sorted distinct numbers with small gaps filled."""
    values = np.unique(numbers)
    span = np.arange(values[0], values[-1] + 1)
    after = values[np.searchsorted(values, span)]
    before = values[np.searchsorted(values, span, side="right") - 1]
    kept: Ints = span[(span == before) | (after - before <= _EMPTY_COLUMNS + 1)]
    return kept
