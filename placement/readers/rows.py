"""From shapes to rows: what each line of a dump is, and its numbers as columns.

A reader brings one function that interprets one line (see `Parser`); this
module runs it once a shape, sorts the lines into rows, headers, comments and
blanks, and hands out the numbers of all rows as arrays. Where a line is
refused the function sees the line itself once more, so that the message
quotes what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from placement.errors import NidmapError, ParseError
from placement.readers import MOST_NODES, resembling, two_formats
from placement.records import LineCounts
from placement.support.array_types import Ints, Ints32, Mask, Strs

#: The biggest number that a dump may hold; a bigger one is read as -1.
BIGGEST = 2**31 - 1

#: Characters in a line at most; real ones have some hundred.
LONGEST_LINE = 2**16

_PIECE = 2**21  # characters handled at a time: bounds the memory of what is made of them
#: A hexadecimal number, and the x of what only looks like one (``8x1``, ``00x1f``); what is
#: before them is looked at last: a literal beginning is searched for ten times as fast.
_HEX = re.compile(r"0x(?<!\S0x)([0-9a-f]+)")
_FALSE_HEX = re.compile(r"x(?<=[0-9]x)(?=[0-9a-f])")
_NUMBER = re.compile(r"(?<!\S)0x0|0")
#: Translates all bytes but digits into blanks.
_DIGITS = bytes(c if chr(c) in "0123456789" else 32 for c in range(256))
#: Translates digits into 0, and what is blank into a blank; ends of lines stay.
_SHAPE = bytes(
    48 if chr(c) in "0123456789" else 32 if c <= 32 and c != 10 else c for c in range(256)
)


class LineBlock(NamedTuple):
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
    numbers: Ints32


def numbers_in(shape: str) -> int:
    """Return how many numbers there are in (a part of) a shape.

    Examples
    --------
    >>> numbers_in("0 0x0 c0-0c0s0n0")
    7
    """
    return len(_NUMBER.findall(shape))


def split_by_shape(text: str, source: str) -> Iterator[LineBlock]:
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
    >>> [piece] = split_by_shape("7  0x1F c0-0\nx99999999999\n", "")
    >>> piece.shapes, piece.numbers.tolist(), piece.first.tolist()
    (('0 0x0 c0-0', 'x0'), [7, 31, 0, 0, -1], [0, 4, 5])
    """
    start, line = 0, 1
    while start < len(text):
        end = len(text)
        if end - start > _PIECE:  # cut behind a newline
            end = text.rfind("\n", start, start + _PIECE) + 1 or start + _PIECE
        block = _line_shapes(text[start:end], line, source)
        yield block
        start, line = end, line + len(block.shapes)


def _line_shapes(text: str, line: int, source: str) -> LineBlock:
    """Return the shapes of some lines, and the numbers in them."""
    # hexadecimal numbers in decimals behind an X, which lower case has not
    lower = _HEX.sub(lambda word: f"X{min(int(word[1], 16), BIGGEST + 1)}", text.lower())
    lower = _FALSE_HEX.sub("?", lower)
    data = lower.removesuffix("\n").encode("utf-8", "surrogatepass")
    digits = data.translate(_DIGITS).strip()
    # not of blanks alone, of which numpy makes a 0
    numbers = np.fromstring(digits, np.int64, sep=" ") if digits else np.zeros(0, np.int64)
    code = np.frombuffer(b"\n" + data.translate(_SHAPE) + b"\n", np.uint8)
    lengths = np.diff(np.flatnonzero(code == 10))
    if lengths.max(initial=0) > LONGEST_LINE:
        line += int(np.argmax(lengths > LONGEST_LINE))
        raise ParseError(source, line, f"is longer than {LONGEST_LINE} characters")
    here, before = code[1:], code[:-1]
    squeezed = ((here == 48) & (before == 48)) | ((here == 32) & ((before == 32) | (before == 10)))
    lines = here[~squeezed].tobytes().decode("utf-8", "replace").split("\n")[:-1]
    shape_of = {marked: marked.replace("X", "0x") for marked in dict.fromkeys(lines)}
    count_of = {marked: marked.count("0") for marked in shape_of}
    first = np.cumsum([0, *map(count_of.__getitem__, lines)], dtype=np.int64)
    numbers[numbers > BIGGEST] = -1
    return LineBlock(line, tuple(map(shape_of.__getitem__, lines)), first, numbers.astype(np.int32))


#: More tiles than this are refused: three times what the largest list known has (553,000).
MOST_TILES = 2_000_000

#: More shapes of row than this are refused (a real dump has five to fifty).
MOST_KINDS = 10_000

#: Lines of the hints that a reader gives.
_CUT = "was the dump cut short?"

#: A row of the first that lost its end looks like one of the second.
_CUT_LOOKS_LIKE = {("meshcoords", "torus-coordinates")}

_ROW, _HEADER, _COMMENT, _BLANK = range(4)


