"""A picture as PNG, drawn with Pillow at twice its size and reduced."""

from __future__ import annotations

import io
from typing import Any

from placement.errors import UsageError, printable
from web.layout import CELL
from web.picture.scene import Glyphs, Rectangles, Scene, Word

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
