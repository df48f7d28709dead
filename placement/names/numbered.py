"""Names that end in a number: ``nid00045`` as prefix, number and width, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placement.names.columns import codes_of, strings_of, write_names
from placement.support.array_types import Ints, Mask, Strs

__all__ = ["name_numbers", "nid_names"]

#: Digits that an int64 surely holds; those before them belong to the prefix.
_DIGITS = 18
_ZERO = ord("0")


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


def name_numbers(names: ArrayLike) -> tuple[Strs, Ints, NDArray[np.int32]]:
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


def _behind_last(mask: Mask) -> NDArray[np.intp]:
    """Return the place behind the last True of each row, 0 where it has none."""
    last = mask.shape[1] - np.argmax(mask[:, ::-1], axis=1)
    return np.where(mask.any(axis=1), last, 0)
