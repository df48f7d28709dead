"""Pictures of a machine without a browser: the page's own modules draw them, run by QuickJS."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from placement.support.lazy import lazy
from web.page import bundle, modules

if TYPE_CHECKING:
    import quickjs
    import resvg_py
else:
    quickjs, resvg_py = lazy("quickjs"), lazy("resvg_py")

__all__ = ["draw_svg", "paint_png"]

#: The module of ``static/`` that draws what an exported page would show.
ENTRY = "headless.js"


def draw_svg(data: Mapping[str, Any]) -> str:
    """Return what a page of these data shows, as SVG: the whole machine and its legend.

    Parameters
    ----------
    data : mapping
        Those of an exported page (`web.export.page_data`), with ``view`` (of
        `web.layout.layout`), ``theme`` and the ``sentence`` above.
    """
    context = quickjs.Context()
    context.eval(_script())
    return str(context.get("draw")(msgspec.json.encode(data).decode()))


@lru_cache(maxsize=1)
def _script() -> str:
    return bundle(modules(), ENTRY)


def paint_png(svg: str, width: int) -> bytes:
    """Return a picture as PNG, `width` pixels wide; its words need a font on this machine."""
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width))
