"""Who holds what before and after an FFT, and which blocks move between: numbers only, no MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError, printable
from workloads.fft.parts import Part, Swap, cuts
from workloads.words import read_extents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.fft.basis import Field

__all__ = ["Layout", "process_grid"]

#: Bytes of a local array from which on memory is worth an exchange more.
_SMALL = 1 << 20

#: Bytes of a local array up to which pieces are as few as three arrays' memory allows.
_CACHED = 1 << 23


def process_grid(grid: str | Sequence[int], ranks: int, field: Field) -> tuple[int, int]:
    """Return rows and columns of the process grid, ranks row by row.

    Parameters
    ----------
    grid : str or sequence of two int
        ``slab``: one axis is cut, over all ranks; ``pencil``: two, on the
        grid nearest to a square with no more rows than columns; ``8x16`` or
        (8, 16): that one. FFTK's p_row = 1 is ``1xP``: y is cut and x whole,
        where ``slab`` (``Px1``) cuts x.
    ranks : int
    field : Field

    Raises
    ------
    UsageError
        A grid that does not fit the ranks, or pencils of a 2-D field.

    Examples
    --------
    >>> from workloads.fft.basis import field_of
    >>> cube = field_of((8, 8, 8), "", real=False)
    >>> process_grid("slab", 12, cube), process_grid("pencil", 12, cube)
    ((12, 1), (3, 4))
    """
    if grid == "slab" or (grid == "pencil" and field.flat):
        return ranks, 1
    if grid == "pencil":
        rows = max(d for d in range(1, int(ranks**0.5) + 1) if ranks % d == 0)
        return rows, ranks // rows
    hint = "slab, pencil or e.g. 8x16"
    found = read_extents(grid, "process grid", hint) if isinstance(grid, str) else tuple(grid)
    if len(found) != 2 or not all(isinstance(n, int) for n in found):
        raise UsageError(f"{printable(str(grid))!r} is no process grid", hint)
    rows, columns = found
    if rows < 1 or columns < 1 or rows * columns != ranks:
        raise UsageError(
            f"a process grid of {rows}x{columns} does not fit {ranks} rank{'s' * (ranks != 1)}",
            "rows times columns must be the number of ranks",
        )
    if field.flat and min(rows, columns) > 1:
        raise UsageError(
            f"a 2-D field has no pencils on {rows}x{columns} ranks", "take the slab grid"
        )
    return (ranks, 1) if field.flat else (rows, columns)


class Layout:
    """The arrays of one rank, and the pieces of them that it works on one after another.

    In space axis 0 is cut over the rows of the process grid and axis 1 over
    its columns; the spectrum has axis 1 cut over the rows and axis 2 over the
    columns, so that each of the two transpositions stays in a row or a column.

    Parameters
    ----------
    field : Field
    grid : tuple of int
        Rows and columns.
    rank : int
    itemsize : int
        Bytes of an element of the spectrum.
    pieces : int
        Pieces that forward and backward are done in; 0: chosen by size.
    packed : bool
        Whether blocks are received into a buffer as well as sent from one: a
        piece more then keeps memory below three arrays.

    Attributes
    ----------
    row, column : int
        Of this rank in the grid.
    slab : bool
        Whether axes 1 and 2 are whole on every rank in space.
    x, y, ky, kz : tuple of Part
        Axis 0 over the rows and axis 1 over the columns, in space; axis 1
        over the rows and axis 2 over the columns, of the spectrum.
    slices, spectrum_slices : tuple of slice
        Where this rank's parts stand.
    local, local_spectrum : tuple of int
        Their shapes.
    count : int
        Number of pieces; the same on all ranks.
    forward_pieces : tuple of Part
        Of this rank's part of axis 0: each goes through both transpositions.
    backward_pieces : tuple of Part
        Of its part of axis 2, which the first transposition leaves alone; of axis 1 on slabs.
    """

    def __init__(
        self,
        field: Field,
        grid: tuple[int, int],
        rank: int,
        itemsize: int,
        pieces: int = 0,
        packed: bool = False,
    ) -> None:
        rows, columns = grid
        self.field, self.grid, self.slab = field, grid, columns == 1
        self.row, self.column = divmod(rank, columns)
        self.x, self.ky = cuts(field.shape[0], rows), cuts(field.spectrum[1], rows)
        self.y, self.kz = cuts(field.shape[1], columns), cuts(field.spectrum[2], columns)
        x, ky = self.x[self.row], self.ky[self.row]
        y, kz = self.y[self.column], self.kz[self.column]
        self.slices = x.slice, y.slice, slice(0, field.shape[2])
        self.spectrum_slices = slice(0, field.spectrum[0]), ky.slice, kz.slice
        self.local = x.size, y.size, field.shape[2]
        self.local_spectrum = field.spectrum[0], ky.size, kz.size
        largest = itemsize * self.x[0].size * self.y[0].size * field.spectrum[2]
        extent = max(self.x[0].size, (self.ky if self.slab else self.kz)[0].size)
        self.count = min(pieces or self._pieces(largest, packed), extent)
        self.forward_pieces = cuts(x.size, self.count)
        self.backward_pieces = cuts((ky if self.slab else kz).size, self.count)

    def _pieces(self, largest: int, packed: bool) -> int:
        """Return into how many pieces a local array of so many bytes is cut."""
        if largest < _SMALL or self.grid == (1, 1):
            return 1
        pencil = min(self.grid) > 1
        # Below, each meeting of the ranks costs more; N/2 + 1 makes uneven pieces on pencils.
        spare = largest > _CACHED or (pencil and self.field.real)
        return 1 + pencil + (2 if packed else spare)

    def _by_piece(self, parts: Sequence[Part]) -> list[tuple[Part, ...]]:
        """Return every rank's part cut into pieces: by piece, then by rank."""
        return list(zip(*(cuts(part.size, self.count, part.start) for part in parts), strict=True))

    def column_swaps(self) -> tuple[list[Swap], list[Swap]]:
        """Return the transpositions inside a column of the grid, a piece each.

        Forward axis 1 against 0, backward axis 0 against 1.
        """
        third = self.local_spectrum[2]
        forward = [Swap(self.row, 0, 1, x, self.ky, third) for x in self._by_piece(self.x)]
        if self.slab:
            third = self.field.spectrum[2]
            back = [Swap(self.row, 1, 0, ky, self.x, third) for ky in self._by_piece(self.ky)]
        else:
            back = [Swap(self.row, 1, 0, self.ky, self.x, kz.size) for kz in self.backward_pieces]
        return forward, back

    def row_swaps(self) -> tuple[list[Swap], list[Swap]]:
        """Return those inside a row: forward axis 2 against 1, backward axis 1 against 2."""
        forward = [Swap(self.column, 1, 2, self.y, self.kz, x.size) for x in self.forward_pieces]
        x = self.local[0]
        return forward, [Swap(self.column, 2, 1, kz, self.y, x) for kz in self._by_piece(self.kz)]
