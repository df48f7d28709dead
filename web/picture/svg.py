"""A picture as SVG: one path for all nodes of one look, every word escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from placement.errors import printable
from web.layout import CELL
from web.picture.scene import Glyphs, Rectangles, Scene, Word

if TYPE_CHECKING:
    from collections.abc import Callable

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
    out.extend(_WRITERS[type(part)](part) for part in made.parts)
    return "\n".join([*out, "</svg>", ""])


def _text(text: str) -> str:
    """Return a text that is text in XML: printable, escaped, without what XML forbids."""
    return escape(printable(text, 600))


def _rectangles(part: Rectangles) -> str:
    corners = zip(part.x.tolist(), part.y.tolist(), part.w.tolist(), part.h.tolist(), strict=True)
    path = "".join(f"M{x} {y}h{w}v{h}h-{w}z" for x, y, w, h in corners)
    dash = ' stroke-dasharray="3 3"' if part.dashed else ""
    return f'<path fill="{part.fill}" stroke="{part.stroke}"{dash} d="{path}"/>' if path else ""


def _glyphs(part: Glyphs) -> str:
    tail = _PATHS[part.shape]
    path = "".join(f"M{x} {y}{tail}" for x, y in zip(part.x.tolist(), part.y.tolist(), strict=True))
    if part.shape == "ring":
        return f'<path fill="none" stroke="{part.stroke}" stroke-width="2" d="{path}"/>'
    if part.shape == "cross":
        return f'<path fill="none" stroke="{part.stroke}" stroke-width="1.6" d="{path}"/>'
    edge = "" if part.fill == part.stroke else f' stroke="{part.stroke}" stroke-width="0.8"'
    return f'<path fill="{part.fill}"{edge} d="{path}"/>'


def _word(part: Word) -> str:
    bold = ' font-weight="bold"' if part.bold else ""
    anchor = "" if part.anchor == "start" else f" text-anchor={quoteattr(part.anchor)}"
    return (
        f'<text x="{part.x:g}" y="{part.y:g}" font-size="{part.size:g}" '
        f'fill="{part.colour}"{anchor}{bold}>{_text(part.text)}</text>'
    )


_WRITERS: dict[type, Callable[..., str]] = {
    Rectangles: _rectangles,
    Glyphs: _glyphs,
    Word: _word,
}
