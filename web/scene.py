"""A picture before it is written: shapes and words with their colours and places."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from placement.errors import UsageError, printable
from placement.machine import Machine
from web.layout import CELL, Boxes, MachineView, layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from placement.support.array_types import Ints, Mask
    from web.requests import Export
    from web.snapshot import Snapshot


__all__ = [
    "KINDS", "THEMES", "Glyphs", "Mark", "Rectangles", "Scene", "Word", "draw_scene", "kinds",
]  # fmt: skip

MARGIN = 16

#: Labels of boxes smaller than this would overlap.
_LEAST_LABEL = 26

#: Jobs that have a line of the legend of their own.
_MOST_LINES = 12


class Theme(NamedTuple):
    """Colours of a picture's ground, of what is not a job's, and of marks, jobs and groups.

    The hues of marks, jobs and groups can be told apart with any colour vision:
    by CIEDE2000 they are at least 12 apart also as people without one kind of
    cones see them (tests/web/test_colours.py simulates that after Machado,
    Oliveira and Fernandes, IEEE TVCG 15, 2009). What a node's state is can be
    seen by its shape as well.
    """

    ground: str
    text: str
    faint: str
    frame: str
    inner: str
    box: str
    free: str
    edge: str
    busy: str
    held: str
    down: str
    service: str
    vacant: str
    outline: str
    hues: tuple[str, ...]


#: The page's colours: the same as in ``static/theme.js``.
THEMES = {
    "light": Theme(
        ground="#fbfcfd", text="#16202a", faint="#52606d", frame="#d3d9df", inner="#d3d9df",
        box="#eef1f4", free="#c9d5dd", edge="#6087a3", busy="#3c5568", held="#a86905",
        down="#a0231d", service="#8a7a5a", vacant="#c3cad2", outline="#16202a",
        hues=(
            "#3280fc", "#cf075c", "#00654d", "#858a00", "#5b43b5", "#a26e9b", "#860309", "#73065a",
        ),
    ),
    "dark": Theme(
        ground="#161c22", text="#e8edf2", faint="#a3b1bd", frame="#36424d", inner="#36424d",
        box="#1e262e", free="#344552", edge="#6b93b0", busy="#a9c3d6", held="#e0a545",
        down="#da655b", service="#c7b893", vacant="#4a5763", outline="#e8edf2",
        hues=(
            "#3f7bf5", "#ef93a1", "#3fe6d2", "#aca907", "#acb6ff", "#a6678d", "#d9ee97", "#6f8049",
        ),
    ),
}  # fmt: skip


class Mark(NamedTuple):
    """A named set of rows; `hue` counts the palette's colours."""

    name: str
    rows: Ints
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

    x: int
    y: int
    text: str
    size: int
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
    parts: Sequence[Rectangles | Glyphs | Word] = ()


class Kind(NamedTuple):
    """What a node is to a viewer: the legend's words, a shape, the theme's colours."""

    words: str
    shape: str
    fill: str
    stroke: str


#: The kinds of nodes in the order of their codes; the page counts and draws the same ones.
KINDS = {
    "free": Kind("free", "square", "free", "edge"),
    "busy": Kind("allocated", "square", "busy", "busy"),
    "held": Kind("not usable", "ring", "held", "held"),
    "down": Kind("down", "cross", "down", "down"),
    "service": Kind("service", "diamond", "service", "service"),
}  # fmt: skip
_FREE, _BUSY, _HELD, _DOWN, _SERVICE = range(5)


def kinds(machine: Machine, now: Snapshot) -> NDArray[np.int8]:
    """Return the code of each node's kind, int8 (n,), an index into `KINDS`.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from web.snapshot import of_dump
    >>> machine = parse_spec("torus:2x2")
    >>> kinds(machine, of_dump(machine)).tolist()
    [0, 0, 0, 0]
    """
    return now.kinds(machine)


def draw_scene(
    machine: Machine, now: Snapshot, marks: Sequence[Mark], wanted: Export, sentence: str = ""
) -> Scene:
    """Return a picture of a machine.

    Parameters
    ----------
    machine : Machine
    now : Snapshot
    marks : sequence of Mark
    wanted : Export
        Of which ``view`` counts (of `web.layout.layout`; '' is the first),
        ``colour`` (what nodes outside the marks are coloured by: ``state``,
        ``job`` or ``group``) and ``theme``.
    sentence : str
        What stands above it.

    Raises
    ------
    UsageError
        The machine has no such view.
    """
    views = {drawing.id: drawing for drawing in layout(machine)}
    if wanted.view and wanted.view not in views:
        what = f"no view {printable(wanted.view)!r}"
        raise UsageError(what, f"there are {', '.join(views)}")
    view, look = views[wanted.view or next(iter(views))], THEMES[wanted.theme]
    width = max(view.width, 420)
    nodes = list(_nodes(machine, now, marks, view, wanted.colour, look))
    head, top = _head(machine.name, sentence, width, look)
    foot, bottom = _legend(nodes, len(view.vacant), width, top + view.height, look)
    right = (width - view.width) // 2
    inside: tuple[Any, ...] = (*_boxes(view, look), *(glyphs for _, glyphs in nodes))
    moved = (part._replace(x=part.x + right, y=part.y + top) for part in inside)
    return Scene(width, bottom, look.ground, machine.name, sentence, (*head, *moved, *foot))


