"""A picture as SVG: one path for all nodes of one look, every word escaped."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from placement.errors import printable
from web.layout import CELL
from web.picture.scene import Glyphs, Rectangles, Scene, Word

__all__ = ["svg"]

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


def svg(made: Scene) -> str:
    """Return a scene as an SVG document.

    Examples
    --------
    >>> scene = Scene(10, 10, "#fff", "<b>", "")
    >>> "<b>" in svg(scene), "&lt;b&gt;" in svg(scene)
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
    return "\n".join([*out, *map(_part, made.parts), "</svg>", ""])


def _text(text: str) -> str:
    """Return a text that is text in XML: printable, escaped, without what XML forbids."""
    return escape(printable(text, 600))


def _part(part: Rectangles | Glyphs | Word) -> str:
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
