# SPDX-License-Identifier: Apache-2.0
"""How Crays number their nodes: positions to NIDs and network coordinates, and back.

On an XC (`Xc`) and on an XE or XK (`GeminiNumbering`) the NID follows from the place once the
shape of the machine room is known, and that shape follows from any dump that lists both
(``Xc.fit``, ``GeminiNumbering.fit``).
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from nidmap.placement.support.array_types import Ints, Ints32, Mask

Rule = TypeVar("Rule", bound="Numbering")


def columns_of(table: ArrayLike, width: int) -> list[Ints]:
    """Return the columns of an (n, width) table of whole numbers."""
    return list(np.asarray(table, dtype=np.int64).reshape(-1, width).T)


def mark_missing(good: Mask, *columns: Ints) -> Ints32:
    """Return the columns as int32 (n, k), invalid rows filled with -1."""
    return np.where(good[:, None], np.stack(columns, axis=1), -1).astype(np.int32)


class Numbering(ABC):
    """A rule that assigns NIDs and coordinates to all positions of a machine.

    Each has ``coords`` of places, int (n, 5), and ``parts_of_coords``. What is impossible is
    marked with -1.
    """

    __slots__ = ()

    @abstractmethod
    def nid(self, parts: ArrayLike) -> Ints:
        """Return the NIDs of positions, int (n, 5)."""

    @property
    @abstractmethod
    def limits(self) -> tuple[int, int, int, int, int]:
        """The numbers of columns, rows, cages, slots and nodes."""

    @classmethod
    @abstractmethod
    def candidates(cls: type[Rule], parts: Ints, nid: Ints) -> Iterator[Rule]:
        """Yield the numberings that may fit nodes of known position and NID."""

    @classmethod
    def vote(cls: type[Rule], parts: ArrayLike, nid: ArrayLike) -> tuple[Rule, Mask] | None:
        """Find the numbering that fits most nodes, and which nodes it fits.

        Returns (n,): the numbering and the mask of the nodes that agree with it (those left out
        count as agreeing); None where no node agrees with any.
        """
        table = np.asarray(parts, dtype=np.int64).reshape(-1, 5)
        number = np.asarray(nid, dtype=np.int64).reshape(-1)
        stated = (table >= 0).all(axis=1) & (number >= 0)
        best: tuple[Rule, Mask] | None = None
        for rule in cls.candidates(table[stated], number[stated]):
            agrees = stated & (rule.nid(table) == number)
            if agrees.sum() > (best[1].sum() if best else 0):
                best = rule, agrees
            if agrees.sum() == stated.sum():
                break
        return best and (best[0], best[1] | ~stated)

    @classmethod
    def fit(cls: type[Rule], parts: ArrayLike, nid: ArrayLike) -> Rule | None:
        """Find a machine's numbering from nodes of known position and NID.

        `parts` (n, 5): places; rows with a negative number say nothing and are left out. `nid`
        (n,): their NIDs; negative ones are left out. The numbering with which all nodes agree,
        the smallest where several do. None where there is none (as on a small torus that numbers
        differently) or no node was given.
        """
        vote = cls.vote(parts, nid)
        return None if vote is None or not vote[1].all() else vote[0]

    def inside(self, *parts: Ints) -> Mask:
        """Return which positions, given by their five columns, are inside the machine."""
        inside = [(p >= 0) & (p < limit) for p, limit in zip(parts, self.limits, strict=True)]
        return np.asarray(np.logical_and.reduce(inside))


_CABINET = 192  # NIDs a cabinet position: 3 cages of 16 blades of 4 nodes
_ROWS = 10_000  # a cname's row has at most four digits


@dataclass(frozen=True, slots=True)
class Xc(Numbering):
    """Positions, NIDs and Aries coordinates of a Cray XC.

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

    title: ClassVar = "XC"

    positions: int  # cabinet positions in a row, absent ones counted

    def __post_init__(self) -> None:
        if self.positions < 1:
            raise ValueError(f"{self.positions} cabinet positions in a row: at least 1 is needed")

    @property
    def floor(self) -> str:
        """The layout of the machine room in words."""
        return f"{self.positions} cabinet positions in a row"

    @property
    def groups_a_row(self) -> int:
        """Groups per row of cabinets; two neighbouring cabinets form a group."""
        return (self.positions + 1) // 2

    @property
    def limits(self) -> tuple[int, int, int, int, int]:
        """The numbers of columns, rows, cages, slots and nodes."""
        return self.positions, _ROWS, 3, 16, 4

    def nid(self, parts: ArrayLike) -> Ints:
        """Return the NIDs of positions.

        `parts` (n, 5): columns col, row, cage, slot, node. Returns (n,): -1 where the place is
        outside the machine.
        """
        col, row, cage, slot, node = columns = columns_of(parts, 5)
        number = _CABINET * (row * self.positions + col) + 64 * cage + 4 * slot + node
        return np.where(self.inside(*columns), number, -1)

    def coords(self, parts: ArrayLike) -> Ints32:
        """Return the Aries coordinates of positions.

        `parts` (n, 5): columns col, row, cage, slot, node. Returns (n, 4): columns group, chassis
        (0 to 5), blade (0 to 15), node; the first three name the router. A row of -1 outside the
        machine.
        """
        col, row, cage, slot, node = columns_of(parts, 5)
        group = row * self.groups_a_row + col // 2
        good = self.inside(col, row, cage, slot, node)
        return mark_missing(good, group, cage + 3 * (col % 2), slot, node)

    def parts_of_coords(self, coords: ArrayLike) -> Ints32:
        """Return the positions of Aries coordinates.

        `coords` (n, 4): columns group, chassis, blade, node. Returns (n, 5): a row of -1 where
        there is no such place.
        """
        group, chassis, slot, node = columns_of(coords, 4)
        row, pair = np.divmod(group, self.groups_a_row)
        col, cage = 2 * pair + chassis // 3, chassis % 3
        good = self.inside(col, row, cage, slot, node) & (chassis >= 0) & (chassis < 6)
        return mark_missing(good, col, row, cage, slot, node)

    @classmethod
    def candidates(cls, parts: Ints, nid: Ints) -> Iterator[Xc]:
        """Yield the numbering that most nodes imply.

        Where only the first row of cabinets is there, so that any P would
        do, the smallest even one that holds all columns.
        """
        positions = _vote_positions(parts, nid)
        if positions is not None:
            yield cls(positions)


