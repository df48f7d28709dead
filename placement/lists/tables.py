"""Node lists in tables: ``squeue``, ``sinfo`` and ``sacct``, with or without a header.

Rows are taken apart from both ends, because the name of a job may hold
blanks: where a row has more words than the header, the last column is still
the last word. What the last column shows in brackets is the reason why a job
waits, and no node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from placement.errors import ParseError, printable
from placement.lists.piece import Piece
from placement.support.regex import compile_pattern, with_lines

__all__ = ["command_of", "table"]

_LISTS = ("NODELIST", "NODELIST(REASON)", "HOSTNAMES")
#: Columns whose text may hold blanks.
_BLANKS = {"NAME", "JOBNAME", "REASON", "COMMENT", "COMMAND", "WORK_DIR"}
_WAITING = {"PD", "PENDING"}
_STATE_WORDS = ("ST", "STATE")
_COUNT = re.compile(r"\d{1,8}", re.ASCII)
_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}")
_WORD = re.compile(r"\S+")
_LINE = re.compile(r"[^\n]+")
_STATES = (
    "allocated|alloc|blocked|boot|completing|comp|down|drained|draining|drain|drng|error|failing"
    "|failg|fail|future|futr|idle|inval|maint|mixed|mix|no_respond|npc|perfctrs|planned|plnd"
    "|power_down|power_up|pow_dn|pow_up|powered_down|powering_down|reboot|reserved|resv|unknown|unk"
)
_STATE = rf"(?:{_STATES})[*~#$@^!%+\-]*"
#: Rows of the default forms without their header: what they are, the list's and the count's group.
_BARE = (
    (
        "squeue",
        compile_pattern(
            r"\s*\d[\d_\[\]\-%,+.]*+\s+\S++\s+\S.*\s(?P<state>[A-Z_]{1,12})"
            r"(?:\s+(?:[\d:\-]+|INVALID|UNLIMITED)){1,2}\s+(\d+)\s+(\S.*?)\s*",
            re.ASCII,
        ),
        (3, 2),
    ),
    ("sinfo", re.compile(rf"\s*(\S+)\s+(\d+)\s+\S+\s+{_STATE}\s*", re.ASCII), (1, 2)),
    (
        "sinfo",
        re.compile(rf"\s*\S+\s+(?:up|down|drain|inact)\s+\S+\s+(\d+)\s+{_STATE}\s+(\S+)\s*"),
        (2, 1),
    ),
    ("sinfo", re.compile(rf"\s*(\S+)\s+{_STATE}\s*"), (1, 0)),
)


def command_of(line: str) -> str:
    """Return the command that prints such a line without a header; '' for none.

    Examples
    --------
    >>> command_of("  7 debug a.sh me R 0:01 2 n[1-2]"), command_of("nid00012")
    ('squeue', '')
    """
    return next((command for command, form, _ in _BARE if form.fullmatch(line)), "")


class _Row(NamedTuple):
    """A line of a table and its number."""

    line: int
    text: str


def table(text: str, source: str) -> tuple[list[Piece], bool] | None:
    """Return the node lists of a table, and whether it repeats nodes without meaning it.

    Parameters
    ----------
    text : str
    source : str

    Returns
    -------
    (list of Piece, bool) or None
        None where the text is not a table of Slurm's.

    Raises
    ------
    ParseError
        At a row that does not fit the table.

    Examples
    --------
    >>> rows = "JOBID NAME ST TIME NODES NODELIST(REASON)\\n7 my job R 0:01 2 n[1-2]\\n"
    >>> table(rows + "8 b PD 0:00 2 (Priority)\\n", "")
    ([Piece(text='n[1-2]', line=2, expected=2)], False)
    """
    rows = _rows(text)
    first = next((row for row in rows if not _DATE.fullmatch(row.text.strip())), None)
    if first is None:
        return None
    words = first.text.split()
    at = next((k for k, word in enumerate(words) if word.upper() in _LISTS), None)
    if at is not None and all(word[0].isalpha() for word in words):
        return _read_headed(_Header(first.text, words, at), rows, source)
    for command, form, groups in _BARE:
        if form.fullmatch(first.text):
            found = [_bare(row, form, groups, source) for row in (first, *rows)]
            return [piece for piece in found if piece], command == "sinfo"
    return None


def _rows(text: str) -> Iterator[_Row]:
    """Yield the lines that are not blank."""
    for match, line in with_lines(_LINE.finditer(text), text):
        if match.group().strip():
            yield _Row(line, match.group().rstrip())


class _Header:
    """A table's header: where its columns stand."""

    def __init__(self, text: str, words: list[str], at: int) -> None:
        self.words = upper = [word.upper() for word in words]
        self.starts = [match.start() for match in _WORD.finditer(text)]
        self.at = at
        self.state_at = next((k for k, word in enumerate(upper) if word in _STATE_WORDS), -1)
        self.nodes = upper.index("NODES") if "NODES" in upper else -1
        named = {"AVAIL", "TIMELIMIT", "HOSTNAMES"} & set(upper)
        states = {"PARTITION", "STATE"} <= set(upper) and "JOBID" not in upper
        self.sinfo = bool(named) or states

    def cell(self, row: str) -> tuple[str, int] | None:
        """Return a row's node list and how many nodes it says; None where it has no list."""
        words = [(match.group(), match.start()) for match in _WORD.finditer(row)]
        if self.at == len(self.words) - 1 and (row.endswith(")") or row.endswith("None assigned")):
            return None
        extra = len(words) - len(self.words)
        if extra < 0 and _WAITING & {word for word, _ in words}:
            return None
        shift = self._shift(extra, self.at)
        if shift is None:
            start = self.starts[self.at]
            found = next((word for word, begin in words if begin == start), None)
            return None if found is None and extra < 0 else (found or "", 0)
        count = words[self.nodes + shift][0] if self.nodes >= 0 else ""
        return words[self.at + shift][0], int(count) if _COUNT.fullmatch(count) else 0

    def state(self, row: str) -> str:
        """Return the state of a row's job; '' where the table has no such column."""
        words = row.split()
        shift = self._shift(len(words) - len(self.words), self.state_at)
        return words[self.state_at + shift] if self.state_at >= 0 and shift is not None else ""

    def _shift(self, extra: int, at: int) -> int | None:
        """Return by how many words column `at` is shifted; None where there is no telling."""
        before = bool(_BLANKS & set(self.words[:at]))
        after = bool(_BLANKS & set(self.words[at + 1 :]))
        if extra == 0 or (extra > 0 and after and not before):
            return 0
        last = at == len(self.words) - 1
        return extra if extra > 0 and (last or (before and not after)) else None


