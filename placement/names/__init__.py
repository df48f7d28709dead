# SPDX-License-Identifier: Apache-2.0
"""Node names: a Cray's cnames, HPE's xnames, NIDs; one at a time or in bulk.

A cname says where a node sits in the machine room, a NID is its number; how one follows from
the other on a Cray is in `nidmap.placement.names.numbering`. For one component there are
`parse_cname` and `parse_xname`, which raise `ParseError`. For many nodes at once names are numpy
string arrays and places are ``int32 (n, 5)`` with the columns col, row, cage, slot, node; a row
of -1 marks what is impossible.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nidmap.placement.errors import ParseError
from nidmap.placement.support.array_types import Ints, Ints32, Strs

#: Maximum numbers of cages, slots, nodes and Geminis, per unit, and their names.
LIMITS = {
    "cage": (3, "a cabinet", "cages"),
    "slot": (16, "a cage", "slots"),
    "node": (4, "a blade", "nodes"),
    "gemini": (2, "a blade", "gemini"),
}

#: A node's cname; one with more digits is not valid.
_NODE = re.compile(
    r"c(0|[1-9]\d{0,3})-(0|[1-9]\d{0,3})c([0-2])s(\d|1[0-5])n([0-3])", re.ASCII | re.IGNORECASE
)

#: Digits that an int64 surely holds; those before them belong to the prefix.
_DIGITS = 18


def write_names(table: NDArray[np.integer], before: Sequence[str], width: int = 1) -> Strs:
    """Format rows of numbers as names.

    `table` (n, k). `before`: what is before each number, and after the last. `width`: digits
    of each number at least, zeros in front. Returns (n,): '' where a row holds a negative number.
    """
    number = f"%0{max(width, 1)}d"
    count = table.shape[1]
    texts = [text.replace("%", "%%") for text in before]
    form = "".join(text + number for text in texts[:count]) + "".join(texts[count:])
    names = np.array([form % tuple(row) for row in np.asarray(table).tolist()], dtype=np.str_)
    names[(np.asarray(table) < 0).any(axis=1)] = ""
    return names


def parse_cnames(names: ArrayLike) -> Ints32:
    """Parse node cnames.

    `names` (n,): upper or lower case. Returns (n, 5): columns col, row, cage, slot, node; a row
    of -1 where the text is not the cname of a node or names a cage, slot or node that no Cray has
    (`parse_cname` says which).
    """
    matches = map(_NODE.fullmatch, np.asarray(names, dtype=np.str_).tolist())
    places = ["-1 -1 -1 -1 -1" if match is None else " ".join(match.groups()) for match in matches]
    return np.fromstring(" ".join(places), np.int32, sep=" ").reshape(-1, 5)


def format_cnames(parts: ArrayLike) -> Strs:
    """Format node cnames.

    `parts` (n, 5): columns col, row, cage, slot, node. Returns (n,): '' where a row holds a
    negative number.
    """
    return write_names(np.asarray(parts).reshape(-1, 5), ("c", "-", "c", "s", "n"))


def nid_names(numbers: ArrayLike, width: int = 5, prefix: str = "nid") -> Strs:
    """Format numbers as node names.

    `numbers` (n,). `width`: digits at least, zeros in front; larger numbers take more. Returns
    (n,): '' where the number is negative.
    """
    return write_names(np.asarray(numbers, dtype=np.int64)[:, None], (prefix,), width)


def name_numbers(names: ArrayLike) -> tuple[Strs, Ints, Ints32]:
    """Separate names from the numbers that they end in.

    `names` (n,). Returns `prefixes` (n,): what is before the number. Returns `numbers` (n,):
    -1 where a name does not end in a digit. Returns `widths` (n,): digits of the number, leading
    zeros counted, at most 18 (digits further left belong to the prefix); 0 where there is no
    number.
    """
    parts = [split_number(name) for name in np.asarray(names, dtype=np.str_).tolist()]
    numbers = np.array([int(digits or -1) for _, digits in parts], dtype=np.int64)
    widths = np.array([len(digits) for _, digits in parts], dtype=np.int32)
    return np.array([prefix for prefix, _ in parts], dtype=np.str_), numbers, widths


def split_number(name: str) -> tuple[str, str]:
    """Return a name without its trailing digits, and these digits."""
    begin = max(len(name.rstrip("0123456789")), len(name) - _DIGITS)
    return name[:begin], name[begin:]


# --- one component by its name ---------------------------------------------------------

_CNAME = re.compile(
    r"c(?P<col>\d{1,4})-(?P<row>\d{1,4})"
    r"(?:c(?P<cage>\d{1,4})"
    r"(?:s(?P<slot>\d{1,4})"
    r"(?:n(?P<node>\d{1,4})(?:a\d)?|g(?P<gemini>\d))?)?)?",  # n1a0: an accelerator
    re.ASCII | re.IGNORECASE,
)


_XNAME = re.compile(
    r"x(?P<cabinet>\d{1,5})"
    r"(?:c(?P<chassis>\d{1,3})"
    r"(?:s(?P<slot>\d{1,3})(?:b(?P<board>\d{1,3})(?:n(?P<node>\d{1,3})(?:h(?P<nic>\d{1,3}))?)?)?"
    r"|r(?P<switch>\d{1,3})(?P<below>b\d{1,3}|a\d{1,3}(?:l\d{1,3})?|j\d{1,3}(?:p\d{1,3})?)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_XNAME_LIMITS = {"cabinet": 9999, "chassis": 7, "nic": 3}


def parse_cname(text: str) -> tuple[int, ...]:
    """Return column, row, cage, slot, node and Gemini of a cname; -1 for omitted parts.

    `text`: of a cabinet (its position in the row, and the row), of a cage, of a blade, of a node,
    or of one of the two Geminis of a blade; in upper or lower case.
    """
    match = _CNAME.fullmatch(text)
    if match is None:
        raise ParseError(text or "''", 0, "not a cname", "cnames look like c11-2c0s15n3 or c0-0c1")
    for part, digits in match.groupdict().items():
        if digits and len(digits) > 1 and digits[0] == "0":
            raise ParseError(text, 0, f"'{digits}' has a leading zero; cnames have none")
        limit, whole, named = LIMITS.get(part, (10_000, "", ""))
        if int(digits or 0) >= limit:
            hint = f"{whole} has {named} 0 to {limit - 1}"
            raise ParseError(text, 0, f"{part} {digits} is impossible", hint)
    return tuple(int(digits or -1) for digits in match.groups())


class Xname(NamedTuple):
    """A component of a Cray EX."""

    name: str  # in lower case, without leading zeros
    parts: tuple[int, ...]  # cabinet, chassis, slot, board and node, -1 for omitted parts
    is_node: bool  # True for the name of one whole node


def parse_xname(text: str) -> Xname:
    """Parse an xname, upper or lower case, with or without leading zeros."""
    match = _XNAME.fullmatch(text)
    if match is None:
        raise ParseError(text or "''", 0, "not an xname", "a node's looks like x1000c0s3b1n0")
    for part, most in _XNAME_LIMITS.items():
        if int(match[part] or 0) > most:
            raise ParseError(
                text, 0, f"{part} {match[part]} is impossible", f"it must be 0 to {most}"
            )
    parts = tuple(
        int(match[part] or -1) for part in ("cabinet", "chassis", "slot", "board", "node")
    )
    return Xname(plain_xname(text), parts, parts[-1] >= 0 and match["nic"] is None)


def plain_xname(text: str) -> str:
    """Return an xname in lower case without leading zeros."""
    return re.sub(r"(?<![0-9])0+(?=[0-9])", "", text.lower())
