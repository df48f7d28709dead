"""Readers: the text of a dump in, its records out; one file a format.

The format is recognised by content, not by name. Each bundled reader is a
module with ``sniff(head) -> bool`` (is this, the beginning of a text or one
line of it, of my format?) and ``read(text, source) -> Dump``; it is imported
when its turn comes. Recognition goes by the first line that says anything,
and reading goes on to the last: a line of another format is an error that
names both.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from placement.errors import ParseError, UsageError, printable
from placement.records import Dump

__all__ = ["BUNDLED", "find", "read", "read_text", "recognise", "resembling"]

#: Every format, in the order in which they are tried; its module has ``_`` for ``-``.
BUNDLED = (
    *("xtprocadmin", "rtr-aries", "rtr-gemini", "xtdb2proc", "meshcoords"),
    *("torus-coordinates", "system-map", "topology-conf", "scontrol-topology"),
    *("ibnetdiscover-ports", "ibnetdiscover", "sls", "scontrol-nodes"),
    *("slurm-json", "topology-yaml", "pbsnodes", "flux-resources"),
    *("job-list", "sinfo"),
)

#: Formats whose single lines could be anything: no line of another dump is taken for theirs.
_VAGUE = ("sinfo", "job-list")

#: How much of a text its format is recognised by.
HEAD = 64 * 1024


class ReaderModule(Protocol):
    """What the module of a format offers."""

    def sniff(self, head: str) -> bool:
        """Tell whether the beginning of a text, or one line, is of this format."""

    def read(self, text: str, source: str) -> Dump:
        """Return the records of a text, or raise ParseError."""


def find(name: str) -> ReaderModule:
    """Return the reader of a format.

    Raises
    ------
    UsageError
        Where there is no such format; the message names those there are.

    Examples
    --------
    >>> find("xtprocadmin").sniff("17 0x11 c0-0c0s4n1 compute up batch")
    True
    """
    if name not in BUNDLED:
        known = ", ".join(sorted(BUNDLED))
        raise UsageError(f"no format {printable(name)!r}", f"there are {known}")
    return cast("ReaderModule", import_module(f"placement.readers.{name.replace('-', '_')}"))


def read(source: str) -> Dump:
    """Read a dump of any format that nidmap knows.

    Parameters
    ----------
    source : str
        Path of a file, plain or gzip, or ``-`` for standard input.

    Returns
    -------
    Dump

    Raises
    ------
    ParseError
        Where it cannot be read, is of no format known, or is broken; the
        message names file and line.
    """
    from placement.support.reading import load

    return read_text(load(source), source)


def read_text(text: str, source: str = "text") -> Dump:
    r"""Read a dump that is already in memory.

    Parameters
    ----------
    text : str
    source : str
        What to call it in errors.

    Returns
    -------
    Dump

    Raises
    ------
    ParseError
        As `read`.

    Examples
    --------
    >>> dump = read_text("2 c0-0c0s1n0 compute 0 0 1\n3 c0-0c0s1n1 compute 0 0 1\n")
    >>> dump.format, dump.nodes.nid.tolist()
    ('torus-coordinates', [2, 3])
    """
    plain = text.replace("\r\n", "\n") if "\r" in text else text
    return find(recognise(plain, source)).read(plain, source)


def recognise(text: str, source: str) -> str:
    r"""Return the name of the format that a text is of.

    Parameters
    ----------
    text : str
    source : str
        Named in errors.

    Raises
    ------
    ParseError
        Where it holds nothing, or nothing that nidmap knows.

    Examples
    --------
    >>> recognise("# a note\nSwitchName=s0 Nodes=n[0-5]\n", "topology.conf")
    'topology-conf'
    >>> recognise("hello\n", "letter.txt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    placement.errors.ParseError: letter.txt:1: 'hello' is of no format ...
    """
    head = text[:HEAD]
    numbered = enumerate(head.split("\n"), 1)
    said = ((k, x) for k, x in numbered if x.strip() and not x.lstrip().startswith("#"))
    line, words = next(said, (0, ""))
    if not words:
        raise ParseError(source, 0, "holds no record, only blanks and comments")
    for part in (words, head):
        found = resembling(part)
        if found:
            return found
    known = ", ".join(sorted(BUNDLED))
    what = f"'{printable(words, 40)}' is of no format that nidmap reads"
    raise ParseError(source, line, what, f"it reads {known}")


def resembling(part: str, but: str = "") -> str:
    """Return the format that a line, or the beginning of a text, looks like.

    Parameters
    ----------
    part : str
    but : str
        A format that is out of question.

    Returns
    -------
    str
        '' where it looks like none.

    Examples
    --------
    >>> resembling(" 2305  c0-1c0s0n1    compute    68   6  0  0")
    'meshcoords'
    """
    out = (but, *_VAGUE) if but else ()
    return next((name for name in BUNDLED if name not in out and find(name).sniff(part)), "")
