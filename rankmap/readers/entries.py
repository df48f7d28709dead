# SPDX-License-Identifier: Apache-2.0
"""A reader's result, the checks that all formats share, and bulk parsing of numbers."""

from __future__ import annotations

import re
import warnings
from typing import NamedTuple

import numpy as np

from nidmap.placement.errors import ParseError, printable
from nidmap.placement.placement import MOST_RANKS
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.traffic import Traffic

#: A file larger than this is refused: no graph of a job's ranks needs it.
MOST_BYTES = 1 << 31

#: Bytes of text that are processed at a time.
SIZE = 1 << 23

_COMMENT = re.compile(rb"(?m)^[ \t]*[%#][^\n]*")
_COMMAS = bytes.maketrans(b",;|\t\r", b"     ")
_ODD = re.compile(rb"[^0-9eE+\-. \n]")


class Entries(NamedTuple):
    """The contents of a file: amounts from one rank to another."""

    ranks: int  # how many ranks there are, at least
    sent: Traffic  # several flows of one pair add up
    stated: bool = True  # True where the file states the number of ranks
    notes: tuple[str, ...] = ()  # remarks on how it was read


def check_entries(entries: Entries, source: str, lines: Ints | None = None) -> Entries:
    """Return the entries if they are valid, or raise.

    `lines` (m,): line of the file that each entry was on.
    """
    a, b, weight, _ = entries.sent.columns

    def refuse(bad: Mask, text: str) -> None:
        if bad.any():
            at = int(np.argmax(bad))
            line = 0 if lines is None else int(lines[at])
            raise ParseError(
                source, line, text.format(pair=f"{a[at]} to {b[at]}", weight=weight[at])
            )

    if entries.ranks > MOST_RANKS:
        raise ParseError(source, 0, f"{entries.ranks} ranks, at most {MOST_RANKS} are supported")
    low = (a < 0) | (b < 0)
    high = (a >= entries.ranks) | (b >= entries.ranks)
    refuse(low | high, f"the entry from {{pair}}: ranks are 0 to {entries.ranks - 1}")
    refuse(~np.isfinite(weight), "the weight of {pair} is {weight}, not a number")
    refuse(weight < 0, "the weight of {pair} is {weight:g}, less than 0")
    return entries


def no_edges(source: str) -> ParseError:
    """Return the error for a file that holds no edge between two ranks."""
    return ParseError(source, 0, "no edge between two ranks", "is it the right file?")


class Numbers(NamedTuple):
    """The numbers of a text."""

    values: Floats  # (t,)
    line: Ints  # (t,), line of each, from 1
    lines: Ints  # all lines that are not comments


def gather_numbers(raw: bytes, source: str, skip: int = 0) -> Numbers:
    """Return all numbers in a text; ``%`` and ``#`` begin comments.

    `raw`: numbers split by blanks, commas, semicolons or bars. `skip`: lines at the beginning
    that are not looked at.
    """
    low = 0
    for _ in range(skip):
        low = raw.find(b"\n", low) + 1 or len(raw)
    none = np.empty(0, dtype=np.int64)
    parts, first = [Numbers(np.empty(0), none, none)], skip + 1
    while low < len(raw):
        high = raw.find(b"\n", min(low + SIZE, len(raw))) + 1 or len(raw)
        parts.append(_parse_numbers(raw[low:high], first, source))
        first += raw.count(b"\n", low, high)
        low = high
    return Numbers(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _parse_numbers(raw: bytes, first: int, source: str) -> Numbers:
    """Return the numbers in some whole lines, the first being line `first`."""
    bare = _COMMENT.sub(b"#", raw) if b"%" in raw or b"#" in raw else raw
    text = np.frombuffer(bare, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    comments = np.searchsorted(ends, np.flatnonzero(text == ord("#")))
    lines = np.delete(np.arange(len(ends) + (not bare.endswith(b"\n"))), comments)
    bare = bare.replace(b"#", b" ").translate(_COMMAS)
    text = np.frombuffer(bare, dtype=np.uint8)
    space = (text == ord(" ")) | (text == ord("\n"))
    starts = np.flatnonzero(~space & np.append(True, space[:-1]))
    values = np.empty(0)
    if not _ODD.search(bare) and len(starts):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                values = np.fromstring(bare, dtype=np.float64, count=len(starts), sep=" ")
            except ValueError:
                pass  # the word at fault is looked for below
    if len(values) != len(starts):
        raise _first_fault(bare, first, source)
    return Numbers(values, first + np.searchsorted(ends, starts), first + lines)


def _first_fault(bare: bytes, first: int, source: str) -> ParseError:
    """Return the error for the first word that is not a number."""
    for number, line in enumerate(bare.split(b"\n"), start=first):
        for word in line.split():
            try:
                bad = not np.isfinite(float(word)) or _ODD.search(word) is not None
            except ValueError:
                bad = True
            if bad and not (word.isascii() and word.decode().isprintable()):
                hint = "matrix: and graph: read text, .npz and .npy"
                return ParseError(source, number, "neither numbers nor a known format", hint)
            if bad:
                shown = printable(word[:30].decode("utf-8", "replace"), 30)
                return ParseError(source, number, f"'{shown}' is not a number")
    return ParseError(source, first, "numbers expected")


def whole(values: Floats, line: Ints, source: str, what: str) -> Ints:
    """Return numbers that must be integers."""
    fine = np.isfinite(values) & (np.abs(values) < 2.0**53)
    fine[fine] = values[fine] % 1 == 0
    if not fine.all():
        at = int(np.argmin(fine))
        text = f"{values[at]:g} is not a {what}: a whole number is needed"
        raise ParseError(source, int(line[at]), text)
    return values.astype(np.int64)
