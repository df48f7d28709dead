"""The benchmark's data: the paper's random 56-bit keys, and the kinds that break sorts.

Generator: numpy's PCG64DXSM, seeded by (seed, rank): the same items for a
seed and a number of ranks, on any machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from placement.errors import UsageError
from placement.support.array_types import Array
from workloads.words import check_word

__all__ = ["KINDS", "item_type", "make"]

#: A payload has fewer bytes: numpy counts those of an item in a C int.
MOST = 1 << 30

#: Bits of the keys, as in the paper.
BITS = 56

#: Kinds of data; ``one`` is random with all items on rank 0.
KINDS = ("random", "equal", "sorted", "reversed", "two", "groups", "one")


def _keys(kind: str, rng: np.random.Generator, rank: int, size: int, count: int) -> Array:
    """Return a rank's keys below 2**BITS."""
    if kind in ("random", "one"):
        return rng.integers(0, 2**BITS - 1, count, np.uint64, endpoint=True)
    if kind == "equal":
        return np.full(count, (1 << BITS) // 3, np.uint64)
    if kind == "two":
        return rng.integers(0, 2, count, np.uint64) * np.uint64((1 << BITS) - 1)
    if kind == "groups":
        return np.minimum(rng.pareto(1.0, count) * 10, 2.0**BITS - 1).astype(np.uint64)
    place = size - 1 - rank if kind == "reversed" else rank
    low, high = ((1 << BITS) * r // size for r in (place, place + 1))
    keys = np.sort(rng.integers(low, max(high - 1, low), count, np.uint64, endpoint=True))
    return keys[::-1].copy() if kind == "reversed" else keys


def item_type(payload: int) -> np.dtype[Any]:
    """Return the dtype of items with so many bytes of payload beside the key.

    The first 8 bytes of a payload say where the item came from.

    Examples
    --------
    >>> item_type(16)
    dtype([('key', '<u8'), ('origin', '<u8'), ('rest', 'u1', (8,))])
    """
    if not payload:
        return np.dtype(np.uint64)
    origin, rest = payload >= 8, payload - 8 * (payload >= 8)
    fields: list[Any] = [("key", "u8")]
    fields += [("origin", "u8")] * origin + [("rest", "u1", (rest,))] * (rest > 0)
    return np.dtype(fields)


def make(
    kind: str,
    rank: int,
    size: int,
    count: int,
    *,
    seed: int = 0,
    payload: int = 0,
) -> Array:
    """Return one rank's items.

    Parameters
    ----------
    kind : str
        One of `KINDS`: random, equal, sorted and reversed (over all ranks),
        two values, groups (few keys have most items, as halos of a simulation
        have), one (random, all on rank 0).
    rank, size : int
    count : int
        Items a rank, on average.
    seed : int
    payload : int
        Bytes beside each key; 0: the items are the keys.

    Returns
    -------
    ndarray (n,)
        Of `item_type(payload)`.

    Raises
    ------
    UsageError
        For an unknown kind, or counts that are negative.

    Examples
    --------
    >>> make("one", 0, 4, 5).shape, make("one", 3, 4, 5).shape
    ((20,), (0,))
    >>> int(make("random", 1, 4, 1000).max()) < 2**56
    True
    """
    check_word("kind of data", kind, KINDS)
    if count < 0 or payload < 0:
        raise UsageError("items and payload are at least 0")
    if payload >= MOST:
        raise UsageError(f"a payload of {payload} bytes is none that numpy knows", f"below {MOST}")
    rng = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence((seed, rank))))
    if kind == "one":
        count = count * size if rank == 0 else 0
    out = np.empty(count, item_type(payload))
    (out["key"] if payload else out)[:] = _keys(kind, rng, rank, size, count)
    names = out.dtype.names or ()
    if "origin" in names:
        places = np.arange(len(out), dtype=np.uint64)
        out["origin"] = (np.uint64(rank) << np.uint64(40)) + places
    if "rest" in names:
        out["rest"] = (rank * 37 + 1) % 251
    return out
