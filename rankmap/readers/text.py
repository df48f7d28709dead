"""Numbers in text, read in bulk: a block of lines at a time, each number with its line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["Block", "blocks", "gather", "whole"]

#: Bytes of text that are looked at in one go.
SIZE = 1 << 23

_COMMENT = re.compile(rb"(?m)^[ \t]*[%#][^\n]*")
_COMMAS = bytes.maketrans(b",;|\t\r", b"     ")
_ODD = re.compile(rb"[^0-9eE+\-. \n]")


class Block:
    """Some whole lines of a text.

    Attributes
    ----------
    values : float64 (t,)
        Every number.
    line : int64 (t,)
        Line of each, from 1.
    first, last : int
        The lines that it holds.
    comment : bool (last - first + 1,)
        Which lines are comments.
    """

    __slots__ = ("comment", "first", "last", "line", "values")

    def __init__(self, raw: bytes, first: int, source: str) -> None:
        self.first = first
        bare = _COMMENT.sub(b"#", raw) if b"%" in raw or b"#" in raw else raw
        text = np.frombuffer(bare, dtype=np.uint8)
        ends = np.flatnonzero(text == 10)
        self.last = first + len(ends) - (1 if bare.endswith(b"\n") else 0)
        self.comment = np.zeros(self.last - first + 1, dtype=bool)
        marks = np.flatnonzero(text == ord("#"))
        self.comment[np.searchsorted(ends, marks)] = True
        bare = bare.replace(b"#", b" ").translate(_COMMAS)
        _refuse_odd(bare, first, source)
        text = np.frombuffer(bare, dtype=np.uint8)
        space = (text == 32) | (text == 10)
        starts = np.flatnonzero(~space & np.append(True, space[:-1]))
        self.line = first + np.searchsorted(ends, starts)
        self.values = _floats(bare, len(starts), first, source)


def blocks(raw: bytes, source: str, skip: int = 0) -> Iterator[Block]:
    """Yield a text in blocks of whole lines; ``%`` and ``#`` begin comments.

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
    """
    low, first = 0, 1
    for _ in range(skip):
        low = raw.find(b"\n", low) + 1 or len(raw)
        first += 1
    while low < len(raw):
        high = raw.rfind(b"\n", low, low + SIZE) + 1
        if not high or len(raw) - low <= SIZE:
            high = (
                (raw.find(b"\n", low + SIZE) + 1 or len(raw)) if len(raw) - low > SIZE else len(raw)
            )
        block = Block(raw[low:high], first, source)
        yield block
        low, first = high, block.last + 1


def gather(raw: bytes, source: str, skip: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return all numbers of a text, and the line of each.

    Examples
    --------
    >>> values, line = gather(b"1,2\\n# c\\n\\n3.5", "-")
    >>> values.tolist(), line.tolist()
    ([1.0, 2.0, 3.5], [1, 1, 4])
    """
    found = list(blocks(raw, source, skip))
    none = np.empty(0)
    values = np.concatenate([none, *(b.values for b in found)])
    line = np.concatenate([none.astype(np.int64), *(b.line for b in found)])
    return values, line


def whole(
    values: NDArray[np.float64], line: NDArray[np.int64], source: str, what: str
) -> NDArray[np.int64]:
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


def _floats(bare: bytes, count: int, first: int, source: str) -> NDArray[np.float64]:
    if not count:
        return np.empty(0)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            values = np.fromstring(bare, dtype=np.float64, count=count, sep=" ")
        except ValueError:
            values = np.empty(0)
    if len(values) != count or not bare.split(None, 1):
        raise _wrong(bare, first, source)
    return values


def _refuse_odd(bare: bytes, first: int, source: str) -> None:
    """Refuse a character that no number has."""
    odd = _ODD.search(bare)
    if odd is not None:
        raise _wrong(bare, first, source)


def _wrong(bare: bytes, first: int, source: str) -> ParseError:
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
