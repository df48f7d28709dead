# SPDX-License-Identifier: Apache-2.0
"""Algorithms for each collective, as parts of steps, and the messages of a whole call.

Trees are binomial, their ranks counted from the root: v is rank (v + root) mod P. Reductions
of 2^k ranks go down to a power of two first, and back at the end: `_Folded` says what the
ranks beyond do.

A collective has no pairs of its own. In a recording a call counts as the messages of the algorithm
that libraries usually take for this many ranks and bytes, so that the matrix says which ranks gain
from being close. In an all-to-all each pair has what it exchanges, scan and exscan are a chain of
ranks; what differs by rank (v- and w-forms, neighbours) is recorded by pair. A barrier sends no
bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import sum_by_key
from nidmap.rankmap.collectives import (
    FAMILIES,
    Algorithm,
    BlockStep,
    Part,
    partner_in_turn,
    reverse_part,
    usual_algorithm,
)

#: Children of a rank and one more, in Open MPI's k-nomial trees (``coll_tuned_bcast_decision.c``).
RADIX = 4

#: The kinds that go along a chain of ranks, and those in which each rank may send to each other.
CHAINS = ("scan", "exscan")
EVERY_PAIR = ("alltoall", "reduce_scatter")


Level = tuple[Ints, Ints]


def log2_up(count: int) -> int:
    """Return the least k with 2**k >= count."""
    return (count - 1).bit_length()


def binomial_levels(ranks: int) -> list[Level]:
    """Return the levels of a binomial tree, root first, each as (parents, children).

    The root first sends half way across: v to v + 2^k, k falling.
    """
    levels = []
    # Parents are the multiples of 2^(k + 1): all that were reached on earlier levels.
    for k in reversed(range(log2_up(ranks))):
        parent = np.arange(0, ranks, 2 << k)
        parent = parent[parent + (1 << k) < ranks]
        levels.append((parent, parent + (1 << k)))
    return levels


def _tell_all(ranks: int, root: int, size: float) -> list[Part]:
    """Return the dissemination algorithm: in round k rank r signals r + 2^k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        return BlockStep(rank, (rank + (1 << k)) % ranks)

    return [Part("dissemination", log2_up(ranks), step, 0.0, combine=True)]


def scatter_blocks(ranks: int, root: int, block: float) -> list[Part]:
    """Return a binomial scatter: each rank passes on the blocks for its subtree."""
    levels = binomial_levels(ranks)

    def step(k: int) -> BlockStep:
        parent, child = levels[k]
        # A child at distance 2^k heads the subtree child … child + 2^k - 1, cut at the last rank.
        count = np.minimum(1 << (len(levels) - 1 - k), ranks - child)
        return BlockStep(
            (parent + root) % ranks, (child + root) % ranks, (child + root) % ranks, count
        )

    return [Part("scatter", len(levels), step, block, ranks)]


def _scattered_at_once(ranks: int, root: int, block: float) -> list[Part]:
    """Return a linear scatter: the root sends every rank its block at once."""
    child = (np.arange(1, ranks) + root) % ranks
    source = np.full(ranks - 1, root)
    return [Part("scatter", 1, lambda k: BlockStep(source, child, child), block, ranks)]


def ring_steps(ranks: int, root: int, block: float) -> list[Part]:
    """Return the ring algorithm: in step k rank r passes on the block of rank r - k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        return BlockStep(rank, (rank + 1) % ranks, (rank - k) % ranks)

    return [Part("ring", ranks - 1, step, block, ranks, alike=((0, ranks - 1),))]


def bruck_steps(ranks: int, root: int, block: float) -> list[Part]:
    """Return Bruck's algorithm: in round k rank r sends its first 2^k blocks to r - 2^k."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        # Rank r has the blocks r … r + 2^k - 1 (mod P); the last round sends only the P - 2^k that
        # are missing.
        return BlockStep(rank, (rank - (1 << k)) % ranks, rank, min(1 << k, ranks - (1 << k)))

    return [Part("bruck", log2_up(ranks), step, block, ranks)]


