"""What an FFT is of, who holds it before and after, and which blocks move: numbers only, no MPI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from placement.errors import UsageError, printable
from workloads.trials import read_extents

T = TypeVar("T")

#: Bytes of a local array from which on memory is worth an exchange more.
_SMALL = 1 << 20

#: Bytes of a local array up to which pieces are as few as three arrays' memory allows.
_CACHED = 1 << 23


@dataclass(frozen=True, slots=True)
class Field:
    """A global array and its spectrum, axes in the order in which they are worked on.

    Inside, every array has three axes, those of extent 1 last: FFTK's 2-D
    fields (N_y = 1) and plain 2-D ones are the same thing then, and no copy
    is needed between the user's shape and this one.

    Attributes
    ----------
    shape, spectrum : tuple of int
        Extents in space and of the spectrum, three of each.
    order : tuple of int
        The user's axis that stands at each place; -1 for one that was added.
    half : int
        The axis of which a real field's spectrum keeps N/2 + 1 elements; -1 for none.
    real : bool
        Whether the field is real.

    Examples
    --------
    >>> field = field_of((8, 1, 6), real=True)
    >>> field.shape, field.spectrum, field.half
    ((8, 6, 1), (8, 4, 1), 1)
    """

    shape: tuple[int, int, int]
    spectrum: tuple[int, int, int]
    order: tuple[int, ...]
    half: int
    real: bool

    @property
    def flat(self) -> bool:
        """Whether there are two axes at most that are more than one element long."""
        return self.shape[2] == 1

    def outside(self, things: tuple[T, ...]) -> tuple[T, ...]:
        """Return what belongs to the three axes inside by the user's axes."""
        found = dict(zip(self.order, things, strict=True))
        return tuple(found[axis] for axis in range(3) if axis in found)


