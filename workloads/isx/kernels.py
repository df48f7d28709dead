"""Compiled loops of the bucketing: count the keys of each bucket, put each into its bucket.

Four counters a bucket, and keys taken four at a time: with few buckets, one
counter would wait for its own last increment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankmap.refine.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.support.array_types import Ints

    Keys = NDArray[Any]

__all__ = ["count_by_division", "count_by_shift", "deal_by_division", "deal_by_shift"]


@kernel
def count_by_shift(keys: Keys, shift: Any, counts: Ints) -> None:
    """Add to counts (4, buckets) the keys of each bucket ``key >> shift``."""
    whole = len(keys) // 4 * 4
    for i in range(0, whole, 4):
        counts[0, keys[i] >> shift] += 1
        counts[1, keys[i + 1] >> shift] += 1
        counts[2, keys[i + 2] >> shift] += 1
        counts[3, keys[i + 3] >> shift] += 1
    for i in range(whole, len(keys)):
        counts[0, keys[i] >> shift] += 1


@kernel
def count_by_division(keys: Keys, width: Any, counts: Ints) -> None:
    """Add to counts (4, buckets) the keys of each bucket ``key // width``."""
    whole = len(keys) // 4 * 4
    for i in range(0, whole, 4):
        counts[0, keys[i] // width] += 1
        counts[1, keys[i + 1] // width] += 1
        counts[2, keys[i + 2] // width] += 1
        counts[3, keys[i + 3] // width] += 1
    for i in range(whole, len(keys)):
        counts[0, keys[i] // width] += 1


@kernel
def deal_by_shift(keys: Keys, shift: Any, starts: Ints, out: Keys) -> None:
    """Write each key at its bucket's start, which moves on."""
    for key in keys:
        bucket = key >> shift
        at = starts[bucket]
        out[at] = key
        starts[bucket] = at + 1


@kernel
def deal_by_division(keys: Keys, width: Any, starts: Ints, out: Keys) -> None:
    """Write each key at its bucket's start, which moves on."""
    for key in keys:
        bucket = key // width
        at = starts[bucket]
        out[at] = key
        starts[bucket] = at + 1
