# SPDX-License-Identifier: Apache-2.0
"""InfiniBand's port counters: ``perfquery`` and ``ibqueryerrors``, joined with ibnetdiscover.

``perfquery`` prints a paragraph a port, ``# Port extended counters: Lid 5 port 1 (CapMask: …)``
and ``PortXmitData:....1234``; ``-l`` one for each port of a switch, without ``-x`` the counters of
32 bits. ``ibqueryerrors --counters`` prints a line a port, ``GUID 0x… port 1: [PortXmitData ==
1234 (4.820KB)]``. Read from the source of infiniband-diags. The data counters are in words of
four bytes, and stop at their limit. They count from their last reset: of a port that is read
several times, what it counted in between is meant, and ports that are read once are left out.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from nidmap.placement.errors import ParseError, at_line
from nidmap.placement.readers import split_lines, strange_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nidmap.placement.records import LinkRecords

#: Bytes of a counter's unit, where counters stop, and the port that is the sum of all.
_WORD, _LIMITS, _ALL_PORTS = 4, (2**32 - 1, 2**64 - 1), 255

_TITLE = re.compile(r"#\s*(\w[\w ]*?)(?: counters)?: (.*?) ?port ([0-9]{1,3})\b")
_FIELD = re.compile(r"(\w+):\.*\s*(\S*)")
_NODE = re.compile(r'(?:Data Counters|Errors) for (0x[0-9a-fA-F]+ )?"')
_PORT = re.compile(r"GUID 0x([0-9a-fA-F]{1,16}) port ([0-9]{1,3}|ALL):(.*)")
_PAIR = re.compile(r"\[(\w+) == ([0-9]+)")
_LID = re.compile(r"Lid ([0-9]{1,5})\b")
#: What else the tools and their libraries print.
_TALK = re.compile(
    r"Link info:|ib(?:warn|panic|error)\b|(?:perfquery|ibqueryerrors): |mad_rpc\w*: "
)
#: Titles of the paragraphs that are meant, and the bits of their counters.
_BITS = {"Port": 32, "Port extended": 64}
_OUTGOING, _INCOMING = "PortXmitData", "PortRcvData"
_OURS = re.compile(r"^[ ]*(?:# Port(?: extended)? counters: |(?:Data Counters|Errors) for )", re.M)


class Reading(NamedTuple):
    """The data counters of one port at one time, in words."""

    source: str
    line: int
    port: tuple[int | str, int]  # LID, or node GUID as ibnetdiscover's reader writes it; port
    bits: int
    outgoing: int
    incoming: int


class CableBytes(NamedTuple):
    """What one direction of a cable between two switches carried."""

    ends: tuple[str, str]
    bytes: int
    of: tuple[int, int]  # which of the cables with these ends, by the first one's port; how many


def is_report(text: str) -> bool:
    """Tell whether a text is output of perfquery or ibqueryerrors."""
    return bool(_OURS.search(text[:65536]))


def read_ports(text: str, source: str) -> list[Reading]:
    """Return the readings in a file, in its order."""
    reports = _Reports(source)
    for number, line in enumerate(split_lines(text, source), 1):
        reports.take(number, line.strip())
    reports.close()
    return reports.found


class _Reports:
    """Collects the readings of one file."""

    def __init__(self, source: str) -> None:
        self.source, self.found = source, list[Reading]()
        self.title: re.Match[str] | None = None  # of the paragraph that is being read
        self.line, self.words = 0, dict[str, str]()
        self.switch = False  # True where ibqueryerrors goes on about one

    def take(self, number: int, text: str) -> None:
        """Read a line."""
        if title := _TITLE.match(text):
            self.close()
            self.title, self.line = title, number
        elif node := _NODE.match(text):
            self.close()
            self.switch = bool(node[1])
        elif port := _PORT.match(text):
            words = dict(_PAIR.findall(port[3]))
            if self.switch and port[2] != "ALL" and (_OUTGOING in words or _INCOMING in words):
                both = {_OUTGOING: "0", _INCOMING: "0"} | words  # with errors no zeros are printed
                self._keep(number, f"0x{port[1].lower().zfill(16)}", int(port[2]), 64, both)
        elif text and text[0] != "#" and not _TALK.match(text):
            field = _FIELD.fullmatch(text)
            if not (self.title and field):
                raise strange_line("perfquery", self.source, number, text, "a line of perfquery")
            self.words[field[1]] = field[2]

    def close(self) -> None:
        """End a paragraph."""
        title, self.title = self.title, None
        if title and title[1] in _BITS:
            lid = _LID.match(title[2])
            if not lid:
                text, hint = f"'{title[2].strip()}' is no LID", "perfquery -x LID PORT, or -G GUID"
                raise ParseError(self.source, self.line, text, hint)
            self._keep(self.line, int(lid[1]), int(title[3]), _BITS[title[1]], self.words)
        self.words = {}

    def _keep(
        self, line: int, owner: int | str, port: int, bits: int, words: Mapping[str, str]
    ) -> None:
        counts = [self._count(line, name, words.get(name)) for name in (_OUTGOING, _INCOMING)]
        self.found.append(Reading(self.source, line, (owner, port), bits, *counts))

    def _count(self, line: int, name: str, text: str | None) -> int:
        """Return a counter, refusing one that has saturated."""
        if text is None or not re.fullmatch("[0-9]{1,20}", text):
            said = f"has no {name}" if text is None else f"{name} '{text}' is no number"
            raise ParseError(self.source, line, said, "is the output cut off?")
        if int(text) in _LIMITS or int(text) > _LIMITS[1]:
            said = f"{name} has stopped at its limit, {text}"
            raise ParseError(self.source, line, said, "perfquery -x counts further, -R resets")
        return int(text)


def carried_bytes(
    readings: Iterable[Reading], fabric: LinkRecords
) -> tuple[list[CableBytes], int, bool]:
    """Return what cables between switches carried, and the number of unknown ports.

    Also whether it is the difference of readings; else it is what they counted since their reset.

    `fabric`: the links of ibnetdiscover's output, whose LIDs or GUIDs the readings have.
    """
    by_port: dict[tuple[int | str, int], list[Reading]] = {}
    for reading in readings:
        by_port.setdefault(reading.port, []).append(reading)
    widest = [_widest(found) for found in by_port.values()]
    twice = any(len(found) > 1 for found in widest)
    counted = [_difference(found) for found in widest if len(found) > 1 or not twice]
    switches = _Switches(fabric)
    told = {port: reading for reading in counted if (port := switches.port_of(reading))}
    unknown = sum(not switches.knows(reading) for reading in counted)
    return list(switches.carried(told)), unknown, twice


def _widest(found: list[Reading]) -> list[Reading]:
    """Return the readings of a port by its widest counters."""
    bits = max(reading.bits for reading in found)
    return [reading for reading in found if reading.bits == bits]


def _difference(found: list[Reading]) -> Reading:
    """Return a port's count between first and last reading; a single reading's value."""
    for early, late in pairwise(found):
        if late.outgoing < early.outgoing or late.incoming < early.incoming:
            where = at_line(early.source, early.line)
            text, hint = f"counts less than {where}", "was it reset in between, or is this earlier?"
            raise ParseError(late.source, late.line, text, hint)
    first, last = found[0], found[-1]
    if first is last:
        return last
    outgoing, incoming = last.outgoing - first.outgoing, last.incoming - first.incoming
    return last._replace(outgoing=outgoing, incoming=incoming)


class _Switches:
    """The ports in ibnetdiscover's output by perfquery's names for them."""

    def __init__(self, fabric: LinkRecords) -> None:
        guids = [] if fabric.guid is None else fabric.guid.tolist()
        lids = [] if fabric.lid is None else fabric.lid.tolist()
        hosts = fabric.host_ends().tolist()
        here = zip(fabric.a.tolist(), map(int, fabric.a_port.tolist()), strict=True)
        there = zip(fabric.b.tolist(), map(int, fabric.b_port.tolist()), strict=True)
        self.far: dict[tuple[str, int], tuple[str, int]] = {}  # of cables between switches
        self.switch: dict[int | str, set[str]] = {}  # names by LID and by GUID
        self.others: set[int | str] = set()  # of hosts
        of_hosts = [False] * len(hosts) if fabric.host_a is None else fabric.host_a.tolist()
        for near, far, guid, lid, host, leaf in zip(
            here, there, guids, lids, of_hosts, hosts, strict=True
        ):
            if host:
                self.others |= {guid, lid}
                continue
            for key in (guid, lid):
                self.switch.setdefault(key, set()).add(near[0])
            if not leaf:
                self.far[near] = far
                self.far[far] = near

    def knows(self, reading: Reading) -> bool:
        """Tell whether the fabric has a switch or host with this LID or GUID."""
        return reading.port[0] in self.switch or reading.port[0] in self.others

    def port_of(self, reading: Reading) -> tuple[str, int] | None:
        """Return the switch and port of a reading with a cable to another switch, or None."""
        owner, port = reading.port
        names = self.switch.get(owner, set())
        if len(names) > 1:
            text, hint = f"LID {owner} is of several switches", "is the list of another day?"
            raise ParseError(reading.source, reading.line, text, hint)
        if names and port == _ALL_PORTS:
            text, hint = "adds up all ports of a switch", "perfquery -x -l LID lists each"
            raise ParseError(reading.source, reading.line, text, hint)
        place = (next(iter(names), ""), port)
        return place if place in self.far else None

    def carried(self, told: Mapping[tuple[str, int], Reading]) -> Iterable[CableBytes]:
        """Yield both directions of every cable with a reading; the sender's takes precedence."""
        cables: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for near, far in sorted(self.far.items(), key=min):
            cables.setdefault((near[0], far[0]), []).append(near)
        for ends, ports in cables.items():
            for number, near in enumerate(ports):
                sender, receiver = told.get(near), told.get(self.far[near])
                reading = sender or receiver
                if reading:
                    words = sender.outgoing if sender else reading.incoming
                    of = (number, len(ports))
                    yield CableBytes(ends, words * _WORD, of)
