# SPDX-License-Identifier: Apache-2.0
"""``rtr --interconnect`` (Aries): every tile of every router and its neighbour.

48 lines per router: ``c0-0c0s0a0l00(0:0:0) green -> c0-0c0s6a0l10(0:0:6)``,
tiles in octal l00 to l57, coordinates (group:chassis:slot); a tile that sees
no tile is ``unused`` or leads to a ``processor``. Facts checked on the lists
of Edison and Theta (2,304 routers, no exception).
"""

from __future__ import annotations

import numpy as np

from nidmap.placement.readers import dump_format, sniffing
from nidmap.placement.readers import rows as r
from nidmap.placement.readers.cray_formats import (
    coordinate_text,
    expected_coords,
    infer_positions,
    list_faults,
)
from nidmap.placement.readers.rtr import Tiles, tile_columns
from nidmap.placement.records import Dump, Finding

#: Tiles of an Aries router.
TILES = 48

_COLOURS = "(green|black|blue|ptile)"
_KIND = r.Column("colour (green, black, blue or ptile)", _COLOURS, ("kind",))
_COLUMNS = tile_columns("a(0)", ":", r"\(xyz\)", _KIND)
sniff = sniffing(
    rf"^[ \t]*{r.BLADE}a[0-9]+l[0-9]+\([0-9]+:[0-9]+:[0-9]+\)[ \t]+[a-z]+[ \t]+->[ \t]"
)


@dump_format("rtr-aries", "links", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of ``rtr --interconnect`` on an XC.

    Links as printed (each from both ends) with coordinates, and all routers; fabric ``aries``;
    parameter ``positions`` (cabinet positions in a row) where the groups tell it. Faults:
    ``one-ended-link``, ``duplicate-tile``, ``missing-tiles``, ``coordinates``.
    """
    tiles = Tiles(text, source, "rtr-aries", lambda line: r.row_layout(line, _COLUMNS))
    kind, faults = tiles.rows.column("kind"), tiles.faults()
    faults += _missing_tiles(tiles) + _find_misplaced(tiles)
    positions = infer_positions(tiles.place[:, 0], tiles.place[:, 1], tiles.coords[:, 0])
    return tiles.dump("aries", {"positions": positions} if positions else {}, faults, kind=kind)


def _missing_tiles(tiles: Tiles) -> list[Finding]:
    """Return faults for routers listed with fewer than their 48 tiles."""
    there = np.zeros((len(tiles.names), 64), dtype=np.bool_)
    there[tiles.a, tiles.a_tile] = True
    count = there.sum(axis=1)
    last = np.zeros(len(tiles.names), dtype=np.int32)
    np.maximum.at(last, tiles.a, tiles.line)
    some = np.flatnonzero((count > 0) & (count < TILES))

    def text(router: int) -> str:
        first = int(np.argmin(there[router]))
        listed_with = f"{tiles.names[router]} is listed with {count[router]} of {TILES} tiles"
        return f"{listed_with}, l{first:02o} is missing"

    order = some[np.argsort(last[some], kind="stable")]
    return list_faults(order, last, "missing-tiles", text, hint="was the list cut short?")


def _find_misplaced(tiles: Tiles) -> list[Finding]:
    """Return faults for routers whose coordinates contradict their names."""
    xyz = tiles.coords
    expected = expected_coords(tiles.place, xyz)
    expected = np.where(expected < 0, xyz, expected)
    wrong = np.flatnonzero(np.any((expected != xyz) & (xyz >= 0), axis=1))
    first = np.full(len(xyz), tiles.line[-1], dtype=np.int32)
    np.minimum.at(first, tiles.a, tiles.line)
    linked = tiles.b >= 0
    np.minimum.at(first, tiles.b[linked], tiles.line[linked])

    def text(i: int) -> str:
        says = f"an XC's name says {coordinate_text(expected[i], ':')}"
        return f"{tiles.names[i]} is at {coordinate_text(xyz[i], ':')}, {says}"

    order = wrong[np.argsort(first[wrong], kind="stable")]
    return list_faults(order, first, "coordinates", text)
