"""A grid laid on a torus, neighbours on neighbouring routers.

Each dimension of the grid takes one or more axes of the torus; along several
axes it goes to and fro as an ox ploughs, so that every step is one hop. Where
whole axes do not fit, an axis is split in two, its far part (which stretch)
and its near part (where in the stretch): a step along the far part then costs
a few hops, but there are few of these.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rankmap.grid.coarse import Coarse

    Shape = tuple[int, ...]
    Ints = NDArray[np.int64]

__all__ = ["Layout", "box_of", "embeddings", "hops", "laid", "layouts"]

#: Ways to give axes to dimensions that are looked at for one grid.
MOST_LAYOUTS = 4000


@dataclass(frozen=True, slots=True)
class Layout:
    """How a grid is laid on a torus box.

    Attributes
    ----------
    parts : tuple of (axis, size)
        Axes of the box; one that is split stands twice, its far part first.
    given : tuple of tuples of int
        The parts that each dimension of the grid takes, the slowest first.
    """

    parts: tuple[tuple[int, int], ...]
    given: tuple[Shape, ...]

    def points(self, grid: Sequence[int], axes: int) -> Ints:
        """Return the point of the box for every cell of the grid, int64 (cells, axes)."""
        found = laid(grid, [size for _, size in self.parts], self.given)
        out = np.zeros((len(found), axes), dtype=np.int64)
        for at, (axis, size) in enumerate(self.parts):
            digit = found[:, at]
            back = out[:, axis] % 2 == 1
            out[:, axis] = out[:, axis] * size + np.where(back, size - 1 - digit, digit)
        return out


def box_of(coords: Ints) -> Shape | None:
    """Return the extents of the box that points fill exactly; None where they fill none.

    Parameters
    ----------
    coords : int64 (n, d)
        Distinct points, turned so that a box does not wrap (`rankmap.units.unwrapped`).

    Examples
    --------
    >>> box_of(np.array([[0, 3], [1, 3], [1, 4], [0, 4]])), box_of(np.array([[0, 0], [1, 1]]))
    ((2, 2), None)
    """
    sides = tuple((np.ptp(coords, axis=0) + 1).tolist())
    return sides if math.prod(sides) == len(coords) else None


def layouts(grid: Sequence[int], box: Sequence[int]) -> Iterator[Layout]:
    """Yield ways to lay a grid on a torus box that fit exactly, those without a split first.

    Examples
    --------
    >>> next(layouts((48, 8), (8, 8, 6)))
    Layout(parts=((0, 8), (1, 8), (2, 6)), given=((0, 2), (1,)))
    >>> next(layouts((16, 32), (8, 8, 8))).parts
    ((0, 2), (0, 4), (1, 8), (2, 8))
    """
    tried = 0
    for splits in sorted(_splits(box), key=lambda some: (len(some), some)):
        for given in embeddings(grid, [size for _, size in splits]):
            yield Layout(splits, given)
            tried += 1
            if tried >= MOST_LAYOUTS:
                return


def _splits(box: Sequence[int]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the box's axes, each whole or in two parts."""
    ways = []
    for axis, extent in enumerate(box):
        halves = [(far, extent // far) for far in range(2, extent) if extent % far == 0]
        ways.append([((axis, extent),), *(((axis, far), (axis, near)) for far, near in halves)])
    for chosen in itertools.product(*ways):
        yield tuple(itertools.chain.from_iterable(chosen))


def embeddings(grid: Sequence[int], box: Sequence[int]) -> Iterator[tuple[Shape, ...]]:
    """Yield every way to give a torus's axes to a grid's dimensions that fits exactly.

    Examples
    --------
    >>> list(embeddings((48, 8), (8, 8, 6)))
    [((0, 2), (1,)), ((1, 2), (0,))]
    """
    axes = [k for k, extent in enumerate(box) if extent > 1]
    left = list(grid)
    given: list[list[int]] = [[] for _ in grid]

    def give(at: int) -> Iterator[tuple[Shape, ...]]:
        if at == len(axes):
            if all(side == 1 for side in left):
                yield tuple(tuple(some) for some in given)
            return
        for k in range(len(left)):
            if left[k] % box[axes[at]] == 0:
                left[k] //= box[axes[at]]
                given[k].append(axes[at])
                yield from give(at + 1)
                given[k].pop()
                left[k] *= box[axes[at]]

    yield from give(0)


def laid(grid: Sequence[int], box: Sequence[int], axes: Sequence[Shape]) -> Ints:
    """Return the point of the torus box for every cell of the grid, int64 (cells, axes).

    Parameters
    ----------
    grid, box : sequence of int
        Their extents.
    axes : sequence of tuples of int
        The axes of the box that each dimension of the grid takes (`embeddings`).

    Examples
    --------
    >>> laid((6,), (2, 3), ((0, 1),)).tolist()
    [[0, 0], [0, 1], [0, 2], [1, 2], [1, 1], [1, 0]]
    """
    count = math.prod(grid)
    out = np.zeros((count, len(box)), dtype=np.int64)
    places = np.unravel_index(np.arange(count), tuple(grid))
    for place, some in zip(places, axes, strict=True):
        rest = place.astype(np.int64)
        for at, axis in enumerate(some):
            inner = math.prod(box[a] for a in some[at + 1 :])
            digit, rest = np.divmod(rest, inner)
            out[:, axis] = digit
            rest = np.where(digit % 2 == 1, inner - 1 - rest, rest)
    return out


def hops(model: Coarse, periodic: Sequence[bool], points: Ints, extents: Sequence[int]) -> float:
    """Return weight times hops of a pattern whose boxes sit on these points of a torus.

    Parameters
    ----------
    model : Coarse
        The pattern as the boxes see it.
    periodic : sequence of bool
        Along which dimensions the grid of boxes closes.
    points : int64 (boxes, axes)
    extents : sequence of int
        Of the whole torus.

    Examples
    --------
    >>> from rankmap.grid.coarse import Coarse
    >>> line = Coarse((4,), (((1,), 2.0),))
    >>> hops(line, (False,), np.arange(4)[:, None], (8,))
    6.0
    >>> hops(line, (True,), np.arange(4)[:, None], (4,))
    8.0
    """
    total = 0.0
    for offset, weight in model.steps:
        here, there = _ends(model.grid, periodic, offset)
        for column, extent in zip(points.T, extents, strict=True):
            table = column.reshape(model.grid)
            apart = np.abs(table[here] - np.roll(table, there, range(table.ndim))[here])
            total += weight * float(np.minimum(apart, extent - apart).sum())
    return total


def _ends(
    grid: Shape, periodic: Sequence[bool], offset: Shape
) -> tuple[tuple[slice, ...], tuple[int, ...]]:
    """Return the cells that can take a step, and the roll that brings their neighbours to them."""
    here = tuple(
        slice(None) if wraps else slice(max(0, -step), extent - max(0, step))
        for step, wraps, extent in zip(offset, periodic, grid, strict=True)
    )
    return here, tuple(-step for step in offset)
