"""Readers of graphs and measured matrices: one module a format, file in, entries out.

Each module has ``read(raw, source) -> Entries``. The format is seen from the
file's first bytes; its name decides where these leave a choice.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placement.errors import ParseError, printable
from rankmap.slots import MOST_SLOTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Entries", "checked", "empty", "read", "recognise"]

#: A file larger than this is refused: no graph of a job's ranks needs it.
MOST_BYTES = 1 << 31

#: What a file's name says of its format, where its first bytes say nothing.
_ENDINGS = {
    ".graph": "metis",
    ".metis": "metis",
    ".chaco": "metis",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".mat": "csv",
    ".mtx": "matrix_market",
    ".prof": "monitoring",
    ".mpip": "mpip",
    ".rpt": "craypat",
}


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
    a: NDArray[np.int64]
    b: NDArray[np.int64]
    weight: NDArray[np.float64]
    undirected: bool = False
    stated: bool = True
    notes: tuple[str, ...] = ()


def read(path: str) -> Entries:
    """Return the entries of a file, or of a directory of Open MPI's monitoring files.

    Raises
    ------
    ParseError
        Missing, unreadable, in no known format, cut short or contradictory.
    """
    from importlib import import_module

    if os.path.isdir(path):
        from rankmap.readers.monitoring import read_directory

        return read_directory(path)
    raw = _bytes(path)
    module = import_module(f"rankmap.readers.{recognise(raw[:65536], path)}")
    found: Entries = module.read(raw, path)
    return found


def recognise(head: bytes, path: str = "") -> str:
    """Return the module that reads a file which begins so.

    Examples
    --------
    >>> recognise(b"%%MatrixMarket matrix coordinate real general"), recognise(b"3 2", "a.graph")
    ('matrix_market', 'metis')
    >>> recognise(b"0,1,17", "unknown.dat")
    'csv'
    """
    if head.startswith((b"PK\x03\x04", b"\x93NUMPY")):
        return "npz"
    if head[:14].lower() == b"%%matrixmarket":
        return "matrix_market"
    lower = head.lower()
    if lower.lstrip().startswith(b"@ mpip"):
        return "mpip"
    if b"craypat" in lower or b"pat_report" in lower:
        return "craypat"
    if b"msgs sent" in lower or lower.startswith(b"# point to point"):
        return "monitoring"
    named = _ENDINGS.get(os.path.splitext(path.removesuffix(".gz"))[1].lower())
    if named:
        return named
    return "csv" if b"," in head or b";" in head else "metis"


def checked(entries: Entries, source: str, lines: NDArray[np.int64] | None = None) -> Entries:
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

    def refuse(bad: NDArray[np.bool_], text: str) -> None:
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


def _bytes(path: str) -> bytes:
    """Return a file's content, unpacked where it is gzipped."""
    try:
        with open(path, "rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
        if raw[:2] == b"\x1f\x8b":
            raw = _unpacked(raw, path)
    except OSError as error:
        raise ParseError(path, 0, error.strerror or str(error)) from None
    if len(raw) > MOST_BYTES:
        raise ParseError(path, 0, f"more than {MOST_BYTES >> 20} MB")
    if not raw.strip():
        raise ParseError(path, 0, "the file is empty")
    return raw


def _unpacked(raw: bytes, path: str) -> bytes:
    """Return gunzipped bytes; a bomb is refused before it is unpacked whole."""
    import zlib

    unpack = zlib.decompressobj(wbits=31)
    try:
        out = unpack.decompress(raw, 1 << 28)
    except zlib.error as error:
        raise ParseError(path, 0, f"damaged gzip: {printable(str(error), 60)}") from None
    if unpack.unconsumed_tail or not unpack.eof:
        what = "more than 256 MB unpacked" if unpack.unconsumed_tail else "gzip file cut short"
        raise ParseError(path, 0, what)
    return out
