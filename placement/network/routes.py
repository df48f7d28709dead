"""Routes between few nodes, all pairs at once: which channels, and what share of a message.

For networks on which one path, or a known division, joins two routers; where
the answer is None, `placement.network.loads` tells pair by pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.fattree import Regular
    from placement.network.torus_grid import Grid
    from placement.network.tree import Forest

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["FOLLOWED", "routes"]

#: Routings that are followed, by kind of network.
FOLLOWED = {
    "dragonfly": ("minimal",),
    "torus": ("dimension-order", "single"),
    "fattree": ("d-mod-k", "single"),
    "tree": ("single",),
}


def routes(machine: Machine, rows: Ints, routing: str) -> tuple[Ints, Floats] | None:
    """Return the channels between some nodes, and the share of a message on each.

    Parameters
    ----------
    machine : Machine
    rows : int64 (k,)
        Rows of the machine.
    routing : str

    Returns
    -------
    channels : int64 (c,)
        Rows of the machine's channels that any route takes.
    share : float64 (k, k, c)
        0 from a node to itself.
    None
        For another routing, or a network with links missing.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> used, share = routes(parse_spec("torus:4"), np.array([0, 3]), "dimension-order")
    >>> used.tolist(), share[1, 0].tolist()
    ([3, 4], [1.0, 0.0])
    """
    kind = machine.topology.kind
    if routing not in FOLLOWED.get(kind, ()):
        return None
    if kind == "dragonfly":
        return _dragonfly(machine, rows)
    if machine.router.shape[1] > 1:
        return None
    walk = {"torus": _torus, "fattree": _fattree, "tree": _tree}[kind](machine, rows)
    return None if walk is None else _gathered(len(rows), walk)


def _gathered(count: int, walk: Iterator[tuple[Ints, Ints]]) -> tuple[Ints, Floats]:
    """Return routes from steps, each (pair of nodes as one number, channel)."""
    steps = list(walk)
    pair = np.concatenate([one for one, _ in steps] or [np.zeros(0, dtype=np.int64)])
    channel = np.concatenate([other for _, other in steps] or [np.zeros(0, dtype=np.int64)])
    used, place = np.unique(channel, return_inverse=True)
    share = np.zeros((count * count, len(used)))
    np.add.at(share, (pair, place), 1.0)
    return used.astype(np.int64), share.reshape(count, count, len(used))


def _torus(machine: Machine, rows: Ints) -> Iterator[tuple[Ints, Ints]] | None:
    from placement.network.torus_grid import made

    grid = made(machine)[0]
    return _ways_round(grid, grid.position[machine.router[rows, 0]]) if all(grid.whole) else None


def _ways_round(grid: Grid, position: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the steps along each axis in turn."""
    from placement.network import rings

    count = len(position)
    pair = np.arange(count * count)
    at, to = np.repeat(position, count), np.tile(position, count)
    for axis, extent in enumerate(grid.extents):
        start = grid.along(at, axis)
        both = rings.steps(start, grid.along(to, axis), extent)
        for way, (steps, sign) in enumerate(zip(both, (1, -1), strict=True)):
            for step in range(int(steps.max(initial=0))):
                on = np.flatnonzero(steps > step)
                here = grid.moved(at[on], axis, (start[on] + sign * step) % extent)
                yield pair[on], grid.channel[axis, way, here].astype(np.int64)
        at = grid.moved(at, axis, grid.along(to, axis))


def _fattree(machine: Machine, rows: Ints) -> Iterator[tuple[Ints, Ints]] | None:
    from placement.network.fattree import regular_tree

    regular = regular_tree(machine)
    return None if regular is None else _climbs(regular, rows)


def _climbs(regular: Regular, rows: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the steps up and down at each level: the prices of channels that cost their number."""
    from placement.network.fattree import by_residue

    count = len(rows)
    number = np.arange(2.0 * regular.first[-1])
    pair = np.arange(count * count)
    a, b = np.repeat(rows, count), np.tile(rows, count)
    for level in range(1, regular.shape.height):
        up, down = by_residue(regular, level, number)
        subtree = regular.subtree(level)
        port = (regular.index % regular.shape.twins(level + 1))[b]
        on = np.flatnonzero(subtree[a] != subtree[b])
        yield pair[on], up[subtree[a[on]], port[on]].astype(np.int64)
        yield pair[on], down[subtree[b[on]], port[on]].astype(np.int64)


def _tree(machine: Machine, rows: Ints) -> Iterator[tuple[Ints, Ints]] | None:
    from placement.network.tree import forest_of

    forest = forest_of(machine)
    return None if forest is None else _branches(forest, machine.router[rows, 0].astype(np.int64))


def _branches(forest: Forest, own: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the steps up and down at each depth."""
    count = len(own)
    pair = np.arange(count * count)
    a, b = np.repeat(own, count), np.tile(own, count)
    for label in forest.ancestor[1:]:
        for end, way in ((a, forest.up), (b, forest.down)):
            on = np.flatnonzero((label[a] != label[b]) & (label[end] >= 0))
            yield pair[on], way[label[end[on]]]


def _dragonfly(machine: Machine, rows: Ints) -> tuple[Ints, Floats] | None:
    from placement.network.routes_dragonfly import routes as between

    attached = machine.router[rows].astype(np.int64)
    routers = np.unique(attached[attached >= 0])
    found = between(machine, routers)
    return None if found is None else (found[0], _by_node(attached, routers, found[1]))


def _by_node(attached: Ints, routers: Ints, share: Floats) -> Floats:
    """Return shares between nodes from those between their routers."""
    if attached.shape[1] == 1:
        at = np.searchsorted(routers, attached[:, 0])
        return np.asarray(share[at[:, None], at[None, :]])
    weight = _attachments(attached, routers)
    out = np.tensordot(weight, np.tensordot(weight, share, (1, 0)), (1, 1)).swapaxes(0, 1)
    own = np.arange(len(attached))
    out[own, own] = 0.0
    return out


def _attachments(attached: Ints, routers: Ints) -> Floats:
    """Return the share of each node's traffic at each router, (nodes, routers)."""
    there = attached >= 0
    out = np.zeros((len(attached), len(routers)))
    node, column = np.nonzero(there)
    np.add.at(out, (node, np.searchsorted(routers, attached[node, column])), 1.0)
    return np.asarray(out / np.maximum(1, there.sum(axis=1))[:, None])
