"""Groups of a Slingshot dragonfly: which switch each node's NICs sit on.

The nodes of a chassis share its switches. A node with several NICs has them
on several switches: with s switches a chassis and k = min(NICs, s), the
switches stand in blocks of k, the nodes divide evenly over the switches, and
NIC j of a node of switch i is on the j-th switch after i, round its block. So
16 nodes with one NIC have one switch, and 16 nodes with four NICs the same
four switches, as on LUMI-G and Frontier.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.sites.schema import Partition
from placement.sites.shared import WrongFigure

__all__ = ["Seats", "seats"]


class Seats(NamedTuple):
    """Where the n nodes of one partition sit, group by group.

    Attributes
    ----------
    group : int64 (n,)
        Group within the partition.
    place : int64 (n,)
        Number of the node within its group.
    node : int64 (n,)
        Number of the node among those of its first switch.
    switches : int64 (n, k)
        The group's switches that the node's NICs sit on, its own first.
    """

    group: NDArray[np.int64]
    place: NDArray[np.int64]
    node: NDArray[np.int64]
    switches: NDArray[np.int64]


def seats(partition: Partition) -> Seats:
    """Return where the nodes of a partition sit.

    Raises
    ------
    WrongFigure
        Figures that are missing or do not fit together.

    Examples
    --------
    >>> from placement.sites.schema import Figure, Partition
    >>> def said(value): return Figure(value, "assumed", "an example")
    >>> part = Partition(name="G", groups=said(2), group_nodes=said(6), group_switches=said(4),
    ...                  chassis_nodes=said(4), chassis_switches=said(2), nics=said(2))
    >>> found = seats(part)
    >>> found.switches[:6].tolist()
    [[0, 1], [0, 1], [1, 0], [1, 0], [2, 3], [2, 3]]
    """
    sizes = group_sizes(partition)
    group = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    of_chassis, switches, nics = _chassis(partition, int(sizes.max()))
    across = min(nics, switches)
    used = switches // across * across
    inside = place % of_chassis
    switch = inside * used // of_chassis
    node = inside - -(-switch * of_chassis // used)
    block = switch // across * across
    round_block = block[:, None] + ((switch - block)[:, None] + np.arange(across)) % across
    return Seats(group, place, node, (place // of_chassis * switches)[:, None] + round_block)


def group_sizes(partition: Partition) -> NDArray[np.int64]:
    """Return how many nodes each group of the partition has."""
    key = f"partition.{partition.name}"
    if partition.groups is None:
        raise WrongFigure(f"{key}.groups", "missing: how many groups the partition has")
    if partition.group_nodes is None:
        raise WrongFigure(f"{key}.group_nodes", "missing: how many nodes a group has")
    groups, nodes = partition.groups.value, partition.group_nodes.value
    if isinstance(nodes, int):
        sizes = np.full(groups, nodes)
        if partition.last_group_nodes is not None:
            sizes[-1] = partition.last_group_nodes.value
        return sizes
    if len(nodes) != groups:
        text = f"{len(nodes)} numbers for {groups} groups; write one a group, or one for all"
        raise WrongFigure(f"{key}.group_nodes", text)
    return np.array(nodes)


def _chassis(partition: Partition, largest: int) -> tuple[int, int, int]:
    """Return nodes and switches of a chassis, and NICs of a node, checked to fit."""
    key = f"partition.{partition.name}"
    if partition.group_switches is None:
        raise WrongFigure(f"{key}.group_switches", "missing: how many switches a group has")
    total = partition.group_switches.value
    nodes = partition.chassis_nodes.value if partition.chassis_nodes else largest
    switches = partition.chassis_switches.value if partition.chassis_switches else total
    if total % switches:
        text = f"{switches} do not divide the {total} switches of a group"
        raise WrongFigure(f"{key}.chassis_switches", text)
    if largest > nodes * (total // switches):
        text = f"{largest} nodes do not fit: {total // switches} chassis of {nodes}"
        raise WrongFigure(f"{key}.group_nodes", text)
    return nodes, switches, partition.nics.value if partition.nics else 1
