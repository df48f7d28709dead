# SPDX-License-Identifier: Apache-2.0
"""Cables between hosts and switches, from any tool: which ends they join, and what is wrong.

A reader names the ends (`Cables.end`) and their ports (`Cables.port`) as they are printed;
`Cables.dump` judges them and makes hosts, switches and links of them. An end is known by a key
of its own, since names repeat; ports are numbers or words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.records import Dump, Finding, LineCounts, LinkRecords, NodeRecords
from nidmap.placement.support.array_types import Array, Ints


class _Port(NamedTuple):
    """A port as printed: its own end, the other end (-1: no cable), GB/s per direction."""

    line: int
    a: int
    a_port: int | str
    b: int
    b_port: int | str
    gbs: float

    @property
    def here(self) -> tuple[int, int | str]:
        """The port's own end and number."""
        return self.a, self.a_port

    @property
    def there(self) -> tuple[int, int | str]:
        """The far ends of the cables."""
        return self.b, self.b_port


class Cables:
    """Collects the ends and ports in a dump, which `dump` then checks.

    Ends are numbered in the order in which they appear.

    Attributes
    ----------
    index : dict of str to int
        The number of each end by its key.
    kinds : list of str
        ``switch``, ``host`` or ``other`` (router, gateway).
    descriptions : list of str
    fabric : str
        Name of the fabric (`nidmap.placement.fabrics`).
    hint : str
        What to do where no host is in it.
    both_ends : bool
        True where every end lists its own ports; False where some are only seen by others.

    Examples
    --------
    >>> cables = Cables("ethernet")
    >>> leaf, node = cables.end("a", "switch", "leaf1"), cables.end("b", "host", "n1")
    >>> cables.port(1, leaf, "swp1", node, "eth0")
    >>> dump = cables.dump(LineCounts(1))
    >>> dump.nodes.name.tolist(), dump.nodes.router.tolist(), dump.links.a_port.tolist()
    (['n1'], ['leaf1'], ['swp1'])
    """

    def __init__(
        self, fabric: str, hint: str = "is this the whole fabric?", both_ends: bool = True
    ) -> None:
        self.fabric, self.hint, self.both_ends = fabric, hint, both_ends
        self.index: dict[str, int] = {}
        self.kinds: list[str] = []
        self.descriptions: list[str] = []
        self.ports: list[_Port] = []

    def end(self, key: str, kind: str, description: str) -> int:
        """Return the number of the switch or host with this key.

        Parameters
        ----------
        key : str
            Tells it from all others: a GUID, an address.
        kind : str
            ``switch``, ``host`` (one of its adapters) or ``other`` (router, gateway).
        description : str
            What it calls itself; '' where that is elsewhere.
        """
        number = self.index.setdefault(key, len(self.kinds))
        if number == len(self.kinds):
            self.kinds.append(kind)
            self.descriptions.append(description.strip())
        elif not self.descriptions[number]:
            self.descriptions[number] = description.strip()
        return number

    def port(
        self,
        line: int,
        a: int,
        a_port: int | str,
        b: int = -1,
        b_port: int | str = -1,
        gbs: float = math.nan,
    ) -> None:
        """Add a port as printed: its own end, the other end (-1: no cable), GB/s per direction."""
        self.ports.append(_Port(line, a, a_port, b, b_port, gbs))

    def host(self, description: str) -> str:
        """Return the host named in a description; '' if there is none."""
        return description

    def adapter(self, end: int, port: int | str) -> str:
        """Return the host's name for the adapter at a port of this end; '' if unknown."""
        return ""

    def lid(self, end: int, port: int | str) -> int:
        """Return InfiniBand's address of a port of this end; 0 if unknown."""
        return 0

    def names(self) -> list[str]:
        """Return each end's name: a switch's own, or an adapter's host or ''."""
        ends = list(zip(self.index, self.kinds, self.descriptions, strict=True))
        shared = Counter(text for _, kind, text in ends if kind == "switch")
        names = []
        for key, kind, text in ends:
            alone = text if text and shared[text] == 1 else f"{text} {key}".strip()
            names.append({"switch": alone, "host": self.host(text)}.get(kind, ""))
        return names

    def remarks(self) -> Iterator[Finding]:
        """Yield remarks specific to the format."""
        yield from ()

    def dump(self, counts: LineCounts) -> Dump:
        """Return hosts, switches and links.

        Parameters
        ----------
        counts : LineCounts
            The lines of the file by kind.

        Returns
        -------
        Dump
            `nodes` are the hosts that have a cable to a switch, ``router``
            the switch of the first and ``nics`` their number (a port of a
            switch has one cable, whatever hangs on it); `links` has
            every printed end between switches, and between hosts and
            switches; `routers` all switches.
        """
        view = _PortTable(self)
        ends = zip(view.names, self.kinds, strict=True)
        switches = [name for name, kind in ends if kind == "switch"]
        nodes = view.hosts()
        faults = [*view.double_ports(), *view.odd_links(), *view.one_ended(), *self.remarks()]
        if nodes is None:
            text = "no host with a cable to a switch in it"
            faults.insert(0, Finding(0, "no-nodes", text, self.hint))
        return Dump(
            counts,
            nodes=nodes,
            links=view.links(),
            routers=np.array(switches) if switches else None,
            fabric=self.fabric,
            findings=faults,
        )


