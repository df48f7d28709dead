# SPDX-License-Identifier: Apache-2.0
"""The schema of a site configuration: one Struct per table of the TOML file.

A figure is written as ``{ value = 18, mark = "published", source = "…" }``;
a mark is ``measured`` (on a dump of this machine), ``published`` (by its
site, its vendor or a paper) or ``assumed``.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from msgspec import Meta, Struct

T = TypeVar("T")

Mark = Literal["measured", "published", "assumed"]
Text = Annotated[str, Meta(min_length=1, max_length=400)]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_+-]{0,63}$")]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Whole = Annotated[int, Meta(ge=0, le=1_000_000)]
Extent = Annotated[int, Meta(ge=1, le=1024)]
Nid = Annotated[int, Meta(ge=0, le=10_000_000)]
Amount = Annotated[float, Meta(gt=0, le=1e9)]
NotNegative = Annotated[float, Meta(ge=0, le=1e9)]
Routings = Annotated[list[Name], Meta(min_length=1, max_length=20)]
Selectors = Annotated[list[Text], Meta(max_length=10_000)]
Wiring = Literal["aligned", "consecutive", "same-chassis"]


class StrictTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file in which unknown keys are errors."""


class Figure(Struct, Generic[T], frozen=True, forbid_unknown_fields=True):
    """A figure of a machine, with its provenance."""

    value: T
    mark: Mark  # ``measured``, ``published`` or ``assumed``
    source: Text  # its source: a paper and its section, a dump, a site's guide
    unit: str = ""  # '' where the key or the field says it
    # The 95 % confidence interval of a measured figure
    interval: tuple[float, float] | None = None


class Aries(StrictTable, frozen=True, kw_only=True, tag_field="fabric", tag="aries"):
    """A Cray XC's dragonfly; ``links`` counts the blue links per group pair."""

    groups: Figure[Extent]
    chassis: Figure[Extent] | None = None
    blades: Figure[Extent] | None = None
    nodes: Figure[Extent] | None = None
    wiring: Figure[Wiring]
    links: Figure[Count]


class Gemini(StrictTable, frozen=True, kw_only=True, tag_field="fabric", tag="gemini"):
    """A Cray XE's or XK's torus of routers with two nodes each."""

    extents: Figure[tuple[Extent, Extent, Extent]]


class Slingshot(StrictTable, frozen=True, kw_only=True, tag_field="fabric", tag="slingshot"):
    """An HPE dragonfly; ``links`` per group pair is one number or a table by partition."""

    groups: Figure[Extent]
    wiring: Figure[Wiring]
    links: Figure[Count | list[list[Whole]]]


class DragonflyPlus(
    StrictTable, frozen=True, kw_only=True, tag_field="fabric", tag="infiniband-dragonfly+"
):
    """Groups of leaf and spine routers.

    ``cables`` from each leaf to each spine of its group, ``links`` a group pair.
    """

    groups: Figure[Extent]
    spines: Figure[Extent]
    cables: Figure[Extent]
    links: Figure[Count]


class FatTree(StrictTable, frozen=True, kw_only=True, tag_field="fabric", tag="infiniband"):
    """An InfiniBand fat tree: leaf modules below spines, ``uplinks`` links per leaf."""

    leaves: Figure[Extent]
    leaf_nodes: Figure[Extent]
    spines: Figure[Extent]
    uplinks: Figure[Extent]


Network = Aries | Gemini | Slingshot | DragonflyPlus | FatTree


class Cabinets(StrictTable, frozen=True, kw_only=True):
    """The positions of a Cray's cabinets, and the slots in them without compute nodes.

    The lists hold cnames whose numbers may be ``*``, ``7`` or ``[0-3,9]``; a
    shorter cname means all below it. A service blade of an XC has the
    service nodes n1 and n2 and nothing at n0 and n3.
    """

    columns: Figure[Extent]
    rows: Figure[Extent]
    count: Figure[Count] | None = None
    absent: Figure[Selectors] | None = None
    service_blades: Figure[Selectors] | None = None
    service: Figure[Selectors] | None = None
    vacant: Figure[Selectors] | None = None


class Leaf(StrictTable, frozen=True, kw_only=True):
    """One leaf module of a fat tree and its nodes, folded; none if it has no nodes."""

    name: Name
    nodes: Figure[Text] | None = None
    service: Figure[Text] | None = None


class Nodes(StrictTable, frozen=True, kw_only=True):
    """The number of nodes and their names."""

    compute: Figure[Count]
    service: Figure[Whole] | None = None
    name: Figure[Text] | None = None


class Inside(StrictTable, frozen=True, kw_only=True):
    """The inside of a partition's nodes, beyond the counts in its `Partition`.

    ``numa`` domains and ``l3`` caches of a node, each of as many cores, numbered
    with them; ``threads`` of a core, the first ones of all cores numbered
    first. ``gpu_l3`` or ``gpu_numa``, and ``nic_numa``: what each GPU and NIC is
    next to. ``gpu_links``: two GPUs and the GB/s between them. ``reserved``: cores that the
    system keeps. ``copies``: GB/s between two cores of one L3, one NUMA
    domain, one socket, and of two sockets.
    """

    numa: Figure[Extent]
    l3: Figure[Extent] | None = None
    threads: Figure[Extent] | None = None
    gpu_l3: Figure[list[Whole]] | None = None
    gpu_numa: Figure[list[Whole]] | None = None
    nic_numa: Figure[list[Whole]] | None = None
    gpu_links: Figure[list[tuple[Whole, Whole, Amount]]] | None = None
    reserved: Figure[list[Whole]] | None = None
    copies: Figure[tuple[Amount, Amount, Amount, Amount]] | None = None


