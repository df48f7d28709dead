"""Colours that people with any colour vision can tell apart, on light and on dark ground.

The marks' eight are Okabe and Ito's; what a node's state is can be seen by
its shape as well.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CYCLE", "THEMES", "Theme"]

#: Okabe and Ito's colours, those first that differ most in brightness too.
CYCLE = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#b8a800", "#7a5195",
)  # fmt: skip


class Theme(NamedTuple):
    """Colours of a picture's ground and of what is not a job's."""

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


THEMES = {
    "light": Theme(
        ground="#ffffff", text="#1a1a1a", faint="#595959", frame="#8a8f98", inner="#d4d7dc",
        box="#f6f7f9", free="#dfe5ec", edge="#aab4c0", busy="#7d8794", held="#b9a26a",
        down="#b3261e", service="#5f5f77", vacant="#e3e3e3", outline="#111111",
    ),
    "dark": Theme(
        ground="#14171c", text="#eef0f3", faint="#a9b0ba", frame="#6b7482", inner="#343b45",
        box="#1c2128", free="#39434f", edge="#56626f", busy="#8e99a7", held="#b59b55",
        down="#ff8a80", service="#a3a3c2", vacant="#2a2f37", outline="#ffffff",
    ),
}  # fmt: skip
