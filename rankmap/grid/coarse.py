# SPDX-License-Identifier: Apache-2.0
"""A pattern between the boxes that tile a process grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nidmap.placement.support.array_types import Floats, Mask, Shape
from nidmap.rankmap.grid.dims import offset_window


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """A pattern between the boxes of a tiled grid."""

    grid: Shape  # boxes along each dimension
    # (offset, weight), weight between a box and its neighbour at each offset
    offsets: tuple[tuple[Shape, float], ...] = ()
    lines: tuple[float, ...] = ()  # weight between any two boxes of one line along each dimension

    def cut(self, a: Mask, b: Mask) -> Floats:
        """Return the weight between two sets of cells within one window of the grid.

        `a`, `b` (window, ...): which cells are in the sets, of as many pairs as there are after.
        """
        axes = tuple(range(len(self.grid)))
        total = np.zeros(a.shape[len(self.grid) :])
        for offset, weight in self.offsets:
            here, there = offset_window(a.shape[: len(self.grid)], offset)
            total += weight * np.count_nonzero(a[here] & b[there], axis=axes)
            total += weight * np.count_nonzero(b[here] & a[there], axis=axes)
        for axis, weight in enumerate(self.lines):
            # All-to-all within each line: every cell of a with every cell of b that is on the line.
            total += weight * (a.sum(axis=axis) * b.sum(axis=axis)).sum(axis=axes[:-1])
        return total
