"""Types of the arrays that kernels take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bytes", "Flags", "Floats", "Ints", "Longs", "Reals", "State", "Table"]

Bytes = NDArray[np.int8]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
State = NDArray[np.uint64]
Table = NDArray[np.float32]
