"""Compiled kernels: numba where it is installed, plain Python where it is not; their arrays.

Kernels are compiled at their first call and kept on disk (`rankmap.refine.cache`).
Importing numba costs a third of a second, so only who maps a graph does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankmap.progress import step
from rankmap.refine.cache import cache_folder, numba_installed

F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "Bytes", "Flags", "Floats", "Ints", "Longs", "Reals", "State", "Table", "inlined", "kernel",
]  # fmt: skip

Bytes = NDArray[np.int8]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
State = NDArray[np.uint64]
Table = NDArray[np.float32]

if numba_installed():
    step()
    import numba

    step()

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def kernel(function: F) -> F:
    """Compile a function of arrays and numbers at its first call, or leave it as it is."""
    if not numba_installed():  # compiled whole numbers wrap around silently, numpy's own warn
        return np.errstate(over="ignore")(function)
    folder = cache_folder()
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder or "")
    try:
        return cast("F", numba.njit(cache=folder is not None, **_OPTIONS)(function))
    finally:
        config.CACHE_DIR = before


def inlined(function: F) -> F:
    """Compile a function as part of each of its callers.

    A kernel is optimised again with every kernel that calls it, and with those
    that call these: a long chain of calls takes long to compile.
    """
    return (
        cast("F", numba.njit(inline="always", **_OPTIONS)(function))
        if numba_installed()
        else function
    )
