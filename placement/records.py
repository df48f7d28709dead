# SPDX-License-Identifier: Apache-2.0
"""The output of a reader: the records of one dump, before they become a `Machine`.

A reader knows one format and nothing of any machine. It fills the columns
that its format has, leaves the others None, and keeps for each record the
line it was on, so that whoever finds a contradiction later can point at it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nidmap.placement.errors import ParseError, at_line, printable_message
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.array_types import Array, Floats, Ints, Ints32, Mask, Strs

#: States (of a dump or of Slurm) in which a node may be planned on.
FREE_STATES = ("up", "idle", "powering_up", "powered_down")
#: Those of them in which a node has to boot before its job begins.
BOOTING_STATES = ("powering_up", "powered_down")


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault and its location: in a dump, between dumps, or in the resulting machine."""

    line: int  # from 1; 0 where no single line is to blame
    # A short stable word for it: ``hex``, ``duplicate-nid``, ``coordinates``, ``one-ended-link``,
    # ``contradiction``, ``hole``, ``note`` …
    kind: str
    text: str  # the fault, in one line
    hint: str = ""  # a remedy
    # True where no machine can be made (``plan`` refuses it, ``machine check`` lists it); False for
    # a remark: worth knowing and normal, as a hole is
    fault: bool = True
    source: str = ""  # file, site or spec; readers leave it to their `Dump`

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        word = "fault" if self.fault else "remark"
        text = f"{at_line(self.source, self.line)}: {word}: {self.text}{hint}"
        return printable_message(text)

    def error(self) -> ParseError:
        """Return the error that refuses the source because of this."""
        return ParseError(self.source, self.line, self.text, self.hint)

    @classmethod
    def of(cls, error: ParseError, kind: str) -> Finding:
        """Return the text of an error as a finding."""
        return cls(error.line, kind, error.text, error.hint, source=error.source)


@dataclass(frozen=True, slots=True)
class LineCounts:
    """Counts of a dump's lines; ``rows + comments + headers + blank`` covers all of them."""

    rows: int
    comments: int = 0
    headers: int = 0
    blank: int = 0

    @property
    def total(self) -> int:
        """Number of lines in the dump."""
        return self.rows + self.comments + self.headers + self.blank


@dataclass(frozen=True, slots=True, eq=False)
class NodeRecords:
    """One row per node, in the order of the dump; columns of equal length n."""

    # (n,), line of the dump that the record was on (0 where lines mean nothing, as in JSON)
    line: Ints32
    nid: Ints | None = None  # (n,), node identifiers, -1 where one node has none
    name: Strs | None = None  # (n,), host names as Slurm knows them (``nid00045``, ``node018``)
    cname: Strs | None = None  # (n,), Cray cnames or HPE xnames, lower case
    role: Strs | None = None  # (n,), ``compute`` or ``service``
    # (n,), lower-case word as printed, suffixes stripped: ``up``, ``down``, ``admindown``,
    # ``idle``, ``allocated`` …; '' where the dump gives none
    state: Strs | None = None
    # (n,), ``interactive``, ``batch``, ``other``; '' where the dump gives none
    mode: Strs | None = None
    # (n, 3), x, y, z as printed (what they mean depends on the network)
    coords: Ints32 | None = None
    # (n, levels), coordinates in the levels of a topology, where a site config states them
    position: Ints32 | None = None
    # (n,), name of the router or switch that the node is attached to, if the dump says
    router: Strs | None = None
    # sockets, cores, memory_mb, nics, gpus: (n,), of the node; 0 where unknown
    sockets: Ints32 | None = None
    cores: Ints32 | None = None
    memory_mb: Ints | None = None
    nics: Ints32 | None = None
    gpus: Ints32 | None = None
    features: Strs | None = None  # (n,), Slurm features, comma-separated
    # (n,), True where backfill has promised the node (suffix ``-`` of sinfo)
    planned: Mask | None = None
    weight: Ints | None = None  # (n,), Slurm's node weight

    def __len__(self) -> int:
        return len(self.line)


