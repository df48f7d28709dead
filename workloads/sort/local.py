"""Sorting on one rank: keys alone by numpy's sort, items by a packed order.

`order` never sorts keys with their places as pairs. What of the key fits
beside the place into 64 bits is packed with it into one word, and numpy's
vectorised sort of plain words does the work: about ten times faster than an
argsort, and stable for free, the place being the lowest part. Keys that are
too wide for that keep their high bits; the items that share them are parted
afterwards, in the same way, or, where they are many, the order is found from
the low bits first. Keys are read where they lie, a block at a time: what an
order takes is its own packed words and little more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placement.support.array_types import Array, Ints, Mask

Word = NDArray[Any]
Codes = NDArray[np.uint64]
Places = Ints | NDArray[np.uint32]

__all__ = ["flat", "gather", "gather_last", "order", "short", "sort_keys"]

#: Items handled at a time where a whole temporary array would cost memory.
BLOCK = 1 << 16

#: Up to so many sorted runs are merged; more are sorted anew, which numpy's vectors do faster.
RUNS = 4

#: Part of the items that may share their high bits for these to be parted by themselves.
_FEW = 1 / 16


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
    columns = _columns(words)
    if len(columns) == 1:
        return _order(columns[0], None, runs)
    *higher, lowest = columns
    places = short(_order(lowest, None, 0))
    for column in reversed(higher):
        places = short(_order(column, places, 0))
    return places


def short(places: Places) -> Places:
    """Return places in half the memory, where they are few enough for that."""
    return places.astype(np.uint32) if len(places) < 2**32 else places


class _KeyColumn:
    """One key word, or several narrow ones, as codes of one 64-bit word each: 0 is the least."""

    __slots__ = ("bits", "count", "low", "widths", "words")

    def __init__(self, words: Sequence[Word], low: Sequence[int], widths: Sequence[int]) -> None:
        self.words, self.low, self.widths = words, low, widths
        self.count, self.bits = len(words[0]), sum(widths)

    def at(self, where: slice | Array) -> Codes:
        """Return the codes of some items."""
        codes: Codes | None = None
        for word, low, width in zip(self.words, self.low, self.widths, strict=True):
            part: Codes = word[where].astype(np.uint64)
            part -= np.uint64(low & (2**64 - 1))  # modulo 2^64 differences are right
            if codes is not None:
                codes <<= np.uint64(width)
                part |= codes
            codes = part
        assert codes is not None
        return codes


def _columns(words: Sequence[Word]) -> list[_KeyColumn]:
    """Return the words as one column where their ranges fit 64 bits, else as one each."""
    low = [int(word.min()) for word in words]
    widths = [(int(w.max()) - least).bit_length() for w, least in zip(words, low, strict=True)]
    if sum(widths) <= 64:
        return [_KeyColumn(words, low, widths)]
    return [_KeyColumn([w], [n], [bits]) for w, n, bits in zip(words, low, widths, strict=True)]


def _order(column: _KeyColumn, before: Places | None, runs: int) -> Places:
    """Return the stable order by one column of items taken in the order `before`.

    Parameters
    ----------
    column : _KeyColumn
    before : (n,) or None
        None: as they lie.
    runs : int
        See `sort_keys`.
    """
    places = (column.count - 1).bit_length()
    if 2 * places > 64:
        codes = column.at(slice(None) if before is None else before)
        return _through(before, np.argsort(codes, kind="stable"))  # no room beside half a key
    drop = max(column.bits - (64 - places), 0)
    packed = np.empty(column.count, np.uint64)
    _pack(packed, column, before, drop, places)
    packed.sort(kind="stable" if 0 < runs <= RUNS else None)
    if drop:
        tied = _find_ties(packed, places)
        if np.count_nonzero(tied) > _FEW * len(packed):
            return _order_by_halves(packed, column, before, places)
        _part_ties(packed, np.flatnonzero(tied), column, before, drop, places)
    return _through(before, _unpack_places(packed, places))


def _pack(packed: Codes, column: _KeyColumn, before: Places | None, drop: int, places: int) -> None:
    """Write the codes without their lowest `drop` bits, with the place below them.

    What does not fit above the place is lost: the highest bits, where `drop`
    leaves too many.
    """
    for start in range(0, len(packed), BLOCK):
        end = min(start + BLOCK, len(packed))
        part = column.at(slice(start, end) if before is None else before[start:end])
        part >>= np.uint64(drop)
        part <<= np.uint64(places)
        part |= np.arange(start, end, dtype=np.uint64)
        packed[start:end] = part


def _unpack_places(packed: Codes, places: int) -> Ints:
    """Return the places of packed words, in their memory."""
    packed &= np.uint64((1 << places) - 1)
    return packed.view(np.int64)


def _through(before: Places | None, found: Ints) -> Places:
    """Return ``before[found]``, in the memory of `found`."""
    if before is not None:
        for start in range(0, len(found), BLOCK):
            found[start : start + BLOCK] = before[found[start : start + BLOCK]]
    return found


def _order_by_halves(
    packed: Codes, column: _KeyColumn, before: Places | None, places: int
) -> Places:
    """Return the order of codes of which many share their high bits: the low bits first."""
    _pack(packed, column, before, 0, places)
    packed.sort()
    by_low = _through(before, _unpack_places(packed, places))
    by_low = short(by_low) if len(packed) < 2**32 else by_low.copy()
    _pack(packed, column, by_low, 64 - places, places)
    packed.sort()
    return _through(by_low, _unpack_places(packed, places))


def _find_ties(packed: Codes, places: int) -> Mask:
    """Return which words share their high bits with a neighbour."""
    tied = np.zeros(len(packed), np.bool_)
    for start in range(0, len(packed) - 1, BLOCK):
        high = packed[start : start + BLOCK + 1] >> np.uint64(places)
        same = high[1:] == high[:-1]
        tied[start : start + len(same)] |= same
        tied[start + 1 : start + 1 + len(same)] |= same
    return tied


def _part_ties(
    packed: Codes,
    at: Ints,
    column: _KeyColumn,
    before: Places | None,
    drop: int,
    places: int,
) -> None:
    """Order the few items at `at`, in groups that share their high bits, by the bits dropped."""
    if not len(at):
        return
    few = packed[at]
    high = few >> np.uint64(places)
    codes = np.zeros(len(at), np.uint64)
    codes[1:] = np.cumsum(high[1:] != high[:-1])
    codes <<= np.uint64(drop)
    items = _unpack_places(few.copy(), places)
    codes |= column.at(items if before is None else before[items]) & np.uint64((1 << drop) - 1)
    if (codes[1:] < codes[:-1]).any():
        packed[at] = few[_order(_KeyColumn([codes], [0], [int(codes.max()).bit_length()]), None, 0)]


def flat(items: Array) -> Array:
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


def gather(items: Array, places: Places) -> Array:
    """Return ``items[places]``, flat, without a temporary array of places."""
    out = np.empty(len(places), items.dtype)
    for start in range(0, len(places), BLOCK):
        part = places[start : start + BLOCK].astype(np.int64, copy=False)
        # numpy would buffer the output in its default mode
        np.take(items, part, out=out[start : start + len(part)], mode="clip")
    return out


def gather_last(items: Array, places: Places) -> Array:
    """Do as `gather` and use the places up: items of their size get their memory."""
    if items.dtype.itemsize != places.itemsize:
        return gather(items, places)
    out = places.view(items.dtype)
    for start in range(0, len(places), BLOCK):
        out[start : start + BLOCK] = items[places[start : start + BLOCK]]
    return out
