# SPDX-License-Identifier: Apache-2.0
"""Figures without a machine, overlaid on a machine's own: what ``nidmap calibrate`` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import Struct

from nidmap.placement.errors import SiteError, at_line, printable
from nidmap.placement.machine import Links, Machine, Topology
from nidmap.placement.network import routings
from nidmap.placement.sites.schema import Figure, OverlayConfig
from nidmap.placement.sites.shared import line_of
from nidmap.placement.sites.site import figures_in, sending_parameters
from nidmap.placement.support.array_types import Floats
from nidmap.placement.support.arrays import add_by_key
from nidmap.placement.topologies import links
from nidmap.placement.views import attachment_class, injection

#: Parameters of a topology that name what routes it.
ROUTINGS = {"routing", "routings"}


class Overlay(Struct, frozen=True):
    """Figures of a machine that is described elsewhere."""

    config: OverlayConfig  # the file's tables
    source: str = ""  # the file
    text: str = ""  # what is in it, to name lines by

    @property
    def name(self) -> str:
        """Short name, for display."""
        return self.config.name or "figures"

    def figures(self) -> Iterator[tuple[str, Figure[Any]]]:
        """Yield every figure with its dotted key, in the order of the schema."""
        yield from figures_in("", self.config)

    def alone(self) -> SiteError:
        """Return the error for figures without a machine."""
        what = f"{at_line(self.source)}: figures for a machine, not a machine itself"
        return SiteError(what, f"use -m MACHINE -m {self.source}")

    def over(self, machine: Machine) -> Machine:
        """Return the machine with its own figures replaced by these."""
        self._check_classes(machine)
        bandwidth = {key: figure.value for key, figure in self.config.bandwidth.items()}
        known, stated = machine.topology.parameters, self._parameters()
        if ROUTINGS & stated.keys():  # one routing, or several that may be, take each other's place
            known = {key: known[key] for key in known.keys() - ROUTINGS}
        if "mpi_us" in stated:  # a mini-Cray has none of its own
            known = {key: known[key] for key in known.keys() - {"latency"}}
        topology = replace(
            machine.topology,
            bandwidth={**machine.topology.bandwidth, **bandwidth},
            parameters={**known, **stated},
        )
        changed = replace(
            machine,
            topology=topology,
            links=_with_bandwidth(machine.links, machine.topology, bandwidth),
            attachment_gbs=_with_injection(machine, bandwidth),
            sources=(*machine.sources, self.source),
            notes=(*machine.notes, self.sentence()),
            _cache={},
        )
        self._check_routings(changed)
        return changed

    def sentence(self) -> str:
        """Say which figures come from this file and their provenance."""
        marks = dict.fromkeys(figure.mark for _, figure in self._used())
        parts = (
            f"{', '.join(key for key, figure in self._used() if figure.mark == mark)} {mark}"
            for mark in marks
        )
        return f"figures of {self.source}: {'; '.join(parts) or 'none'}"

    def _used(self) -> Iterator[tuple[str, Figure[Any]]]:
        """Yield the figures that computations use."""
        return (item for item in self.figures() if not item[0].startswith("stated."))

    def _parameters(self) -> dict[str, Any]:
        latency = self.config.latency
        parameters = {
            name: figure.value
            for name in latency.__struct_fields__
            if (figure := getattr(latency, name)) is not None
        }
        if parameters:
            parameters["latency_source"] = printable(self.source, limit=4096)
        return {**parameters, **sending_parameters(self.config.sending)}

    def _check_classes(self, machine: Machine) -> None:
        known = {*machine.topology.bandwidth, "injection", "ejection"}
        for key in self.config.bandwidth:
            if key not in known:
                known |= {*links(machine).kinds}
                known |= {"up"} if any(kind.startswith("up") for kind in known) else set()
            if key not in known:
                there = ", ".join(sorted(known))
                raise self._wrong(
                    f"bandwidth.{key}", f"not a link class of {machine.name}; choose from {there}"
                )

    def _check_routings(self, machine: Machine) -> None:
        figure = self.config.sending.routing
        known = routings(machine) if figure else ()
        for name in figure.value if figure else ():
            if name not in known:
                text = f"unknown routing '{name}' on {machine.name}; choose from {', '.join(known)}"
                raise self._wrong("sending.routing", text)

    def _wrong(self, key: str, text: str) -> SiteError:
        where = at_line(self.source, line_of(self.text, key))
        return SiteError(f"{where}: {key}: {text}")


def _with_bandwidth(
    links: Links | None, topology: Topology, figures: dict[str, float]
) -> Links | None:
    """Scale listed links so that their class's figure becomes the new one."""
    if links is None:
        return None
    row = np.repeat(np.arange(len(links)), links.count)
    rates = links.rates().copy()
    for index, kind in enumerate(links.kinds):
        mine = links.kind[row] == index
        figure, before = _of_class(figures, kind), _of_class(topology.bandwidth, kind)
        if figure:
            scaled = rates[mine] * (figure / before if before else np.nan)
            rates[mine] = np.where(np.isfinite(scaled), scaled, figure)
    cable = None if links.cable is None else rates
    return replace(links, bandwidth=add_by_key(row, rates, len(links)), cable=cable)


def _with_injection(machine: Machine, figures: dict[str, float]) -> Floats | None:
    """Scale the rates of nodes' cables so that their figure becomes the new one."""
    kind = attachment_class(machine)
    figure = figures.get("injection", _of_class(figures, kind))
    before = injection(machine)
    if machine.attachment_gbs is None or not figure or not np.isfinite(before):
        return machine.attachment_gbs
    return machine.attachment_gbs * (figure / before)


def _of_class(figures: Mapping[str, float], kind: str) -> float:
    """Return a link class's figure; a level falls back on that of all uplinks; 0 for none."""
    return figures.get(kind, figures.get("up", 0.0) if kind.startswith("up") else 0.0)