@dataclass(frozen=True, slots=True, eq=False)
class LinkRecords:
    """One row per link end as printed: the port of `a` connects to the port of `b`."""

    line: Ints32  # (m,)
    # a, b: (m,), names of the routers or hosts at the two ends (``c0-0c0s0a0``, a Gemini
    # ``c0-0c0s0g0``, an InfiniBand switch's name)
    a: Strs
    b: Strs
    # a_port, b_port: (m,), port or tile (a tile's octal digits as a number: l57 is 47)
    a_port: Array
    b_port: Array
    kind: Strs  # (m,), ``green``, ``black``, ``blue``; ``x+`` … ``z-``; ``ib``, ``cable``
    # coords_a, coords_b: (m, 3), router coordinates where the dump prints them: (group, chassis,
    # slot) on Aries, (x, y, z) on Gemini
    coords_a: Ints32 | None = None
    coords_b: Ints32 | None = None
    # host_a, host_b: (m,), True where that end is a host (an HCA), not a switch
    host_a: Mask | None = None
    host_b: Mask | None = None
    # (m,), GB/s per direction of this one link, where the dump says; NaN unknown
    bandwidth: Floats | None = None
    # (m,), the adapter at the end that is a host (``mlx5_0``, ``eth1``; ``mlx5_0/2`` of its second
    # port); '' where it has no name, and between switches
    adapter: Strs | None = None
    # (m,), how `a` and its port are known to InfiniBand's own tools: the GUID of the node, ``0x``
    # and 16 digits, and the port's LID, 0 where it is not printed
    guid: Strs | None = None
    lid: Ints32 | None = None

    def __len__(self) -> int:
        return len(self.line)

    def host_ends(self) -> Mask:
        """Return which links have a host at one end."""
        out = np.zeros(len(self), dtype=np.bool_)
        for hosts in (self.host_a, self.host_b):
            out |= False if hosts is None else hosts
        return out

    def host_cables(self) -> dict[tuple[str, int | str], tuple[str, float]]:
        """Return each host cable once: host and GB/s (NaN: unknown) by switch and port."""
        gbs = np.full(len(self), np.nan) if self.bandwidth is None else self.bandwidth
        ends = zip(self.a.tolist(), self.a_port.tolist(), self.b.tolist(), self.b_port.tolist(),
                   gbs.tolist(), strict=True)  # fmt: skip
        first = np.zeros(len(self), dtype=np.bool_) if self.host_a is None else self.host_a
        cables: dict[tuple[str, int | str], tuple[str, float]] = {}
        for a_host, host_link, (a, a_port, b, b_port, rate) in zip(
            first.tolist(), self.host_ends().tolist(), ends, strict=True
        ):
            if host_link:
                host, switch = (a, (b, b_port)) if a_host else (b, (a, a_port))
                cables.setdefault(switch, (host, rate))
        return cables


@dataclass(frozen=True, slots=True)
class SwitchRecord:
    """One switch, block or ring of a Slurm topology."""

    name: str
    nodes: tuple[str, ...] = ()  # names of the nodes directly below, in the order given
    children: tuple[str, ...] = ()  # names of the switches directly below
    line: int = 0
    level: int = -1  # 0 for a leaf; -1 where the dump does not say
    uplinks: int = 1  # cables to what is above: as many as there are parallel switches there


@dataclass(frozen=True, slots=True, eq=False)
class Dump:
    """The contents of one dump.

    Attributes
    ----------
    counts : LineCounts
        Every line accounted for.
    nodes : NodeRecords or None
    links : LinkRecords or None
    switches : tuple of SwitchRecord
        Slurm's topology, empty where the format has none.
    routers : str (r,) or None
        Every router named, also those without a link.
    fabric : str
        ``aries``, ``gemini``, ``slingshot``, ``infiniband``, ``tree``,
        ``block``, ``ring``, ``flat`` where the format says; ''
        where it does not.
    parameters : mapping
        What else the format states (block sizes, torus extents).
    findings : sequence of Finding
        What the reader itself can see to be wrong, or worth a remark; kept by line, faults
        first.
    source : str
        File name as given, ``-`` for standard input.
    format, kind, scheduler : str
        Of its format (`nidmap.placement.readers`). The registry of formats fills in these and
        `source`, a reader leaves them out.
    """

    counts: LineCounts
    nodes: NodeRecords | None = None
    links: LinkRecords | None = None
    switches: tuple[SwitchRecord, ...] = ()
    routers: Strs | None = None
    fabric: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    source: str = ""
    format: str = ""
    kind: str = ""
    scheduler: str = ""

    def __post_init__(self) -> None:
        in_order = sorted(self.findings, key=lambda finding: (finding.line, not finding.fault))
        findings = tuple(replace(finding, source=self.source) for finding in in_order)
        object.__setattr__(self, "findings", findings)

    @property
    def lists_jobs(self) -> bool:
        """True if it names the nodes that jobs hold; the states of others are unknown."""
        return bool(self.parameters.get("jobs"))


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job that has or had nodes."""

    id: str  # ``4711``; ``4711_3`` of an array, ``4711+1`` of a heterogeneous job
    nodes: NodeList
    # name, user: as written by the user: any characters, to be escaped wherever they are shown; ''
    # if no safe source has them.
    name: str = ""
    user: str = ""
    partition: str = ""  # Slurm's partition, PBS's queue
    # start, end: unix time in seconds; NaN for a start that is not known, inf for a job that runs
    start: float = math.nan
    end: float = math.inf
    state: str = ""  # Slurm's word, ``COMPLETED``; '' where unknown
    ppn: int = 0  # ranks per node; 0 where unknown
    submit: float = math.nan  # Unix time in seconds; NaN where unknown
    limit: float = math.nan  # seconds that the job asked for; NaN where unknown
