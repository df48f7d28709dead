"""What is saved of a machine: a picture (SVG, PNG), or the whole page in one file."""

from __future__ import annotations

import io
import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from placement.errors import UsageError, printable
from placement.lookup import nodes_of, rows_of
from web import requests
from web.layout import CELL
from web.requests import Describe, Export
from web.scene import KINDS, Glyphs, Mark, Rectangles, Scene, Word, draw_scene, kinds

if TYPE_CHECKING:
    from placement.machine import Machine
    from web.snapshot import Snapshot

__all__ = ["export", "file_name", "png", "svg"]

#: Ways to colour for which a page asks a server.
_ASKED = ("rank", "hops")

_KINDS = {"svg": "image/svg+xml", "png": "image/png", "html": "text/html; charset=utf-8"}


def file_name(machine: Machine, form: str) -> tuple[str, str]:
    """Return the name of a file that is taken away, and its media type.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> file_name(parse_spec("torus:2x2"), "svg")
    ('torus-2x2.svg', 'image/svg+xml')
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", machine.name)[:60] or "machine"
    return f"{name}.{form}", _KINDS[form]


def export(machine: Machine, now: Snapshot, wanted: Export) -> tuple[bytes, str]:
    """Return a file's content and the sentence that stands in it.

    Parameters
    ----------
    machine : Machine
    now : Snapshot
    wanted : Export
        What is marked and how it is shown; pattern, ranks and order are for the sentence.
    """
    marks, description = _marks(machine, wanted), None
    coloured = wanted.colour in _ASKED
    if coloured and not marks and not wanted.focus:
        raise UsageError(f"colours by {wanted.colour} need marked nodes", "--nodes LIST")
    if coloured and wanted.format != "html":
        raise UsageError(f"colours by {wanted.colour} need an .html page", "-o FILE.html")
    if marks:
        from web.figures import describe

        text = nodes_of(machine, marks[0].rows).fold()
        job = Describe(
            text, wanted.ppn, wanted.pattern, wanted.bytes, order=wanted.order,
            slots=wanted.slots, links=300,
        )  # fmt: skip
        description = describe(machine, now.offer(machine), job)
        down = int((kinds(machine, now)[marks[0].rows] == list(KINDS).index("down")).sum())
        description["sentence"] += (
            f"; {down} of them {'is' if down == 1 else 'are'} down" if down else ""
        )
        sentence = description["sentence"]
    else:
        free, compute = int(now.free(machine).sum()), int(machine.compute.sum())
        holding = f", {len(now.jobs)} jobs" if now.jobs else ""
        sentence = f"{compute} compute nodes, {free} of them free{holding}"
    if wanted.format == "html":
        more = {
            "describe": description,
            "hash": wanted.state,
            **_colours_of(machine, now, marks, wanted),
        }
        return _page(machine, now, marks, more).encode(), sentence
    scene = draw_scene(machine, now, marks, wanted, sentence)
    return svg(scene) if wanted.format == "svg" else png(scene, wanted.width), sentence


def _marks(machine: Machine, wanted: Export) -> list[Mark]:
    """Return the marks that name a node."""
    marks: list[Mark] = []
    for mark in (requests.Mark(wanted.nodes), *wanted.marks):
        if mark.nodes.strip():
            rows = rows_of(machine, mark.nodes, repeats=True)
            once = np.array(list(dict.fromkeys(rows.tolist())), dtype=np.int64)
            marks.append(Mark(mark.name, once, len(marks) if mark.hue is None else mark.hue))
    return marks


def _colours_of(
    machine: Machine, now: Snapshot, marks: list[Mark], wanted: Export
) -> dict[str, Any]:
    """Return how a page colours its nodes, with the figures that it cannot ask a server for."""
    from web import figures

    offer = now.offer(machine)
    if wanted.colour == "rank":
        nodes = nodes_of(machine, marks[0].rows).fold()
        order = wanted.order or "row-major"
        job = requests.Order(nodes, wanted.ppn, wanted.pattern, order, wanted.slots)
        return {"way": "rank", "ranks": figures.order(machine, offer, job)}
    if wanted.colour == "hops":
        start = wanted.focus or f"#{marks[0].rows[0]}"
        return {"way": "hops", "hops": figures.hops(machine, offer, requests.Hops(start))}
    group = f"level:{machine.topology.levels[0]}"
    return {"way": group if wanted.colour == "group" else wanted.colour}


def _page(machine: Machine, now: Snapshot, marks: list[Mark], more: dict[str, Any]) -> str:
    from web import layout
    from web.columns import document
    from web.page import export_page

    columns = document(machine) | {"show_users": any(job.user for job in now.jobs), "live": False}
    data = {
        "schema": "nidmap.export/1",
        "machine": columns | {"refresh": 0, "version": "", "limits": {"marks": 32}},
        "layout": layout.document(machine),
        "state": now.document(machine),
        "marks": [
            mark._asdict()
            | {"rows": mark.rows.tolist(), "nodelist": nodes_of(machine, mark.rows).fold()}
            for mark in marks
        ],
        **more,
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    return export_page(machine.name, data)


# --- a scene as SVG: one path for all nodes of one look, every word escaped ------------

_HALF = CELL / 2

#: The path of each shape behind the move to its top left corner.
_PATHS = {
    "square": f"h{CELL}v{CELL}h-{CELL}z",
    "diamond": f"m{_HALF} 0l{_HALF} {_HALF}l-{_HALF} {_HALF}l-{_HALF} -{_HALF}z",
    "cross": f"l{CELL} {CELL}m0 -{CELL}l-{CELL} {CELL}",
    "ring": f"m1 1h{CELL - 2}v{CELL - 2}h-{CELL - 2}z",
    "dot": f"m{_HALF - 0.5} {_HALF - 0.5}h1v1h-1z",
}

#: How wide the line is of shapes that are all line.
_LINES = {"ring": 2, "cross": 1.6}


def svg(made: Scene) -> bytes:
    """Return a scene as an SVG document.

    Examples
    --------
    >>> scene = Scene(10, 10, "#fff", "<b>", "")
    >>> b"<b>" in svg(scene), b"&lt;b&gt;" in svg(scene)
    (False, True)
    """
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{made.width}" height="{made.height}" '
        f'viewBox="0 0 {made.width} {made.height}" role="img" '
        f'font-family="DejaVu Sans, Verdana, sans-serif">',
        f"<title>{_text(made.title)}</title>",
        f"<desc>{_text(made.sentence)}</desc>",
        f'<rect width="{made.width}" height="{made.height}" fill="{made.ground}"/>',
    ]
    return "\n".join([*out, *map(_svg_part, made.parts), "</svg>", ""]).encode()


def _text(text: str) -> str:
    """Return a text that is text in XML: printable, escaped, without what XML forbids."""
    return escape(printable(text, 600))


def _svg_part(part: Rectangles | Glyphs | Word) -> str:
    """Return one part; nothing for rectangles that are none."""
    if isinstance(part, Word):
        bold = ' font-weight="bold"' if part.bold else ""
        anchor = "" if part.anchor == "start" else f" text-anchor={quoteattr(part.anchor)}"
        return (
            f'<text x="{part.x}" y="{part.y}" font-size="{part.size}" '
            f'fill="{part.colour}"{anchor}{bold}>{_text(part.text)}</text>'
        )
    if isinstance(part, Rectangles):
        corners = zip(*(column.tolist() for column in part[:4]), strict=True)
        path = "".join(f"M{x} {y}h{w}v{h}h-{w}z" for x, y, w, h in corners)
        dash = ' stroke-dasharray="3 3"' if part.dashed else ""
        return f'<path fill="{part.fill}" stroke="{part.stroke}"{dash} d="{path}"/>' if path else ""
    places = zip(part.x.tolist(), part.y.tolist(), strict=True)
    path = "".join(f"M{x} {y}{_PATHS[part.shape]}" for x, y in places)
    fill, line = ("none", _LINES[part.shape]) if part.shape in _LINES else (part.fill, 0.8)
    edge = "" if fill == part.stroke else f' stroke="{part.stroke}" stroke-width="{line}"'
    return f'<path fill="{fill}"{edge} d="{path}"/>'


# --- PNG, drawn at twice its size or more and reduced ----------------------------------

#: Pixels of a unit at most.
_LARGEST = 2

#: Signs that Pillow's own font does not have.
_PLAIN = str.maketrans({"→": ">", "↓": "v", "…": "..."})

#: Pixels that are drawn at most.
_MOST = 160_000_000


def png(made: Scene, width: int) -> bytes:
    """Return a scene as PNG, `width` pixels wide, or less for a small machine.

    Raises
    ------
    UsageError
        The picture would be too large.
    """
    from PIL import Image

    width = min(width, _LARGEST * made.width)
    height = max(1, round(made.height * width / made.width))
    more = 3 if width * height * 9 < 40_000_000 else 2
    if width * height * more * more > _MOST:
        raise UsageError(f"a picture of {width} x {height} pixels is too large", "view it as .svg")
    image = Image.new("RGB", (width * more, height * more), made.ground)
    brush = _Brush(image, width * more / made.width)
    for part in made.parts:
        brush.draw(part)
    stream = io.BytesIO()
    small = image.reduce(more).quantize(255, method=Image.Quantize.FASTOCTREE)
    small.save(stream, "PNG", optimize=False)
    return stream.getvalue()


class _Brush:
    """Draws the parts of a scene on an image."""

    def __init__(self, image: Any, scale: float) -> None:
        from PIL import ImageDraw

        self.scale = scale
        self.image = ImageDraw.Draw(image)
        self.fonts: dict[int, Any] = {}

    def draw(self, part: Rectangles | Glyphs | Word) -> None:
        """Draw one part."""
        if isinstance(part, Word):
            self._word(part)
        elif isinstance(part, Glyphs):
            self._glyphs(part)
        else:
            fill, line = None if part.fill == "none" else part.fill, self._line(0.8)
            for x, y, w, h in zip(*(c.tolist() for c in part[:4]), strict=True):
                corners = (x, y, x + w, y + h)
                box = tuple(place * self.scale for place in corners)
                self.image.rectangle(box, fill, part.stroke, line)

    def _line(self, units: float) -> int:
        return max(1, round(units * self.scale))

    def _glyphs(self, part: Glyphs) -> None:
        draw, size = self.image, CELL * self.scale
        for left, top in zip((part.x * self.scale).tolist(), (part.y * self.scale).tolist(),
                             strict=True):  # fmt: skip
            right, low = left + size, top + size
            if part.shape == "square":
                box = (left, top, right - 1, low - 1)
                draw.rectangle(box, part.fill, part.stroke, self._line(0.8))
            elif part.shape == "ring":
                draw.rectangle((left, top, right - 1, low - 1), None, part.stroke, self._line(2))
            elif part.shape == "cross":
                draw.line((left, top, right, low), part.stroke, self._line(1.6))
                draw.line((left, low, right, top), part.stroke, self._line(1.6))
            else:  # diamonds, and dots as small ones
                reach = (CELL / 2 if part.shape == "diamond" else 0.8) * self.scale
                x, y = left + size / 2, top + size / 2
                ends = ((x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y))
                draw.polygon(ends, part.fill)

    def _word(self, part: Word) -> None:
        from PIL import ImageFont

        size = max(4, round(part.size * self.scale))
        if size not in self.fonts:
            self.fonts[size] = ImageFont.load_default(size)
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[part.anchor]
        place = (part.x * self.scale, part.y * self.scale)
        bold = self._line(0.5) if part.bold else 0
        text = printable(part.text, 600).translate(_PLAIN)
        self.image.text(place, text, part.colour, self.fonts[size], anchor, stroke_width=bold)