def double_blocks(ranks: int, root: int, block: float) -> list[Part]:
    """Return recursive doubling: in round k partners 2^k apart exchange all they have.

    Of ranks that are no power of two Bruck's.
    """
    if ranks & (ranks - 1):
        return bruck_steps(ranks, root, block)
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        # Before round k a rank has the blocks of its aligned group of 2^k ranks.
        return BlockStep(rank, rank ^ (1 << k), rank >> k << k, 1 << k)

    return [Part("doubling", log2_up(ranks), step, block, ranks)]


def _gather_blocks(scatter: Algorithm) -> Algorithm:
    """Return a binomial gather, the scatter reversed."""
    return lambda ranks, root, block: [
        reverse_part(p, "gather") for p in scatter(ranks, root, block)
    ]


def _down_tree(ranks: int, root: int, size: float) -> list[Part]:
    """Return a binomial broadcast of the whole buffer."""
    return _down_levels("tree", binomial_levels(ranks), ranks, root, size)


def _all_at_once(ranks: int, root: int, size: float) -> list[Part]:
    """Return a linear broadcast: the root sends every rank the whole buffer at once."""
    child = (np.arange(1, ranks) + root) % ranks
    return [Part("linear", 1, lambda k: BlockStep(np.full(ranks - 1, root), child), size)]


def _along_a_chain(ranks: int, root: int, size: float) -> list[Part]:
    """Return a chain broadcast: each rank passes the buffer on to the next."""

    def step(k: int) -> BlockStep:
        return BlockStep(np.array([(root + k) % ranks]), np.array([(root + k + 1) % ranks]))

    return [Part("chain", ranks - 1, step, size)]


def _down_levels(name: str, levels: list[Level], ranks: int, root: int, size: float) -> list[Part]:
    """Return a broadcast of the whole buffer down a tree, level by level."""

    def step(k: int) -> BlockStep:
        parent, child = levels[k]
        return BlockStep((parent + root) % ranks, (child + root) % ranks)

    return [Part(name, len(levels), step, size)]


