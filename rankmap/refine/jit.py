# SPDX-License-Identifier: Apache-2.0
"""What all kernels share: numba or plain Python, arrays, random numbers, work counters.

Kernels are compiled at their first call and kept on disk (`nidmap.rankmap.refine.cache`);
where numba is not installed they stay plain Python. Importing numba costs a third of a
second, so only who maps a graph does it.

`State` holds the random numbers' state and, after it, the work done so far, about in
looks at an edge: what may take long is given this much work and no seconds, so the same
question has the same answer on any machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from nidmap.rankmap.progress import advance
from nidmap.rankmap.refine.cache import cache_folder, numba_installed

F = TypeVar("F", bound=Callable[..., Any])

Bytes = NDArray[np.int8]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Reals = NDArray[np.floating[Any]]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
State = NDArray[np.uint64]


class Csr(NamedTuple):
    """A graph in compressed rows; each edge is in the rows of both its ends."""

    ptr: Ints  # (n + 1,)
    adj: Ints  # (2m,)
    w: Floats  # (2m,)
    bias: Floats  # (n,), cost of having a vertex in half 1, possibly negative
    size: Ints  # (n,), number of ranks that a vertex represents


if numba_installed():
    advance()
    import numba

    advance()

#: The type in which numbers are passed to kernels: numba compiles again for each integer type and
#: for each constant.
long = cast("Callable[[int], int]", np.int64)

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def kernel(function: F) -> F:
    """Compile a function of arrays and numbers at its first call, or leave it unchanged."""
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
    """Compile a function inline in each of its callers.

    A kernel is optimised again with every kernel that calls it, and with those
    that call these: a long chain of calls takes long to compile.
    """
    return (
        cast("F", numba.njit(inline="always", **_OPTIONS)(function))
        if numba_installed()
        else function
    )


@kernel
def copy_part(source: Any, begin: int, stop: int, out: Any, at: int) -> None:
    """Copy the numbers at begin … stop - 1 to another array, starting at `at`.

    To compile ``out[at:] = source[begin:stop]`` takes longer: its error has words.
    """
    for i in range(begin, stop):
        out[at + i - begin] = source[i]


@kernel
def draw(state: State) -> Any:
    """Return the next pseudo-random integer below 2**62 (splitmix64).

    All bits are good: with a plain xorshift the low bits of one number follow
    from those of the number before, and whole edges are never drawn.
    """
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((x ^ (x >> np.uint64(31))) >> np.uint64(2))


@kernel
def tick(state: State, work: int) -> None:
    """Count work done."""
    state[1] += np.uint64(work)


@kernel
def shuffle(n: int, state: State) -> Ints:
    """Return 0 … n-1 in random order."""
    order = np.arange(n).astype(np.int32)
    for i in range(n - 1, 0, -1):
        j = draw(state) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order
