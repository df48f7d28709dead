"""A picture as PNG, drawn with Pillow at twice its size and reduced."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from placement.errors import UsageError, printable
from web.layout import CELL
from web.picture.scene import Glyphs, Rectangles, Scene, Word

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["png"]

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
        raise UsageError(f"a picture of {width} x {height} pixels is too large", "less --width")
    image = Image.new("RGB", (width * more, height * more), made.ground)
    _Brush(image, width * more / made.width).draw(made)
    stream = io.BytesIO()
    small = image.reduce(more).quantize(255, method=Image.Quantize.FASTOCTREE)
    small.save(stream, "PNG", optimize=False)
    return stream.getvalue()


class _Brush:
    """Draws the parts of a scene on an image."""

    def __init__(self, image: Any, scale: float) -> None:
        from PIL import ImageDraw

        self.scale = scale
        self.draw_on = ImageDraw.Draw(image)
        self.fonts: dict[int, Any] = {}

    def draw(self, made: Scene) -> None:
        """Draw all parts in their order."""
        for part in made.parts:
            if isinstance(part, Rectangles):
                self._rectangles(part)
            elif isinstance(part, Glyphs):
                self._glyphs(part)
            else:
                self._word(part)

    def _line(self, units: float) -> int:
        return max(1, round(units * self.scale))

    def _rectangles(self, part: Rectangles) -> None:
        fill = None if part.fill == "none" else part.fill
        scale, line = self.scale, self._line(0.8)
        for x, y, w, h in zip(*(c.tolist() for c in part[:4]), strict=True):
            box = (x * scale, y * scale, (x + w) * scale, (y + h) * scale)
            self.draw_on.rectangle(box, fill, part.stroke, line)

    def _glyphs(self, part: Glyphs) -> None:
        corners = zip(part.x.tolist(), part.y.tolist(), strict=True)
        if part.shape in ("square", "ring"):
            self._squares(part, corners)
        elif part.shape == "cross":
            self._crosses(part, corners)
        else:
            self._points(part, corners)

    def _squares(self, part: Glyphs, corners: Iterable[tuple[int, int]]) -> None:
        ring = part.shape == "ring"
        fill = None if ring else part.fill
        line = self._line(2 if ring else 0.8)
        size = CELL * self.scale - 1
        for x, y in corners:
            left, top = x * self.scale, y * self.scale
            self.draw_on.rectangle((left, top, left + size, top + size), fill, part.stroke, line)

    def _crosses(self, part: Glyphs, corners: Iterable[tuple[int, int]]) -> None:
        size, line = CELL * self.scale, self._line(1.6)
        for x, y in corners:
            left, top = x * self.scale, y * self.scale
            right, low = left + size, top + size
            self.draw_on.line((left, top, right, low), part.stroke, line)
            self.draw_on.line((left, low, right, top), part.stroke, line)

    def _points(self, part: Glyphs, corners: Iterable[tuple[int, int]]) -> None:
        """Draw diamonds, and dots as small ones."""
        reach = (CELL / 2 if part.shape == "diamond" else 0.8) * self.scale
        for x, y in corners:
            a, b = (x + CELL / 2) * self.scale, (y + CELL / 2) * self.scale
            ends = ((a, b - reach), (a + reach, b), (a, b + reach), (a - reach, b))
            self.draw_on.polygon(ends, part.fill)

    def _word(self, part: Word) -> None:
        from PIL import ImageFont

        size = max(4, round(part.size * self.scale))
        if size not in self.fonts:
            self.fonts[size] = ImageFont.load_default(size)
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[part.anchor]
        place = (part.x * self.scale, part.y * self.scale)
        bold = self._line(0.5) if part.bold else 0
        text = printable(part.text, 600).translate(_PLAIN)
        self.draw_on.text(place, text, part.colour, self.fonts[size], anchor, stroke_width=bold)
