"""From shapes to rows: what each line of a dump is, and its numbers as columns.

A reader brings one function that interprets one line (see `Parser`); this
module runs it once a shape, sorts the lines into rows, headers, comments and
blanks, and hands out the numbers of all rows as arrays. Where a line is
refused the function sees the line itself once more, so that the message
quotes what stands there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, printable
from placement.readers.shapes import BIGGEST, numbers_in, pieces
from placement.records import LineCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from placement.readers.shapes import Piece

__all__ = [
    "CNAME",
    "CORES",
    "HEX_NID",
    "MOST_NODES",
    "MOST_TILES",
    "NID",
    "NODE",
    "NODE_CNAME",
    "PARTS",
    "ROLE",
    "XYZ",
    "Column",
    "Parser",
    "Refused",
    "Row",
    "Rows",
    "column",
    "columns",
]

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
        self.text = text
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Row:
    """How one shape of row is to be read.

    Attributes
    ----------
    at : mapping of str to int
        Of each named number: which of the line's numbers it is.
    words : mapping of str to str
        Of each named word: the word.
    """

    at: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)


#: Interprets one line (or shape): a `Row`, or None for a header. Raises `Refused`.
Parser = Callable[[str], Row | None]


@dataclass(frozen=True, slots=True)
class Column:
    """One word of a row: what it is called, how it looks, which numbers it holds.

    Attributes
    ----------
    name : str
    what : str
        For messages: ``NID``, ``cname`` …
    pattern : str
        Regular expression for the whole word, in upper or lower case;
        compiled when a word is first looked at.
    numbers : tuple of str
        Names of the numbers in it, in order.
    keep : bool
        True where the word itself is wanted.
    hint : str
        What to say where the word does not match.
    """

    name: str
    what: str
    pattern: str
    numbers: tuple[str, ...] = ()
    keep: bool = False
    hint: str = ""


PARTS = ("col", "row", "cage", "slot", "node")


def column(
    name: str, what: str, pattern: str, *numbers: str, keep: bool = False, hint: str = ""
) -> Column:
    """Return a `Column` that matches `pattern` in upper and lower case."""
    return Column(name, what, pattern, numbers, keep, hint)


NUMBER = "[0-9]+"
HEX = "0x[0-9a-f]+"
CNAME = "c[0-9]+-[0-9]+c[0-9]+s[0-9]+"
NODE = CNAME + "n[0-9]+"

#: The columns that several formats share.
NID = column("nid", "NID", NUMBER, "nid", hint=f"a NID is a number from 0 to {BIGGEST}")
HEX_NID = column("hex", "hexadecimal NID", HEX, "hex")
NODE_CNAME = column("cname", "node's cname", NODE, *PARTS, hint="such as c0-0c1s12n3")
ROLE = column("role", "TYPE (service or compute)", "service|compute", keep=True)
CORES = column("cores", "number of CORES", NUMBER, "cores")
XYZ = tuple(column(axis, f"{axis.upper()} coordinate", NUMBER, axis) for axis in "xyz")


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
        at.update({name: passed + i for i, name in enumerate(want.numbers)})
        if want.keep:
            kept[want.name] = word.lower()
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
    kinds : tuple of Row
        How each kind of row is read.
    first : int64 (n,)
        Where the row's numbers begin in `numbers`.
    numbers : int32 (k,)
    """

    source: str
    counts: LineCounts
    line: NDArray[np.int32]
    kind: NDArray[np.int32]
    kinds: tuple[Row, ...]
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
        reading = _Reading(source, name, parser, most)
        for piece in pieces(text, source):
            reading.add(piece, text)
        return reading.rows()

    def number(self, name: str) -> NDArray[np.int32]:
        """Return one number of each row, -1 where a row has it not."""
        offset = np.array([kind.at.get(name, -1) for kind in self.kinds], dtype=np.int64)[self.kind]
        # a row without numbers may stand at the end of `numbers`: stay inside
        at = np.minimum(self.first + np.maximum(offset, 0), len(self.numbers) - 1)
        found = self.numbers[at] if len(self.numbers) else np.full(len(self), -1, dtype=np.int32)
        return np.where(offset >= 0, found, np.int32(-1))

    def table(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Return several numbers of each row as int32 (n, len(names))."""
        return np.stack([self.number(name) for name in names], axis=1)

    def word(self, name: str) -> NDArray[np.str_]:
        """Return one word of each row, '' where a row has it not."""
        return np.array([kind.words.get(name, "") for kind in self.kinds], dtype=np.str_)[self.kind]

    def chosen(self, which: NDArray[np.bool_]) -> Rows:
        """Return only some of the rows (the counts stay those of the dump)."""
        return replace(self, line=self.line[which], kind=self.kind[which], first=self.first[which])

    def having(self, name: str) -> NDArray[np.bool_]:
        """Return which rows have the number or word `name`."""
        has = [name in kind.at or name in kind.words for kind in self.kinds]
        return np.array(has, dtype=np.bool_)[self.kind]


class _Reading:
    """The state of reading one text piece by piece."""

    def __init__(self, source: str, name: str, parser: Parser, most: int) -> None:
        self.source, self.name, self.parser, self.most = source, name, parser, most
        self.kinds: list[Row] = [Row(), Row()]  # of each shape; an empty Row where it is no row
        self.sorts: list[int] = [_BLANK, _COMMENT]  # of each shape: what its lines are
        self.seen: dict[str, int] = {}  # shapes of rows and headers: which of these they are
        self.parts: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]] = []
        self.numbers: list[NDArray[np.int32]] = []
        self.passed = 0
        self.tally = np.zeros(4, dtype=np.int64)

    def add(self, piece: Piece, text: str) -> None:
        """Take the next lines."""
        which = {shape: self._which(shape, piece, text) for shape in dict.fromkeys(piece.shapes)}
        of = np.fromiter(map(which.__getitem__, piece.shapes), np.int32, len(piece.shapes))
        sort = np.array(self.sorts)[of]
        self.tally += np.bincount(sort, minlength=4)
        rows = np.flatnonzero(sort == _ROW)
        self._refuse_big(piece, rows, of, text)
        self.parts.append(
            ((rows + piece.line).astype(np.int32), of[rows], piece.first[rows] + self.passed)
        )
        self.numbers.append(piece.numbers)
        self.passed += len(piece.numbers)
        if self.tally[_ROW] > self.most:
            self._refuse_many("rows", self.most)

    def _which(self, shape: str, piece: Piece, text: str) -> int:
        """Return the index of a shape, finding out what its lines are where it is new."""
        bare = shape.strip()
        if not bare:
            return 0
        if bare.startswith("#"):
            return 1
        if shape not in self.seen:
            try:
                found = self.parser(shape)
            except Refused as refusal:
                line = piece.line + piece.shapes.index(shape)
                raise self._error(refusal, line, text) from None
            self.seen[shape] = len(self.kinds)
            self.sorts.append(_HEADER if found is None else _ROW)
            self.kinds.append(found or Row())
            if len(self.kinds) > MOST_KINDS:
                self._refuse_many("kinds of row", MOST_KINDS)
        return self.seen[shape]

    def _refuse_many(self, what: str, most: int) -> None:
        hint = "no dump of a machine has as many"
        raise ParseError(self.source, 0, f"{self.name}: more than {most} {what}", hint)

    def _error(self, refusal: Refused, line: int, text: str) -> ParseError:
        """Return the error for a line that was refused, in its own words."""
        itself, last = _line(text, line)
        other = _other(itself, self.name)
        if other and not (last and (self.name, other) in _CUT_LOOKS_LIKE):
            return self._mixed(line, other)
        try:
            self.parser(itself)
        except Refused as own:
            refusal = own
        return ParseError(self.source, line, f"{self.name}: {refusal.text}", refusal.hint)

    def _mixed(self, line: int, other: str) -> ParseError:
        before = f"the lines above are {self.name}" if self.begun else f"others are {self.name}"
        what = f"two formats in one file: this line looks like {other}, {before}"
        return ParseError(self.source, line, what, "split it and name both files with -m")

    @property
    def begun(self) -> bool:
        """Whether a row or header has been seen."""
        return _ROW in self.sorts or _HEADER in self.sorts

    def _refuse_big(
        self, piece: Piece, rows: NDArray[np.int64], of: NDArray[np.int32], text: str
    ) -> None:
        """Raise ParseError at the first number of a row that is too big."""
        big = np.flatnonzero(piece.numbers < 0)
        if not big.size:
            return
        line = np.searchsorted(piece.first, big, side="right") - 1
        which = big - piece.first[line]
        inside = np.isin(line, rows)
        pairs, at = np.unique(
            of[line[inside]].astype(np.int64) * 2**32 + which[inside], return_index=True
        )
        for i in np.argsort(at).tolist():
            kind, place = divmod(int(pairs[i]), 2**32)
            name = next((n for n, x in self.kinds[kind].at.items() if x == place), None)
            if name is not None:
                raise self._too_big(piece.line + int(line[inside][at[i]]), place, name, text)

    def _too_big(self, line: int, which: int, name: str, text: str) -> ParseError:
        words = re.findall(r"(?<!\S)0x[0-9a-f]+|[0-9]+", _line(text, line)[0].lower())
        what = "NID" if name in ("nid", "hex") else name
        word = printable(words[which], 30) if which < len(words) else "of this line"
        shown = f"{self.name}: {what} {word} is out of range"
        return ParseError(self.source, line, shown, f"it can be 0 to {BIGGEST}")

    def rows(self) -> Rows:
        """Return what was read."""
        tally = [int(x) for x in self.tally]
        if not tally[_ROW]:
            raise ParseError(self.source, 0, f"has no row of {self.name}", _CUT)
        line, kind, first = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        counts = LineCounts(tally[_ROW], tally[_COMMENT], tally[_HEADER], tally[_BLANK])
        numbers = np.concatenate(self.numbers)
        return Rows(self.source, counts, line, kind, tuple(self.kinds), first, numbers)


def _line(text: str, line: int) -> tuple[str, bool]:
    """Return the `line`-th line of `text`, from 1, and whether nothing follows it."""
    start = 0
    for _ in range(line - 1):
        start = text.index("\n", start) + 1
    end = text.find("\n", start)
    return (text[start:], True) if end < 0 else (text[start:end], not text[end:].strip())


def _other(line: str, name: str) -> str:
    """Return the name of another format that the line looks like, '' for none."""
    from placement.readers import resembling

    return resembling(line, but=name)
