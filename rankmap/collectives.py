"""Collectives as libraries do them: steps of messages, one algorithm after another.

A collective is done in *parts* that follow each other (a scatter, then a ring), a part in
*steps*, and a step is a set of messages sent at the same time: source, destination, and
which blocks of the buffer each carries. Nothing here knows of nodes or of time.
Trees are binomial, their ranks counted from the root: v is rank (v + root) mod P. Reductions
of 2^k ranks go down to a power of two first, and back at the end: `_Folded` says what the
ranks beyond do.

=============  ==============================
family         buffer
=============  ==============================
bcast          the root's buffer
reduce         a rank's buffer
allreduce      a rank's buffer
gather         one rank's block
scatter        one rank's block
allgather      one rank's block
reducescatter  the block that a rank keeps
barrier        nothing
=============  ==============================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from placement.support.array_types import Ints

__all__ = [
    "ALGORITHMS",
    "FAMILIES",
    "ROOTED",
    "Algorithm",
    "BlockStep",
    "Part",
    "algorithms_of",
    "collective_parts",
    "reverse_part",
    "usual_algorithm",
]

#: Returns the parts for so many ranks, a root and ``--bytes``.
Algorithm: TypeAlias = "Callable[[int, int, float], list[Part]]"

#: What libraries usually take: for a short buffer, for a long one, and the bytes from which it
#: is long, in all and a rank. Of an allgather and a reducescatter the blocks of all ranks count.
USUAL = {
    "bcast": ("binomial", "scatter-ring", 12_289, 0),
    "reduce": ("binomial", "rabenseifner", 2_049, 8),
    "allreduce": ("doubling", "rabenseifner", 9, 8),
    "gather": ("binomial", "binomial", 0, 0),
    "scatter": ("binomial", "binomial", 0, 0),
    "allgather": ("bruck", "ring", 81_920, 0),
    "reducescatter": ("halving", "pairwise", 524_288, 0),
    "barrier": ("dissemination", "dissemination", 0, 0),
}

#: The same where ranks are a power of two, if that makes a difference.
OF_POWERS_OF_TWO = {"allgather": ("doubling", "ring", 524_288, 0)}

#: What can be asked for by name.
FAMILIES = tuple(USUAL)

#: Families with a root.
ROOTED = ("bcast", "reduce", "gather", "scatter")


class BlockStep(NamedTuple):
    """Messages that are sent at the same time.

    Attributes
    ----------
    source, target : int64 (m,)
        Ranks.
    first : int or int64 (m,)
        The first block that each carries.
    blocks : int or int64 (m,)
        How many it carries, the block behind the last being the first.
    """

    source: Ints
    target: Ints
    first: Ints | int = 0
    blocks: Ints | int = 1


class Part(NamedTuple):
    """A part of a collective: its steps, one after the other.

    Attributes
    ----------
    name : str
        What is done, as ``scatter`` or ``ring``.
    steps : int
        How many.
    step : callable
        Returns the k-th of them, from 0.
    block : float
        Bytes of a block.
    blocks : int
        Blocks of the whole buffer.
    combine : bool
        Whether what arrives is combined with what is there, not put in its place.
    alike : tuple of (int, int)
        Steps that stand for others which send as much between the same ranks, and for
        how many; empty where each stands for itself alone.
    even : bool
        Whether steps are so much alike that some of many may stand for all.
    """

    name: str
    steps: int
    step: Callable[[int], BlockStep]
    block: float
    blocks: int = 1
    combine: bool = False
    alike: tuple[tuple[int, int], ...] = ()
    even: bool = False


def reverse_part(part: Part, name: str, combine: bool = False) -> Part:
    """Return a part whose messages go the other way, the last step first."""

    def step(k: int) -> BlockStep:
        source, target, first, blocks = part.step(part.steps - 1 - k)
        return BlockStep(target, source, first, blocks)

    return part._replace(name=name, step=step, combine=combine)


def algorithms_of(family: str) -> dict[str, Algorithm]:
    """Return the algorithms of a family by name.

    Examples
    --------
    >>> list(algorithms_of("allgather"))
    ['bruck', 'doubling', 'ring']
    """
    return ALGORITHMS[family]


def collective_parts(family: str, algorithm: str, ranks: int, root: int, size: float) -> list[Part]:
    """Return the parts in which an algorithm does a collective, one after the other.

    Parameters
    ----------
    family : str
        A key of `FAMILIES`.
    algorithm : str
        A key of `algorithms_of`.
    ranks : int
    root : int
        What has no root takes 0.
    size : float
        ``--bytes``, as MPI counts it: the whole buffer of a bcast, reduce or allreduce,
        one rank's block of all others.

    Examples
    --------
    >>> tree = collective_parts("bcast", "binomial", 6, 0, 8.0)[0]
    >>> [list(zip(*(x.tolist() for x in tree.step(k)[:2]))) for k in range(tree.steps)]
    [[(0, 4)], [(0, 2)], [(0, 1), (2, 3), (4, 5)]]
    """
    if ranks < 2:
        return []
    return algorithms_of(family)[algorithm](ranks, root, size)


def usual_algorithm(family: str, size: float, ranks: int) -> str:
    """Return the algorithm that libraries usually take.

    Sources: R. Thakur et al., 2005; ``generic.json`` of MPICH 4.2. Below 32 ranks Open MPI 4 and 5
    do an allgather of any size as MPICH does a short one (``coll_tuned_decision_fixed.c``).

    Parameters
    ----------
    family, ranks
        See `collective_parts`.
    size : float
        ``--bytes``.

    Examples
    --------
    >>> usual_algorithm("bcast", 1000, 64), usual_algorithm("bcast", 1e6, 64)
    ('binomial', 'scatter-ring')
    >>> usual_algorithm("allgather", 100, 65), usual_algorithm("allgather", 100, 64)
    ('bruck', 'doubling')
    """
    power = ranks & (ranks - 1) == 0
    rules = USUAL | OF_POWERS_OF_TWO if power else USUAL
    short, long, least, a_rank = rules[family]
    total = size * ranks if family in ("allgather", "reducescatter") else size
    return long if total >= max(least, a_rank * ranks) else short


Level = tuple[Ints, Ints]


def log2_up(count: int) -> int:
    """Return the least k with 2**k >= count.

    Examples
    --------
    >>> log2_up(1), log2_up(8), log2_up(9)
    (0, 3, 4)
    """
    return (count - 1).bit_length()


def binomial_levels(ranks: int) -> list[Level]:
    """Return the levels, from the root outwards, each as (parents, children).

    The root first sends half way across: v to v + 2^k, k falling.
    """
    levels = []
    for k in reversed(range(log2_up(ranks))):
        parent = np.arange(0, ranks, 2 << k)
        parent = parent[parent + (1 << k) < ranks]
        levels.append((parent, parent + (1 << k)))
    return levels


def _tell_all(ranks: int, root: int, size: float) -> list[Part]:
    """Return rank r telling r + 2^k in round k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        return BlockStep(rank, (rank + (1 << k)) % ranks)

    return [Part("dissemination", log2_up(ranks), step, 0.0, combine=True)]


