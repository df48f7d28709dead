# SPDX-License-Identifier: Apache-2.0
"""Traversals of a process grid's cells: nested boxes, and segments of lines.

Grids whose lines talk all to all are cut into stretches of lines. No set of s cells
has more pairs in common lines than s cells of one line (J. H. Lindsey, 1964): so
rows are cut into stretches as long as a node has slots, the columns that are left
over into stretches of columns, what is left over there into rows again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from nidmap.placement.support.array_types import Ints, Shape


def cells(grid: Sequence[int]) -> Ints:
    """Return the numbers of a grid's cells as an array of its shape, row-major."""
    return np.arange(math.prod(grid), dtype=np.int64).reshape(tuple(grid))


def cells_in(grid: Sequence[int], chain: Sequence[Shape]) -> Ints:
    """Return a grid's cells in the order in which nested boxes enumerate them.

    `chain`: boxes, the smallest first; each divides the next, the last the grid. Returns
    (cells,): row-major numbers: box by box of the largest, within it of the next ….
    """
    ladder = [(1,) * len(grid), *(b for b in chain if math.prod(b) > 1), tuple(grid)]
    factors = [
        tuple(o // i for o, i in zip(outer, inner, strict=True))
        for inner, outer in itertools.pairwise(ladder)
    ][::-1]
    # A factor of 1 is not an axis: numpy has a limited number of them.
    kept = [(k, n) for n in range(len(factors)) for k in range(len(grid)) if factors[n][k] > 1]
    by_dimension = sorted(kept)
    table = cells([factors[n][k] for k, n in by_dimension])
    return table.transpose([by_dimension.index(axis) for axis in kept]).ravel()


def line_stretches(dims: Sequence[int], sizes: Ints, turned: bool = False) -> Ints:
    """Return the cells of a two-dimensional grid, segment after segment of each line.

    `dims` (rows, columns). `sizes` (nodes,): slots of each node; stretches are as long as most
    nodes want them. `turned`: begin with columns instead of rows. Returns (cells,): row-major
    numbers; consecutive nodes take consecutive cells.
    """
    values, counts = np.unique(sizes, return_counts=True)
    size = int(values[np.argmax(counts)])
    table = np.arange(dims[0] * dims[1], dtype=np.int64).reshape(dims[0], dims[1])
    parts = []
    rest = table.T if turned else table
    while rest.size:
        filled = rest.shape[1] // size * size
        if not filled and rest.shape[0] >= size:
            rest = rest.T
            continue
        if not filled:
            lines = (rest if rest.shape[1] >= rest.shape[0] else rest.T).copy()
            lines[1::2] = lines[1::2, ::-1]  # the rest goes along the longer lines, back and forth
            parts.append(lines.ravel())
            break
        parts.append(rest[:, :filled].ravel())
        rest = rest[:, filled:].T
    return np.concatenate(parts)
