"""Boxes in a process grid: the weight between them, and their cells in order.

Grids whose lines talk all to all are cut into stretches of lines, and ranks of a line swap places.
No set of s cells has more pairs in common lines than s cells of one line
(J. H. Lindsey, 1964): so rows are cut into stretches as long as a node has
slots, the columns that are left over into stretches of columns, what is left
over there into rows again.

Two ranks of one row that change places change nothing for the row; for their
columns only the sums of distances to two nodes do. So all swaps of a row are
weighed in a few array operations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints, Mask, Shape
from nidmap.rankmap.grid.dims import step_window

#: Rounds over all rows and all columns, and swaps of one row in one round, at most.
ROUNDS, EACH = 6, 64


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """A pattern between the boxes of a tiled grid.

    Attributes
    ----------
    grid : tuple of int
        Boxes along each dimension.
    steps : tuple of (offset, weight)
        Weight between a box and its neighbour at each offset.
    lines : tuple of float
        Weight between any two boxes of one line along each dimension.
    """

    grid: Shape
    steps: tuple[tuple[Shape, float], ...] = ()
    lines: tuple[float, ...] = ()

    def cut(self, a: Mask, b: Mask) -> Floats:
        """Return the weight between two sets of cells of one window of the grid.

        Parameters
        ----------
        a, b : bool (window, ...)
            Which cells are in the sets, of as many pairs as there are behind.

        Returns
        -------
        float64 (...)
        """
        axes = tuple(range(len(self.grid)))
        total = np.zeros(a.shape[len(self.grid) :])
        for offset, weight in self.steps:
            here, there = step_window(a.shape[: len(self.grid)], offset)
            total += weight * np.count_nonzero(a[here] & b[there], axis=axes)
            total += weight * np.count_nonzero(b[here] & a[there], axis=axes)
        for axis, weight in enumerate(self.lines):
            total += weight * (a.sum(axis=axis) * b.sum(axis=axis)).sum(axis=axes[:-1])
        return total


def cells(grid: Sequence[int]) -> Ints:
    """Return the numbers of a grid's cells as an array of its shape, row-major."""
    return np.arange(math.prod(grid), dtype=np.int64).reshape(tuple(grid))


def cells_in(grid: Sequence[int], chain: Sequence[Shape]) -> Ints:
    """Return a grid's cells in the order in which nested boxes hold them.

    Parameters
    ----------
    grid : sequence of int
    chain : sequence of tuples of int
        Boxes, the smallest first; each divides the next, the last the grid.

    Returns
    -------
    int64 (cells,)
        Row-major numbers: box by box of the largest, within it of the next …

    Examples
    --------
    >>> cells_in((2, 4), [(2, 1), (2, 2)]).tolist()
    [0, 4, 1, 5, 2, 6, 3, 7]
    """
    ladder = [(1,) * len(grid), *(b for b in chain if math.prod(b) > 1), tuple(grid)]
    factors = [
        tuple(o // i for o, i in zip(outer, inner, strict=True))
        for inner, outer in itertools.pairwise(ladder)
    ][::-1]
    # A factor of 1 is not an axis: numpy has only so many.
    kept = [(k, n) for n in range(len(factors)) for k in range(len(grid)) if factors[n][k] > 1]
    by_dimension = sorted(kept)
    table = cells([factors[n][k] for k, n in by_dimension])
    return table.transpose([by_dimension.index(axis) for axis in kept]).ravel()


def line_stretches(dims: Sequence[int], sizes: Ints, turned: bool = False) -> Ints:
    """Return the cells of a two-dimensional grid, stretch after stretch.

    Parameters
    ----------
    dims : (rows, columns)
    sizes : int64 (nodes,)
        Slots of each node; stretches are as long as most nodes want them.
    turned : bool
        Begin with columns instead of rows.

    Returns
    -------
    int64 (cells,)
        Row-major numbers; consecutive nodes take consecutive cells.

    Examples
    --------
    >>> line_stretches((2, 3), np.array([2, 2, 2])).tolist()
    [0, 1, 3, 4, 2, 5]
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
            lines[1::2] = lines[1::2, ::-1]  # what is left goes along the longer lines, to and fro
            parts.append(lines.ravel())
            break
        parts.append(rest[:, :filled].ravel())
        rest = rest[:, filled:].T
    return np.concatenate(parts)


def swap_along_lines(slots: Ints, node: Ints, far: Floats) -> Ints:
    """Return the slots of a two-dimensional grid of ranks after all swaps that pay.

    Parameters
    ----------
    slots : int64 (rows, columns)
        Slot of each rank.
    node : int64 (slots,)
        Node of each slot.
    far : float64 (n, n)
        Distances between the nodes.

    Examples
    --------
    >>> far = 1.0 - np.eye(2)
    >>> swap_along_lines(np.array([[0, 1], [2, 3]]), np.array([0, 1, 1, 0]), far).tolist()
    [[1, 0], [2, 3]]
    """
    swapped = slots.copy()
    for _ in range(ROUNDS):
        # A transposed view swaps along the columns of the same table.
        changed = _along_rows(swapped, node, far)
        changed += _along_rows(swapped.T, node, far)
        if not changed:
            break
    return swapped


def _along_rows(slots: Ints, node: Ints, far: Floats) -> int:
    """Swap within every row in place, and return how often."""
    held = node[slots]
    sums = np.stack([far[held[:, column]].sum(axis=0) for column in range(held.shape[1])])
    count = 0
    for row in range(len(slots)):
        for _ in range(EACH):
            p, q = _best_swap(sums, held[row], far)
            if p == q:
                break
            a, b = held[row, p], held[row, q]
            sums[p] += far[b] - far[a]
            sums[q] += far[a] - far[b]
            held[row, [p, q]] = b, a
            slots[row, [p, q]] = slots[row, [q, p]]
            count += 1
    return count


def _best_swap(sums: Floats, here: Ints, far: Floats) -> tuple[int, int]:
    """Return the two places of a row whose swap gains most; equal ones where none gains."""
    at = sums[:, here]
    paid = np.diagonal(at)
    gain = at + at.T - paid[:, None] - paid[None, :] - 2 * far[np.ix_(here, here)]
    best = int(np.argmin(gain))
    p, q = divmod(best, len(here))
    return (p, q) if gain[p, q] < -1e-9 * (1 + abs(float(paid[p]))) else (0, 0)
