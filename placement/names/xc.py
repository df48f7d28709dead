"""Places, NIDs and Aries coordinates of a Cray XC.

With P cabinet positions in a row (absent cabinets counted), column C, row R,
cage H, slot S and node N::

    NID     = 192 (R P + C) + 64 H + 4 S + N
    group   = R P/2 + C div 2
    chassis = H + 3 (C mod 2)
    blade   = S

Checked without exception on 15,379 nodes of Piz Daint (P = 10), Edison
(P = 8) and Cori (P = 12), and on the routers of Edison and Theta. Where P is
odd, which no machine seen had, the last cabinet of a row is taken to be a
group of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from placement.names.numbering import Numbering, columns_of, mark_missing
from placement.support.array_types import Ints, Ints32, Mask

__all__ = ["Xc"]

_CABINET = 192  # NIDs a cabinet position: 3 cages of 16 blades of 4 nodes
_ROWS = 10_000  # a cname's row has at most four digits


@dataclass(frozen=True, slots=True)
class Xc(Numbering):
    """The numbering of an XC.

    Attributes
    ----------
    positions : int
        Cabinet positions in a row, absent ones counted.

    Examples
    --------
    >>> shaheen = Xc(12)
    >>> shaheen.nid([[11, 2, 0, 15, 3]]).tolist(), shaheen.parts([6783]).tolist()
    ([6783], [[11, 2, 0, 15, 3]])
    >>> shaheen.coords([[11, 2, 0, 15, 3]]).tolist()
    [[17, 3, 15, 3]]
    """

    title: ClassVar = "XC"

    positions: int

    def __post_init__(self) -> None:
        if self.positions < 1:
            raise ValueError(f"{self.positions} cabinet positions in a row: at least 1 is needed")

    @property
    def floor(self) -> str:
        """The shape of the machine room in words."""
        return f"{self.positions} cabinet positions in a row"

    @property
    def groups_a_row(self) -> int:
        """Groups in a row of cabinets: two neighbouring cabinets each."""
        return (self.positions + 1) // 2

    @property
    def limits(self) -> tuple[int, int, int, int, int]:
        """How many columns, rows, cages, slots and nodes there are."""
        return self.positions, _ROWS, 3, 16, 4

    def nid(self, parts: ArrayLike) -> Ints:
        """Return the NIDs of places.

        Parameters
        ----------
        parts : int (n, 5)
            Columns col, row, cage, slot, node.

        Returns
        -------
        int64 (n,)
            -1 where the place is outside the machine.

        Examples
        --------
        >>> Xc(10).nid([[0, 1, 2, 15, 3], [10, 0, 0, 0, 0]]).tolist()
        [2111, -1]
        """
        col, row, cage, slot, node = columns = columns_of(parts, 5)
        number = _CABINET * (row * self.positions + col) + 64 * cage + 4 * slot + node
        return np.where(self.inside(*columns), number, -1)

    def parts(self, nid: ArrayLike) -> Ints32:
        """Return the places of NIDs.

        Parameters
        ----------
        nid : int64 (n,)

        Returns
        -------
        int32 (n, 5)
            Columns col, row, cage, slot, node; a row of -1 for a NID that is
            negative or beyond what a cname can say.

        Examples
        --------
        >>> Xc(12).parts([6783, -5]).tolist()
        [[11, 2, 0, 15, 3], [-1, -1, -1, -1, -1]]
        """
        number = np.asarray(nid, dtype=np.int64).reshape(-1)
        cabinet, rest = np.divmod(number, _CABINET)
        row, col = np.divmod(cabinet, self.positions)
        cage, rest = np.divmod(rest, 64)
        slot, node = np.divmod(rest, 4)
        return mark_missing((number >= 0) & (row < _ROWS), col, row, cage, slot, node)

    def coords(self, parts: ArrayLike) -> Ints32:
        """Return the Aries coordinates of places.

        Parameters
        ----------
        parts : int (n, 5)
            Columns col, row, cage, slot, node.

        Returns
        -------
        int32 (n, 4)
            Columns group, chassis (0 to 5), blade (0 to 15), node; the first
            three name the router. A row of -1 outside the machine.

        Examples
        --------
        >>> Xc(8).coords([[2, 3, 0, 2, 1]]).tolist()
        [[13, 0, 2, 1]]
        """
        col, row, cage, slot, node = columns_of(parts, 5)
        group = row * self.groups_a_row + col // 2
        good = self.inside(col, row, cage, slot, node)
        return mark_missing(good, group, cage + 3 * (col % 2), slot, node)

    def parts_of_coords(self, coords: ArrayLike) -> Ints32:
        """Return the places of Aries coordinates.

        Parameters
        ----------
        coords : int (n, 4)
            Columns group, chassis, blade, node.

        Returns
        -------
        int32 (n, 5)
            A row of -1 where there is no such place.

        Examples
        --------
        >>> Xc(12).parts_of_coords([[17, 3, 15, 3], [0, 6, 0, 0]]).tolist()
        [[11, 2, 0, 15, 3], [-1, -1, -1, -1, -1]]
        """
        group, chassis, slot, node = columns_of(coords, 4)
        row, pair = np.divmod(group, self.groups_a_row)
        col, cage = 2 * pair + chassis // 3, chassis % 3
        good = self.inside(col, row, cage, slot, node) & (chassis >= 0) & (chassis < 6)
        return mark_missing(good, col, row, cage, slot, node)

    @classmethod
    def vote(cls, parts: ArrayLike, nid: ArrayLike) -> tuple[Xc, Mask] | None:
        """Find the number of positions with which most nodes agree, and which do.

        Where only the first row of cabinets is there, so that any P would
        do, the smallest even one that holds all columns.

        Examples
        --------
        >>> xc = Xc(10)
        >>> Xc.fit(xc.parts([5, 4000, 7000]), [5, 4000, 7000])
        Xc(positions=10)
        >>> Xc.fit([[3, 0, 0, 0, 0]], [576])
        Xc(positions=4)
        >>> xc, agrees = Xc.vote([[0, 1, 0, 0, 0], [1, 1, 0, 0, 0], [2, 1, 0, 0, 0]], [768, 960, 7])
        >>> xc.positions, agrees.tolist()
        (4, [True, True, False])
        """
        table = np.asarray(parts, dtype=np.int64).reshape(-1, 5)
        number = np.asarray(nid, dtype=np.int64).reshape(-1)
        silent = (table < 0).any(axis=1) | (number < 0)
        positions = _vote_positions(table[~silent], number[~silent])
        if positions is None:
            return None
        rule = cls(positions)
        return rule, silent | (rule.nid(table) == number)


def _vote_positions(parts: Ints, nid: Ints) -> int | None:
    """Return the P that most nodes imply; the smallest even one where all are in row 0."""
    col, row, cage, slot, node = parts.T
    cabinet, rest = np.divmod(nid, _CABINET)
    sound = rest == 64 * cage + 4 * slot + node
    telling = sound & (row > 0)
    implied, left = np.divmod((cabinet - col)[telling], row[telling])
    implied = implied[(left == 0) & (implied > col[telling])]
    if len(implied):
        values, votes = np.unique(implied, return_counts=True)
        return int(values[np.argmax(votes)])
    first = sound & (row == 0) & (cabinet == col)
    if not first.any():
        return None
    return int(col[first].max()) // 2 * 2 + 2
