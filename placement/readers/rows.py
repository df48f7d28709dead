"""From shapes to rows: what each line of a dump is, and its numbers as columns.

A reader brings one function that interprets one line (see `Parser`); this
module runs it once a shape, sorts the lines into rows, headers, comments and
blanks, and hands out the numbers of all rows as arrays. Where a line is
refused the function sees the line itself once more, so that the message
quotes what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.errors import ParseError, printable
from placement.readers import resembling
from placement.readers.plain import two_formats
from placement.readers.shapes import BIGGEST, Piece, numbers_in, pieces
from placement.records import LineCounts

#: More nodes, and more tiles, than this are refused: three times what the
#: largest lists known have (160,000 nodes; 553,000 tiles).
MOST_NODES, MOST_TILES = 500_000, 2_000_000

#: More shapes of row than this are refused (a real dump has five to fifty).
MOST_KINDS = 10_000

#: Lines of the hints that a reader gives.
_CUT = "was the dump cut short?"

#: A row of the first that lost its end looks like one of the second.
_CUT_LOOKS_LIKE = {("meshcoords", "torus-coordinates")}

_ROW, _HEADER, _COMMENT, _BLANK = range(4)


class Refused(Exception):  # noqa: N818 - it never leaves the readers: `Rows` turns it into a ParseError
    """Why a line is not what its format says."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.text, self.hint = text, hint


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


#: Interprets one line (or shape): a `Row`, or None for a header. Raises `Refused`.
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


