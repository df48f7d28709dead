# SPDX-License-Identifier: Apache-2.0
"""The text of order files, and formats of plain numbers: ``slots`` and ``mpich``.

The two look alike and are never guessed.

``slots`` has the slot of rank r on line r, the slots being numbered node by node over the list as
given (`nidmap.placement.placement`).

``mpich`` is MPICH_RANK_ORDER, what Cray MPICH reads with MPICH_RANK_REORDER_METHOD=3: entry s is
the rank at slot s, the slots being numbered over the launcher's own node list. Native Slurm sorts
that list whatever was asked for, so a file made for the list as given puts ranks on the wrong
nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np

from nidmap.placement.errors import ParseError
from nidmap.placement.nodelist import NodeList
from nidmap.placement.permutation import inverse, why_broken
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints

#: Hint for a file with too few ranks.
CUT_SHORT = "the file is cut short, or for another number of ranks"

_COMMENT = re.compile(r"#[^\n]*")

#: Maximum number of ranks on one line, so that readers with line buffers need no large ones.
ENTRIES = 64

#: A node list in lines of 76 characters, split after a comma where one is near.
_COLUMNS = re.compile(r".{1,75}(?:,|$)|.{1,76}")

_PLAIN = re.compile(r"[0-9,\s]*", re.ASCII)
_TOO_LONG = re.compile(r"[0-9]{19}", re.ASCII)
_TOKEN = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", re.ASCII)
_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)


class BrokenOrderError(ParseError):
    """An order file that is readable but not a permutation of the job's slots.

    A command whose very question is whether an order is valid answers no
    (exit code 1); to every other one it is bad input (3).
    """


def without_comments(text: str) -> str:
    """Return the text with everything from ``#`` to the end of a line removed."""
    return _COMMENT.sub("", text) if "#" in text else text


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are more than a comment, stripped, with their numbers."""
    for number, line in enumerate(without_comments(text).split("\n"), start=1):
        if line.strip():
            yield number, line.strip()


def split_entries(text: str) -> list[str]:
    """Split a text at commas and white space."""
    return text.replace(",", " ").split()


def line_of_entry(text: str, index: int, count_entries: Callable[[str], int]) -> int:
    """Return the line of an entry; the last line if there is none.

    `index`: of the entry, from 0. `count_entries`: how many entries a line without its comment
    holds.
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
    """Raise if a file's numbers are not a permutation of 0 … n-1.

    `line_of`: line on which the number at an index is; the last for one after them. `what`:
    ``rank`` where a list of slots says the rank on each, ``slot`` the other way round.
    """
    fault = why_broken(values, n)
    if fault is None:
        return
    value, hint = fault.value, ""
    if fault.kind == "outside":
        sentence = f"rank {value} is" if what == "rank" else f"rank {fault.at} has slot {value},"
        sentence += f" outside 0 to {n - 1}"
    elif fault.kind == "missing":
        more = f" and {fault.count - 1} more" if fault.count > 1 else ""
        lacks = "missing" if what == "rank" else "is left empty"
        sentence = f"{len(values)} ranks for {n} slots: {what} {value}{more} {lacks}"
        hint = CUT_SHORT
    elif what == "rank":
        sentence = f"rank {value} is listed twice, first on line {line_of(fault.first)}"
    else:
        sentence = f"ranks {fault.first} and {fault.at} both have slot {value}"
    raise BrokenOrderError(source, line_of(fault.at), sentence, hint)


class SlotOfRank:
    """The slot of each rank, one per line."""

    def write(self, order: Placement) -> str:
        """Return one slot per line, in rank order."""
        return "\n".join(map(str, order.slot_of_rank.tolist())) + "\n"

    def read(self, text: str, placement: Placement, source: str) -> Placement:
        """Return the order in a file of slots."""
        for number, line in numbered_lines(text):
            if "," in line or len(line.split(None, 1)) > 1 or "-" in line[1:]:
                hint = "is this --format mpich?"
                raise ParseError(source, number, "more than one slot on a line", hint)
        return placement.with_order(read_permutation(text, placement.ranks, source, what="slot"))


class RankAtSlot:
    """The rank at each slot, preceded by comments that name the slots' nodes."""

    def write(self, order: Placement) -> str:
        """Return the ranks in slot order, one line per node, after comments."""
        ranks = [*map(str, order.rank_at_slot.tolist())]
        ends = np.cumsum(order.counts).tolist()
        rows = [
            ",".join(ranks[begin : min(begin + ENTRIES, end)])
            for first, end in zip(order.first_slot.tolist(), ends, strict=True)
            for begin in range(first, end, ENTRIES)
        ]
        pattern = f" for {order.origin.pattern}" if order.origin.pattern else ""
        comments = [
            f"nidmap order: {order.origin.strategy or 'given'}{pattern}",
            f"{order.words()}, each on a new line, nodes in this order:",
            *_COLUMNS.findall(NodeList(order.names.tolist()).fold()),
            "read with MPICH_RANK_REORDER_METHOD=3",
        ]
        return "\n".join([*(f"# {line}" for line in comments), *rows, ""])

    def read(self, text: str, placement: Placement, source: str) -> Placement:
        """Return the order in a file of ranks, which may contain ranges such as ``0-15``."""
        return placement.with_order(inverse(read_permutation(text, placement.ranks, source)))


def read_permutation(text: str, n: int, source: str, what: str = "rank") -> Ints:
    """Return a comma- or space-separated permutation of 0 … n-1.

    Ranges such as ``0-15`` are expanded.

    `n`: how many are expected, each below it; bounds what a range may cost. `what`: what a number
    is called in messages.
    """
    values = parse_numbers(text, n, source, what)
    refuse_broken(values, n, lambda at: line_of_number(text, at), source, what)
    return values


def parse_numbers(text: str, n: int, source: str, what: str) -> Ints:
    """Return the numbers in a text, with ranges expanded."""
    bare = without_comments(text)
    if _PLAIN.fullmatch(bare) and not _TOO_LONG.search(bare):
        return np.array(list(map(int, split_entries(bare))), dtype=np.int64)
    values: list[int] = []
    for number, line in numbered_lines(text):
        for token in split_entries(line):
            values += _parse_run(token, n, source, number, what)
            if len(values) > n:
                fault = f"more than {n} {what}s, the number of slots"
                raise BrokenOrderError(source, number, fault)
    return np.array(values, dtype=np.int64)


def line_of_number(text: str, index: int) -> int:
    """Return the line of the number at `index`; the last line if there is none."""

    def count_numbers(line: str) -> int:
        matches = map(_TOKEN.fullmatch, split_entries(line))
        return sum(int(m[2]) - int(m[1]) + 1 if m and m[2] else 1 for m in matches)

    return line_of_entry(text, index, count_numbers)


def _parse_run(token: str, n: int, source: str, line: int, what: str) -> range:
    match = _TOKEN.fullmatch(token)
    if _WHOLE.fullmatch(token) and (not match or int(match[1]) >= n):
        raise BrokenOrderError(source, line, f"{what} {token} is outside 0 to {n - 1}")
    if not match:
        raise ParseError(source, line, f"'{token}' is not a {what}")
    low, high = int(match[1]), int(match[2] or match[1])
    if high < low:
        raise ParseError(source, line, f"range {token} runs backwards")
    if high >= n:
        raise BrokenOrderError(source, line, f"{what} {high} is outside 0 to {n - 1}")
    return range(low, high + 1)
