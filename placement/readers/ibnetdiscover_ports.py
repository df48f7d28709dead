"""``ibnetdiscover --ports``: one line a port of the whole fabric.

A port with a cable prints both ends, ``CA 134 1 0x7cfe9003003b4bde 4x EDR -
SW 1719 10 0x7cfe9003009ce5b0 ( 'o0001 HCA-1' - 'ib-i1l1s01' )``; one without
prints itself and its name, in quotes or not. Read from the source of
infiniband-diags and checked on the three outputs in the tests of a fabric
exporter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placement.readers.infiniband import Fabric, bandwidth, check_line
from placement.readers.plain import count_lines, refuse_empty, split_lines, strange_line

if TYPE_CHECKING:
    from placement.errors import ParseError
    from placement.records import Dump

__all__ = ["read", "sniff"]

_KINDS = {"SW": "switch", "CA": "host", "RT": "other", "??": "other"}
_END = r"(SW|CA|RT|\?\?)\s+([0-9]{1,9})\s+([0-9]{1,9})\s+0x([0-9a-fA-F]{1,16})"
_PORT = re.compile(rf"\s*{_END}\s+([0-9]+x|\?\?)\s+([A-Z0-9]+|\?\?\?)(?:\s+(.*))?")
_PEER = re.compile(rf"-\s+{_END}\s+\(\s*(.*?)\s*\)\s*")
_SNIFF = re.compile(
    r"^\s*(?:SW|CA|RT)\s+[0-9]+\s+[0-9]+\s+0x[0-9a-fA-F]{16}\s+(?:[0-9]+x|\?\?)\s", re.MULTILINE
)


def sniff(head: str) -> bool:
    r"""Say whether the first lines look like ``ibnetdiscover --ports``.

    Examples
    --------
    >>> sniff("SW  1781 80 0x08c0eb0300add20e 4x SDR   'ib-i7l2s01'\n")
    True
    """
    return bool(_SNIFF.search(head))


def read(text: str, source: str) -> Dump:
    """Read the output of ``ibnetdiscover --ports``.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        See `infiniband.Fabric.dump`. A link that only one side prints is a
        remark: the output may be an excerpt.

    Raises
    ------
    ParseError
        Where a line is not a port, or is cut off.

    Examples
    --------
    >>> row = "CA 134 1 0x7cfe9003003b4bde 4x EDR - SW 1719 10 0x7cfe9003009ce5b0 "
    >>> dump = read(row + "( 'o0001 HCA-1' - 'ib-i1l1s01' )", "ports.txt")
    >>> dump.nodes.name.tolist(), dump.nodes.router.tolist(), dump.links.bandwidth.tolist()
    (['o0001'], ['ib-i1l1s01'], [12.5])
    """
    lines = split_lines(text, source)
    counts = count_lines(lines)
    refuse_empty(counts, source, "port")
    fabric = Fabric()
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            _take(fabric, line, number, source)
    return fabric.dump("ibnetdiscover-ports", source, counts)


def _take(fabric: Fabric, line: str, number: int, source: str) -> None:
    """Take one port."""
    check_line(line, number, source)
    match = _PORT.fullmatch(line)
    rest = match and match.group(7)
    if not match or not rest:
        raise _strange(line, number, source)
    kind, _, port, guid, width, rate, _ = match.groups()
    if not rest.startswith("- "):
        fabric.port(number, fabric.end(guid, _KINDS[kind], _unquoted(rest)), int(port))
        return
    peer = _PEER.fullmatch(rest)
    if not peer:
        raise _strange(line, number, source)
    here, there = _descriptions(peer.group(5))
    a = fabric.end(guid, _KINDS[kind], here)
    b = fabric.end(peer.group(4), _KINDS[peer.group(1)], there)
    fabric.port(number, a, int(port), b, int(peer.group(3)), bandwidth(width, rate))


def _descriptions(text: str) -> tuple[str, str]:
    """Return the two names in ``'o0001 HCA-1' - 'ib-i1l1s01'``, quoted or not."""
    quoted = text.startswith("'") and text.endswith("'") and "' - '" in text
    here, _, there = text.partition("' - '" if quoted else " - ")
    return _unquoted(here), _unquoted(there)


def _unquoted(text: str) -> str:
    return text.strip().strip("'").strip()


def _strange(line: str, number: int, source: str) -> ParseError:
    hint = "is the line cut off?"
    return strange_line(
        "ibnetdiscover-ports", source, number, line, "a port of ibnetdiscover", hint
    )
