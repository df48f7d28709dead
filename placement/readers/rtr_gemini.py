"""``rtr --interconnect`` of an XE or XK: every link of every Gemini router.

``c0-0c0s0g0l00[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] LinkType: backplane`` a
tile, tiles in octal; the coordinates and the link type may be missing. A
Gemini has 8 links towards each of X+, X-, Z+ and Z- and 4 towards each of Y+
and Y-, of 3 lanes each, at 6.25 Gb/s a lane on the mezzanine (inside a
blade), 5.0 on the backplane and 3.125 over a cable; so X has 9.375 GB/s a
direction, Y 9.375 inside a blade and 4.6875 over a cable, Z 15.0 inside a
cage and 9.375 between cages. As read by public converters of such lists.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from placement.readers import rows as r
from placement.readers.faults import in_order, listed
from placement.readers.rtr import END_A, END_B, Tiles, end_pattern, refuse_impossible
from placement.records import Dump, LinkRecords

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from placement.records import Fault

__all__ = ["MEDIA", "read", "sniff"]

#: GB/s a direction of one link by medium: 3 lanes at 6.25, 5.0 and 3.125 Gb/s.
MEDIA = {"mezzanine": 2.34375, "backplane": 1.875, "cable": 1.171875}

_NAME = end_pattern("g")
_XYZ = r"\([0-9]+,[0-9]+,[0-9]+\)"
_TILE = rf"{_NAME}(?:\[{_XYZ}\]|{_XYZ})?"
_SNIFF = re.compile(rf"^[ \t]*{_TILE}[ \t]+[a-z]+[+-]?[ \t]+->[ \t]", re.I | re.M | re.A)
_XYZ_A, _XYZ_B = ("ax", "ay", "az"), ("bx", "by", "bz")
_HINT = "such as c0-0c0s0g0l00[(0,0,0)]"
_KIND = r.column("kind", "direction (X+ to Z-, or ptile)", "[xyz][+-]|ptile|host", keep=True)
_ARROW = r.column("arrow", "'->'", "->")
_NONE = r.column("to", "tile, unused or processor", "unused|processor", keep=True)
_TYPE = (
    r.column("linktype", "'LinkType:'", "linktype:"),
    r.column(
        "medium",
        "link type (mezzanine, backplane or cable)",
        "mezzanine|backplane|[a-z0-9_.-]*cable[a-z0-9_.-]*",
        keep=True,
    ),
)


def _end(name: str, numbers: tuple[str, ...], xyz: tuple[str, ...], word: str) -> r.Column:
    """Return the column of a tile, with coordinates if `word` has them."""
    if "(" in word:
        return r.column(name, "tile", _TILE, *numbers, *xyz, hint=_HINT)
    return r.column(name, "tile", _TILE, *numbers, hint=_HINT)


def sniff(head: str) -> bool:
    """Tell whether the beginning of a text has a line of a Gemini link list.

    Examples
    --------
    >>> sniff("c0-0c0s0g0l00[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] LinkType: backplane")
    True
    """
    return _SNIFF.search(head) is not None


def read(text: str, source: str) -> Dump:
    """Read the output of ``rtr --interconnect`` of an XE or XK.

    Parameters
    ----------
    text : str
    source : str
        Named in errors.

    Returns
    -------
    Dump
        Links as printed (each from both ends) with coordinates, medium and
        bandwidth where printed, and all routers; fabric ``gemini``;
        parameter ``extents`` (x, y, z) of the torus where coordinates are
        printed. Faults: ``one-ended-link``, ``duplicate-tile``,
        ``coordinates``, ``link-kind`` (two media); remarks: ``direction``
        (X+ that does not go one on in x, or comes back as another than X-).

    Raises
    ------
    ParseError
        At the first line that is no tile, comment or blank, or names a
        router or tile that cannot be.

    Examples
    --------
    >>> dump = read("c0-0c0s0g0l00[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] LinkType: backplane\\n"
    ...             "c0-0c0s1g0l32[(0,0,1)] Z- -> c0-0c0s0g0l00[(0,0,0)] LinkType: backplane\\n",
    ...             "titan")
    >>> dump.routers.tolist(), dump.links.kind.tolist(), dump.links.bandwidth.tolist()
    (['c0-0c0s0g0', 'c0-0c0s1g0'], ['z+', 'z-'], [1.875, 1.875])
    """
    rows = r.Rows.read(text, source, "rtr-gemini", _line, r.MOST_TILES)
    refuse_impossible(rows, "rtr-gemini", _XYZ_A + _XYZ_B)
    tiles = Tiles.of(rows, "g")
    kind, medium = rows.word("kind"), rows.word("medium")
    xyz_a, xyz_b = rows.table(_XYZ_A), rows.table(_XYZ_B)
    of_router, faults = tiles.coordinates(xyz_a, xyz_b)
    extents = of_router.max(axis=0) + 1
    faults += tiles.listed_twice() + tiles.one_ended() + _media_faults(tiles, medium)
    faults += _direction_faults(tiles, kind, of_router, extents)
    placed = bool(extents.all())
    coords = (xyz_a, xyz_b) if placed else None
    return Dump(
        "rtr-gemini",
        source,
        rows.counts,
        links=_links(tiles, kind, medium, coords),
        routers=tiles.names,
        fabric="gemini",
        parameters={"extents": tuple(extents.tolist())} if placed else {},
        faults=in_order(faults),
    )


def _links(
    tiles: Tiles,
    kind: NDArray[np.str_],
    medium: NDArray[np.str_],
    coords: tuple[NDArray[np.int32], NDArray[np.int32]] | None,
) -> LinkRecords:
    """Return the tiles that see another one."""
    rows = np.flatnonzero(tiles.b >= 0)
    typed = bool((medium != "").any())
    return LinkRecords(
        line=tiles.line[rows],
        a=tiles.names[tiles.a[rows]],
        b=tiles.names[tiles.b[rows]],
        a_port=tiles.a_tile[rows],
        b_port=tiles.b_tile[rows],
        kind=kind[rows],
        coords_a=coords[0][rows] if coords else None,
        coords_b=coords[1][rows] if coords else None,
        bandwidth=_speeds(medium[rows]) if typed else None,
        medium=medium[rows] if typed else None,
    )


def _line(line: str) -> r.Row:
    words = line.split()
    start = (_end("from", END_A, _XYZ_A, words[0]), _KIND, _ARROW)
    to = words[3] if len(words) > 3 else ""
    if to.lower() in ("unused", "processor"):
        return _plain(r.columns(line, (*start, _NONE, *(_TYPE if len(words) > 4 else ()))))
    end = (_end("to", END_B, _XYZ_B, to), *(_TYPE if len(words) > 4 else ()))
    row = _plain(r.columns(line, (*start, *end)))
    if row.words["kind"] in ("ptile", "host"):
        raise r.Refused(f"a {row.words['kind']} tile leads to a processor, not to a tile")
    return row


def _plain(row: r.Row) -> r.Row:
    """Return a row that calls every kind of cable (cable11x …) a cable."""
    if "cable" in row.words.get("medium", ""):
        return r.Row(row.at, {**row.words, "medium": "cable"})
    return row


def _speeds(medium: NDArray[np.str_]) -> NDArray[np.float64]:
    """Return GB/s a direction by medium; NaN where none is printed."""
    speed = np.full(len(medium), np.nan)
    for name, value in MEDIA.items():
        speed[medium == name] = value
    return speed


def _media_faults(tiles: Tiles, medium: NDArray[np.str_]) -> list[Fault]:
    wrong = tiles.disagreeing(lambda x, y: np.asarray(medium[x] == medium[y]))
    back = tiles.row_of()[tiles.peers]
    return listed(
        wrong,
        tiles.line,
        "link-kind",
        lambda i: (
            f"{tiles.name(int(tiles.ports[i]))} is {medium[i] or 'without link type'} here and "
            f"{medium[back[i]] or 'without link type'} from its other end (line "
            f"{tiles.line[back[i]]})"
        ),
    )


def _direction_faults(
    tiles: Tiles, kind: NDArray[np.str_], xyz: NDArray[np.int32], extents: NDArray[np.int32]
) -> list[Fault]:
    """Return remarks on links that do not go where their direction says."""
    words, of = np.unique(kind, return_inverse=True)
    step = np.array([_step(str(word)) for word in words], dtype=np.int64)[of]
    wrong = tiles.disagreeing(lambda x, y: np.asarray(np.all(step[x] == -step[y], axis=1)))
    found = _remarks(wrong, tiles, lambda i: f"{kind[i]} does not come back the opposite way")
    if not extents.all():
        return found
    linked = np.flatnonzero(tiles.b >= 0)
    a, b = xyz[tiles.a[linked]], xyz[tiles.b[linked]]
    known = (a[:, 0] >= 0) & (b[:, 0] >= 0)
    off = known & np.any((a + step[linked] - b) % extents != 0, axis=1)
    return found + _remarks(
        linked[off],
        tiles,
        lambda i: (
            f"{kind[i]} goes from {tuple(xyz[tiles.a[i]].tolist())} "
            f"to {tuple(xyz[tiles.b[i]].tolist())}"
        ),
    )


def _remarks(rows: NDArray[np.int64], tiles: Tiles, text: Callable[[int], str]) -> list[Fault]:
    return listed(
        rows,
        tiles.line,
        "direction",
        lambda i: f"{tiles.name(int(tiles.ports[i]))}: {text(i)}",
        fatal=False,
    )


def _step(kind: str) -> tuple[int, int, int]:
    """Return how far a direction goes in x, y and z."""
    sign = {"+": 1, "-": -1}.get(kind[-1:], 0)
    x, y, z = (sign * (kind[:1] == axis) for axis in "xyz")
    return x, y, z
