"""What arrays of numbers are called in signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Flags", "Floats", "Ints", "Shape"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Array = NDArray[Any]

#: Extents of a grid, or of a box in one.
Shape = tuple[int, ...]
