"""``rtr --interconnect`` of an XC: every tile of every Aries router and what it sees.

48 lines a router: ``c0-0c0s0a0l00(0:0:0) green -> c0-0c0s6a0l10(0:0:6)``,
tiles in octal l00 to l57, coordinates (group:chassis:slot); a tile that sees
no tile is ``unused`` or leads to a ``processor``. Facts checked on the lists
of Edison and Theta (2,304 routers, no exception).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from placement.readers import rows as r
from placement.readers.cray import positions_of
from placement.readers.faults import in_order, listed
from placement.readers.rtr import END_A, END_B, Tiles, end_pattern, refuse_impossible
from placement.records import Dump, LinkRecords

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.records import Fault

__all__ = ["TILES", "read", "sniff"]

#: Tiles of an Aries router.
TILES = 48

_TILE = end_pattern("a") + r"\([0-9]+:[0-9]+:[0-9]+\)"
_SNIFF = re.compile(rf"^[ \t]*{_TILE}[ \t]+[a-z]+[ \t]+->[ \t]", re.I | re.M | re.A)
_XYZ_A, _XYZ_B = ("agroup", "achassis", "ablade"), ("bgroup", "bchassis", "bblade")
_HINT = "such as c0-0c0s0a0l00(0:0:0)"
_FROM = (
    r.column("from", "tile with coordinates", _TILE, *END_A, *_XYZ_A, hint=_HINT),
    r.column("kind", "colour (green, black, blue or ptile)", "green|black|blue|ptile", keep=True),
    r.column("arrow", "'->'", "->"),
)
_TO_TILE = (*_FROM, r.column("to", "tile with coordinates", _TILE, *END_B, *_XYZ_B, hint=_HINT))
_TO_NONE = (*_FROM, r.column("to", "tile, unused or processor", "unused|processor", keep=True))


def sniff(head: str) -> bool:
    """Tell whether the beginning of a text has a line of an Aries link list.

    Examples
    --------
    >>> sniff("c0-0c0s0a0l00(0:0:0) green -> c0-0c0s6a0l10(0:0:6)")
    True
    """
    return _SNIFF.search(head) is not None


def read(text: str, source: str) -> Dump:
    """Read the output of ``rtr --interconnect`` of an XC.

    Parameters
    ----------
    text : str
    source : str
        Named in errors.

    Returns
    -------
    Dump
        Links as printed (each from both ends) with coordinates, and all
        routers; fabric ``aries``; parameter ``positions`` (cabinet positions
        in a row) where the groups tell it. Faults: ``one-ended-link``,
        ``link-kind`` (two colours), ``duplicate-tile``, ``missing-tiles``,
        ``coordinates``.

    Raises
    ------
    ParseError
        At the first line that is no tile, comment or blank, or names a
        router or tile that cannot be.

    Examples
    --------
    >>> dump = read("c0-0c0s0a0l00(0:0:0) green -> c0-0c0s6a0l10(0:0:6)\\n"
    ...             "c0-0c0s6a0l10(0:0:6) green -> c0-0c0s0a0l00(0:0:0)\\n", "edison")
    >>> dump.routers.tolist(), dump.links.b_port.tolist(), [f.kind for f in dump.faults]
    (['c0-0c0s0a0', 'c0-0c0s6a0'], [8, 0], ['missing-tiles', 'missing-tiles'])
    """
    rows = r.Rows.read(text, source, "rtr-aries", _line, r.MOST_TILES)
    refuse_impossible(rows, "rtr-aries", _XYZ_A + _XYZ_B)
    tiles, kind = Tiles.of(rows, "a"), rows.word("kind")
    xyz_a, xyz_b = rows.table(_XYZ_A), rows.table(_XYZ_B)
    of_router, faults = tiles.coordinates(xyz_a, xyz_b)
    faults += tiles.listed_twice() + tiles.one_ended()
    faults += _colour_faults(tiles, kind) + _missing(tiles) + _misplaced(tiles, of_router)
    positions = positions_of(tiles.place[:, 0], tiles.place[:, 1], of_router[:, 0])
    linked = np.flatnonzero(tiles.b >= 0)
    links = LinkRecords(
        line=rows.line[linked],
        a=tiles.names[tiles.a[linked]],
        b=tiles.names[tiles.b[linked]],
        a_port=tiles.a_tile[linked],
        b_port=tiles.b_tile[linked],
        kind=kind[linked],
        coords_a=xyz_a[linked],
        coords_b=xyz_b[linked],
    )
    return Dump(
        "rtr-aries",
        source,
        rows.counts,
        links=links,
        routers=tiles.names,
        fabric="aries",
        parameters={"positions": positions} if positions else {},
        faults=in_order(faults),
    )


def _line(line: str) -> r.Row:
    words = line.split()
    if len(words) == 4 and words[3][:1] in "upUP":
        return r.columns(line, _TO_NONE)
    row = r.columns(line, _TO_TILE)
    if row.words["kind"] == "ptile":
        raise r.Refused("a ptile leads to a processor, not to a tile")
    return row


def _colour_faults(tiles: Tiles, kind: NDArray[np.str_]) -> list[Fault]:
    wrong = tiles.disagreeing(lambda x, y: np.asarray(kind[x] == kind[y]))
    ports, peers = tiles.ports, tiles.peers
    back = tiles.row_of()[peers]
    return listed(
        wrong,
        tiles.line,
        "link-kind",
        lambda i: (
            f"{tiles.name(int(ports[i]))} -> {tiles.name(int(peers[i]))} is {kind[i]} here and "
            f"{kind[back[i]]} from its other end (line {tiles.line[back[i]]})"
        ),
    )


def _missing(tiles: Tiles) -> list[Fault]:
    """Return the routers that are listed with fewer than their 48 tiles."""
    there = np.zeros((len(tiles.names), 64), dtype=np.bool_)
    there[tiles.a, tiles.a_tile] = True
    count = there.sum(axis=1)
    last = np.zeros(len(tiles.names), dtype=np.int32)
    np.maximum.at(last, tiles.a, tiles.line)
    some = np.flatnonzero((count > 0) & (count < TILES))

    def text(router: int) -> str:
        first = int(np.argmin(there[router]))
        return (
            f"{tiles.names[router]} is listed with {count[router]} of {TILES} tiles, "
            f"l{first:02o} is missing"
        )

    order = some[np.argsort(last[some], kind="stable")]
    return listed(order, last, "missing-tiles", text, hint="was the list cut short?")


def _misplaced(tiles: Tiles, xyz: NDArray[np.int32]) -> list[Fault]:
    """Return the routers whose coordinates contradict their names."""
    col, row, cage, slot = tiles.place[:, :4].T
    half = positions_of(col, row, xyz[:, 0]) // 2
    group = np.where((row > 0) & (half == 0), xyz[:, 0], row * half + col // 2)
    expected = np.stack([group, cage + 3 * (col % 2), slot], axis=1).astype(np.int32)
    wrong = np.flatnonzero(np.any((expected != xyz) & (xyz >= 0), axis=1))
    first = np.full(len(xyz), tiles.line[-1], dtype=np.int32)
    np.minimum.at(first, tiles.a, tiles.line)
    linked = tiles.b >= 0
    np.minimum.at(first, tiles.b[linked], tiles.line[linked])
    order = wrong[np.argsort(first[wrong], kind="stable")]
    return listed(
        order,
        first,
        "coordinates",
        lambda i: (
            f"{tiles.names[i]} is at {_colons(xyz[i])}, an XC's name says {_colons(expected[i])}"
        ),
    )


def _colons(xyz: NDArray[np.int32]) -> str:
    return "(" + ":".join(map(str, xyz.tolist())) + ")"
