"""What ranks send in a collective, as libraries usually do it.

A collective has no pairs of its own. In a recording it counts as the messages of the algorithm
that libraries usually take for so many ranks and bytes (`rankmap.collectives.usual_algorithm`), so
that the matrix says which ranks gain from being close. In an all-to-all each pair has what it
exchanges, scan and exscan are a chain of ranks; what differs by rank (v- and w-forms, neighbours)
is recorded by pair. A barrier sends nothing.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from placement.support.array_types import Floats, Ints
from placement.support.arrays import sum_by_key
from rankmap.collectives import FAMILIES, collective_parts, usual_algorithm

__all__ = ["EVERY_PAIR", "collective_messages"]

#: The kinds that go along a chain of ranks, and those in which each rank may send to each other.
CHAINS = ("scan", "exscan")
EVERY_PAIR = ("alltoall", "reduce_scatter")


def collective_messages(kind: str, size: int, root: int, call_bytes: float) -> tuple[Ints, Floats]:
    """Return who sends to whom, and how much, when ranks call a collective once.

    Parameters
    ----------
    kind : str
        Of `rankmap.recording.KINDS`; what has no usual algorithm sends nothing.
    size : int
        Ranks.
    root : int
        0 or less where there is none.
    call_bytes : float
        Bytes that a rank gives to a call.

    Returns
    -------
    pairs : int64 (3, m)
        Source, target, messages.
    share : float64 (m,)
        Of the bytes that the source gives.

    Examples
    --------
    >>> [column.tolist() for column in collective_messages("bcast", 4, 0, 8)]
    [[[0, 0, 2], [1, 2, 3], [1, 1, 1]], [1.0, 1.0, 1.0]]
    >>> [column.tolist() for column in collective_messages("allgather", 3, 0, 1e6)]
    [[[0, 1, 2], [1, 2, 0], [2, 2, 2]], [2.0, 2.0, 2.0]]
    """
    family = kind.replace("_", "")
    known = family in FAMILIES and kind != "barrier" and size > 1
    algorithm = usual_algorithm(family, call_bytes, size) if known else ""
    return _messages_of_call(family, algorithm, size, max(root, 0))


@functools.lru_cache(maxsize=64)
def _messages_of_call(family: str, algorithm: str, size: int, root: int) -> tuple[Ints, Floats]:
    """Return pairs and shares of a call whose algorithm is known."""
    rank = np.arange(size)
    steps: list[tuple[Any, ...]] = [(rank[:0], rank[:0], 0.0, 0)]
    if family == "alltoall":
        source, target = np.divmod(np.arange(size * size), size)
        steps.append((source[source != target], target[source != target], 1.0, 1))
    elif family in CHAINS:
        steps.append((rank[:-1], rank[1:], 1.0, 1))
    for part in collective_parts(family, algorithm, size, root, 1.0) if algorithm else ():
        for k, times in part.alike or ((k, 1) for k in range(part.steps)):
            step = part.step(k)
            steps.append((step.source, step.target, times * step.blocks * part.block, times))
    columns = zip(*(np.broadcast_arrays(*step) for step in steps), strict=True)
    source, target, shares, messages = (np.concatenate(column) for column in columns)
    pair, share, many = sum_by_key(source * size + target, shares, messages)
    return np.stack([*np.divmod(pair, size), many]), share
