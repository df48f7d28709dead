"""Places, NIDs and torus coordinates of a Cray XE or XK (Gemini).

With P columns and Q rows of cabinets, column C, row R, cage H, slot S, node N
(nodes 0 and 1 on the blade's Gemini 0, nodes 2 and 3 on Gemini 1, g = N div 2)::

    x = 0 if C = 0, (C+1)/2 if C odd, P - C/2 if C even          folded row
    k = R/2 if R even, Q-1 - R div 2 if R odd;  y = 2 k + g      folded column
    z = (S, 15-S, 16+S)[H] if k even, else (16+S, 15-S, S)[H]    serpentine
    b = (P - x) mod P;  q = 24 y + (z if y even, else 23 - z)
    if b odd: q = 48 Q - 1 - q
    NID = 96 Q b + 2 q + N mod 2

Checked on Titan (P = 25, Q = 8: a torus of 25 x 16 x 24), whose 19,200 NIDs
it fills without a gap; for Blue Waters (P = 24, Q = 12: 24 x 24 x 24) it is an
inference. Small machines number differently: where a dump gives coordinates
and NIDs, they win over this rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from placement.names.numbering import Numbering, columns_of, mark_missing
from placement.support.array_types import Ints, Ints32, Mask

__all__ = ["GeminiNumbering"]


_SLOTS = 8  # blades a cage
_Z = 24  # blades a cabinet, the length of the z axis
_SAMPLE = 64  # nodes on which candidates are tried before all nodes are
_MORE = 32  # columns and rows of cabinets that are tried, from those that the nodes need
_TIES = 64  # equally good candidates that are tried on all nodes


@dataclass(frozen=True, slots=True)
class GeminiNumbering(Numbering):
    """The numbering of an XE or XK.

    Attributes
    ----------
    columns : int
        Cabinets in a row (P), also the extent of x.
    rows : int
        Rows of cabinets (Q); y has twice as many values.

    Examples
    --------
    >>> titan = GeminiNumbering(25, 8)
    >>> titan.nid([[24, 0, 2, 0, 2]]).tolist(), titan.parts([9278]).tolist()
    ([9278], [[24, 0, 2, 0, 2]])
    >>> titan.coords([[24, 0, 2, 0, 2]]).tolist()
    [[13, 1, 16, 0]]
    """

    title: ClassVar = "XE or XK"

    columns: int
    rows: int

    def __post_init__(self) -> None:
        if self.columns < 1 or self.rows < 1:
            raise ValueError(f"{self.columns} x {self.rows} cabinets: at least 1 x 1 is needed")

    @property
    def floor(self) -> str:
        """The shape of the machine room in words."""
        return f"{self.columns} x {self.rows} cabinets"

    @property
    def limits(self) -> tuple[int, int, int, int, int]:
        """How many columns, rows, cages, slots and nodes there are."""
        return self.columns, self.rows, 3, _SLOTS, 4

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
        >>> GeminiNumbering(25, 8).nid([[0, 0, 0, 1, 0], [2, 0, 2, 0, 0], [0, 8, 0, 0, 0]]).tolist()
        [2, 1502, -1]
        """
        columns = columns_of(parts, 5)
        return np.where(self.inside(*columns), _nid_of(self.columns, self.rows, columns), -1)

    def parts(self, nid: ArrayLike) -> Ints32:
        """Return the places of NIDs.

        Parameters
        ----------
        nid : int64 (n,)

        Returns
        -------
        int32 (n, 5)
            Columns col, row, cage, slot, node; a row of -1 for a NID below 0
            or above ``96 * rows * columns - 1``.

        Examples
        --------
        >>> GeminiNumbering(25, 8).parts([19199, 19200]).tolist()
        [[1, 1, 2, 0, 3], [-1, -1, -1, -1, -1]]
        """
        number = np.asarray(nid, dtype=np.int64).reshape(-1)
        line = 96 * self.rows  # NIDs a value of x
        b, rest = np.divmod(number, line)
        q, low = np.divmod(rest, 2)
        q = np.where(b % 2 == 1, line // 2 - 1 - q, q)
        y, z = np.divmod(q, _Z)
        z = np.where(y % 2 == 1, _Z - 1 - z, z)
        place = self._place((self.columns - b) % self.columns, y, z)
        good = (number >= 0) & (b < self.columns)
        return mark_missing(good, *place, 2 * (y % 2) + low)

    def _place(self, x: Ints, y: Ints, z: Ints) -> tuple[Ints, ...]:
        """Return col, row, cage, slot of the Gemini at x, y, z: the folds undone."""
        odd_x = (x > 0) & (x <= self.columns // 2)
        col = np.where(x == 0, 0, np.where(odd_x, 2 * x - 1, 2 * (self.columns - x)))
        k = y // 2
        row = np.where(2 * k < self.rows, 2 * k, 2 * (self.rows - 1 - k) + 1)
        third, within = np.divmod(z, _SLOTS)
        cage = np.where(k % 2 == 0, third, 2 - third)
        slot = np.where(third == 1, _SLOTS - 1 - within, within)
        return col, row, cage, slot

    def coords(self, parts: ArrayLike) -> Ints32:
        """Return the torus coordinates of places.

        Parameters
        ----------
        parts : int (n, 5)
            Columns col, row, cage, slot, node.

        Returns
        -------
        int32 (n, 4)
            Columns x, y, z and the node on its Gemini (0 or 1); a row of -1
            outside the machine.

        Examples
        --------
        >>> GeminiNumbering(24, 12).coords([[1, 0, 0, 0, 3]]).tolist()
        [[1, 1, 0, 1]]
        """
        columns = columns_of(parts, 5)
        xyz = _torus_of(self.columns, self.rows, columns)
        return mark_missing(self.inside(*columns), *xyz, columns[4] % 2)

    def parts_of_coords(self, coords: ArrayLike) -> Ints32:
        """Return the places of torus coordinates.

        Parameters
        ----------
        coords : int (n, 4)
            Columns x, y, z and the node on its Gemini.

        Returns
        -------
        int32 (n, 5)
            A row of -1 where there is no such place.

        Examples
        --------
        >>> GeminiNumbering(25, 8).parts_of_coords([[13, 1, 16, 0], [25, 0, 0, 0]]).tolist()
        [[24, 0, 2, 0, 2], [-1, -1, -1, -1, -1]]
        """
        x, y, z, low = columns_of(coords, 4)
        limits = ((x, self.columns), (y, 2 * self.rows), (z, _Z), (low, 2))
        good = np.logical_and.reduce([(c >= 0) & (c < limit) for c, limit in limits])
        return mark_missing(good, *self._place(x, y, z), 2 * (y % 2) + low)

    @classmethod
    def vote(cls, parts: ArrayLike, nid: ArrayLike) -> tuple[GeminiNumbering, Mask] | None:
        """Find the columns and rows of cabinets with which most nodes agree, and which do.

        The fewest rows, then the fewest columns, where several do.

        Examples
        --------
        >>> titan = GeminiNumbering(25, 8)
        >>> nids = [7, 1502, 9278, 18000]
        >>> GeminiNumbering.fit(titan.parts(nids), nids)
        GeminiNumbering(columns=25, rows=8)
        >>> found, agrees = GeminiNumbering.vote(titan.parts(nids), [7, 1502, 9278, 17999])
        >>> found, agrees.tolist()
        (GeminiNumbering(columns=25, rows=8), [True, True, True, False])
        """
        table = np.asarray(parts, dtype=np.int64).reshape(-1, 5)
        number = np.asarray(nid, dtype=np.int64).reshape(-1)
        silent = (table < 0).any(axis=1) | (number < 0) | (table[:, 3] >= _SLOTS)
        best: tuple[GeminiNumbering, Mask] | None = None
        for shape in _likely_floors(table[~silent], number[~silent]):
            rule = cls(*shape)
            agrees = rule.nid(table) == number
            if agrees.sum() > (best[1].sum() if best else 0):
                best = rule, agrees
            if agrees.sum() == len(number) - silent.sum():
                break
        return best and (best[0], best[1] | (silent & (table[:, 3] < _SLOTS)))


def _torus_of(columns: Ints | int, rows: Ints | int, parts: Ints | Sequence[Ints]) -> list[Ints]:
    """Return x, y, z by the rule; `columns` and `rows` may be arrays of candidates."""
    col, row, cage, slot, node = parts
    x = np.where(col % 2 == 1, (col + 1) // 2, np.where(col == 0, 0, columns - col // 2))
    k = np.where(row % 2 == 0, row // 2, rows - 1 - row // 2)
    third = np.where(k % 2 == 0, cage, 2 - cage)
    return [x, 2 * k + node // 2, _SLOTS * third + np.where(third == 1, _SLOTS - 1 - slot, slot)]


def _nid_of(columns: Ints | int, rows: Ints | int, parts: Ints | Sequence[Ints]) -> Ints:
    """Return the NIDs by the rule; `columns` and `rows` may be arrays of candidates."""
    x, y, z = _torus_of(columns, rows, parts)
    b = (columns - x) % columns
    q = _Z * y + np.where(y % 2 == 0, z, _Z - 1 - z)
    q = np.where(b % 2 == 1, 48 * rows - 1 - q, q)
    return np.asarray(96 * rows * b + 2 * q + parts[4] % 2)


def _likely_floors(parts: Ints, nid: Ints) -> list[tuple[int, int]]:
    """Return the (columns, rows) that most of a sample agrees with, fewest rows first."""
    if not len(nid):
        return []
    some = np.unique(np.linspace(0, len(nid) - 1, min(_SAMPLE, len(nid))).astype(np.intp))
    more_rows, more_columns = np.indices((_MORE, _MORE)).reshape(2, -1)
    columns, rows = parts[:, 0].max() + 1 + more_columns, parts[:, 1].max() + 1 + more_rows
    agree = (_nid_of(columns[:, None], rows[:, None], parts[some].T) == nid[some]).sum(axis=1)
    top = np.flatnonzero(agree == agree.max())[:_TIES]
    return list(zip(columns[top].tolist(), rows[top].tolist(), strict=True))