def _doubling_barrier(ranks: int, root: int, size: float) -> list[Part]:
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


def scatter_blocks(ranks: int, root: int, block: float) -> list[Part]:
    """Return a binomial scatter: each rank passes on what its subtree is to have."""
    levels = binomial_levels(ranks)

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


def ring_steps(ranks: int, root: int, block: float) -> list[Part]:
    """Return the ring: in step k rank r passes on the block of rank r - k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        return BlockStep(rank, (rank + 1) % ranks, (rank - k) % ranks)

    return [Part("ring", ranks - 1, step, block, ranks, alike=((0, ranks - 1),))]


def bruck_steps(ranks: int, root: int, block: float) -> list[Part]:
    """Return Bruck's: in round k rank r sends its first 2^k blocks to r - 2^k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        return BlockStep(rank, (rank - (1 << k)) % ranks, rank, min(1 << k, ranks - (1 << k)))

    return [Part("bruck", log2_up(ranks), step, block, ranks)]


def double_blocks(ranks: int, root: int, block: float) -> list[Part]:
    """Return recursive doubling: in round k partners 2^k apart exchange all that they have.

    Of ranks that are no power of two Bruck's.
    """
    if ranks & (ranks - 1):
        return bruck_steps(ranks, root, block)
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        return BlockStep(rank, rank ^ (1 << k), rank >> k << k, 1 << k)

    return [Part("doubling", log2_up(ranks), step, block, ranks)]


