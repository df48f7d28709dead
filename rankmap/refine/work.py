"""The random numbers of the search, and the work that it has done.

`state` holds the random numbers' state and, behind it, the work done so far, about in
looks at an edge: what may take long is given so much work and no seconds, so the same
question has the same answer on any machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankmap.refine.jit import Ints, State, kernel

__all__ = ["draw", "shuffle", "tick"]


@kernel
def draw(state: State) -> Any:
    """Return the next of a row of random whole numbers below 2**62 (splitmix64).

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
    """Note that so much work has been done."""
    state[1] += np.uint64(work)


@kernel
def shuffle(n: int, state: State) -> Ints:
    """Return 0 … n-1 in random order."""
    order = np.arange(n).astype(np.int32)
    for i in range(n - 1, 0, -1):
        j = draw(state) % (i + 1)
        order[i], order[j] = order[j], order[i]
    return order