def _down_binary_tree(ranks: int, root: int, size: float) -> list[Part]:
    """Return Open MPI's binary tree: a rank of level l sends to those 2^l and 2 x 2^l above."""
    levels: list[Level] = []
    for level in range(log2_up(ranks + 1) - 1):
        # Level l are the ranks 2^l - 1 … 2^(l + 1) - 2, counted from the root.
        first = (1 << level) - 1
        parent = np.repeat(np.arange(first, 2 * first + 1), 2)
        child = parent + np.tile([1, 2], len(parent) // 2) * (1 << level)
        levels.append((parent[child < ranks], child[child < ranks]))
    return _down_levels("binary", levels, ranks, root, size)


def _down_wide_tree(ranks: int, root: int, size: float) -> list[Part]:
    """Return the k-nomial tree of radix 4: each rank sends to three others, farthest first."""
    levels: list[Level] = []
    reach = 1
    # Built from the leaves: at distance `reach` the multiples of 4 reach serve the next three.
    while reach < ranks:
        parent = np.repeat(np.arange(0, ranks, RADIX * reach), RADIX - 1)
        child = parent + np.tile(np.arange(1, RADIX), len(parent) // (RADIX - 1)) * reach
        levels.insert(0, (parent[child < ranks], child[child < ranks]))
        reach *= RADIX
    return _down_levels("knomial", levels, ranks, root, size)


def _scatter_ring(ranks: int, root: int, size: float) -> list[Part]:
    """Return a broadcast as a scatter followed by a ring allgather."""
    block = size / ranks
    return [*scatter_blocks(ranks, root, block), *ring_steps(ranks, root, block)]


def _scatter_doubling(ranks: int, root: int, size: float) -> list[Part]:
    """Return a broadcast as a scatter followed by a recursive doubling allgather."""
    block = size / ranks
    return [*scatter_blocks(ranks, root, block), *double_blocks(ranks, root, block)]


def _ring_all(ranks: int, root: int, size: float) -> list[Part]:
    """Return a ring allreduce: a ring that combines blocks, then one that distributes them."""
    (ring,) = ring_steps(ranks, root, size / ranks)
    rank = np.arange(ranks)

    def tell(k: int) -> BlockStep:
        return BlockStep(rank, (rank + 1) % ranks, (rank + 1 - k) % ranks)

    # Reduce-scatter: after P - 1 steps rank r holds the sum of block r + 1; an allgather round the
    # same ring starts from there. Each rank sends 2 (P - 1) / P of the buffer.
    return [ring._replace(name="reduce", combine=True), ring._replace(step=tell)]


def _reduce_and_tell(ranks: int, root: int, size: float) -> list[Part]:
    """Return a reduction to rank 0, followed by a broadcast."""
    return [*_up_the_tree(ranks, 0, size), *_down_tree(ranks, 0, size)]


def _exchange_with_neighbours(ranks: int, root: int, block: float) -> list[Part]:
    """Return Chen and Yuan's neighbour exchange, for an even number of ranks."""
    if ranks % 2:
        return ring_steps(ranks, root, block)
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        target = (rank + np.where((rank + k) % 2 == 0, 1, -1)) % ranks
        if not k:
            return BlockStep(rank, target, rank)
        # In each step after the first a rank passes on the pair of blocks that it got in the step
        # before, from the other side.
        away = -(k // 2) if k % 2 == 0 else k // 2  # the pair that an even rank heard of last
        pair = rank // 2 + np.where(rank % 2 == 0, away, -away)
        return BlockStep(rank, target, 2 * pair % ranks, 2)

    return [Part("neighbour", ranks // 2, step, block, ranks)]


def _rabenseifner_all(ranks: int, root: int, size: float) -> list[Part]:
    """Return Rabenseifner's allreduce: recursive halving, then its reverse as an allgather."""
    folded = _Folded(ranks)
    block = size / folded.power
    # Each rank sends 2 (2^k - 1) / 2^k of the buffer, in 2k steps.
    halving = _recursive_halving(folded, block)
    return [
        *folded.fold(block, folded.power),
        halving,
        reverse_part(halving, "allgather"),
        *folded.unfold(block, folded.power),
    ]


class _Folded:
    """The participating ranks, renumbered 0 … 2^k - 1.

    Of the first 2r ranks, r being those beyond a power of two, each even one gives what it
    has to the odd one after it, which stands for both.

    `odd`: False: odd ones give to the even one before them.
    """

    def __init__(self, ranks: int, odd: bool = True) -> None:
        # power, beyond: 2^k and r
        self.power = 1 << (ranks.bit_length() - 1)
        self.beyond = ranks - self.power
        self.odd = odd

    def rank(self, place: Ints) -> Ints:
        """Return the rank with each new number."""
        return np.where(place < self.beyond, 2 * place + self.odd, place + self.beyond)

    def start(self, place: Ints) -> Ints:
        """Return the first of the ranks that a new number represents."""
        return place + np.minimum(place, self.beyond)

    def fold(self, block: float, blocks: int) -> list[Part]:
        """Return the step in which the ranks left out send their buffers to a participant."""
        if not self.beyond:
            return []
        stay = self.rank(np.arange(self.beyond))
        out = stay + (-1 if self.odd else 1)
        return [
            Part("fold", 1, lambda k: BlockStep(out, stay, 0, blocks), block, blocks, combine=True)
        ]

    def unfold(self, block: float, blocks: int) -> list[Part]:
        """Return the step in which the ranks left out receive the result."""
        return [reverse_part(part, "unfold") for part in self.fold(block, blocks)]


def _recursive_doubling(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive doubling: partners 1, 2, 4 … apart exchange their whole buffers."""
    folded = _Folded(ranks)
    place = np.arange(folded.power)

    def step(k: int) -> BlockStep:
        return BlockStep(folded.rank(place), folded.rank(place ^ (1 << k)))

    core = Part("doubling", folded.power.bit_length() - 1, step, size, combine=True)
    return [*folded.fold(size, 1), core, *folded.unfold(size, 1)]


def _recursive_halving(on: _Folded, block: float) -> Part:
    """Return recursive halving of 2^k blocks, the distance of partners doubling each time.

    Afterwards place p has the block whose number is p with its bits in reverse.
    """
    place = np.arange(on.power)

    def step(k: int) -> BlockStep:
        half = on.power >> (k + 1)
        # A place keeps the half that its bit k names, and sends the other.
        first = _kept_block(place, k, on.power) + np.where(place >> k & 1, 0, half)
        return BlockStep(on.rank(place), on.rank(place ^ (1 << k)), first, half)

    return Part("halving", on.power.bit_length() - 1, step, block, on.power, combine=True)


def _kept_block(place: Ints, k: int, power: int) -> Ints:
    """Return the first block that each new number still has after k halvings."""
    first = np.zeros_like(place)
    # Bit j of the place chose between halves of power / 2^(j + 1) blocks.
    for j in range(k):
        first += (place >> j & 1) * (power >> (j + 1))
    return first


def _reduce_and_gather(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive halving, followed by a gather of the blocks at the root."""
    folded = _Folded(ranks, odd=False)
    block = size / folded.power
    parts = [*folded.fold(block, folded.power), _recursive_halving(folded, block)]
    rank = folded.rank(np.arange(folded.power))
    if root < 2 * folded.beyond and root % 2:  # the root was left out: it takes the place of rank 0
        over = BlockStep(np.array([0]), np.array([root]))
        parts.append(Part("to the root", 1, lambda k: over, block, folded.power))
        rank[0], home = root, 0
    else:
        home = root // 2 if root < 2 * folded.beyond else root - folded.beyond
    rounds = folded.power.bit_length() - 1
    place = np.arange(folded.power)

    def step(k: int) -> BlockStep:
        j = rounds - 1 - k
        # The gather undoes the halving, its last round first: of every two partners, the one on the
        # other side from the root sends what it has.
        sends = (place >> (j + 1) == home >> (j + 1)) & (place >> j != home >> j)
        here = place[sends]
        first = _kept_block(here, j + 1, folded.power)
        return BlockStep(rank[here], rank[here ^ (1 << j)], first, folded.power >> (j + 1))

    return [*parts, Part("gather", rounds, step, block, folded.power)]


def _halve_blocks(ranks: int, root: int, block: float) -> list[Part]:
    """Return recursive halving of every rank's blocks, farthest partners first."""
    folded = _Folded(ranks)
    rounds = folded.power.bit_length() - 1
    place = np.arange(folded.power)

    def step(k: int) -> BlockStep:
        mask = folded.power >> (k + 1)
        # The farthest partner first: what is sent are the blocks of the partner's half, which are
        # consecutive; ranks that are folded in have theirs in it.
        low = (place ^ mask) & ~(mask - 1)
        first = folded.start(low)
        return BlockStep(
            folded.rank(place), folded.rank(place ^ mask), first, folded.start(low + mask) - first
        )

    parts = [*folded.fold(block, ranks), Part("halving", rounds, step, block, ranks, combine=True)]
    if folded.beyond:
        stay = folded.rank(np.arange(folded.beyond))
        last = BlockStep(stay, stay - 1, stay - 1)
        parts.append(Part("unfold", 1, lambda k: last, block, ranks))
    return parts


def _pairwise_exchange(ranks: int, root: int, block: float) -> list[Part]:
    """Return pairwise exchange: in step k every rank sends rank r + k its block."""
    rank = np.arange(ranks)

    def step(k: int) -> BlockStep:
        target = (rank + k + 1) % ranks
        return BlockStep(rank, target, target)

    return [Part("pairwise", ranks - 1, step, block, ranks, combine=True, even=True)]


def _backwards(broadcast: Algorithm) -> Algorithm:
    """Return a reduction that is the reverse of a broadcast."""
    return lambda ranks, root, size: [
        reverse_part(part, part.name, combine=True) for part in broadcast(ranks, root, size)
    ]


_up_the_tree = _backwards(_down_tree)


#: The algorithms of each family by name.
ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "bcast": {
        "binomial": _down_tree,
        "scatter-ring": _scatter_ring,
        "scatter-doubling": _scatter_doubling,
        "linear": _all_at_once,
        "chain": _along_a_chain,
        "binary": _down_binary_tree,
        "knomial": _down_wide_tree,
    },
    "reduce": {
        "binomial": _up_the_tree,
        "rabenseifner": _reduce_and_gather,
        "linear": _backwards(_all_at_once),
        "chain": _backwards(_along_a_chain),
        "binary": _backwards(_down_binary_tree),
    },
    "allreduce": {
        "doubling": _recursive_doubling,
        "rabenseifner": _rabenseifner_all,
        "ring": _ring_all,
        "reduce-bcast": _reduce_and_tell,
    },
    "gather": {
        "binomial": _gather_blocks(scatter_blocks),
        "linear": _gather_blocks(_scattered_at_once),
    },
    "scatter": {"binomial": scatter_blocks, "linear": _scattered_at_once},
    "allgather": {
        "bruck": bruck_steps,
        "doubling": double_blocks,
        "ring": ring_steps,
        "neighbour": _exchange_with_neighbours,
    },
    "reducescatter": {"halving": _halve_blocks, "pairwise": _pairwise_exchange},
    "barrier": {"dissemination": _tell_all},
}


def algorithms_of(family: str) -> dict[str, Algorithm]:
    """Return the algorithms of a family of collectives by name."""
    return ALGORITHMS[family]


def collective_parts(family: str, algorithm: str, ranks: int, root: int, size: float) -> list[Part]:
    """Return the consecutive parts in which an algorithm performs a collective.

    `family`: a key of `nidmap.rankmap.collectives.FAMILIES`. `algorithm`: a key of
    `algorithms_of`. `root`: what has no root takes 0. `size`: ``--bytes``, as MPI counts it: the
    whole buffer of a bcast, reduce or allreduce, one rank's block of all others.
    """
    if ranks < 2:
        return []
    return algorithms_of(family)[algorithm](ranks, root, size)


def call_steps(
    kind: str, algorithm: str, ranks: int, root: int, size: float
) -> Iterator[tuple[Ints, Ints, Any, int]]:
    """Yield, step by step, the messages of a single call of a collective.

    `kind`: of `nidmap.rankmap.recording.KINDS`; one that is no collective sends nothing.
    `algorithm`: of its family; of an all-to-all ``pairwise``, or all at once. `root`: 0 or less
    where there is none. `size`: bytes that a rank gives to the call. Yields `source, target`
    (m,). Yields `size` (m,): bytes of each message. Yields `times`: steps that follow each other
    and send this.
    """
    rank = np.arange(ranks)
    if kind == "alltoall":
        pairwise = algorithm == "pairwise"
        turns = [partner_in_turn(rank, turn, ranks, pairwise) for turn in range(1, ranks)]
        if not pairwise:  # posted at once
            # All messages in one step: they share the links at the same time.
            turns = [np.concatenate([rank[:0], *turns])]
        for targets in turns:
            yield np.resize(rank, len(targets)), targets, size, 1
    elif kind in CHAINS:
        for k in range(1, ranks):
            yield rank[k - 1 : k], rank[k : k + 1], size, 1
    elif (family := kind.replace("_", "")) in FAMILIES:
        for part in collective_parts(family, algorithm, ranks, max(root, 0), size):
            for k, times in part.alike or ((k, 1) for k in range(part.steps)):
                step = part.step(k)
                yield step.source, step.target, step.blocks * part.block, times


def usual_algorithm_of(kind: str, size: float, ranks: int) -> str:
    """Return the algorithm libraries usually choose for a recorded call; '' if none."""
    family = kind.replace("_", "")
    return usual_algorithm(family, size, ranks) if family in FAMILIES else ""


def collective_messages(
    kind: str, size: int, root: int, call_bytes: float, algorithm: str | None = None
) -> tuple[Ints, Floats]:
    """Return all messages of a single call of a collective, with their sizes.

    `call_bytes`: bytes that a rank gives to a call. `algorithm`: None means the one that
    libraries usually take. Returns `pairs` (3, m): source, target, messages. Returns `share`
    (m,): of the bytes that the source gives.
    """
    if algorithm is None:
        algorithm = usual_algorithm_of(kind, call_bytes, size)
    return _messages_of_call(kind, algorithm, size, root)


@functools.lru_cache(maxsize=64)
def _messages_of_call(kind: str, algorithm: str, size: int, root: int) -> tuple[Ints, Floats]:
    """Return pairs and shares of a call whose algorithm is known."""
    none = np.zeros(0, dtype=np.int64)
    columns: list[tuple[Any, ...]] = [(none, none, 0.0, 0)]
    if kind != "barrier":
        steps = call_steps(kind, algorithm, size, root, 1.0)
        columns += ((a, b, share * times, times) for a, b, share, times in steps)
    parts = zip(*(np.broadcast_arrays(*part) for part in columns), strict=True)
    source, target, shares, counts = (np.concatenate(column) for column in parts)
    # One row for each pair of ranks: in several steps the same two may talk.
    pair, share, messages = sum_by_key(source * size + target, shares, counts)
    return np.stack([*np.divmod(pair, size), messages]), share
