# SPDX-License-Identifier: Apache-2.0
"""A site: its configuration, and the topology, nodes and hardware derived from it.

One module a fabric lays the nodes out. Every contradiction between the figures (6,174
nodes said, 6,170 places left) is raised as `WrongFigure` with the figure's key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any

from msgspec import Struct

from nidmap.placement.machine import COPY_GBS, Core, Device, NodeHardware, Topology
from nidmap.placement.records import Dump, LineCounts, NodeRecords
from nidmap.placement.sites.schema import Config, Figure, Partition, SendingFigures
from nidmap.placement.sites.shared import SiteLayout, WrongFigure, whole_figure

#: Bandwidths that each fabric may state, by link class.
CLASSES = {
    "aries": ("injection", "ejection", "green", "black", "blue"),
    "gemini": ("injection", "ejection", "x", "y", "y-cable", "z", "z-cable"),
    "slingshot": ("injection", "ejection", "local", "global"),
    "infiniband": ("injection", "ejection", "up"),
    "infiniband-dragonfly+": ("injection", "ejection", "local", "global"),
}

_MODULES = {
    "aries": "cray_floor",
    "gemini": "cray_floor",
    "slingshot": "slingshot",
    "infiniband": "leaves",
}
_MODULES |= {"infiniband-dragonfly+": "slingshot"}


class Site(Struct, frozen=True, dict=True):
    """A machine as described by its site configuration."""

    config: Config  # the file's tables
    source: str = ""  # the file

    @property
    def name(self) -> str:
        """Short name, as given to ``-m``."""
        return self.config.name

    @property
    def scheduler(self) -> str:
        """``slurm``, ``pbs`` or ``alps``."""
        return self.config.software.scheduler.value

    @property
    def batch(self) -> str:
        """What takes job scripts instead of the scheduler: ``torque``, ``cobalt``; else ''."""
        batch = self.config.software.batch
        return "" if batch is None else batch.value.partition("/")[0].lower()

    @cached_property
    def layout(self) -> SiteLayout:
        """The machine's nodes in columns, and the topology, computed once."""
        return lay_out(self.config)

    def topology(self) -> Topology:
        """Return the network: extents, wiring, bandwidths, parameters."""
        return self.layout.topology

    @cached_property
    def hardware(self) -> tuple[NodeHardware, ...]:
        """The node hardware of every partition that states it.

        Figures that do not go together raise `WrongFigure`.
        """
        parts = (part for part in self.config.partition if part.inside)
        return tuple(
            _stated_hardware(part, f"partition {part.name} of {self.name}") for part in parts
        )

    def records(self) -> Dump:
        """Return the nodes that the configuration describes, in the form a reader returns.

        Format ``site``; rows in NID order where there are NIDs. ``parameters["attachments"]``,
        where a node has several NICs: int64 (n, k), the group's switches that they sit on, -1 for
        none.
        """
        layout = self.layout
        several = layout.attachments is not None
        return Dump(
            format="site",
            kind="site",
            source=self.source or self.name,
            counts=LineCounts(rows=len(layout.nodes)),
            nodes=layout.nodes,
            fabric=layout.topology.fabric,
            parameters={"attachments": layout.attachments} if several else {},
        )

    def figures(self) -> Iterator[tuple[str, Figure[Any]]]:
        """Yield every figure with its dotted key, in the order of the schema."""
        yield from figures_in("", self.config)


def figures_in(key: str, value: object) -> Iterator[tuple[str, Figure[Any]]]:
    """Yield the figures in a Struct, a mapping or a list of named Structs."""
    if isinstance(value, Figure):
        yield key, value
        return
    below: Iterable[tuple[str, object]] = ()
    if isinstance(value, Struct):
        below = ((name, getattr(value, name)) for name in value.__struct_fields__)
    elif isinstance(value, dict):
        below = value.items()
    elif isinstance(value, list):
        below = ((getattr(item, "name", ""), item) for item in value)
    for name, item in below:
        yield from figures_in(f"{key}.{name}" if key else name, item)


def fabric(config: Config) -> str:
    """Return the name of the fabric: ``aries``, ``gemini``, ``slingshot``, ``infiniband``, …."""
    return str(type(config.network).__struct_config__.tag)


def lay_out(config: Config) -> SiteLayout:
    """Return the topology and the nodes of a configuration."""
    module = import_module(f"nidmap.placement.sites.{_MODULES[fabric(config)]}")
    layout: SiteLayout = module.lay_out(config, config.network)
    _count_nodes(config, layout.nodes)
    return layout._replace(topology=_with_constants(config, layout.topology))


