"""Trees of switches: one way between any two, up to the first common switch and down again.

What leaves a switch's subtree climbs its link, what comes in descends it. So
the load of a link is a sum by labels: at each depth, bytes between routers
whose ancestors at that depth differ. Uneven trees (a topology.conf) need
nothing more. Switches that a list joins with more links than a tree has are
any graph (`placement.network.switches`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from placement.machine import Machine, once
from placement.network import shortest_paths, switches
from placement.network.demand import Demand
from placement.network.rails import no_path
from placement.network.shortest_paths import refuse_large_table
from placement.network.switches import channels
from placement.support.array_types import Floats, Ints
from placement.support.arrays import add_by_key, rank_within
from placement.topologies import links, router_count

__all__ = [
    "channels",
    "forest_of",
    "hops",
    "joined_above",
    "loads",
    "next_channel",
    "notes",
    "routings",
]


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Switches with one above each.

    Attributes
    ----------
    ancestor : int64 (depths + 1, r)
        Router above each at depth 0 (the roots), 1, …; -1 below its own depth.
    depth : int64 (r,)
    up, down : int64 (r,)
        Channel to and from the switch above; -1 at a root.
    out, into : int64 (n,) or None
        Channel by which each node's bytes leave its switch, and come in, where every node has
        a cable of its own (``own_cables``); -1 below a root. None elsewhere.
    """

    ancestor: Ints
    depth: Ints
    up: Ints
    down: Ints
    out: Ints | None = None
    into: Ints | None = None


def routings(machine: Machine) -> tuple[str, ...]:
    """Return the routings that apply: a tree leaves no choice of switches.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> routings(parse_spec("tree:4x4"))
    ('single',)
    """
    cables = links(machine)
    parent, _ = _find_parents(
        router_count(machine), cables.a.astype(np.int64), cables.b.astype(np.int64)
    )
    return ("single",) if len(cables) == int((parent >= 0).sum()) else ("shortest", "single")


