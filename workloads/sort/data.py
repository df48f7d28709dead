"""The benchmark's data: the paper's random 56-bit keys, and the kinds that break sorts.

Generator: numpy's PCG64DXSM, seeded by (seed, rank): the same items for a
seed and a number of ranks, on any machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Make = Callable[[np.random.Generator, int, int, int, int], NDArray[np.uint64]]

__all__ = ["DTYPES", "KINDS", "item_type", "keys_type", "make"]

#: A payload has fewer bytes: numpy counts those of an item in a C int.
MOST = 1 << 30

#: Key types by name; pair is a key of 128 bits.
DTYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "pair")


def _random(rng: np.random.Generator, rank: int, size: int, count: int, bits: int) -> Any:
    return rng.integers(0, 2**bits - 1, count, np.uint64, endpoint=True)


def _equal(rng: np.random.Generator, rank: int, size: int, count: int, bits: int) -> Any:
    return np.full(count, (1 << bits) // 3, np.uint64)


def _sorted(rng: np.random.Generator, rank: int, size: int, count: int, bits: int) -> Any:
    low, high = ((1 << bits) * r // size for r in (rank, rank + 1))
    return np.sort(rng.integers(low, max(high - 1, low), count, np.uint64, endpoint=True))


def _reversed(rng: np.random.Generator, rank: int, size: int, count: int, bits: int) -> Any:
    return _sorted(rng, size - 1 - rank, size, count, bits)[::-1].copy()


def _two(rng: np.random.Generator, rank: int, size: int, count: int, bits: int) -> Any:
    return rng.integers(0, 2, count, np.uint64) * np.uint64((1 << bits) - 1)


def _groups(rng: np.random.Generator, rank: int, size: int, count: int, bits: int) -> Any:
    return np.minimum(rng.pareto(1.0, count) * 10, 2.0 ** min(bits, 62) - 1).astype(np.uint64)


#: Kinds of data; ``one`` is random with all items on rank 0.
KINDS: dict[str, Make] = {
    "random": _random,
    "equal": _equal,
    "sorted": _sorted,
    "reversed": _reversed,
    "two": _two,
    "groups": _groups,
    "one": _random,
}


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
    fields: list[Any] = [("key", keys_type(name))]
    if payload >= 8:
        fields.append(("origin", "u8"))
    rest = payload - 8 * (payload >= 8)
    return np.dtype([*fields, ("rest", "u1", (rest,))] if rest else fields)


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
) -> NDArray[Any]:
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
    if kind not in KINDS or dtype not in DTYPES:
        raise UsageError(
            f"no data {kind!r} of {dtype!r}", f"{', '.join(KINDS)}; {', '.join(DTYPES)}"
        )
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
    made = KINDS[kind](rng, rank, size, count, min(bits, width))
    if dtype == "pair":
        keys["hi"] = made >> np.uint64(40)  # few values, each many times: group numbers
        keys["lo"] = made if kind == "equal" else rng.permutation(made)
    else:
        keys[:] = made.astype(f"u{keys.dtype.itemsize}").view(keys.dtype)
    if payload:
        _mark(out, rank)
    return out


def _mark(items: NDArray[Any], rank: int) -> None:
    """Write into the payload where each item came from."""
    if "origin" in (items.dtype.names or ()):
        items["origin"] = (np.uint64(rank) << np.uint64(40)) + np.arange(
            len(items), dtype=np.uint64
        )
    if "rest" in (items.dtype.names or ()):
        items["rest"] = (rank * 37 + 1) % 251
