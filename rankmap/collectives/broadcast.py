"""Broadcasts: trees, a chain, and a scatter followed by an allgather."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankmap.collectives import Algorithm, Part, Step, gathering, one_by_one, trees

__all__ = ["BCAST"]


def _along(levels: Callable[[int], list[trees.Level]]) -> Algorithm:
    """Return the broadcast down a tree."""
    return lambda ranks, root, size: [trees.downwards("tree", levels(ranks), ranks, root, size)]


def _chain(ranks: int, root: int, size: float) -> list[Part]:
    """Return a broadcast from rank to rank."""
    rank = (root + np.arange(ranks - 1)) % ranks
    return [one_by_one("chain", Step(rank, (rank + 1) % ranks), size)]


def _scatter_then(allgather: Algorithm) -> Algorithm:
    """Return the broadcast of a block to each rank, and then of all to all."""
    return lambda ranks, root, size: [
        *gathering.scatter_blocks(ranks, root, size / ranks),
        *allgather(ranks, root, size / ranks),
    ]


def _split_binary(ranks: int, root: int, size: float) -> list[Part]:
    """Return halves of the buffer going down the two sides of a binary tree, then exchanged.

    Odd ranks, counted from the root, get the first half and exchange with the one behind.
    """
    levels = trees.binary(ranks)

    def down(k: int) -> Step:
        parent, child = levels[k]
        return Step((parent + root) % ranks, (child + root) % ranks, (child + 1) % 2)

    odd = np.arange(1, ranks, 2)
    behind = (odd + 1) % ranks
    back = odd[behind > 0]  # the root needs nothing
    source = np.concatenate([back, behind])
    target = np.concatenate([behind[behind > 0], odd])
    half = np.repeat([0, 1], [len(back), len(behind)])
    swap = Step((source + root) % ranks, (target + root) % ranks, half)
    return [
        Part("tree", len(levels), down, size / 2, 2),
        Part("exchange", 1, lambda k: swap, size / 2, 2),
    ]


BCAST = {
    "binomial": _along(trees.binomial),
    "binomial-doubling": _along(trees.doubling_binomial),
    "knomial": _along(trees.knomial),
    "binary": _along(trees.binary),
    "split-binary": _split_binary,
    "linear": _along(trees.linear),
    "chain": _chain,
    "scatter-doubling": _scatter_then(gathering.doubling),
    "scatter-ring": _scatter_then(gathering.ring),
}
