"""Folded: ranks are dealt to the nodes there and back, as Cray MPICH's method 2 does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.order import Order
from rankmap.orders import ordering

if TYPE_CHECKING:
    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

__all__ = ["folded"]


@ordering("folded")
def folded(pattern: Pattern, slots: Slots) -> Order:
    """Put consecutive ranks on consecutive nodes, then back from the last to the first.

    It is MPICH_RANK_REORDER_METHOD=2: ranks 0 to 3 on nodes 0 to 3, ranks 4
    to 7 on nodes 3 to 0, and so on; a node that is full is passed over.
    """
    node = slots.node
    place = np.arange(len(slots)) - slots.first[node]
    turned = np.where(place % 2 == 0, node, -node)
    return Order(np.lexsort((turned, place)), slots)
