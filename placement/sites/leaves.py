# SPDX-License-Identifier: Apache-2.0
"""InfiniBand fat trees: leaf modules below spines, with nodes listed leaf by leaf."""

from __future__ import annotations

import numpy as np

from nidmap.placement.errors import NidmapError
from nidmap.placement.machine import Topology
from nidmap.placement.nodelist import NodeList
from nidmap.placement.records import NodeRecords
from nidmap.placement.sites.schema import Config, FatTree, Figure
from nidmap.placement.sites.shared import (
    ON_SLINGSHOT,
    SiteLayout,
    WrongFigure,
    forbid_figure,
    inventory,
    refuse_different,
)


def lay_out(config: Config, network: FatTree) -> SiteLayout:
    """Return the nodes of all leaf modules."""
    if config.cabinets is not None:
        raise WrongFigure("cabinets", "means nothing on a fat tree")
    forbid_figure(config, "a fat tree", ("where", *ON_SLINGSHOT))
    refuse_different(
        "network.leaves", network.leaves, len(config.leaf), "the number of [[leaf]] tables"
    )
    names: dict[str, int] = {}
    service: set[str] = set()
    for number, module in enumerate(config.leaf):
        key, most = f"leaf.{module.name}", network.leaf_nodes.value
        hosts = _expand_list(f"{key}.nodes", module.nodes)
        apart = set(_expand_list(f"{key}.service", module.service))
        if len(hosts) > most:
            raise WrongFigure(f"{key}.nodes", f"{len(hosts)} nodes on a leaf of {most}")
        if strange := apart - set(hosts):
            raise WrongFigure(
                f"{key}.service",
                f"'{min(strange)}' is not among this leaf's nodes: list it there too",
            )
        for name in hosts:
            if name in names:
                other = config.leaf[names[name]].name
                raise WrongFigure(f"{key}.nodes", f"'{name}' is on {other} already")
            names[name] = number
        service |= apart
    if not names:
        raise WrongFigure("leaf", "missing: [[leaf]] tables with the nodes on each")
    leaf, called = np.array(list(names.values()), np.int64), np.array(list(names))
    spines, uplinks = network.spines.value, network.uplinks.value
    if uplinks % spines:
        text = f"{uplinks} links do not divide over {spines} spines"
        raise WrongFigure("network.uplinks", text)
    start = np.searchsorted(leaf, leaf)
    position = np.column_stack([leaf, np.arange(len(leaf)) - start]).astype(np.int32)
    of = np.zeros(len(leaf), np.int64) if len(config.partition) == 1 else np.full(len(leaf), -1)
    nodes = NodeRecords(
        name=called,
        role=np.where(np.isin(called, list(service)), "service", "compute"),
        position=position,
        **inventory(config, of),
    )
    topology = Topology(
        kind="fattree",
        levels=("leaf", "node"),
        extents=(len(config.leaf), network.leaf_nodes.value),
        parameters={
            "spines": spines,
            "up": (1, spines),
            "parallel": (1, uplinks // spines),
            "leaf_names": tuple(module.name for module in config.leaf),
        },
    )
    return SiteLayout(topology, nodes)


def _expand_list(key: str, figure: Figure[str] | None) -> list[str]:
    """Expand a folded node list."""
    if figure is None:
        return []
    try:
        return list(NodeList.parse(figure.value))
    except NidmapError as error:
        raise WrongFigure(key, error.message) from None