def sending_parameters(sending: SendingFigures) -> dict[str, Any]:
    """Return the share that programs achieve as topology parameters, with provenance.

    ``routing`` where one is known, ``routings`` where several may be.
    """
    parameters = {
        f"{name}{suffix}": value
        for name in sending.__struct_fields__
        if (figure := getattr(sending, name)) is not None
        for suffix, value in (("", figure.value), ("_mark", figure.mark))
    }
    if (fits := parameters.pop("routing", None)) is not None:
        parameters |= {"routing": fits[0]} if len(fits) == 1 else {"routings": fits}
    return parameters


def _count_nodes(config: Config, nodes: NodeRecords) -> None:
    """Raise if the number of nodes differs from the one stated in the file."""
    assert nodes.role is not None
    for role, figure in (("compute", config.nodes.compute), ("service", config.nodes.service)):
        count = int((nodes.role == role).sum())
        if figure is not None and figure.value != count:
            text = f"{figure.value} stated, but the places described hold {count}"
            raise WrongFigure(f"nodes.{role}", text)


def _with_constants(config: Config, topology: Topology) -> Topology:
    """Add what every fabric has: its name, bandwidths and latencies."""
    name = fabric(config)
    for key in config.bandwidth:
        if key not in CLASSES[name]:
            text = f"not a link class of {name}; choose from {', '.join(CLASSES[name])}"
            raise WrongFigure(f"bandwidth.{key}", text)
    mpi = {"mpi": config.software.mpi.value}
    latency = {"mpi_us": config.latency.mpi_us.value, "hop_ns": config.latency.hop_ns.value}
    reached = sending_parameters(config.sending)
    return replace(
        topology,
        fabric=name.partition("-")[0],
        bandwidth={key: figure.value for key, figure in config.bandwidth.items()},
        parameters={**topology.parameters, **latency, **reached, **mpi},
    )


def _stated_hardware(part: Partition, source: str) -> NodeHardware:
    """Return a partition's node hardware in the form a `Machine` has it."""
    inside = part.inside
    assert inside is not None
    key = f"partition.{part.name}.inside"
    count = whole_figure(part.cores)
    sockets, domains = whole_figure(part.sockets) or 1, inside.numa.value
    caches = inside.l3.value if inside.l3 else domains
    threads = inside.threads.value if inside.threads else 1
    for name, outer, inner in (("numa", sockets, domains), ("l3", domains, caches)):
        if inner % outer or count % inner:
            text = f"{inner} do not divide {count} cores and {outer} of what they are in"
            raise WrongFigure(f"{key}.{name}", text)
    cores = tuple(
        Core(
            tuple(core + thread * count for thread in range(threads)),
            core * caches // count,
            core * domains // count,
            core * sockets // count,
        )
        for core in range(count)
    )
    of_gpus = inside.gpu_l3 or inside.gpu_numa
    where = "gpu_l3" if inside.gpu_l3 else "gpu_numa"
    gpus = _node_devices(
        f"{key}.{where}", "gpu", of_gpus, whole_figure(part.gpus), cores, where[4:]
    )
    links = inside.gpu_links.value if inside.gpu_links else []
    if any(a >= len(gpus) or b >= len(gpus) for a, b, _ in links):
        raise WrongFigure(f"{key}.gpu_links", f"a GPU beyond the {len(gpus)} of a node")
    reserved = inside.reserved.value if inside.reserved else []
    if any(core >= count for core in reserved):
        raise WrongFigure(f"{key}.reserved", f"a core beyond the {count} of a node")
    nics = _node_devices(
        f"{key}.nic_numa", "nic", inside.nic_numa, whole_figure(part.nics), cores, "numa"
    )
    copies = inside.copies
    return NodeHardware(
        cores,
        gpus,
        nics,
        tuple((min(a, b), max(a, b), gbs) for a, b, gbs in links),
        tuple(sorted(set(reserved))),
        copies.value if copies else COPY_GBS,
        copies.mark if copies else "assumed",
        source,
    )


def _node_devices(
    key: str,
    kind: str,
    near_units: Figure[list[int]] | None,
    count: int,
    cores: tuple[Core, ...],
    level: str,
) -> tuple[Device, ...]:
    """Return a node's GPUs or NICs; near all cores if nothing is stated."""
    all_cores = tuple(range(len(cores)))
    if near_units is None:
        return tuple(Device(f"{kind}{k}", all_cores) for k in range(count))
    if len(near_units.value) != count:
        raise WrongFigure(key, f"{len(near_units.value)} numbers for the {count} {kind}s of a node")
    near = [tuple(k for k in all_cores if getattr(cores[k], level) == n) for n in near_units.value]
    if not all(near):
        raise WrongFigure(key, f"a number beyond those of the node's {level} domains")
    return tuple(Device(f"{kind}{k}", some) for k, some in enumerate(near))