def columns(line: str, expected: Sequence[Column]) -> Row:
    """Interpret a line of words that stand in `expected` order.

    Raises
    ------
    Refused
        At the first word that does not look as its column does, or where
        there are too few or too many.

    Examples
    --------
    >>> columns("17 compute", (NID, ROLE))
    Row(at={'nid': 0}, words={'role': 'compute'})
    >>> columns("17", (NID, ROLE))
    Traceback (most recent call last):
        ...
    placement.readers.rows.Refused: 1 of 2 fields (TYPE (service or compute) is missing)
    """
    words = line.split()
    at: dict[str, int] = {}
    kept: dict[str, str] = {}
    passed = 0
    for word, want in zip(words, expected, strict=False):
        if not re.fullmatch(want.pattern, word, re.I | re.A):
            raise Refused(f"'{printable(word, 40)}' is not a {want.what}", want.hint)
        at |= {name: passed + i for i, name in enumerate(want.numbers)}
        kept |= {want.name: word.lower()} if want.keep else {}
        passed += numbers_in(word)
    if len(words) < len(expected):
        missing = expected[len(words)].what
        raise Refused(f"{len(words)} of {len(expected)} fields ({missing} is missing)", _CUT)
    if len(words) > len(expected):
        raise Refused(f"{len(words)} fields where {len(expected)} are expected")
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
    line: NDArray[np.int32]
    kind: NDArray[np.int32]
    kinds: Sequence[Row]
    first: NDArray[np.int64]
    numbers: NDArray[np.int32]

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
        reading = _Reading(text, source, name, parser)
        for piece in pieces(text, source):
            reading.add(piece)
            if reading.tally[_ROW] > most:
                reading.refuse_many("rows", most)
        return reading.rows()

    def number(self, name: str) -> NDArray[np.int32]:
        """Return one number of each row, -1 where a row has it not."""
        offset = np.array([kind.at.get(name, -1) for kind in self.kinds], dtype=np.int64)[self.kind]
        found = np.full(len(self), -1, dtype=np.int32)
        has = offset >= 0
        found[has] = self.numbers[(self.first + offset)[has]]
        return found

    def table(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Return several numbers of each row as int32 (n, len(names))."""
        return np.stack([self.number(name) for name in names], axis=1)

    def word(self, name: str) -> NDArray[np.str_]:
        """Return one word of each row, '' where a row has it not."""
        return np.array([kind.words.get(name, "") for kind in self.kinds], dtype=np.str_)[self.kind]

    def having(self, name: str) -> NDArray[np.bool_]:
        """Return which rows have the number or word `name`."""
        has = [name in kind.at or name in kind.words for kind in self.kinds]
        return np.array(has, dtype=np.bool_)[self.kind]

    def chosen(self, which: NDArray[np.bool_]) -> Rows:
        """Return only some of the rows (the counts stay those of the dump)."""
        return replace(self, line=self.line[which], kind=self.kind[which], first=self.first[which])


class _Reading:
    """The state of reading one text piece by piece."""

    def __init__(self, text: str, source: str, name: str, parser: Parser) -> None:
        self.text, self.source, self.name, self.parser = text, source, name, parser
        self.kinds = [Row(), Row()]  # of each shape; an empty Row where it is no row
        self.sorts = [_BLANK, _COMMENT]  # of each shape: what its lines are
        self.seen: dict[str, int] = {}  # shapes of rows and headers: which of these they are
        self.parts: list[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]] = []
        self.numbers: list[NDArray[np.int32]] = []
        self.passed = 0
        self.tally = np.zeros(4, dtype=np.int64)

    def add(self, piece: Piece) -> None:
        """Take the next lines."""
        which = {shape: self._which(shape, piece) for shape in dict.fromkeys(piece.shapes)}
        of = np.fromiter(map(which.__getitem__, piece.shapes), np.int32, len(piece.shapes))
        sort = np.array(self.sorts)[of]
        self.tally += np.bincount(sort, minlength=4)
        self._refuse_big(piece, of)
        rows = np.flatnonzero(sort == _ROW)
        self.parts.append((rows + piece.line, of[rows], piece.first[rows] + self.passed))
        self.numbers.append(piece.numbers)
        self.passed += len(piece.numbers)

    def _which(self, shape: str, piece: Piece) -> int:
        """Return the index of a shape, finding out what its lines are where it is new."""
        bare = shape.strip()
        if not bare or bare[0] == "#":
            return self.sorts.index(_COMMENT if bare else _BLANK)
        if shape not in self.seen:
            try:
                found = self.parser(shape)
            except Refused as refusal:
                line = piece.line + piece.shapes.index(shape)
                raise self._error(refusal, line) from None
            self.seen[shape] = len(self.kinds)
            self.sorts.append(_HEADER if found is None else _ROW)
            self.kinds.append(found or Row())
            if len(self.kinds) > MOST_KINDS:
                self.refuse_many("kinds of row", MOST_KINDS)
        return self.seen[shape]

    def refuse_many(self, what: str, most: int) -> None:
        """Raise because there are more than `most` of something."""
        hint = "no dump of a machine has as many"
        raise ParseError(self.source, 0, f"{self.name}: more than {most} {what}", hint)

    def _error(self, refusal: Refused, line: int) -> ParseError:
        """Return the error for a line that was refused, in its own words."""
        itself, last = self._line(line)
        other = resembling(itself, but=self.name)
        if other and not (last and (self.name, other) in _CUT_LOOKS_LIKE):
            others = f"the lines above are {self.name}" if self.seen else f"others are {self.name}"
            return two_formats(self.source, line, other, others)
        try:
            self.parser(itself)
        except Refused as own:
            refusal = own
        return ParseError(self.source, line, f"{self.name}: {refusal.text}", refusal.hint)

    def _refuse_big(self, piece: Piece, of: NDArray[np.int32]) -> None:
        """Raise ParseError at the first number of a row that is too big."""
        big = np.flatnonzero(piece.numbers < 0)
        lines = np.searchsorted(piece.first, big, side="right") - 1
        places = big - piece.first[lines]
        for line, place in zip(lines.tolist(), places.tolist(), strict=True):
            name = next((n for n, at in self.kinds[of[line]].at.items() if at == place), None)
            if name is not None:
                raise self._too_big(piece.line + line, place, name)

    def _too_big(self, line: int, which: int, name: str) -> ParseError:
        words = re.findall(r"(?<!\S)0x[0-9a-f]+|[0-9]+", self._line(line)[0].lower())
        what = "NID" if name in ("nid", "hex") else name
        word = printable(words[which], 30) if which < len(words) else "of this line"
        shown = f"{self.name}: {what} {word} is out of range"
        return ParseError(self.source, line, shown, f"it can be 0 to {BIGGEST}")

    def _line(self, line: int) -> tuple[str, bool]:
        """Return a line of the text, counted from 1, and whether nothing follows it."""
        rest = self.text.split("\n", line - 1)[-1]
        itself, _, below = rest.partition("\n")
        return itself, not below.strip()

    def rows(self) -> Rows:
        """Return what was read."""
        rows, headers, comments, blank = (int(x) for x in self.tally)
        if not rows:
            raise ParseError(self.source, 0, f"has no row of {self.name}", _CUT)
        line, kind, first = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        counts = LineCounts(rows, comments, headers, blank)
        numbers = np.concatenate(self.numbers)
        return Rows(self.source, counts, line.astype(np.int32), kind, self.kinds, first, numbers)
