# SPDX-License-Identifier: Apache-2.0
"""Orders by number: ranks in blocks, dealt out to nodes, by columns, or along a curve.

Along a space-filling curve through the process grid consecutive slots go to
consecutive cells: the cell that the curve visits k-th gets slot k, and the rank
of that cell (row-major) with it. A node's slots are thus a stretch of the curve,
a compact patch of the grid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nidmap.placement.curves import hilbert_key, morton_key
from nidmap.placement.permutation import inverse
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Array, Ints, Shape
from nidmap.rankmap.orders import grid_of, ordering
from nidmap.rankmap.pattern import Pattern


@ordering("row-major")
def row_major(pattern: Pattern, placement: Placement) -> Placement:
    """Put rank r on slot r (Table I of the FFT job placement paper).

    Ranks of a grid are row-major, the last dimension fastest, as
    MPI_Cart_create numbers them, so consecutive ranks fill a node.
    """
    return placement.with_order(None)


@ordering("column-major")
def column_major(pattern: Pattern, placement: Placement) -> Placement:
    """Give consecutive slots to the cells down the first dimension, as Fortran numbers them.

    A pencil FFT whose columns fill nodes and whose rows do not wants this.
    """
    dims = grid_of(pattern, "column-major")
    return placement.with_order(np.arange(placement.ranks).reshape(dims[::-1]).T.ravel())


@ordering("round-robin")
def round_robin(pattern: Pattern, placement: Placement) -> Placement:
    """Put consecutive ranks on consecutive nodes, starting over after the last.

    It is MPICH_RANK_REORDER_METHOD=0 and Slurm's cyclic distribution: a node
    that is full is passed over.
    """
    place = np.arange(placement.ranks) - placement.first_slot[placement.node_of_slot]
    return placement.with_order(np.lexsort((placement.node_of_slot, place)))


@ordering("folded")
def folded(pattern: Pattern, placement: Placement) -> Placement:
    """Put consecutive ranks on consecutive nodes, reversing direction at the last.

    It is MPICH_RANK_REORDER_METHOD=2: ranks 0 to 3 on nodes 0 to 3, ranks 4
    to 7 on nodes 3 to 0, and so on; a node that is full is passed over.
    """
    node = placement.node_of_slot
    place = np.arange(placement.ranks) - placement.first_slot[node]
    return placement.with_order(np.lexsort((np.where(place % 2, -node, node), place)))


@ordering("morton")
def morton(pattern: Pattern, placement: Placement) -> Placement:
    """Follow the Morton (Z) curve, the last dimension first.

    On a 4x4 grid these are the numbers of Table II of the FFT job placement
    paper, read as the slot of the rank that row-major numbering has there.
    """
    return _order_along(morton_key, pattern, placement, "morton")


@ordering("hilbert")
def hilbert(pattern: Pattern, placement: Placement) -> Placement:
    """Follow the Hilbert curve, generalised to any extents."""
    return _order_along(hilbert_key, pattern, placement, "hilbert")


def _order_along(
    key: Callable[[Array, Shape], Ints], pattern: Pattern, placement: Placement, name: str
) -> Placement:
    """Return the order whose slots follow the curve given by the cells' `key`."""
    # An extent of 1 has no direction for a curve to go in.
    extents = tuple(extent for extent in grid_of(pattern, name) if extent > 1) or (1,)
    cells = np.indices(extents, dtype=np.int32).reshape(len(extents), -1)
    keys = key(np.ascontiguousarray(cells.T), extents)
    if int(keys.max()) < len(keys):
        return placement.with_order(keys)
    # Keys on a curve that is cut off leave gaps.
    return placement.with_order(inverse(np.argsort(keys, kind="stable")))
