"""Formats of numbers alone: ``slots`` and ``mpich``, which look alike and are never guessed.

``slots`` has the slot of rank r on line r, the slots being numbered node by node over the list as
given (`rankmap.placement`).

``mpich`` is MPICH_RANK_ORDER, what Cray MPICH reads with MPICH_RANK_REORDER_METHOD=3: entry s is
the rank at slot s, the slots being numbered over the launcher's own node list. Native Slurm sorts
that list whatever was asked for, so a file made for the list as given puts ranks on the wrong
nodes.
"""

from __future__ import annotations

import re

import numpy as np

from placement.errors import ParseError
from placement.nodelist import NodeList
from placement.support.array_types import Ints
from rankmap.emit.text import (
    BrokenOrderError,
    line_of_entry,
    numbered_lines,
    refuse_broken,
    split_entries,
    without_comments,
)
from rankmap.permutation import inverse
from rankmap.placement import Placement

#: Ranks on one line at most: whoever reads lines into a buffer shall not need a large one.
ENTRIES = 64

#: A node list in lines of 76 characters, split behind a comma where one is near.
_COLUMNS = re.compile(r".{1,75}(?:,|$)|.{1,76}")

_PLAIN = re.compile(r"[0-9,\s]*", re.ASCII)
_TOO_LONG = re.compile(r"[0-9]{19}", re.ASCII)
_TOKEN = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", re.ASCII)
_WHOLE = re.compile(r"[-+]?[0-9]+", re.ASCII)


class SlotOfRank:
    """The slot of each rank, one a line."""

    def write(self, order: Placement) -> str:
        """Return one slot a line, in rank order."""
        return "\n".join(map(str, order.slot_of_rank.tolist())) + "\n"

    def read(self, text: str, placement: Placement, source: str) -> Placement:
        """Return the order that a file of slots holds.

        Raises
        ------
        ParseError, BrokenOrderError
            See `rankmap.emit.read_order`.
        """
        for number, line in numbered_lines(text):
            if "," in line or len(line.split(None, 1)) > 1 or "-" in line[1:]:
                hint = "is this --format mpich?"
                raise ParseError(source, number, "more than one slot on a line", hint)
        return placement.with_order(read_permutation(text, placement.ranks, source, what="slot"))


class RankAtSlot:
    """The rank at each slot, below comments that say which nodes the slots are on."""

    def write(self, order: Placement) -> str:
        """Return the ranks in slot order, each node on a new line, below comments."""
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
        """Return the order that a file of ranks holds; ranges such as ``0-15`` are read.

        Raises
        ------
        ParseError, BrokenOrderError
            See `rankmap.emit.read_order`.
        """
        return placement.with_order(inverse(read_permutation(text, placement.ranks, source)))


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
    values = parse_numbers(text, n, source, what)
    refuse_broken(values, n, lambda at: line_of_number(text, at), source, what)
    return values


def parse_numbers(text: str, n: int, source: str, what: str) -> Ints:
    """Return the numbers of a text, ranges expanded.

    Raises
    ------
    ParseError, BrokenOrderError
        See `read_permutation`.
    """
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
    """Return the line on which the number at `index` stands; the last where there is none.

    Examples
    --------
    >>> line_of_number("# c\\n5,1-3\\n4\\n", 4)
    3
    """

    def count_numbers(line: str) -> int:
        matches = map(_TOKEN.fullmatch, split_entries(line))
        return sum(int(m[2]) - int(m[1]) + 1 if m and m[2] else 1 for m in matches)

    return line_of_entry(text, index, count_numbers)


def _parse_run(token: str, n: int, source: str, line: int, what: str) -> range:
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
    return range(low, high + 1)
