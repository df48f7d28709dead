# SPDX-License-Identifier: Apache-2.0
"""Trees of switches, and fat trees under d-mod-k: one path between any two nodes.

A message climbs to the first switch that is above both of its ends, and descends.
The switches below a cable up and all that hangs on them are a part of the network; what
leaves the part climbs by its cables, what enters descends by them. So all loads are sums
over parts, nothing is walked, and an all-to-all needs sums of its weights only.

In a tree a part has one cable, and uneven trees (a topology.conf) need nothing more; where
every node has a cable of its own out of its switch (``own_cables``), bytes take their node's.

In a fat tree the destination's index chooses every port on the way up. The up-port at level
l is q = floor(d / (w1 … wl)) mod (w(l+1) p(l+1)), d the index of the destination, w the
parents a node has at each level and p the cables to each of them (Zahavi 2010; as in
SimGrid's fat trees): cable q div w to parent q mod w. So the switch of level l that a
message to d climbs to has the number d mod (w1 … wl) among the twins of its subtree, and it
comes down through the twins of that number too, by the cables of that number: a switch
forwards by the destination alone. The load of a cable is a count by (subtree,
d mod w1 … w(l+1) p(l+1)). d is the place of the node in the whole tree, leaf by leaf (leaf x
nodes per leaf + place on the leaf), so absent nodes leave the others' routes alone. Listed
cables that make a whole two-level tree are routed the same way.

Switches that a list joins in any other way, and the tables by which all of them forward, are
a matter of paths in a graph (`nidmap.placement.network.switches`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nidmap.placement.all_to_alls import AllToAlls, product_over_lines
from nidmap.placement.machine import Machine, once
from nidmap.placement.network import switches
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.rails import leaves_top_out, no_path
from nidmap.placement.network.switches import channels, next_channel
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import add_by_key, rank_within
from nidmap.placement.topologies import links, router_count
from nidmap.placement.topologies.fattree import TreeShape, node_numbers, regular_shape
from nidmap.placement.traffic import Traffic

__all__ = [
    "channels",
    "hops",
    "loads",
    "next_channel",
    "notes",
    "passed_channels",
    "ports",
    "routings",
    "tree_of",
]


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The cables between the switches of two levels."""

    # (r,), part below the layer that each router is in; -1 for none (a spine, a router above)
    part: Ints
    port: Ints  # (n,), which of the cables of its part is the node's
    # up, down: (parts + 1, ports), channels out of and into each part; -1 where there is none, as
    # in the last row
    up: Ints
    down: Ints
    # Whether bytes leave by the sender's cable; else by the receiver's, as they enter
    by_sender: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """Layers of cables, the lowest first."""

    layers: tuple[Layer, ...]
    root: Ints  # (r,), tree that each router is in, by its root, where nothing joins several


#: Routings of whole fat trees.
EVERY_FAT_TREE = ("d-mod-k", "single", "shortest")


def routings(machine: Machine) -> tuple[str, ...]:
    """Return the routings that apply, the default first; a tree leaves no choice."""
    if machine.topology.kind == "fattree":
        return ("shortest", "single") if regular_shape(machine) is None else EVERY_FAT_TREE
    parent, _ = _find_parents(machine)
    return ("single",) if len(links(machine)) == (parent >= 0).sum() else ("shortest", "single")


def loads(machine: Machine, demand: Demand, routing: str = "single") -> Floats:
    """Return the bytes on every channel, float64 (c,)."""
    tree = None if routing == "shortest" else _layers_of(machine)
    if tree is None:
        return switches.loads(machine, demand, routing)
    _refuse_apart(machine, tree, demand)
    out = np.zeros(len(channels(machine)))
    for layer in tree.layers:
        climbing, descending = _layer_loads(machine, layer, demand)
        for amount, cable in ((climbing, layer.up[:-1]), (descending, layer.down[:-1])):
            there = cable >= 0
            out[cable[there]] += amount[there]
    return out


