# SPDX-License-Identifier: Apache-2.0
"""Rows of a text dump: the kind of each line, and the contents of its columns.

A reader brings one function that says how a line reads (see `Parser`). It is asked where a
line does not read as the one before; here lines are sorted into rows, headers, comments
and blanks, and the words of all rows become columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nidmap.placement.errors import NidmapError, ParseError
from nidmap.placement.readers import refused_line, resembling, split_lines
from nidmap.placement.records import LineCounts
from nidmap.placement.support.array_types import Array, Ints32, Mask

#: The biggest number that a dump may hold.
BIGGEST = 999_999_999
#: A number, a coordinate and a word in a pattern: anything longer is something else.
NUMBER, COORDINATE, WORD = "([0-9]{1,9})", "([0-9]{1,4})", "([a-z_-]{1,32})"

#: Fields kept as words; all others are numbers, ``hex`` hexadecimal.
WORDS = {"role", "state", "mode", "down", "kind", "medium", "cable"}

_PIECE = 2**16  # rows held as Python strings at a time, to limit memory
#: Lines of the hints that a reader gives.
_CUT = "was the dump cut short?"
#: A truncated row of the first format looks like one of the second.
_CUT_LOOKS_LIKE = {("meshcoords", "torus-coordinates")}


class RowColumns(NamedTuple):
    """The columns of a row."""

    pattern: re.Pattern[str]  # of the whole line in lower case
    names: tuple[str, ...]  # meaning of each group of the pattern


#: Tells how to read a line; None for a header. Raises `NidmapError` if it is neither.
Parser = Callable[[str], RowColumns | None]


class Column(NamedTuple):
    """One word of a row: its syntax and its meaning."""

    what: str  # for messages: ``NID``, ``cname`` …
    # Regular expression for the whole word, in upper or lower case, with a group for each of
    # `names`
    pattern: str
    names: tuple[str, ...] = ()
    hint: str = ""  # hint if the word does not match


PARTS = ("col", "row", "cage", "slot", "node")
BLADE = f"c{NUMBER}-{NUMBER}c{NUMBER}s{NUMBER}"
NODE = f"{BLADE}n{NUMBER}"

#: The columns that several formats share.
NID = Column("NID", NUMBER, ("nid",), f"a NID is a number from 0 to {BIGGEST}")
HEX_NID = Column("hexadecimal NID", "0x([0-9a-f]{1,8})", ("hex",))
NODE_CNAME = Column("node's cname", NODE, PARTS, "such as c0-0c1s12n3")
ROLE = Column("TYPE (service or compute)", "(service|compute)", ("role",))
CORES = Column("number of CORES", NUMBER, ("cores",))
XYZ = tuple(Column(f"{axis.upper()} coordinate", COORDINATE, (axis,)) for axis in "xyz")


def row_layout(line: str, expected: tuple[Column, ...]) -> RowColumns:
    """Return how to read a line whose words come in the `expected` order."""
    words = line.split()
    for word, column in zip(words, expected, strict=False):
        if not re.fullmatch(column.pattern, word, re.I | re.A):
            raise NidmapError(f"'{word}' is not a {column.what}", column.hint)
    if len(words) < len(expected):
        missing = expected[len(words)].what
        raise NidmapError(f"{len(words)} of {len(expected)} fields ({missing} is missing)", _CUT)
    if len(words) > len(expected):
        raise NidmapError(f"{len(words)} fields where {len(expected)} are expected")
    return _joined_layout(expected)


@lru_cache(64)
def _joined_layout(columns: tuple[Column, ...]) -> RowColumns:
    pattern = r"\s+".join(f"(?:{column.pattern})" for column in columns)
    names = tuple(name for column in columns for name in column.names)
    return RowColumns(re.compile(rf"\s*{pattern}\s*", re.A), names)


@dataclass(frozen=True, slots=True)
class Rows:
    """The n rows of a dump."""

    source: str
    counts: LineCounts
    line: Ints32  # (n,), line of each row, from 1
    columns: dict[str, Array]  # (n,), numbers, -1 where a row has it not; `WORDS`, '' there

    def column(self, name: str) -> Array:
        """Return a number (-1 if missing) or a word ('' if missing) for each row."""
        printed = self.columns.get(name)
        return np.full(len(self.line), _nothing(name)) if printed is None else printed

    def table(self, names: Sequence[str]) -> Ints32:
        """Return several numbers per row as int32 (n, len(names))."""
        return np.stack([self.column(name) for name in names], axis=1).astype(np.int32)

    def having(self, name: str) -> Mask:
        """Return which rows have the number or word called `name`."""
        return np.asarray(self.column(name) != _nothing(name))


def _nothing(name: str) -> int | str:
    """Return the value of a column that is missing from a row."""
    return "" if name in WORDS else -1


def read_rows(text: str, source: str, name: str, parser: Parser) -> Rows:
    """Read the rows of a dump.

    `name`: the format's name, for messages. `parser`: says how a line reads that is neither blank
    nor a ``#`` comment.
    """
    lines = split_lines(text, source)
    layout = RowColumns(re.compile("(?!)"), ())  # which nothing matches
    headers = comments = 0
    rows: list[tuple[str, ...]] = []
    numbers: list[int] = []
    pieces: list[dict[str, Array]] = []
    for number, line in enumerate(lines, 1):
        match = layout.pattern.fullmatch(line.lower())
        if match is None:
            words = line.split()
            if not words or words[0][0] == "#":
                comments += bool(words)
                continue
            try:
                following = parser(line)
            except NidmapError as refusal:
                raise _refused_line(refusal, lines, number, source, name) from None
            if following is None:
                headers += 1
                continue
            pieces.append(_as_columns(layout, rows))
            layout, rows = following, []
            match = layout.pattern.fullmatch(" ".join(words).lower())
            assert match
        elif len(rows) == _PIECE:
            pieces.append(_as_columns(layout, rows))
            rows = []
        rows.append(match.groups("-1"))
        numbers.append(number)
    pieces = [piece for piece in [*pieces, _as_columns(layout, rows)] if piece]
    if not numbers:
        raise ParseError(source, 0, f"has no row for {name}", _CUT)
    blank = len(lines) - len(numbers) - headers - comments
    counts = LineCounts(len(numbers), comments, headers, blank)
    return Rows(source, counts, np.array(numbers, dtype=np.int32), _join_pieces(pieces))


def _as_columns(layout: RowColumns, rows: Sequence[tuple[str, ...]]) -> dict[str, Array]:
    columns: dict[str, Array] = {}
    for name, words in zip(layout.names, zip(*rows, strict=True), strict=False):
        if name in WORDS:
            index = {word: k for k, word in enumerate(dict.fromkeys(words))}
            kinds = np.array([word.removeprefix("-1") for word in index])
            columns[name] = kinds[np.fromiter(map(index.__getitem__, words), np.intp, len(words))]
        elif name == "hex":
            columns[name] = np.array([int(word, 16) for word in words], dtype=np.int64)
        else:
            columns[name] = np.fromstring(" ".join(words), np.int32, sep=" ")
    return columns


def _join_pieces(pieces: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return the columns of all pieces."""
    sizes = [len(next(iter(piece.values()))) for piece in pieces]
    columns = {}
    for name in dict.fromkeys(name for piece in pieces for name in piece):
        parts = zip(pieces, sizes, strict=True)
        column = [p[name] if name in p else np.full(size, _nothing(name)) for p, size in parts]
        columns[name] = np.concatenate(column)
    return columns


def _refused_line(
    refusal: NidmapError, lines: Sequence[str], number: int, source: str, name: str
) -> ParseError:
    """Return the error for a line that was refused."""
    line, text = lines[number - 1], f"{name}: {refusal.message}"
    last = not any(map(str.strip, lines[number:]))
    if last and (name, resembling(line, but=name)) in _CUT_LOOKS_LIKE:
        return ParseError(source, number, text, refusal.hint)
    return refused_line(name, source, number, line, text, refusal.hint)
