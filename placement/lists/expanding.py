"""Slurm's host list language, expanded in the order given.

One word is a name, a name with brackets (``r[1-2]n[01-03]``), any of these
repeated (``nid00045*3``) or with its slots (``node1:4``). The rules are those of Slurm's
own hostlist.c, checked against ``scontrol show hostnames`` and ``srun -w FILE`` of
Slurm 22.05; brackets before a suffix (``n[1-2]-ib``) are read although Slurm
refuses them, because ClusterShell and pdsh write them.

Words are counted before they are expanded, so a list that says a thousand
million nodes in twenty characters is refused at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from placement.errors import ParseError, printable
from placement.lists.piece import MAX_LENGTH, NAME, Piece
from placement.regex import compiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MAX_CHARACTERS", "MAX_NAMES", "count", "expand"]

#: Names that one list may hold, repeats counted.
MAX_NAMES = 4_000_000
#: Characters that all names of a list may hold together.
MAX_CHARACTERS = 64 * 2**20

_DIGITS = 18  # of one number: an int64 surely holds it

#: Text in which every word is surely a plain name.
_PLAIN = compiled(r"[,\s]*+(?:[A-Za-z0-9_][A-Za-z0-9_.\-]*+(?:[,\s]++|\Z))*+", re.ASCII)
#: The words that host files are mostly made of: one range, one count, or neither.
_SIMPLE = compiled(
    r"([A-Za-z0-9_][A-Za-z0-9_.\-]*+|#\d++)(?:\[(\d{1,18})-(\d{1,18})\])?+"
    r"(?:\*(\d{1,9})|:(\d{1,9})|[ \t]++slots=(\d{1,9})"
    r"(?:[ \t]++max[-_]slots=\d{1,9})?+)?+(?=[,\s]|\Z)[,\s]*+",
    re.ASCII,
)
_ALL_SIMPLE = compiled(rf"[,\s]*+(?:{_SIMPLE.pattern})*+", re.ASCII)
#: A word with whole brackets, or whatever else stands between separators.
_WORD = compiled(r"(?=[^\s,])[^\s,\[\]]*+(?:\[[^\[\]]*+\][^\s,\[\]]*+)*+(?![^\s,])|[^\s,]++")
_INDEX = r"#(?:\d+(?:-\d+)?|\[[\d,\-]*\])(?=[\s,*]|\Z)"
_COMMENT = re.compile(rf"(?!(?<![^\s,]){_INDEX})#[^\n]*|^[ \t]*\([^\n]*\)[ \t]*$", re.M)
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGES = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*", re.ASCII)
_REPEAT = re.compile(r"(.+?)([*:])(\d{1,9})", re.ASCII | re.DOTALL)
_OPTION = re.compile(
    r"(?:max[-_])?slots=(\d{1,9})|(?:binding|user|username|ifhn|maxprocs)=\S*", re.ASCII
)
_INDICES = re.compile(r"#(\d+-\d+)", re.ASCII)
_ASSIGNED = re.compile(r"(?:SLURM_(?:JOB_|STEP_)?NODELIST|NodeList|Nodes|--nodelist)=")


@dataclass(slots=True)
class _Ranges:
    """What stands in one bracket: numbers and ranges as written."""

    items: list[str]
    count: int
    width: int  # digits of the longest number

    def numbers(self) -> Iterator[str]:
        """Yield the numbers as written; those of a range as wide as its first."""
        for item in self.items:
            low, dash, high = item.partition("-")
            if dash:
                width = len(low)
                yield from (f"{n:0{width}d}" for n in range(int(low), int(high) + 1))
            else:
                yield item


@dataclass(slots=True)
class _Entry:
    """One word taken apart: what stands between its brackets, and what in them."""

    word: str
    line: int
    literals: list[str]
    ranges: list[_Ranges]
    times: int = 1  # of the whole word, as Slurm's *
    slots: int = 1  # of each name, as Open MPI's slots=

    def count(self) -> int:
        return prod(r.count for r in self.ranges) * self.times * self.slots

    def longest(self) -> int:
        """Return the characters of the longest name."""
        return sum(map(len, self.literals)) + sum(r.width for r in self.ranges)

    def names(self) -> list[str]:
        found = self._once()
        if self.slots > 1:
            found = [name for name in found for _ in range(self.slots)]
        return found * self.times

    def _once(self) -> list[str]:
        first, *rest = self.literals
        if not rest:
            return [first]
        if len(rest) == 1:
            return [f"{first}{number}{rest[0]}" for number in self.ranges[0].numbers()]
        # Slurm's loops: the last bracket runs fastest, then the first, then the second …
        order = [*range(len(rest) - 2, -1, -1), len(rest) - 1]
        place = [order.index(k) for k in range(len(rest))]
        lists = [list(self.ranges[k].numbers()) for k in order]
        return [
            first + "".join(combo[p] + text for p, text in zip(place, rest, strict=True))
            for combo in product(*lists)
        ]


def expand(pieces: Iterable[Piece], source: str, most: int = MAX_NAMES) -> list[str]:
    """Return all names of some host list text, in order, repeats kept.

    Parameters
    ----------
    pieces : iterable of Piece
    source : str
        Name of the source for errors; '' for text given directly.
    most : int
        Nodes that there are: a word that makes more different names is refused
        before it is expanded.

    Returns
    -------
    list of str

    Raises
    ------
    ParseError
        At the word's line: what is not a name, an open bracket, a range that
        runs backwards, more than `MAX_NAMES` names.

    Examples
    --------
    >>> expand([Piece("r[1-2]n[01-02],login nid00045*2")], "")
    ['r1n01', 'r1n02', 'r2n01', 'r2n02', 'login', 'nid00045', 'nid00045']
    """
    budget = _Budget(source, most)
    parts = [_read(piece, budget) for piece in pieces]
    return [name for part in parts for entry in part for name in _of(entry)]


def count(pieces: Iterable[Piece], source: str) -> int:
    """Return how many names a text holds, repeats counted, without expanding it.

    Raises
    ------
    ParseError
        As `expand`.

    Examples
    --------
    >>> count([Piece("r[1-2]n[01-03],login nid[0-499]*3")], "")
    1507
    """
    budget = _Budget(source)
    for piece in pieces:
        _read(piece, budget, expanded=False)
    return budget.names


def _of(entry: list[str] | _Entry) -> list[str]:
    return entry if isinstance(entry, list) else entry.names()


@dataclass(slots=True)
class _Budget:
    """What of the caps is used up, and where errors happen."""

    source: str
    most: int = MAX_NAMES  # different names of one word
    names: int = 0
    characters: int = 0
    several: bool = False

    def error(self, line: int, text: str, hint: str = "") -> ParseError:
        option = self.source.startswith("--") and not self.source.endswith(" -")
        direct = not self.source or option  # a list on the command line has no lines
        where = 0 if direct and not self.several else line
        return ParseError(self.source or "node list", where, text, hint)

    def refuse_more(self, line: int, word: str, names: int) -> None:
        """Refuse a word that makes more names than there are nodes."""
        if names > self.most:
            raise self.error(
                line,
                f"'{printable(word)}' makes {_short(names)} names",
                f"there are {self.most} nodes"
                if self.most < MAX_NAMES
                else f"a list may hold {MAX_NAMES} names",
            )

    def spend(self, line: int, word: str, names: int, characters: int) -> None:
        self.names += names
        self.characters += characters
        if self.names > MAX_NAMES:
            raise self.error(
                line,
                f"'{printable(word)}' makes {_short(self.names)} names",
                f"a list may hold {MAX_NAMES} names",
            )
        if self.characters > MAX_CHARACTERS:
            raise self.error(
                line,
                f"'{printable(word)}' makes {_short(self.characters)} characters of names",
                f"a list may hold {MAX_CHARACTERS}",
            )


def _short(number: int) -> str:
    return str(number) if number < 10**15 else "far too many"


def _read(piece: Piece, budget: _Budget, expanded: bool = True) -> list[list[str] | _Entry]:
    """Take one piece apart; where it is to be `expanded`, the usual host file at once."""
    budget.several = budget.several or piece.line > 1 or "\n" in piece.text.strip()
    before = budget.names
    marked = "#" in piece.text or "(" in piece.text
    text = _COMMENT.sub("", piece.text) if marked else piece.text
    found = _plain(text, piece.line, budget)
    if found is None and expanded:
        found = _simple(text, budget)
    entries: list[list[str] | _Entry] = [] if found is None else [found]
    if found is None:
        entries += _marked(text, piece.line, budget)
    if budget.names - before < piece.expected:
        raise budget.error(
            piece.line,
            f"{budget.names - before} nodes where the row says {piece.expected}",
            "the list was cut off: print the column without a width, as in squeue -o %N",
        )
    return entries


def _plain(text: str, line: int, budget: _Budget) -> list[str] | None:
    """Read text of plain names only, the usual host file; None for any other."""
    if not _PLAIN.fullmatch(text):
        return None
    words = text.replace(",", " ").split()
    if words:
        if max(map(len, words)) > MAX_LENGTH:
            return None
        budget.spend(line, words[-1], len(words), sum(map(len, words)))
    return words


def _simple(text: str, budget: _Budget) -> list[str] | None:
    """Read text of simple words only; None for any other, and for what must be refused.

    What it returns None for is read again word by word, which is slower and
    finds the words for the error.
    """
    if (budget.several and "#" in text) or not _ALL_SIMPLE.fullmatch(text):
        return None
    rows = _SIMPLE.findall(text)
    names = characters = 0
    for name, low, high, times, slots, more in rows:
        different = int(high) - int(low) + 1 if high else 1
        made = different * int(times or slots or more or 1)
        names += made
        characters += made * (len(name) + len(high))
        if made < 1 or different > budget.most or len(name) + len(high) > MAX_LENGTH:
            return None
    if budget.names + names > MAX_NAMES or budget.characters + characters > MAX_CHARACTERS:
        return None
    budget.spend(0, "", names, characters)
    return [name for row in rows for name in _simple_names(*row)]


def _simple_names(name: str, low: str, high: str, times: str, slots: str, more: str) -> list[str]:
    """Expand one simple word."""
    names = [name]
    if high:
        width = len(low)
        names = [f"{name}{n:0{width}d}" for n in range(int(low), int(high) + 1)]
    if times:
        return names * int(times)
    each = int(slots or more or 1)
    return [name for name in names for _ in range(each)] if each > 1 else names


def _marked(text: str, line: int, budget: _Budget) -> list[list[str] | _Entry]:
    """Read text word by word."""
    entries: list[_Entry] = []
    index = None
    for word, at in _words(text, line):
        option = _OPTION.fullmatch(word)
        if option:
            _apply(option, word, at, entries, budget)
            continue
        entry = _entry(word, at, budget)
        index = index or (entry if word[0] == "#" else None)
        budget.spend(at, word, entry.count(), entry.count() * entry.longest())
        entries.append(entry)
    _refuse_doubtful_index(index, entries, budget)
    return list(entries)


def _words(text: str, line: int) -> Iterator[tuple[str, int]]:
    """Yield the words of a text and the line of each."""
    done = 0
    for match in _WORD.finditer(text):
        start = match.start()
        line += text.count("\n", done, start)
        done = start
        yield match.group(), line


def _apply(
    option: re.Match[str], word: str, line: int, entries: list[_Entry], budget: _Budget
) -> None:
    """Give the node before it its ``slots=``; other options of host files say no names."""
    if not entries:
        raise budget.error(line, f"'{printable(word)}' stands before any node")
    if word.startswith("slots="):
        entry = entries[-1]
        slots = int(option.group(1))
        if slots < 1:
            raise budget.error(line, f"'{printable(word)}': a node has at least 1 slot")
        more = entry.count() * (slots - 1)
        entry.slots *= slots
        budget.spend(line, word, more, more * entry.longest())


def _entry(word: str, line: int, budget: _Budget) -> _Entry:
    """Take one word apart."""
    body, times, slots = _repeats(word, line, budget)
    pieces = _BRACKET.split(_INDICES.sub(r"#[\1]", body, count=1))
    literals, inner = pieces[::2], pieces[1::2]
    ranges = [_ranges(text, word, line, budget) for text in inner]
    entry = _Entry(word, line, literals, ranges, times, slots)
    _refuse_bad_name(entry, budget)
    budget.refuse_more(line, word, prod(r.count for r in ranges))
    return entry


def _repeats(word: str, line: int, budget: _Budget) -> tuple[str, int, int]:
    """Return the word without ``*3`` or ``:3``, and what it said."""
    assigned = _ASSIGNED.match(word)
    body = word[assigned.end() :].strip("\"'") if assigned else word
    if "*" not in body and ":" not in body:
        return body, 1, 1
    match = _REPEAT.fullmatch(body)
    if match is None or int(match.group(3)) < 1:
        raise budget.error(
            line,
            f"'{printable(word)}': what stands behind '*' or ':' is not a count",
            "write nid00045*3 or node1:4",
        )
    count = int(match.group(3))
    return (match.group(1), count, 1) if match.group(2) == "*" else (match.group(1), 1, count)


def _ranges(text: str, word: str, line: int, budget: _Budget) -> _Ranges:
    """Take one bracket apart."""
    packed = "".join(text.split())
    items = packed.split(",")
    if not _RANGES.fullmatch(packed):
        bad = next((i for i in items if not _RANGES.fullmatch(i)), packed)
        what = f"'{printable(bad, 30)}'" if bad else "an empty place"
        raise budget.error(
            line,
            f"{what} in '{printable(word)}' is neither a number nor a range",
            "brackets hold numbers and ranges, as in nid[00045,00050-00053]",
        )
    width = max(map(len, packed.replace("-", ",").split(",")))
    if width > _DIGITS:
        raise budget.error(
            line, f"a number in '{printable(word)}' has {width} digits", f"{_DIGITS} are the most"
        )
    count = len(items)
    for item in items if "-" in packed else ():
        low, dash, high = item.partition("-")
        if dash:
            count += int(high) - int(low)
            if int(low) > int(high):
                raise budget.error(
                    line,
                    f"'{item}' in '{printable(word)}' runs backwards",
                    "Slurm refuses it too: write the numbers one by one to keep an order",
                )
    return _Ranges(items, count, width)


def _refuse_bad_name(entry: _Entry, budget: _Budget) -> None:
    """Raise where what stands outside the brackets is no part of a host name."""
    sample = "0".join(entry.literals)
    if entry.longest() > MAX_LENGTH:
        raise budget.error(
            entry.line,
            f"'{printable(entry.word)}' is {len(entry.word)} characters long",
            f"a name has at most {MAX_LENGTH}",
        )
    if NAME.fullmatch(sample):
        return
    if "[" in sample or "]" in sample:
        raise budget.error(entry.line, f"'{printable(entry.word)}' has a bracket without its other")
    bad = next((c for c in sample if not re.match(r"[A-Za-z0-9_.\-]", c)), sample[:1])
    raise budget.error(
        entry.line,
        f"'{printable(entry.word)}' is not a node name: {_named(bad)} cannot be in one",
        "names hold letters, digits, '.', '-' and '_'",
    )


def _named(character: str) -> str:
    return f"'{character}'" if character.isprintable() else ascii(character)[1:-1]


def _refuse_doubtful_index(index: _Entry | None, entries: list[_Entry], budget: _Budget) -> None:
    """Refuse ``#45`` among names on several lines: it may as well be a name put aside."""
    if index is None or not budget.several or all(e.word[0] == "#" for e in entries):
        return
    raise budget.error(
        index.line,
        f"'{printable(index.word)}' may be an index or a comment",
        "write '# ' with a space for a comment, and indices in a list of their own",
    )
