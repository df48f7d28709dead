# SPDX-License-Identifier: Apache-2.0
"""``ibnetdiscover``: hosts, switches and cables, one paragraph per switch and adapter.

A paragraph has identifiers (``switchguid=0x…``), a line for the thing itself
(``Switch⇥36 "S-ec0d9a03001c7a20"⇥⇥# "leaf1" base port 0 lid 48 lmc 0``) and
one for each port with a cable (``[1]⇥"H-506b4b0300cc02a6"[1](506b4b0300cc02a6)
⇥⇥# "node018 HCA-1" lid 67 4xEDR``). Groupings by chassis (``-g``) and full
information (``-f``) are read too. Read from the source of infiniband-diags.

An end is known by its GUID: descriptions repeat (two switches fresh from the
factory are called the same) and one host has several adapters. `InfinibandCables` names
them, for ``ibnetdiscover --ports`` too; what is wrong with cables `Cables` finds.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import (
    count_lines,
    dump_format,
    refuse_empty,
    resembling,
    sniffing,
    split_lines,
    strange_line,
)
from nidmap.placement.readers.cables import Cables
from nidmap.placement.records import Dump, Finding
from nidmap.placement.support.quantities import counted

#: Data rate of one lane in Gbit/s, line coding taken off (8b/10b to QDR, 64b/66b from FDR10
#: on, from HDR on as the InfiniBand Trade Association's roadmap rates them).
RATES = {"SDR": 2.0, "DDR": 4.0, "QDR": 8.0, "FDR10": 10.0, "FDR": 13.64}
RATES |= {"EDR": 25.0, "HDR": 50.0, "NDR": 100.0, "XDR": 200.0}
#: Lanes of a link.
WIDTHS = {"1x": 1, "2x": 2, "4x": 4, "8x": 8, "12x": 12}
#: A description has 64 bytes at most: a line much longer than two of them is something else.
MAX_LINE = 1000

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_ADAPTER = re.compile(
    r"HCA-?[0-9]*|(?:mlx|mlx4|mlx5|mthca|qib|hfi1?|ehca|cxgb4|bnxt_re|irdma|hns|efa)_?[0-9]+(?:_\w+)*|"
    r"(?:ib|rocep|ibp|opa|rdmap|mlx5_ib|bond|en[opsx]|eth|hsn)[a-z]*[0-9]\w*",
    re.IGNORECASE,
)
#: Lines above the list that a shell or a tool around ibnetdiscover may have printed.
_PREAMBLE = 20
#: An adapter's description before its host's name is set.
NO_NAME = {"localhost", "localhost.localdomain", "(none)", "none"}
#: A switch's own adapter, which computes for SHARP: no host is missing behind it.
_SHARP = "Mellanox Technologies Aggregation Node"

_KINDS = {"S": "switch", "H": "host", "R": "other", "?": "other"}
_NAME = r'"([SHR?])-([0-9a-fA-F]{1,16})"'
_THING = re.compile(rf'(Switch|Ca|Rt|\?\?\?)\s+([0-9]+)\s+{_NAME}\s*(?:#\s*"(.*)"([^"]*))?')
_LID = re.compile(r"\blid ([0-9]{1,5})\b")
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
#: How messages of libibmad, libibnetdisc and ibnetdiscover begin.
_WARNING = re.compile(
    r"(?:ib(?:warn|panic|error|debug)|ibnetdiscover|iberror|libib\w+|mad_rpc\w*): ?\S|"
    r"[\w./+-]+\.[ch]:[0-9]+[:;]|(?:discover|query|umad)\w* failed\b",
    re.IGNORECASE,
)
sniff = sniffing(r'^(?:Switch|Ca|Rt)\s+[0-9]+\s+"[SHR]-[0-9a-fA-F]{1,16}"', re.M)


@dump_format("ibnetdiscover", "cables", sniff)
def read(text: str, source: str) -> Dump:
    r"""Read the output of ibnetdiscover.

    See `Cables.dump`; where no adapter names a host, each is one, called ``H-`` and its GUID.
    Lines for switches, adapters and ports are rows, identifiers are headers.
    """
    lines = split_lines(text, source)
    fabric = InfinibandCables()
    headers, owner = 0, -1
    for number, line in fabric_lines(lines, source, fabric):
        if device := _THING.fullmatch(line):
            _, _, letter, guid, description, rest = device.groups()
            owner = fabric.end(guid, _KINDS[letter], description or "")
            fabric.take_lid(owner, 0, rest or "")
        elif _REST.match(line):
            headers += 1
        elif owner < 0 and not headers and number <= _PREAMBLE and _is_preamble(line):
            fabric.warnings.append((number, line))
        elif owner < 0 or not _take_port(fabric, line, number, owner):
            raise strange_line("ibnetdiscover", source, number, line, "a line of ibnetdiscover")
    counts = count_lines(lines, headers + len(fabric.warnings))
    refuse_empty(counts, source, "switch")
    return fabric.dump(counts)


def _is_preamble(line: str) -> bool:
    """Tell whether a line above the list is neither a port nor of another format."""
    return not re.match(r"\[\d", line) and not resembling(line, but="ibnetdiscover")


def _take_port(fabric: InfinibandCables, line: str, number: int, owner: int) -> bool:
    """Read one port of the paragraph's switch or adapter; False if the line is not a port."""
    match = _PORT.fullmatch(line)
    own, quote, rest = ((match and match[5]) or "").partition('"')
    description, closed, tail = rest.rpartition('"')
    if not match or (quote and not closed):
        return False
    rate = _RATE.fullmatch(tail)
    gbs = bandwidth(rate[1], rate[2]) if rate else math.nan
    peer = fabric.end(match[3], _KINDS[match[2]], description)
    fabric.port(number, owner, int(match[1]), peer, int(match[4]), gbs)
    fabric.take_lid(owner, int(match[1]), own)
    return True