def loads(machine: Machine, demand: Demand, routing: str = "single") -> Floats:
    """Return the bytes on every channel, float64 (c,).

    Raises
    ------
    NidmapError
        Where nothing joins two switches that exchange bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.network.demand import Demand
    >>> from placement.traffic import Traffic
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("tree:2x2,bw=5")
    >>> loads(m, Demand.of(m, Traffic.everyone(np.arange(4), 1, 1.0))).tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    forest = forest_of(machine)
    if forest is None:
        return switches.loads(machine, demand, routing)
    _refuse_apart(machine, forest, demand)
    out = np.zeros(len(channels(machine)))
    for label in forest.ancestor[1:]:
        climbing, descending = demand.leaving(label, len(label))
        for load, way in ((climbing, forest.up), (descending, forest.down)):
            busy = np.flatnonzero(load)
            out[way[busy]] += load[busy]
    if forest.out is not None and forest.into is not None:
        leaf = machine.router[:, 0].astype(np.int64)
        both = _beyond_switch(leaf, demand)
        ways = (forest.up, forest.out), (forest.down, forest.into)
        for amount, (way, cable) in zip(both, ways, strict=True):
            out[way[leaf[cable >= 0]]] = 0.0
            np.add.at(out, cable[cable >= 0], amount[cable >= 0])
    return out


def _beyond_switch(leaf: Ints, demand: Demand) -> tuple[Floats, Floats]:
    """Return the bytes that each node sends to, and receives from, nodes of other switches."""
    traffic, lines = demand.nodewise, demand.nodewise.all_to_alls
    far = traffic.some(leaf[traffic.source] != leaf[traffic.target])
    ends = far.source, far.target
    sent, received = (add_by_key(end, far.bytes, len(leaf)) for end in ends)
    if len(lines):
        total = add_by_key(lines.line, lines.weight)[lines.line]
        _, unit = np.unique(lines.line * demand.routers + leaf[lines.end], return_inverse=True)
        others = total - add_by_key(unit, lines.weight)[unit]
        both = add_by_key(lines.end, lines.scale[lines.line] * lines.weight * others, len(leaf))
        sent, received = sent + both, received + both
    return sent, received


def hops(machine: Machine, source: Ints, target: Ints, routing: str = "single") -> Floats:
    """Return the channels of each class on the way between routers, float64 (m, classes).

    Where switches make no tree, all steps count in the first class.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> hops(parse_spec("tree:2x2x2,bw=5"), np.array([0, 0]), np.array([1, 3])).tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
    """
    source, target = np.asarray(source, np.int64), np.asarray(target, np.int64)
    forest, links = forest_of(machine), channels(machine)
    if forest is None:
        return switches.hops(machine, source, target)
    out = np.zeros((len(source), max(1, len(links.kinds))))
    _refuse_ends(machine, forest, source, target)
    for label in forest.ancestor[1:]:
        for end, way in ((source, forest.up), (target, forest.down)):
            rows = np.flatnonzero((label[source] != label[target]) & (label[end] >= 0))
            out[rows, links.kind[way[label[end[rows]]]]] += 1
    return out


def next_channel(machine: Machine, routing: str, nodes: Ints) -> Ints:
    """Return the channel from each router towards some nodes, -1 where it is attached.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> next_channel(parse_spec("tree:1x2"), "single", np.arange(2)).tolist()
    [[-1, 0], [1, -1], [2, 3]]
    """
    forest = forest_of(machine)
    if forest is None or machine.router.shape[1] > 1:
        return switches.next_channel(machine, nodes)
    at = machine.router[nodes, 0].astype(np.int64)
    refuse_large_table(len(forest.depth), len(at))
    out = np.repeat(forest.up[:, None], len(at), axis=1)
    above = np.where(at >= 0, forest.ancestor[:, at], -1)
    for label, below in pairwise(above):
        inside = np.flatnonzero(below >= 0)
        out[label[inside], inside] = forest.down[below[inside]]
    if forest.into is not None:
        out = np.where(out == forest.down[at], forest.into[nodes], out)
    out[forest.ancestor[0][:, None] != above[0]] = -1
    return shortest_paths.stop_at_switches(machine, nodes, out)


def notes(machine: Machine, routing: str = "") -> tuple[str, ...]:
    """Return what was assumed where the switches make no tree, or several.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> notes(parse_spec("tree:2x2"))
    ()
    """
    forest = forest_of(machine)
    if forest is not None and joined_above(machine):
        roots = len(np.unique(forest.ancestor[0]))
        return (f"no listed link joins the {roots} top switches: no bandwidth is known above them",)
    if forest is not None or routing == "single":
        return ()
    return (
        "the switches do not form a tree: traffic is split equally over all shortest "
        "paths, parallel links each on their own",
    )


@once
def forest_of(machine: Machine) -> Forest | None:
    """Return the tree, None where the links make none, or several cables join two switches."""
    bundles = links(machine)
    half = int(bundles.count.sum())
    a, b = bundles.a.astype(np.int64), bundles.b.astype(np.int64)
    count = router_count(machine)
    parent, depth = _find_parents(count, a, b)
    low = np.where(parent[a] == b, a, b)
    own_cables = bool(machine.topology.parameters.get("own_cables"))
    if len(a) != int((parent >= 0).sum()) or (half > len(a) and not own_cables):
        return None
    up, down = np.full(count, -1, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    row = np.cumsum(bundles.count, dtype=np.int64) - bundles.count
    up[low] = np.where(low == a, row, row + half)
    down[low] = np.where(low == a, row + half, row)
    forest = Forest(_find_ancestors(parent, depth), depth, up, down)
    if not own_cables:
        return forest
    cables = np.ones(count, dtype=np.int64)
    cables[low] = bundles.count
    leaf = machine.router[:, 0].astype(np.int64)
    cable = rank_within(leaf) % cables[leaf]
    out, into = (np.where(way[leaf] >= 0, way[leaf] + cable, -1) for way in (up, down))
    return replace(forest, out=out, into=into)


def _find_parents(count: int, a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """Return each router's parent (-1 at roots) and depth, each part rooted at its last router."""
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
    """Return the router above each at every depth, -1 below its own."""
    most = int(depth.max(initial=0))
    out = np.full((most + 1, len(parent)), -1, dtype=np.int64)
    at = np.arange(len(parent))
    for level in range(most, -1, -1):
        here = depth[at] == level
        out[level, here] = at[here]
        at = np.where(here & (parent[at] >= 0), parent[at], at)
    return out


def _refuse_apart(machine: Machine, forest: Forest, demand: Demand) -> None:
    """Raise where bytes go between trees that nothing joins."""
    root = forest.ancestor[0]
    if not (root != root[0]).any() or joined_above(machine):
        return
    rows = np.flatnonzero(root[demand.source] != root[demand.target])
    if len(rows):
        _refuse_ends(machine, forest, demand.source[rows[:1]], demand.target[rows[:1]])
    lines = demand.within
    first = lines.end[np.searchsorted(lines.line, lines.line)]
    _refuse_ends(machine, forest, first, lines.end)


def joined_above(machine: Machine) -> bool:
    """Return whether several trees are taken as joined: Slurm's files may leave the top out."""
    forest = forest_of(machine)
    apart = forest is not None and bool((forest.ancestor[0] != forest.ancestor[0][:1]).any())
    return apart and not machine.topology.fabric  # a fabric's own list has every cable


def _refuse_ends(machine: Machine, forest: Forest, source: Ints, target: Ints) -> None:
    if joined_above(machine):
        return
    apart = np.flatnonzero(forest.ancestor[0][source] != forest.ancestor[0][target])
    if len(apart):
        raise no_path(machine, int(source[apart[0]]), int(target[apart[0]]))
