"""Broadcasts: a binomial tree, and a scatter followed by a ring."""

from __future__ import annotations

from rankmap.collectives import BlockStep, Part, gathering, trees

__all__ = ["BCAST"]


def _tree(ranks: int, root: int, size: float) -> list[Part]:
    """Return the whole buffer's way down a tree."""
    levels = trees.binomial(ranks)

    def step(k: int) -> BlockStep:
        parent, child = levels[k]
        return BlockStep((parent + root) % ranks, (child + root) % ranks)

    return [Part("tree", len(levels), step, size)]


def _scatter_ring(ranks: int, root: int, size: float) -> list[Part]:
    """Return a block being sent to each rank, and then all to all."""
    block = size / ranks
    return [*gathering.scatter_blocks(ranks, root, block), *gathering.ring(ranks, root, block)]


BCAST = {"binomial": _tree, "scatter-ring": _scatter_ring}