class Row(NamedTuple):
    """How one shape of row is to be read.

    Attributes
    ----------
    at : mapping of str to int
        Of each named number: which of the line's numbers it is.
    words : mapping of str to str
        Of each named word: the word.
    """

    at: Mapping[str, int] = {}
    words: Mapping[str, str] = {}


#: Interprets one line (or shape): a `Row`, or None for a header. Raises `NidmapError`.
Parser = Callable[[str], Row | None]


class Column(NamedTuple):
    """One word of a row: what it is called, how it looks, which numbers it holds.

    Attributes
    ----------
    name : str
    what : str
        For messages: ``NID``, ``cname`` …
    pattern : str
        Regular expression for the whole word, in upper or lower case;
        compiled when a word is first looked at.
    numbers : sequence of str
        Names of the numbers in it, in order.
    keep : bool
        True where the word itself is wanted.
    hint : str
        What to say where the word does not match.
    """

    name: str
    what: str
    pattern: str
    numbers: Sequence[str] = ()
    keep: bool = False
    hint: str = ""


PARTS = ("col", "row", "cage", "slot", "node")
NUMBER = "[0-9]+"
CNAME = "c[0-9]+-[0-9]+c[0-9]+s[0-9]+"
NODE = CNAME + "n[0-9]+"

#: The columns that several formats share.
NID = Column("nid", "NID", NUMBER, ["nid"], hint=f"a NID is a number from 0 to {BIGGEST}")
HEX_NID = Column("hex", "hexadecimal NID", "0x[0-9a-f]+", ["hex"])
NODE_CNAME = Column("cname", "node's cname", NODE, PARTS, hint="such as c0-0c1s12n3")
ROLE = Column("role", "TYPE (service or compute)", "service|compute", keep=True)
CORES = Column("cores", "number of CORES", NUMBER, ["cores"])
XYZ = tuple(Column(axis, f"{axis.upper()} coordinate", NUMBER, axis) for axis in "xyz")


