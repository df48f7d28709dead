"""What a reader returns: bytes from rank to rank, and the checks that all formats share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.errors import ParseError
from placement.support.reading import read_at_most
from rankmap.slots import MOST_SLOTS

if TYPE_CHECKING:
    from rankmap.arrays import Flags, Floats, Ints

__all__ = ["Entries", "check_entries", "empty", "file_bytes"]

#: A file larger than this is refused: no graph of a job's ranks needs it.
MOST_BYTES = 1 << 31


class Entries(NamedTuple):
    """What a file says: so much from one rank to another.

    Attributes
    ----------
    ranks : int
        How many ranks there are, at least.
    a, b : int64 (m,)
        From and to.
    weight : float64 (m,)
        Bytes, or an edge's weight; several entries of one pair add up.
    undirected : bool
        True where each entry stands for both directions.
    stated : bool
        True where the file states the number of ranks.
    notes : tuple of str
        What a user should know of how it was read.
    """

    ranks: int
    a: Ints
    b: Ints
    weight: Floats
    undirected: bool = False
    stated: bool = True
    notes: tuple[str, ...] = ()


def check_entries(entries: Entries, source: str, lines: Ints | None = None) -> Entries:
    """Return entries that make sense, or raise.

    Parameters
    ----------
    entries : Entries
    source : str
    lines : int64 (m,) or None
        Line of the file that each entry stood on.

    Raises
    ------
    ParseError
        A rank that is none, a weight that is negative or no number, more
        ranks than any machine has.
    """

    def refuse(bad: Flags, text: str) -> None:
        if bad.any():
            at = int(np.argmax(bad))
            pair = f"{entries.a[at]} to {entries.b[at]}"
            line = 0 if lines is None else int(lines[at])
            raise ParseError(source, line, text.format(pair=pair, weight=entries.weight[at]))

    if entries.ranks > MOST_SLOTS:
        raise ParseError(source, 0, f"{entries.ranks} ranks, at most {MOST_SLOTS} are supported")
    low = (entries.a < 0) | (entries.b < 0)
    high = (entries.a >= entries.ranks) | (entries.b >= entries.ranks)
    refuse(low | high, f"the entry from {{pair}}: ranks are 0 to {entries.ranks - 1}")
    refuse(~np.isfinite(entries.weight), "the weight of {pair} is {weight}, no number")
    refuse(entries.weight < 0, "the weight of {pair} is {weight:g}, less than 0")
    return entries


def empty(source: str) -> ParseError:
    """Return the error for a file that holds no edge between two ranks."""
    return ParseError(source, 0, "no edge between two ranks", "is it the right file?")


def file_bytes(path: str) -> bytes:
    """Return a file's content.

    Raises
    ------
    ParseError
        Missing, unreadable or too large.
    """
    try:
        with open(path, "rb") as stream:
            raw = read_at_most(stream, MOST_BYTES)
    except (OSError, ValueError) as error:  # a ValueError: no file may be called so
        raise ParseError(path, 0, getattr(error, "strerror", None) or str(error)) from None
    if len(raw) > MOST_BYTES:
        raise ParseError(path, 0, f"more than {MOST_BYTES >> 20} MB")
    return raw
