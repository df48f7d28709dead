"""Where the routers stand: in the middle of their nodes, or in a strip above all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.topologies import router_count, router_names
from web.layout.boxes import CELL, Boxes, Pad

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine

    Ints = NDArray[np.int32]

__all__ = ["STRIP", "middles", "spines", "with_spines"]

#: Height of the strip in which switches without nodes stand.
STRIP = 34

#: Most of them that are drawn.
_MOST = 2048


def middles(machine: Machine, x: Ints, y: Ints) -> Ints:
    """Return the middle of each router's nodes, int32 (r, 2); -1 where it has none."""
    count = router_count(machine)
    first = machine.router[:, 0] if machine.router.shape[1] else np.full(len(machine), -1)
    mine = first >= 0
    number = np.bincount(first[mine], minlength=count)
    out = np.full((count, 2), -1, dtype=np.int32)
    for axis, values in enumerate((x, y)):
        total = np.bincount(first[mine], weights=values[mine] + CELL / 2, minlength=count)
        out[:, axis] = np.where(number > 0, total / np.maximum(number, 1), -1)
    return out


def spines(machine: Machine) -> NDArray[np.int64]:
    """Return the routers of a tree that no node hangs on."""
    if machine.topology.kind not in ("fattree", "tree"):
        return np.empty(0, dtype=np.int64)
    held = np.zeros(router_count(machine), dtype=bool)
    held[machine.router[machine.router >= 0]] = True
    return np.flatnonzero(~held)[:_MOST]


def with_spines(machine: Machine, anchors: Ints, width: int) -> Boxes | None:
    """Place the switches without nodes in a strip at the top; their anchors are set."""
    rows = spines(machine)
    if not len(rows):
        return None
    pitch = max(4, min(90, (width - 8) // len(rows)))
    left = max(4, (width - pitch * len(rows)) // 2)
    x = (left + pitch * np.arange(len(rows))).astype(np.int32)
    w = np.full(len(rows), max(2, pitch - 4), dtype=np.int32)
    anchors[rows, 0], anchors[rows, 1] = x + w // 2, 20  # the lower edge: the name stays in sight
    return Boxes(
        level="switch",
        x=x,
        y=np.full(len(rows), 4, dtype=np.int32),
        w=w,
        h=np.full(len(rows), 16, dtype=np.int32),
        label=tuple(router_names(machine)[rows].tolist()),
        parent=np.full(len(rows), -1, dtype=np.int32),
        pad=Pad(0, 0),
        vacant=np.zeros(len(rows), dtype=bool),
    )