def read_columns(line: str, expected: Sequence[Column]) -> Row:
    """Interpret a line of words that stand in `expected` order.

    Raises
    ------
    NidmapError
        At the first word that does not look as its column does, or where
        there are too few or too many.

    Examples
    --------
    >>> read_columns("17 compute", (NID, ROLE))
    Row(at={'nid': 0}, words={'role': 'compute'})
    >>> read_columns("17", (NID, ROLE))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    placement.errors.NidmapError: 1 of 2 fields (TYPE (service or compute) is missing); was ...
    """
    words = line.split()
    at: dict[str, int] = {}
    kept: dict[str, str] = {}
    passed = 0
    for word, want in zip(words, expected, strict=False):
        if not re.fullmatch(want.pattern, word, re.I | re.A):
            raise NidmapError(f"'{word}' is not a {want.what}", want.hint)
        at |= {name: passed + i for i, name in enumerate(want.numbers)}
        kept |= {want.name: word.lower()} if want.keep else {}
        passed += numbers_in(word)
    if len(words) < len(expected):
        missing = expected[len(words)].what
        raise NidmapError(f"{len(words)} of {len(expected)} fields ({missing} is missing)", _CUT)
    if len(words) > len(expected):
        raise NidmapError(f"{len(words)} fields where {len(expected)} are expected")
    return Row(at, kept)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a dump, n of them.

    Attributes
    ----------
    source : str
    counts : LineCounts
    line : int32 (n,)
        Line of each row, from 1.
    kind : int32 (n,)
        Index into `kinds`.
    kinds : sequence of Row
        How each kind of row is read.
    first : int64 (n,)
        Where the row's numbers begin in `numbers`.
    numbers : int32 (k,)
    """

    source: str
    counts: LineCounts
    line: Ints32
    kind: Ints32
    kinds: Sequence[Row]
    first: Ints
    numbers: Ints32

    def __len__(self) -> int:
        return len(self.line)

    @classmethod
    def read(
        cls, text: str, source: str, name: str, parser: Parser, most: int = MOST_NODES
    ) -> Rows:
        """Read the rows of `text`.

        Parameters
        ----------
        text : str
        source : str
            Named in errors.
        name : str
            The format's name, for messages.
        parser : callable
            Interprets one line that is neither blank nor a ``#`` comment.
        most : int
            More rows than this are refused.

        Raises
        ------
        ParseError
            At the first line that `parser` refuses, at a number above
            `BIGGEST`, or where there is no row at all.
        """
        return _Reading(text, source, name, parser).rows(most)

    def number(self, name: str) -> Ints32:
        """Return one number of each row, -1 where a row has it not."""
        offset = np.array([kind.at.get(name, -1) for kind in self.kinds], dtype=np.int64)[self.kind]
        column = np.full(len(self), -1, dtype=np.int32)
        has = offset >= 0
        column[has] = self.numbers[(self.first + offset)[has]]
        return column

    def table(self, names: Sequence[str]) -> Ints32:
        """Return several numbers of each row as int32 (n, len(names))."""
        return np.stack([self.number(name) for name in names], axis=1)

    def word(self, name: str) -> Strs:
        """Return one word of each row, '' where a row has it not."""
        return np.array([kind.words.get(name, "") for kind in self.kinds], dtype=np.str_)[self.kind]

    def having(self, name: str) -> Mask:
        """Return which rows have the number or word `name`."""
        has = [name in kind.at or name in kind.words for kind in self.kinds]
        return np.array(has, dtype=np.bool_)[self.kind]


class _Reading:
    """The lines of one text by shape, and what each shape is."""

    def __init__(self, text: str, source: str, name: str, parser: Parser) -> None:
        self.text, self.source, self.name, self.parser = text, source, name, parser
        parts = list(split_by_shape(text or "\n", source))
        self.shapes = [shape for piece in parts for shape in piece.shapes]
        self.numbers = np.concatenate([piece.numbers for piece in parts])
        before = np.cumsum([0, *(len(piece.numbers) for piece in parts[:-1])]).tolist()
        firsts = [p.first[:-1] + passed for p, passed in zip(parts, before, strict=True)]
        self.first = np.concatenate(firsts)
        self.kinds: list[Row] = []  # of each shape; an empty Row where it is not a row
        self.sorts: list[int] = []  # of each shape: what its lines are
        self.judged = 0  # shapes of rows and headers

    def rows(self, most: int) -> Rows:
        """Return the rows, refusing more than `most`."""
        index = {shape: i for i, shape in enumerate(dict.fromkeys(self.shapes))}
        for shape in index:
            self._judge(shape)
        kind = np.fromiter(map(index.__getitem__, self.shapes), np.int32, len(self.shapes))
        sort = np.array(self.sorts)[kind]
        rows, headers, comments, blank = np.bincount(sort, minlength=4).tolist()
        if rows > most:
            raise self._too_many("rows", most)
        self._refuse_big(kind)
        if not rows:
            raise ParseError(self.source, 0, f"has no row of {self.name}", _CUT)
        counts, at = LineCounts(rows, comments, headers, blank), np.flatnonzero(sort == _ROW)
        line, first = (at + 1).astype(np.int32), self.first[at]
        return Rows(self.source, counts, line, kind[at], self.kinds, first, self.numbers)

    def _judge(self, shape: str) -> None:
        """Find out what the lines of the next shape are."""
        bare, row = shape.strip(), None
        if bare and bare[0] != "#":
            try:
                row = self.parser(shape)
            except NidmapError as refusal:
                raise self._error(refusal, self.shapes.index(shape) + 1) from None
            self.sorts.append(_HEADER if row is None else _ROW)
            self.judged += 1
            if self.judged > MOST_KINDS:
                raise self._too_many("kinds of row", MOST_KINDS)
        else:
            self.sorts.append(_COMMENT if bare else _BLANK)
        self.kinds.append(row or Row())

    def _too_many(self, what: str, most: int) -> ParseError:
        hint = "no dump of a machine has that many"
        return ParseError(self.source, 0, f"{self.name}: more than {most} {what}", hint)

    def _error(self, refusal: NidmapError, line: int) -> ParseError:
        """Return the error for a line that was refused, in its own words."""
        itself, last = self._line(line)
        other = resembling(itself, but=self.name)
        if other and not (last and (self.name, other) in _CUT_LOOKS_LIKE):
            others = f"{'the lines above' if self.judged else 'others'} are {self.name}"
            return two_formats(self.source, line, other, others)
        try:
            self.parser(itself)
        except NidmapError as of_whole_line:
            refusal = of_whole_line
        return ParseError(self.source, line, f"{self.name}: {refusal.message}", refusal.hint)

    def _refuse_big(self, kind: Ints32) -> None:
        """Raise ParseError at the first number of a row that is too big."""
        big = np.flatnonzero(self.numbers < 0)
        lines = np.searchsorted(self.first, big, side="right") - 1
        places = big - self.first[lines]
        for line, place in zip(lines.tolist(), places.tolist(), strict=True):
            name = next((n for n, at in self.kinds[kind[line]].at.items() if at == place), None)
            if name is not None:
                words = re.findall(r"(?<!\S)0x[0-9a-f]+|[0-9]+", self._line(line + 1)[0].lower())
                what = "NID" if name in ("nid", "hex") else name
                word = words[place] if place < len(words) else "of this line"
                shown = f"{self.name}: {what} {word} is out of range"
                raise ParseError(self.source, line + 1, shown, f"it can be 0 to {BIGGEST}")

    def _line(self, line: int) -> tuple[str, bool]:
        """Return a line of the text, counted from 1, and whether nothing follows it."""
        rest = self.text.split("\n", line - 1)[-1]
        itself, _, below = rest.partition("\n")
        return itself, not below.strip()
