"""Numbers in order files: read in bulk, and found again by line when one is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from placement.errors import ParseError
from placement.support.array_types import Ints
from rankmap.permutation import why_broken

#: What may be wrong with a file of too few ranks.
CUT_SHORT = "the file is cut short, or for another number of ranks"

_COMMENT = re.compile(r"#[^\n]*")
_PLAIN = re.compile(r"[0-9,\s]*", re.ASCII)
_TOO_LONG = re.compile(r"[0-9]{19}", re.ASCII)
_TOKEN = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", re.ASCII)
_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)


class BrokenOrderError(ParseError):
    """An order file that can be read, but is not a permutation of the job's slots.

    A command whose very question is whether an order is valid answers no
    (exit code 1); to every other one it is bad input (3).
    """


def without_comments(text: str) -> str:
    """Return the text with everything from ``#`` to the end of a line removed."""
    return _COMMENT.sub("", text) if "#" in text else text


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold more than a comment, stripped, each behind its number."""
    for number, line in enumerate(without_comments(text).split("\n"), start=1):
        if line.strip():
            yield number, line.strip()


def refuse_broken(
    values: Ints, n: int, line_of: Callable[[int], int], source: str, what: str = "rank"
) -> None:
    """Refuse a file's numbers where they are not a permutation of 0 … n-1.

    Parameters
    ----------
    values : int64
    n : int
    line_of : callable
        Line on which the number at an index stands; the last for one behind them.
    source : str
    what : str
        ``rank`` where a list of slots says the rank on each, ``slot`` the other way round.

    Raises
    ------
    BrokenOrderError
    """
    fault = why_broken(values, n)
    if fault is None:
        return
    value, hint = fault.value, ""
    if fault.kind == "outside":
        sentence = f"rank {value} is" if what == "rank" else f"rank {fault.at} has slot {value},"
        sentence += f" not one of 0 to {n - 1}"
    elif fault.kind == "missing":
        more = f" and {fault.count - 1} more" if fault.count > 1 else ""
        lacks = "missing" if what == "rank" else "is left empty"
        sentence = f"{len(values)} ranks for {n} slots: {what} {value}{more} {lacks}"
        hint = CUT_SHORT
    elif what == "rank":
        sentence = f"rank {value} stands twice, first on line {line_of(fault.first)}"
    else:
        sentence = f"ranks {fault.first} and {fault.at} both have slot {value}"
    raise BrokenOrderError(source, line_of(fault.at), sentence, hint)


def read_permutation(text: str, n: int, source: str, what: str = "rank") -> Ints:
    """Return the numbers of a comma- or space-separated text, a permutation of 0 … n-1.

    Ranges such as ``0-15`` are expanded.

    Parameters
    ----------
    text : str
    n : int
        How many are expected, each below it; bounds what a range may cost.
    source : str
        File name for messages.
    what : str
        What a number is called in messages.

    Raises
    ------
    ParseError
        Something that is no number.
    BrokenOrderError
        Numbers that are no permutation.

    Examples
    --------
    >>> read_permutation("# a comment\\n3,0\\n1-2\\n", 4, "-").tolist()
    [3, 0, 1, 2]
    """
    values = _parse_numbers(text, n, source, what)
    refuse_broken(values, n, lambda at: _line_of(text, at), source, what)
    return values


def _parse_numbers(text: str, n: int, source: str, what: str) -> Ints:
    bare = without_comments(text)
    if _PLAIN.fullmatch(bare) and not _TOO_LONG.search(bare):
        return np.array(list(map(int, bare.replace(",", " ").split())), dtype=np.int64)
    parts = [np.empty(0, dtype=np.int64)]
    total = 0
    for line, token in _split_tokens(bare):
        low, high = _parse_run(token, n, source, line, what)
        total += high - low + 1
        if total > n:
            raise BrokenOrderError(source, line, f"more than {n} {what}s, the number of slots")
        parts.append(np.arange(low, high + 1, dtype=np.int64))
    return np.concatenate(parts)


def _line_of(text: str, index: int) -> int:
    """Return the line on which the number at `index` stands; the last where there is none.

    Examples
    --------
    >>> _line_of("# c\\n5,1-3\\n4\\n", 4)
    3
    """
    seen = 0
    for line, token in _split_tokens(without_comments(text)):
        match = _TOKEN.fullmatch(token)
        seen += int(match[2]) - int(match[1]) + 1 if match and match[2] else 1
        if seen > index:
            return line
    return max(1, text.count("\n") + (not text.endswith("\n")))


def _split_tokens(bare: str) -> Iterator[tuple[int, str]]:
    """Yield (line, token) of a text without comments."""
    for number, line in enumerate(bare.split("\n"), start=1):
        for token in line.replace(",", " ").split():
            yield number, token


def _parse_run(token: str, n: int, source: str, line: int, what: str) -> tuple[int, int]:
    match = _TOKEN.fullmatch(token)
    if _WHOLE.fullmatch(token) and (not match or int(match[1]) >= n):
        raise BrokenOrderError(source, line, f"{what} {token} is not one of 0 to {n - 1}")
    if not match:
        raise ParseError(source, line, f"'{token}' is not a {what}")
    low, high = int(match[1]), int(match[2] or match[1])
    if high < low:
        raise ParseError(source, line, f"range {token} runs backwards")
    if high >= n:
        raise BrokenOrderError(source, line, f"{what} {high} is not one of 0 to {n - 1}")
    return low, high
