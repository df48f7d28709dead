"""A torus in slices: two axes in the plane, the others from tile to tile, each way to cut it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placement.machine import Machine
from web.layout.boxes import (
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

#: Units around the tiles, where the axes are named, and between them.
MARGIN, GAP = 24, 14


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
    ([('slice', 2), ('router', 24)], ['z0', 'z1'])
    >>> found = view(torus, [1, 2, 0])
    >>> found.levels[0].label, [text.text for text in found.texts]
    (['x0', 'x1', 'x2', 'x3'], ['y →', 'z ↓'])
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
              gap=GAP, pad=Pad(14, 4)),
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
        Pad(0, MARGIN),
    )
    right = AxisText(MARGIN, MARGIN - 8, f"{names[0]} →")
    return replace(
        named, texts=(right, *(AxisText(4, MARGIN + 24, f"{name} ↓") for name in names[1:2]))
    )
