"""Compiled loops of the bucketing: count the keys of each bucket, put each into its bucket.

Four counters a bucket, and keys taken four at a time: with few buckets, one
counter would wait for its own last increment.
"""

from __future__ import annotations

from typing import Any

from placement.support.array_types import Array, Ints
from rankmap.refine.jit import inlined, kernel

__all__ = ["count_keys", "deal_keys"]


@inlined
def bucket_of(key: Any, by: Any, shifted: bool) -> Any:
    """Return the bucket of a key: by a shift, else by division."""
    return key >> by if shifted else key // by


@kernel
def count_keys(keys: Array, by: Any, shifted: bool, counts: Ints) -> None:
    """Add to counts (4, buckets) the keys of each bucket."""
    whole = len(keys) // 4 * 4
    for i in range(0, whole, 4):
        for lane in range(4):
            counts[lane, bucket_of(keys[i + lane], by, shifted)] += 1
    for key in keys[whole:]:
        counts[0, bucket_of(key, by, shifted)] += 1


@kernel
def deal_keys(keys: Array, by: Any, shifted: bool, starts: Ints, out: Array) -> None:
    """Write each key at its bucket's start, which moves on."""
    for key in keys:
        bucket = bucket_of(key, by, shifted)
        at = starts[bucket]
        out[at] = key
        starts[bucket] = at + 1