def _gather_blocks(scatter: Algorithm) -> Algorithm:
    """Return the gather that is a scatter backwards."""
    return lambda ranks, root, block: [
        reverse_part(p, "gather") for p in scatter(ranks, root, block)
    ]


def _down_tree(ranks: int, root: int, size: float) -> list[Part]:
    """Return the whole buffer's way down a tree."""
    levels = binomial_levels(ranks)

    def step(k: int) -> BlockStep:
        parent, child = levels[k]
        return BlockStep((parent + root) % ranks, (child + root) % ranks)

    return [Part("tree", len(levels), step, size)]


def _scatter_ring(ranks: int, root: int, size: float) -> list[Part]:
    """Return a block being sent to each rank, and then all to all."""
    block = size / ranks
    return [*scatter_blocks(ranks, root, block), *ring_steps(ranks, root, block)]


def _rabenseifner_all(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive halving, and the same backwards as an allgather."""
    on = _Folded(ranks)
    block = size / on.power
    halving = _recursive_halving(on, block)
    return [
        *on.fold(block, on.power),
        halving,
        reverse_part(halving, "allgather"),
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
        return [reverse_part(part, "unfold") for part in self.fold(block, blocks)]


def _recursive_doubling(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive doubling: partners at distance 1, 2, 4 … exchange their whole buffers."""
    on = _Folded(ranks)
    place = np.arange(on.power)

    def step(k: int) -> BlockStep:
        return BlockStep(on.rank(place), on.rank(place ^ (1 << k)))

    core = Part("doubling", on.power.bit_length() - 1, step, size, combine=True)
    return [*on.fold(size, 1), core, *on.unfold(size, 1)]


def _recursive_halving(on: _Folded, block: float) -> Part:
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


def _reduce_and_gather(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive halving, and a gather of the blocks to the root."""
    on = _Folded(ranks, odd=False)
    block = size / on.power
    parts = [*on.fold(block, on.power), _recursive_halving(on, block)]
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


def _pairwise_exchange(ranks: int, root: int, block: float) -> list[Part]:
    """Return everyone sending rank r + k its block in step k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        target = (rank + k + 1) % ranks
        return BlockStep(rank, target, target)

    return [Part("pairwise", ranks - 1, step, block, ranks, combine=True, even=True)]


def _up_the_tree(ranks: int, root: int, size: float) -> list[Part]:
    """Return the broadcast along a binomial tree, backwards."""
    tree = _down_tree(ranks, root, size)
    return [reverse_part(part, part.name, combine=True) for part in tree]


#: The algorithms of each family by name.
ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "bcast": {"binomial": _down_tree, "scatter-ring": _scatter_ring},
    "reduce": {"binomial": _up_the_tree, "rabenseifner": _reduce_and_gather},
    "allreduce": {"doubling": _recursive_doubling, "rabenseifner": _rabenseifner_all},
    "gather": {
        "binomial": _gather_blocks(scatter_blocks),
        "linear": _gather_blocks(_scattered_at_once),
    },
    "scatter": {"binomial": scatter_blocks, "linear": _scattered_at_once},
    "allgather": {"bruck": bruck_steps, "doubling": double_blocks, "ring": ring_steps},
    "reducescatter": {"halving": _halve_blocks, "pairwise": _pairwise_exchange},
    "barrier": {"dissemination": _tell_all, "doubling": _doubling_barrier},
}
