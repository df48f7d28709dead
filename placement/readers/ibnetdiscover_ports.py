# SPDX-License-Identifier: Apache-2.0
"""``ibnetdiscover --ports``: hosts, switches and cables, one line per port.

A port with a cable prints both ends, ``CA 134 1 0x7cfe9003003b4bde 4x EDR -
SW 1719 10 0x7cfe9003009ce5b0 ( 'o0001 HCA-1' - 'ib-i1l1s01' )``; one without
prints itself and its name, in quotes or not. Read from the source of
infiniband-diags and checked on the three outputs in the tests of a fabric
exporter.
"""

from __future__ import annotations

import re

from nidmap.placement.readers import (
    count_lines,
    dump_format,
    refuse_empty,
    sniffing,
    split_lines,
    strange_line,
)
from nidmap.placement.readers.ibnetdiscover import InfinibandCables, bandwidth, fabric_lines
from nidmap.placement.records import Dump

_KINDS = {"SW": "switch", "CA": "host", "RT": "other", "??": "other"}
_END = r"(SW|CA|RT|\?\?)\s+([0-9]{1,9})\s+([0-9]{1,9})\s+0x([0-9a-fA-F]{1,16})"
_PORT = re.compile(rf"\s*{_END}\s+([0-9]+x|\?\?)\s+([A-Z0-9]+|\?\?\?)(?:\s+(.*))?")
_PEER = re.compile(rf"-\s+{_END}\s+\(\s*(.*?)\s*\)\s*")
sniff = sniffing(
    r"^\s*(?:SW|CA|RT)\s+[0-9]+\s+[0-9]+\s+0x[0-9a-fA-F]{16}\s+(?:[0-9]+x|\?\?)\s", re.M
)


@dump_format("ibnetdiscover-ports", "cables", sniff)
def read(text: str, source: str) -> Dump:
    """Read the output of ``ibnetdiscover --ports``.

    See `nidmap.placement.readers.cables.Cables.dump`. A link that only one side prints is a
    remark: the output may be an excerpt.
    """
    lines = split_lines(text, source)
    fabric = InfinibandCables()
    for number, line in fabric_lines(lines, source, fabric):
        if not _take_port(fabric, line, number):
            what = "a port of ibnetdiscover"
            raise strange_line("ibnetdiscover-ports", source, number, line, what)
    counts = count_lines(lines, len(fabric.warnings))
    refuse_empty(counts, source, "port")
    return fabric.dump(counts)


def _take_port(fabric: InfinibandCables, line: str, number: int) -> bool:
    """Read one port; False if the line is not a port."""
    match = _PORT.fullmatch(line)
    if not match or not match[7]:
        return False
    kind, lid, port, guid, width, rate, rest = match.groups()
    if rest.split(None, 1)[0] != "-":
        fabric.port(number, fabric.end(guid, _KINDS[kind], _strip_quotes(rest)), int(port))
        return True
    peer = _PEER.fullmatch(rest)
    if peer:
        quoted = re.fullmatch(r"'.*' - '.*'", peer[5])
        here, _, there = peer[5].partition("' - '" if quoted else " - ")
        a = fabric.end(guid, _KINDS[kind], _strip_quotes(here))
        b = fabric.end(peer[4], _KINDS[peer[1]], _strip_quotes(there))
        fabric.port(number, a, int(port), b, int(peer[3]), bandwidth(width, rate))
        fabric.lids[a, int(port)] = int(lid)
    return bool(peer)


def _strip_quotes(text: str) -> str:
    return text.strip().strip("'").strip()
