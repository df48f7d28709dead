# SPDX-License-Identifier: Apache-2.0
"""Embedding a grid into a torus, neighbours on neighbouring routers.

Each dimension of the grid takes one or more axes of the torus; along several
axes it goes to and fro as an ox ploughs, so that every step is one hop. Where
whole axes do not fit, an axis is split in two, its far part (which stretch)
and its near part (where in the stretch): a step along the far part then costs
a few hops, but there are few of these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nidmap.placement.support.array_types import Ints, Shape
from nidmap.rankmap.grid.coarse import Coarse
from nidmap.rankmap.grid.dims import offset_ends

#: Maximum number of assignments of axes to dimensions to try for one grid.
MOST_LAYOUTS = 4000


@dataclass(frozen=True, slots=True)
class BoxLayout:
    """An embedding of a grid into a torus box."""

    # (axis, size), axes of the box; one that is split is listed twice, its far part first
    parts: tuple[tuple[int, int], ...]
    given: tuple[Shape, ...]  # the parts that each dimension of the grid takes, the slowest first

    def points(self, grid: Sequence[int], axes: int) -> Ints:
        """Return each cell's point in the box, int64 (cells, axes)."""
        digits = lay_grid(grid, [size for _, size in self.parts], self.given)
        out = np.zeros((len(digits), axes), dtype=np.int64)
        for at, (axis, size) in enumerate(self.parts):
            digit = digits[:, at]
            # Boustrophedon: in every odd stretch the near part runs backwards, so that the last
            # point of a stretch is one hop from the first of the next.
            back = out[:, axis] % 2 == 1
            out[:, axis] = out[:, axis] * size + np.where(back, size - 1 - digit, digit)
        return out


def box_of(coords: Ints) -> Shape | None:
    """Return the extents of the box that points fill exactly; None if they fill none.

    `coords` (n, d): distinct points, turned so that a box does not wrap
    (`nidmap.rankmap.units.unwrap_coords`).
    """
    sides = tuple((np.ptp(coords, axis=0) + 1).tolist())
    return sides if math.prod(sides) == len(coords) else None


def layouts(grid: Sequence[int], box: Sequence[int]) -> Iterator[BoxLayout]:
    """Return exact embeddings of a grid into a torus box, those without a split first."""
    ways = []
    for axis, extent in enumerate(box):
        halves = [(far, extent // far) for far in range(2, extent) if extent % far == 0]
        ways.append([((axis, extent),), *(((axis, far), (axis, near)) for far, near in halves)])
    splits = [tuple(itertools.chain(*chosen)) for chosen in itertools.product(*ways)]
    all_layouts = (
        BoxLayout(parts, axes_of)
        for parts in sorted(splits, key=lambda split: (len(split), split))
        for axes_of in embeddings(grid, [size for _, size in parts])
    )
    return itertools.islice(all_layouts, MOST_LAYOUTS)


def embeddings(grid: Sequence[int], box: Sequence[int]) -> Iterator[tuple[Shape, ...]]:
    """Yield every exact assignment of a torus's axes to a grid's dimensions."""
    axes = [k for k, extent in enumerate(box) if extent > 1]

    def give(at: int, left: Shape, axes_of: tuple[Shape, ...]) -> Iterator[tuple[Shape, ...]]:
        if at == len(axes):
            yield from [axes_of] if set(left) <= {1} else []
            return
        axis, extent = axes[at], box[axes[at]]
        for k, side in enumerate(left):
            # A dimension takes entire axes, whose product must divide the rest of its extent.
            if side % extent == 0:
                less = (*left[:k], side // extent, *left[k + 1 :])
                yield from give(
                    at + 1, less, (*axes_of[:k], (*axes_of[k], axis), *axes_of[k + 1 :])
                )

    yield from give(0, tuple(grid), ((),) * len(grid))


def lay_grid(grid: Sequence[int], box: Sequence[int], axes: Sequence[Shape]) -> Ints:
    """Return each grid cell's point in the torus box, int64 (cells, axes).

    `grid`, `box`: their extents. `axes`: the axes of the box that each dimension of the grid
    takes (`embeddings`).
    """
    count = math.prod(grid)
    out = np.zeros((count, len(box)), dtype=np.int64)
    places = np.unravel_index(np.arange(count), tuple(grid))
    for place, dim_axes in zip(places, axes, strict=True):
        rest = place.astype(np.int64)
        for at, axis in enumerate(dim_axes):
            inner = math.prod(box[a] for a in dim_axes[at + 1 :])
            digit, rest = np.divmod(rest, inner)
            out[:, axis] = digit
            # The remaining axes run backwards where this digit is odd: from one digit to the next
            # only this axis changes, which is one hop.
            rest = np.where(digit % 2 == 1, inner - 1 - rest, rest)
    return out


def hops(model: Coarse, periodic: Sequence[bool], points: Ints, extents: Sequence[int]) -> float:
    """Return weight times hops of a pattern whose boxes are at these points of a torus.

    `model`: the pattern as the boxes see it. `periodic`: along which dimensions the grid of boxes
    closes. `points` (boxes, axes). `extents`: of the whole torus.
    """
    total = 0.0
    for offset, weight in model.offsets:
        for column, extent in zip(points.T, extents, strict=True):
            a, b = offset_ends(column.reshape(model.grid), periodic, offset)
            apart = np.abs(a - b)
            # The shorter way round the ring: min(d, extent - d).
            total += weight * float(np.minimum(apart, extent - apart).sum())
    return total
