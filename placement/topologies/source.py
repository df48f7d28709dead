"""What states a network besides dumps: a site's configuration, or a synthetic spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.records import Dump, LineCounts, NodeRecords

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine, NodeHardware, Topology
    from nidmap.placement.sites.model import Site


@dataclass(frozen=True)
class SyntheticSite:
    """A synthetic machine in the part of a site, for dumps to add states or switches to.

    Attributes
    ----------
    machine : Machine
    scheduler, batch : str
        '': none is known.
    hardware : tuple of NodeHardware
        Nor is this.
    """

    machine: Machine
    scheduler: str = ""
    batch: str = ""
    hardware: tuple[NodeHardware, ...] = ()

    @property
    def name(self) -> str:
        """The spec."""
        return self.machine.name

    def topology(self) -> Topology:
        """Return the spec's network."""
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


if TYPE_CHECKING:
    Source = Site | SyntheticSite
