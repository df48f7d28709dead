"""What every pair of few nodes puts on every channel: then any placement is a sum.

With at most a few dozen free nodes all routes between them fit into a table,
whatever the routing. Loads are linear in the bytes, so the time of any choice
and order of these nodes, and what each single step changes, are products of
small arrays: thousands of placements a second instead of a few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placement.support.array_types import Floats, Ints
    from rankmap.predict import Predictor


__all__ = ["RouteTable", "route_table"]

#: Bytes that are sent along each route to see where they go.
GB = 1e9


@dataclass(frozen=True, slots=True, eq=False)
class RouteTable:
    """Routes between f nodes.

    Attributes
    ----------
    rows : int64 (f,)
        Rows of the machine.
    seconds : float64 (f, f, c)
        What a byte from node a to node b takes of each channel that any of
        them uses, in seconds; last come each node's injection and ejection.
    hops : float64 (f, f)
        Channels that it passes.
    """

    rows: Ints
    seconds: Floats
    hops: Floats


def route_table(asked: Predictor, rows: Ints) -> RouteTable:
    """Return the table of the routes between some nodes under the predictor's routing.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.predict import Predictor
    >>> m = nidmap.load_machine("torus:4,bw=1")
    >>> found = route_table(Predictor(m, "alltoall", 1, 1.0), np.array([0, 1, 3]))
    >>> found.hops.tolist()
    [[0.0, 1.0, 1.0], [1.0, 0.0, 2.0], [1.0, 2.0, 0.0]]
    """
    used, load = _routes(asked, rows)
    left = asked.left(asked.slots(rows[:1]))
    gbs = (asked.channels if left is None else left).bandwidth[used]
    counts = np.isfinite(gbs)
    hops = load.sum(axis=2)
    seconds = _different(load[:, :, counts] / (gbs[counts] * GB))
    return RouteTable(rows, np.concatenate([seconds, _own(asked, rows)], axis=2), hops)


def _routes(asked: Predictor, rows: Ints) -> tuple[Ints, Floats]:
    """Return the channels that are used, and what a byte puts on each, (f, f, channels)."""
    from placement.network.routes import routes

    found = routes(asked.machine, rows, asked.routing)
    if found is not None:
        return found
    load = _sent(asked, rows)
    used = np.flatnonzero(load.any(axis=(0, 1)))
    return used, load[:, :, used]


def _sent(asked: Predictor, rows: Ints) -> Floats:
    """Return the same by sending a byte between every two nodes, over all channels.

    Nodes of the same router have the same routes, but where the routing
    looks at the destination's number.
    """
    machine = asked.machine
    single = machine.router.shape[1] == 1 and machine.topology.kind != "fattree"
    alike = machine.router[rows, 0] if single else rows
    _, first, kind = np.unique(alike, return_index=True, return_inverse=True)
    some = np.zeros((len(first), len(first), len(asked.channels)))
    for i, a in enumerate(rows[first].tolist()):
        for j, b in enumerate(rows[first].tolist()):
            if i != j:
                some[i, j] = _one(asked, a, b)
    return np.asarray(some[kind[:, None], kind[None, :]])


def _one(asked: Predictor, a: int, b: int) -> Floats:
    from placement.network import Demand

    one = Demand.pairs(asked.machine, np.array([a]), np.array([b]), 1.0)
    return asked.loads(one, None).load


def _different(seconds: Floats) -> Floats:
    """Return each column once: links that all routes take alike, as those of a group pair, are."""
    if not seconds.size:
        return seconds
    flat = seconds.reshape(-1, seconds.shape[2])
    scale = flat.max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    code = np.round(flat / scale, 9)
    weight = np.random.default_rng(1).random((2, len(flat)))
    key = np.vstack([np.round(weight @ code, 7), scale])
    _, first = np.unique(key, axis=1, return_index=True)
    return seconds[:, :, np.sort(first)]


def _own(asked: Predictor, rows: Ints) -> Floats:
    """Return the share of a byte in each node's injection and ejection, (f, f, 2f)."""
    count = len(rows)
    each = 1.0 / (asked.injection[rows] * GB)
    out = np.zeros((count, count, 2 * count))
    index = np.arange(count)
    out[index, :, index] = each[:, None]
    out[:, index, count + index] = each[None, :]
    out[index, index] = 0.0
    return out
