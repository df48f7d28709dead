# SPDX-License-Identifier: Apache-2.0
"""Collectives as MPI libraries implement them: algorithms as sequences of message steps.

A collective is done in *parts* that follow each other (a scatter, then a ring), a part in
*steps*, and a step is a set of messages sent at the same time: source, destination, and
which blocks of the buffer each carries. Nothing here knows of nodes or of time. Which algorithm
libraries take follows from ranks and bytes.

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
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from nidmap.placement.support.array_types import Ints


#: Returns the parts for this many ranks, a root and ``--bytes``.
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

#: Ranks from which a broadcast of MPICH is anything but binomial, and bytes up to which blocks are
#: told by recursive doubling where ranks are a power of two.
FEW_RANKS, DOUBLED = 8, 524_288

#: Collectives that can be requested by name.
FAMILIES = tuple(USUAL)

#: Families with a root.
ROOTED = ("bcast", "reduce", "gather", "scatter")


class BlockStep(NamedTuple):
    """Messages sent at the same time."""

    # source, target: (m,), ranks
    source: Ints
    target: Ints
    first: Ints | int = 0  # (m,), the first block that each carries
    blocks: Ints | int = 1  # (m,), how many it carries, the block after the last being the first


class Part(NamedTuple):
    """A part of a collective: its consecutive steps."""

    name: str  # the operation, such as ``scatter`` or ``ring``
    steps: int  # how many
    step: Callable[[int], BlockStep]  # returns the k-th of them, from 0
    block: float  # bytes of a block
    blocks: int = 1  # blocks of the whole buffer
    # Whether received data are combined with the buffer instead of replacing it
    combine: bool = False
    # Steps that represent others with equal traffic between the same ranks, and how many; empty if
    # each represents only itself
    alike: tuple[tuple[int, int], ...] = ()
    even: bool = False  # whether the steps are similar enough for a sample to represent all


def reverse_part(part: Part, name: str, combine: bool = False) -> Part:
    """Return a part with all messages reversed, its last step first."""

    def step(k: int) -> BlockStep:
        source, target, first, blocks = part.step(part.steps - 1 - k)
        return BlockStep(target, source, first, blocks)

    return part._replace(name=name, step=step, combine=combine)


def usual_algorithm(family: str, size: float, ranks: int) -> str:
    """Return the algorithm that MPI libraries usually choose.

    Sources: R. Thakur et al., 2005; ``generic.json`` of MPICH 4.2.
    """
    power = ranks & (ranks - 1) == 0
    rules = USUAL | OF_POWERS_OF_TWO if power else USUAL
    short, long, least, a_rank = rules[family]
    total = size * ranks if family in ("allgather", "reducescatter") else size
    if family == "bcast" and total >= least:
        if ranks < FEW_RANKS:
            return short
        return "scatter-doubling" if power and size <= DOUBLED else long
    return long if total >= max(least, a_rank * ranks) else short


def partner_in_turn(place: Ints, turn: int, ranks: int, exchange: bool) -> Ints:
    """Return each rank's receiver in the given turn, from 1, of an all-to-all.

    `place` (n,): of each rank. `exchange`: whether ranks that are a power of two exchange in
    pairs, as in MPICH's and Open MPI's pairwise; else rank r sends to r + turn.
    """
    return place ^ turn if exchange and ranks & (ranks - 1) == 0 else (place + turn) % ranks
