"""Round-robin: ranks are dealt to the nodes in turn, as Cray MPICH's method 0 does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.order import Order
from rankmap.orders import ordering

if TYPE_CHECKING:
    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

__all__ = ["round_robin"]


@ordering("round-robin")
def round_robin(pattern: Pattern, slots: Slots) -> Order:
    """Put consecutive ranks on consecutive nodes, over and over.

    It is MPICH_RANK_REORDER_METHOD=0 and Slurm's cyclic distribution: a node
    that is full is passed over.
    """
    place = np.arange(len(slots)) - slots.first[slots.node]
    return Order(np.lexsort((slots.node, place)), slots)
