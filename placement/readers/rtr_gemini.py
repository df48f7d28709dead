# SPDX-License-Identifier: Apache-2.0
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

from nidmap.placement.readers import dump_format, sniffing
from nidmap.placement.readers import rows as r
from nidmap.placement.readers.cray_formats import list_faults
from nidmap.placement.readers.rtr import Tiles, tile_columns
from nidmap.placement.records import Dump

#: GB/s a direction of one link by medium: 3 lanes at 6.25, 5.0 and 3.125 Gb/s.
MEDIA = {"mezzanine": 2.34375, "backplane": 1.875, "cable": 1.171875}

_KIND = r.Column("direction (X+ to Z-, or ptile)", "([xyz][+-]|ptile|host)", ("kind",))
_BRACKETS = r"(?:(?:\[(?=\([0-9,]*\)\]))?\(xyz\)\]?)?"
_COLUMNS = tile_columns("g([01])", ",", _BRACKETS, _KIND)
sniff = sniffing(
    rf"^[ \t]*{r.BLADE}g[0-9]+l[0-9]+\[?(?:\([0-9,]+\)\]?)?[ \t]+[a-z]+[+-]?[ \t]+->[ \t]"
)
_MEDIUM = "(mezzanine|backplane)|[a-z0-9_.-]*(cable)[a-z0-9_.-]*"  # cable11x …
_TYPE = (
    r.Column("'LinkType:'", "linktype:"),
    r.Column("link type (mezzanine, backplane or cable)", _MEDIUM, ("medium", "cable")),
)


@dump_format("rtr-gemini", "links", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of ``rtr --interconnect`` on an XE or XK.

    Links as printed (each from both ends) with coordinates and bandwidth where printed, and all
    routers; fabric ``gemini``; parameter ``extents`` (x, y, z) of the torus where coordinates are
    printed. Faults: ``one-ended-link``, ``duplicate-tile``, ``coordinates``, ``link-kind`` (no
    link type at one end alone).
    """
    tiles = Tiles(text, source, "rtr-gemini", _line_layout)
    kind = tiles.rows.column("kind")
    medium = np.where(tiles.rows.having("cable"), "cable", tiles.rows.column("medium"))
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


def _line_layout(line: str) -> r.RowColumns:
    return r.row_layout(line, _COLUMNS + (_TYPE if len(line.split()) > 4 else ()))