def _read_headed(header: _Header, rows: Iterator[_Row], source: str) -> tuple[list[Piece], bool]:
    """Read the rows under a header."""
    found: list[Piece] = []
    once = header.sinfo
    for row in rows:
        if set(row.text) <= {"-", " "}:
            once = True  # sacct: a job, its batch step and its steps name the same nodes
            continue
        if row.text.split() == header.words:
            continue  # printed again by --iterate
        if header.words[0] == "JOBID" and not row.text.lstrip()[0].isdigit():
            raise _misfit(row, source)
        cell = header.cell(row.text)
        if cell is None:
            continue
        if not re.match(r"[A-Za-z0-9_\[(]", cell[0]):
            raise _misfit(row, source)
        if cell[0][0] != "(":
            expected = 0 if _leaving(row.text) else cell[1]
            found.append(Piece(cell[0], row.line, expected, header.state(row.text)))
    return found, once


def _leaving(row: str) -> bool:
    """Tell a job that is giving its nodes back: its list is shorter than its count."""
    return " CG " in row or " COMPLETI" in row


def _bare(row: _Row, form: re.Pattern[str], groups: tuple[int, int], source: str) -> Piece | None:
    """Read a row without a header, which is of one form with all others; None for no nodes."""
    match = form.fullmatch(row.text)
    if match is None:
        raise _misfit(row, source)
    text, count = match[groups[0]], match[groups[1]] if groups[1] else "0"
    if text[0] == "(":
        return None
    expected = 0 if _leaving(row.text) or len(count) > 8 else int(count)
    return Piece(text, row.line, expected, match.groupdict().get("state", ""))


def _misfit(row: _Row, source: str) -> ParseError:
    what = f"this row does not fit the table above it: '{printable(row.text.strip())}'"
    hint = "paste the node lists alone, as squeue -h -o %N prints them"
    return ParseError(source, row.line, what, hint)
