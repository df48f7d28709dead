# SPDX-License-Identifier: Apache-2.0
"""Names of array types for annotations: `Ints` instead of ``NDArray[np.int64]``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Mask = NDArray[np.bool_]
Strs = NDArray[np.str_]

#: Extents of a grid, or of a box in one.
Shape = tuple[int, ...]
