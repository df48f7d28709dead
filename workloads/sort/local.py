# SPDX-License-Identifier: Apache-2.0
"""Sorting on one rank: bare keys by numpy's sort, items by a packed order.

`order` never sorts keys with their places as pairs. What of the key fits
next to the place into 64 bits is packed with it into one word, and numpy's
vectorised sort of plain words does the work: about ten times faster than an
argsort, and stable for free, the place being the lowest part. Keys that are
too wide for that keep their high bits; the few items that share them are
parted afterwards, in the same way; where many do, numpy's stable argsort
orders them all. Keys are read where they lie, a block at a time: what an
order takes is its own packed words and little more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.support.array_types import Array, Ints, Mask

Keys = NDArray[np.uint64]
Places = Ints | NDArray[np.uint32]

#: Items handled at a time where a whole temporary array would cost memory.
BLOCK = 1 << 16

#: Up to this many sorted runs are merged; more are sorted again, which numpy's vectorised sort does
#: faster.
RUNS = 4

#: Part of the items that may share their high bits for these to be parted by themselves.
_FEW = 1 / 16


def sort_keys(keys: Keys, runs: int = 0) -> None:
    """Sort an array of keys in place.

    `keys` (n,). `runs`: how many sorted runs the array is made of, 0 where that is not known. Few
    runs are merged (numpy's stable sort finds them; at most n/2 more items of memory), many are
    sorted anew.
    """
    if runs != 1:
        keys.sort(kind="stable" if 0 < runs <= RUNS else None)


def order(keys: Keys, runs: int = 0) -> Places:
    """Return the stable order of items by key, as indices (n,)."""
    count = len(keys)
    if count < 2:
        return np.arange(count)
    bits = (count - 1).bit_length()
    if 2 * bits > 64:  # no room next to half a key
        return np.argsort(keys, kind="stable")
    place_bits, low = np.uint64(bits), keys.min()
    dropped_bits = max(int(keys.max() - low).bit_length() + bits - 64, 0)
    packed = np.empty(count, np.uint64)
    for start in range(0, count, BLOCK):
        part = (keys[start : start + BLOCK] - low) >> np.uint64(dropped_bits)
        part <<= place_bits
        part |= np.arange(start, start + len(part), dtype=np.uint64)
        packed[start : start + BLOCK] = part
    packed.sort(kind="stable" if 0 < runs <= RUNS else None)
    if dropped_bits:
        tied = np.flatnonzero(_find_ties(packed, place_bits))
        if len(tied) > _FEW * count:
            return np.argsort(keys, kind="stable")
        ties = packed[tied]
        # in the order of all their bits; the high ones are the same in each group
        packed[tied] = ties[
            np.lexsort((keys[_unpack_places(ties.copy(), bits)], ties >> place_bits))
        ]
    return _unpack_places(packed, bits)


def short_places(places: Places) -> Places:
    """Return indices in half the memory, if they are small enough."""
    return places.astype(np.uint32) if len(places) < 2**32 else places


def _unpack_places(packed: Keys, places: int) -> Ints:
    """Return the indices in packed words, in the same memory."""
    packed &= np.uint64((1 << places) - 1)
    return packed.view(np.int64)


def _find_ties(packed: Keys, place_bits: np.uint64) -> Mask:
    """Return which words share their high bits with a neighbour."""
    tied = np.zeros(len(packed), np.bool_)
    for start in range(0, len(packed) - 1, BLOCK):
        high = packed[start : start + BLOCK + 1] >> place_bits
        same = high[1:] == high[:-1]
        tied[start : start + len(same)] |= same
        tied[start + 1 : start + 1 + len(same)] |= same
    return tied


def flat_items(items: Array) -> Array:
    """View items (n,) as opaque values, which numpy moves fastest, without a copy."""
    return items.view(f"V{items.dtype.itemsize}")


def gather_items(items: Array, places: Places) -> Array:
    """Return ``items[places]``, without converting the indices to another type."""
    out = np.empty(len(places), items.dtype)
    for start in range(0, len(places), BLOCK):
        part = places[start : start + BLOCK].astype(np.int64, copy=False)
        # numpy would buffer the output in its default mode
        np.take(items, part, out=out[start : start + len(part)], mode="clip")
    return out
