# SPDX-License-Identifier: Apache-2.0
"""Switches above switches: their channels, and routes where they form no regular tree.

InfiniBand fabrics whose cables make neither a tree nor a whole fat tree are
any graph (`nidmap.placement.network.shortest_paths`). Under ``shortest`` traffic is
split equally over all shortest paths, in a layered fabric over those that
climb and then descend, as subnet managers route to stay free of deadlocks.
``single`` takes one of the nearest next hops by the number of the destination
node: in layers by its digits as d-mod-k does, the lowest first; of several
cables to the same switch the first ones of all switches come before the second.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from nidmap.placement.all_to_alls import AllToAlls, product_over_lines
from nidmap.placement.machine import Machine, once
from nidmap.placement.network import shortest_paths
from nidmap.placement.network.channel_loads import Channels, from_links
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.rails import rails_of
from nidmap.placement.network.shortest_paths import StateGraph
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import add_by_key, connected_components
from nidmap.placement.topologies import links, refuse_many, router_coords
from nidmap.placement.topologies.fattree import TreeShape, node_numbers, regular_shape
from nidmap.placement.traffic import Traffic

#: Numbers of one table of routers by destinations.
_TABLE = 1 << 22


@once
def channels(machine: Machine) -> Channels:
    """Return two channels per cable: ``up<level>`` and ``down<level>``; the lower end comes first.

    A switch forwards by the destination alone, so a message takes one cable of
    several to the same other switch. A class ``up1`` of links is ``down1`` from the upper switch.
    """
    both, rates = from_links(machine), links(machine).rates()
    refuse_many(int(both.count.sum()), machine.name)
    cable = np.repeat(np.arange(len(both)), both.count)
    names = [name for up in both.kinds for name in (up, up.replace("up", "down", 1))]
    kinds = tuple(dict.fromkeys(names))
    place = np.array([kinds.index(name) for name in names] or [0])
    kind = 2 * both.kind.astype(np.int64)
    kind[len(both) // 2 :] += 1
    return Channels(
        machine=machine,
        source=both.source[cable],
        target=both.target[cable],
        kind=place[kind].astype(np.int8)[cable],
        kinds=kinds,
        count=np.ones(len(cable), dtype=np.int32),
        bandwidth=np.tile(np.where(np.isnan(rates), np.inf, rates), 2),
    )


@once
def graph(machine: Machine) -> StateGraph:
    """Return the switches as a graph of paths that climb then descend, if those reach all."""
    routers, level, links = len(router_coords(machine)), _switch_levels(machine), channels(machine)
    cable = links.earlier(slice(None))
    leaves = np.unique(machine.router[machine.router >= 0]).astype(np.int64)
    if level is not None:
        climbing = shortest_paths.graph_of(links, routers, level=level, order=cable)
        part = connected_components(
            routers, links.source.astype(np.int64), links.target.astype(np.int64)
        )
        ends = np.arange(climbing.batch, len(leaves), climbing.batch)
        if all(
            (
                (shortest_paths.distances(climbing, some)[leaves] < shortest_paths.UNREACHED)
                | (part[leaves][:, None] != part[some])
            ).all()
            for some in np.split(leaves, ends)
        ):
            return climbing
    return shortest_paths.graph_of(links, routers, order=cable)


def _switch_levels(machine: Machine) -> Ints | None:
    """Return the level of each switch of a fat tree, 1 at the leaves."""
    if machine.topology.kind != "fattree":
        return None
    level: Ints = 1 + (router_coords(machine) < 0).sum(axis=1)
    return level


def loads(machine: Machine, demand: Demand, routing: str) -> Floats:
    """Return the bytes on every channel under ``shortest`` or ``single``, float64 (c,)."""
    if routing != "single":
        return shortest_paths.loads(graph(machine), demand, len(channels(machine)))
    routers, links = graph(machine).routers, channels(machine)
    nodes = np.flatnonzero(demand.into > 0)
    out = np.zeros(len(links))
    batch = max(1, _TABLE // max(1, routers))
    for first in range(0, len(nodes), batch):
        some = nodes[first : first + batch]
        table, flow = (
            next_channel(machine, routing, some),
            _bytes_towards(machine, demand, some, routers),
        )
        router, column = np.nonzero(flow)
        message, channel, last = shortest_paths.follow_messages(links, table, router, column)
        ends = machine.router[some[column]]
        lost = (ends != last[:, None]).all(axis=1)
        shortest_paths.refuse_lost(machine, last[lost], ends[lost, 0])
        out += add_by_key(channel, flow[router, column][message], len(links))
    return out


def _entry_switches(machine: Machine, nodes: Ints) -> Mask:
    """Return the attachments by which messages reach nodes, bool (b, k).

    The first on each part of the network; on a whole fat tree d-mod-k chooses one of several.
    """
    shape = _whole_tree(machine)
    if shape is not None:
        port = node_numbers(machine)[nodes] % shape.up[0]
        return np.asarray(np.arange(machine.router.shape[1]) == port[:, None])
    part = rails_of(machine).part[nodes]
    earlier = np.tri(part.shape[1], k=-1, dtype=np.bool_)
    again = ((part[:, :, None] == part[:, None, :]) & earlier).any(axis=2)
    return np.asarray((part >= 0) & ~again)


def _bytes_towards(machine: Machine, demand: Demand, nodes: Ints, routers: int) -> Floats:
    """Return the bytes from each router to some nodes, float64 (routers, b)."""
    column = np.full(len(machine), -1, dtype=np.int64)
    column[nodes] = np.arange(len(nodes))
    out = np.zeros((routers, len(nodes)))
    _add_flows(machine, demand.nodewise, column, out)
    if len(demand.nodewise.all_to_alls):
        _add_all_to_alls(machine, demand.nodewise.all_to_alls, column, out)
    return out


def _add_flows(machine: Machine, traffic: Traffic, column: Ints, out: Floats) -> None:
    """Add the bytes of listed flows from a node's switches to the nodes of some columns."""
    flows = traffic.some(column[traffic.target] >= 0)
    for i, _, share in rails_of(machine).shares(flows.source, flows.target):
        used = np.flatnonzero(share)
        place = machine.router[flows.source[used], i].astype(np.int64)
        key = place * out.shape[1] + column[flows.target[used]]
        out += add_by_key(key, (flows.bytes * share)[used], out.size).reshape(out.shape)


