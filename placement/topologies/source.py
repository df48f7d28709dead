# SPDX-License-Identifier: Apache-2.0
"""What describes a network besides dumps: a site's configuration or a synthetic spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from nidmap.placement.records import Dump, LineCounts, NodeRecords

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine, NodeHardware, Topology


class Source(Protocol):
    """The base that dumps are added to: a `Site` or a `SyntheticSite`."""

    @property
    def name(self) -> str:
        """Its name, for messages."""

    @property
    def scheduler(self) -> str:
        """``slurm``, ``pbs`` … or ''."""

    @property
    def batch(self) -> str:
        """The program that takes job scripts if it is not the scheduler, else ''."""

    @property
    def hardware(self) -> tuple[NodeHardware, ...]:
        """The hardware of its nodes."""

    def topology(self) -> Topology:
        """Return its network."""

    def records(self) -> Dump:
        """Return its nodes."""


@dataclass(frozen=True)
class SyntheticSite:
    """A synthetic machine in the role of a site, to which dumps add states or switches."""

    machine: Machine
    # scheduler, batch: '' means none is known
    scheduler: str = ""
    batch: str = ""
    hardware: tuple[NodeHardware, ...] = ()  # nor is this

    @property
    def name(self) -> str:
        """The spec."""
        return self.machine.name

    def topology(self) -> Topology:
        """Return the spec's topology."""
        return self.machine.topology

    def records(self) -> Dump:
        """Return the spec's nodes, each with its position."""
        machine = self.machine
        nodes = NodeRecords(
            line=np.zeros(len(machine), dtype=np.int32),
            nid=machine.nid,
            name=machine.names,
            position=machine.coords,
            nics=machine.nics.astype(np.int32),
        )
        return Dump(LineCounts(rows=len(machine)), nodes, source=self.name, kind="site")
