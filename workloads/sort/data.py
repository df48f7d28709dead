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

__all__ = ["DTYPES", "KINDS", "item_type", "keys_type", "make"]

#: A payload has fewer bytes: numpy counts those of an item in a C int.
MOST = 1 << 30

#: Key types by name; pair is a key of 128 bits.
DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "pair")


#: Kinds of data; ``one`` is random with all items on rank 0.
KINDS = ("random", "equal", "sorted", "reversed", "two", "groups", "one")


def _keys(
    kind: str, rng: np.random.Generator, rank: int, size: int, count: int, bits: int
) -> Array:
    """Return a rank's keys below 2**bits, up to 64 bits wide."""
    if kind in ("random", "one"):
        return rng.integers(0, 2**bits - 1, count, np.uint64, endpoint=True)
    if kind == "equal":
        return np.full(count, (1 << bits) // 3, np.uint64)
    if kind == "two":
        return rng.integers(0, 2, count, np.uint64) * np.uint64((1 << bits) - 1)
    if kind == "groups":
        return np.minimum(rng.pareto(1.0, count) * 10, 2.0 ** min(bits, 62) - 1).astype(np.uint64)
    place = size - 1 - rank if kind == "reversed" else rank
    low, high = ((1 << bits) * r // size for r in (place, place + 1))
    keys = np.sort(rng.integers(low, max(high - 1, low), count, np.uint64, endpoint=True))
    return keys[::-1].copy() if kind == "reversed" else keys


def keys_type(name: str) -> np.dtype[Any]:
    """Return the dtype of keys: ``i1`` to ``u8``, or ``pair`` (two of 64 bits).

    Examples
    --------
    >>> keys_type("pair").names
    ('hi', 'lo')
    """
    return np.dtype([("hi", "u8"), ("lo", "u8")] if name == "pair" else name)


def item_type(name: str, payload: int) -> np.dtype[Any]:
    """Return the dtype of items with so many bytes of payload beside the key.

    The first 8 bytes of a payload say where the item came from.

    Examples
    --------
    >>> item_type("u8", 16)
    dtype([('key', '<u8'), ('origin', '<u8'), ('rest', 'u1', (8,))])
    """
    if not payload:
        return keys_type(name)
    origin, rest = payload >= 8, payload - 8 * (payload >= 8)
    fields: list[Any] = [("key", keys_type(name))]
    fields += [("origin", "u8")] * origin + [("rest", "u1", (rest,))] * (rest > 0)
    return np.dtype(fields)


def make(
    kind: str,
    rank: int,
    size: int,
    count: int,
    *,
    seed: int = 0,
    bits: int = 56,
    dtype: str = "u8",
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
    bits : int
        Keys are below 2**bits, or as the dtype lets them be.
    dtype : str
        One of `DTYPES`. A signed type of exactly `bits` bits gets keys of
        both signs.
    payload : int
        Bytes beside each key; 0: the items are the keys.

    Returns
    -------
    ndarray (n,)
        Of `item_type(dtype, payload)`.

    Raises
    ------
    UsageError
        For an unknown kind or dtype, or counts that are negative.

    Examples
    --------
    >>> make("one", 0, 4, 5).shape, make("one", 3, 4, 5).shape
    ((20,), (0,))
    >>> int(make("random", 1, 4, 1000).max()) < 2**56
    True
    """
    check_word("kind of data", kind, KINDS)
    check_word("type of keys", dtype, DTYPES)
    if count < 0 or payload < 0 or not 1 <= bits <= 128:
        raise UsageError("items and payload are at least 0, key bits between 1 and 128")
    if payload >= MOST:
        raise UsageError(f"a payload of {payload} bytes is none that numpy knows", f"below {MOST}")
    rng = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence((seed, rank))))
    if kind == "one":
        count = count * size if rank == 0 else 0
    out = np.empty(count, item_type(dtype, payload))
    keys = out["key"] if payload else out
    width = 64 if dtype == "pair" else 8 * keys.dtype.itemsize
    made = _keys(kind, rng, rank, size, count, min(bits, width))
    if dtype == "pair":
        keys["hi"] = made >> np.uint64(40)  # few values, each many times: group numbers
        keys["lo"] = made if kind == "equal" else rng.permutation(made)
    else:
        keys[:] = made.astype(f"u{keys.dtype.itemsize}").view(keys.dtype)
    names = out.dtype.names or ()
    if "origin" in names:
        places = np.arange(len(out), dtype=np.uint64)
        out["origin"] = (np.uint64(rank) << np.uint64(40)) + places
    if "rest" in names:
        out["rest"] = (rank * 37 + 1) % 251
    return out