def _vote_positions(parts: Ints, nid: Ints) -> int | None:
    """Return the P that most nodes imply, or the smallest even one if all are in row 0."""
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


_SLOTS = 8  # blades per cage
_Z = 24  # blades per cabinet, the length of the z axis
_SAMPLE = 64  # number of nodes on which candidates are tried before all nodes
_MORE = 32  # additional columns and rows of cabinets to try, beyond those that the nodes need
_TIES = 64  # number of equally good candidates to try on all nodes


@dataclass(frozen=True, slots=True)
class GeminiNumbering(Numbering):
    """Positions, NIDs and torus coordinates of a Cray XE or XK (Gemini).

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

    title: ClassVar = "XE or XK"

    columns: int  # cabinets in a row (P), also the extent of x
    rows: int  # rows of cabinets (Q); y has twice as many values

    def __post_init__(self) -> None:
        if self.columns < 1 or self.rows < 1:
            raise ValueError(f"{self.columns} x {self.rows} cabinets: at least 1 x 1 is needed")

    @property
    def floor(self) -> str:
        """The layout of the machine room in words."""
        return f"{self.columns} x {self.rows} cabinets"

    @property
    def limits(self) -> tuple[int, int, int, int, int]:
        """The numbers of columns, rows, cages, slots and nodes."""
        return self.columns, self.rows, 3, _SLOTS, 4

    def nid(self, parts: ArrayLike) -> Ints:
        """Return the NIDs of positions.

        `parts` (n, 5): columns col, row, cage, slot, node. Returns (n,): -1 where the place is
        outside the machine.
        """
        columns = columns_of(parts, 5)
        return np.where(self.inside(*columns), _nid_of(self.columns, self.rows, columns), -1)

    def _place(self, x: Ints, y: Ints, z: Ints) -> tuple[Ints, ...]:
        """Return col, row, cage, slot of the Gemini at x, y, z, undoing the folds."""
        odd_x = (x > 0) & (x <= self.columns // 2)
        col = np.where(x == 0, 0, np.where(odd_x, 2 * x - 1, 2 * (self.columns - x)))
        k = y // 2
        row = np.where(2 * k < self.rows, 2 * k, 2 * (self.rows - 1 - k) + 1)
        third, within = np.divmod(z, _SLOTS)
        cage = np.where(k % 2 == 0, third, 2 - third)
        slot = np.where(third == 1, _SLOTS - 1 - within, within)
        return col, row, cage, slot

    def coords(self, parts: ArrayLike) -> Ints32:
        """Return the torus coordinates of positions.

        `parts` (n, 5): columns col, row, cage, slot, node. Returns (n, 4): columns x, y, z and
        the node on its Gemini (0 or 1); a row of -1 outside the machine.
        """
        columns = columns_of(parts, 5)
        xyz = _torus_of(self.columns, self.rows, columns)
        return mark_missing(self.inside(*columns), *xyz, columns[4] % 2)

    def parts_of_coords(self, coords: ArrayLike) -> Ints32:
        """Return the positions of torus coordinates.

        `coords` (n, 4): columns x, y, z and the node on its Gemini. Returns (n, 5): a row of -1
        where there is no such place.
        """
        x, y, z, low = columns_of(coords, 4)
        limits = ((x, self.columns), (y, 2 * self.rows), (z, _Z), (low, 2))
        good = np.logical_and.reduce([(c >= 0) & (c < limit) for c, limit in limits])
        return mark_missing(good, *self._place(x, y, z), 2 * (y % 2) + low)

    @classmethod
    def candidates(cls, parts: Ints, nid: Ints) -> Iterator[GeminiNumbering]:
        """Yield the numberings that most nodes imply, those with the fewest cabinets first."""
        there = parts[:, 3] < _SLOTS
        yield from itertools.starmap(cls, _likely_floors(parts[there], nid[there]))


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
    """Return the (columns, rows) that fit most of a sample, fewest rows first."""
    if not len(nid):
        return []
    some = np.unique(np.linspace(0, len(nid) - 1, min(_SAMPLE, len(nid))).astype(np.intp))
    more_rows, more_columns = np.indices((_MORE, _MORE)).reshape(2, -1)
    columns, rows = parts[:, 0].max() + 1 + more_columns, parts[:, 1].max() + 1 + more_rows
    agree = (_nid_of(columns[:, None], rows[:, None], parts[some].T) == nid[some]).sum(axis=1)
    top = np.flatnonzero(agree == agree.max())[:_TIES]
    return list(zip(columns[top].tolist(), rows[top].tolist(), strict=True))
