"""Barriers: messages without bytes, until everyone knows that everyone has come."""

from __future__ import annotations

import numpy as np

from rankmap.collectives import BlockStep, Part, trees

__all__ = ["BARRIER"]


def _dissemination(ranks: int, root: int, size: float) -> list[Part]:
    """Return rank r telling r + 2^k in round k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        return BlockStep(rank, (rank + (1 << k)) % ranks)

    return [Part("dissemination", trees.log2_up(ranks), step, 0.0, combine=True)]


def _doubling(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive doubling; a rank beyond the power of two tells the one so far below it."""
    power = 1 << (ranks.bit_length() - 1)
    rank, beyond = np.arange(power), np.arange(ranks - power)
    came, go = BlockStep(beyond + power, beyond), BlockStep(beyond, beyond + power)

    def step(k: int) -> BlockStep:
        return BlockStep(rank, rank ^ (1 << k))

    core = Part("doubling", power.bit_length() - 1, step, 0.0, combine=True)
    if not len(beyond):
        return [core]
    return [
        Part("fold", 1, lambda k: came, 0.0, combine=True),
        core,
        Part("unfold", 1, lambda k: go, 0.0, combine=True),
    ]


BARRIER = {"dissemination": _dissemination, "doubling": _doubling}
