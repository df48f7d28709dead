"""A site: its configuration, and the topology and nodes that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from msgspec import Struct

from placement.errors import SiteError, printable
from placement.hardware.model import NodeHardware
from placement.machine import Topology
from placement.records import Dump, LineCounts
from placement.sites.inside import stated_hardware
from placement.sites.layout import lay_out
from placement.sites.schema import Config, Figure
from placement.sites.shared import Layout

__all__ = ["Site", "figures_in"]


class Site(Struct, frozen=True, dict=True):
    """A machine as its site configuration states it.

    Attributes
    ----------
    config : Config
        The file's tables.
    source : str
        The file.

    Examples
    --------
    >>> from placement.site import load_site
    >>> site = load_site("shaheen2")
    >>> site.name, site.scheduler, site.topology().extents
    ('shaheen2', 'slurm', (18, 6, 16, 4))
    >>> site.figure("nodes.compute").value, site.figure("nodes.compute").mark
    (6174, 'published')
    """

    config: Config
    source: str = ""

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
        """What takes job scripts where it is not the scheduler: ``torque``, ``cobalt``; else ''."""
        batch = self.config.software.batch
        return "" if batch is None else batch.value.partition("/")[0].lower()

    @property
    def kind(self) -> str:
        """Kind of network: ``dragonfly``, ``torus`` or ``fattree``."""
        return self.topology().kind

    @cached_property
    def layout(self) -> Layout:
        """The machine's nodes in columns, and the topology, made once."""
        return lay_out(self.config)

    def topology(self) -> Topology:
        """Return the network: extents, wiring, bandwidths, parameters.

        Returns
        -------
        Topology
        """
        return self.layout.topology

    @cached_property
    def hardware(self) -> tuple[NodeHardware, ...]:
        """What is inside the nodes, by partition; () where nothing is stated."""
        return stated_hardware(self.config)

    def records(self) -> Dump:
        """Return the nodes that the configuration describes, as a reader would.

        Returns
        -------
        Dump
            Format ``site``; rows in NID order where there are NIDs.
            ``parameters["attachments"]``, where a node has several NICs:
            int64 (n, k), the group's switches that they sit on, -1 for none.
        """
        found = self.layout
        several = found.attachments is not None
        return Dump(
            format="site",
            source=self.source or self.name,
            counts=LineCounts(rows=len(found.nodes)),
            nodes=found.nodes,
            fabric=found.topology.fabric,
            parameters={"attachments": found.attachments} if several else {},
        )

    def figure(self, key: str) -> Figure[Any]:
        """Return one figure with its mark and source.

        Parameters
        ----------
        key : str
            Dotted, as in the file; a partition or leaf by its name:
            ``network.groups``, ``bandwidth.blue``, ``partition.LUMI-G.nics``.

        Raises
        ------
        SiteError
            Where the configuration has no such figure.
        """
        for found, figure in self.figures():
            if found == key:
                return figure
        raise SiteError(
            f"{printable(self.source or self.name)}: no figure '{printable(key)}'",
            f"nidmap site show {self.name} lists those there are",
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
