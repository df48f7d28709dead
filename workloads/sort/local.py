"""Sorting on one rank: keys alone by numpy's sort, items by a packed order.

`order` never sorts keys with their places as pairs. What of the key fits
beside the place into 64 bits is packed with it into one word, and numpy's
vectorised sort of plain words does the work: about ten times faster than an
argsort, and stable for free, the place being the lowest part. Keys that are
too wide for that keep their high bits; the few items that share them are
parted afterwards, in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Word = NDArray[Any]
    Codes = NDArray[np.uint64]
    Places = NDArray[np.int64] | NDArray[np.uint32]

__all__ = ["flat", "gather", "order", "short", "sort_keys"]

#: Items handled at a time where a whole temporary array would cost memory.
BLOCK = 1 << 16

#: Up to so many sorted runs are merged; more are sorted anew.
RUNS = 32


def sort_keys(keys: Word, runs: int = 0) -> None:
    """Sort an array of keys in place.

    Parameters
    ----------
    keys : integer array (n,)
    runs : int
        How many sorted runs the array is made of, 0 where that is not known.
        Few runs are merged (numpy's stable sort finds them; at most n/2 more
        items of memory), many are sorted anew.
    """
    if runs != 1:
        keys.sort(kind="stable" if 0 < runs <= RUNS else None)


def order(words: Sequence[Word], runs: int = 0) -> Places:
    """Return the stable order of items by their keys, as places (n,).

    Parameters
    ----------
    words : sequence of integer arrays (n,)
        The keys, most significant word first; any widths, signed or not.
    runs : int
        See `sort_keys`.

    Returns
    -------
    int64 or uint32 (n,)

    Examples
    --------
    >>> order([np.array([3, 1, 3, -2])]).tolist()
    [3, 1, 0, 2]
    >>> order([np.array([1, 1, 0]), np.array([9, 8, 7])]).tolist()
    [2, 1, 0]
    """
    if len(words[0]) < 2:
        return np.arange(len(words[0]))
    low, bits = _ranges(words)
    if len(words) == 1:
        return _order(words[0], low[0], bits[0], runs)
    if sum(bits) <= 64:
        return _order(_joined(words, low, bits), 0, sum(bits), runs)
    places = short(_order(words[-1], low[-1], bits[-1], 0))
    for word, least, width in zip(words[-2::-1], low[-2::-1], bits[-2::-1], strict=True):
        column = word[places]
        then = _order(column, least, width, 0)
        del column
        places = places[then]
    return places


def short(places: Places) -> Places:
    """Return places in half the memory, where they are few enough for that."""
    return places.astype(np.uint32) if len(places) < 2**32 else places


def _ranges(words: Sequence[Word]) -> tuple[list[int], list[int]]:
    """Return the least value of each word and the bits of its range."""
    low = [int(word.min()) for word in words]
    return low, [(int(w.max()) - least).bit_length() for w, least in zip(words, low, strict=True)]


def _joined(words: Sequence[Word], low: Sequence[int], bits: Sequence[int]) -> Codes:
    """Return several narrow words as one code each."""
    codes = np.zeros(len(words[0]), np.uint64)
    for word, least, width in zip(words, low, bits, strict=True):
        for start in range(0, len(codes), BLOCK):
            part = codes[start : start + BLOCK]
            part <<= np.uint64(width)
            part |= word[start : start + BLOCK].astype(np.uint64) - _wrapped(least)
    return codes


def _order(word: Word, low: int, bits: int, runs: int) -> NDArray[np.int64]:
    """Return the stable order by one word with a range of so many bits."""
    places = (len(word) - 1).bit_length()
    if 2 * places > 64:
        return np.argsort(word, kind="stable")
    drop = max(bits + places - 64, 0)
    packed = _packed(word, low, drop, places)
    packed.sort(kind="stable" if 0 < runs <= RUNS else None)
    tied = _ties(packed, places) if drop else None
    packed &= np.uint64((1 << places) - 1)
    found = packed.view(np.int64)
    if tied is not None:
        _part(found, tied, word, low, drop)
    return found


def _packed(word: Word, low: int, drop: int, places: int) -> Codes:
    """Return (key - low) without its lowest `drop` bits, with the place below it."""
    packed = np.empty(len(word), np.uint64)
    for start in range(0, len(word), BLOCK):
        part = word[start : start + BLOCK].astype(np.uint64)
        part -= _wrapped(low)
        part >>= np.uint64(drop)
        part <<= np.uint64(places)
        part |= np.arange(start, start + len(part), dtype=np.uint64)
        packed[start : start + BLOCK] = part
    return packed


def _wrapped(value: int) -> np.uint64:
    """Return a signed number modulo 2^64: differences of wrapped numbers are right."""
    return np.uint64(value & (2**64 - 1))


def _ties(packed: Codes, places: int) -> tuple[NDArray[np.int64], Codes] | None:
    """Return where neighbours share their high bits and the number of each such group."""
    tied = np.zeros(len(packed), np.bool_)
    for start in range(0, len(packed) - 1, BLOCK):
        high = packed[start : start + BLOCK + 1] >> np.uint64(places)
        pairs = start + np.flatnonzero(high[1:] == high[:-1])
        tied[pairs] = tied[pairs + 1] = True
    at = np.flatnonzero(tied)
    if not len(at):
        return None
    high = packed[at] >> np.uint64(places)
    group = np.zeros(len(at), np.uint64)
    group[1:] = np.cumsum(high[1:] != high[:-1])
    return at, group


def _part(
    found: NDArray[np.int64],
    tied: tuple[NDArray[np.int64], Codes],
    word: Word,
    low: int,
    drop: int,
) -> None:
    """Order each group of items that share their high bits by the bits that were dropped."""
    at, codes = tied
    codes <<= np.uint64(drop)
    codes |= (word[found[at]].astype(np.uint64) - _wrapped(low)) & np.uint64((1 << drop) - 1)
    if (codes[1:] >= codes[:-1]).all():
        return
    width = int(codes.max()).bit_length()
    found[at] = found[at[_order(codes, 0, width, 0)]]


def flat(items: NDArray[Any]) -> NDArray[Any]:
    """Return a C-contiguous array of items as one opaque value each, without a copy.

    Parameters
    ----------
    items : (n, ...) of any dtype without objects
        Rows are items.

    Returns
    -------
    (n,)
        8- and 16-byte items as numbers, which numpy moves fastest.
    """
    size = items.dtype.itemsize * int(np.prod(items.shape[1:]))
    kind = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}.get(size, f"V{size}")
    if not len(items):
        return np.empty(0, kind)
    return items.reshape(len(items), -1).view(kind)[:, 0]


def gather(items: NDArray[Any], places: Places, out: NDArray[Any]) -> None:
    """Write ``items[places]`` to `out`, all flat, without a temporary array.

    Parameters
    ----------
    items, out : (n,) and (m,)
    places : integers (m,)
    """
    for start in range(0, len(places), BLOCK):
        part = places[start : start + BLOCK].astype(np.int64, copy=False)
        # numpy would buffer the output in its default mode
        np.take(items, part, out=out[start : start + len(part)], mode="clip")
