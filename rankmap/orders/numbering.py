"""Orders that launchers make by themselves: ranks in blocks, dealt to the nodes, or by columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.order import Order
from rankmap.orders import grid_of, ordering

if TYPE_CHECKING:
    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

__all__ = ["column_major", "folded", "round_robin", "row_major"]


@ordering("row-major")
def row_major(pattern: Pattern, slots: Slots) -> Order:
    """Put rank r on slot r (Table I of the FFT job placement paper).

    Ranks of a grid are row-major, the last dimension fastest, as
    MPI_Cart_create numbers them, so consecutive ranks fill a node.
    """
    return Order(np.arange(len(slots)), slots)


@ordering("column-major")
def column_major(pattern: Pattern, slots: Slots) -> Order:
    """Give consecutive slots to the cells down the first dimension, as Fortran numbers them.

    A pencil FFT whose columns fill nodes and whose rows do not wants this.
    """
    dims = grid_of(pattern, "column-major")
    return Order(np.arange(len(slots)).reshape(dims[::-1]).T.ravel(), slots)


@ordering("round-robin")
def round_robin(pattern: Pattern, slots: Slots) -> Order:
    """Put consecutive ranks on consecutive nodes, over and over.

    It is MPICH_RANK_REORDER_METHOD=0 and Slurm's cyclic distribution: a node
    that is full is passed over.
    """
    place = np.arange(len(slots)) - slots.first[slots.node]
    return Order(np.lexsort((slots.node, place)), slots)


@ordering("folded")
def folded(pattern: Pattern, slots: Slots) -> Order:
    """Put consecutive ranks on consecutive nodes, then back from the last to the first.

    It is MPICH_RANK_REORDER_METHOD=2: ranks 0 to 3 on nodes 0 to 3, ranks 4
    to 7 on nodes 3 to 0, and so on; a node that is full is passed over.
    """
    node = slots.node
    place = np.arange(len(slots)) - slots.first[node]
    return Order(np.lexsort((np.where(place % 2, -node, node), place)), slots)
