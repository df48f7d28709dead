"""A picture before it is written: shapes and words with their colours and places."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.errors import UsageError, printable
from web.layout import CELL, layout
from web.picture.kinds import KINDS, kinds
from web.picture.palette import THEMES, Theme

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from placement.machine import Machine
    from web.layout import Boxes, View
    from web.snapshot import Snapshot

    Ints = NDArray[np.int32]

__all__ = ["Glyphs", "Mark", "Rectangles", "Scene", "Word", "scene"]

MARGIN = 16

#: Labels of boxes smaller than this would overlap.
_LEAST_LABEL = 26

#: Jobs and groups that have a line of the legend of their own.
_MOST_LINES = 12


class Mark(NamedTuple):
    """A named set of rows; `hue` counts the palette's colours."""

    name: str
    rows: NDArray[np.int64]
    hue: int = 0


class Rectangles(NamedTuple):
    """Boxes of one look."""

    x: Ints
    y: Ints
    w: Ints
    h: Ints
    fill: str
    stroke: str
    dashed: bool = False


class Glyphs(NamedTuple):
    """Nodes of one look; shapes are ``square``, ``diamond``, ``cross``, ``ring`` and ``dot``."""

    shape: str
    x: Ints
    y: Ints
    fill: str
    stroke: str


class Word(NamedTuple):
    """A text; the anchor is ``start``, ``middle`` or ``end``."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    anchor: str = "start"
    bold: bool = False


@dataclass(slots=True)
class Scene:
    """A picture of `width` x `height` units, its parts in the order in which they are drawn."""

    width: int
    height: int
    ground: str
    title: str
    sentence: str
    parts: list[Rectangles | Glyphs | Word] = field(default_factory=list)


#: The shape of each kind of node, with the theme's colours for inside and edge.
_LOOKS = {
    "free": ("square", "free", "edge"),
    "busy": ("square", "busy", "busy"),
    "held": ("ring", "held", "held"),
    "down": ("cross", "down", "down"),
    "service": ("diamond", "service", "service"),
}


class _Line(NamedTuple):
    """One line of the legend."""

    shape: str
    fill: str
    stroke: str
    text: str


def scene(
    machine: Machine,
    now: Snapshot,
    marks: Sequence[Mark] = (),
    *,
    view: str = "",
    colour: str = "state",
    theme: str = "light",
    sentence: str = "",
) -> Scene:
    """Return a picture of a machine.

    Parameters
    ----------
    machine : Machine
    now : Snapshot
    marks : sequence of Mark
    view : str
        A view of `web.layout.layout`; '' is the first.
    colour : str
        ``state``, ``job`` or ``group``: what nodes outside the marks are coloured by.
    theme : str
        ``light`` or ``dark``.
    sentence : str
        What stands above it.

    Raises
    ------
    UsageError
        The machine has no such view.
    """
    views = {one.id: one for one in layout(machine)}
    if view and view not in views:
        raise UsageError(f"no view {printable(view)!r}", f"there are {', '.join(views)}")
    chosen = views[view] if view else next(iter(views.values()))
    look = THEMES[theme]
    width = max(chosen.width, 420)
    glyphs, legend = _nodes(machine, now, marks, chosen, colour, look)
    head, top = _head(machine.name, sentence, width, look)
    foot, bottom = _legend(legend, width, top + chosen.height, look)
    made = Scene(width, bottom, look.ground, machine.name, sentence)
    made.parts += head
    right = (width - chosen.width) // 2
    made.parts += [_moved(part, right, top) for part in _boxes(chosen, look)]
    made.parts += [_moved(part, right, top) for part in glyphs]
    made.parts += foot
    return made


def _moved(part: Rectangles | Glyphs | Word, right: int, down: int) -> Rectangles | Glyphs | Word:
    if isinstance(part, Word):
        return part._replace(x=part.x + right, y=part.y + down)
    return part._replace(x=part.x + np.int32(right), y=part.y + np.int32(down))


def _head(
    title: str, sentence: str, width: int, look: Theme
) -> tuple[list[Rectangles | Glyphs | Word], int]:
    """Return the title and the sentence, and where the machine begins."""
    size = 20 if width > 900 else 15
    parts: list[Rectangles | Glyphs | Word] = [
        Word(MARGIN, MARGIN + size, printable(title, 60), size + 4, look.text, bold=True)
    ]
    y = MARGIN + size
    for line in textwrap.wrap(printable(sentence, 600), max(30, int(width / (size * 0.53)))):
        y += round(size * 1.45)
        parts.append(Word(MARGIN, y, line, size, look.text))
    return parts, y + MARGIN


def _boxes(view: View, look: Theme) -> Iterator[Rectangles | Glyphs | Word]:
    """Yield the boxes from the outermost inwards, their labels, and the empty places."""
    for depth, boxes in enumerate(view.levels):
        mine = ~boxes.vacant
        stroke = look.frame if depth == 0 else look.inner
        fill = look.box if depth == 0 else "none"
        yield _some(boxes, mine, fill, stroke)
        if boxes.vacant.any():
            yield _some(boxes, boxes.vacant, "none", look.inner)._replace(dashed=True)
        yield from _labels(boxes, look)
    if view.spines is not None:
        yield _some(view.spines, ~view.spines.vacant, look.box, look.frame)
        yield from _labels(view.spines, look, inside=True)
    if len(view.vacant):
        yield Glyphs("dot", view.vacant[:, 0], view.vacant[:, 1], look.vacant, look.vacant)
    for text in view.texts:
        yield Word(text.x, text.y, text.text, text.size, look.faint, text.anchor)


def _some(boxes: Boxes, mask: NDArray[np.bool_], fill: str, stroke: str) -> Rectangles:
    return Rectangles(boxes.x[mask], boxes.y[mask], boxes.w[mask], boxes.h[mask], fill, stroke)


def _labels(boxes: Boxes, look: Theme, inside: bool = False) -> Iterator[Word]:
    """Yield the labels that have room in their boxes' tops."""
    if boxes.pad.top < 8 and not inside:
        return
    size = min(11, boxes.pad.top - 2) if not inside else 9
    rows = zip(boxes.label, boxes.x.tolist(), boxes.y.tolist(), boxes.w.tolist(), strict=True)
    for label, x, y, w in rows:
        if w >= max(_LEAST_LABEL, 0.6 * size * len(label)):
            down = boxes.pad.top - 2 if not inside else 12
            yield Word(x + 4, y + down, printable(label, 40), size, look.faint)


