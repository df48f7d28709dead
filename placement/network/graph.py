"""Any graph of switches: traffic split equally over all shortest paths.

For InfiniBand fabrics whose cables make no regular tree. In a layered fabric
a path first climbs and then descends (up-down), as subnet managers route to
stay free of deadlocks: a switch is then two states, one that may still climb
and one that may not. Parallel links count singly, so a pair of links gets
twice what one link gets. ``single`` takes one of the nearest next hops, by the
number of the destination node, so that the choice depends on (switch,
destination) only: in layers by its digits as d-mod-k does, the lowest first.

All destinations of a block are worked on together: distances and numbers of
paths grow step by step from them, bytes then flow back the same way.

>>> from placement.network import channels
>>> from placement.specs import parse_spec
>>> m = parse_spec("fattree:leaf=1,leaves=3,spines=2")
>>> found = channels(m)
>>> switches = graph_of(found, 5, np.array([1, 1, 1, 2, 2]))
>>> one = Demand.pairs(m, np.array([0]), np.array([2]), 8.0)
>>> [n for n, x in zip(found.names().tolist(), loads(switches, m, one, len(found))) if x == 4]
['leaf0->spine0 up1', 'leaf0->spine1 up1', 'spine0->leaf2 down1', 'spine1->leaf2 down1']
>>> [n for n, x in zip(found.names().tolist(), single_loads(switches, m, one, found)) if x]
['leaf0->spine0 up1', 'spine0->leaf2 down1']
>>> hops(switches, m, np.array([0]), np.array([2])).tolist()
[2]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError, UsageError, printable
from placement.network.arrays import summed
from placement.network.demand import Demand
from placement.network.nodewise import Messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.model import Channels
    from placement.network.nodewise import Everyone

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = [
    "Graph",
    "graph_of",
    "hops",
    "joined",
    "loads",
    "next_channel",
    "no_path",
    "single_loads",
    "towards",
]

#: Numbers in one table of (steps x destinations).
_TABLE = 1 << 22

#: Rows times columns of the largest table of next channels.
_MOST = 1 << 28


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """States and the steps between them, sorted by the state that a step leaves.

    Attributes
    ----------
    routers : int
        State i < routers is router i that may still climb.
    states : int
    channel : int64 (e,)
        Channel of each step.
    source, target : int64 (e,)
        States.
    count : float64 (e,)
        Parallel links of the channel.
    divisor : int64 (routers,)
        `single` divides a destination's number by it before it chooses.
    offset : int64 (routers,)
        … and adds this.
    """

    routers: int
    states: int
    channel: Ints
    source: Ints
    target: Ints
    count: Floats
    divisor: Ints
    offset: Ints

    @property
    def copies(self) -> int:
        """States a router."""
        return self.states // max(1, self.routers)


def graph_of(channels: Channels, routers: int, level: Ints | None) -> Graph:
    """Return the graph of channels.

    Parameters
    ----------
    channels : Channels
    routers : int
    level : int (routers,) or None
        Of each router, 1 at the leaves, where paths climb first and then
        descend; None where any path will do.

    Returns
    -------
    Graph
    """
    source, target = channels.source.astype(np.int64), channels.target.astype(np.int64)
    every = np.arange(len(source))
    if level is None:
        rows, begin, end, states = every, source, target, routers
    else:
        climbs = level[target] > level[source]
        rows = np.concatenate([every, every[~climbs]])
        begin = np.concatenate([source, source[~climbs] + routers])
        end = np.concatenate(
            [np.where(climbs, target, target + routers), target[~climbs] + routers]
        )
        states = 2 * routers
    order = np.argsort(begin, kind="stable")
    count = channels.count[rows].astype(np.float64)
    steps = rows[order], begin[order], end[order], count[order]
    return Graph(routers, states, *steps, *_digits(source, target, routers, level))


def _digits(source: Ints, target: Ints, routers: int, level: Ints | None) -> tuple[Ints, Ints]:
    """Return what `single` divides by and adds at each router: in layers a digit a level."""
    if level is None:
        return np.ones(routers, dtype=np.int64), np.arange(routers)
    parents = np.bincount(source[level[target] > level[source]], minlength=routers)
    most = np.ones(int(level.max(initial=1)) + 1, dtype=np.int64)
    np.maximum.at(most, level, parents)
    below = np.cumprod(np.concatenate([[1, 1], most[1:-1]]))
    return below[level], np.zeros(routers, dtype=np.int64)


def loads(graph: Graph, machine: Machine, demand: Demand, channels: int) -> Floats:
    """Return the bytes on every channel when traffic splits over all shortest paths.

    Parameters
    ----------
    graph : Graph
    machine : Machine
        For the names in errors.
    demand : Demand
    channels : int
        How many there are.

    Returns
    -------
    float64 (channels,)

    Raises
    ------
    NidmapError
        Where no path joins two switches that exchange bytes.
    """
    back = demand.reversed()
    out = np.zeros(channels)
    for low, high in _blocks(graph):
        table = back.table(low, high).T
        wanted = np.flatnonzero(table.any(axis=0))
        if len(wanted):
            flow = np.zeros((graph.states, len(wanted)))
            flow[: graph.routers] = table[:, wanted]
            far = _distances(graph, wanted + low)
            _refuse_lost(machine, flow, far, wanted + low)
            out += _carried(graph, far, flow, channels)
    return out


def single_loads(graph: Graph, machine: Machine, demand: Demand, channels: Channels) -> Floats:
    """Return the bytes on every channel when each router has one next hop a node.

    Parameters and errors as for `loads`. A node with several links is reached
    by its first.
    """
    out = np.zeros(len(channels))
    nodes = np.flatnonzero(demand.into > 0)
    step = max(1, _TABLE // max(1, graph.routers))
    for first in range(0, len(nodes), step):
        some = nodes[first : first + step]
        target, place = np.unique(machine.router[some, 0].astype(np.int64), return_inverse=True)
        far = _near(graph, target)[:, place]
        flow = towards(machine, demand, some, graph.routers)
        _refuse_lost(machine, flow, far, target[place])
        chosen = _chosen(graph, target, place, some)
        for near in range(int(far.max(initial=0)), 0, -1):
            router, column = np.nonzero((far == near) & (flow > 0))
            channel, amount = chosen[router, column], flow[router, column]
            out += summed(channel, amount, len(out))
            after = channels.target[channel] * np.int64(len(some)) + column
            flow += summed(after, amount, flow.size).reshape(flow.shape)
    return out


def towards(machine: Machine, demand: Demand, nodes: Ints, routers: int) -> Floats:
    """Return the bytes from each router to some nodes, float64 (routers, b).

    Parameters
    ----------
    machine : Machine
    demand : Demand
        Of a machine of which it keeps what goes node by node.
    nodes : int64 (b,)
        Rows of the machine, ascending.
    routers : int
    """
    column = np.full(len(machine), -1, dtype=np.int64)
    column[nodes] = np.arange(len(nodes))
    out = np.zeros((routers, len(nodes)))
    nics = (machine.router >= 0).sum(axis=1)
    for part in demand.nodewise:
        for first in machine.router.T.astype(np.int64):
            if isinstance(part, Messages):
                rows = np.flatnonzero((first[part.a] >= 0) & (column[part.b] >= 0))
                key = first[part.a[rows]] * len(nodes) + column[part.b[rows]]
                amount = part.amount[rows] / nics[part.a[rows]]
                out += summed(key, amount, out.size).reshape(out.shape)
            else:
                out += _from_lines(part, first, nics, column, out.shape)
    return out


def _from_lines(
    part: Everyone, first: Ints, nics: Ints, column: Ints, shape: tuple[int, int]
) -> Floats:
    """Return the bytes of all-to-alls from one link of each node to the nodes of some columns."""
    out = np.zeros(shape)
    lines = int(part.line[-1]) + 1
    step = max(1, _TABLE // sum(shape))
    for low in range(0, lines, step):
        start, end = np.searchsorted(part.line, [low, low + step])
        line, row = part.line[start:end] - low, part.row[start:end]
        ranks = part.ranks[start:end]
        sends, takes = first[row] >= 0, column[row] >= 0
        tables = []
        for kept, place, weight, size in (
            (sends, first[row], ranks / np.maximum(nics[row], 1), shape[0]),
            (takes, column[row], ranks, shape[1]),
        ):
            key = line[kept] * size + place[kept]
            tables.append(summed(key, weight[kept], step * size).reshape(step, size))
        out += tables[0].T @ tables[1]
        both = np.flatnonzero(sends & takes)  # a node sends nothing to itself
        own = ranks[both] ** 2 / np.maximum(nics[row[both]], 1)
        out -= summed(first[row[both]] * shape[1] + column[row[both]], own, out.size).reshape(shape)
    return part.amount * np.maximum(out, 0.0)


def hops(graph: Graph, machine: Machine, source: Ints, target: Ints) -> Ints:
    """Return how many channels a shortest path has, int64 (m,).

    Raises
    ------
    NidmapError
        Where no path joins two of them.
    """
    wanted, place = np.unique(target, return_inverse=True)
    out = np.zeros(len(source), dtype=np.int64)
    step = _step(graph)
    for low in range(0, len(wanted), step):
        some = np.flatnonzero((place >= low) & (place < low + step))
        far = _distances(graph, wanted[low : low + step])
        out[some] = far[source[some], place[some] - low]
        if (out[some] < 0).any():
            row = some[int(np.argmax(out[some] < 0))]
            raise no_path(machine, int(source[row]), int(target[row]))
    return out


def next_channel(graph: Graph, machine: Machine) -> NDArray[np.int32]:
    """Return the channel of ``single`` from each router towards each node.

    Returns
    -------
    int32 (routers, nodes)
        -1 where the node is attached to the router, or no path leads there.
    """
    if graph.routers * len(machine) > _MOST:
        raise UsageError(f"a table of {graph.routers} x {len(machine)} next hops is too large")
    out = np.full((graph.routers, len(machine)), -1, dtype=np.int32)
    known = np.flatnonzero(machine.router[:, 0] >= 0)
    target, place = np.unique(machine.router[known, 0].astype(np.int64), return_inverse=True)
    out[:, known] = _chosen(graph, target, place, known)
    for column in machine.router.T:
        rows = np.flatnonzero(column >= 0)
        out[column[rows], rows] = -1
    return out


def joined(graph: Graph, routers: Ints) -> bool:
    """Return whether paths lead from each of some routers to each other."""
    step = _step(graph)
    blocks = (routers[low : low + step] for low in range(0, len(routers), step))
    return all(bool((_distances(graph, some)[routers] >= 0).all()) for some in blocks)


def _step(graph: Graph) -> int:
    """Return how many destinations are worked on together."""
    return max(1, _TABLE // max(1, len(graph.source), graph.states))


def _blocks(graph: Graph) -> Iterator[tuple[int, int]]:
    step = _step(graph)
    for low in range(0, graph.routers, step):
        yield low, min(low + step, graph.routers)


def _distances(graph: Graph, targets: Ints) -> Ints:
    """Return the steps from every state to each target, -1 where none lead there; (states, b)."""
    far = np.full((graph.states, len(targets)), -1, dtype=np.int64)
    for copy in range(graph.copies):
        far[targets + copy * graph.routers, np.arange(len(targets))] = 0
    first, states = _starts(graph)
    for step in range(1, graph.states + 1):
        reached = np.logical_or.reduceat(far[graph.target] == step - 1, first, axis=0)
        new = np.zeros(far.shape, dtype=np.bool_)
        new[states] = reached & (far[states] < 0)
        if not new.any():
            break
        far[new] = step
    return far


def _starts(graph: Graph) -> tuple[Ints, Ints]:
    """Return where the steps of each state begin, and the states that have any."""
    first = np.flatnonzero(np.diff(graph.source, prepend=-1))
    return first, graph.source[first]


def _paths(graph: Graph, far: Ints) -> Floats:
    """Return the number of shortest paths from every state to each target."""
    number: Floats = (far == 0).astype(np.float64)
    first, states = _starts(graph)
    nearer = far[graph.source] == far[graph.target] + 1
    nearer &= far[graph.target] >= 0
    for step in range(1, int(far.max(initial=0)) + 1):
        each = np.where(nearer, number[graph.target] * graph.count[:, None], 0.0)
        table = np.zeros_like(number)
        table[states] = np.add.reduceat(each, first, axis=0)
        number = np.where(far == step, table, number)
    return number


def _near(graph: Graph, targets: Ints) -> Ints:
    """Return the steps from every router that may climb to each target, (routers, b)."""
    step = _step(graph)
    blocks = range(0, len(targets), step)
    parts = [_distances(graph, targets[b : b + step])[: graph.routers] for b in blocks]
    return np.concatenate(parts, axis=1) if parts else np.zeros((graph.routers, 0), dtype=np.int64)


def _chosen(graph: Graph, targets: Ints, place: Ints, nodes: Ints) -> Ints:
    """Return the channel by which each router forwards to each node, -1 for none.

    Of the neighbours nearest to the node's switch (as one that may still
    climb) the node's number says which.

    Parameters
    ----------
    graph : Graph
    targets : int64 (t,)
        Switches.
    place : int64 (b,)
        Which of them each node is on.
    nodes : int64 (b,)
        Their numbers.

    Returns
    -------
    int64 (routers, b)
    """
    edge, number = _able(graph, targets)
    start = np.cumsum(number, axis=None).reshape(number.shape) - number
    digit = nodes // graph.divisor[:, None] + graph.offset[:, None]
    many = number[:, place]
    row = start[:, place] + digit % np.maximum(many, 1)
    if not len(edge):
        return np.full(row.shape, -1, dtype=np.int64)
    return np.where(many > 0, graph.channel[edge[np.minimum(row, len(edge) - 1)]], -1)


def _able(graph: Graph, targets: Ints) -> tuple[Ints, Ints]:
    """Return the steps that lead nearest to each target, by router and then target.

    Returns
    -------
    step : int64 (k,)
    number : int64 (routers, t)
        How many there are.
    """
    near = _near(graph, targets)
    number = np.zeros((graph.routers, len(targets)), dtype=np.int64)
    last = int(np.searchsorted(graph.source, graph.routers))
    found = []
    for router, low, high in _by_router(graph, last):
        ahead = near[graph.target[low:high] % graph.routers]
        ahead = np.where(ahead < 0, np.iinfo(np.int64).max, ahead)
        able = (ahead == ahead.min(axis=0)) & (ahead < near[router])
        number[router] = able.sum(axis=0)
        found.append(np.nonzero(able.T)[1] + low)
    return np.concatenate([np.zeros(0, dtype=np.int64), *found]), number


def _by_router(graph: Graph, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield each router that has steps, and where they begin and end."""
    first = np.flatnonzero(np.diff(graph.source[:last], prepend=-1)).tolist()
    for low, high in zip(first, [*first[1:], last], strict=True):
        yield int(graph.source[low]), low, high


