"""What ranks send in a collective, as a usual algorithm has it.

A collective has no pairs of its own. In a recording it counts as the messages of a usual
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

import numpy as np

from placement.support.array_types import Ints
from rankmap.collectives import collective_parts

__all__ = ["EVERY_PAIR", "collective_messages"]

#: Families and algorithms of `rankmap.collectives` whose messages these kinds have: a barrier by
#: doubling sends between the same ranks as an allreduce.
_USUAL = {
    "bcast": ("bcast", "binomial"),
    "reduce": ("reduce", "binomial"),
    "gather": ("gather", "linear"),
    "scatter": ("scatter", "linear"),
    "allgather": ("allgather", "ring"),
    "allreduce": ("barrier", "doubling"),
}

#: The kinds that go along a chain of ranks, and those in which each rank sends to each other.
CHAINS = ("scan", "exscan")
EVERY_PAIR = ("alltoall", "reduce_scatter")


@functools.lru_cache(maxsize=64)
def collective_messages(kind: str, size: int, root: int) -> Ints:
    """Return who sends to whom, and how often a block, when ranks call a collective once.

    Parameters
    ----------
    kind : str
        Of `rankmap.recording.KINDS`; what has no usual algorithm sends nothing.
    size : int
    root : int
        0 or less where there is none.

    Returns
    -------
    int64 (3, m)

    Examples
    --------
    >>> collective_messages("bcast", 4, 0).T.tolist()
    [[0, 2, 1], [0, 1, 1], [2, 3, 1]]
    >>> collective_messages("allgather", 3, 0).T.tolist()
    [[0, 1, 2], [1, 2, 2], [2, 0, 2]]
    """
    if kind in EVERY_PAIR:
        source, target = np.divmod(np.arange(size * size), size)
        pairs = np.stack([source, target, np.ones_like(source)])
        return pairs[:, source != target]
    if kind in CHAINS:
        rank = np.arange(size - 1)
        return np.stack([rank, rank + 1, np.ones_like(rank)])
    sent = [np.empty((3, 0), dtype=np.int64)]
    for part in collective_parts(*_USUAL[kind], size, max(root, 0), 1.0) if kind in _USUAL else ():
        for k, times in part.alike or ((k, 1) for k in range(part.steps)):
            step = part.step(k)
            sent.append(np.stack(np.broadcast_arrays(step.source, step.target, times)))
    return np.concatenate(sent, axis=1)
