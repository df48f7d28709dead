"""Who holds what before and after an FFT, and which blocks move between: numbers only, no MPI."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from workloads.fft.parts import Swap, cuts

if TYPE_CHECKING:
    from workloads.fft.basis import Field
    from workloads.fft.parts import Part

__all__ = ["Layout"]

#: Bytes of a local array from which on memory is worth an exchange more.
_SMALL = 1 << 20

#: Bytes of a local array up to which pieces are as few as three arrays' memory allows.
_CACHED = 1 << 23


@dataclass(frozen=True)
class Layout:
    """The arrays of one rank.

    In space axis 0 is cut over the rows of the process grid and axis 1 over
    its columns; the spectrum has axis 1 cut over the rows and axis 2 over the
    columns, so that each of the two transpositions stays in a row or a column.

    Attributes
    ----------
    field : Field
    grid : tuple of int
        Rows and columns.
    rank : int
    pieces : int
        Pieces that forward and backward are done in; 0: chosen by size.
    itemsize : int
        Bytes of an element of the spectrum.
    packed : bool
        Whether blocks are received into a buffer as well as sent from one: a
        piece more then keeps memory below three arrays.
    """

    field: Field
    grid: tuple[int, int]
    rank: int
    itemsize: int
    pieces: int = 0
    packed: bool = False

    @property
    def row(self) -> int:
        """Row of this rank in the grid."""
        return self.rank // self.grid[1]

    @property
    def column(self) -> int:
        """Column of this rank in the grid."""
        return self.rank % self.grid[1]

    @cached_property
    def x(self) -> tuple[Part, ...]:
        """Axis 0 over the rows, in space."""
        return cuts(self.field.shape[0], self.grid[0])

    @cached_property
    def y(self) -> tuple[Part, ...]:
        """Axis 1 over the columns, in space."""
        return cuts(self.field.shape[1], self.grid[1])

    @cached_property
    def ky(self) -> tuple[Part, ...]:
        """Axis 1 over the rows, in the spectrum."""
        return cuts(self.field.spectrum[1], self.grid[0])

    @cached_property
    def kz(self) -> tuple[Part, ...]:
        """Axis 2 over the columns, in the spectrum."""
        return cuts(self.field.spectrum[2], self.grid[1])

    @property
    def local(self) -> tuple[int, int, int]:
        """Shape of this rank's part in space."""
        return self.x[self.row].size, self.y[self.column].size, self.field.shape[2]

    @property
    def local_spectrum(self) -> tuple[int, int, int]:
        """Shape of this rank's part of the spectrum."""
        return self.field.spectrum[0], self.ky[self.row].size, self.kz[self.column].size

    @property
    def middle(self) -> tuple[int, int, int]:
        """Shape of the spectrum along axis 2 before axis 1 is transformed."""
        return self.x[self.row].size, self.y[self.column].size, self.field.spectrum[2]

    @cached_property
    def count(self) -> int:
        """Number of pieces; the same on all ranks."""
        extent = max(self.x[0].size, self.ky[0].size if self.slab else self.kz[0].size)
        if self.pieces:
            return min(self.pieces, extent)
        largest = self.itemsize * self.x[0].size * self.y[0].size * self.field.spectrum[2]
        if largest < _SMALL or self.grid == (1, 1):
            return 1
        pencil = min(self.grid) > 1
        # Below, each meeting of the ranks costs more; N/2 + 1 makes uneven pieces on pencils.
        spare = largest > _CACHED or (pencil and self.field.real)
        return min(1 + pencil + (2 if self.packed else spare), extent)

    @property
    def slab(self) -> bool:
        """Whether axes 1 and 2 are whole on every rank in space."""
        return self.grid[1] == 1

    # Forward: pieces of axis 0 go through both transpositions one after the other.

    @cached_property
    def _x_pieces(self) -> list[tuple[Part, ...]]:
        return [part.cut(self.count) for part in self.x]

    def forward_piece(self, piece: int) -> Part:
        """Return a piece of this rank's part of axis 0, with starts of that part."""
        return cuts(self.x[self.row].size, self.count)[piece]

    def forward_columns(self) -> list[Swap]:
        """Return the transpositions of axis 2 against 1, inside a row of the grid."""
        return [
            Swap(self.column, 1, 2, self.y, self.kz, self.forward_piece(piece).size)
            for piece in range(self.count)
        ]

    def forward_rows(self) -> list[Swap]:
        """Return the transpositions of axis 1 against 0, inside a column of the grid."""
        return [
            Swap(
                self.row,
                0,
                1,
                tuple(pieces[piece] for pieces in self._x_pieces),
                self.ky,
                self.kz[self.column].size,
            )
            for piece in range(self.count)
        ]

    # Backward: pieces of an axis that the first transposition leaves alone where there is one.

    @property
    def backward_axis(self) -> int:
        """The axis that backward is cut in pieces along."""
        return 1 if self.slab else 2

    def backward_piece(self, piece: int) -> Part:
        """Return a piece of this rank's part of `backward_axis`, with starts of that part."""
        part = self.ky[self.row] if self.slab else self.kz[self.column]
        return cuts(part.size, self.count)[piece]

    def backward_rows(self) -> list[Swap]:
        """Return the transpositions of axis 0 against 1, inside a column of the grid."""
        swaps = []
        for piece in range(self.count):
            gathered = self.ky
            other = self.backward_piece(piece).size
            if self.slab:
                gathered = tuple(part.cut(self.count)[piece] for part in self.ky)
                other = self.field.spectrum[2]
            swaps.append(Swap(self.row, 1, 0, gathered, self.x, other))
        return swaps

    def backward_columns(self) -> list[Swap]:
        """Return the transpositions of axis 1 against 2, inside a row of the grid."""
        pieces = [part.cut(self.count) for part in self.kz]
        return [
            Swap(
                self.column,
                2,
                1,
                tuple(cut[piece] for cut in pieces),
                self.y,
                self.x[self.row].size,
            )
            for piece in range(self.count)
        ]
