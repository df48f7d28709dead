# SPDX-License-Identifier: Apache-2.0
"""Reads a file or standard input, plain or gzip, as bytes or text, and reports all faults.

Whatever a user points at, the answer is what it holds or one
line that says why not: a directory, a FIFO that nobody writes to, a binary,
a truncated or exploding gzip. Nothing is read at once beyond `LIMIT`, so that no
file takes the memory of a login node; line by line files of any length are.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from itertools import chain

from nidmap.placement.errors import ParseError, UsageError, os_reason

#: Which standard input was read, and by what.
_claims: list[tuple[object, str]] = []

#: Bytes of text that are read at most. The largest list known, all links of
#: Blue Waters, has 47 MB; text, and what is made of it, stay under 256 MiB.
LIMIT = 64 * 2**20

#: Bytes that a gzip is unpacked to at most, whatever may be read.
UNPACKED = 256 * 2**20

_PIECE, _LONGEST = 2**16, 2**20
_MEMBERS = 10_000  # of one gzip: each costs a copy of what is left of the piece
_GRACE_MS = 1000  # how long a FIFO may wait for its writer
_PRINTABLE = bytes([9, 10, 12, 13, *range(32, 127), *range(128, 256)])

#: First bytes of files commonly mistaken for a dump.
_FOREIGN = {
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"PK\x03\x04": "a zip archive",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def load(source: str) -> str:
    r"""Return the text of a file, decompressed if it is gzip, with newlines normalised.

    Without byte order mark, ``\r\n`` turned into ``\n``.
    """
    return decode(read_bytes(source), source)


def read_bytes(source: str, reader: str = "the dump's -", most: int = LIMIT) -> bytes:
    """Return the contents of a file, decompressed if it is gzip.

    `reader`: option or argument that ``-`` was given to. `most`: bytes that it may have; unpacked
    at most `UNPACKED`.
    """
    return b"".join(_up_to_limit(_unpacked(source, reader, most), source, min(most, UNPACKED)))


def read_lines(source: str, reader: str) -> Iterator[str]:
    """Yield the lines of a file of any length, decompressed if it is gzip, without their ends.

    `reader`: argument that ``-`` was given to. A line of more than `_LONGEST` bytes is refused.
    """
    rest, number = b"", 0
    for piece in _unpacked(source, reader, sys.maxsize):
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line.decode("utf-8", "replace").rstrip("\r") for line in whole)
        number += len(whole)
        if len(rest) > _LONGEST:
            what = f"a line of more than {_LONGEST:,} bytes"
            raise ParseError(source, number + 1, what, "is this a text file?")
    if rest:
        yield rest.decode("utf-8", "replace")


def _unpacked(source: str, reader: str, most: int) -> Iterator[bytes]:
    """Yield the contents of a file piece by piece, decompressed if it is gzip.

    `most`: bytes that the file itself may have.
    """
    try:
        with closing(_read_pieces(source, reader)) as read:
            pieces = _up_to_limit(read, source, most)
            first = next(pieces, b"")
            pieces = chain((first,), pieces)
            yield from _inflate_members(pieces, source) if first[:2] == b"\x1f\x8b" else pieces
    except (OSError, ValueError) as error:  # a ValueError: no file may be called so
        raise ParseError(source, 0, f"cannot be read: {os_reason(error)}") from None


def decode(data: bytes, source: str) -> str:
    r"""Decode bytes as text, refusing what is not text."""
    if not data:
        raise ParseError(source, 0, "is empty", "did the command that printed it succeed?")
    for start, what in _FOREIGN.items():
        if data.startswith(start):
            raise ParseError(source, 0, f"is {what}", "it must be UTF-8 text, plain or gzipped")
    control = data.translate(None, _PRINTABLE)  # characters that no tool prints
    if control:
        raise _not_text(data, data.index(control[0]), source)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # with a byte order mark the codec counts from after it
        at = error.start + 3 * data.startswith(b"\xef\xbb\xbf")
        raise _not_text(data, at, source) from None
    return text.replace("\r\n", "\n") if "\r" in text else text


def _not_text(data: bytes, at: int, source: str) -> ParseError:
    line = data.count(b"\n", 0, at) + 1
    colour = "colour codes? print it without (--color=never)"
    hint = colour if data[at] == 27 else "this file is binary"
    return ParseError(source, line, f"byte 0x{data[at]:02x} is not text", hint)


def _up_to_limit(pieces: Iterator[bytes], source: str, most: int) -> Iterator[bytes]:
    """Pass the pieces on, raising ParseError once they exceed this many bytes."""
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > most:
            what = f"holds more than {most >> 20} MiB"
            raise ParseError(source, 0, what, "no dump, node list or matrix is that long")
        yield piece


def _inflate_members(pieces: Iterator[bytes], source: str) -> Iterator[bytes]:
    """Decompress gzip members piece by piece, each piece limited in size."""
    member, count = zlib.decompressobj(31), 1
    try:
        for piece in pieces:
            waiting = piece
            while waiting:
                if member.eof and not waiting.strip(b"\0"):
                    break  # gzip allows zeros after the last member
                if member.eof:
                    member, count = zlib.decompressobj(31), count + 1
                if count > _MEMBERS:
                    raise zlib.error(f"more than {_MEMBERS} members")
                yield member.decompress(waiting, _PIECE)
                waiting = member.unused_data if member.eof else member.unconsumed_tail
    except zlib.error as error:
        what = str(error).rpartition(": ")[2]
        raise ParseError(source, 0, f"is a damaged gzip: {what}", "copy it again") from None
    if not member.eof:
        raise ParseError(source, 0, "is a truncated gzip: it ends early", "copy it again")


def _read_pieces(source: str, reader: str) -> Generator[bytes, None, None]:
    """Yield the bytes of a file, FIFO or standard input."""
    if source == "-":
        yield from iter(_standard_input(reader), b"")
        return
    handle = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise ParseError(source, 0, "is a directory", "name a file in it")
        if stat.S_ISFIFO(mode):
            yield _await_writer(handle, source)
        while piece := os.read(handle, _PIECE):
            yield piece
    finally:
        os.close(handle)


def _await_writer(handle: int, source: str) -> bytes:
    """Wait briefly for a FIFO's writer, since reading without one would block for ever."""
    early = b""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    if not poll.poll(_GRACE_MS):
        try:
            early = os.read(handle, _PIECE)
        except BlockingIOError:
            pass  # a writer is connected but has not written yet: wait as cat does
        else:
            if not early:
                raise ParseError(source, 0, "is a FIFO that nobody writes to")
    os.set_blocking(handle, True)
    return early or os.read(handle, _PIECE)


