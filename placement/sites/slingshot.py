# SPDX-License-Identifier: Apache-2.0
"""Slingshot and DragonFly+: partitions of groups, their names, and links between groups.

The nodes of a chassis share its switches. A node with several NICs has them
on several switches: with s switches per chassis and k = min(NICs, s), the
switches are in blocks of k, the nodes divide evenly over the switches, and
NIC j of a node of switch i is on the j-th switch after i, round its block. So
16 nodes with one NIC have one switch, and 16 nodes with four NICs the same
four switches, as on LUMI-G and Frontier. Where k does not divide s all switches
of the chassis are one block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nidmap.placement.lookup import first_repeat
from nidmap.placement.machine import Topology
from nidmap.placement.records import NodeRecords
from nidmap.placement.sites.schema import Config, DragonflyPlus, Figure, Partition, Slingshot
from nidmap.placement.sites.shared import (
    SiteLayout,
    WrongFigure,
    expand_ranges,
    forbid_figure,
    inventory,
    node_names,
    refuse_different,
    refuse_too_many,
    required,
    whole_figure,
)
from nidmap.placement.support.array_types import Array, Ints
from nidmap.placement.topologies.dragonfly import attachments
from nidmap.placement.topologies.dragonfly_plus import topology_of

#: Ports of a switch to others of its group: groups of 32 have one link per pair, those of 16 two
#: (De Sensi et al., SC20: of 64 ports 16 are for nodes and 31 for the group).
LOCAL_PORTS = 31


def lay_out(config: Config, network: Slingshot | DragonflyPlus) -> SiteLayout:
    """Return the nodes of all partitions, group by group."""
    if not config.partition:
        raise WrongFigure("partition", "missing: list the groups in [[partition]] tables")
    if config.cabinets is not None:
        raise WrongFigure("cabinets", "means nothing here; partitions list their own")
    forbid_figure(config, "a network of groups", ("where",))
    tables = [_partition_rows(config, p) for p in config.partition]
    sizes = [len(group_sizes(p)) for p in config.partition]
    refuse_different(
        "network.groups", network.groups, sum(sizes), "the sum of the partitions' groups"
    )
    refuse_too_many("partition", sum(len(t["group"]) for t in tables))
    width = max(t["switches"].shape[1] for t in tables)
    for table, first in zip(tables, np.cumsum([0, *sizes]), strict=False):
        table["group"] += first
        missing = ((0, 0), (0, width - table["switches"].shape[1]))
        table["switches"] = np.pad(table["switches"], missing, constant_values=-1)
    columns = {key: np.concatenate([t[key] for t in tables]) for key in tables[0]}
    columns["of"] = np.repeat(np.arange(len(tables)), [len(t["group"]) for t in tables])
    order = np.argsort(columns["nid"], kind="stable")
    return _make_layout(
        config, network, sizes, {key: column[order] for key, column in columns.items()}
    )


def _make_layout(
    config: Config,
    network: Slingshot | DragonflyPlus,
    sizes: list[int],
    columns: dict[str, Array],
) -> SiteLayout:
    nid, name, switches = columns["nid"], columns["name"], columns["switches"]
    for column, what in ((nid[nid >= 0], "NID"), (name, "name")):
        if repeat := first_repeat(column):
            raise WrongFigure("partition", f"two nodes have the {what} {column[repeat[0]]}")
    position = np.column_stack([columns["group"], switches[:, 0], columns["node"]])
    nodes = NodeRecords(
        nid=nid if (nid >= 0).any() else None,
        name=name,
        cname=columns["cname"],
        role=np.full(len(name), "compute"),
        position=position.astype(np.int32),
        **inventory(config, columns["of"]),
    )
    if isinstance(network, DragonflyPlus):
        topology = _leaves_and_spines(config, network, position)
    else:
        topology = _slingshot_topology(config, network, position, sizes)
    return SiteLayout(topology, nodes, switches if switches.shape[1] > 1 else None)


def _partition_rows(config: Config, part: Partition) -> dict[str, Any]:
    """Return the columns of one partition."""
    refuse_too_many(f"partition.{part.name}.group_nodes", int(group_sizes(part).sum()))
    places = partition_positions(part)
    n = len(places["group"])
    refuse_different(f"partition.{part.name}.count", part.count, n, "what its groups hold")
    number = np.arange(n)
    nid = number + part.first_nid.value if part.first_nid else np.full(n, -1)
    fields = {"number": number} | ({"nid": nid} if part.first_nid else {})
    if part.cabinets is not None:
        fields |= _xname_parts(part, n)
    key = "nodes.name" if part.node_name is None else f"partition.{part.name}.node_name"
    template = required(key, part.node_name or config.nodes.name, "a name such as nid{nid:06}")
    cname = np.full(n, "")
    if part.cabinets is not None and part.slots is not None:
        cname = node_names(key, "x{cabinet}c{chassis}s{slot}b{board}n0", fields)
    return {**places, "nid": nid, "name": node_names(key, template, fields), "cname": cname}


def _xname_parts(part: Partition, n: int) -> dict[str, Ints]:
    """Return cabinet, chassis, slot and board of n nodes that fill the cabinets in order."""
    key = f"partition.{part.name}"
    assert part.cabinets is not None
    cabinets = np.array(expand_ranges(f"{key}.cabinets", part.cabinets.value, 100_000))
    if len(set(cabinets.tolist())) < max(1, len(cabinets)):
        raise WrongFigure(f"{key}.cabinets", "names no cabinet, or one twice")
    per_cabinet, rest = divmod(n, len(cabinets))
    if rest:
        raise WrongFigure(f"{key}.cabinets", f"{n} nodes do not divide over {len(cabinets)}")
    slots = np.array(part.slots.value if part.slots else [0])
    boards = part.boards.value if part.boards else 1
    if not len(slots):
        raise WrongFigure(f"{key}.slots", "is empty")
    cabinet, inside = np.divmod(np.arange(n), per_cabinet)
    blade, board = np.divmod(inside, boards)
    chassis, slot = np.divmod(blade, len(slots))
    return {"cabinet": cabinets[cabinet], "chassis": chassis, "slot": slots[slot], "board": board}


def _leaves_and_spines(config: Config, network: DragonflyPlus, position: Ints) -> Topology:
    leaves = {p.group_switches.value for p in config.partition if p.group_switches}
    if len(leaves) > 1:
        text = f"{sorted(leaves)}: the groups of a DragonFly+ have the same number of leaves"
        raise WrongFigure("partition", text)
    return topology_of(
        (network.groups.value, leaves.pop(), int(position[:, 2].max()) + 1),
        network.spines.value,
        network.links.value,
        network.cables.value,
        nics=max(whole_figure(p.nics) or 1 for p in config.partition),
    )


def _slingshot_topology(
    config: Config, network: Slingshot, position: Ints, sizes: list[int]
) -> Topology:
    switches = [p.group_switches.value for p in config.partition if p.group_switches]
    by_group = tuple(np.repeat(switches, sizes).tolist())
    parameters: dict[str, Any] = {"nics": max(whole_figure(p.nics) or 1 for p in config.partition)}
    parameters |= _pair_links(network.links, sizes)
    parameters["local_ports"] = LOCAL_PORTS
    if len(set(switches)) > 1:
        parameters["switches"] = by_group
    return Topology(
        kind="dragonfly",
        levels=("group", "switch", "node"),
        extents=(len(by_group), max(switches), int(position[:, 2].max()) + 1),
        wiring=network.wiring.value,
        parameters=parameters,
    )


def _pair_links(figure: Figure[int | list[list[int]]], sizes: list[int]) -> dict[str, Any]:
    """Return the links per group pair: one number, or by both groups' partitions.

    Where the pairs differ, ``global`` is the mean over all pairs (at least 1)
    and ``global_table`` the number for each pair of groups.
    """
    if isinstance(figure.value, int):
        return {"global": figure.value}
    rows = figure.value
    table = np.array(rows) if len({len(row) for row in rows}) == 1 else np.empty(0)
    if table.shape != (len(sizes), len(sizes)) or (table != table.T).any():
        text = f"expected one number, or a symmetric table of {len(sizes)} x {len(sizes)}"
        raise WrongFigure("network.links", text)
    of = np.repeat(np.arange(len(sizes)), sizes)
    links = table[np.ix_(of, of)]
    pairs = links[np.triu_indices(len(of), 1)]
    np.fill_diagonal(links, 0)
    mean = max(1, round(float(pairs.mean()))) if len(pairs) else 1
    return {"global": mean, "global_table": tuple(map(tuple, links.tolist()))}


def partition_positions(partition: Partition) -> dict[str, Ints]:
    """Return the positions of a partition's n nodes, group by group.

    ``group`` (n,) within the partition; ``node`` (n,), the number among those of its first
    switch; ``switches`` (n, k) of the group that the node's NICs sit on, its own first.
    """
    sizes = group_sizes(partition)
    group = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    of_chassis, switches, nics = _chassis_sizes(partition, int(sizes.max()))
    across = min(nics, switches)
    inside = place % of_chassis
    switch = inside * switches // of_chassis
    node = inside - -(-switch * of_chassis // switches)
    block = attachments(switch, switches, switches if switches % across else across)
    first = place // of_chassis * switches
    return {"group": group, "node": node, "switches": first[:, None] + block[:, :across]}


def group_sizes(partition: Partition) -> Ints:
    """Return how many nodes each group of the partition has."""
    key = f"partition.{partition.name}"
    groups = required(f"{key}.groups", partition.groups, "how many groups the partition has")
    nodes = required(f"{key}.group_nodes", partition.group_nodes, "how many nodes a group has")
    if isinstance(nodes, int):
        sizes = np.full(groups, nodes)
        if partition.last_group_nodes is not None:
            sizes[-1] = partition.last_group_nodes.value
        return sizes
    if len(nodes) != groups:
        text = f"{len(nodes)} numbers for {groups} groups; write one per group, or one for all"
        raise WrongFigure(f"{key}.group_nodes", text)
    return np.array(nodes)


def _chassis_sizes(partition: Partition, largest: int) -> tuple[int, int, int]:
    """Return nodes and switches per chassis, and NICs per node, checked for consistency."""
    key = f"partition.{partition.name}"
    what = "how many switches a group has"
    total = required(f"{key}.group_switches", partition.group_switches, what)
    nodes = partition.chassis_nodes.value if partition.chassis_nodes else largest
    switches = partition.chassis_switches.value if partition.chassis_switches else total
    if total % switches:
        text = f"{switches} do not divide the {total} switches of a group"
        raise WrongFigure(f"{key}.chassis_switches", text)
    if largest > nodes * (total // switches):
        text = f"{largest} nodes do not fit: {total // switches} chassis of {nodes}"
        raise WrongFigure(f"{key}.group_nodes", text)
    return nodes, switches, partition.nics.value if partition.nics else 1