class _PortTable:
    """The ports as numpy columns."""

    def __init__(self, cables: Cables) -> None:
        self.cables = cables
        self.names = cables.names()
        self.name, kinds = np.array(self.names or [""]), np.array(cables.kinds or [""])
        columns = [*zip(*cables.ports, strict=True)] or [()] * 6
        self.line, self.a, self.b = (np.array(columns[k], dtype=np.int64) for k in (0, 1, 3))
        self.a_port, self.b_port, self.gbs = (np.array(columns[k]) for k in (2, 4, 5))
        self.host, self.cabled = kinds == "host", self.b >= 0
        far, named = np.where(self.cabled, self.b, 0), self.name != ""
        one_switch = (kinds[self.a] == "switch") | (kinds[far] == "switch")
        self.counts = self.cabled & one_switch & named[self.a] & named[far] & (self.a != self.b)
        self.kept = np.flatnonzero(self.counts)

    def links(self) -> LinkRecords | None:
        """Return every printed end of a usable link."""
        rows = self.kept
        if not len(rows):
            return None
        a, b, infiniband = self.a[rows], self.b[rows], self.cables.fabric == "infiniband"
        return LinkRecords(
            line=self.line[rows].astype(np.int32),
            a=self.name[a],
            b=self.name[b],
            a_port=_printed_ports(self.a_port[rows]),
            b_port=_printed_ports(self.b_port[rows]),
            kind=np.full(len(rows), "ib" if infiniband else "cable"),
            host_a=self.host[a],
            host_b=self.host[b],
            bandwidth=self.gbs[rows],
            adapter=np.array([self._adapter(row) for row in rows.tolist()], dtype=np.str_),
            **(self._addresses(rows) if infiniband else {}),
        )

    def _addresses(self, rows: Ints) -> dict[str, Any]:
        ports, guids = (self.cables.ports[row] for row in rows.tolist()), list(self.cables.index)
        lids = np.array([self.cables.lid(*port.here) for port in ports], dtype=np.int32)
        return {"guid": np.array(guids)[self.a[rows]], "lid": lids}

    def _adapter(self, row: int) -> str:
        port = self.cables.ports[row]
        for end in (port.here, port.there):
            if self.host[end[0]]:
                return self.cables.adapter(*end)
        return ""

    def hosts(self) -> NodeRecords | None:
        """Return the hosts that have a link, in the order of the lines."""
        first: dict[str, tuple[int, int]] = {}  # line and switch of each host's first cable
        attached: dict[str, set[tuple[int, int | str]]] = {}
        for port in (self.cables.ports[row] for row in self.kept.tolist()):
            for end, switch in ((port.a, port.there), (port.b, port.here)):
                if self.host[end]:
                    first.setdefault(self.names[end], (port.line, switch[0]))
                    attached.setdefault(self.names[end], set()).add(switch)
        if not first:
            return None
        lines, switches = zip(*first.values(), strict=True)
        return NodeRecords(
            line=np.array(lines, dtype=np.int32),
            name=np.array([*first]),
            router=self.name[list(switches)],
            nics=np.array([*map(len, attached.values())], dtype=np.int32),
        )

    def double_ports(self) -> Iterator[Finding]:
        """Find ports that are printed twice, although a port has only one cable."""
        first: dict[tuple[int, int | str], _Port] = {}
        for port in self.cables.ports:
            earlier = first.setdefault(port.here, port)
            if earlier is not port:
                same = earlier.there == port.there
                text = f"{self._called(*port.here)} is already on line {earlier.line}"
                hint = "the same again" if same else "with another cable: a port has one"
                yield Finding(port.line, "duplicate-port", text, hint, fault=not same)

    def odd_links(self) -> Iterator[Finding]:
        """Find cables between hosts, and from a device to itself."""
        to_itself = self.cabled & (self.a == self.b)
        no_switch = self.cabled & self.host[self.a] & self.host[np.where(self.cabled, self.b, 0)]
        for row in np.flatnonzero(to_itself | no_switch).tolist():
            port = self.cables.ports[row]
            what = "itself" if to_itself[row] else f"{self._thing(port.b)}, a host too"
            text = f"{self._called(*port.here)} is cabled to {what}"
            yield Finding(port.line, "odd-link", text, "it is left out", fault=False)

    def one_ended(self) -> Iterator[Finding]:
        """Find links whose other end is not printed, or printed with another link.

        Where the link counts, a contradiction is a fault; what hangs on an
        adapter that is not a host is left out anyway.
        """
        cabled = [(row, port) for row, port in enumerate(self.cables.ports) if port.b >= 0]
        links = {(port.here, port.there) for _, port in cabled}
        listed, ends = {port.here for _, port in cabled}, {port.a for port in self.cables.ports}
        for row, port in cabled:
            known = self.cables.both_ends or port.b in ends
            if known and (port.there, port.here) not in links:
                other = port.there in listed and bool(self.counts[row])
                sees = "sees another port" if other else "does not see it"
                text = f"{self._called(*port.here)} sees {self._called(*port.there)}, which {sees}"
                kind = "contradicting-link" if other else "one-ended-link"
                hint = "a cable has two ends" if other else "is this an excerpt?"
                yield Finding(port.line, kind, text, hint, fault=other)

    def _called(self, end: int, port: int | str) -> str:
        return f"port {port} of {self._thing(end)}"

    def _thing(self, end: int) -> str:
        name = self.names[end] or self.cables.descriptions[end]
        return name or list(self.cables.index)[end]


def _printed_ports(ports: Array) -> Array:
    """Return ports as records hold them: numbers in 32 bits, strings unchanged."""
    return ports if ports.dtype.kind == "U" else ports.astype(np.int32)
