"""Lines by shape: what is common to thousands of lines is looked at once.

A dump of a machine has thousands of lines and a handful of *shapes*: a
line's shape is the line in lower case with every number written as ``0``,
hexadecimal words as ``0x0``, and its blanks squeezed. A reader interprets
each shape once, slowly and with good error messages, as if it were a line;
the numbers of all lines come in bulk. So a list of 69,120 links costs a few
dozen passes of numpy over its bytes, and no regular expression a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.errors import ParseError
from placement.support.array_types import Ints, Mask

__all__ = ["BIGGEST", "LONGEST_LINE", "Piece", "numbers_in", "pieces"]

#: The biggest number that a dump may hold; a bigger one is read as -1.
BIGGEST = 2**31 - 1

#: Characters in a line at most; real ones have some hundred.
LONGEST_LINE = 2**16

_PIECE = 2**21  # characters handled at a time: bounds the memory of the byte masks
_DIGITS = 10  # digits of a number at most, those of BIGGEST
_HEX = np.full(256, 255, dtype=np.uint8)
_HEX[48:58] = range(10)
_HEX[97:103] = range(10, 16)
_NUMBER = re.compile(r"(?<!\S)0x0|0")


class Piece(NamedTuple):
    """Some consecutive lines of a text.

    Attributes
    ----------
    line : int
        Line of the text that the first one is, from 1.
    shapes : tuple of str
        Shape of each line.
    first : int64 (lines + 1,)
        Where each line's numbers begin in `numbers`, and their end.
    numbers : int32 (k,)
        All numbers in order; -1 for one above `BIGGEST`.
    """

    line: int
    shapes: tuple[str, ...]
    first: Ints
    numbers: NDArray[np.int32]


def numbers_in(shape: str) -> int:
    """Return how many numbers there are in (a part of) a shape.

    Examples
    --------
    >>> numbers_in("0 0x0 c0-0c0s0n0")
    7
    """
    return len(_NUMBER.findall(shape))


def pieces(text: str, source: str) -> Iterator[Piece]:
    r"""Yield the lines of a text by shape, some thousand at a time.

    Parameters
    ----------
    text : str
        Lines end with ``\n``; other white space separates words.
    source : str
        Named in errors.

    Raises
    ------
    ParseError
        At a line longer than `LONGEST_LINE`.

    Examples
    --------
    >>> [piece] = pieces("7  0x1F c0-0\nx99999999999\n", "")
    >>> piece.shapes, piece.numbers.tolist(), piece.first.tolist()
    (('0 0x0 c0-0', 'x0'), [7, 31, 0, 0, -1], [0, 4, 5])
    """
    start, line = 0, 1
    while start < len(text):
        end = len(text)
        if end - start > _PIECE:  # cut behind a newline
            end = text.rfind("\n", start, start + _PIECE) + 1 or start + _PIECE
        lengths = np.diff(np.flatnonzero(_bytes(text[start:end]) == 10))
        if lengths.max(initial=0) > LONGEST_LINE:
            line += int(np.argmax(lengths > LONGEST_LINE))
            raise ParseError(source, line, f"is longer than {LONGEST_LINE} characters")
        piece = _piece(text[start:end], line)
        yield piece
        start, line = end, line + len(piece.shapes)


def _bytes(text: str) -> NDArray[np.uint8]:
    """Return lower-case bytes between two newlines: no mask needs to mind the ends."""
    raw = b"".join((b"\n", text.lower().encode("utf-8", "surrogatepass"), b"\n"))
    return np.frombuffer(raw, dtype=np.uint8)


def _piece(text: str, line: int) -> Piece:
    data = _bytes(text.removesuffix("\n"))
    inside, hexed, false = _numbers(data)
    edge = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    start, length = edge[::2], edge[1::2] - edge[::2]
    shapes = _shapes(data, inside, start, hexed, false)
    ends = np.flatnonzero(data == 10)
    first = np.searchsorted(start, ends)
    return Piece(line, shapes, first.astype(np.int64), _values(data, start, length, hexed))


def _numbers(
    data: NDArray[np.uint8],
) -> tuple[Mask, Ints, Ints]:
    """Return a mask of the bytes in numbers, where the x of hexadecimal ones are, and false ones.

    A false one (``00x1f``, ``8x1``) must not make the shape of a true one.
    """
    inside = (data - np.uint8(48)) < 10
    x = np.flatnonzero(data == 120)
    # data ends with a newline and x is none, so x + 1 exists; x - 2 may wrap to the end: a newline
    x = x[inside[x - 1] & (_HEX[data[x + 1]] < 16)]
    begins = (data[x - 1] == 48) & (data[x - 2] <= 32)
    x, other = x[begins], x[~begins]
    inside[x] = True
    at = x + 1
    for _ in range(_DIGITS + 6):
        if not at.size:
            break
        inside[at] = True
        at = at + 1
        at = at[_HEX[data[at]] < 16]
    return inside, x, other


def _shapes(
    data: NDArray[np.uint8],
    inside: Mask,
    start: Ints,
    hexed: Ints,
    false: Ints,
) -> tuple[str, ...]:
    """Write each line with its numbers as 0 and its blanks squeezed."""
    blank = (data <= 32) & (data != 10)
    out = np.where(inside, np.uint8(48), data)
    out[blank] = 32
    out[hexed] = ord("x")
    out[false] = ord("?")
    keep = ~inside
    keep[start] = True
    keep[hexed] = keep[hexed + 1] = True
    keep[1:] &= ~(blank[1:] & (data[:-1] <= 32))
    lines = out[keep].tobytes().decode("utf-8", "replace").split("\n")[1:-1]
    once = dict(zip(lines, lines, strict=True))  # lines of a shape share its text
    return tuple(map(once.__getitem__, lines))


def _values(
    data: NDArray[np.uint8],
    start: Ints,
    length: Ints,
    hexed: Ints,
) -> NDArray[np.int32]:
    """Return the numbers that start at `start` and are `length` digits long."""
    value = (data[start] - np.uint8(48)).astype(np.int64)
    base = np.full(len(start), 10, dtype=np.int64)
    skip = np.zeros(len(start), dtype=np.int64)
    which = np.searchsorted(start, hexed - 1)
    base[which], skip[which] = 16, 1
    rows = np.flatnonzero(length > 1 + skip)
    for digit in range(1, _DIGITS + 1):
        if not rows.size:
            break
        at = start[rows] + skip[rows] + digit
        value[rows] = value[rows] * base[rows] + _HEX[data[at]]
        rows = rows[length[rows] > skip[rows] + digit + 1]
    value[rows] = -1
    value[value > BIGGEST] = -1
    return value.astype(np.int32)
