"""Many names at once: numpy string arrays to columns of numbers and back.

The characters are looked at one position at a time for all names together:
a hundred thousand names take as many numpy calls as one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placement.support.array_types import Ints, Ints32, Mask, Strs

#: How many cages a cabinet, slots a cage and nodes a slot there can be.
LIMITS = {"cage": 3, "slot": 16, "node": 4}

#: The letter before each of the five numbers.
_LETTERS = np.array([ord(c) for c in "c-csn"] + [0], dtype=np.uint32)
_MAX = np.array([9999, 9999, *(limit - 1 for limit in LIMITS.values())], dtype=np.int32)

#: More characters than this are not a node's cname (c9999-9999c2s15n3).
_LONGEST = 17

#: Digits that an int64 surely holds; those before them belong to the prefix.
_DIGITS = 18
_ZERO = ord("0")


def codes_of(names: ArrayLike, longest: int | None = None) -> NDArray[np.uint32]:
    """Return the characters of names as code points, 0 behind the end.

    Parameters
    ----------
    names : str (n,)
    longest : int or None
        Look at so many characters only; None looks at all.

    Returns
    -------
    uint32 (n, longest)
    """
    texts = np.ascontiguousarray(names, dtype=np.str_)
    if texts.dtype.itemsize == 0:
        return np.zeros((len(texts), 1), dtype=np.uint32)
    codes = texts.view(np.uint32).reshape(len(texts), texts.dtype.itemsize // 4)
    return codes if longest is None else codes[:, :longest]


def strings_of(codes: NDArray[np.uint32]) -> Strs:
    """Return rows of code points as strings; the opposite of `codes_of`."""
    rows = np.ascontiguousarray(codes)
    if rows.size == 0:
        return np.zeros(len(rows), dtype="U1")
    return rows.view(f"U{rows.shape[1]}").reshape(len(rows))


def write_names(table: NDArray[np.integer], before: Sequence[str], width: int = 1) -> Strs:
    """Write rows of numbers as names.

    Parameters
    ----------
    table : int (n, k)
    before : sequence of k or k + 1 str
        What stands before each number, and behind the last.
    width : int
        Digits of each number at least, zeros in front.

    Returns
    -------
    str (n,)
        '' where a row holds a negative number.

    Examples
    --------
    >>> write_names(np.array([[1, 20], [300, 4], [0, -1]]), ("c", "-", "a0")).tolist()
    ['c1-20a0', 'c300-4a0', '']
    """
    values = np.asarray(table, dtype=np.int64)
    digits = np.full(values.shape, max(width, 1))
    for power in range(1, len(str(values.max(initial=0)))):
        digits += (values >= 10**power) & (digits <= power)
    letters = sum(map(len, before))
    codes = np.zeros((len(values), letters + int(digits.sum(axis=1).max(initial=0))), np.uint32)
    flat, at = codes.reshape(-1), np.arange(len(values)) * codes.shape[1]
    for i, text in enumerate(before):
        for letter in text:
            flat[at] = ord(letter)
            at += 1
        if i < values.shape[1]:
            rest, at = values[:, i], at + digits[:, i]
            for place in range(1, int(digits[:, i].max(initial=0)) + 1):
                rest, digit = np.divmod(rest, 10)
                inside = place <= digits[:, i]
                flat[at[inside] - place] = digit[inside] + ord("0")
    codes[(values < 0).any(axis=1)] = 0
    return strings_of(codes)


def parse_cnames(names: ArrayLike) -> Ints32:
    """Read node cnames.

    Parameters
    ----------
    names : str (n,)
        Upper or lower case.

    Returns
    -------
    int32 (n, 5)
        Columns col, row, cage, slot, node; a row of -1 where the text is not
        the cname of a node or names a cage, slot or node that no Cray has
        (``Cname.parse`` says which).

    Examples
    --------
    >>> parse_cnames(["c11-2c0s15n3", "c0-0c3s0n0", "login1"]).tolist()
    [[11, 2, 0, 15, 3], [-1, -1, -1, -1, -1], [-1, -1, -1, -1, -1]]
    """
    codes = codes_of(names, _LONGEST + 1)
    rows = np.arange(len(codes))
    at = np.zeros(len(codes), dtype=np.intp)  # numbers begun so far: 0 before the first letter
    digits = np.zeros(len(codes), dtype=np.int32)  # digits of the number being read
    good = np.ones(len(codes), dtype=bool)
    value = np.zeros((len(codes), 6), dtype=np.int32)  # column 0 is never written
    ended = np.zeros(len(codes), dtype=bool)
    for column in codes.T:
        ended |= column == 0
        digit = column - ord("0")  # wraps below '0', so one comparison tells a digit
        is_digit = digit <= 9
        number = value[rows, at]
        good &= ~is_digit | ((at > 0) & (digits < 4) & ((digits == 0) | (number > 0)))
        value[rows, at] = np.where(is_digit & good, number * 10 + digit.astype(np.int32), number)
        is_letter = (column | 0x20 == _LETTERS[at] | 0x20) & (column >= ord("-")) & (at < 5)
        good &= np.where(ended, column == 0, is_digit | is_letter & ((at == 0) | (digits > 0)))
        digits = np.where(is_digit, digits + 1, np.where(ended, digits, 0))
        at += is_letter
    good &= (at == 5) & (digits > 0) & (value[:, 1:] <= _MAX).all(axis=1)
    if codes.shape[1] > _LONGEST:
        good &= codes[:, _LONGEST] == 0
    return np.where(good[:, None], value[:, 1:], np.int32(-1)).astype(np.int32)


def format_cnames(parts: ArrayLike) -> Strs:
    """Write node cnames.

    Parameters
    ----------
    parts : int (n, 5)
        Columns col, row, cage, slot, node.

    Returns
    -------
    str (n,)
        '' where a row holds a negative number.

    Examples
    --------
    >>> format_cnames([[11, 2, 0, 15, 3], [-1, -1, -1, -1, -1]]).tolist()
    ['c11-2c0s15n3', '']
    """
    return write_names(np.asarray(parts).reshape(-1, 5), ("c", "-", "c", "s", "n"))


def nid_names(numbers: ArrayLike, width: int = 5, prefix: str = "nid") -> Strs:
    """Write numbers as node names.

    Parameters
    ----------
    numbers : int64 (n,)
    width : int
        Digits at least, zeros in front; larger numbers take more.
    prefix : str

    Returns
    -------
    str (n,)
        '' where the number is negative.

    Examples
    --------
    >>> nid_names([45, 123456, -1]).tolist()
    ['nid00045', 'nid123456', '']
    >>> nid_names([0, 7], width=1, prefix="node").tolist()
    ['node0', 'node7']
    """
    return write_names(np.asarray(numbers, dtype=np.int64)[:, None], (prefix,), width)


def name_numbers(names: ArrayLike) -> tuple[Strs, Ints, Ints32]:
    """Part names from the number they end in.

    Parameters
    ----------
    names : str (n,)

    Returns
    -------
    prefixes : str (n,)
        What stands before the number.
    numbers : int64 (n,)
        -1 where a name does not end in a digit.
    widths : int32 (n,)
        Digits of the number, leading zeros counted, at most 18 (digits
        further left belong to the prefix); 0 where there is no number.

    Examples
    --------
    >>> prefix, number, width = name_numbers(["nid00045", "r1n7", "login"])
    >>> prefix.tolist(), number.tolist(), width.tolist()
    (['nid', 'r1n', 'login'], [45, 7, -1], [5, 1, 0])
    """
    codes = codes_of(names)
    places = np.arange(codes.shape[1])
    length = _behind_last(codes != 0)
    first = np.maximum(_behind_last((codes - _ZERO > 9) & (codes != 0)), length - _DIGITS)
    numbers = np.zeros(len(codes), dtype=np.int64)
    for place in places:
        inside = (place >= first) & (place < length)
        digit = (codes[:, place] - _ZERO).astype(np.int64)
        numbers = np.where(inside, numbers * 10 + digit, numbers)
    widths = (length - first).astype(np.int32)
    numbers[widths == 0] = -1
    return strings_of(np.where(places < first[:, None], codes, np.uint32(0))), numbers, widths


def _behind_last(mask: Mask) -> Ints:
    """Return the place behind the last True of each row, 0 where it has none."""
    last = mask.shape[1] - np.argmax(mask[:, ::-1], axis=1)
    return np.where(mask.any(axis=1), last, 0)
