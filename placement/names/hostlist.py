# SPDX-License-Identifier: Apache-2.0
"""Slurm's host list notation, expanded in the given order.

One word is a name, a name with brackets (``r[1-2]n[01-03]``), any of these
repeated (``nid00045*3``) or with its slots (``node1:4``, LSF's ``node1 4``). The rules are
those of Slurm's own hostlist.c, checked against ``scontrol show hostnames`` and ``srun -w FILE`` of
Slurm 22.05; brackets before a suffix (``n[1-2]-ib``) are read although Slurm
refuses them, because ClusterShell and pdsh write them.

Words are counted before they are expanded, so a list that says a thousand
million nodes in twenty characters is refused at once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, product
from math import prod
from typing import NamedTuple

from nidmap.placement.errors import ParseError


def compile_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    r"""Compile a pattern whose possessive quantifiers serve speed only.

    Python 3.10 lacks ``*+``, ``++`` and ``?+``, and before 3.11.5 they match too much
    where what they repeat goes back (gh-106052): there the greedy ones stand for them.
    So the pattern has to match the same, in linear time, with either: no
    quantified part may be followed by what could also belong to it.
    """
    if sys.version_info < (3, 11, 5):
        pattern = re.sub(r"(?<=[*+?}])\+", "", pattern)
    return re.compile(pattern, flags)


def with_lines(
    matches: Iterable[re.Match[str]], text: str, first: int = 1
) -> Iterator[tuple[re.Match[str], int]]:
    r"""Yield each match in a text with its line number, counting from `first`."""
    done = 0
    for match in matches:
        first += text.count("\n", done, match.start())
        done = match.start()
        yield match, first


#: Characters of the longest name: more is not a host name anywhere.
MAX_LENGTH = 255
#: A host name, or ``#`` and a number for an index of the machine's table.
NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.\-]*|#\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A stretch of host list text and its position."""

    text: str
    line: int = 1  # line of the source on which it begins, from 1
    expected: int = 0  # number of nodes according to the source; 0 if it does not say
    # State of the job that has them, as printed; '' where the source says none
    state: str = field(default="", repr=False, compare=False)


#: Names that one list may hold, repeats counted.
MAX_NAMES = 4_000_000
#: Characters that all names of a list may hold together.
MAX_CHARACTERS = 64 * 2**20

_DIGITS = 18  # of one number: an int64 surely holds it

#: Text in which every word is surely a plain name.
_PLAIN = compile_pattern(r"[,\s]*+(?:[A-Za-z0-9_][A-Za-z0-9_.\-]*+(?:[,\s]++|\Z))*+", re.ASCII)
#: A word with complete brackets, or anything else between separators.
_WORD = compile_pattern(
    r"(?<![^\s,])(?:binding|slot_list)=\S*+|"
    r"(?=[^\s,])[^\s,\[\]]*+(?:\[[^\[\]]*+\][^\s,\[\]]*+)*+(?![^\s,])|[^\s,]++"
)
_INDEX = r"#(?:\d+(?:-\d+)?|\[[\d,\-]*\])(?=[\s,*]|\Z)"
_COMMENT = re.compile(rf"(?!(?<![^\s,]){_INDEX})#[^\n]*|^[ \t]*\([^\n]*\)[ \t]*$", re.M)
_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_RANGES = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*", re.ASCII)
_REPEAT = re.compile(r"(.+?)([*:])(\d{1,9})", re.ASCII | re.DOTALL)
#: A word that is a number, and one that is a name: no number, range or index.
_NUMBER = re.compile(r"(?<![^\s,])\d+(?![^\s,])", re.ASCII)
_NAMED = re.compile(
    r"(?<![^\s,])(?![^\s,=]*=|#?(?:\d[\d\-]*|\[[\d,\-]*\])(?:[*:]\d+)?(?![^\s,]))[^\s,]", re.ASCII
)
_COUNT = re.compile(r"[1-9]\d{0,8}", re.ASCII)
#: The separator after an entry of a list with commas.
_LISTED = re.compile(r"\s*(?:,|\Z)")
#: What host files say of a node: its slots (``cpu`` and ``count`` are Open MPI's other words for
#: them), the most that it takes, and what names no nodes.
_OPTION = re.compile(
    r"(?:slots|cpu|count)=(\d{1,9})|"
    r"(?:max[-_]?(?:slots|cpu|count)|(?:slots|cpu|count)[-_]?max)=\d{1,9}|"
    r"(?:binding|user|username|ifhn|maxprocs|sockets_per_board|cores_per_socket|slot_list)=\S*",
    re.ASCII,
)
#: Blanks that Open MPI allows around the equals sign of an option.
_SPACED = re.compile(r"(?<=[A-Za-z])[ \t]*=[ \t]*(?=\d)")
#: An IPv6 address, with a port of brackets or a count after it or not.
_IPV6 = re.compile(
    r"\[?[0-9A-Fa-f]{0,4}:(?:[0-9A-Fa-f]{0,4}:)+[0-9A-Fa-f.]*(?:%\w+)?\]?(?:[:*]\d+)?"
)
_INDICES = re.compile(r"#(\d+-\d+)", re.ASCII)
_ASSIGNED = re.compile(r"(?:SLURM_(?:JOB_|STEP_)?NODELIST|NodeList|Nodes|--nodelist)=")


