"""MatrixMarket files: ``%%MatrixMarket matrix coordinate|array real general|symmetric``."""

from __future__ import annotations

import numpy as np

from placement.errors import ParseError, printable
from placement.support.array_types import Floats, Ints
from rankmap.readers.entries import Entries, check_entries, gather, whole
from rankmap.slots import MOST_SLOTS

#: From, to, weight and line of every entry.
Columns = tuple[Ints, Ints, Floats, Ints]

__all__ = ["read"]


def read(raw: bytes, source: str) -> Entries:
    """Return the entries of a MatrixMarket file.

    Raises
    ------
    ParseError
        A banner that is none, complex or skew-symmetric values, a matrix
        that is not square, another number of entries than stated.

    Examples
    --------
    >>> text = b"%%MatrixMarket matrix coordinate integer symmetric\\n2 2 1\\n2 1 5\\n"
    >>> read(text, "-").weight.tolist()
    [5.0, 5.0]
    """
    form, field, symmetric = _banner(raw, source)
    values, line, _ = gather(raw, source, skip=1)
    if not len(values):
        raise ParseError(source, 1, "no size line")
    head = values[line == line[0]]
    wanted = 3 if form == "coordinate" else 2
    sizes = whole(head, line[: len(head)], source, "size")
    if len(head) != wanted or (sizes < 0).any():
        raise ParseError(source, int(line[0]), f"{wanted} whole numbers expected")
    n, columns = int(sizes[0]), int(sizes[1])
    if n != columns:
        raise ParseError(source, int(line[0]), f"{n} rows, {columns} columns: not square")
    if n > MOST_SLOTS:
        raise ParseError(source, int(line[0]), f"{n} ranks, at most {MOST_SLOTS}")
    body, at = values[wanted:], line[wanted:]
    if form == "coordinate":
        width = 2 if field == "pattern" else 3
        _refuse_short(len(body), int(sizes[2]) * width, line, source)
        a, b, weight, at = _coordinates(body.reshape(-1, width), at.reshape(-1, width), source)
    else:
        _refuse_short(len(body), n * (n + 1) // 2 if symmetric else n * n, line, source)
        a, b, weight, at = _array(body, at, n, symmetric)
    check_entries(Entries(n, a, b, weight), source, at)
    if symmetric:
        off = a != b
        a, b = np.append(a, b[off]), np.append(b, a[off])
        weight = np.append(weight, weight[off])
    return Entries(n, a, b, weight)


def _banner(raw: bytes, source: str) -> tuple[str, str, bool]:
    words = raw.split(b"\n", 1)[0].decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[1] != "matrix" or words[2] not in ("coordinate", "array"):
        raise ParseError(source, 1, "the banner is not '%%MatrixMarket matrix coordinate real …'")
    if words[3] not in ("real", "integer", "pattern", "double"):
        raise ParseError(source, 1, f"values are '{printable(words[3], 20)}', not real numbers")
    if words[4] not in ("general", "symmetric"):
        raise ParseError(source, 1, f"'{printable(words[4], 20)}' matrices hold no bytes")
    return words[2], words[3], words[4] == "symmetric"


def _refuse_short(have: int, stated: int, line: Ints, source: str) -> None:
    if have != stated:
        said = f"{have} numbers, {stated} are stated"
        raise ParseError(source, int(line[-1]), said, "is the file cut short?")


def _coordinates(rows: Floats, line: Ints, source: str) -> Columns:
    at, width = line[:, 0], rows.shape[1]
    uneven = np.flatnonzero((line != at[:, None]).any(axis=1))
    if len(uneven):
        text = f"an entry is {width} numbers on a line of its own"
        raise ParseError(source, int(at[uneven[0]]), text)
    places = whole(rows[:, :2].ravel(), np.repeat(at, 2), source, "rank").reshape(-1, 2) - 1
    return places[:, 0], places[:, 1], rows[:, 2] if width == 3 else np.ones(len(rows)), at


def _array(body: Floats, line: Ints, n: int, symmetric: bool) -> Columns:
    """Return the entries of a dense matrix, column by column (the lower half where symmetric)."""
    at = np.flatnonzero(body)
    column, row = np.triu_indices(n) if symmetric else np.divmod(np.arange(n * n), max(n, 1))
    return row[at], column[at], body[at], line[at]
