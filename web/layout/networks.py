# SPDX-License-Identifier: Apache-2.0
"""Boxes of the network: groups of switches, leaf modules, trees of any depth, torus slices.

Boxes are as it looks best; on an XC each has its place, as in a cabinet.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.arrays import rank_within
from nidmap.placement.topologies import router_coords, router_count, router_names
from nidmap.web.layout.boxes import (
    ASPECT,
    CELL,
    PITCH,
    AxisText,
    Boxes,
    MachineView,
    Pad,
    distinct_rows,
    in_line,
    make_view,
)

MARGIN = 8

#: Units around a torus' slices, where the axes are named, and between them.
SLICE_MARGIN, SLICE_GAP = 24, 14

_LETTERS = {"group": "g", "chassis": "c", "blade": "s"}

_TITLES = {"leaf": "Leaf modules", "group": "Groups", "node": "Nodes"}

#: Levels of an XC and whether they are in a column from below, as in a cabinet, or in a row.
_UPWARDS = {"node": True, "blade": False, "chassis": True}

#: Between two of a level.
_GAPS = {"node": PITCH - CELL, "blade": 1, "chassis": 2}

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


def switches(machine: Machine) -> MachineView:
    """Return a machine in boxes of its network's own levels."""
    levels = _network_levels(machine)
    upper = _has_upper_switches(machine)
    inside = machine.topology.kind == "dragonfly+"  # its spines are in their groups
    strip = _STRIP if upper and not inside else 0
    outermost = levels[0].level
    title = _TITLES.get(outermost, outermost.capitalize())
    drawn = make_view("switches", title, machine, levels, Pad(0, MARGIN), top=strip)
    if not upper:
        return drawn
    if len(levels) > 1:
        _hang_links(machine, levels[-2], drawn, low=inside)
    return replace(drawn, spines=_place_spines(machine, drawn, levels[0] if inside else None))


def _has_upper_switches(machine: Machine) -> bool:
    """Tell whether there are switches above those with nodes."""
    return machine.topology.kind in ("dragonfly+", "fattree", "tree")


def _network_levels(machine: Machine) -> list[Boxes]:
    """Return the levels inwards, nodes last, including a fat tree's leaves without nodes."""
    topology, coords = machine.topology, machine.coords.astype(np.int64)
    bare = _bare_leaves(machine)
    stands = np.concatenate([coords[:, :-1], router_coords(machine)[bare, : coords.shape[1] - 1]])
    router = np.concatenate([machine.router[:, :1].sum(axis=1), bare])
    owner, levels = np.zeros(len(stands), dtype=np.int64), []
    for depth, name in enumerate(topology.levels[:-1]):
        places, box_of = distinct_rows(stands[:, : depth + 1])
        parent, first = np.zeros((2, len(places)), dtype=np.int64)
        parent[box_of], first[box_of] = owner, router
        labels = [f"{_LETTERS.get(name, f'{name} ')}{number}" for number in places[:, -1].tolist()]
        if depth == topology.router_levels - 1 and name not in _LETTERS and (first >= 0).all():
            labels = router_names(machine)[first].tolist()
        levels.append(_boxes_of(machine, depth, labels, parent, places[:, -1], len(owner)))
        owner = box_of
    nodes = [""] * len(machine)
    count = len(levels[-1]) if levels else 1
    parent = owner[: len(machine)]
    return [*levels, _boxes_of(machine, len(levels), nodes, parent, coords[:, -1], count)]


def _boxes_of(
    machine: Machine, depth: int, labels: list[str], parent: Ints, place: Ints, around: int
) -> Boxes:
    """Return the boxes of one level, given the number of outer boxes."""
    levels, upper = machine.topology.levels, _has_upper_switches(machine)
    name, innermost = levels[depth], depth == len(levels) - 1
    gap = _GAPS.get(name, 4 if depth else MARGIN)
    pad = Pad(10, 2) if depth else Pad(14, 4)
    if name in _UPWARDS and machine.topology.kind == "dragonfly" and len(levels) == 4:
        extent = int(machine.topology.extents[depth])
        return in_line(name, labels, parent, place, extent, upwards=_UPWARDS[name], gap=gap,
                       pad=Pad(0, 1 if name == "blade" else 2))  # fmt: skip
    if depth == 0:  # a tree's leaves hang below their switches
        aspect = 2.2 if upper else ASPECT
    elif not innermost:
        aspect = 1.6
    elif depth > 1:
        aspect = 0.8
    else:
        aspect = 0.55 if upper and around <= _ONE_ROW else 1.4
    named = depth == 0 and not innermost and len(labels) <= _FEW
    return Boxes(
        name, labels, parent, aspect=aspect, gap=gap, pad=pad,
        least=int(_CHARACTER * max(map(len, labels), default=0)) + 8 if named else 0,
        foot=_SPINE_ROW if name == "group" and machine.topology.kind == "dragonfly+" else 0,
    )  # fmt: skip


