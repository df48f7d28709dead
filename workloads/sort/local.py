"""Sorting on one rank: keys alone by numpy's sort, items by a packed order.

`order` never sorts keys with their places as pairs. What of the key fits
beside the place into 64 bits is packed with it into one word, and numpy's
vectorised sort of plain words does the work: about ten times faster than an
argsort, and stable for free, the place being the lowest part. Keys that are
too wide for that keep their high bits; the few items that share them are
parted afterwards, in the same way; where many do, numpy's stable argsort
orders them all. Keys are read where they lie, a block at a time: what an
order takes is its own packed words and little more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.support.array_types import Array, Ints, Mask

Keys = NDArray[np.uint64]
Places = Ints | NDArray[np.uint32]

#: Items handled at a time where a whole temporary array would cost memory.
BLOCK = 1 << 16

#: Up to so many sorted runs are merged; more are sorted anew, which numpy's vectors do faster.
RUNS = 4

#: Part of the items that may share their high bits for these to be parted by themselves.
_FEW = 1 / 16


def sort_keys(keys: Keys, runs: int = 0) -> None:
    """Sort an array of keys in place.

    Parameters
    ----------
    keys : uint64 (n,)
    runs : int
        How many sorted runs the array is made of, 0 where that is not known.
        Few runs are merged (numpy's stable sort finds them; at most n/2 more
        items of memory), many are sorted anew.
    """
    if runs != 1:
        keys.sort(kind="stable" if 0 < runs <= RUNS else None)


def order(keys: Keys, runs: int = 0) -> Places:
    """Return the stable order of items by their keys, as places (n,).

    Parameters
    ----------
    keys : uint64 (n,)
    runs : int
        See `sort_keys`.

    Returns
    -------
    int64 or uint32 (n,)

    Examples
    --------
    >>> order(np.array([3, 1, 3, 0], np.uint64)).tolist()
    [3, 1, 0, 2]
    """
    if len(keys) < 2:
        return np.arange(len(keys))
    low = keys.min()
    bits = int(keys.max() - low).bit_length()
    return _stable_order(_KeyRange(keys, low, bits), runs)


def short_places(places: Places) -> Places:
    """Return places in half the memory, where they are few enough for that."""
    return places.astype(np.uint32) if len(places) < 2**32 else places


class _KeyRange(NamedTuple):
    """Keys as what they are above the least one, in so many bits."""

    keys: Keys
    low: np.uint64
    bits: int

    def at(self, where: slice | Array) -> Keys:
        """Return the codes of some items."""
        codes: Keys = self.keys[where] - self.low
        return codes


def _stable_order(codes: _KeyRange, runs: int) -> Places:
    """Return the stable order of two or more items by their codes; `runs`: see `sort_keys`."""
    count = len(codes.keys)
    places = (count - 1).bit_length()
    if 2 * places > 64:  # no room beside half a key
        return np.argsort(codes.at(slice(None)), kind="stable")
    drop = max(codes.bits - (64 - places), 0)
    packed = np.empty(count, np.uint64)
    _pack_codes(packed, codes, drop, places)
    packed.sort(kind="stable" if 0 < runs <= RUNS else None)
    if drop:
        tied = _find_ties(packed, places)
        if np.count_nonzero(tied) > _FEW * count:
            return np.argsort(codes.at(slice(None)), kind="stable")
        _part_ties(packed, np.flatnonzero(tied), codes, drop, places)
    return _unpack_places(packed, places)


def _pack_codes(packed: Keys, codes: _KeyRange, drop: int, places: int) -> None:
    """Write the codes without their lowest `drop` bits, with the place below them."""
    for start in range(0, len(packed), BLOCK):
        part = codes.at(slice(start, start + BLOCK))
        part >>= np.uint64(drop)
        part <<= np.uint64(places)
        part |= np.arange(start, start + len(part), dtype=np.uint64)
        packed[start : start + BLOCK] = part


def _unpack_places(packed: Keys, places: int) -> Ints:
    """Return the places of packed words, in their memory."""
    packed &= np.uint64((1 << places) - 1)
    return packed.view(np.int64)


def _find_ties(packed: Keys, places: int) -> Mask:
    """Return which words share their high bits with a neighbour."""
    tied = np.zeros(len(packed), np.bool_)
    for start in range(0, len(packed) - 1, BLOCK):
        high = packed[start : start + BLOCK + 1] >> np.uint64(places)
        same = high[1:] == high[:-1]
        tied[start : start + len(same)] |= same
        tied[start + 1 : start + 1 + len(same)] |= same
    return tied


def _part_ties(packed: Keys, at: Ints, codes: _KeyRange, drop: int, places: int) -> None:
    """Order the few items at `at`, in groups that share their high bits, by the bits dropped."""
    few = packed[at]
    dropped = codes.at(_unpack_places(few.copy(), places)) & np.uint64((1 << drop) - 1)
    packed[at] = few[np.lexsort((dropped, few >> np.uint64(places)))]


def flat_items(items: Array) -> Array:
    """Return items (n,) as one opaque value each, without a copy.

    Those of 8 and 16 bytes become numbers and short strings, which numpy moves fastest.
    """
    size = items.dtype.itemsize
    return items.view("u8" if size == 8 else f"V{size}")


def gather_last(items: Array, places: Places) -> Array:
    """Return ``items[places]`` and use the places up: items of their size get their memory."""
    same = items.dtype.itemsize == places.itemsize
    out = places.view(items.dtype) if same else np.empty(len(places), items.dtype)
    for start in range(0, len(places), BLOCK):
        part = places[start : start + BLOCK].astype(np.int64, copy=False)
        if same:
            out[start : start + BLOCK] = items[part]
        else:  # numpy would buffer the output in its default mode
            np.take(items, part, out=out[start : start + len(part)], mode="clip")
    return out