class Partition(StrictTable, frozen=True, kw_only=True):
    """Nodes of one kind: their hardware and, on Slingshot and DragonFly+, their groups.

    ``where`` lists cnames as in `Cabinets`; without it the partition is what
    no other partition claims. ``group_nodes`` is one number for all groups of
    the partition (but ``last_group_nodes`` for the last) or a list, one number
    a group. ``group_switches`` are those that nodes
    hang on. The nodes of a chassis (``chassis_nodes``) share its switches
    (``chassis_switches``). ``cabinets`` (``["4000-4020"]``), ``slots`` and
    ``boards`` number the nodes as xnames do, cabinet by cabinet.
    """

    name: Name
    count: Figure[Count] | None = None
    where: Figure[Selectors] | None = None
    sockets: Figure[Count] | None = None
    cores: Figure[Count] | None = None
    memory_gb: Figure[Amount] | None = None
    nics: Figure[Count] | None = None
    gpus: Figure[Whole] | None = None
    features: str = ""
    inside: Inside | None = None
    groups: Figure[Extent] | None = None
    group_nodes: Figure[Count | list[Count]] | None = None
    last_group_nodes: Figure[Count] | None = None
    group_switches: Figure[Extent] | None = None
    chassis_nodes: Figure[Extent] | None = None
    chassis_switches: Figure[Extent] | None = None
    first_nid: Figure[Nid] | None = None
    cabinets: Figure[Selectors] | None = None
    slots: Figure[list[Whole]] | None = None
    boards: Figure[Extent] | None = None
    node_name: Figure[Text] | None = None


class Latency(StrictTable, frozen=True, kw_only=True):
    """Latency constants of the predictor: per message, and per hop."""

    mpi_us: Figure[Amount]
    hop_ns: Figure[Amount]


class SendingFigures(StrictTable, frozen=True, kw_only=True):
    """The share of the network's capacity that programs achieve.

    ``process`` is what one rank sends at most, GB/s; ``payload`` the share of
    the bandwidth between routers that carries a program's bytes; ``memory``
    GB/s at which the ranks of one node copy to each other, all together;
    ``message_us`` and ``nic_us`` the time between two messages of a rank and
    of a node; ``gap_us`` what a step of a staged exchange takes beyond its
    bytes. ``routing`` names the routings that fit what was measured, several
    where they could not be told apart. ``loss`` is how much longer sending takes
    where routers divert all bytes, as a share (`nidmap.placement.network.usual_loss`).
    """

    process: Figure[Amount] | None = None
    payload: Figure[Amount] | None = None
    memory: Figure[Amount] | None = None
    message_us: Figure[Amount] | None = None
    nic_us: Figure[Amount] | None = None
    gap_us: Figure[NotNegative] | None = None
    routing: Figure[Routings] | None = None
    loss: Figure[NotNegative] | None = None


class Software(StrictTable, frozen=True, kw_only=True):
    """The system software: the scheduler whose headers fit, the launcher, the MPI."""

    scheduler: Figure[Literal["slurm", "pbs", "alps"]]
    batch: Figure[Text] | None = None
    launcher: Figure[Literal["srun", "aprun", "mpiexec", "mpirun"]]
    mpi: Figure[Text]


class Config(StrictTable, frozen=True, kw_only=True):
    """A whole site configuration.

    ``stated`` holds what else is stated about the machine: clock rates, peaks,
    measured bandwidths; nothing computes with it.
    """

    name: Name
    title: Text
    place: Text = "-"
    system: Figure[Text]
    network: Network
    nodes: Nodes
    software: Software
    latency: Latency
    sending: SendingFigures = SendingFigures()
    bandwidth: dict[Name, Figure[Amount]]
    cabinets: Cabinets | None = None
    leaf: list[Leaf] = []
    partition: list[Partition] = []
    stated: dict[Name, Figure[Any]] = {}


class PartialLatency(StrictTable, frozen=True, kw_only=True):
    """The measured constants of `Latency`."""

    mpi_us: Figure[Amount] | None = None
    hop_ns: Figure[NotNegative] | None = None


class OverlayConfig(StrictTable, frozen=True, kw_only=True):
    """Figures without a machine, to be overlaid on those of one.

    ``machine`` names what they were measured on, for the reader.
    """

    overlay: Literal[True] = True
    name: Name | None = None
    title: Text | None = None
    machine: Text | None = None
    latency: PartialLatency = PartialLatency()
    sending: SendingFigures = SendingFigures()
    bandwidth: dict[Name, Figure[Amount]] = {}
    stated: dict[Name, Figure[Any]] = {}
