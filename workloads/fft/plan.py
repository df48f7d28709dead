# SPDX-License-Identifier: Apache-2.0
"""An FFT's field, its distribution before and after, and the blocks to move: no MPI involved."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from nidmap.placement.errors import UsageError, printable
from nidmap.workloads.trials import read_extents

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Field:
    """A global array and its spectrum, axes in processing order.

    Inside, the axes of extent 1 are the last ones, as of FFTK's 2-D fields (N_y = 1); no
    copy is needed between the user's shape and this one.
    """

    # shape, spectrum: extents in space and of the spectrum, three of each
    shape: tuple[int, int, int]
    spectrum: tuple[int, int, int]
    order: tuple[int, int, int]  # the user's axis that is at each place
    half: int  # the axis of which a real field's spectrum keeps N/2 + 1 elements; -1 for none

    @property
    def flat(self) -> bool:
        """Whether at most two axes are longer than one element."""
        return self.shape[2] == 1

    def outside(self, things: tuple[T, ...]) -> tuple[T, ...]:
        """Reorder values from the three inner axes to the user's axes."""
        return tuple(things[self.order.index(axis)] for axis in range(3))


def field_of(shape: tuple[int, ...], real: bool) -> Field:
    """Return the field for a user's shape.

    `shape`: three extents, each at least 1.
    """
    if len(shape) != 3 or min(shape) < 1:
        raise UsageError(
            f"invalid FFT shape {'x'.join(map(str, shape)) or '(none)'}",
            "two or three sizes, each at least 1",
        )
    half = 2 if real else -1
    order = sorted(range(3), key=lambda axis: shape[axis] == 1)
    if order[0] == half:  # a line: the real axis goes first, and the first axis is the last one
        order[:2] = order[1::-1]
    waves = [n // 2 + 1 if axis == half else n for axis, n in enumerate(shape)]
    a, b, c = order
    return Field(
        (shape[a], shape[b], shape[c]),
        (waves[a], waves[b], waves[c]),
        (a, b, c),
        order.index(half) if real else -1,
    )


def cut_axis(extent: int, count: int) -> tuple[slice, ...]:
    """Cut an axis into `count` slices whose sizes differ by at most one.

    `extent`: elements of the axis; fewer than `count` leave the last stretches empty.
    """
    least, more = divmod(extent, count)
    starts = [k * least + min(k, more) for k in range(count + 1)]
    return tuple(slice(*ends) for ends in pairwise(starts))


def stretch_size(stretch: slice) -> int:
    """Return the number of elements of a slice."""
    return int(stretch.stop - stretch.start)


@dataclass(frozen=True, slots=True)
class Swap:
    """A transposition between the ranks of one row or column of the process grid.

    Before it an axis `gather` is cut over the ranks and an axis `scatter`
    whole; afterwards it is the other way round.
    """

    rank: int  # this rank in the row or column
    # gather, scatter: axes, 0 to 2
    gather: int
    scatter: int
    # By rank: its part of the `gather` axis, where it is in the target array
    gathered: tuple[slice, ...]
    # By rank: its part of the `scatter` axis, where it is in the source array
    scattered: tuple[slice, ...]
    other: int  # extent of the third axis, the same on these ranks

    def reverse(self) -> Swap:
        """Return the transposition that undoes this one."""
        return Swap(self.rank, self.scatter, self.gather, self.scattered, self.gathered, self.other)

    @property
    def source_shape(self) -> tuple[int, int, int]:
        """Shape of this rank's array before the exchange."""
        return self._shape(stretch_size(self.gathered[self.rank]), self.scattered[-1].stop)

    @property
    def target_shape(self) -> tuple[int, int, int]:
        """Shape of this rank's array after it."""
        return self._shape(self.gathered[-1].stop, stretch_size(self.scattered[self.rank]))

    def sent_shapes(self) -> list[tuple[int, int, int]]:
        """Return the shapes of the blocks that this rank sends, by rank."""
        mine = stretch_size(self.gathered[self.rank])
        return [self._shape(mine, stretch_size(part)) for part in self.scattered]

    def received_shapes(self) -> list[tuple[int, int, int]]:
        """Return the shapes of the blocks that this rank receives, by rank."""
        return self.reverse().sent_shapes()

    def _shape(self, gather: int, scatter: int) -> tuple[int, int, int]:
        sizes = {self.gather: gather, self.scatter: scatter}
        return sizes.get(0, self.other), sizes.get(1, self.other), sizes.get(2, self.other)

    @property
    def even(self) -> bool:
        """Whether all blocks have equal size; the same answer on all ranks."""
        return all(len(set(map(stretch_size, p))) == 1 for p in (self.gathered, self.scattered))


def index_along(axis: int, part: slice) -> tuple[slice, ...]:
    """Return the index of a slice along one axis and everything along the others."""
    return tuple(part if k == axis else slice(None) for k in range(3))


def process_grid(grid: str, ranks: int, field: Field) -> tuple[int, int]:
    """Return rows and columns of the process grid, with ranks row by row.

    `grid`: ``slab``: one axis is cut, over all ranks; ``pencil``: two, on the grid nearest to a
    square with no more rows than columns; ``8x16``: that one. FFTK's p_row = 1 is ``1xP``: y is
    cut and x whole, where ``slab`` (``Px1``) cuts x.
    """
    if grid == "slab" or (grid == "pencil" and field.flat):
        return ranks, 1
    if grid == "pencil":
        rows = max(d for d in range(1, int(ranks**0.5) + 1) if ranks % d == 0)
        return rows, ranks // rows
    hint = "slab, pencil or e.g. 8x16"
    extents = read_extents(grid, "process grid", hint)
    if len(extents) != 2:
        raise UsageError(f"{printable(grid)!r} is not a process grid", hint)
    rows, columns = extents
    if rows < 1 or columns < 1 or rows * columns != ranks:
        raise UsageError(
            f"a process grid of {rows}x{columns} does not match {ranks} rank{'s' * (ranks != 1)}",
            "rows times columns must be the number of ranks",
        )
    if field.flat and min(rows, columns) > 1:
        raise UsageError(
            f"a 2-D field has no pencils on {rows}x{columns} ranks", "use the slab grid"
        )
    return (ranks, 1) if field.flat else (rows, columns)


class ArrayLayout:
    """The arrays of one rank, and how they are transposed.

    In space axis 0 is cut over the rows of the process grid and axis 1 over
    its columns; the spectrum has axis 1 cut over the rows and axis 2 over the
    columns, so that each of the two transpositions stays in a row or a column.

    `grid`: rows and columns. `row`, `column`: of this rank in the grid. `local`,
    `local_spectrum`: their shapes.
    """

    def __init__(self, field: Field, grid: tuple[int, int], rank: int) -> None:
        rows, columns = grid
        self.field, self.grid = field, grid
        self.row, self.column = divmod(rank, columns)
        x, ky = cut_axis(field.shape[0], rows), cut_axis(field.spectrum[1], rows)
        y, kz = cut_axis(field.shape[1], columns), cut_axis(field.spectrum[2], columns)
        # slices, spectrum_slices: positions of this rank's parts
        self.slices = x[self.row], y[self.column], slice(0, field.shape[2])
        self.spectrum_slices = slice(0, field.spectrum[0]), ky[self.row], kz[self.column]
        self.local, self.local_spectrum = (
            (stretch_size(a), stretch_size(b), stretch_size(c))
            for a, b, c in (self.slices, self.spectrum_slices)
        )
        # row_swap, column_swap: forward, between the ranks of a row axis 2 against 1, then between
        # those of a column axis 1 against 0
        self.row_swap = Swap(self.column, 1, 2, y, kz, self.local[0])
        self.column_swap = Swap(self.row, 0, 1, x, ky, self.local_spectrum[2])
