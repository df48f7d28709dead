"""Routes between few nodes, all pairs at once: which channels, and what share of a message.

For networks on which one path, or a known division, joins two routers; where
the answer is None, `placement.network.loads` tells pair by pair.
"""

from __future__ import annotations

import numpy as np

from placement.machine import Machine
from placement.network import SINGLE_PATH, channels, few_pairs, next_channel
from placement.network.tree import forest_of, joined_above
from placement.support.array_types import Floats, Ints
from placement.support.arrays import summed

__all__ = ["routes", "walk"]


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
    if routing == "minimal":
        return _on_dragonfly(machine, rows)
    if routing not in SINGLE_PATH or machine.router.shape[1] > 1:
        return None
    if machine.topology.kind == "tree" and joined_above(machine):
        return None
    count = len(rows)
    pair, channel = walk(machine, np.repeat(rows, count), np.tile(rows, count), routing)
    used, place = np.unique(channel, return_inverse=True)
    share = np.zeros((count * count, len(used)))
    np.add.at(share, (pair, place), 1.0)
    return used, share.reshape(count, count, len(used))


def walk(machine: Machine, a: Ints, b: Ints, routing: str) -> tuple[Ints, Ints]:
    """Return the channels between routers on the way of each message, on single paths.

    A node with several links to switches sends by its first.

    Parameters
    ----------
    machine : Machine
    a, b : int64 (m,)
        Rows of the machine.
    routing : str
        One of `placement.network.SINGLE_PATH`.

    Returns
    -------
    message, channel : int64 (z,)
        Message and row of `placement.network.channels` of each step.

    Raises
    ------
    UsageError
        Where the routing has several paths, or the table of next hops would
        be too large.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> [x.tolist() for x in walk(parse_spec("torus:4"), np.array([3]), np.array([1]), "single")]
    [[0, 0], [3, 0]]
    """
    goal, column = np.unique(b, return_inverse=True)
    table, entered = next_channel(machine, routing, goal), channels(machine, routing).target
    message, at = np.arange(len(a)), machine.router[a, 0].astype(np.int64)
    steps = [(message[:0], message[:0])]
    forest = forest_of(machine) if machine.topology.kind == "tree" else None
    while len(message):
        channel = table[at, column[message]].astype(np.int64)
        if forest is not None and forest.out is not None and len(steps) == 1:
            channel = np.where(channel >= 0, forest.out[a], channel)
        message, channel = message[channel >= 0], channel[channel >= 0]
        steps.append((message, channel))
        at = entered[channel].astype(np.int64)
    message, channel = (np.concatenate(each) for each in zip(*steps, strict=True))
    return message, channel


def _on_dragonfly(machine: Machine, rows: Ints) -> tuple[Ints, Floats] | None:
    """Return the routes under ``minimal``; None where links are missing."""
    from placement.network.group_ways import group_ways_of

    ways = group_ways_of(machine)
    groups = ways.groups
    if not (ways.whole and groups.local.listed):
        return None
    attached = machine.router[rows].astype(np.int64)
    routers = np.unique(attached[attached >= 0])
    count = len(routers)
    ends = np.repeat(routers, count), np.tile(routers, count)
    links, (pair, start, end, share) = few_pairs.follow(ways, *ends)
    stretch, spot, part = groups.spots(start, end, share)
    spots, inside = _tabulate(pair[stretch], spot, part, count**2)
    own = np.flatnonzero(np.isin(groups.spot, spots))
    inside = inside[:, np.searchsorted(spots, groups.spot[own])] * groups.ways[own]
    used, across = _tabulate(*links, count**2)
    channel = np.concatenate([groups.inside[own], used])
    order = np.argsort(channel)
    channel = channel[order]
    between = np.concatenate([inside, across], axis=1)[:, order].reshape(count, count, -1)
    there, place = attached >= 0, np.searchsorted(routers, attached)
    weight = there / np.maximum(1, there.sum(axis=1))[:, None]
    found = np.zeros((len(rows), len(rows), len(channel)))
    for i, j in np.ndindex(attached.shape[1], attached.shape[1]):
        both = weight[:, i, None] * weight[:, j]
        found += both[:, :, None] * between[place[:, i, None], place[:, j]]
    found[np.arange(len(rows)), np.arange(len(rows))] = 0.0
    return channel, found


def _tabulate(row: Ints, key: Ints, share: Floats, rows: int) -> tuple[Ints, Floats]:
    """Return the keys there are, and the sum of the shares by row and key, (rows, keys)."""
    keys, column = np.unique(key, return_inverse=True)
    size = rows, len(keys)
    return keys, summed(row * len(keys) + column, share, rows * len(keys)).reshape(size)
