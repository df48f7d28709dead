"""Node lists as people paste them: what a command printed, cut down to its node lists.

`pieces` recognises by content the tables of ``squeue``, ``sinfo`` and
``sacct``, the records of ``scontrol show job|node|step|reservation|partition``, PBS's
``exec_host``, Flux's R and Open MPI's rank files, and returns the stretches of host
list text in them; anything else is host list text as a whole. `read_list`
fetches the text that a command-line argument means.
"""

from __future__ import annotations

import os
import re
import sys
from typing import BinaryIO

from placement.errors import ParseError
from placement.lists import records, tables
from placement.lists.piece import Piece
from placement.support.reading import read_at_most
from placement.support.regex import compile_pattern
from placement.support.stdin import claim_stdin

__all__ = ["MAX_BYTES", "pieces", "read_list"]

#: Bytes of the largest list that is read.
MAX_BYTES = 64 * 2**20

_HEAD = compile_pattern(r"^[^\S\n]*+([^\s#][^\n]*)", re.ASCII | re.M)
_RECORD = re.compile(r"(?:JobId|NodeName|StepId|ReservationName|PartitionName)=")
_EXEC = compile_pattern(
    r"^[ \t]*+(exec_host|exec_vnode)[ \t]*+=[ \t]*+([^\n]*+(?:\n(?:\t|[ ]{8})[^\n]*+)*+)", re.M
)
_SLOTS = re.compile(r"[A-Za-z0-9_][\w.\-]*/\d[\w.\-/*+,\s]*", re.ASCII)
_RANK = re.compile(r"rank\s+\d+\s*=")


def pieces(text: str, source: str) -> tuple[list[Piece], bool]:
    """Find the host lists in a text.

    Parameters
    ----------
    text : str
    source : str
        Name of the source for errors.

    Returns
    -------
    pieces : list of Piece
        In the order of the text.
    once : bool
        True where the text lists a node again without meaning it twice, as
        ``sinfo -N`` does once a partition.

    Raises
    ------
    ParseError
        Where a row or record of a recognised command cannot be understood.

    Examples
    --------
    >>> found, once = pieces("NODELIST   NODES\\nn[1-2]   2\\n", "")
    >>> found, once
    ([Piece(text='n[1-2]', line=2, expected=2)], False)
    """
    text = text.removeprefix("\ufeff")
    first = _HEAD.search(text)
    if first is None:
        return [Piece(text)], False
    head, source = first[1], source or "node list"
    if _RECORD.match(head):
        return records.scontrol(text, source), False
    if head[0] == "{" and '"R_lite"' in text:
        return records.flux_resource_set(text, source), False
    if "exec_" in text or _SLOTS.fullmatch(head) or _RANK.match(head):
        return _launchers(text, source, head), False
    table = tables.table(text, source) if len(text) > len(head) or " " in head else None
    return table or ([Piece(text)], False)


def _launchers(text: str, source: str, head: str) -> list[Piece]:
    """Read what PBS and Open MPI write; host list text where it is neither."""
    if _RANK.match(head):
        return records.rankfile(text, source)
    said = list(_EXEC.finditer(text))
    hosts = [match for match in said if match[1] == "exec_host"]
    found: list[Piece] = []
    for match in hosts or said:
        line = text.count("\n", 0, match.start()) + 1
        found += records.exec_host("".join(match[2].split()), line, source, vnodes=not hosts)
    if not said and _SLOTS.fullmatch(head):
        return records.exec_host("".join(text.split()), 1, source)
    return found if said else [Piece(text)]


def read_list(argument: str, option: str = "") -> tuple[str, str]:
    """Fetch the text that an argument means: standard input, a file, or itself.

    ``-`` is standard input, ``@FILE`` and the path of an existing file are
    read; everything else is the list itself. A node called like a file in the
    working directory is therefore taken for the file.

    Parameters
    ----------
    argument : str
    option : str
        Name of the option, the source of a list given directly.

    Returns
    -------
    text : str
    source : str
        ``-`` (behind the option's name), the file's path, or `option`.

    Raises
    ------
    ParseError
        Where the file cannot be read or is larger than `MAX_BYTES`.

    Examples
    --------
    >>> read_list("nid[00012-00015]", "--nodes")
    ('nid[00012-00015]', '--nodes')
    """
    if argument == "-":
        claim_stdin(f"{option} -".lstrip())
        return _stdin(), f"{option} -".lstrip()
    path = argument[1:] if argument.startswith("@") else argument
    if path is argument and (not argument or not os.path.exists(argument) or os.path.isdir(path)):
        return argument, option
    try:
        with open(path, "rb") as stream:
            return _decode_stream(stream, path), path
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise ParseError(path or "@", 0, f"cannot be read: {reason}") from None


def _stdin() -> str:
    if sys.stdin is None:
        raise ParseError("-", 0, "standard input is closed")
    try:
        return _decode_stream(sys.stdin.buffer, "-")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is closed"
        raise ParseError("-", 0, f"standard input cannot be read: {reason}") from None


def _decode_stream(stream: BinaryIO, source: str) -> str:
    """Return what a stream holds; bytes that are no text become a mark that no name may hold."""
    raw = read_at_most(stream, MAX_BYTES)
    if len(raw) > MAX_BYTES:
        raise ParseError(source, 0, f"larger than {MAX_BYTES} bytes", "no node list is")
    return raw.decode("utf-8", errors="replace")
