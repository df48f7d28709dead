"""Fat trees under d-mod-k: the destination's index chooses every port on the way up.

The up-port at level l is q = floor(d / (w1 … wl)) mod (w(l+1) p(l+1)), d the
index of the destination, w the parents a node has at each level and p the
cables to each of them (Zahavi 2010; as in SimGrid's fat trees): cable q div w
to parent q mod w. So the switch of level l that a message to d climbs to has
the number d mod (w1 … wl) among the twins of its subtree, and it comes down
through the twins of that number too, by the cables of that number: a switch
forwards by the destination alone. The load of a cable is a count by (subtree,
d mod w1 … w(l+1) p(l+1)) of the bytes that leave or enter the subtree:
nothing is walked, and an all-to-all needs sums of weights only.

d is the place of the node in the whole tree, leaf by leaf (leaf x nodes a
leaf + place on the leaf), so absent nodes leave the others' routes alone.

Fabrics whose list of cables is a whole two-level tree (every leaf joined to
every spine alike) are routed the same way. Others are not regular: their
traffic is split equally over all shortest paths that climb and then descend
(``shortest``), and the notes say so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.all_to_alls import AllToAlls, product_over_lines
from placement.machine import Machine, once
from placement.network import switches
from placement.network.demand import Demand
from placement.network.shortest_paths import refuse_large_table
from placement.network.switches import channels
from placement.support.array_types import Floats, Ints
from placement.support.arrays import add_by_key
from placement.topologies import number_coords
from placement.topologies.fattree import TreeShape, shape

__all__ = [
    "by_residue",
    "channels",
    "hops",
    "loads",
    "next_channel",
    "notes",
    "ports",
    "regular_tree",
    "routings",
]


@dataclass(frozen=True, slots=True, eq=False)
class Regular:
    """A whole fat tree, and where its nodes are.

    Attributes
    ----------
    shape : TreeShape
    index : int64 (n,)
        Place of each node in the whole tree: its d.
    first : tuple of int
        Row of the first link of each level 1 … h-1 (and the number of links).
    """

    shape: TreeShape
    index: Ints
    first: tuple[int, ...]

    def subtree(self, level: int) -> Ints:
        """Return the subtree of each node at a level, int64 (n,)."""
        return self.index // int(np.prod(self.shape.down[:level]))

    def ways(self, level: int) -> int:
        """Return how many remainders of d tell cables apart: w1 … w(level+1) p(level+1)."""
        parallel = self.shape.parallel[level] if level else 1  # a node's own cables are its NICs'
        return self.shape.twins(level + 1) * parallel


def routings(machine: Machine) -> tuple[str, ...]:
    """Return the routings that apply, the default first.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> routings(parse_spec("fattree:leaf=2,leaves=2,spines=2"))
    ('d-mod-k', 'single')
    """
    return ("d-mod-k", "single") if regular_tree(machine) is not None else ("shortest", "single")


def loads(machine: Machine, demand: Demand, routing: str = "d-mod-k") -> Floats:
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
    >>> m = parse_spec("fattree:leaf=2,leaves=2,spines=2")
    >>> one = Demand.of(m, Traffic.of(np.array([0, 1]), np.array([3, 3]), 5.0))
    >>> found = channels(m)
    >>> [(n, x) for n, x in zip(found.names().tolist(), loads(m, one).tolist()) if x]
    [('leaf0->spine1 up1', 10.0), ('spine1->leaf1 down1', 10.0)]
    """
    regular = regular_tree(machine)
    if regular is None:
        return switches.loads(machine, demand, routing)
    half = regular.first[-1]
    out = np.zeros(2 * half)
    for level in range(1, regular.shape.height):
        up, down = _level_loads(regular, demand, level)
        rows = slice(regular.first[level - 1], regular.first[level])
        out[:half][rows] = _by_link(regular.shape, level, up)
        out[half:][rows] = _by_link(regular.shape, level, down)
    return out


