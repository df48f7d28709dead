"""Swaps along the lines of an all-to-all grid, as long as one makes J less.

Two ranks of one row that change places change nothing for the row; for their
columns only the sums of distances to two nodes do. So all swaps of a row are
weighed in a few array operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["swapped"]

#: Rounds over all rows and all columns at most.
ROUNDS = 6

#: Swaps of one row in one round at most.
EACH = 64


def swapped(slots: Ints, node: Ints, far: Floats) -> Ints:
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
    >>> swapped(np.array([[0, 1], [2, 3]]), np.array([0, 1, 1, 0]), far).tolist()
    [[1, 0], [2, 3]]
    """
    found = slots.copy()
    for _ in range(ROUNDS):
        # A transposed view swaps along the columns of the same table.
        changed = _along_rows(found, node, far)
        changed += _along_rows(found.T, node, far)
        if not changed:
            break
    return found


def _along_rows(slots: Ints, node: Ints, far: Floats) -> int:
    """Swap within every row in place, and return how often."""
    held = node[slots]
    sums = np.stack([far[held[:, column]].sum(axis=0) for column in range(held.shape[1])])
    count = 0
    for row in range(len(slots)):
        for _ in range(EACH):
            p, q = _best(sums, held[row], far)
            if p == q:
                break
            a, b = held[row, p], held[row, q]
            sums[p] += far[b] - far[a]
            sums[q] += far[a] - far[b]
            held[row, [p, q]] = b, a
            slots[row, [p, q]] = slots[row, [q, p]]
            count += 1
    return count


def _best(sums: Floats, here: Ints, far: Floats) -> tuple[int, int]:
    """Return the two places of a row whose swap gains most; equal ones where none gains."""
    at = sums[:, here]
    own = np.diagonal(at)
    gain = at + at.T - own[:, None] - own[None, :] - 2 * far[np.ix_(here, here)]
    best = int(np.argmin(gain))
    p, q = divmod(best, len(here))
    return (p, q) if gain[p, q] < -1e-9 * (1 + abs(float(own[p]))) else (0, 0)
