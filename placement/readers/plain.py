"""The physical lines of a text dump, and how they divide."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from placement.errors import ParseError
from placement.readers import resembling
from placement.records import LineCounts

#: Most nodes that one dump may name, and lines that it may have: ten times what the largest
#: machines have (160,000 nodes); lists of more would fill the memory.
MOST_NODES = MAX_LINES = 1 << 21


def sniffing(pattern: str, flags: int = re.I | re.M | re.A) -> Callable[[str], bool]:
    """Return the ``sniff`` of a format that shows itself by a pattern in its first lines.

    Examples
    --------
    >>> sniff = sniffing("^NodeName=", re.M)
    >>> sniff("# nodes\\nNodeName=n1"), sniff("n1")
    (True, False)
    """
    compiled = re.compile(pattern, flags)
    return lambda head: compiled.search(head) is not None


def split_lines(text: str, source: str = "", most: int = MAX_LINES) -> list[str]:
    r"""Return the lines of `text` as an editor numbers them, without their ends.

    Only ``\n`` ends a line (and ``\r\n``): `str.splitlines` also cuts at form
    feeds and Unicode separators, and every later line number would be wrong.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.
    most : int
        Lines that are allowed: a dump has at most `MAX_LINES`.

    Raises
    ------
    ParseError
        Where there are more.

    Examples
    --------
    >>> split_lines("a\r\n\nb")
    ['a', '', 'b']
    """
    if text.count("\n") > most:
        raise ParseError(source, 0, f"more than {most:,} lines", "no machine has that many")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.rstrip("\r") for line in lines] if "\r" in text else lines


def count_lines(lines: Iterable[str], headers: int = 0) -> LineCounts:
    """Return how `lines` divide into rows, ``#`` comments and blank ones.

    Parameters
    ----------
    lines : iterable of str
    headers : int
        How many of those that are neither comment nor blank are headers.

    Examples
    --------
    >>> count_lines(["# made by hand", "", "SwitchName=s0"])
    LineCounts(rows=1, comments=1, headers=0, blank=1)
    """
    rows = comments = blank = 0
    for line in lines:
        first = line.lstrip()[:1]
        if not first:
            blank += 1
        elif first == "#":
            comments += 1
        else:
            rows += 1
    return LineCounts(rows=rows - headers, comments=comments, headers=headers, blank=blank)


def refuse_empty(counts: LineCounts, source: str, what: str) -> None:
    """Raise `ParseError` where a dump has no row at all.

    Raises
    ------
    ParseError
    """
    if not counts.rows:
        raise ParseError(source, 0, f"nothing in it but comments: no {what}")


def strange_line(
    name: str, source: str, number: int, line: str, what: str, hint: str = "is the line cut off?"
) -> ParseError:
    """Return the error for a line that does not belong, naming the format it is of.

    Parameters
    ----------
    name : str
        The format that is being read.
    source : str
    number : int
        The line's number, from 1.
    line : str
    what : str
        What the line is not, such as ``a port of ibnetdiscover``.
    hint : str

    Examples
    --------
    >>> print(strange_line("sinfo", "x.txt", 7, "SwitchName=s0 Nodes=a", "a row of sinfo", ""))
    x.txt:7: two formats in one file: this line looks like topology-conf, the others are sinfo; ...
    >>> print(strange_line("sinfo", "x.txt", 7, "hm", "a row of sinfo", "cut off?"))
    x.txt:7: 'hm' is not a row of sinfo; cut off?
    """
    other = resembling(line, but=name)
    if other:
        return two_formats(source, number, other, f"the others are {name}")
    return ParseError(source, number, f"{line.strip()!r} is not {what}", hint)


def two_formats(source: str, number: int, other: str, others: str) -> ParseError:
    """Return the error for a line of another format."""
    text = f"two formats in one file: this line looks like {other}, {others}"
    return ParseError(source, number, text, "split it and name both files with -m")
