"""The process grid of an FFT: slab, pencil, or one that the user gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workloads.fft.basis import Field

__all__ = ["process_grid"]


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
    rows, columns = _named(grid, ranks, field)
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


def _named(grid: str | Sequence[int], ranks: int, field: Field) -> tuple[int, int]:
    if isinstance(grid, str):
        if grid == "slab" or (grid == "pencil" and field.flat):
            return ranks, 1
        if grid == "pencil":
            rows = max(d for d in range(1, int(ranks**0.5) + 1) if ranks % d == 0)
            return rows, ranks // rows
        words = grid.lower().split("x")
        if len(words) != 2 or not all(w.isascii() and w.isdigit() and len(w) < 10 for w in words):
            raise UsageError(f"{printable(grid)!r} is no process grid", "slab, pencil or e.g. 8x16")
        return int(words[0]), int(words[1])
    given = tuple(grid)
    if len(given) != 2 or not all(isinstance(n, int) for n in given):
        raise UsageError(f"{printable(str(given))} is no process grid", "rows and columns")
    return int(given[0]), int(given[1])
