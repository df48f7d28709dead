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

from placement.readers.infiniband import Fabric, bandwidth, fabric_lines
from placement.readers.plain import count_lines, refuse_empty, sniffing, split_lines, strange_line
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
sniff = sniffing(r'^(?:Switch|Ca|Rt)\s+[0-9]+\s+"[SHR]-[0-9a-fA-F]{1,16}"', re.M)


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
    for number, line in fabric_lines(lines, source):
        if thing := _THING.fullmatch(line):
            _, _, letter, guid, description = thing.groups()
            owner = fabric.end(guid, _KINDS[letter], description or "")
        elif _REST.match(line):
            headers += 1
        elif owner < 0 or not _take(fabric, line, number, owner):
            raise strange_line("ibnetdiscover", source, number, line, "a line of ibnetdiscover")
    counts = count_lines(lines, headers)
    refuse_empty(counts, source, "switch")
    return fabric.dump("ibnetdiscover", source, counts)


def _take(fabric: Fabric, line: str, number: int, owner: int) -> bool:
    """Take one port of the switch or adapter whose paragraph this is, False where it is none."""
    match = _PORT.fullmatch(line)
    _, quote, rest = ((match and match[5]) or "").partition('"')
    description, closed, tail = rest.rpartition('"')
    if not match or (quote and not closed):
        return False
    rate = _RATE.fullmatch(tail)
    gbs = bandwidth(rate[1], rate[2]) if rate else math.nan
    peer = fabric.end(match[3], _KINDS[match[2]], description)
    fabric.port(number, owner, int(match[1]), peer, int(match[4]), gbs)
    return True