def bandwidth(width: str, rate: str) -> float:
    """Return a link's GB/s per direction; NaN if ibnetdiscover could not tell.

    `width`: ``4x`` …. `rate`: ``EDR`` ….
    """
    lanes, gbits = WIDTHS.get(width), RATES.get(rate)
    return math.nan if lanes is None or gbits is None else lanes * gbits / 8


def host_name(description: str) -> str:
    """Return the host named in an adapter's description; '' if there is none.

    The Linux driver writes ``<host> <adapter>``; some sites the host alone.
    Switches compute too: SHARP's ``Mellanox Technologies Aggregation Node``
    is not a host, nor is an adapter that still has its factory text.
    """
    return _host_words(description)[0]


def _host_words(description: str) -> tuple[str, str]:
    """Return the host and the adapter named in a description, '' for each missing one."""
    words = [*description.split(), "", ""]
    if words[0].lower() in NO_NAME or not _HOST.fullmatch(words[0]):
        return "", ""
    return (words[0], words[1]) if not words[1] or _ADAPTER.fullmatch(words[1]) else ("", "")


class InfinibandCables(Cables):
    """InfiniBand adapters and switches, identified by GUID."""

    def __init__(self) -> None:
        super().__init__("infiniband", "was ibnetdiscover run as root, and all of it kept?")
        self.warnings: list[tuple[int, str]] = []
        # of each port by end and number; 0: of all ports of a switch
        self.lids: dict[tuple[int, int | str], int] = {}

    def end(self, guid: str, kind: str, description: str) -> int:
        """Return the number of the switch or adapter with this GUID, hexadecimal as printed."""
        return super().end(f"0x{guid.lower().zfill(16)}", kind, description)

    def take_lid(self, end: int, port: int, text: str) -> None:
        """Record the LID of a port if a text contains one."""
        if found := _LID.search(text):
            self.lids[end, port] = int(found[1])

    def lid(self, end: int, port: int | str) -> int:
        """Return the LID of a port, or of its switch."""
        return self.lids.get((end, port)) or self.lids.get((end, 0), 0)

    def host(self, description: str) -> str:
        """Return the host named in an adapter's description (`host_name`)."""
        return host_name(description)

    def adapter(self, end: int, port: int | str) -> str:
        """Return the adapter in a description, with its port unless that is the first."""
        name = _host_words(self.descriptions[end])[1]
        return f"{name}/{port}" if name and port != 1 else name

    def names(self) -> list[str]:
        """Return each end's name; if no adapter names a host, every adapter's GUID is a host."""
        names = super().names()
        ends = list(zip(self.index, self.kinds, self.descriptions, names, strict=True))
        if any(name for _, kind, _, name in ends if kind == "host"):
            return names
        return [
            f"H-{key[2:]}" if kind == "host" and not text.startswith(_SHARP) else name
            for key, kind, text, name in ends
        ]

    def remarks(self) -> Iterator[Finding]:
        """Yield remarks on adapters without a host name and on ibnetdiscover's warnings."""
        if self.warnings:
            line, text = self.warnings[0]
            several = f"{counted(len(self.warnings), 'line')} besides the fabric, such as: {text}"
            yield Finding(line, "discovery", several, "is the list complete?", fault=False)
        seen: dict[tuple[str, str], str] = {}
        for key, kind, text in zip(self.index, self.kinds, self.descriptions, strict=True):
            host, adapter = _host_words(text) if kind == "host" else ("", "")
            first = seen.setdefault((host, adapter), key) if adapter else key
            if first != key:
                twice = (
                    f"{host} has two adapters {adapter} ({first}, {key}), assumed to be one host's"
                )
                yield Finding(
                    0, "same-host", twice, "do two hosts have the same name?", fault=False
                )
        words, called = [], False
        for text, kind, name in zip(self.descriptions, self.kinds, self.names(), strict=True):
            if kind == "host" and not host_name(text) and not text.startswith(_SHARP):
                words.append(" ".join(text.split()[:2]))
                called |= name != ""
        if words:
            some = ", ".join(f"{n} {t!r}" for t, n in Counter(words).most_common(3))
            what = "adapter names no host" if len(words) == 1 else "adapters name no host"
            then = "hosts are named after the GUIDs of their adapters" if called else "left out"
            text = f"{len(words)} {what} ({some}): {then}"
            hint = "the host's driver sets its name; ibnetdiscover --node-name-map can supply one"
            yield Finding(0, "unnamed-host", text, hint, fault=False)


def fabric_lines(
    lines: Iterable[str], source: str, fabric: InfinibandCables
) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is part of the fabric's description.

    What ibnetdiscover and its libraries wrote to stderr is kept as the fabric's warnings.
    """
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_LINE:
            raise ParseError(source, number, f"the line has {len(line):,} characters")
        bare = line.strip()
        if _WARNING.match(bare):
            fabric.warnings.append((number, bare))
        elif bare and bare[0] != "#":
            yield number, bare
