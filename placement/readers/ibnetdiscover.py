"""``ibnetdiscover``: the whole fabric, a paragraph for each switch and adapter.

A paragraph has identifiers (``switchguid=0x…``), a line for the thing itself
(``Switch⇥36 "S-ec0d9a03001c7a20"⇥⇥# "leaf1" base port 0 lid 48 lmc 0``) and
one for each port with a cable (``[1]⇥"H-506b4b0300cc02a6"[1](506b4b0300cc02a6)
⇥⇥# "node018 HCA-1" lid 67 4xEDR``). Groupings by chassis (``-g``) and full
information (``-f``) are read too. Read from the source of infiniband-diags.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from placement.readers.infiniband import Fabric, bandwidth, check_line
from placement.readers.plain import count_lines, refuse_empty, split_lines, strange_line

if TYPE_CHECKING:
    from placement.errors import ParseError
    from placement.records import Dump

__all__ = ["read", "sniff"]

_KINDS = {"S": "switch", "H": "host", "R": "other", "?": "other"}
_NAME = r'"([SHR?])-([0-9a-fA-F]{1,16})"'
_THING = re.compile(rf'(Switch|Ca|Rt|\?\?\?)\s+([0-9]+)\s+{_NAME}\s*(?:#\s*"(.*)"[^"]*)?')
_EXT = r"(?:\[ext [0-9]+\])?"
_PORT = re.compile(
    rf"\[([0-9]{{1,9}})\]{_EXT}(?:\([0-9a-fA-F]+\))?\s*{_NAME}\[([0-9]{{1,9}})\]{_EXT}"
    r"\s*(?:\([0-9a-fA-F]+\))?\s*(?:#\s*(.*))?"
)
_RATE = re.compile(r"\s*lid\s+[0-9]+\s+([0-9]+x|\?\?)([A-Z0-9]+|\?\?\?)(?:\s.*)?")
_REST = re.compile(
    r"(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid|\?\?\?guid)=0x|"
    r"Chassis [0-9]+|Hostname: |Non-Chassis Nodes"
)
_SNIFF = re.compile(r'^(?:Switch|Ca|Rt)\s+[0-9]+\s+"[SHR]-[0-9a-fA-F]{1,16}"', re.MULTILINE)


def sniff(head: str) -> bool:
    r"""Say whether the first lines look like the output of ibnetdiscover.

    Examples
    --------
    >>> sniff('switchguid=0x1(1)\nSwitch\t36 "S-0000000000000001"\t\t# "leaf1" base port 0\n')
    True
    """
    return bool(_SNIFF.search(head))


def read(text: str, source: str) -> Dump:
    r"""Read the output of ibnetdiscover.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        See `infiniband.Fabric.dump`. Lines for switches, adapters and ports
        are rows, identifiers are headers.

    Raises
    ------
    ParseError
        Where a line is none that ibnetdiscover prints, or is cut off.

    Examples
    --------
    >>> text = ('Switch\t36 "S-00000000000000aa"\t\t# "leaf1" base port 0 lid 4 lmc 0\n'
    ...         '[1]\t"H-00000000000000bb"[1](bb) \t\t# "node018 HCA-1" lid 67 4xEDR\n')
    >>> dump = read(text, "fabric.txt")
    >>> dump.nodes.name.tolist(), dump.links.a_port.tolist(), dump.links.bandwidth.tolist()
    (['node018'], [1], [12.5])
    """
    lines = split_lines(text, source)
    fabric = Fabric()
    headers, owner = 0, -1
    for number, line in enumerate(lines, start=1):
        check_line(line, number, source)
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if bare.startswith("["):
            _take(fabric, bare, number, owner, source)
        elif thing := _THING.fullmatch(bare):
            _, _, letter, guid, description = thing.groups()
            owner = fabric.end(guid, _KINDS[letter], description or "")
        elif _REST.match(bare):
            headers += 1
        else:
            raise _strange(bare, number, source)
    counts = count_lines(lines, headers)
    refuse_empty(counts, source, "switch")
    return fabric.dump("ibnetdiscover", source, counts)


def _take(fabric: Fabric, line: str, number: int, owner: int, source: str) -> None:
    """Take one port of the switch or adapter whose paragraph this is."""
    match = _PORT.fullmatch(line)
    if not match or owner < 0:
        raise _strange(line, number, source)
    port, letter, guid, other, comment = match.groups()
    _, quote, rest = (comment or "").partition('"')
    description, closed, tail = rest.rpartition('"')
    if quote and not closed:
        raise _strange(line, number, source)
    rate = _RATE.fullmatch(tail)
    gbs = bandwidth(rate.group(1), rate.group(2)) if rate else math.nan
    peer = fabric.end(guid, _KINDS[letter], description)
    fabric.port(number, owner, int(port), peer, int(other), gbs)


def _strange(line: str, number: int, source: str) -> ParseError:
    hint = "is the line cut off?"
    return strange_line("ibnetdiscover", source, number, line, "a line of ibnetdiscover", hint)