def _bare_switches(machine: Machine) -> tuple[Ints, Ints]:
    """Return the switches without nodes: leaves, by their coordinates, and those above."""
    bare = np.ones(router_count(machine), dtype=bool)
    bare[machine.router[machine.router >= 0]] = False
    leaf = (router_coords(machine) >= 0).all(axis=1) & (machine.topology.router_levels > 0)
    return np.flatnonzero(bare & leaf), np.flatnonzero(bare & ~leaf)


def _bare_leaves(machine: Machine) -> Ints:
    """Return the leaves of a fat tree without nodes, which are drawn like the others."""
    plain = machine.topology.kind == "fattree" and machine.topology.router_levels == 1
    return _bare_switches(machine)[0] if plain else np.empty(0, dtype=np.int64)


def _hang_links(machine: Machine, leaves: Boxes, drawn: MachineView, low: bool) -> None:
    """Start the links of a leaf at its box's edge facing the spines, so that they hide no node."""
    attached = np.flatnonzero((machine.router[:, :1] >= 0).any(axis=1))
    bare = _bare_leaves(machine)
    names = {name: box for box, name in enumerate(leaves.label)} if len(bare) else {}
    box = np.array([names[name] for name in router_names(machine)[bare].tolist()], dtype=np.int64)
    router = np.concatenate([machine.router[attached, :1].sum(axis=1), bare])
    at = np.concatenate([drawn.box[attached], box])
    edge = leaves.y[at] + leaves.h[at] if low else leaves.y[at]
    drawn.routers[router] = np.column_stack([leaves.x[at] + leaves.w[at] // 2, edge])


def _place_spines(machine: Machine, drawn: MachineView, groups: Boxes | None) -> Boxes | None:
    """Place the switches above the leaves in a strip at the top, or below their groups.

    Their links begin at the edge towards the leaves.
    """
    rows = _bare_switches(machine)[1][:_MOST_SPINES]
    if not len(rows):
        return None
    if groups is not None:
        return _spines_of_groups(machine, drawn.routers, rows, groups)
    pitch = max(4, min(90, (drawn.width - 8) // len(rows)))
    x = max(4, (drawn.width - pitch * len(rows)) // 2) + pitch * np.arange(len(rows))
    w = max(2, pitch - 4)
    drawn.routers[rows] = np.column_stack([x + w // 2, np.full(len(rows), 20)])  # the lower edge
    return _switch_boxes(machine, rows, x, np.full(len(rows), 4), np.full(len(rows), w), 16)


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
    return _switch_boxes(machine, rows, x, y, w, _SPINE_ROW - 4)


def _switch_boxes(machine: Machine, rows: Ints, x: Ints, y: Ints, w: Ints, h: int) -> Boxes:
    names = router_names(machine)[rows].tolist()
    height, parent = np.full(len(rows), h), np.full(len(rows), -1)
    return Boxes("switch", names, parent, x=x, y=y, w=w, h=height)


def slices(machine: Machine) -> list[MachineView]:
    """Return the slices across each axis, the default (across the last axis) first."""
    axes = list(range(len(machine.topology.levels) - 1))
    if len(axes) != 3:
        return [_slice_view(machine, axes)]
    return [
        _slice_view(machine, [*(a for a in axes if a != across), across]) for across in axes[::-1]
    ]


def _slice_view(machine: Machine, axes: list[int]) -> MachineView:
    """Return a torus as tiles, one per slice, with one axis to the right and one down.

    `axes`: the axis to the right, the one down, and those that change from tile to tile.
    """
    names = [machine.topology.levels[axis] for axis in axes]
    extents = [*(machine.topology.extents[axis] for axis in axes), 1]
    nodes = int(machine.topology.extents[-1])
    coords = machine.coords.astype(np.int64)
    routers, router_of = distinct_rows(coords[:, :-1])
    slices, slice_of = distinct_rows(routers[:, axes[2:]])
    down = routers[:, axes[1]] if len(axes) > 1 else np.zeros(len(routers), dtype=np.int64)
    labels = [" ".join(f"{n}{v}" for n, v in zip(names[2:], at, strict=True)) for at in slices]
    whole = np.zeros(len(slices), dtype=np.int64)
    levels = [
        Boxes("slice", [label or "the torus" for label in labels], whole, aspect=ASPECT,
              gap=SLICE_GAP, pad=Pad(14, 4)),
        Boxes("router", [",".join(map(str, place)) for place in routers.tolist()], slice_of, gap=1,
              pad=Pad(0, 1), row=down, column=routers[:, axes[0]], grid=(extents[1], extents[0])),
        in_line("node", [""] * len(coords), router_of, coords[:, -1], nodes, upwards=False,
                gap=PITCH - CELL),
    ]  # fmt: skip
    usual = axes == sorted(axes)
    named = make_view(
        "slices" if usual else f"slices-{names[2]}",
        f"{' '.join(names[2:])} slices" if len(axes) > 2 else "The torus",
        machine,
        levels,
        Pad(0, SLICE_MARGIN),
    )
    right = AxisText(SLICE_MARGIN, SLICE_MARGIN - 8, f"{names[0]} →")
    return replace(
        named, texts=(right, *(AxisText(4, SLICE_MARGIN + 24, f"{name} ↓") for name in names[1:2]))
    )
