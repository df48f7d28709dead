"""A grid cut into stretches of its lines: what an all-to-all along the lines wants of a node.

No set of s cells has more pairs in common lines than s cells of one line
(J. H. Lindsey, 1964). Rows are cut into stretches as long as a node has
slots; the columns that are left over are cut into stretches of columns, what
is left over there into rows again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

__all__ = ["stretches"]


def stretches(dims: Sequence[int], sizes: Ints, turned: bool = False) -> Ints:
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
    >>> stretches((2, 3), np.array([2, 2, 2])).tolist()
    [0, 1, 3, 4, 2, 5]
    """
    values, counts = np.unique(sizes, return_counts=True)
    size = int(values[np.argmax(counts)])
    table = np.arange(dims[0] * dims[1], dtype=np.int64).reshape(dims[0], dims[1])
    found = []
    rest = table.T if turned else table
    while rest.size:
        whole = rest.shape[1] // size * size
        if not whole and rest.shape[0] >= size:
            rest = rest.T
            continue
        if not whole:
            found.append(_ploughed(rest))
            break
        found.append(rest[:, :whole].ravel())
        rest = rest[:, whole:].T
    return np.concatenate(found)


def _ploughed(table: Ints) -> Ints:
    """Return the cells of a table along its longer lines, to and fro."""
    lines = (table if table.shape[1] >= table.shape[0] else table.T).copy()
    lines[1::2] = lines[1::2, ::-1]
    return lines.ravel()
