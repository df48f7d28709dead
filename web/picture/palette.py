"""The page's colours for the server's own pictures: the same as in ``static/theme.js``.

The hues of marks, jobs and groups can be told apart with any colour vision:
by CIEDE2000 they are at least 12 apart also as people without one kind of
cones see them (tests/web/test_colours.py simulates that after Machado,
Oliveira and Fernandes, IEEE TVCG 15, 2009). What a node's state is can be
seen by its shape as well.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["THEMES", "Theme"]


class Theme(NamedTuple):
    """Colours of a picture's ground, of what is no job's, and of marks, jobs and groups."""

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