def _refuse_lost(machine: Machine, flow: Floats, far: Ints, targets: Ints) -> None:
    """Raise where bytes have to go where no path leads."""
    lost = (flow > 0) & (far < 0)
    if lost.any():
        source, column = np.argwhere(lost)[0]
        raise no_path(machine, int(source), int(targets[column]))


def _carried(graph: Graph, far: Ints, flow: Floats, channels: int) -> Floats:
    """Return the loads when every state splits over its shortest paths."""
    paths = _paths(graph, far)
    nearer = (far[graph.source] == far[graph.target] + 1) & (far[graph.target] >= 0)
    share = np.where(nearer, paths[graph.target] * graph.count[:, None], 0.0)
    share /= np.maximum(paths[graph.source], 1.0)
    by_target = np.argsort(graph.target, kind="stable")
    first = np.flatnonzero(np.diff(graph.target[by_target], prepend=-1))
    states = graph.target[by_target][first]
    out = np.zeros(channels)
    for step in range(int(far.max(initial=0)), 0, -1):
        leaves = np.where(far == step, flow, 0.0)
        moved = leaves[graph.source] * share
        out += summed(graph.channel, moved.sum(axis=1), channels)
        flow[states] += np.add.reduceat(moved[by_target], first, axis=0)
    return out


def no_path(machine: Machine, source: int, target: int) -> NidmapError:
    """Return the error that nothing joins two routers."""
    from placement.topologies import router_names

    names = router_names(machine)
    a, b = (printable(str(names[i])) for i in (source, target))
    return NidmapError(f"no path joins {a} and {b}", "is the list of links whole?")
