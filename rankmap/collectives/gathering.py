"""Gather, scatter and allgather, and the allgathers that other collectives end with."""

from __future__ import annotations

import numpy as np

from placement.support.array_types import Ints
from rankmap.collectives import Algorithm, Part, Step, backwards
from rankmap.collectives.trees import binomial, linear, log2_up

__all__ = ["ALLGATHER", "GATHER", "SCATTER", "doubling", "ring", "scatter_blocks"]


def scatter_blocks(ranks: int, root: int, block: float) -> list[Part]:
    """Return a binomial scatter: each rank passes on what its subtree is to have."""
    levels = binomial(ranks)

    def step(k: int) -> Step:
        parent, child = levels[k]
        count = np.minimum(1 << (len(levels) - 1 - k), ranks - child)
        return Step((parent + root) % ranks, (child + root) % ranks, (child + root) % ranks, count)

    return [Part("scatter", len(levels), step, block, ranks)]


def _scattered_at_once(ranks: int, root: int, block: float) -> list[Part]:
    """Return the root sending everyone its block, all at once."""
    child = (linear(ranks)[0][1] + root) % ranks
    source = np.full(ranks - 1, root)
    return [Part("scatter", 1, lambda k: Step(source, child, child), block, ranks)]


def ring(ranks: int, root: int, block: float) -> list[Part]:
    """Return the ring: in step k rank r passes on the block of rank r - k."""
    rank = np.arange(ranks)

    def step(k: int) -> Step:
        return Step(rank, (rank + 1) % ranks, (rank - k) % ranks)

    return [Part("ring", ranks - 1, step, block, ranks, alike=((0, ranks - 1),))]


def doubling(ranks: int, root: int, block: float) -> list[Part]:
    """Return recursive doubling; ranks without a partner get its blocks from their own half.

    Blocks are numbered by ranks, ranks counted from the root.
    """
    steps: list[Step] = []
    v = np.arange(ranks)
    for k in range(log2_up(ranks)):
        here, there = v, v ^ (1 << k)
        low = here >> k << k
        count = np.minimum(1 << k, ranks - low)
        on = there < ranks
        steps.append(_shift_step(here[on], there[on], low[on], count[on], ranks, root))
        steps += _complete_steps(k, ranks, root)
    return [Part("doubling", len(steps), steps.__getitem__, block, ranks)]


def _complete_steps(k: int, ranks: int, root: int) -> list[Step]:
    """Return how those whose partner at distance 2^k does not exist get what it would have sent."""
    low = ranks >> (k + 1) << (k + 1)
    have = ranks - low - (1 << k)
    if not 0 < have < 1 << k:
        return []
    found = []
    for j in reversed(range(k)):
        v = np.arange(low, low + (1 << k))
        place = v & ((2 << j) - 1)
        on = (v >> j & 1 == 0) & (place < have) & (place + (1 << j) >= have)
        if on.any():
            first = np.full(int(on.sum()), low + (1 << k))
            found.append(_shift_step(v[on], v[on] + (1 << j), first, have, ranks, root))
    return found


def _shift_step(
    source: Ints, target: Ints, first: Ints, count: Ints | int, ranks: int, root: int
) -> Step:
    """Return a step of ranks and blocks that are counted from the root."""
    return Step((source + root) % ranks, (target + root) % ranks, (first + root) % ranks, count)


def bruck(ranks: int, root: int, block: float) -> list[Part]:
    """Return Bruck's: in round k rank r sends its first 2^k blocks to r - 2^k."""
    rank = np.arange(ranks)

    def step(k: int) -> Step:
        return Step(rank, (rank - (1 << k)) % ranks, rank, min(1 << k, ranks - (1 << k)))

    return [Part("bruck", log2_up(ranks), step, block, ranks)]


def _doubling_or_bruck(ranks: int, root: int, block: float) -> list[Part]:
    """Return recursive doubling; Bruck's where ranks are not a power of two, as Open MPI does."""
    if ranks & (ranks - 1):
        return bruck(ranks, root, block)
    return doubling(ranks, root, block)


def neighbor(ranks: int, root: int, block: float) -> list[Part]:
    """Return the neighbour exchange: pairs swap, then two blocks left and right by turns.

    An odd number of ranks takes the ring, as in Open MPI.
    """
    if ranks % 2:
        return ring(ranks, root, block)
    rank = np.arange(ranks)
    sign = np.where(rank % 2, -1, 1)

    def step(k: int) -> Step:
        target = (rank + (sign if k % 2 == 0 else -sign)) % ranks
        if not k:
            return Step(rank, target, rank)
        moved = 2 * (k // 2) * (1 if k % 2 else -1) * sign
        return Step(rank, target, (rank - rank % 2 + moved) % ranks, 2)

    rounds = ranks // 2
    alike = tuple((k, n) for k, n in ((0, 1), (1, rounds // 2), (2, (rounds - 1) // 2)) if n)
    return [Part("neighbor", rounds, step, block, ranks, alike=alike)]


def _gather_blocks(scatter: Algorithm) -> Algorithm:
    """Return the gather that is a scatter backwards."""
    return lambda ranks, root, block: [backwards(p, "gather") for p in scatter(ranks, root, block)]


SCATTER = {"binomial": scatter_blocks, "linear": _scattered_at_once}
GATHER = {name: _gather_blocks(scatter) for name, scatter in SCATTER.items()}
ALLGATHER = {"doubling": _doubling_or_bruck, "ring": ring, "bruck": bruck, "neighbor": neighbor}
