# SPDX-License-Identifier: Apache-2.0
"""Swaps of two ranks along the lines of a two-dimensional process grid, as long as they pay.

Two ranks of one row that change places change nothing for the row; for their
columns only the sums of distances to two nodes do. So all swaps of a row are
weighed in a few array operations.
"""

from __future__ import annotations

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints

#: Maximum number of rounds over all rows and all columns, and of swaps of one row in one round.
ROUNDS, EACH = 6, 64


def swap_along_lines(slots: Ints, node: Ints, far: Floats) -> Ints:
    """Return the slots of a two-dimensional grid of ranks after all profitable swaps.

    `slots` (rows, columns): slot of each rank. `node` (slots,): node of each slot. `far` (n, n):
    distances between the nodes.
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
    """Swap ranks within rows in place, and return the number of swaps."""
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
    """Return the two positions in a row whose swap gains most; equal ones if none gains."""
    at = sums[:, here]
    paid = np.diagonal(at)
    gain = at + at.T - paid[:, None] - paid[None, :] - 2 * far[np.ix_(here, here)]
    best = int(np.argmin(gain))
    p, q = divmod(best, len(here))
    return (p, q) if gain[p, q] < -1e-9 * (1 + abs(float(paid[p]))) else (0, 0)
