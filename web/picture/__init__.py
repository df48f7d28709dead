"""The server's own pictures, from the same layout as the page's: SVG and PNG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from web.picture.scene import Mark, draw_scene

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.machine import Machine
    from web.snapshot import Snapshot

__all__ = ["Mark", "picture"]


def picture(
    machine: Machine,
    now: Snapshot,
    marks: Sequence[Mark],
    form: str,
    width: int = 1600,
    **look: Any,
) -> bytes:
    """Return a picture of a machine as a file's content.

    Parameters
    ----------
    machine, now, marks, **look
        See `web.picture.scene.draw_scene`.
    form : str
        ``svg`` or ``png``.
    width : int
        Pixels, of a PNG.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from web.snapshot import of_dump
    >>> machine = parse_spec("torus:2x2")
    >>> picture(machine, of_dump(machine), [], "svg")[:4]
    b'<svg'
    """
    scene = draw_scene(machine, now, marks, **look)
    if form == "png":
        from web.picture.png import png

        return png(scene, width)
    from web.picture.svg import svg

    return svg(scene).encode()
