"""Lists of messages: source, destination and bytes, one message a line.

Split by blanks, commas, semicolons or tabs; ``#`` begins a comment, and a first
line of words is left out. Unlike a matrix's entries, two lines of the same two
ranks are two messages. ``# ranks=64`` in a comment states the number of ranks.
"""

from __future__ import annotations

import numpy as np

from placement.errors import ParseError
from rankmap.readers.csv import header_lines, stated_ranks
from rankmap.readers.entries import Entries, check_entries
from rankmap.readers.text import gather, whole

__all__ = ["read"]


def read(raw: bytes, source: str) -> Entries:
    """Return the messages of a list, each as an entry of its own.

    Raises
    ------
    ParseError
        With the line that has not three numbers, or none that make a message.

    Examples
    --------
    >>> found = read(b"src,dst,bytes\\n0,1,100\\n0,1,50\\n", "-")
    >>> found.ranks, found.weight.tolist()
    (2, [100.0, 50.0])
    >>> read(b"0 1 8\\n1 2\\n", "sent.txt")
    Traceback (most recent call last):
        ...
    placement.errors.ParseError: sent.txt:2: 2 numbers, not 3: source, destination and bytes
    """
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    values, line, _ = gather(raw, source, skip=header_lines(raw))
    if not len(values):
        raise ParseError(source, 0, "no messages", "write source, destination and bytes a line")
    at, counts = np.unique(line, return_counts=True)
    odd = np.flatnonzero(counts != 3)
    if len(odd):
        said = f"{counts[odd[0]]} numbers, not 3: source, destination and bytes"
        raise ParseError(source, int(at[odd[0]]), said)
    rows = values.reshape(-1, 3)
    ends = whole(rows[:, :2].ravel(), np.repeat(at, 2), source, "rank").reshape(-1, 2)
    ranks = stated_ranks(raw)
    n = int(ends.max()) + 1 if ranks is None else ranks
    found = Entries(n, ends[:, 0], ends[:, 1], rows[:, 2], stated=ranks is not None)
    return check_entries(found, source, at)