def _head(title: str, sentence: str, width: int, look: Theme) -> tuple[list[Word], int]:
    """Return the title and the sentence, and where the machine begins."""
    size = 20 if width > 900 else 15
    y = MARGIN + size
    words = [Word(MARGIN, y, printable(title, 60), size + 4, look.text, bold=True)]
    for line in textwrap.wrap(printable(sentence, 600), max(30, int(width / (size * 0.53)))):
        y += round(size * 1.45)
        words.append(Word(MARGIN, y, line, size, look.text))
    return words, y + MARGIN


def _boxes(view: MachineView, look: Theme) -> Iterator[Rectangles | Glyphs | Word]:
    """Yield the boxes from the outermost inwards, their labels, and the empty places."""
    for depth, boxes in enumerate(view.levels):
        stroke, fill = (look.inner, "none") if depth else (look.frame, look.box)
        yield _some(boxes, ~boxes.vacant, fill, stroke)
        if boxes.vacant.any():
            yield _some(boxes, boxes.vacant, "none", look.inner)._replace(dashed=True)
        if boxes.pad.top >= 8:
            size = min(11, boxes.pad.top - 2)
            yield from _labels(boxes, boxes.pad.top - 2, size, look)
    if view.spines is not None:
        yield _some(view.spines, ~view.spines.vacant, look.box, look.frame)
        yield from _labels(view.spines, 12, 9, look)
    if len(view.vacant):
        yield Glyphs("dot", view.vacant[:, 0], view.vacant[:, 1], look.vacant, look.vacant)
    for text in view.texts:
        yield Word(text.x, text.y, text.text, text.size, look.faint, text.anchor)


def _some(boxes: Boxes, mask: Mask, fill: str, stroke: str) -> Rectangles:
    return Rectangles(boxes.x[mask], boxes.y[mask], boxes.w[mask], boxes.h[mask], fill, stroke)


def _labels(boxes: Boxes, down: int, size: int, look: Theme) -> Iterator[Word]:
    """Yield the labels that have room in their boxes."""
    rows = zip(boxes.label, boxes.x.tolist(), boxes.y.tolist(), boxes.w.tolist(), strict=True)
    for label, x, y, w in rows:
        if w >= max(_LEAST_LABEL, 0.6 * size * len(label)):
            yield Word(x + 4, y + down, printable(label, 40), size, look.faint)


def _nodes(
    machine: Machine,
    now: Snapshot,
    marks: Sequence[Mark],
    view: MachineView,
    colour: str,
    look: Theme,
) -> Iterator[tuple[str, Glyphs]]:
    """Yield the nodes of each look with their line of the legend: by kind, coloured, marked."""
    codes, marked = kinds(machine, now), np.zeros(len(machine), dtype=bool)
    for mark in marks:
        marked[mark.rows] = True
    looks, plain = [], ~marked
    for words, rows, fill in _colour_rows(machine, now, colour, look):
        drawn = rows[(codes[rows] <= _BUSY) & ~marked[rows]]
        plain[drawn] = False
        looks.append((words, drawn, "square", fill, fill))
    for number, mark in enumerate(marks):
        first = colour != "state" and not number  # told apart from what is coloured
        fill = look.outline if first else look.hues[mark.hue % len(look.hues)]
        words = f"marked: {mark.name}" if mark.name else "marked"
        looks.append((words, mark.rows, "square", fill, look.outline))
    for code, kind in reversed([*enumerate(KINDS.values())]):
        drawn = np.flatnonzero(plain & (codes == code))
        inside, edge = getattr(look, kind.fill), getattr(look, kind.stroke)
        looks.insert(0, (kind.words, drawn, kind.shape, inside, edge))
    for words, drawn, shape, fill, stroke in looks:
        if len(drawn):
            text = f"{len(drawn)} {printable(words, 60)}"
            yield text, Glyphs(shape, view.x[drawn], view.y[drawn], fill, stroke)


def _colour_rows(
    machine: Machine, now: Snapshot, colour: str, look: Theme
) -> Iterator[tuple[str, Ints, str]]:
    """Yield words, rows and a colour for each job or group; nothing for the states."""
    if colour == "job":
        jobs = sorted(now.jobs, key=lambda job: -len(job.rows))
        for number, job in enumerate(jobs[:_MOST_LINES]):
            words = f"job {job.id} {job.name} {job.user}".rstrip()
            yield words, job.rows, look.hues[number % len(look.hues)]
    elif colour == "group":
        level, values = machine.topology.levels[0], np.unique(machine.coords[:, 0])
        for number, fill in enumerate(look.hues):
            units = values[number :: len(look.hues)]
            listed = ", ".join(map(str, units[:6])) + (" …" if len(units) > 6 else "")
            yield f"in {level} {listed}", np.flatnonzero(np.isin(machine.coords[:, 0], units)), fill


def _legend(
    nodes: Sequence[tuple[str, Glyphs]], vacant: int, width: int, top: int, look: Theme
) -> tuple[list[Glyphs | Word], int]:
    """Return the legend in as many rows as it needs, and where the picture ends."""
    parts: list[Glyphs | Word] = []
    nowhere = np.zeros(1, dtype=np.int64)
    dot = (f"{vacant} vacant", Glyphs("dot", nowhere, nowhere, look.faint, look.faint))
    size, x, y = 13, MARGIN, top + 14
    for text, glyphs in (*nodes, dot) if vacant else nodes:
        wide = 2 * CELL + 12 + round(size * 0.6 * len(text))
        if x > MARGIN and x + wide > width - MARGIN:
            x, y = MARGIN, y + 20
        parts.append(glyphs._replace(x=np.array([x]), y=np.array([y - CELL - 1])))
        parts.append(Word(x + CELL + 6, y, text, size, look.text))
        x += wide
    return parts, y + MARGIN