def _layer_loads(machine: Machine, layer: Layer, demand: Demand) -> tuple[Floats, Floats]:
    """Return the bytes that leave and enter the parts below a layer, (parts, ports) each."""
    parts, count = layer.up.shape[0] - 1, layer.up.shape[1]
    if count == 1:
        out, into = demand.leaving(layer.part, parts)
        return out[:, None], into[:, None]
    part = layer.part[machine.router[:, 0]]
    part = np.where(part < 0, parts, part)
    size = parts + 1, count
    up, down = _loads_by_port(demand.nodewise, part, layer.port, size, layer.by_sender)
    return up[:-1], down[:-1]


def _loads_by_port(
    traffic: Traffic, part: Ints, port: Ints, size: tuple[int, int], by_sender: bool = False
) -> tuple[Floats, Floats]:
    """Return the bytes that leave and that enter the parts that nodes are in, by cable.

    `traffic`: between nodes. `part`, `port` (n,): part and cable of each node. `size`: parts and
    cables.
    """
    far = traffic.some(part[traffic.source] != part[traffic.target])
    taken = port[far.source if by_sender else far.target]
    ends = part[far.source] * size[1] + taken, part[far.target] * size[1] + port[far.target]
    up, down = (add_by_key(end, far.bytes, size[0] * size[1]).reshape(size) for end in ends)
    if len(traffic.all_to_alls):
        sent, received = _all_to_alls_by_port(traffic.all_to_alls, part, port, size)
        up, down = up + (received if by_sender else sent), down + received
    return up, down


