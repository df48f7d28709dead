"""Reading no more than may be held."""

from __future__ import annotations

from typing import BinaryIO

__all__ = ["read_at_most"]

#: Bytes asked for at a time: who asks for all at once is given memory for all at once.
_PIECE = 2**20


def read_at_most(stream: BinaryIO, most: int) -> bytes:
    """Return what a stream holds, cut behind `most` bytes and one more.

    Parameters
    ----------
    stream : binary stream
    most : int
        Bytes that are allowed: a longer answer says that there are too many.

    Examples
    --------
    >>> import io
    >>> read_at_most(io.BytesIO(b"abcdef"), 3)
    b'abcd'
    """
    pieces, left = [], most + 1
    while left and (piece := stream.read(min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
