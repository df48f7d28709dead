"""Reductions: to one rank, to all ranks, and to a block of the result on each rank.

Algorithms of 2^k ranks go down to a power of two first, and back at the end:
`_Folded` says what the ranks beyond do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placement.support.array_types import Ints
from rankmap.collectives import Algorithm, Part, Step, backwards, gathering, trees
from rankmap.collectives.broadcast import BCAST

Levels = Callable[[int], list[trees.Level]]

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


def _two_rings(ranks: int, root: int, size: float) -> list[Part]:
    """Return two turns around the ring: one combines, one hands out."""
    block = size / ranks
    return _ring(ranks, 0, block) + gathering.ring(ranks, 0, block)


def _up_and_down(up: Levels, down: Levels) -> Algorithm:
    """Return a reduction to rank 0 along one tree, and a broadcast along another."""
    return lambda ranks, root, size: [
        trees.upwards("reduce", up(ranks), ranks, 0, size),
        trees.downwards("bcast", down(ranks), ranks, 0, size),
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
        return [Part("fold", 1, lambda k: Step(out, stay, 0, blocks), block, blocks, combine=True)]

    def unfold(self, block: float, blocks: int) -> list[Part]:
        """Return the step that gives the result to those left out."""
        return [backwards(part, "unfold") for part in self.fold(block, blocks)]


def _doubling(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive doubling: partners at distance 1, 2, 4 … exchange their whole buffers."""
    on = _Folded(ranks)
    place = np.arange(on.power)

    def step(k: int) -> Step:
        return Step(on.rank(place), on.rank(place ^ (1 << k)))

    core = Part("doubling", on.power.bit_length() - 1, step, size, combine=True)
    return [*on.fold(size, 1), core, *on.unfold(size, 1)]


def _halving(on: _Folded, block: float) -> Part:
    """Return recursive halving of 2^k blocks: half of what is left to a partner twice as far.

    Afterwards place p has the block whose number is p with its bits in reverse.
    """
    place = np.arange(on.power)

    def step(k: int) -> Step:
        half = on.power >> (k + 1)
        first = _kept_block(place, k, on.power) + np.where(place >> k & 1, 0, half)
        return Step(on.rank(place), on.rank(place ^ (1 << k)), first, half)

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


def _to_root(broadcast: Algorithm) -> Algorithm:
    """Return the reduction that is a broadcast backwards."""
    return lambda ranks, root, size: [
        backwards(part, part.name, combine=True) for part in broadcast(ranks, root, size)
    ]


def _in_order_binary(ranks: int, root: int, size: float) -> list[Part]:
    """Return a reduction in rank order, which ends at the last rank and goes on to the root."""
    tree = trees.upwards("tree", trees.in_order_binary(ranks), ranks, 0, size)
    if root == ranks - 1:
        return [tree]
    on = Step(np.array([ranks - 1]), np.array([root]))
    return [tree, Part("to the root", 1, lambda k: on, size)]


