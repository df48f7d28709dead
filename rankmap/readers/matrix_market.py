"""MatrixMarket files: ``%%MatrixMarket matrix coordinate|array real general|symmetric``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import ParseError, printable
from rankmap.readers.entries import Entries, checked
from rankmap.readers.text import gather, whole
from rankmap.slots import MOST_SLOTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    values, line = gather(raw, source, skip=1)
    if not len(values):
        raise ParseError(source, 1, "no size line")
    head = values[line == line[0]]
    wanted = 3 if form == "coordinate" else 2
    sizes = whole(head, line[: len(head)], source, "size")
    if len(head) != wanted or (sizes < 0).any():
        raise ParseError(source, int(line[0]), f"{wanted} whole numbers expected")
    rows, columns = int(sizes[0]), int(sizes[1])
    if rows != columns:
        raise ParseError(source, int(line[0]), f"{rows} rows, {columns} columns: not square")
    if rows > MOST_SLOTS:
        raise ParseError(source, int(line[0]), f"{rows} ranks, at most {MOST_SLOTS}")
    body, at = values[len(head) :], line[len(head) :]
    if form == "coordinate":
        a, b, weight, at = _coordinates(body, at, int(sizes[2]), field, source)
    else:
        a, b, weight, at = _array(body, at, rows, symmetric, source)
    checked(Entries(rows, a, b, weight), source, at)
    if symmetric:
        off = a != b
        a, b = np.concatenate([a, b[off]]), np.concatenate([b, a[off]])
        weight = np.concatenate([weight, weight[off]])
    return Entries(rows, a, b, weight)


def _banner(raw: bytes, source: str) -> tuple[str, str, bool]:
    words = raw.split(b"\n", 1)[0].decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[1] != "matrix" or words[2] not in ("coordinate", "array"):
        raise ParseError(source, 1, "the banner is no '%%MatrixMarket matrix coordinate real …'")
    if words[3] not in ("real", "integer", "pattern", "double"):
        raise ParseError(source, 1, f"values are '{printable(words[3], 20)}', not real numbers")
    if words[4] not in ("general", "symmetric"):
        raise ParseError(source, 1, f"'{printable(words[4], 20)}' matrices hold no bytes")
    return words[2], words[3], words[4] == "symmetric"


def _coordinates(
    body: NDArray[np.float64], line: NDArray[np.int64], count: int, field: str, source: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    width = 2 if field == "pattern" else 3
    if len(body) != count * width:
        raise ParseError(
            source,
            int(line[-1]) if len(line) else 2,
            f"{len(body) / width:g} entries, {count} are stated",
            "is the file cut short?",
        )
    rows = body.reshape(count, width)
    at = line[::width]
    uneven = np.flatnonzero((line.reshape(count, width) != at[:, None]).any(axis=1))
    if len(uneven):
        text = f"an entry is {width} numbers on a line of its own"
        raise ParseError(source, int(at[uneven[0]]), text)
    weight = rows[:, 2] if width == 3 else np.ones(count)
    places = whole(rows[:, :2].ravel(), np.repeat(at, 2), source, "rank").reshape(-1, 2) - 1
    return places[:, 0], places[:, 1], weight, at


def _array(
    body: NDArray[np.float64], line: NDArray[np.int64], n: int, symmetric: bool, source: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the entries of a dense matrix, column by column (the lower half where symmetric)."""
    count = n * (n + 1) // 2 if symmetric else n * n
    if len(body) != count:
        raise ParseError(
            source,
            int(line[-1]) if len(line) else 2,
            f"{len(body)} values for {n}x{n}",
            "is the file cut short?",
        )
    set_ = np.flatnonzero(body)
    if symmetric:
        start = np.concatenate([[0], np.cumsum(np.arange(n, 0, -1))])
        column = np.searchsorted(start, set_, side="right") - 1
        row = set_ - start[column] + column
    else:
        column, row = np.divmod(set_, max(n, 1))
    return row.astype(np.int64), column.astype(np.int64), body[set_], line[set_]