def _standard_input(reader: str) -> Callable[[], bytes]:
    if sys.stdin is None or sys.stdin.closed:
        raise ParseError("-", 0, "standard input is closed")
    claim_stdin(reader)
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        return lambda: sys.stdin.read(_PIECE).encode("utf-8", "surrogateescape")
    return lambda: bytes(stream.read(_PIECE))


def claim_stdin(reader: str) -> None:
    """Record that standard input is being read to its end.

    `reader`: option or argument that ``-`` was given to, '' where it has no name.
    """
    if _claims and _claims[0][0] is sys.stdin:
        both = " and ".join(filter(None, (_claims[0][1], reader)))
        raise UsageError(
            f"standard input can be read only once: {both}", "put one of them into a file"
        )
    _claims[:] = [(sys.stdin, reader)]


#: Suffixes of plain text, whatever the command writes by default.
_TEXT = ("", ".txt", ".text", ".out", ".log", ".lst", ".list")

#: The file that Cray MPICH reads; it has a name of its own instead of a suffix.
_RANK_ORDER = "MPICH_RANK_ORDER"


def format_of_name(
    path: str | None, formats: Mapping[str, str], default: str, option: str = ""
) -> str:
    """Return the format implied by a file's name.

    `path`: the file; None or ``-`` is standard output. `formats`: format by suffix (``.json``),
    and by the name ``MPICH_RANK_ORDER``. `default`: the format where the name has no suffix, a
    number for one, or one of plain text. `option`: the command's option that names the format.
    """
    suffix = suffix_of(path or "")
    if suffix in formats:
        return formats[suffix]
    if suffix in _TEXT or suffix[1:].isdigit():
        return default
    hint = f"choose from {', '.join(formats)}{f', or give {option}' if option else ''}"
    raise UsageError(f"{path}: {suffix} is not supported", hint)


def suffix_of(path: str) -> str:
    """Return a path's suffix in lower case, or ``MPICH_RANK_ORDER`` for a file of that name."""
    name = os.path.basename(path)
    return _RANK_ORDER if name.startswith(_RANK_ORDER) else os.path.splitext(name)[1].lower()
