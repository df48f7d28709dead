# SPDX-License-Identifier: Apache-2.0
"""Data to sort, including kinds that break sorts, and verification of the result.

Generator: numpy's PCG64DXSM, seeded by (seed, rank): the same items for a
number of ranks, on any machine.

The checksum does not depend on the order of the items, and changes when any
item is lost, doubled or altered (but for one in 2^128): it is the sum, modulo
2^64, of two independent 64-bit hashes of each whole item.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.support.array_types import Array, Mask
from nidmap.placement.support.arrays import finish_bits
from nidmap.workloads.sort.local import BLOCK
from nidmap.workloads.sort.ranks import Ranks
from nidmap.workloads.trials import SEED

#: A payload has fewer bytes: numpy counts those of an item in a C int.
MOST = 1 << 30

#: Bits of the keys, as in the paper.
BITS = 56

#: Kinds of data; ``one`` is random with all items on rank 0.
KINDS = ("random", "equal", "sorted", "reversed", "two", "groups", "one")


def _draw_keys(kind: str, rng: np.random.Generator, rank: int, size: int, count: int) -> Array:
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
    """Return the dtype of items with a key and this many bytes of payload.

    The first 8 bytes of a payload say where the item came from.
    """
    if not payload:
        return np.dtype(np.uint64)
    origin, rest = payload >= 8, payload - 8 * (payload >= 8)
    fields: list[Any] = [("key", "u8")]
    fields += [("origin", "u8")] * origin + [("rest", "u1", (rest,))] * (rest > 0)
    return np.dtype(fields)


def make_items(kind: str, rank: int, size: int, count: int, *, payload: int = 0) -> Array:
    """Return one rank's items.

    `kind`: one of `KINDS`: random, equal, sorted and reversed (over all ranks), two values,
    groups (few keys have most items, as halos of a simulation have), one (random, all on rank 0).
    `count`: items per rank, on average. `payload`: bytes next to each key; 0: the items are the
    keys. Returns (n,): of `item_type(payload)`.
    """
    if payload >= MOST:
        raise UsageError(f"numpy cannot hold a payload of {payload} bytes", f"use less than {MOST}")
    rng = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence((SEED, rank))))
    if kind == "one":
        count = count * size if rank == 0 else 0
    out = np.empty(count, item_type(payload))
    (out["key"] if payload else out)[:] = _draw_keys(kind, rng, rank, size, count)
    names = out.dtype.names or ()
    if "origin" in names:
        places = np.arange(len(out), dtype=np.uint64)
        out["origin"] = (np.uint64(rank) << np.uint64(40)) + places
    if "rest" in names:
        out["rest"] = (rank * 37 + 1) % 251
    return out


_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


def hash_sums(items: Array) -> NDArray[np.uint64]:
    """Return two sums of all items' hashes, which can be added up over ranks.

    `items` (n, ...). Returns (2,).
    """
    sums = np.zeros(2, np.uint64)
    for start in range(0, len(items), BLOCK):
        part = items[start : start + BLOCK]
        sums += _hash_rows(part.reshape(len(part), -1).view(np.uint8))
    return sums


def _hash_rows(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    words = -(-rows.shape[1] // 8)
    padded = np.zeros((len(rows), 8 * words), np.uint8)
    padded[:, : rows.shape[1]] = rows
    columns = padded.view(np.uint64)
    sums = np.empty(2, np.uint64)
    for k, odd in enumerate(_ODD):
        value = np.full(len(rows), odd, np.uint64)
        for column in range(words):
            value = finish_bits((value ^ columns[:, column]) + np.uint64(odd))
        sums[k] = value.sum(dtype=np.uint64)
    return sums


def in_order(words: Sequence[Array]) -> Mask:
    """Return, for each item but the last, whether the next key is not smaller (n-1,)."""
    count = max(len(words[0]) - 1, 0)
    fine, tied = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for word in words:
        fine |= tied & (word[:-1] < word[1:])
        tied &= word[:-1] == word[1:]
    return fine | tied


def sortedness(ranks: Ranks, words: Sequence[Array]) -> tuple[bool, bool]:
    """Return whether the keys are in order on every rank and across ranks. Collective.

    Empty ranks are stepped over. `words` may end with the items' origin: then
    it is stability that is asked for.
    """
    inside = bool(in_order(words).all())
    ends = np.zeros(min(len(words[0]), 1) * 2, [(f"w{k}", w.dtype) for k, w in enumerate(words)])
    for name, word in zip(ends.dtype.names or (), words, strict=True):
        ends[name] = word[[0, -1]] if len(word) else word
    edges = ranks.collect(ends)
    across = in_order([edges[name] for name in edges.dtype.names or ()])
    return ranks.all(inside), bool(across.all())


def sort_faults(
    ranks: Ranks, before: NDArray[np.uint64], items: Array, words: Sequence[Array], count: int
) -> list[str]:
    """Return the faults of a sort's result, equal on all ranks. Collective.

    `before` (2,): `hash_sums` of this rank's items before the sort. `items` (m, ...): this rank's
    share of the result. `words` (m,): its keys. `count`: how many items this rank was to get.
    """
    inside, across = sortedness(ranks, words)
    same = bool((ranks.total(before) == ranks.total(hash_sums(items))).all())
    checks = {
        "items of a rank are out of order": inside,
        "items of neighbouring ranks are out of order": across,
        "a rank has a wrong number of items": ranks.all(len(items) == count),
        "the items are not those that were given (checksum)": same,
    }
    return [fault for fault, right in checks.items() if not right]


def refuse_faults(found: Sequence[str], what: str) -> None:
    """Raise if `sort_faults` found anything; the exit code is 1."""
    if found:
        error = NidmapError(f"{what} is wrong: {'; '.join(found)}")
        error.exit_code = 1
        raise error
