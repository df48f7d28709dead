"""Whether a sort is right: order over all boundaries, counts, and the same items as before.

The checksum does not depend on the order of the items, and changes when any
item is lost, doubled or altered (but for one in 2^128): it is the sum, modulo
2^64, of two independent 64-bit hashes of each whole item.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placement.errors import NidmapError
from placement.support.array_types import Array, Mask
from placement.support.arrays import finish_bits
from workloads.sort.local import BLOCK
from workloads.sort.ranks import Ranks

__all__ = ["checksum", "faults", "in_order", "sortedness"]

_ODD = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


def checksum(items: Array) -> NDArray[np.uint64]:
    """Return two sums of the hashes of all items; add those of all ranks.

    Parameters
    ----------
    items : (n, ...) C-contiguous

    Returns
    -------
    uint64 (2,)

    Examples
    --------
    >>> a = np.array([3, 1, 2])
    >>> bool((checksum(a) == checksum(a[::-1].copy())).all())
    True
    >>> bool((checksum(a) == checksum(np.array([3, 1, 1]))).all())
    False
    """
    sums = np.zeros(2, np.uint64)
    for start in range(0, len(items), BLOCK):
        part = items[start : start + BLOCK]
        sums += _hashes(part.reshape(len(part), -1).view(np.uint8))
    return sums


def _hashes(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
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
    """Return for each item but the last whether the next one's key is not smaller (n-1,)."""
    count = max(len(words[0]) - 1, 0)
    fine, tied = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for word in words:
        fine |= tied & (word[:-1] < word[1:])
        tied &= word[:-1] == word[1:]
    return fine | tied


def sortedness(ranks: Ranks, words: Sequence[Array]) -> tuple[bool, bool]:
    """Return whether the keys are in order on every rank and over all boundaries. Collective.

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


def faults(
    ranks: Ranks, before: NDArray[np.uint64], items: Array, words: Sequence[Array], count: int
) -> list[str]:
    """Return what is wrong with a sort's result, the same on all ranks. Collective.

    Parameters
    ----------
    ranks : Ranks
    before : uint64 (2,)
        `checksum` of this rank's items before the sort.
    items : (m, ...)
        This rank's share of the result.
    words : sequence of integer arrays (m,)
        Its keys.
    count : int
        How many items this rank was to get.
    """
    inside, across = sortedness(ranks, words)
    same = bool((ranks.total(before) == ranks.total(checksum(items))).all())
    checks = {
        "items of a rank are out of order": inside,
        "items of neighbouring ranks are out of order": across,
        "a rank has another number of items than it was to get": ranks.all(len(items) == count),
        "the items are not those that were given (checksum)": same,
    }
    return [fault for fault, right in checks.items() if not right]


def refuse(found: Sequence[str], what: str) -> None:
    """Raise what `faults` found, if anything: exit code 1, the answer is no."""
    if found:
        error = NidmapError(f"{what} is wrong: {'; '.join(found)}")
        error.exit_code = 1
        raise error
