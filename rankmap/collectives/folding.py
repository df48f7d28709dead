"""Down to a power of two and back: what algorithms of 2^k ranks do with the ranks beyond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankmap.collectives import Part, Step

if TYPE_CHECKING:
    from placement.support.array_types import Ints


__all__ = ["Folded", "doubling", "halving", "regathered"]


class Folded:
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
        return [Part("fold", 1, lambda k: Step(out, stay, 0, blocks), block, blocks, combine=True)]

    def unfold(self, block: float, blocks: int) -> list[Part]:
        """Return the step that gives the result to those left out."""
        if not self.beyond:
            return []
        stay = self.rank(np.arange(self.beyond))
        out = stay + (-1 if self.odd else 1)
        return [Part("unfold", 1, lambda k: Step(stay, out, 0, blocks), block, blocks)]


def doubling(on: Folded, block: float) -> Part:
    """Return recursive doubling: partners at distance 1, 2, 4 … exchange all they have."""
    place = np.arange(on.power)

    def step(k: int) -> Step:
        return Step(on.rank(place), on.rank(place ^ (1 << k)))

    return Part("doubling", on.power.bit_length() - 1, step, block, combine=True)


def halving(on: Folded, block: float) -> Part:
    """Return recursive halving of 2^k blocks: half of what is left to a partner twice as far.

    Afterwards place p has the block whose number is p with its bits in reverse.
    """
    place = np.arange(on.power)

    def step(k: int) -> Step:
        half = on.power >> (k + 1)
        first = kept(place, k, on.power) + np.where(place >> k & 1, 0, half)
        return Step(on.rank(place), on.rank(place ^ (1 << k)), first, half)

    return Part("halving", on.power.bit_length() - 1, step, block, on.power, combine=True)


def kept(place: Ints, k: int, power: int) -> Ints:
    """Return the first block that each place still has after k halvings.

    Examples
    --------
    >>> kept(np.arange(4), 2, 4).tolist()
    [0, 2, 1, 3]
    """
    first = np.zeros_like(place)
    for j in range(k):
        first += (place >> j & 1) * (power >> (j + 1))
    return first


def regathered(on: Folded, block: float) -> Part:
    """Return `halving` backwards: everyone gets all blocks."""
    place = np.arange(on.power)
    rounds = on.power.bit_length() - 1

    def step(k: int) -> Step:
        j = rounds - 1 - k
        first = kept(place, j + 1, on.power)
        return Step(on.rank(place), on.rank(place ^ (1 << j)), first, on.power >> (j + 1))

    return Part("allgather", rounds, step, block, on.power)
