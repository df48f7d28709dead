"""``rtr --interconnect`` (Gemini): every link of every router.

``c0-0c0s0g0l00[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] LinkType: backplane`` a
tile, tiles in octal; the coordinates and the link type may be missing. A
Gemini has 8 links towards each of X+, X-, Z+ and Z- and 4 towards each of Y+
and Y-, of 3 lanes each, at 6.25 Gb/s a lane on the mezzanine (inside a
blade), 5.0 on the backplane and 3.125 over a cable; so X has 9.375 GB/s a
direction, Y 9.375 inside a blade and 4.6875 over a cable, Z 15.0 inside a
cage and 9.375 between cages. As read by public converters of such lists.
"""

from __future__ import annotations

import numpy as np

from placement.errors import NidmapError
from placement.readers import dump_format, sniffing
from placement.readers import rows as r
from placement.readers.cray import list_faults
from placement.readers.rtr import END_A, END_B, XYZ_A, XYZ_B, Tiles, end_pattern
from placement.records import Dump

#: GB/s a direction of one link by medium: 3 lanes at 6.25, 5.0 and 3.125 Gb/s.
MEDIA = {"mezzanine": 2.34375, "backplane": 1.875, "cable": 1.171875}

_XYZ = r"\([0-9]+,[0-9]+,[0-9]+\)"
_TILE = rf"{end_pattern('g')}(?:\[{_XYZ}\]|{_XYZ})?"
sniff = sniffing(rf"^[ \t]*{_TILE}[ \t]+[a-z]+[+-]?[ \t]+->[ \t]")
_END = r.Column("end", "tile", _TILE, hint="such as c0-0c0s0g0l00[(0,0,0)]")
_KINDS = "[xyz][+-]|ptile|host"
_KIND = r.Column("kind", "direction (X+ to Z-, or ptile)", _KINDS, keep=True)
_ARROW = r.Column("arrow", "'->'", "->")
_NONE = r.Column("to", "tile, unused or processor", "unused|processor")
_MEDIA = "mezzanine|backplane|[a-z0-9_.-]*cable[a-z0-9_.-]*"
_TYPE = (
    r.Column("linktype", "'LinkType:'", "linktype:"),
    r.Column("medium", "link type (mezzanine, backplane or cable)", _MEDIA, keep=True),
)


@dump_format("rtr-gemini", "links", sniff)
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
        Links as printed (each from both ends) with coordinates and
        bandwidth where printed, and all routers; fabric ``gemini``;
        parameter ``extents`` (x, y, z) of the torus where coordinates are
        printed. Faults: ``one-ended-link``, ``duplicate-tile``,
        ``coordinates``, ``link-kind`` (no link type at one end alone).

    Raises
    ------
    ParseError
        At the first line that is not a tile, comment or blank, or names a
        router or tile that cannot be.

    Examples
    --------
    >>> dump = read("c0-0c0s0g0l00[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] LinkType: backplane\\n"
    ...             "c0-0c0s1g0l32[(0,0,1)] Z- -> c0-0c0s0g0l00[(0,0,0)] LinkType: backplane\\n",
    ...             "titan")
    >>> dump.routers.tolist(), dump.links.kind.tolist(), dump.links.bandwidth.tolist()
    (['c0-0c0s0g0', 'c0-0c0s1g0'], ['z+', 'z-'], [1.875, 1.875])
    """
    tiles = Tiles(text, source, "rtr-gemini", _read_line)
    kind, medium = tiles.rows.word("kind"), tiles.rows.word("medium")
    faults = tiles.faults()
    cut_off = (medium == "") & (tiles.back >= 0) & (medium[tiles.back] != "")
    faults += list_faults(
        np.flatnonzero(cut_off),
        tiles.line,
        "link-kind",
        lambda i: f"{tiles.name(tiles.ports[i])} has no link type, as its other end has",
        hint="was the list cut short?",
    )
    extents = tiles.coords.max(axis=0) + 1
    speed = np.select([medium == name for name in MEDIA], list(MEDIA.values()), np.nan)
    typed = {"bandwidth": speed} if (medium != "").any() else {}
    placed = {"extents": tuple(extents.tolist())} if extents.all() else {}
    return tiles.dump("gemini", placed, faults, kind=kind, **typed)


def _read_line(line: str) -> r.Row:
    words = line.split()
    to = words[3] if len(words) > 3 else ""
    unlinked = to.lower() in ("unused", "processor")
    end = _NONE if unlinked else _tile_column(to, END_B, XYZ_B)
    start = (_tile_column(words[0], END_A, XYZ_A), _KIND, _ARROW)
    row = r.read_columns(line, (*start, end, *(_TYPE if len(words) > 4 else ())))
    if not unlinked and row.words["kind"] in ("ptile", "host"):
        raise NidmapError(f"a {row.words['kind']} tile leads to a processor, not to a tile")
    if "cable" in row.words.get("medium", ""):  # cable11x …
        return r.Row(row.at, {**row.words, "medium": "cable"})
    return row


def _tile_column(word: str, numbers: tuple[str, ...], xyz: tuple[str, ...]) -> r.Column:
    """Return the column of a tile, with coordinates if `word` has them."""
    return _END._replace(numbers=numbers + xyz if "(" in word else numbers)
