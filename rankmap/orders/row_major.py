"""Row-major: rank r on slot r, what every launcher does by itself with blocks of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.order import Order
from rankmap.orders import ordering

if TYPE_CHECKING:
    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

__all__ = ["row_major"]


@ordering("row-major")
def row_major(pattern: Pattern, slots: Slots) -> Order:
    """Put rank r on slot r (Table I of the FFT job placement paper).

    Ranks of a grid are row-major, the last dimension fastest, as
    MPI_Cart_create numbers them, so consecutive ranks fill a node.
    """
    return Order(np.arange(len(slots)), slots)
