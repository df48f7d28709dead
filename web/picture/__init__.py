"""The server's own pictures, from the same layout as the page's: SVG and PNG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from web.picture.scene import Mark

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
    machine : Machine
    now : Snapshot
    marks : sequence of Mark
    form : str
        ``svg`` or ``png``.
    width : int
        Pixels, of a PNG.
    **look
        See `web.picture.scene.scene`.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> from web.snapshot import of_dump
    >>> machine = parse_spec("torus:2x2")
    >>> picture(machine, of_dump(machine), [], "svg")[:4]
    b'<svg'
    """
    from web.picture.scene import scene

    made = scene(machine, now, marks, **look)
    if form == "png":
        from web.picture.png import png

        return png(made, width)
    from web.picture.svg import svg

    return svg(made).encode()
