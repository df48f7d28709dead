"""Lines by shape: what is common to thousands of lines is looked at once.

A dump of a machine has thousands of lines and a handful of *shapes*: a
line's shape is the line in lower case with every number written as ``0``,
hexadecimal words as ``0x0``, and its blanks squeezed. A reader interprets
each shape once, slowly and with good error messages, as if it were a line;
the numbers of all lines come in bulk. So a list of 69,120 links costs a few
replacements in its bytes, and no regular expression a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.errors import ParseError

__all__ = ["BIGGEST", "LONGEST_LINE", "Piece", "numbers_in", "pieces"]

#: The biggest number that a dump may hold; a bigger one is read as -1.
BIGGEST = 2**31 - 1

#: Characters in a line at most; real ones have some hundred.
LONGEST_LINE = 2**16

_PIECE = 2**21  # characters handled at a time: bounds the memory of what is made of them
_BLANKS = bytes(c for c in range(33) if c != 10)
#: Translations of bytes: blanks to spaces, digits to 0, and all but digits to spaces.
_SPACED = bytes.maketrans(_BLANKS, b" " * len(_BLANKS))
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_DIGITS = bytes(c if 48 <= c < 58 else 32 for c in range(256))
#: A hexadecimal word, and an x (``00x1f``, ``8x1``) that must not make the shape of one.
_HEX = re.compile(rb" 0x([0-9a-f]{1,64})")
_OTHER_X = re.compile(rb"x(?<=[0-9]x)(?<! 0x)(?=[0-9a-f])")
#: Digits and blanks that a shape leaves out: those behind another one, and leading blanks.
_REPEATED = re.compile("(?<=0)0+|(?<= ) +|^ +")
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
    first: NDArray[np.int64]
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
        piece = _piece(text[start:end].removesuffix("\n"), line, source)
        yield piece
        start, line = end, line + len(piece.shapes)


def _piece(text: str, line: int, source: str) -> Piece:
    data = text.lower().encode("utf-8", "surrogatepass").translate(_SPACED)
    data = b" " + data.replace(b"\n", b"\n ")
    if b"x" in data:  # a hexadecimal word becomes a decimal one behind a 1
        words = _HEX.split(_OTHER_X.sub(b"?", data))
        words[1::2] = [b" \1%d" % int(word, 16) for word in words[1::2]]
        data = b"".join(words)
    numbers = np.fromstring(data.translate(_DIGITS).strip(), dtype=np.int64, sep=" ")
    rows = data.translate(_ZEROS).decode("utf-8", "replace").split("\n")
    kinds = set(rows)
    if max(map(len, kinds)) > LONGEST_LINE:
        line += next(i for i, row in enumerate(rows) if len(row) > LONGEST_LINE)
        raise ParseError(source, line, f"is longer than {LONGEST_LINE} characters")
    shape_of = {row: _REPEATED.sub("", row).replace("\1", "0x") for row in kinds}
    many = {row: numbers_in(shape) for row, shape in shape_of.items()}
    first = np.cumsum([0, *map(many.__getitem__, rows)])
    numbers[numbers > BIGGEST] = -1
    return Piece(line, tuple(map(shape_of.__getitem__, rows)), first, numbers.astype(np.int32))