def _add_all_to_alls(machine: Machine, lines: AllToAlls, column: Ints, out: Floats) -> None:
    """Add the bytes of all-to-alls to the nodes of some columns; a node sends nothing to itself."""
    rails, row = rails_of(machine), lines.end
    entry, k = np.nonzero(rails.part[row] >= 0)
    place = machine.router[row[entry], k].astype(np.int64)
    amount = lines.weight[entry] / rails.alike[row[entry], k]
    kind, to = rails.kind[row], column[row]
    where = rails.part[row[entry], k]
    for a, b in product(np.unique(kind).tolist(), repeat=2):
        takes = np.flatnonzero((to >= 0) & (kind == b))
        right = lines.line[takes], to[takes], lines.weight[takes]
        for shared, share in rails.between(a, b).items():
            sends = np.flatnonzero((where == shared) & (kind[entry] == a))
            left = lines.line[entry[sends]], place[sends], amount[sends]
            out += product_over_lines(left, right, lines.scale * share, *out.shape)
    both = np.flatnonzero(to[entry] >= 0)
    own_entry, key = entry[both], place[both] * out.shape[1] + to[entry[both]]
    ranks, size = lines.weight[own_entry], lines.scale[lines.line[own_entry]]
    self_bytes = size * ranks**2 / rails.count[row[own_entry]]
    out -= add_by_key(key, self_bytes, out.size).reshape(out.shape)
    np.maximum(out, 0.0, out=out)


def hops(machine: Machine, source: Ints, target: Ints) -> Floats:
    """Return the channels between switches, all in the first class, float64 (m, classes)."""
    kinds = max(1, len(channels(machine).kinds))
    mean = shortest_paths.mean_hops(graph(machine), source, target, kinds)
    out = np.zeros_like(mean)
    out[:, 0] = np.rint(mean.sum(axis=1))
    return out


def next_channel(machine: Machine, routing: str, nodes: Ints) -> Ints:
    """Return the channel of ``single`` from each switch to some nodes, (switches, nodes).

    -1 where the node's first link to a part of the network ends, or no path leads there.
    """
    switches, target = graph(machine), machine.router[nodes].astype(np.int64)
    divisor, offset = _port_digits(machine)
    numbered = _whole_tree(machine) is not None
    number = node_numbers(machine)[nodes] if numbered else nodes
    out = np.full((switches.routers, len(nodes)), -1, dtype=np.int64)
    for k, first in enumerate(_entry_switches(machine, nodes).T):
        known = np.flatnonzero(first)
        if len(known):
            turn = number[known] // divisor[:, None] + offset[:, None]
            channel = shortest_paths.chosen_channels(switches, target[known, k], turn)
            out[:, known] = np.maximum(out[:, known], channel)
    return out


def _port_digits(machine: Machine) -> tuple[Ints, Ints]:
    """Return divisor and offset by which ``single`` selects a node's cable at each switch."""
    links, routers, level = channels(machine), graph(machine).routers, _switch_levels(machine)
    if level is None or not graph(machine).climbs:
        return np.ones(routers, dtype=np.int64), np.arange(routers)
    up = (level[links.target] > level[links.source]) & (links.earlier(slice(None)) == 0)
    parents = np.bincount(links.source[up], minlength=routers)
    most = np.ones(int(level.max(initial=1)) + 1, dtype=np.int64)
    np.maximum.at(most, level, parents)
    shape = _whole_tree(machine)
    parents_of_nodes = 1 if shape is None else shape.up[0]
    below = np.cumprod(np.concatenate([[1, parents_of_nodes], most[1:-1]]))
    return below[level], np.zeros(routers, dtype=np.int64)


def _whole_tree(machine: Machine) -> TreeShape | None:
    """Return the shape of a complete fat tree; None for anything else."""
    return regular_shape(machine) if machine.topology.kind == "fattree" else None
