# SPDX-License-Identifier: Apache-2.0
"""Sweeps: wavefronts over a process grid, from each corner in turn.

A transport sweep (K. R. Koch, R. S. Baker and R. E. Alcouffe, 1992; Sweep3D, SNAP, Kripke) divides
two dimensions of a grid among ranks, and the third into pieces. From each corner of the process
grid a rank takes a piece as soon as its neighbours on that side have sent theirs, and sends its own
on, two octants from each corner, one after the other. So a message waits for others, and few
are in flight together: `waves` says which.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.support.array_types import Ints, Shape
from nidmap.rankmap.pattern import Pattern, parse_options, parse_whole, pattern
from nidmap.rankmap.pattern.structured import GridPattern, WeightedOffset, parse_extents

#: Octants that begin in the same corner of the process grid.
OCTANTS = 2

#: Messages of a sweep at most: they are listed one by one.
_MOST_MESSAGES = 20_000_000


@dataclass(frozen=True, slots=True)
class Sweep(GridPattern):
    """Wavefronts through a process grid from each of its corners."""

    dims: Shape  # extents P and Q of the process grid
    pieces: int = 1  # pieces that an octant is cut into along the third dimension

    @property
    def spec(self) -> str:
        """The text of this pattern."""
        grid = "x".join(map(str, self.dims))
        return f"sweep:{grid}" + (f",pieces={self.pieces}" if self.pieces > 1 else "")

    @property
    def messages(self) -> int:
        """Messages to each downstream neighbour, per corner."""
        return OCTANTS * self.pieces

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Nothing wraps: a wave ends at the opposite side."""
        return (False, False)

    def offsets(self) -> Iterator[WeightedOffset]:
        """Yield (offset, weight) to the next row and next column, each used from two corners."""
        for offset in ((1, 0), (0, 1)):
            yield offset, 2.0 * self.messages


@lru_cache(maxsize=4)
def waves(dims: Shape, messages: int) -> tuple[Ints, Ints, Ints]:
    """Return when each message of a sweep is sent, if all take equally long.

    The number of waves is what a sweep takes at least in messages: its pipelines' fills, and
    `messages` from each corner.

    `dims`: P and Q. `messages`: to each neighbour downstream, from each corner. Returns `wave,
    source, target` (m,): waves count from 0; those of a message are one more, at least, than
    those of all it waits for. Sorted by wave. A rank begins with the next corner when it is done
    with one.
    """
    rank = np.arange(math.prod(dims)).reshape(dims)
    free = np.zeros(dims, dtype=np.int64)
    parts: list[tuple[Ints, Ints, Ints]] = []
    for corner in itertools.product((1, -1), repeat=2):
        turned = tuple(slice(None, None, way) for way in corner)
        parts += _from_corner(rank[turned], free[turned], messages)
    wave, source, target = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(wave, kind="stable")
    return wave[order], source[order], target[order]


def _from_corner(rank: Ints, free: Ints, messages: int) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield the waves from the first corner, with senders and receivers; update `free`.

    `free` is the first wave in which each rank has nothing to send any more.
    """
    rows, columns = rank.shape
    down = np.zeros(rank.shape, dtype=np.int64)
    down[:-1] += 1
    down[:, :-1] += 1
    for _ in range(messages):
        arrived = np.zeros(rank.shape, dtype=np.int64)
        for diagonal in range(rows + columns - 1):
            i = np.arange(max(0, diagonal - columns + 1), min(rows, diagonal + 1))
            j = diagonal - i
            begins = np.maximum(free[i, j], arrived[i, j])
            free[i, j] = begins + (down[i, j] > 0)
            for di, dj in ((1, 0), (0, 1)):
                here = (i + di < rows) & (j + dj < columns)
                a, b, wave = (i[here], j[here]), (i[here] + di, j[here] + dj), begins[here]
                arrived[b] = np.maximum(arrived[b], wave + 1)
                yield wave, rank[a], rank[b]


@pattern("sweep")
def sweep(text: str) -> Pattern:
    """Build ``sweep:PxQ[,pieces=N]``."""
    grid, _, more = text.partition(",")
    dims = parse_extents(grid, "sweep", most=2)
    if len(dims) != 2:
        raise UsageError(f"sweep: '{printable(grid, 30)}' is not a 2-D grid", "as in sweep:8x8")
    options = parse_options("sweep", more, {"pieces": "10"})
    pattern = Sweep(dims, parse_whole("sweep", "pieces", options.get("pieces", "1"), least=1))
    if 8 * pattern.messages * math.prod(dims) > _MOST_MESSAGES:
        raise UsageError(f"sweep: '{printable(text, 60)}' has too many messages to follow")
    return pattern