class _Ranges(NamedTuple):
    """The contents of one bracket: numbers and ranges as written."""

    items: list[str]
    total: int
    width: int  # digits of the longest number

    def numbers(self) -> Iterator[str]:
        """Yield the numbers as written; a range pads all of its numbers like its first."""
        for item in self.items:
            low, dash, high = item.partition("-")
            if dash:
                width = len(low)
                yield from (f"{n:0{width}d}" for n in range(int(low), int(high) + 1))
            else:
                yield item


@dataclass(slots=True)
class _ListWord:
    """One word split up: the text outside its brackets, and their contents."""

    word: str
    line: int
    literals: list[str]
    ranges: list[_Ranges]
    times: int = 1  # of the whole word, as Slurm's *
    slots: int = 1  # of each name, as Open MPI's slots=

    def count(self) -> int:
        return prod(r.total for r in self.ranges) * self.times * self.slots

    def longest(self) -> int:
        """Return the length of the longest name."""
        return sum(map(len, self.literals)) + sum(r.width for r in self.ranges)

    def names(self) -> list[str]:
        first, *rest = self.literals
        if len(rest) == 1:  # the usual word, on a fast path
            names = [f"{first}{number}{rest[0]}" for number in self.ranges[0].numbers()]
        else:
            # Slurm's loops: the last bracket runs fastest, then the first, then the second …
            order = [*range(len(rest) - 2, -1, -1), *range(len(rest))[-1:]]
            place = [order.index(k) for k in range(len(rest))]
            names = [
                first + "".join(combo[p] + text for p, text in zip(place, rest, strict=True))
                for combo in product(*(list(self.ranges[k].numbers()) for k in order))
            ]
        if self.slots > 1:
            names = [name for name in names for _ in range(self.slots)]
        return names * self.times


def expand(pieces: Iterable[TextPiece], source: str, most: int = MAX_NAMES) -> list[str]:
    """Return all names in some host list text, in order, keeping duplicates.

    `most`: nodes that there are: a word that makes more different names is refused before it is
    expanded.
    """
    reader = _WordReader(source, most)
    entries = [entry for piece in pieces for entry in reader.read(piece)]
    words = (entry if isinstance(entry, list) else entry.names() for entry in entries)
    return list(chain.from_iterable(words))


def count(pieces: Iterable[TextPiece], source: str) -> int:
    """Return how many names a text holds, duplicates included, without expanding it."""
    reader = _WordReader(source)
    for piece in pieces:
        reader.read(piece)
    return reader.names


