"""``rtr --interconnect``: what the lists of Aries and Gemini links share.

Every line says what one tile of a router sees: a tile of another router,
or nothing. A link is listed from both of its ends; here the two are laid
side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError
from placement.readers.cray import FARTHEST, LIMITS, node_key, written
from placement.readers.faults import duplicates, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from placement.readers import rows as r
    from placement.records import Fault

__all__ = ["END_A", "END_B", "Tiles", "end_pattern", "refuse_impossible"]

#: Names of the numbers at the two ends: place, router on the blade, tile, coordinates.
END_A = ("acol", "arow", "acage", "aslot", "achip", "atile")
END_B = ("bcol", "brow", "bcage", "bslot", "bchip", "btile")

_PLACES = 64  # tile numbers a router: 48 tiles, octal l00 to l57


def end_pattern(chip: str) -> str:
    """Return the regular expression of a tile's name, ``a`` or ``g`` being the router's letter."""
    return rf"c[0-9]+-[0-9]+c[0-9]+s[0-9]+{chip}[0-9]+l[0-9]+"


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of a link list, one row a line of it.

    Attributes
    ----------
    line : int32 (n,)
    letter : str
        ``a`` (Aries) or ``g`` (Gemini).
    place : int32 (r, 5)
        Column, row, cage, slot and router number of all routers, in their order.
    names : str (r,)
    a, b : int64 (n,)
        Routers; b is -1 where the tile sees no router.
    a_tile, b_tile : int32 (n,)
    """

    line: NDArray[np.int32]
    letter: str
    place: NDArray[np.int32]
    names: NDArray[np.str_]
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    a_tile: NDArray[np.int32]
    b_tile: NDArray[np.int32]

    @classmethod
    def of(cls, rows: r.Rows, letter: str) -> Tiles:
        """Return the tiles of the rows, their routers numbered."""
        ends = rows.table(END_A), rows.table(END_B)
        linked = rows.having("btile")
        keys = [node_key(end[:, :4]) * 2 + end[:, 4] for end in ends]
        order = np.unique(np.concatenate((keys[0], keys[1][linked])))
        place = _places(order)
        a, b = (np.searchsorted(order, key) for key in keys)
        return cls(
            rows.line,
            letter,
            place,
            written(place, ("c", "-", "c", "s", letter)),
            a,
            np.where(linked, b, -1),
            _octal(ends[0][:, 5]),
            np.where(linked, _octal(ends[1][:, 5]), -1),
        )

    @property
    def ports(self) -> NDArray[np.int64]:
        """One number a tile of the whole machine, for the tile of each row."""
        return self.a * _PLACES + self.a_tile

    @property
    def peers(self) -> NDArray[np.int64]:
        """The same for the tile that is seen, -1 for none."""
        return np.where(self.b >= 0, self.b * _PLACES + self.b_tile, -1)

    def name(self, port: int) -> str:
        """Return a tile's name.

        Parameters
        ----------
        port : int
            As in `ports`.
        """
        router, tile = divmod(port, _PLACES)
        return f"{self.names[router]}l{tile:02o}"

    def row_of(self) -> NDArray[np.int64]:
        """Return the row that lists each tile of the machine, -1 where none does."""
        row = np.full(len(self.names) * _PLACES, -1, dtype=np.int64)
        row[self.ports[::-1]] = np.arange(len(self.line))[::-1]
        return row

    def listed_twice(self) -> list[Fault]:
        """Return the tiles that stand on two lines."""
        ports = self.ports
        return duplicates(
            ports, self.line, "duplicate-tile", lambda row: f"tile {self.name(int(ports[row]))}"
        )

    def one_ended(self) -> list[Fault]:
        """Return the links that are not listed from their other end."""
        row, peers, ports = self.row_of(), self.peers, self.ports
        back = np.where(peers >= 0, row[peers], -1)
        seen = np.where(back >= 0, peers[back], -1)
        wrong = np.flatnonzero((peers >= 0) & (seen != ports))

        def text(i: int) -> str:
            here, there = self.name(int(ports[i])), self.name(int(peers[i]))
            if back[i] < 0:
                return f"{here} sees {there}, which is not listed"
            what = self.name(int(seen[i])) if seen[i] >= 0 else "no router"
            return f"{here} sees {there}, which sees {what} (line {self.line[back[i]]})"

        return listed(wrong, self.line, "one-ended-link", text, hint="was the list cut short?")

    def disagreeing(
        self, same: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
    ) -> NDArray[np.int64]:
        """Return the rows of links whose two ends `same` says are of different kinds.

        Parameters
        ----------
        same : callable
            Compares two arrays of rows.
        """
        row, peers = self.row_of(), self.peers
        back = np.where(peers >= 0, row[peers], -1)
        both = np.flatnonzero((back >= 0) & (peers[back] == self.ports))
        return both[~same(both, back[both])]

    def coordinates(
        self, xyz_a: NDArray[np.int32], xyz_b: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], list[Fault]]:
        """Lay all printed coordinates of each router side by side.

        Parameters
        ----------
        xyz_a, xyz_b : int32 (n, 3)
            -1 where none are printed.

        Returns
        -------
        (int32 (r, 3), list of Fault)
            The coordinates of each router, -1 where unknown; where it is
            printed with two different ones.
        """
        router = np.concatenate((self.a, self.b))
        xyz = np.concatenate((xyz_a, xyz_b))
        line = np.concatenate((self.line, self.line))
        known = np.flatnonzero((router >= 0) & (xyz[:, 0] >= 0))
        known = known[np.argsort(line[known], kind="stable")]
        found = np.full((len(self.names), 3), -1, dtype=np.int32)
        found[router[known[::-1]]] = xyz[known[::-1]]
        wrong = known[np.any(found[router[known]] != xyz[known], axis=1)]

        def text(i: int) -> str:
            own, first = xyz[i].tolist(), found[router[i]].tolist()
            return f"{self.names[router[i]]} is at {tuple(own)} here and at {tuple(first)} above"

        return found, listed(wrong, line, "coordinates", text)


