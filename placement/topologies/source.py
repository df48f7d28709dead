"""What states a network besides dumps: a site's configuration, or a synthetic spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from placement.hardware.model import NodeHardware
    from placement.machine import Topology
    from placement.records import Dump

__all__ = ["Source"]


class Source(Protocol):
    """States a network and the nodes in it (`placement.site.Site` does)."""

    @property
    def name(self) -> str:
        """Short name."""

    @property
    def scheduler(self) -> str:
        """``slurm``, ``pbs``, ``alps`` or ''."""

    @property
    def batch(self) -> str:
        """``torque`` or ``cobalt`` where ALPS starts their jobs; else ''."""

    @property
    def hardware(self) -> tuple[NodeHardware, ...]:
        """What is inside the nodes, by type; () where that is not known."""

    def topology(self) -> Topology:
        """Return the network."""

    def records(self) -> Dump:
        """Return the nodes, each with its position."""
