"""Compiled kernels: numba where it is installed, plain Python where it is not.

Kernels are compiled at their first call and cached on disk, beside the package
where that can be written, else in the user's cache directory. Importing numba
costs a quarter of a second, so only who maps a graph does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from rankmap.progress import step

if TYPE_CHECKING:
    from collections.abc import Callable

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["COMPILED", "inlined", "kernel"]

step()
try:
    from numba import njit

    COMPILED = True
except ImportError:
    COMPILED = False
step()


def kernel(function: F) -> F:
    """Compile a function of arrays and numbers at its first call, or leave it as it is."""
    if not COMPILED:  # compiled whole numbers wrap around silently, numpy's own warn
        return np.errstate(over="ignore")(function)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
    try:
        compiled: Any = njit(cache=True, **options)(function)
    except RuntimeError:  # no place to write a cache to: compiled anew in each process
        compiled = njit(**options)(function)
    return cast("F", compiled)


def inlined(function: F) -> F:
    """Compile a function as part of each of its callers.

    A kernel is optimised again with every kernel that calls it, and with those
    that call these: a long chain of calls takes long to compile.
    """
    if not COMPILED:
        return kernel(function)
    return cast("F", njit(inline="always", nogil=True, error_model="numpy")(function))
