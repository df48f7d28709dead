"""Gather, scatter and allgather."""

from __future__ import annotations

import numpy as np

from rankmap.collectives import Algorithm, BlockStep, Part, backwards
from rankmap.collectives.trees import binomial, log2_up

__all__ = ["ALLGATHER", "GATHER", "SCATTER", "ring", "scatter_blocks"]


def scatter_blocks(ranks: int, root: int, block: float) -> list[Part]:
    """Return a binomial scatter: each rank passes on what its subtree is to have."""
    levels = binomial(ranks)

    def step(k: int) -> BlockStep:
        parent, child = levels[k]
        count = np.minimum(1 << (len(levels) - 1 - k), ranks - child)
        return BlockStep(
            (parent + root) % ranks, (child + root) % ranks, (child + root) % ranks, count
        )

    return [Part("scatter", len(levels), step, block, ranks)]


def _scattered_at_once(ranks: int, root: int, block: float) -> list[Part]:
    """Return the root sending everyone its block, all at once."""
    child = (np.arange(1, ranks) + root) % ranks
    source = np.full(ranks - 1, root)
    return [Part("scatter", 1, lambda k: BlockStep(source, child, child), block, ranks)]


def ring(ranks: int, root: int, block: float) -> list[Part]:
    """Return the ring: in step k rank r passes on the block of rank r - k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        return BlockStep(rank, (rank + 1) % ranks, (rank - k) % ranks)

    return [Part("ring", ranks - 1, step, block, ranks, alike=((0, ranks - 1),))]


def bruck(ranks: int, root: int, block: float) -> list[Part]:
    """Return Bruck's: in round k rank r sends its first 2^k blocks to r - 2^k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        return BlockStep(rank, (rank - (1 << k)) % ranks, rank, min(1 << k, ranks - (1 << k)))

    return [Part("bruck", log2_up(ranks), step, block, ranks)]


def _gather_blocks(scatter: Algorithm) -> Algorithm:
    """Return the gather that is a scatter backwards."""
    return lambda ranks, root, block: [backwards(p, "gather") for p in scatter(ranks, root, block)]


SCATTER = {"binomial": scatter_blocks, "linear": _scattered_at_once}
GATHER = {name: _gather_blocks(scatter) for name, scatter in SCATTER.items()}
ALLGATHER = {"bruck": bruck, "ring": ring}
