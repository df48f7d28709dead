"""``ibnetdiscover``: the whole fabric, a paragraph for each switch and adapter.

A paragraph has identifiers (``switchguid=0x…``), a line for the thing itself
(``Switch⇥36 "S-ec0d9a03001c7a20"⇥⇥# "leaf1" base port 0 lid 48 lmc 0``) and
one for each port with a cable (``[1]⇥"H-506b4b0300cc02a6"[1](506b4b0300cc02a6)
⇥⇥# "node018 HCA-1" lid 67 4xEDR``). Groupings by chassis (``-g``) and full
information (``-f``) are read too. Read from the source of infiniband-diags.

An end is known by its GUID: descriptions repeat (two switches fresh from the
factory are called the same) and one host has several adapters. A `Fabric`
collects the ends as printed and makes hosts, switches and links of them; the
judgement is the same for ``ibnetdiscover --ports``.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from placement.errors import ParseError, printable
from placement.readers import dump_format
from placement.readers.plain import count_lines, refuse_empty, sniffing, split_lines, strange_line
from placement.records import Dump, Finding, LineCounts, LinkRecords, NodeRecords

__all__ = ["RATES", "WIDTHS", "Fabric", "bandwidth", "fabric_lines", "host_name", "read", "sniff"]

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
    r"(?:ib|rocep|ibp|opa|rdmap|mlx5_ib)[a-z]*[0-9]\w*",
    re.IGNORECASE,
)
#: What an adapter calls its host while nobody has told it the name.
NO_NAME = {"localhost", "localhost.localdomain", "(none)", "none"}
#: A switch's own adapter, which computes for SHARP: no host is missing behind it.
_SHARP = "Mellanox Technologies Aggregation Node"

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


@dump_format("ibnetdiscover", "cables", "`ibnetdiscover`", "hosts, switches, cables", sniff)
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
        See `Fabric.dump`. Lines for switches, adapters and ports
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


def bandwidth(width: str, rate: str) -> float:
    """Return GB/s a direction of a link, NaN where ibnetdiscover could not tell.

    Parameters
    ----------
    width : str
        ``4x`` …
    rate : str
        ``EDR`` …

    Examples
    --------
    >>> bandwidth("4x", "EDR"), bandwidth("2x", "HDR"), bandwidth("4x", "???")
    (12.5, 12.5, nan)
    """
    lanes, gbits = WIDTHS.get(width), RATES.get(rate)
    return math.nan if lanes is None or gbits is None else lanes * gbits / 8


def host_name(description: str) -> str:
    """Return the host that an adapter's description names, '' where it names none.

    The Linux driver writes ``<host> <adapter>``; some sites the host alone.
    Switches compute too: SHARP's ``Mellanox Technologies Aggregation Node``
    is not a host, nor is an adapter that still has its factory text.

    Examples
    --------
    >>> host_name("node018 HCA-1"), host_name("worker20 mlx5_3"), host_name("node7")
    ('node018', 'worker20', 'node7')
    >>> host_name("Mellanox Technologies Aggregation Node"), host_name("MT4115 ConnectX4")
    ('', '')
    """
    words = description.split()
    if not words or words[0].lower() in NO_NAME or not _HOST.fullmatch(words[0]):
        return ""
    return words[0] if len(words) == 1 or _ADAPTER.fullmatch(words[1]) else ""


class Fabric:
    """Collects the ends and the ports of one dump; `dump` judges them.

    Ends are numbered in the order in which they appear; ports are kept in
    columns, since a large fabric has hundreds of thousands.
    """

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self.kinds: list[str] = []
        self.descriptions: list[str] = []
        self.ports = [array("q") for _ in ("line", "a", "a_port", "b", "b_port")]
        self.gbs = array("d")

    def end(self, guid: str, kind: str, description: str) -> int:
        """Return the number of the switch or adapter with this GUID.

        Parameters
        ----------
        guid : str
            Hexadecimal digits, as printed.
        kind : str
            ``switch``, ``host`` (an adapter) or ``other`` (router, gateway).
        description : str
        """
        guid = guid.lower().zfill(16)
        number = self.index.setdefault(guid, len(self.kinds))
        if number == len(self.kinds):
            self.kinds.append(kind)
            self.descriptions.append(description.strip())
        elif not self.descriptions[number]:
            self.descriptions[number] = description.strip()
        return number

    def port(
        self, line: int, a: int, a_port: int, b: int = -1, b_port: int = -1, gbs: float = math.nan
    ) -> None:
        """Take a port as printed: its own end, the other one (-1: no cable), the rate."""
        for column, value in zip(self.ports, (line, a, a_port, b, b_port), strict=True):
            column.append(value)
        self.gbs.append(gbs)

    def names(self) -> list[str]:
        """Return the name of each end: of a switch its own, of an adapter its host's or ''.

        Where no adapter names a host, each is a host called by its GUID.
        """
        ends = list(zip(self.index, self.kinds, self.descriptions, strict=True))
        shared = Counter(text for _, kind, text in ends if kind == "switch")
        names = [_name(guid, kind, text, shared[text]) for guid, kind, text in ends]
        if any(name for name, kind in zip(names, self.kinds, strict=True) if kind == "host"):
            return names
        return [
            f"H-{guid}" if kind == "host" and not text.startswith(_SHARP) else name
            for name, (guid, kind, text) in zip(names, ends, strict=True)
        ]

    def dump(self, format: str, source: str, counts: LineCounts) -> Dump:  # noqa: A002  # Dump's field
        """Return hosts, switches and links.

        Parameters
        ----------
        format, source : str
        counts : LineCounts

        Returns
        -------
        Dump
            `nodes` are the hosts that have a cable to a switch, ``router``
            the switch of the first and ``nics`` their number (a port of a
            switch has one cable, whatever hangs on it); `links` has
            every printed end between switches, and between hosts and
            switches; `routers` all switches. ``parameters["other_adapters"]``
            counts adapters that are not hosts. Where no adapter names a host,
            each is one, called ``H-`` and its GUID.
        """
        view = _PortTable(self)
        named = list(zip(view.names, self.kinds, strict=True))
        switches = [name for name, kind in named if kind == "switch"]
        nodes = view.hosts()
        faults = [*view.double_ports(), *view.odd_links(), *view.one_ended(), *view.unnamed()]
        if nodes is None:
            hint = "was ibnetdiscover run as root, and all of it kept?"
            text = "no host with a cable to a switch in it"
            faults.insert(0, Finding(0, "no-nodes", text, hint))
        return Dump(
            format,
            source,
            counts,
            nodes=nodes,
            links=view.links(),
            routers=np.array(switches) if switches else None,
            fabric="infiniband",
            parameters={"other_adapters": sum(k != "switch" and not n for n, k in named)},
            findings=tuple(sorted(faults, key=lambda f: f.line)),
        )


def _name(guid: str, kind: str, description: str, shared: int) -> str:
    if kind == "host":
        return host_name(description)
    if kind != "switch":
        return ""
    return description if description and shared == 1 else f"{description} 0x{guid}".strip()


class _PortTable:
    """The ports of a fabric as numpy columns."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.names = fabric.names()
        self.name, kinds = np.array(self.names or [""]), np.array(fabric.kinds or [""])
        self.line, self.a, self.a_port, self.b, self.b_port = (
            np.array(column, dtype=np.int64) for column in fabric.ports
        )
        self.host, self.cabled = kinds == "host", self.b >= 0
        far, named = np.where(self.cabled, self.b, 0), self.name != ""
        one_switch = (kinds[self.a] == "switch") | (kinds[far] == "switch")
        self.counts = self.cabled & one_switch & named[self.a] & named[far] & (self.a != self.b)
        self.kept = np.flatnonzero(self.counts)
        # one number for each end of each port: a GUID and a port number
        ends = (self.a << 32) + self.a_port, np.where(self.cabled, (self.b << 32) + self.b_port, -1)
        _, number = np.unique(np.concatenate(ends), return_inverse=True)
        self.here, self.there = number.reshape(2, -1)

    def links(self) -> LinkRecords | None:
        """Return every printed end of a link that counts."""
        rows = self.kept
        if not len(rows):
            return None
        a, b = self.a[rows], self.b[rows]
        return LinkRecords(
            line=self.line[rows].astype(np.int32),
            a=self.name[a],
            b=self.name[b],
            a_port=self.a_port[rows].astype(np.int32),
            b_port=self.b_port[rows].astype(np.int32),
            kind=np.full(len(rows), "ib"),
            host_a=self.host[a],
            host_b=self.host[b],
            bandwidth=np.array(self.fabric.gbs)[rows],
        )

    def hosts(self) -> NodeRecords | None:
        """Return the hosts that a link reaches, in the order of the lines."""
        found = [self.kept[self.host[end[self.kept]]] for end in (self.a, self.b)]
        rows = np.concatenate(found)
        if not len(rows):
            return None
        order = np.argsort(rows, kind="stable")
        far, rows = np.repeat([False, True], [*map(len, found)])[order], rows[order]
        a, b = self.a[rows], self.b[rows]
        end, switch = np.where(far, b, a), np.where(far, a, b)
        port, line = np.where(far, self.a_port[rows], self.b_port[rows]), self.line[rows]
        names, first, host = np.unique(self.name[end], return_index=True, return_inverse=True)
        attached = np.unique(np.stack([host.ravel(), switch, port]), axis=1)[0]
        by_line = np.argsort(first)
        first = first[by_line]
        return NodeRecords(
            line=line[first].astype(np.int32),
            name=names[by_line],
            router=self.name[switch[first]],
            nics=np.bincount(attached, minlength=len(names))[by_line].astype(np.int32),
        )

    def double_ports(self) -> Iterator[Finding]:
        """Find ports that are printed twice: a port has one cable."""
        _, first, again = np.unique(self.here, return_index=True, return_inverse=True)
        first_of = first[again.ravel()]
        for row in np.flatnonzero(first_of != np.arange(len(first_of))).tolist():
            one = first_of[row]
            same = bool(self.there[one] == self.there[row])
            text = f"{self._port(row)} stands on line {self.line[one]} already"
            hint = "the same again" if same else "with another cable: a port has one"
            yield Finding(int(self.line[row]), "duplicate-port", text, hint, fault=not same)

    def odd_links(self) -> Iterator[Finding]:
        """Find cables from host to host, and from a thing to itself."""
        to_itself = self.cabled & (self.a == self.b)
        no_switch = self.cabled & self.host[self.a] & self.host[np.where(self.cabled, self.b, 0)]
        for row in np.flatnonzero(to_itself | no_switch).tolist():
            what = "itself" if to_itself[row] else f"{self._thing(self.b[row])}, a host too"
            text = f"{self._port(row)} is cabled to {what}"
            yield Finding(int(self.line[row]), "odd-link", text, "it is left out", fault=False)

    def one_ended(self) -> Iterator[Finding]:
        """Find links of which the other side prints nothing, or another link.

        Where the link counts, a contradiction is a fault; what hangs on an
        adapter that is not a host is left out anyway.
        """
        here, there, cabled = self.here, self.there, self.cabled
        span = int(max(here.max(), there.max())) + 1 if len(here) else 1
        seen_back = np.isin(here * span + there, (there * span + here)[cabled])
        elsewhere = np.isin(there, here[cabled]) & self.counts
        for row in np.flatnonzero(cabled & ~seen_back).tolist():
            other = bool(elsewhere[row])
            peer = f"port {self.b_port[row]} of {self._thing(self.b[row])}"
            sees = "sees another port" if other else "does not see it"
            text = f"{self._port(row)} sees {peer}, which {sees}"
            kind = "contradicting-link" if other else "one-ended-link"
            hint = "a cable has two ends" if other else "is this an excerpt?"
            yield Finding(int(self.line[row]), kind, text, hint, fault=other)

    def unnamed(self) -> Iterator[Finding]:
        """Count the adapters whose description names no host, by what it says instead."""
        words, called = [], False
        for text, kind, name in zip(
            self.fabric.descriptions, self.fabric.kinds, self.names, strict=True
        ):
            if kind == "host" and not host_name(text) and not text.startswith(_SHARP):
                words.append(" ".join(text.split()[:2]))
                called |= name != ""
        if words:
            some = ", ".join(f"{n} {printable(t)!r}" for t, n in Counter(words).most_common(3))
            what = "adapter names no host" if len(words) == 1 else "adapters name no host"
            then = "hosts are called by the GUIDs of their adapters" if called else "left out"
            text = f"{len(words)} {what} ({some}): {then}"
            hint = "the driver of the host writes its name; ibnetdiscover --node-name-map gives one"
            yield Finding(0, "unnamed-host", text, hint, fault=False)

    def _port(self, row: int) -> str:
        return f"port {self.a_port[row]} of {self._thing(self.a[row])}"

    def _thing(self, end: int) -> str:
        name = self.names[end] or self.fabric.descriptions[end]
        return printable(name or f"0x{list(self.fabric.index)[end]}")


def fabric_lines(lines: Iterable[str], source: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that says something.

    Raises
    ------
    ParseError
        At a line that is far longer than ibnetdiscover prints.
    """
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_LINE:
            raise ParseError(source, number, f"a line of {len(line):,} characters")
        bare = line.strip()
        if bare and bare[0] != "#":
            yield number, bare