class _WordReader:
    """Splits pieces of text into words, and enforces the limits."""

    def __init__(self, source: str, most: int = MAX_NAMES) -> None:
        self.source, self.most = source, most
        self.names = self.characters = 0
        self.several = False  # lines

    def error(self, line: int, text: str, hint: str = "") -> ParseError:
        option = self.source.startswith("--") and not self.source.endswith(" -")
        direct = not self.source or option  # a list on the command line has no lines
        where = 0 if direct and not self.several else line
        return ParseError(self.source or "node list", where, text, hint)

    def spend(self, line: int, word: str, names: int, characters: int) -> None:
        self.names += names
        self.characters += characters
        if self.names > MAX_NAMES:
            hint = f"a list may hold {MAX_NAMES} names"
            raise self.error(line, f"'{word}' makes {_short_number(self.names)} names", hint)
        if self.characters > MAX_CHARACTERS:
            what = f"'{word}' makes {_short_number(self.characters)} characters of names"
            raise self.error(line, what, f"a list may hold {MAX_CHARACTERS}")

    def read(self, piece: TextPiece) -> list[_ListWord] | list[list[str]]:
        """Split one piece; text of plain names only, as in most host files, is read at once."""
        self.several = self.several or piece.line > 1 or "\n" in piece.text.strip()
        before = self.names
        marked = "#" in piece.text or "(" in piece.text
        text = _COMMENT.sub("", piece.text) if marked else piece.text
        text = _SPACED.sub("=", text) if "=" in text else text
        plain = self._plain(text, piece.line)
        entries = self._marked(text, piece.line) if plain is None else [plain]
        if self.names - before < piece.expected:
            what = f"{self.names - before} nodes, but the row says {piece.expected}"
            hint = "the list was cut off: print the column without a width, as in squeue -o %N"
            raise self.error(piece.line, what, hint)
        return entries

    def _plain(self, text: str, line: int) -> list[str] | None:
        """Read text of plain names only; None for any other text."""
        if not _PLAIN.fullmatch(text) or _mixes_numbers(text):
            return None
        words = text.replace(",", " ").split()
        if max(map(len, words), default=0) > MAX_LENGTH:
            return None
        self.spend(line, words[-1] if words else "", len(words), sum(map(len, words)))
        return words

    def _marked(self, text: str, first: int) -> list[_ListWord]:
        """Read text word by word."""
        entries: list[_ListWord] = []
        mixed, end = _mixes_numbers(text), 0
        counted: set[int] = set()  # entries that a bare number follows
        for match, line in with_lines(_WORD.finditer(text), text, first):
            word, gap, end = match.group(), text[end : match.start()], match.end()
            option = _OPTION.fullmatch(word)
            if option:
                self._set_slots(option[1], word, line, entries)
                continue
            listed = ("," in gap or not entries) and _LISTED.match(text, end)
            if mixed and not listed and _NUMBER.fullmatch(word):
                self._refuse_number(word, line, gap, entries)
                self._set_slots(word, word, line, entries)
                counted.add(len(entries) - 1)
                continue
            entry = self._entry(word, line)
            self.spend(line, word, entry.count(), entry.count() * entry.longest())
            entries.append(entry)
        if counted:
            self._refuse_uncounted(entries, counted)
        indices = [entry for entry in entries if entry.word[0] == "#"]
        if self.several and 0 < len(indices) < len(entries):  # maybe a commented-out name
            what = f"'{indices[0].word}' may be an index or a comment"
            hint = "write '# ' with a space for a comment, and indices in a list of their own"
            raise self.error(indices[0].line, what, hint)
        return entries

    def _refuse_number(self, word: str, line: int, gap: str, entries: list[_ListWord]) -> None:
        """Raise for a number among names that is not the preceding name's count."""
        before = entries[-1] if entries and not gap.strip() else None
        if (
            before is None
            or before.line != line
            or before.slots > 1
            or not (_NAMED.match(before.word) and _COUNT.fullmatch(word))
        ):
            what = f"'{word}' is a bare number among names"
            hint = "write a count after its name: node1 4; separate NIDs by commas"
            raise self.error(line, what, hint)

    def _refuse_uncounted(self, entries: list[_ListWord], counted: set[int]) -> None:
        """Raise where some names of a line have a bare count and others none: LSF counts all."""
        lines = {entries[k].line for k in counted}
        for k, entry in enumerate(entries):
            if entry.line in lines and k not in counted and entry.slots == 1:
                what = f"'{entry.word}' has no count, but others on its line do"
                raise self.error(entry.line, what, "give each a count, as in node1 4 node2 2")

    def _set_slots(self, count: str | None, word: str, line: int, entries: list[_ListWord]) -> None:
        """Give the preceding node its slots; skip other host file options, which name no node."""
        if not entries:
            raise self.error(line, f"'{word}' comes before any node")
        if count is not None:
            entry, slots = entries[-1], int(count)
            if slots < 1:
                raise self.error(line, f"'{word}': a node has at least 1 slot")
            more = entry.count() * (slots - 1)
            entry.slots *= slots
            self.spend(line, word, more, more * entry.longest())

    def _entry(self, word: str, line: int) -> _ListWord:
        """Split one word."""
        if ":" in word and _IPV6.fullmatch(word):
            what = f"'{word}' is an IPv6 address, not a node name"
            raise self.error(line, what, "write host names, or IPv4 addresses")
        body, times, slots = self._repeats(word, line)
        pieces = _BRACKET.split(_INDICES.sub(r"#[\1]", body, count=1))
        ranges = [self._ranges(text, word, line) for text in pieces[1::2]]
        entry = _ListWord(word, line, pieces[::2], ranges, times, slots)
        self._refuse_bad_name(entry)
        names = prod(r.total for r in ranges)
        if names > self.most:
            there = f"there are {self.most} nodes"
            hint = there if self.most < MAX_NAMES else f"a list may hold {MAX_NAMES} names"
            raise self.error(line, f"'{word}' makes {_short_number(names)} names", hint)
        return entry

    def _repeats(self, word: str, line: int) -> tuple[str, int, int]:
        """Return the word without ``*3`` or ``:3``, and that number."""
        assigned = _ASSIGNED.match(word)
        body = word[assigned.end() :].strip("\"'") if assigned else word
        if "*" not in body and ":" not in body:
            return body, 1, 1
        match = _REPEAT.fullmatch(body)
        if body.endswith("*"):
            what = f"'{word}': '*' is not a wildcard, it repeats a name (nid00045*3)"
            raise self.error(line, what, "a cabinet, cage or blade stands for its nodes: c0-0c1")
        if match is None or int(match[3]) < 1:
            what = f"'{word}': what follows '*' or ':' is not a count"
            raise self.error(line, what, "write nid00045*3 or node1:4")
        number = int(match[3])
        return (match[1], number, 1) if match[2] == "*" else (match[1], 1, number)

    def _ranges(self, text: str, word: str, line: int) -> _Ranges:
        """Split one bracket."""
        packed = "".join(text.split())
        items = packed.split(",")
        if not _RANGES.fullmatch(packed):
            bad = next((i for i in items if not _RANGES.fullmatch(i)), packed)
            what = f"'{bad}'" if bad else "an empty entry"
            hint = "brackets hold numbers and ranges, as in nid[00045,00050-00053]"
            raise self.error(line, f"{what} in '{word}' is neither a number nor a range", hint)
        width = max(map(len, packed.replace("-", ",").split(",")))
        if width > _DIGITS:
            what = f"a number in '{word}' has {width} digits"
            raise self.error(line, what, f"{_DIGITS} are the most")
        total = len(items)
        for item in items if "-" in packed else ():
            low, dash, high = item.partition("-")
            total += int(high) - int(low) if dash else 0
            if dash and int(low) > int(high):
                hint = "Slurm refuses it too: write the numbers one by one to keep an order"
                raise self.error(line, f"'{item}' in '{word}' runs backwards", hint)
        return _Ranges(items, total, width)

    def _refuse_bad_name(self, entry: _ListWord) -> None:
        """Raise where the text outside brackets cannot be part of a host name."""
        sample, shown = "0".join(entry.literals), f"'{entry.word}'"
        if entry.longest() > MAX_LENGTH:
            what = f"{shown} is {len(entry.word)} characters long"
            raise self.error(entry.line, what, f"a name has at most {MAX_LENGTH}")
        if NAME.fullmatch(sample):
            return
        if "[" in sample or "]" in sample:
            raise self.error(entry.line, f"{shown} has an unmatched bracket")
        bad = next((c for c in sample if not re.match(r"[A-Za-z0-9_.\-]", c)), sample[:1])
        named = f"'{bad}'" if bad.isprintable() else ascii(bad)[1:-1]
        if bad == "/":
            raise self.error(entry.line, f"{shown} is neither an existing file nor a node name")
        what = f"{shown} is not a node name: {named} cannot be in one"
        raise self.error(entry.line, what, "names hold letters, digits, '.', '-' and '_'")


def _mixes_numbers(text: str) -> bool:
    """Tell whether a text has bare numbers among names."""
    return _NUMBER.search(text) is not None and _NAMED.search(text) is not None


def _short_number(number: int) -> str:
    return str(number) if number < 10**15 else "far too many"