def _nodes(
    machine: Machine, now: Snapshot, marks: Sequence[Mark], view: View, colour: str, look: Theme
) -> tuple[list[Rectangles | Glyphs | Word], list[_Line]]:
    """Return the nodes, those of one look together, and the legend."""
    codes = kinds(machine, now)
    left = np.ones(len(machine), dtype=bool)
    for mark in marks:
        left[mark.rows] = False
    parts: list[Rectangles | Glyphs | Word] = []
    legend: list[_Line] = []
    coloured = [*_by(machine, now, colour, look)]
    for _, rows, _fill in coloured:
        left[rows[codes[rows] <= 1]] &= False
    for code, (kind, words) in enumerate(KINDS.items()):
        shape, fill, stroke = _LOOKS[kind]
        rows = np.flatnonzero(left & (codes == code))
        _add(parts, legend, view, rows, shape, getattr(look, fill), getattr(look, stroke), words)
    taken = np.zeros(len(machine), dtype=bool)
    for mark in marks:
        taken[mark.rows] = True
    for words, rows, fill in coloured:
        rows = rows[(codes[rows] <= 1) & ~taken[rows]]
        _add(parts, legend, view, rows, "square", fill, fill, words)
    for number, mark in enumerate(marks):
        plain = colour != "state" and not number  # told apart from what is coloured
        fill = look.outline if plain else look.hues[mark.hue % len(look.hues)]
        words = f"marked: {mark.name}" if mark.name else "marked"
        _add(parts, legend, view, mark.rows, "square", fill, look.outline, words)
    if len(view.vacant):
        text = f"{len(view.vacant)} vacant"
        legend.append(_Line("dot", look.faint, look.faint, text))
    return parts, legend


def _add(
    parts: list[Rectangles | Glyphs | Word],
    legend: list[_Line],
    view: View,
    rows: NDArray[np.int64],
    shape: str,
    fill: str,
    stroke: str,
    words: str,
) -> None:
    if len(rows):
        parts.append(Glyphs(shape, view.x[rows], view.y[rows], fill, stroke))
        legend.append(_Line(shape, fill, stroke, f"{len(rows)} {printable(words, 60)}"))


def _by(
    machine: Machine, now: Snapshot, colour: str, look: Theme
) -> Iterator[tuple[str, NDArray[np.int64], str]]:
    """Yield words, rows and a colour for each job or group; nothing for the states."""
    if colour == "job":
        jobs = sorted(now.jobs, key=lambda job: -len(job.rows))
        for number, job in enumerate(jobs[:_MOST_LINES]):
            user = f" {job.user}" if job.user else ""
            words = f"job {job.id} {job.name}{user}".rstrip()
            yield words, job.rows, look.hues[number % len(look.hues)]
    elif colour == "group":
        level = machine.topology.levels[0]
        values = np.unique(machine.coords[:, 0])
        for number, fill in enumerate(look.hues):
            mine = np.isin(machine.coords[:, 0], values[number :: len(look.hues)])
            some = values[number :: len(look.hues)].tolist()
            listed = ", ".join(map(str, some[:6])) + (" …" if len(some) > 6 else "")
            yield f"in {level} {listed}", np.flatnonzero(mine), fill


def _legend(
    lines: Sequence[_Line], width: int, top: int, look: Theme
) -> tuple[list[Rectangles | Glyphs | Word], int]:
    """Return the legend in as many rows as it needs, and where the picture ends."""
    parts: list[Rectangles | Glyphs | Word] = []
    size = 13
    x, y = MARGIN, top + 14
    for line in lines:
        wide = 2 * CELL + 12 + round(size * 0.6 * len(line.text))
        if x > MARGIN and x + wide > width - MARGIN:
            x, y = MARGIN, y + 20
        place = (np.array([x], dtype=np.int32), np.array([y - CELL - 1], dtype=np.int32))
        parts.append(Glyphs(line.shape, *place, line.fill, line.stroke))
        parts.append(Word(x + CELL + 6, y, line.text, size, look.text))
        x += wide
    return parts, y + MARGIN