def field_of(shape: tuple[int, ...], real: bool) -> Field:
    """Return the field of a user's shape.

    Parameters
    ----------
    shape : tuple of int
        Two or three extents, each at least 1.
    real : bool

    Raises
    ------
    UsageError
    """
    if len(shape) not in (2, 3) or min(shape, default=0) < 1:
        raise UsageError(
            f"an FFT of {'x'.join(map(str, shape)) or 'nothing'} is none",
            "two or three sizes, each at least 1",
        )
    half = len(shape) - 1 if real else -1
    order = sorted(range(3), key=lambda axis: axis >= len(shape) or shape[axis] == 1)
    if order[0] == half:  # a line: the real axis goes first, and the first axis is the last one
        order[:2] = order[1::-1]
    a, b, c = order
    extents = [*shape, 1]
    waves_of = [n // 2 + 1 if axis == half else n for axis, n in enumerate(extents)]
    return Field(
        (extents[a], extents[b], extents[c]),
        (waves_of[a], waves_of[b], waves_of[c]),
        tuple(axis if axis < len(shape) else -1 for axis in order),
        order.index(half) if half >= 0 else -1,
        real,
    )


@dataclass(frozen=True, slots=True)
class AxisStretch:
    """A stretch of an axis.

    Examples
    --------
    >>> AxisStretch(4, 3).stop, AxisStretch(4, 3).slice
    (7, slice(4, 7, None))
    """

    start: int
    size: int

    @property
    def stop(self) -> int:
        """The element after the last."""
        return self.start + self.size

    @property
    def slice(self) -> slice:
        """The stretch as numpy takes it."""
        return slice(self.start, self.stop)


def cut_axis(extent: int, count: int, start: int = 0) -> tuple[AxisStretch, ...]:
    """Cut a stretch of an axis into `count` parts whose sizes differ by one at most.

    Parameters
    ----------
    extent : int
        Elements of the stretch; fewer than `count` leave the last parts empty.
    count : int
    start : int
        Where it begins.

    Examples
    --------
    >>> [(part.start, part.size) for part in cut_axis(10, 4)]
    [(0, 3), (3, 3), (6, 2), (8, 2)]
    """
    least, more = divmod(extent, count)
    return tuple(
        AxisStretch(start + k * least + min(k, more), least + (k < more)) for k in range(count)
    )


@dataclass(frozen=True, slots=True)
class Swap:
    """A transposition between the ranks of one row or column of the process grid.

    Before it an axis `gather` is cut over the ranks and an axis `scatter`
    whole; afterwards it is the other way round.

    Attributes
    ----------
    rank : int
        This rank in the row or column.
    gather, scatter : int
        Axes, 0 to 2.
    gathered : tuple of AxisStretch
        By rank: its part of the `gather` axis, where it stands in the target array.
    scattered : tuple of AxisStretch
        By rank: its part of the `scatter` axis, where it stands in the source array.
    other : int
        Extent of the third axis, the same on these ranks.
    """

    rank: int
    gather: int
    scatter: int
    gathered: tuple[AxisStretch, ...]
    scattered: tuple[AxisStretch, ...]
    other: int

    def source_shape(self, rank: int) -> tuple[int, int, int]:
        """Return the shape of the array that a rank has before the exchange."""
        return self._shape(self.gathered[rank].size, sum(part.size for part in self.scattered))

    def block_shape(self, source: int, target: int) -> tuple[int, int, int]:
        """Return the shape of what one rank sends another."""
        return self._shape(self.gathered[source].size, self.scattered[target].size)

    def _shape(self, gather: int, scatter: int) -> tuple[int, int, int]:
        sizes = {self.gather: gather, self.scatter: scatter}
        return sizes.get(0, self.other), sizes.get(1, self.other), sizes.get(2, self.other)

    def sent(self, target: int) -> tuple[slice, ...]:
        """Return where in a source array the block for a rank stands."""
        return _index_along(self.scatter, self.scattered[target])

    def received(self, source: int) -> tuple[slice, ...]:
        """Return where in the target array the block of a rank stands."""
        return _index_along(self.gather, self.gathered[source])

    @property
    def even(self) -> bool:
        """Whether all blocks have one size and stand at equal steps; one answer on all ranks."""
        return all(
            len({part.size for part in parts}) == 1
            and len({b.start - a.start for a, b in pairwise(parts)}) <= 1
            for parts in (self.gathered, self.scattered)
        )


def _index_along(axis: int, part: AxisStretch) -> tuple[slice, ...]:
    """Return the index of a part of one axis and all of the others."""
    return tuple(part.slice if k == axis else slice(None) for k in range(3))


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
    >>> cube = field_of((8, 8, 8), real=False)
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
        raise UsageError(f"{printable(str(grid))!r} is not a process grid", hint)
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


class ArrayLayout:
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
    x, y, ky, kz : tuple of AxisStretch
        Axis 0 over the rows and axis 1 over the columns, in space; axis 1
        over the rows and axis 2 over the columns, of the spectrum.
    slices, spectrum_slices : tuple of slice
        Where this rank's parts stand.
    local, local_spectrum : tuple of int
        Their shapes.
    count : int
        Number of pieces; the same on all ranks.
    forward_pieces : tuple of AxisStretch
        Of this rank's part of axis 0: each goes through both transpositions.
    backward_pieces : tuple of AxisStretch
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
        self.x, self.ky = cut_axis(field.shape[0], rows), cut_axis(field.spectrum[1], rows)
        self.y, self.kz = cut_axis(field.shape[1], columns), cut_axis(field.spectrum[2], columns)
        x, ky = self.x[self.row], self.ky[self.row]
        y, kz = self.y[self.column], self.kz[self.column]
        self.slices = x.slice, y.slice, slice(0, field.shape[2])
        self.spectrum_slices = slice(0, field.spectrum[0]), ky.slice, kz.slice
        self.local = x.size, y.size, field.shape[2]
        self.local_spectrum = field.spectrum[0], ky.size, kz.size
        largest = itemsize * self.x[0].size * self.y[0].size * field.spectrum[2]
        extent = max(self.x[0].size, (self.ky if self.slab else self.kz)[0].size)
        self.count = min(pieces or self._pieces(largest, packed), extent)
        self.forward_pieces = cut_axis(x.size, self.count)
        self.backward_pieces = cut_axis((ky if self.slab else kz).size, self.count)

    def _pieces(self, largest: int, packed: bool) -> int:
        """Return into how many pieces a local array of so many bytes is cut."""
        if largest < _SMALL or self.grid == (1, 1):
            return 1
        pencil = min(self.grid) > 1
        # Below, each meeting of the ranks costs more; N/2 + 1 makes uneven pieces on pencils.
        spare = largest > _CACHED or (pencil and self.field.real)
        return 1 + pencil + (2 if packed else spare)

    def _by_piece(self, parts: Sequence[AxisStretch]) -> list[tuple[AxisStretch, ...]]:
        """Return every rank's part cut into pieces: by piece, then by rank."""
        return list(
            zip(*(cut_axis(part.size, self.count, part.start) for part in parts), strict=True)
        )

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
