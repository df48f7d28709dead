"""From figures to nodes: the rows and the topology that a configuration states.

One module a fabric. Every contradiction between the figures (6,174 nodes
said, 6,170 places left) is raised as `WrongFigure` with the figure's key.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from placement.machine import Topology
from placement.records import NodeRecords
from placement.sites.schema import Config, Sending
from placement.sites.shared import Layout, WrongFigure

__all__ = ["CLASSES", "fabric", "lay_out", "sending_parameters"]

#: Bandwidths that each fabric may state, by link class.
CLASSES = {
    "aries": ("injection", "ejection", "green", "black", "blue"),
    "gemini": ("injection", "ejection", "x", "y", "y-cable", "z", "z-cable"),
    "slingshot": ("injection", "ejection", "local", "global"),
    "infiniband": ("injection", "ejection", "up"),
    "infiniband-dragonfly+": ("injection", "ejection", "local", "global"),
}

_MODULES = {"aries": "cray", "gemini": "cray", "slingshot": "slingshot", "infiniband": "leaves"}
_MODULES |= {"infiniband-dragonfly+": "slingshot"}


def fabric(config: Config) -> str:
    """Return ``aries``, ``gemini``, ``slingshot``, ``infiniband`` or that with its topology."""
    return str(type(config.network).__struct_config__.tag)


def lay_out(config: Config) -> Layout:
    """Return the topology and the nodes of a configuration.

    Raises
    ------
    WrongFigure
        Figures that are missing, impossible or contradict each other.
    """
    module = import_module(f"placement.sites.{_MODULES[fabric(config)]}")
    found: Layout = module.lay_out(config, config.network)
    _count_nodes(config, found.nodes)
    return found._replace(topology=_with_constants(config, found.topology))


def sending_parameters(sending: Sending) -> dict[str, Any]:
    """Return what programs reach as parameters of a topology: each figure, and its mark.

    ``routing`` where one is known, ``routings`` where several may be.

    Examples
    --------
    >>> from placement.sites.schema import Figure
    >>> sending_parameters(Sending(process=Figure(2.0, "published", "a paper")))
    {'process': 2.0, 'process_mark': 'published'}
    """
    found = {
        f"{name}{suffix}": value
        for name in sending.__struct_fields__
        if (figure := getattr(sending, name)) is not None
        for suffix, value in (("", figure.value), ("_mark", figure.mark))
    }
    if (fits := found.pop("routing", None)) is not None:
        found |= {"routing": fits[0]} if len(fits) == 1 else {"routings": fits}
    return found


def _count_nodes(config: Config, nodes: NodeRecords) -> None:
    """Raise where the nodes are not as many as the file says."""
    assert nodes.role is not None
    for role, figure in (("compute", config.nodes.compute), ("service", config.nodes.service)):
        found = int((nodes.role == role).sum())
        if figure is not None and figure.value != found:
            text = f"{figure.value} said, but the places described hold {found}"
            raise WrongFigure(f"nodes.{role}", text)


def _with_constants(config: Config, topology: Topology) -> Topology:
    """Add what every fabric has: its name, bandwidths and latencies."""
    name = fabric(config)
    for key in config.bandwidth:
        if key not in CLASSES[name]:
            there = ", ".join(CLASSES[name])
            raise WrongFigure(f"bandwidth.{key}", f"no link class of {name}; there are {there}")
    mpi = {"mpi": config.software.mpi.value}
    latency = {"mpi_us": config.latency.mpi_us.value, "hop_ns": config.latency.hop_ns.value}
    reached = sending_parameters(config.sending)
    return replace(
        topology,
        fabric=name.partition("-")[0],
        bandwidth={key: figure.value for key, figure in config.bandwidth.items()},
        parameters={**topology.parameters, **latency, **reached, **mpi},
    )
