"""Names that end in a number: ``nid00045`` as prefix, number and width, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.names.columns import codes_of, strings_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["name_numbers", "nid_names"]

#: Digits that an int64 surely holds; those before them belong to the prefix.
_DIGITS = 18
_ZERO = ord("0")


def nid_names(numbers: ArrayLike, width: int = 5, prefix: str = "nid") -> NDArray[np.str_]:
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
    values = np.asarray(numbers, dtype=np.int64)
    if not len(values):
        return np.zeros(0, dtype="U1")
    powers = 10 ** np.arange(1, 19, dtype=np.int64)
    lengths = np.maximum(np.searchsorted(powers, values, side="right") + 1, max(width, 1))
    head = len(prefix)
    codes = np.zeros((len(values), head + int(lengths.max())), dtype=np.uint32)
    codes[:, :head] = [ord(c) for c in prefix]
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        rows = slice(None) if (lengths == length).all() else np.flatnonzero(lengths == length)
        rest = values[rows]
        for place in range(head + length - 1, head - 1, -1):
            rest, digit = np.divmod(rest, 10)
            codes[rows, place] = digit + _ZERO
    codes[values < 0] = 0
    return strings_of(codes)


def name_numbers(
    names: ArrayLike,
) -> tuple[NDArray[np.str_], NDArray[np.int64], NDArray[np.int32]]:
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
    n, longest = codes.shape
    numbers = np.zeros(n, dtype=np.int64)
    if not n:
        return np.zeros(0, dtype="U1"), numbers, np.zeros(0, dtype=np.int32)
    length = longest - np.argmax(codes[:, ::-1] != 0, axis=1)
    length[codes[:, 0] == 0] = 0
    first = np.maximum(_number_start(codes), length - _DIGITS)
    for place in range(longest):
        inside = (place >= first) & (place < length)
        digit = (codes[:, place] - _ZERO).astype(np.int64)
        numbers = np.where(inside, numbers * 10 + digit, numbers)
    widths = (length - first).astype(np.int32)
    numbers[widths == 0] = -1
    prefixes = np.where(np.arange(longest) < first[:, None], codes, np.uint32(0))
    return strings_of(prefixes), numbers, widths


def _number_start(codes: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Return the place behind the last character that is neither a digit nor padding."""
    other = (codes - _ZERO > 9) & (codes != 0)
    last = codes.shape[1] - np.argmax(other[:, ::-1], axis=1)
    return np.where(other.any(axis=1), last, 0)
