"""The text of order files: lines and entries, and what is said of those that are wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from placement.errors import ParseError
from placement.support.array_types import Ints
from rankmap.permutation import why_broken

#: What may be wrong with a file of too few ranks.
CUT_SHORT = "the file is cut short, or for another number of ranks"

_COMMENT = re.compile(r"#[^\n]*")


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


def split_entries(text: str) -> list[str]:
    """Return what commas and white space separate."""
    return text.replace(",", " ").split()


def line_of_entry(text: str, index: int, count_entries: Callable[[str], int]) -> int:
    """Return the line on which an entry stands; the last where there is none.

    Parameters
    ----------
    text : str
    index : int
        Of the entry, from 0.
    count_entries : callable
        How many entries a line without its comment holds.
    """
    number, before = 1, 0
    for number, line in numbered_lines(text):
        before += count_entries(line)
        if before > index:
            return number
    return max(number, text.count("\n") + (not text.endswith("\n")))


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
