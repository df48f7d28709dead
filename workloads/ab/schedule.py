"""The order in which arms take turns: blocks that read the same backwards."""

from __future__ import annotations

import random

__all__ = ["schedule"]


def schedule(arms: int, blocks: int, seed: int | str) -> list[list[int]]:
    """Return the turns of each block: a random permutation of the arms and its reverse.

    For two arms that is ABBA or BAAB, by the toss of a coin. Every arm is
    visited twice a block and the mean time of its visits is the middle of the
    block, so that a drift that is linear over a block cancels.

    Parameters
    ----------
    arms : int
        How many are compared.
    blocks : int
    seed : int or str
        The same for all ranks.

    Examples
    --------
    >>> schedule(2, 3, seed=1)
    [[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]]
    """
    rng = random.Random(f"blocks {seed}")  # noqa: S311  # an order of turns, no secret
    turns = []
    for _ in range(blocks):
        there = list(range(arms))
        rng.shuffle(there)
        turns.append([*there, *reversed(there)])
    return turns