def hops(machine: Machine, source: Ints, target: Ints, routing: str = "d-mod-k") -> Floats:
    """Return the channels of each class on the way between leaf switches.

    Where the tree is not regular, all steps count in the first class.

    Returns
    -------
    float64 (m, classes)

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("fattree:down=2x2x2,up=1x2x2")
    >>> hops(m, np.array([0, 0, 0]), np.array([0, 1, 2])).tolist()
    [[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
    """
    source, target = np.asarray(source, np.int64), np.asarray(target, np.int64)
    regular, links = regular_tree(machine), channels(machine)
    if regular is None:
        return switches.hops(machine, source, target)
    out = np.zeros((len(source), max(1, len(links.kinds))))
    a, b = source // regular.shape.twins(1), target // regular.shape.twins(1)
    for level in range(1, regular.shape.height):
        apart = (a != b).astype(np.float64)
        for word in ("up", "down"):
            out[:, links.kinds.index(f"{word}{level}")] = apart
        a, b = a // regular.shape.down[level], b // regular.shape.down[level]
    return out


def next_channel(machine: Machine, routing: str, nodes: Ints) -> Ints:
    """Return the channel from each switch towards some nodes, -1 where it is attached.

    Returns
    -------
    int64 (routers, nodes)

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("fattree:leaf=1,leaves=2,spines=2")
    >>> next_channel(m, "single", np.arange(2)).tolist()
    [[-1, 1], [2, -1], [4, 6], [5, 7]]
    """
    regular = regular_tree(machine)
    if regular is None:
        return switches.next_channel(machine, nodes)
    tree, d, half = regular.shape, regular.index[nodes], regular.first[-1]
    refuse_large_table(tree.total, len(d))
    out = np.full((tree.total, len(d)), -1, dtype=np.int64)
    for level in range(1, tree.height + 1):
        switch = np.arange(tree.switches(level))[:, None]
        place, twin = np.divmod(switch, tree.twins(level))
        towards = np.full((len(switch), len(d)), -1, dtype=np.int64)
        if level > 1:
            parent, below = np.divmod(twin, tree.twins(level - 1))
            lower = regular.subtree(level - 1)[nodes] * tree.twins(level - 1) + below
            cable = d % regular.ways(level - 1) // tree.twins(level)
            port = cable * tree.up[level - 1] + parent
            towards = half + _cable_row(regular, level - 1, lower, port)
        if level < tree.height:
            climb = _cable_row(regular, level, switch, d % regular.ways(level) // tree.twins(level))
            towards = np.where(regular.subtree(level)[nodes] == place, towards, climb)
        out[tree.first(level) : tree.first(level) + len(switch)] = towards
    return out


def notes(machine: Machine, routing: str = "") -> tuple[str, ...]:
    """Return what was assumed where the fat tree is not regular.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> notes(parse_spec("fattree:leaf=2,leaves=2,spines=2"))
    ()
    """
    if regular_tree(machine) is not None or routing == "single":
        return ()
    climb = " that climb and then descend" if switches.graph(machine).climbs else ""
    return (
        "the listed cables do not form a regular fat tree, so d-mod-k does not apply: traffic is "
        f"split equally over all shortest paths{climb}, parallel links each on their own",
    )


def ports(machine: Machine, demand: Demand) -> tuple[Floats, Floats]:
    """Return the bytes that count for each node's own links, out and in, float64 (n,) each.

    With one parent a node these are the bytes that it sends and receives.
    With w1 parents d-mod-k chooses the port by d mod w1 at the sender, and
    all that a node receives comes by its port of its own number: w1 times
    the bytes of the busiest port, so that bytes over all ports' bandwidth is
    the time of that port.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.network.demand import Demand
    >>> from placement.traffic import Traffic
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("fattree:down=2x2,up=2x2")
    >>> [x.tolist() for x in ports(m, Demand.of(m, Traffic.everyone(np.arange(4), 1, 1.0)))]
    [[4.0, 4.0, 4.0, 4.0], [6.0, 6.0, 6.0, 6.0]]
    """
    regular = regular_tree(machine)
    if regular is None or regular.shape.up[0] == 1:
        return demand.out, demand.into
    wide = regular.shape.up[0]
    up, down = _level_loads(regular, demand, 0)
    place = regular.index
    return wide * up.max(axis=1)[place], wide * down.max(axis=1)[place]


def _level_loads(regular: Regular, demand: Demand, level: int) -> tuple[Floats, Floats]:
    """Return bytes that leave and enter each subtree of a level by the destination's residue.

    Returns
    -------
    up, down : float64 (subtrees, remainders)
    """
    subtree, ways = regular.subtree(level), regular.ways(level)
    residue, size = regular.index % ways, (regular.shape.trees(level), ways)
    traffic = demand.nodewise
    a, b = subtree[traffic.source], subtree[traffic.target]
    apart = np.flatnonzero(a != b)
    port, amount = residue[traffic.target[apart]], traffic.bytes[apart]
    spots, count = (end[apart] * ways + port for end in (a, b)), size[0] * ways
    up, down = (add_by_key(spot, amount, count).reshape(size) for spot in spots)
    if len(traffic.all_to_alls):
        more = _all_to_alls(traffic.all_to_alls, subtree, residue, size)
        up, down = up + more[0], down + more[1]
    return up, down


def _all_to_alls(
    lines: AllToAlls, subtree: Ints, residue: Ints, size: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Return `_level_loads` of all-to-alls: a subtree's bytes by residue, less what stays in it."""
    line, ranks, tree, port = lines.line, lines.weight, subtree[lines.end], residue[lines.end]
    total, sent = add_by_key(line, ranks), lines.scale[line] * ranks
    _, place = np.unique(line * size[0] + tree, return_inverse=True)
    inside = add_by_key(place, ranks)[place]
    spot, count = tree * size[1] + port, size[0] * size[1]
    sides = (line, tree, ranks), (line, port, ranks)
    up = product_over_lines(*sides, lines.scale, *size)
    up -= add_by_key(spot, sent * inside, count).reshape(size)
    down = add_by_key(spot, sent * (total[line] - inside), count).reshape(size)
    return np.maximum(up, 0.0), down


def _by_link(tree: TreeShape, level: int, load: Floats) -> Floats:
    """Return loads by (subtree, remainder) in the order of the level's cables."""
    sizes = tree.parallel[level], tree.up[level], tree.twins(level)
    return load.reshape(tree.trees(level), *sizes).transpose(0, 3, 2, 1).ravel()


def by_residue(regular: Regular, level: int, price: Floats) -> tuple[Floats, Floats]:
    """Return the prices of a level's cables up and down, (subtrees, remainders) each."""
    tree, half = regular.shape, regular.first[-1]
    rows = slice(regular.first[level - 1], regular.first[level])
    sizes = tree.twins(level), tree.up[level], tree.parallel[level]
    up, down = (
        some[rows].reshape(-1, *sizes).transpose(0, 3, 2, 1).reshape(-1, regular.ways(level))
        for some in (price[:half], price[half:])
    )
    return up, down


def _cable_row(regular: Regular, level: int, lower: Ints, port: Ints) -> Ints:
    """Return the row of a cable up from a switch of a level, `port` its q of the module's text."""
    parents, parallel = regular.shape.up[level], regular.shape.parallel[level]
    pair = lower * parents + port % parents
    return regular.first[level - 1] + pair * parallel + port // parents


@once
def regular_tree(machine: Machine) -> Regular | None:
    """Return the whole fat tree, None where the listed cables make none."""
    tree = shape(machine.topology) if machine.links is None else _two_levels(machine)
    if tree is None:
        return None
    levels = range(1, tree.height)
    sizes = [tree.switches(level) * tree.up[level] * tree.parallel[level] for level in levels]
    first = tuple(np.cumsum([0, *sizes]).tolist())
    return Regular(tree, number_coords(machine.coords, machine.topology.extents), first)


def _two_levels(machine: Machine) -> TreeShape | None:
    """Return the shape of listed cables that join every leaf to every spine alike."""
    links, topology = machine.links, machine.topology
    if links is None or topology.router_levels != 1 or (machine.router >= 0).sum(axis=1).max() > 1:
        return None
    leaves, most = topology.extents
    spines = len(links) // leaves
    bipartite = (links.a < leaves).all() and (links.b >= leaves).all()
    if not spines or len(links) != leaves * spines or not bipartite:
        return None
    if len(np.unique(links.b)) != spines or len(np.unique(links.count)) != 1:
        return None
    if not np.array_equal(machine.router[:, 0], machine.coords[:, 0]):
        return None
    return TreeShape((most, leaves), (1, spines), (1, int(links.count[0])))
