"""The grid of units and who is next to whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from placement.errors import UsageError
from placement.support.lazy import lazy
from workloads.words import read_extents

if TYPE_CHECKING:
    from rankmap.grid import dims as dims_of
else:
    dims_of = lazy("rankmap.grid.dims")

__all__ = ["NONE", "OPPOSITE", "grid_of", "neighbours"]

#: No neighbour there: MPI_PROC_NULL's place in our own numbers.
NONE = -1

#: Of each direction (down and up along each axis) the one that leads back.
OPPOSITE = (1, 0, 3, 2, 5, 4)


def grid_of(dims: str, ranks: int) -> tuple[int, int, int]:
    """Return the extents of the grid of units.

    Parameters
    ----------
    dims : str
        ``auto``: the box of least surface; ``4x2x2``; fewer than three
        extents leave the last axes one unit thick.
    ranks : int

    Raises
    ------
    UsageError
        A grid that does not fit the ranks.

    Examples
    --------
    >>> grid_of("auto", 24), grid_of("8x3", 24)
    ((4, 3, 2), (8, 3, 1))
    """
    if dims == "auto":
        x, y, z = dims_of.balanced_factors(ranks, 3)
        return x, y, z
    extents = read_extents(dims, "grid", "e.g. 4x4x2, or auto")
    if len(extents) > 3 or min(extents) < 1 or math.prod(extents) != ranks:
        shown = "x".join(map(str, extents))
        raise UsageError(
            f"a grid of {shown} units does not fit {ranks} rank{'s' * (ranks != 1)}",
            "up to three extents whose product is the number of ranks, or auto",
        )
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def neighbours(rank: int, grid: Sequence[int], periodic: bool) -> tuple[int, ...]:
    """Return the six neighbours of a rank: down and up along each axis; `NONE` for none.

    Ranks are row-major, the last axis fastest, as MPI_Cart_create numbers them.

    Examples
    --------
    >>> neighbours(0, (2, 2, 3), periodic=False)
    (-1, 6, -1, 3, -1, 1)
    >>> neighbours(0, (2, 2, 3), periodic=True)
    (6, 6, 3, 3, 2, 1)
    """
    found = []
    stride = math.prod(grid)
    for extent in grid:
        stride //= extent
        place = rank // stride % extent
        for step in (-1, 1):
            there = place + step
            inside = 0 <= there < extent
            found.append(rank + (there % extent - place) * stride if inside or periodic else NONE)
    return tuple(found)
