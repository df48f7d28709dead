"""InfiniBand fat trees: leaf modules below spines, the nodes listed leaf by leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.machine import Topology
from placement.records import NodeRecords
from placement.sites.shared import ON_SLINGSHOT, Layout, forbid, inventory, same
from placement.sites.wrong import WrongFigure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.sites.schema import Config, FatTree, Figure

    Ints = NDArray[np.int64]

__all__ = ["lay_out"]


def lay_out(config: Config, network: FatTree) -> Layout:
    """Return the nodes of all leaf modules."""
    if config.cabinets is not None:
        raise WrongFigure("cabinets", "means nothing on a fat tree")
    forbid(config, "a fat tree", ("where", *ON_SLINGSHOT))
    same("network.leaves", network.leaves, len(config.leaf), "the number of [[leaf]] tables")
    names: dict[str, int] = {}
    service: set[str] = set()
    for number, module in enumerate(config.leaf):
        key = f"leaf.{module.name}.nodes"
        found = _expand(key, module.nodes)
        apart = set(_expand(f"leaf.{module.name}.service", module.service))
        _fits(module.name, found, apart, network.leaf_nodes.value)
        for name in found:
            if name in names:
                raise WrongFigure(key, f"'{name}' is on {config.leaf[names[name]].name} already")
            names[name] = number
        service |= apart
    leaf = np.array(list(names.values()), np.int64)
    return _leaf_rows(config, network, list(names), np.isin(list(names), list(service)), leaf)


def _expand(key: str, figure: Figure[str] | None) -> list[str]:
    """Return the names of a folded node list."""
    from placement.errors import NidmapError
    from placement.nodelist import NodeList

    if figure is None:
        return []
    try:
        return list(NodeList.parse(figure.value))
    except NidmapError as error:
        raise WrongFigure(key, error.message) from None


def _fits(name: str, nodes: list[str], service: set[str], most: int) -> None:
    if len(nodes) > most:
        raise WrongFigure(f"leaf.{name}.nodes", f"{len(nodes)} nodes on a leaf of {most}")
    if strange := service - set(nodes):
        raise WrongFigure(f"leaf.{name}.service", f"'{min(strange)}' is not on this leaf")


def _leaf_rows(
    config: Config,
    network: FatTree,
    names: list[str],
    service: NDArray[np.bool_],
    leaf: Ints,
) -> Layout:
    if not names:
        raise WrongFigure("leaf", "missing: [[leaf]] tables with the nodes on each")
    spines, uplinks = network.spines.value, network.uplinks.value
    if uplinks % spines:
        text = f"{uplinks} links do not divide over {spines} spines"
        raise WrongFigure("network.uplinks", text)
    start = np.searchsorted(leaf, leaf)
    position = np.column_stack([leaf, np.arange(len(leaf)) - start]).astype(np.int32)
    of = np.zeros(len(leaf), np.int64) if len(config.partition) == 1 else np.full(len(leaf), -1)
    nodes = NodeRecords(
        name=np.array(names),
        role=np.where(service, "service", "compute"),
        position=position,
        **inventory(config, of),
    )
    topology = Topology(
        kind="fattree",
        levels=("leaf", "node"),
        extents=(len(config.leaf), network.leaf_nodes.value),
        router_levels=1,
        parameters={"spines": spines, "up": (1, spines), "parallel": (1, uplinks // spines)},
    )
    return Layout(topology, nodes)