def _rabenseifner(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive halving, and a gather of the blocks to the root."""
    on = _Folded(ranks, odd=False)
    block = size / on.power
    found = [*on.fold(block, on.power), _halving(on, block)]
    rank = on.rank(np.arange(on.power))
    if root < 2 * on.beyond and root % 2:  # the root was left out: it takes the place of rank 0
        over = Step(np.array([0]), np.array([root]))
        found.append(Part("to the root", 1, lambda k: over, block, on.power))
        rank[0], home = root, 0
    else:
        home = root // 2 if root < 2 * on.beyond else root - on.beyond
    rounds = on.power.bit_length() - 1
    place = np.arange(on.power)

    def step(k: int) -> Step:
        j = rounds - 1 - k
        sends = (place >> (j + 1) == home >> (j + 1)) & (place >> j != home >> j)
        here = place[sends]
        first = _kept_block(here, j + 1, on.power)
        return Step(rank[here], rank[here ^ (1 << j)], first, on.power >> (j + 1))

    return [*found, Part("gather", rounds, step, block, on.power)]


def _halve_blocks(ranks: int, root: int, block: float) -> list[Part]:
    """Return recursive halving of everyone's blocks, the farthest partner first."""
    on = _Folded(ranks)
    rounds = on.power.bit_length() - 1
    place = np.arange(on.power)

    def step(k: int) -> Step:
        mask = on.power >> (k + 1)
        low = (place ^ mask) & ~(mask - 1)
        first = on.start(low)
        return Step(on.rank(place), on.rank(place ^ mask), first, on.start(low + mask) - first)

    found = [*on.fold(block, ranks), Part("halving", rounds, step, block, ranks, combine=True)]
    if on.beyond:
        stay = on.rank(np.arange(on.beyond))
        last = Step(stay, stay - 1, stay - 1)
        found.append(Part("unfold", 1, lambda k: last, block, ranks))
    return found


def _double_blocks(ranks: int, root: int, block: float) -> list[Part]:
    """Return recursive doubling of all blocks but those of the own half.

    Ranks that are not a power of two take recursive halving.
    """
    if ranks & (ranks - 1):
        return _halve_blocks(ranks, root, block)
    rank = np.arange(ranks)

    def step(k: int) -> Step:
        first = ((rank >> k) + 1 << k) % ranks
        return Step(rank, rank ^ (1 << k), first, ranks - (1 << k))

    rounds = ranks.bit_length() - 1
    return [Part("doubling", rounds, step, block, ranks, combine=True)]


def _butterfly(ranks: int, root: int, block: float) -> list[Part]:
    """Return recursive halving with the nearest partner first; blocks then go to their ranks.

    On a power of two the blocks are sorted beforehand so that each ends at its rank.
    """
    on = _Folded(ranks)
    rounds = on.power.bit_length() - 1
    place = np.arange(on.power)
    mirrored = _kept_block(place, rounds, on.power)

    def step(k: int) -> Step:
        half = on.power >> (k + 1)
        low = _kept_block(place, k, on.power) + np.where(place >> k & 1, 0, half)
        first = on.start(low)
        return Step(on.rank(place), on.rank(place ^ (1 << k)), first, on.start(low + half) - first)

    if not on.beyond:
        return [Part("halving", rounds, step, block, ranks, True, numbers=mirrored)]
    own = on.rank(mirrored)  # whose block a place has, and that of its neighbour
    away = own != on.rank(place)
    both = mirrored < on.beyond
    source = np.concatenate([on.rank(place)[away], on.rank(place)[both]])
    target = np.concatenate([own[away], own[both] - 1])
    last = Step(source, target, target)
    return [
        *on.fold(block, ranks),
        Part("halving", rounds, step, block, ranks, combine=True),
        Part("exchange", 1, lambda k: last, block, ranks),
    ]


def _pairwise(ranks: int, root: int, block: float) -> list[Part]:
    """Return everyone sending rank r + k its block in step k."""
    rank = np.arange(ranks)

    def step(k: int) -> Step:
        target = (rank + k + 1) % ranks
        return Step(rank, target, target)

    return [Part("pairwise", ranks - 1, step, block, ranks, combine=True, even=True)]


def _ring(ranks: int, root: int, block: float) -> list[Part]:
    """Return a block being combined on its way around, ending at its own rank."""
    rank = np.arange(ranks)

    def step(k: int) -> Step:
        return Step(rank, (rank + 1) % ranks, (rank - 1 - k) % ranks)

    alike = ((0, ranks - 1),)
    return [Part("reduce ring", ranks - 1, step, block, ranks, combine=True, alike=alike)]


def _reduced_and_scattered(ranks: int, root: int, block: float) -> list[Part]:
    """Return a binomial reduction of all blocks to rank 0, which scatters them."""
    tree = trees.upwards("tree", trees.binomial(ranks), ranks, 0, block)
    whole = tree.step

    def step(k: int) -> Step:
        return whole(k)._replace(blocks=ranks)

    up = tree._replace(step=step, blocks=ranks)
    return [up, *gathering.SCATTER["linear"](ranks, 0, block)]


ALLREDUCE = {
    "doubling": _doubling,
    "rabenseifner": _rabenseifner_all,
    "ring": _two_rings,
    "reduce-bcast": _up_and_down(trees.binomial, trees.knomial),  # as Open MPI mostly has it
    "linear": _up_and_down(trees.linear, trees.linear),
}
REDUCE = {
    "binomial": _to_root(BCAST["binomial"]),
    "binary": _to_root(BCAST["binary"]),
    "in-order-binary": _in_order_binary,
    "linear": _to_root(BCAST["linear"]),
    "chain": _to_root(BCAST["chain"]),
    "rabenseifner": _rabenseifner,
}
REDUCESCATTER = {
    "halving": _halve_blocks,
    "pairwise": _pairwise,
    "doubling": _double_blocks,
    "butterfly": _butterfly,
    "ring": _ring,
    "reduce-scatter": _reduced_and_scattered,
}
