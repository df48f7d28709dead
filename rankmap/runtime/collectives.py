"""What a rank sends in a collective, as a usual algorithm has it.

A collective has no pairs of its own. It is counted as the messages of a usual
algorithm, so that the matrix says which ranks gain from being close:

============================  =================================================
bcast, reduce                 a binomial tree from, or to, the root
gather(v), scatter(v)         every rank and the root
allgather(v)                  a ring: each block travels n - 1 steps
allreduce                     recursive doubling, ranks beyond a power of 2 folded in
alltoall(v, w)                each pair what it exchanges
reduce_scatter(_block)        each rank its part to each other
scan, exscan                  a chain
neighbor_*                    each neighbour what it is sent
============================  =================================================
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["steps"]

#: To whom, and how often a block.
Steps = list[tuple[int, int]]


@functools.lru_cache(maxsize=1024)
def steps(kind: str, size: int, rank: int, root: int) -> Steps:
    """Return to whom a rank sends in a collective, and how often its block.

    Examples
    --------
    >>> steps("bcast", 8, 0, 0), steps("bcast", 8, 4, 0), steps("reduce", 8, 5, 0)
    ([(1, 1), (2, 1), (4, 1)], [(5, 1), (6, 1)], [(4, 1)])
    >>> steps("allreduce", 6, 1, 0), steps("allreduce", 6, 5, 0), steps("allgather", 4, 3, 0)
    ([(0, 1), (3, 1), (5, 1)], [(1, 1)], [(0, 3)])
    """
    if size < 2:
        return []
    return _STEPS[kind](size, rank, root)


def _tree_down(size: int, rank: int, root: int) -> Steps:
    """Return the children in a binomial tree: relative rank v's are v + 2^k below its own bit."""
    v, k = (rank - root) % size, 1
    limit = v & -v if v else size
    children = []
    while k < limit and v + k < size:
        children.append(((v + k + root) % size, 1))
        k *= 2
    return children


def _tree_up(size: int, rank: int, root: int) -> Steps:
    v = (rank - root) % size
    return [(((v & (v - 1)) + root) % size, 1)] if v else []


def _doubling(size: int, rank: int, root: int) -> Steps:
    """Return the partners of recursive doubling; ranks beyond a power of 2 have a stand-in."""
    power = 1 << (size.bit_length() - 1)
    if rank >= power:
        return [(rank - power, 1)]
    partners = [(rank ^ k, 1) for k in (1 << b for b in range(power.bit_length() - 1))]
    return partners + ([(rank + power, 1)] if rank + power < size else [])


def _to_root(size: int, rank: int, root: int) -> Steps:
    return [] if rank == root else [(root, 1)]


def _ring(size: int, rank: int, root: int) -> Steps:
    return [((rank + 1) % size, size - 1)]


def _chain(size: int, rank: int, root: int) -> Steps:
    return [(rank + 1, 1)] if rank + 1 < size else []


_STEPS: dict[str, Callable[[int, int, int], Steps]] = {
    "bcast": _tree_down,
    "reduce": _tree_up,
    "gather": _to_root,
    "allgather": _ring,
    "allreduce": _doubling,
    "scan": _chain,
}
