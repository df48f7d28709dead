# SPDX-License-Identifier: Apache-2.0
"""``rtr --interconnect``: what the lists of Aries and Gemini links share.

Every line says what one tile of a router sees: a tile of another router,
or nothing. A link is listed from both of its ends; here the two are laid
side by side.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nidmap.placement.errors import ParseError
from nidmap.placement.names import write_names
from nidmap.placement.readers import rows as r
from nidmap.placement.readers.cray_formats import LIMITS, duplicates, list_faults, node_key
from nidmap.placement.records import Dump, Finding, LinkRecords
from nidmap.placement.support.array_types import Array, Ints, Ints32, Mask

#: Names of the numbers at the two ends: place, router on the blade, tile; coordinates.
END_A = ("acol", "arow", "acage", "aslot", "achip", "atile")
END_B = ("bcol", "brow", "bcage", "bslot", "bchip", "btile")
XYZ_A, XYZ_B = ("ax", "ay", "az"), ("bx", "by", "bz")

_PLACES = 64  # tile numbers per router: 48 tiles, octal l00 to l57


def tile_columns(chips: str, mark: str, brackets: str, kind: r.Column) -> tuple[r.Column, ...]:
    """Return the columns of a tile, its link's kind and its neighbour.

    `chips`: pattern of the routers of a blade, with a group for the number: ``a(0)``. `mark`:
    what is between coordinates. `brackets`: pattern of coordinates in their brackets, ``xyz``
    standing for the numbers.
    """
    blade = "c([0-9]{1,3})-([0-9]{1,3})c([0-2])s([0-9]|1[0-5])"
    place = brackets.replace("xyz", mark.join([r.COORDINATE] * 3))
    tile = f"{blade}{chips}l([0-5][0-7]){place}"
    hint = "such as c0-0c0s0a0l00(0:0:0): cages 0 to 2, slots 0 to 15, tiles octal l00 to l57"
    return (
        r.Column("tile", tile, END_A + XYZ_A, hint),
        kind,
        r.Column("'->'", "->"),
        r.Column("tile, unused or processor", f"{tile}|unused|processor", END_B + XYZ_B, hint),
    )


class Tiles:
    """The tiles of a link list, one row per line.

    `a`, `b` (n,): routers; b is -1 where the tile sees no router. `a_tile`, `b_tile` (n,).
    `xyz_a`, `xyz_b` (n, 3): coordinates as printed, -1 where none are.
    """

    def __init__(self, text: str, source: str, name: str, parser: r.Parser) -> None:
        """Read the rows of a link list, refusing impossible links."""
        self.rows = rows = r.read_rows(text, source, name, parser)
        self.line = rows.line  # (n,)
        ends, linked = (rows.table(END_A), rows.table(END_B)), rows.having("btile")
        self.xyz_a, self.xyz_b = rows.table(XYZ_A), rows.table(XYZ_B)
        self._refuse_inward(name, linked)
        keys = [node_key(end[:, :4]) * 2 + end[:, 4] for end in ends]
        order = np.unique(np.concatenate((keys[0], keys[1][linked])))
        # (r, 5), column, row, cage, slot and router number of all routers, in their order
        self.place = _router_places(order)
        self.names = write_names(self.place, ("c", "-", "c", "s", name[4]))  # (r,), of all routers
        a_tile, b_tile = (end[:, 5] // 10 * 8 + end[:, 5] % 10 for end in ends)  # octal digits
        self.a, b = (np.searchsorted(order, key) for key in keys)
        self.b, self.a_tile, self.b_tile = np.where(linked, b, -1), a_tile, b_tile
        # ports, peers: (n,), the tile of each row and its neighbour, as numbers unique in the
        # machine; -1 for none
        self.ports = self.a * _PLACES + a_tile
        self.peers = np.where(linked, b * _PLACES + b_tile, -1)
        row = np.full(len(self.names) * _PLACES, -1, dtype=np.int64)
        row[self.ports[::-1]] = np.arange(len(rows.line))[::-1]
        # (n,), the row that lists the tile that is seen, -1 where none does
        self.back = np.where(linked, row[self.peers], -1)
        # (r, 3), coordinates of each router as first printed, -1 where unknown
        self.coords = np.full((len(self.names), 3), -1, dtype=np.int32)

    def _refuse_inward(self, name: str, linked: Mask) -> None:
        """Raise ParseError at the first processor tile that is linked to another tile."""
        kind = self.rows.column("kind")
        inward = np.flatnonzero(linked & np.isin(kind, ("ptile", "host")))
        if inward.size:
            tile = str(kind[inward[0]]).replace("host", "host tile")
            what = f"{name}: a {tile} leads to a processor, not to a tile"
            raise ParseError(self.rows.source, int(self.line[inward[0]]), what)

    def name(self, port: int) -> str:
        """Return the name of a tile given its numbers as in `ports`."""
        router, tile = divmod(int(port), _PLACES)
        return f"{self.names[router]}l{tile:02o}"

    def faults(self) -> list[Finding]:
        """Find the coordinates, and return the faults in them and in the ends of links."""
        ports = self.ports
        twice = duplicates(
            ports, self.line, "duplicate-tile", lambda row: f"tile {self.name(ports[row])}"
        )
        return [*self._lay_out(), *twice, *self._one_ended()]

    def _one_ended(self) -> list[Finding]:
        """Return faults for links that are not listed from their other end."""
        back = self.back
        seen = np.where(back >= 0, self.peers[back], -1)
        wrong = np.flatnonzero((self.peers >= 0) & (seen != self.ports))

        def text(i: int) -> str:
            sees = f"{self.name(self.ports[i])} sees {self.name(self.peers[i])}, which"
            if back[i] < 0:
                return f"{sees} is not listed"
            what = self.name(seen[i]) if seen[i] >= 0 else "no router"
            return f"{sees} sees {what} (line {self.line[back[i]]})"

        return list_faults(wrong, self.line, "one-ended-link", text, hint="was the list cut short?")

    def _lay_out(self) -> list[Finding]:
        """Set `coords`, and return faults for routers with two different coordinates."""
        router = np.concatenate((self.a, self.b))
        xyz = np.concatenate((self.xyz_a, self.xyz_b))
        line = np.concatenate((self.line, self.line))
        known = np.flatnonzero((router >= 0) & (xyz[:, 0] >= 0))
        known = known[np.argsort(line[known], kind="stable")]
        coords = self.coords
        coords[router[known[::-1]]] = xyz[known[::-1]]
        wrong = known[np.any(coords[router[known]] != xyz[known], axis=1)]

        def text(i: int) -> str:
            here, first = xyz[i].tolist(), coords[router[i]].tolist()
            return f"{self.names[router[i]]} is at {tuple(here)} here and at {tuple(first)} above"

        return list_faults(wrong, line, "coordinates", text)

    def dump(
        self, fabric: str, parameters: Mapping[str, object], faults: list[Finding], **columns: Array
    ) -> Dump:
        """Return the dump of the routers, and of the links as printed.

        `fabric`: ``aries`` or ``gemini``. `columns` (n,): the columns of `LinkRecords` that are
        not of the ends.
        """
        rows = np.flatnonzero(self.b >= 0)
        if (self.coords >= 0).any():
            columns |= {"coords_a": self.xyz_a, "coords_b": self.xyz_b}
        links = LinkRecords(
            line=self.line[rows],
            a=self.names[self.a[rows]],
            b=self.names[self.b[rows]],
            a_port=self.a_tile[rows],
            b_port=self.b_tile[rows],
            **{name: column[rows] for name, column in columns.items()},
        )
        return Dump(
            self.rows.counts,
            links=links,
            routers=self.names,
            fabric=fabric,
            parameters=parameters,
            findings=faults,
        )


def _router_places(keys: Ints) -> Ints32:
    """Return column, row, cage, slot and router number of router keys, inverting `node_key`."""
    place = np.empty((len(keys), 5), dtype=np.int32)
    rest, place[:, 4] = np.divmod(keys, 2)
    for column in (3, 2, 1):
        rest, place[:, column] = np.divmod(rest, LIMITS[column] + 1)
    place[:, 0] = rest
    return place