def _all_to_alls_by_port(
    lines: AllToAlls, part: Ints, port: Ints, size: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Return the bytes of all-to-alls out of and into parts: the total less those inside."""
    line, ranks, part, port = lines.line, lines.weight, part[lines.end], port[lines.end]
    total, sent = add_by_key(line, ranks), lines.scale[line] * ranks
    _, place = np.unique(line * size[0] + part, return_inverse=True)
    inside = add_by_key(place, ranks)[place]
    spot, count = part * size[1] + port, size[0] * size[1]
    up = product_over_lines((line, part, ranks), (line, port, ranks), lines.scale, *size)
    up -= add_by_key(spot, sent * inside, count).reshape(size)
    down = add_by_key(spot, sent * (total[line] - inside), count).reshape(size)
    return np.maximum(up, 0.0), down


def passed_channels(machine: Machine, a: Ints, b: Ints) -> tuple[Ints, Ints] | None:
    """Return the channels that messages between nodes pass, in path order.

    `a`, `b` (m,): rows of the machine. Returns `message, channel` (z,): None where the switches
    make no tree, or a node hangs on several trees.
    """
    tree = tree_of(machine)
    if tree is None or not _counts_by_node(machine):
        return None
    climbs: list[tuple[Ints, Ints]] = []
    descents: list[tuple[Ints, Ints]] = []
    for layer in tree.layers:
        here, there = (layer.part[machine.router[end, 0]] for end in (a, b))
        up = layer.up[here, layer.port[a if layer.by_sender else b]]
        down = layer.down[there, layer.port[b]]
        for hops_made, channel in ((climbs, up), (descents, down)):
            message = np.flatnonzero((here != there) & (channel >= 0))
            hops_made.append((message, channel[message]))
    none = np.zeros(0, dtype=np.int64)
    columns = zip((none, none), *climbs, *descents[::-1], strict=True)
    message, channel = (np.concatenate(column) for column in columns)
    return message, channel


def _counts_by_node(machine: Machine) -> bool:
    """Return whether a node's first switch determines its part."""
    return machine.router.shape[1] == 1 or machine.topology.kind == "fattree"


def hops(machine: Machine, source: Ints, target: Ints, routing: str = "single") -> Floats:
    """Return the number of channels of each class between routers, float64 (m, classes).

    Of a fat tree between leaf switches. Where switches make no tree, all hops count in the
    first class.
    """
    source, target = np.asarray(source, np.int64), np.asarray(target, np.int64)
    tree, cables = None if routing == "shortest" else _layers_of(machine), channels(machine)
    if tree is None:
        return switches.hops(machine, source, target)
    _refuse_ends(machine, tree, source, target)
    out = np.zeros((len(source), max(1, len(cables.kinds))))
    for layer in tree.layers:
        here, there = layer.part[source], layer.part[target]
        for part, channel in ((here, layer.up), (there, layer.down)):
            rows = np.flatnonzero((here != there) & (part >= 0))
            out[rows, cables.kind[channel[part[rows], 0]]] += 1
    return out


def notes(machine: Machine, routing: str = "") -> tuple[str, ...]:
    """Return what was assumed if the switches form no tree, or several."""
    tree = tree_of(machine)
    if tree is not None and _joined_above(machine):
        roots = len(np.unique(tree.root))
        return (f"no listed link joins the {roots} top switches: no bandwidth is known above them",)
    if tree is not None or routing == "single":
        return ()
    if machine.topology.kind == "fattree" and regular_shape(machine) is not None:
        return ("packets climb by any cable: traffic is split equally over all shortest paths",)
    what, climb = "the switches do not form a tree", ""
    if machine.topology.kind == "fattree":
        what = "the listed cables do not form a regular fat tree, so d-mod-k does not apply"
        climb = " that climb and then descend" if switches.graph(machine).climbs else ""
    return (
        f"{what}: traffic is split equally over all shortest paths{climb}, parallel links each "
        "on their own",
    )


def ports(machine: Machine, demand: Demand) -> tuple[Floats, Floats]:
    """Return the bytes that count for each node's own links, out and in, float64 (n,) each.

    With one parent a node these are the bytes that it sends and receives.
    With w1 parents d-mod-k chooses the port by d mod w1 at the sender, and
    all that a node receives comes by its port of its own number: w1 times
    the bytes of the busiest port, so that bytes over all ports' bandwidth is
    the time of that port.
    """
    shape = None if tree_of(machine) is None else regular_shape(machine)
    if shape is None or shape.up[0] == 1:
        return demand.out, demand.into
    wide, number = shape.up[0], node_numbers(machine)
    node = np.arange(len(machine))
    both = _loads_by_port(demand.nodewise, node, number % wide, (len(machine), wide))
    out, into = (wide * amount.max(axis=1) for amount in both)
    return out, into


def tree_of(machine: Machine) -> Tree | None:
    """Return the layers of a tree or complete fat tree; None if a node pair has several paths.

    So where the cables form neither, several join two switches of one, or packets are stated to
    climb by any.
    """
    climbs_anywhere = machine.topology.parameters.get("routing") == "shortest"
    return None if climbs_anywhere else _layers_of(machine)


@once
def _layers_of(machine: Machine) -> Tree | None:
    if machine.topology.kind == "fattree":
        shape = regular_shape(machine)
        return None if shape is None else _layers_of_shape(machine, shape)
    return _layers_of_forest(machine)


def _layers_of_shape(machine: Machine, shape: TreeShape) -> Tree:
    """Return the layers of a complete fat tree, whose cables are listed level by level."""
    number, half, first, layers = node_numbers(machine), len(channels(machine)) // 2, 0, []
    part = np.full(shape.total, -1)
    leaves = shape.switches(1)
    part[:leaves] = np.arange(leaves) // shape.twins(1)
    for level in range(1, shape.height):
        sizes = shape.twins(level), shape.up[level], shape.parallel[level]
        ways, trees = int(np.prod(sizes)), shape.trees(level)
        rows = first + np.arange(trees * ways).reshape(trees, *sizes)
        cable = np.swapaxes(rows, 1, 3).reshape(trees, ways)
        none, first = np.full((1, ways), -1), first + cable.size
        up, down = (np.concatenate([table, none]) for table in (cable, half + cable))
        layers.append(Layer(part, number % ways, up, down))
        part = np.where(part >= 0, part // shape.down[level], -1)
    return Tree(tuple(layers), np.zeros(len(part), dtype=np.int64))


def _layers_of_forest(machine: Machine) -> Tree | None:
    """Return the layers of a tree, depth by depth; None if the links form none."""
    bundles, routers = links(machine), router_count(machine)
    a, b, cables = (column.astype(np.int64) for column in (bundles.a, bundles.b, bundles.count))
    parent, depth = _find_parents(machine)
    own_cables = bool(machine.topology.parameters.get("own_cables"))
    half = int(cables.sum())
    if len(a) != (parent >= 0).sum() or (half > len(a) and not own_cables):
        return None
    low, climbs = np.where(parent[a] == b, a, b), (parent[a] == b)[:, None]
    cable = np.arange(int(cables.max(initial=1)))
    row = np.where(cable < cables[:, None], (np.cumsum(cables) - cables)[:, None] + cable, -1)
    back = np.where(row >= 0, row + half, -1)
    up, down = np.full((2, routers + 1, len(cable)), -1)
    up[low], down[low] = np.where(climbs, row, back), np.where(climbs, back, row)
    leaf = machine.router[:, 0].astype(np.int64)
    cables_of = np.maximum(1, (up[leaf] >= 0).sum(axis=1))
    port = rank_within(leaf) % cables_of if own_cables else 0 * leaf
    ancestor, layers = _find_ancestors(parent, depth), []
    for level in range(len(ancestor) - 1, 0, -1):
        part, elsewhere = ancestor[level], np.append(depth != level, True)[:, None]
        ways = [np.where(elsewhere, -1, way) for way in (up, down)]
        own_port = np.where(part[leaf] == leaf, port, 0)
        layers.append(Layer(part, own_port, ways[0], ways[1], own_cables))
    return Tree(tuple(layers), ancestor[0])


def _find_parents(machine: Machine) -> tuple[Ints, Ints]:
    """Return each router's parent (-1 at roots) and depth, each part rooted at its last router."""
    cables, count = links(machine), router_count(machine)
    a, b = cables.a.astype(np.int64), cables.b.astype(np.int64)
    parent = np.full(count, -1, dtype=np.int64)
    depth = np.full(count, -1, dtype=np.int64)
    ends, far = np.concatenate([a, b]), np.concatenate([b, a])
    while (depth < 0).any():
        frontier = np.flatnonzero(depth < 0)[-1:]
        depth[frontier] = 0
        while len(frontier):
            here = np.zeros(count, dtype=np.bool_)
            here[frontier] = True
            rows = np.flatnonzero(here[ends] & (depth[far] < 0))
            parent[far[rows]] = ends[rows]
            frontier = np.unique(far[rows])
            depth[frontier] = depth[parent[frontier]] + 1
    return parent, depth


def _find_ancestors(parent: Ints, depth: Ints) -> Ints:
    """Return each router's ancestor at every depth; -1 below its own."""
    most = int(depth.max(initial=0))
    out = np.full((most + 1, len(parent)), -1, dtype=np.int64)
    at = np.arange(len(parent))
    for level in range(most, -1, -1):
        here = depth[at] == level
        out[level, here] = at[here]
        at = np.where(here & (parent[at] >= 0), parent[at], at)
    return out


def _joined_above(machine: Machine) -> bool:
    """Return whether there are several trees that are assumed to be joined."""
    tree = tree_of(machine)
    apart = tree is not None and bool((tree.root != tree.root[:1]).any())
    return apart and leaves_top_out(machine)


def _refuse_apart(machine: Machine, tree: Tree, demand: Demand) -> None:
    """Raise if bytes go between trees that are not connected."""
    if not (tree.root != tree.root[:1]).any():
        return
    lines = demand.within
    first = lines.end[np.searchsorted(lines.line, lines.line)]
    for source, target in ((demand.source, demand.target), (first, lines.end)):
        _refuse_ends(machine, tree, source, target)


def _refuse_ends(machine: Machine, tree: Tree, source: Ints, target: Ints) -> None:
    """Raise for the first pair of routers that is not connected."""
    apart = np.flatnonzero(tree.root[source] != tree.root[target])
    if len(apart) and not _joined_above(machine):
        raise no_path(machine, int(source[apart[0]]), int(target[apart[0]]))
