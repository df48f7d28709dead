"""Reductions: to one rank, to all ranks, and to a block of the result on each rank.

Algorithms of 2^k ranks go down to a power of two first, and back at the end:
`_Folded` says what the ranks beyond do.
"""

from __future__ import annotations

import numpy as np

from placement.support.array_types import Ints
from rankmap.collectives import BlockStep, Part, backwards
from rankmap.collectives.broadcast import BCAST

__all__ = ["ALLREDUCE", "REDUCE", "REDUCESCATTER"]


def _rabenseifner_all(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive halving, and the same backwards as an allgather."""
    on = _Folded(ranks)
    block = size / on.power
    halving = _halving(on, block)
    return [
        *on.fold(block, on.power),
        halving,
        backwards(halving, "allgather"),
        *on.unfold(block, on.power),
    ]


class _Folded:
    """The ranks that take part, renumbered 0 … 2^k - 1.

    Of the first 2r ranks, r being those beyond a power of two, each even one gives what it
    has to the odd one behind it, which stands for both.

    Parameters
    ----------
    ranks : int
    odd : bool
        False: odd ones give to the even one before them.

    Attributes
    ----------
    power, beyond : int
        2^k and r.
    """

    def __init__(self, ranks: int, odd: bool = True) -> None:
        self.power = 1 << (ranks.bit_length() - 1)
        self.beyond = ranks - self.power
        self.odd = odd

    def rank(self, place: Ints) -> Ints:
        """Return the rank at each place."""
        return np.where(place < self.beyond, 2 * place + self.odd, place + self.beyond)

    def start(self, place: Ints) -> Ints:
        """Return the first of the ranks that a place stands for."""
        return place + np.minimum(place, self.beyond)

    def fold(self, block: float, blocks: int) -> list[Part]:
        """Return the step that gives the buffers of those left out to their stand-ins."""
        if not self.beyond:
            return []
        stay = self.rank(np.arange(self.beyond))
        out = stay + (-1 if self.odd else 1)
        return [
            Part("fold", 1, lambda k: BlockStep(out, stay, 0, blocks), block, blocks, combine=True)
        ]

    def unfold(self, block: float, blocks: int) -> list[Part]:
        """Return the step that gives the result to those left out."""
        return [backwards(part, "unfold") for part in self.fold(block, blocks)]


def _doubling(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive doubling: partners at distance 1, 2, 4 … exchange their whole buffers."""
    on = _Folded(ranks)
    place = np.arange(on.power)

    def step(k: int) -> BlockStep:
        return BlockStep(on.rank(place), on.rank(place ^ (1 << k)))

    core = Part("doubling", on.power.bit_length() - 1, step, size, combine=True)
    return [*on.fold(size, 1), core, *on.unfold(size, 1)]


def _halving(on: _Folded, block: float) -> Part:
    """Return recursive halving of 2^k blocks: half of what is left to a partner twice as far.

    Afterwards place p has the block whose number is p with its bits in reverse.
    """
    place = np.arange(on.power)

    def step(k: int) -> BlockStep:
        half = on.power >> (k + 1)
        first = _kept_block(place, k, on.power) + np.where(place >> k & 1, 0, half)
        return BlockStep(on.rank(place), on.rank(place ^ (1 << k)), first, half)

    return Part("halving", on.power.bit_length() - 1, step, block, on.power, combine=True)


def _kept_block(place: Ints, k: int, power: int) -> Ints:
    """Return the first block that each place still has after k halvings.

    Examples
    --------
    >>> _kept_block(np.arange(4), 2, 4).tolist()
    [0, 2, 1, 3]
    """
    first = np.zeros_like(place)
    for j in range(k):
        first += (place >> j & 1) * (power >> (j + 1))
    return first


def _rabenseifner(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive halving, and a gather of the blocks to the root."""
    on = _Folded(ranks, odd=False)
    block = size / on.power
    parts = [*on.fold(block, on.power), _halving(on, block)]
    rank = on.rank(np.arange(on.power))
    if root < 2 * on.beyond and root % 2:  # the root was left out: it takes the place of rank 0
        over = BlockStep(np.array([0]), np.array([root]))
        parts.append(Part("to the root", 1, lambda k: over, block, on.power))
        rank[0], home = root, 0
    else:
        home = root // 2 if root < 2 * on.beyond else root - on.beyond
    rounds = on.power.bit_length() - 1
    place = np.arange(on.power)

    def step(k: int) -> BlockStep:
        j = rounds - 1 - k
        sends = (place >> (j + 1) == home >> (j + 1)) & (place >> j != home >> j)
        here = place[sends]
        first = _kept_block(here, j + 1, on.power)
        return BlockStep(rank[here], rank[here ^ (1 << j)], first, on.power >> (j + 1))

    return [*parts, Part("gather", rounds, step, block, on.power)]


def _halve_blocks(ranks: int, root: int, block: float) -> list[Part]:
    """Return recursive halving of everyone's blocks, the farthest partner first."""
    on = _Folded(ranks)
    rounds = on.power.bit_length() - 1
    place = np.arange(on.power)

    def step(k: int) -> BlockStep:
        mask = on.power >> (k + 1)
        low = (place ^ mask) & ~(mask - 1)
        first = on.start(low)
        return BlockStep(on.rank(place), on.rank(place ^ mask), first, on.start(low + mask) - first)

    parts = [*on.fold(block, ranks), Part("halving", rounds, step, block, ranks, combine=True)]
    if on.beyond:
        stay = on.rank(np.arange(on.beyond))
        last = BlockStep(stay, stay - 1, stay - 1)
        parts.append(Part("unfold", 1, lambda k: last, block, ranks))
    return parts


def _pairwise(ranks: int, root: int, block: float) -> list[Part]:
    """Return everyone sending rank r + k its block in step k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        target = (rank + k + 1) % ranks
        return BlockStep(rank, target, target)

    return [Part("pairwise", ranks - 1, step, block, ranks, combine=True, even=True)]


def _up_the_tree(ranks: int, root: int, size: float) -> list[Part]:
    """Return the broadcast along a binomial tree, backwards."""
    tree = BCAST["binomial"](ranks, root, size)
    return [backwards(part, part.name, combine=True) for part in tree]


ALLREDUCE = {"doubling": _doubling, "rabenseifner": _rabenseifner_all}
REDUCE = {"binomial": _up_the_tree, "rabenseifner": _rabenseifner}
REDUCESCATTER = {"halving": _halve_blocks, "pairwise": _pairwise}
