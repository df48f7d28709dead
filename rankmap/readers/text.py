"""Numbers in text, read in bulk: a block of lines at a time, each number with its line."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.errors import ParseError, printable

if TYPE_CHECKING:
    from rankmap.arrays import Floats, Ints

__all__ = ["Numbers", "gather", "whole"]

#: Bytes of text that are looked at in one go.
SIZE = 1 << 23

_COMMENT = re.compile(rb"(?m)^[ \t]*[%#][^\n]*")
_COMMAS = bytes.maketrans(b",;|\t\r", b"     ")
_ODD = re.compile(rb"[^0-9eE+\-. \n]")


class Numbers(NamedTuple):
    """The numbers of a text.

    Attributes
    ----------
    values : float64 (t,)
    line : int64 (t,)
        Line of each, from 1.
    lines : int64
        All lines that are no comments.
    """

    values: Floats
    line: Ints
    lines: Ints


def gather(raw: bytes, source: str, skip: int = 0) -> Numbers:
    """Return all numbers of a text; ``%`` and ``#`` begin comments.

    Parameters
    ----------
    raw : bytes
        Numbers split by blanks, commas, semicolons or bars.
    source : str
    skip : int
        Lines at the beginning that are not looked at.

    Raises
    ------
    ParseError
        Something that is no number, with its line.

    Examples
    --------
    >>> [x.tolist() for x in gather(b"1,2\\n# c\\n\\n3.5", "-")]
    [[1.0, 2.0, 3.5], [1, 1, 4], [1, 3, 4]]
    """
    low = 0
    for _ in range(skip):
        low = raw.find(b"\n", low) + 1 or len(raw)
    none = np.empty(0, dtype=np.int64)
    found, first = [Numbers(np.empty(0), none, none)], skip + 1
    while low < len(raw):
        high = raw.find(b"\n", min(low + SIZE, len(raw))) + 1 or len(raw)
        found.append(_numbers(raw[low:high], first, source))
        first += raw.count(b"\n", low, high)
        low = high
    return Numbers(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _numbers(raw: bytes, first: int, source: str) -> Numbers:
    """Return the numbers of some whole lines, the first being line `first`."""
    bare = _COMMENT.sub(b"#", raw) if b"%" in raw or b"#" in raw else raw
    text = np.frombuffer(bare, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    comments = np.searchsorted(ends, np.flatnonzero(text == ord("#")))
    lines = np.delete(np.arange(len(ends) + (not bare.endswith(b"\n"))), comments)
    bare = bare.replace(b"#", b" ").translate(_COMMAS)
    text = np.frombuffer(bare, dtype=np.uint8)
    space = (text == ord(" ")) | (text == ord("\n"))
    starts = np.flatnonzero(~space & np.append(True, space[:-1]))
    values = np.empty(0)
    if not _ODD.search(bare) and len(starts):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                values = np.fromstring(bare, dtype=np.float64, count=len(starts), sep=" ")
            except ValueError:
                pass  # the word at fault is looked for below
    if len(values) != len(starts):
        raise _first_fault(bare, first, source)
    return Numbers(values, first + np.searchsorted(ends, starts), first + lines)


def _first_fault(bare: bytes, first: int, source: str) -> ParseError:
    """Return the error that names the first thing that is no number."""
    for number, line in enumerate(bare.split(b"\n"), start=first):
        for word in line.split():
            try:
                bad = not np.isfinite(float(word)) or _ODD.search(word) is not None
            except ValueError:
                bad = True
            if bad:
                shown = printable(word[:30].decode("utf-8", "replace"), 30)
                return ParseError(source, number, f"'{shown}' is no number")
    return ParseError(source, first, "numbers expected")


def whole(values: Floats, line: Ints, source: str, what: str) -> Ints:
    """Return numbers that must be whole ones.

    Raises
    ------
    ParseError
        With the line of the first that is none, or is beyond 2**53.

    Examples
    --------
    >>> whole(np.array([1.0, 2.5]), np.array([1, 7]), "a.csv", "rank")
    Traceback (most recent call last):
        ...
    placement.errors.ParseError: a.csv:7: 2.5 is no rank: a whole number is needed
    """
    fine = np.isfinite(values) & (np.abs(values) < 2.0**53)
    fine[fine] = values[fine] % 1 == 0
    if not fine.all():
        at = int(np.argmin(fine))
        text = f"{values[at]:g} is no {what}: a whole number is needed"
        raise ParseError(source, int(line[at]), text)
    return values.astype(np.int64)
