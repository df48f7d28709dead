"""Reductions whose result everyone gets."""

from __future__ import annotations

from rankmap.collectives import Part, gathering, reduction, trees
from rankmap.collectives.folding import Folded, doubling, halving, regathered

__all__ = ["ALLREDUCE"]


def _doubling(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive doubling on the whole buffer."""
    on = Folded(ranks)
    return [*on.fold(size, 1), doubling(on, size), *on.unfold(size, 1)]


def _rabenseifner(ranks: int, root: int, size: float) -> list[Part]:
    """Return recursive halving, and the same backwards as an allgather."""
    on = Folded(ranks)
    block = size / on.power
    return [
        *on.fold(block, on.power),
        halving(on, block),
        regathered(on, block),
        *on.unfold(block, on.power),
    ]


def _ring(ranks: int, root: int, size: float) -> list[Part]:
    """Return two turns around the ring: one combines, one hands out."""
    block = size / ranks
    return reduction.ring(ranks, 0, block) + gathering.ring(ranks, 0, block)


def _reduce_bcast(ranks: int, root: int, size: float) -> list[Part]:
    """Return a binomial reduction to rank 0 and a 4-nomial broadcast, as Open MPI mostly has it."""
    up = trees.upwards("reduce", trees.binomial(ranks), ranks, 0, size)
    return [up, trees.downwards("bcast", trees.knomial(ranks), ranks, 0, size)]


def _linear(ranks: int, root: int, size: float) -> list[Part]:
    """Return everyone sending to rank 0, which sends the result to everyone."""
    levels = trees.linear(ranks)
    up = trees.upwards("reduce", levels, ranks, 0, size)
    return [up, trees.downwards("bcast", levels, ranks, 0, size)]


ALLREDUCE = {
    "doubling": _doubling,
    "rabenseifner": _rabenseifner,
    "ring": _ring,
    "reduce-bcast": _reduce_bcast,
    "linear": _linear,
}
