"""What a layout is made of: boxes inside boxes, nodes in the innermost ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from placement.machine import Machine
from placement.support.array_types import Ints, Mask
from placement.topologies import router_count

#: Width and height of a node, in units.
CELL = 7

#: From one node to the next.
PITCH = 8

#: How wide over high the page's map is on most screens.
ASPECT = 1.54


class AxisText(NamedTuple):
    """A word that stands beside the boxes, as the name of an axis."""

    x: int
    y: int
    text: str
    size: int = 10
    anchor: str = "start"


class Pad(NamedTuple):
    """Space between a box's edge and what is in it; its label stands in the top."""

    top: int
    side: int


NO_PAD = Pad(0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """The boxes of one level (b of them).

    Attributes
    ----------
    level : str
        ``group``, ``cabinet``, ``chassis``, ``blade``, ``switch``, ``leaf`` …
    x, y, w, h : int (b,)
    label : tuple of str (b,)
    parent : int (b,)
        Index into the level before, -1 where there is none.
    pad : Pad
    vacant : bool (b,)
        True where nothing stands.
    """

    level: str
    x: Ints
    y: Ints
    w: Ints
    h: Ints
    label: tuple[str, ...]
    parent: Ints
    pad: Pad
    vacant: Mask

    def __len__(self) -> int:
        return len(self.x)

    def joined(self, more: Boxes) -> Boxes:
        """Return these boxes and behind them more of the level."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(more, name)])
            for name in ("x", "y", "w", "h", "parent", "vacant")
        }
        return replace(self, label=self.label + more.label, **columns)

    def document(self) -> dict[str, Any]:
        """Return the level as JSON takes it."""
        return {
            "level": self.level,
            **{name: getattr(self, name).tolist() for name in ("x", "y", "w", "h")},
            "label": list(self.label),
            "parent": self.parent.tolist(),
            "vacant": self.vacant.astype(np.int8).tolist(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class MachineView:
    """One way to draw a machine: where each of its n nodes stands.

    Attributes
    ----------
    id, title : str
    width, height : int
    x, y : int (n,)
        Top left corners of the nodes, `CELL` wide and high.
    box : int (n,)
        Index into the innermost level.
    levels : tuple of Boxes
        Outermost first.
    vacant : int (v, 2)
        Top left corners of places where no node stands.
    routers : int (r, 2)
        Where links begin; -1 where a router has no place.
    texts : tuple of AxisText
    spines : Boxes or None
        Switches above the leaves.
    """

    id: str
    title: str
    width: int
    height: int
    x: Ints
    y: Ints
    box: Ints
    levels: tuple[Boxes, ...]
    vacant: Ints
    routers: Ints
    texts: tuple[AxisText, ...] = ()
    spines: Boxes | None = None

    def document(self) -> dict[str, Any]:
        """Return the view as JSON takes it."""
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


def columns_of(count: int, w: float, h: float) -> int:
    """Return in how many columns boxes of one size can be drawn largest.

    Examples
    --------
    >>> columns_of(4, 20, 20), columns_of(10, 20, 20), columns_of(32, 10, 10)
    (2, 4, 7)
    """
    return min(range(1, count + 1), key=lambda c: (max(c * w / ASPECT, -(-count // c) * h), c))


def place_boxes(
    level: str, label: Iterable[str], corner: tuple[ArrayLike, ArrayLike],
    size: tuple[ArrayLike, ArrayLike], parent: ArrayLike = -1, pad: Pad = NO_PAD,
    vacant: ArrayLike = False,
) -> Boxes:  # fmt: skip
    """Return the boxes of one level; one number may stand for all of them."""
    names = tuple(label)
    columns = (np.broadcast_to(v, len(names)).astype(int) for v in (*corner, *size, parent))
    x, y, w, h, parent = columns
    return Boxes(level, x, y, w, h, names, parent, pad, np.broadcast_to(vacant, len(names)))


def empty_cells(shape: Sequence[int], taken: tuple[Ints, ...]) -> Ints:
    """Return the cells of a table that are not taken, (n, d), in its order.

    Examples
    --------
    >>> empty_cells((2, 2), (np.array([0, 1]), np.array([0, 1]))).tolist()
    [[0, 1], [1, 0]]
    """
    empty = np.ones(shape, dtype=bool)
    empty[taken] = False
    return np.argwhere(empty)


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of a table, sorted, and which of them each row is."""
    table, which = np.unique(rows, axis=0, return_inverse=True)
    return table, which.reshape(-1)


def router_middles(machine: Machine, x: Ints, y: Ints) -> Ints:
    """Return the middle of each router's nodes, (r, 2); -1 where it has none."""
    count = router_count(machine)
    first = machine.router[:, 0] if machine.router.shape[1] else np.full(len(machine), -1)
    attached, nodes = first >= 0, np.bincount(first[first >= 0], minlength=count)
    sums = [
        np.bincount(first[attached], weights=v[attached] + CELL / 2, minlength=count)
        for v in (x, y)
    ]
    return np.where(nodes > 0, sums / np.maximum(nodes, 1), -1).T.astype(int)
