"""What a layout is made of: boxes inside boxes, nodes in the innermost ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]

__all__ = ["CELL", "PITCH", "Boxes", "Pad", "Text", "View"]

#: Width and height of a node, in units.
CELL = 7

#: From one node to the next.
PITCH = 8


class Text(NamedTuple):
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


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """The boxes of one level (b of them).

    Attributes
    ----------
    level : str
        ``group``, ``cabinet``, ``chassis``, ``blade``, ``switch``, ``leaf`` …
    x, y, w, h : int32 (b,)
    label : tuple of str (b,)
    parent : int32 (b,)
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
    vacant: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.x)

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
class View:
    """One way to draw a machine: where each of its n nodes stands.

    Attributes
    ----------
    id, title : str
    width, height : int
    x, y : int32 (n,)
        Top left corners of the nodes, `CELL` wide and high.
    box : int32 (n,)
        Index into the innermost level.
    levels : tuple of Boxes
        Outermost first.
    vacant : int32 (v, 2)
        Top left corners of places where no node stands.
    routers : int32 (r, 2)
        Where links begin; -1 where a router has no place.
    texts : tuple of Text
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
    texts: tuple[Text, ...] = field(default=())
    spines: Boxes | None = None

    def document(self) -> dict[str, Any]:
        """Return the view as JSON takes it."""
        return {
            "id": self.id,
            "title": self.title,
            "width": self.width,
            "height": self.height,
            "node": {
                "w": CELL,
                "h": CELL,
                "x": self.x.tolist(),
                "y": self.y.tolist(),
                "box": self.box.tolist(),
            },
            "vacant": {"x": self.vacant[:, 0].tolist(), "y": self.vacant[:, 1].tolist()},
            "levels": [boxes.document() for boxes in self.levels],
            "pad": {boxes.level: list(boxes.pad) for boxes in self.levels},
            "routers": {"x": self.routers[:, 0].tolist(), "y": self.routers[:, 1].tolist()},
            "spines": None if self.spines is None else self.spines.document(),
            "texts": [text._asdict() for text in self.texts],
        }
