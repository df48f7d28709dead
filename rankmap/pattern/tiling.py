# SPDX-License-Identifier: Apache-2.0
"""A grid pattern's traffic within, and between, the boxes that tile its process grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints, Shape
from nidmap.rankmap.grid.coarse import Coarse
from nidmap.rankmap.pattern.structured import GridPattern, Lines


def coarse_pattern(pattern: GridPattern, box: Shape) -> Coarse:
    """Return the traffic of a grid pattern between the boxes of one shape that tile its grid."""
    dims = pattern.dims or ()
    grid = tuple(extent // side for extent, side in zip(dims, box, strict=True))
    if isinstance(pattern, Lines):
        volume = math.prod(box)
        return Coarse(grid, lines=tuple(pattern.weight * volume * side for side in box))
    offsets: dict[Shape, float] = {}
    for offset, weight in pattern.offsets():
        for between, pairs in _offsets_between(offset, box):
            offsets[between] = offsets.get(between, 0.0) + weight * pairs
    kept = [
        (offset, weight)
        for offset, weight in sorted(offsets.items())
        if weight and any(offset) and all(abs(s) < e for s, e in zip(offset, grid, strict=True))
    ]
    return Coarse(grid, tuple(kept))


def _offsets_between(offset: Shape, box: Shape) -> Iterator[tuple[Shape, float]]:
    """Yield the offsets between boxes that result from one between cells, with cell counts."""
    ways = []
    for distance, side in zip(offset, box, strict=True):
        leaving = ((distance > 0) - (distance < 0), abs(distance))
        ways.append([(0, side - abs(distance)), *([leaving] if distance else [])])
    for chosen in itertools.product(*ways):
        yield tuple(boxes for boxes, _ in chosen), float(math.prod(cells for _, cells in chosen))


def weight_inside(pattern: GridPattern, boxes: Ints) -> Floats:
    """Return the weight of the edges inside one box of each shape, float64 (boxes,).

    A box that reaches all along a periodic dimension keeps the wrap inside.

    `boxes` (boxes, dimensions).
    """
    volume = boxes.prod(axis=1)
    if isinstance(pattern, Lines):
        return np.asarray(pattern.weight * (volume[:, None] * (boxes - 1)).sum(axis=1) / 2)
    total = np.zeros(len(boxes))
    for offset, weight in pattern.offsets():
        sides = list(zip(pattern.dims or (), pattern.periodic, offset, strict=True))
        if any(distance % extent if wraps else distance for extent, wraps, distance in sides):
            pairs = np.full(len(boxes), weight)
            for column, (extent, wraps, distance) in zip(boxes.T, sides, strict=True):
                short = np.maximum(column - abs(distance), 0)
                pairs *= np.where(column == extent, extent, short) if wraps else short
            total += pairs
    return total