def _places(keys: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return column, row, cage, slot and router number of routers' keys: `node_key` undone."""
    place = np.empty((len(keys), 5), dtype=np.int64)
    rest, place[:, 4] = np.divmod(keys, 2)
    for column in (3, 2, 1):
        rest, place[:, column] = np.divmod(rest, LIMITS[column] + 1)
    place[:, 0] = rest
    return place.astype(np.int32)


def refuse_impossible(rows: r.Rows, name: str, coordinates: Sequence[str]) -> None:
    """Raise ParseError at the first router, tile or coordinate that no Cray has.

    Parameters
    ----------
    rows : Rows
    name : str
        The format's.
    coordinates : sequence of str
        Names of the numbers that are coordinates.
    """
    far = np.any(rows.table(coordinates) > FARTHEST, axis=1)
    if far.any():
        line = int(rows.line[int(np.argmax(far))])
        raise ParseError(rows.source, line, f"{name}: a coordinate is above {FARTHEST}")
    limits = np.array((*LIMITS[:4], 1 if name == "rtr-gemini" else 0), dtype=np.int64)
    for end in (END_A, END_B):
        numbers = rows.table(end)
        tile = numbers[:, 5]
        wrong = np.any(numbers[:, :5] > limits, axis=1) | (tile > 57) | (tile % 10 > 7)
        wrong &= rows.having(end[5])
        if wrong.any():
            row = int(np.argmax(wrong))
            router = written(numbers[row : row + 1, :5], ("c", "-", "c", "s", name[4]))[0]
            what = f"{name}: there is no tile {router}l{tile[row]:02d}"
            hint = "cages are 0 to 2, slots 0 to 15, tiles octal l00 to l57"
            raise ParseError(rows.source, int(rows.line[row]), what, hint)


def _octal(tile: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return numbers for tiles whose octal digits were read as decimal ones."""
    return tile // 10 * 8 + tile % 10
