"""Column-major: consecutive slots go down the first dimension of the process grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.order import Order
from rankmap.orders import ordering
from rankmap.orders.grid import grid_of

if TYPE_CHECKING:
    from rankmap.pattern import Pattern
    from rankmap.slots import Slots

__all__ = ["column_major"]


@ordering("column-major")
def column_major(pattern: Pattern, slots: Slots) -> Order:
    """Give consecutive slots to the cells down the first dimension, as Fortran numbers them.

    A pencil FFT whose columns fill nodes and whose rows do not wants this.
    """
    dims = grid_of(pattern, "column-major")
    return Order(np.arange(len(slots)).reshape(dims[::-1]).T.ravel(), slots)
