"""Routes between few nodes, all pairs at once: which channels, and what share of a message.

For networks on which one path, or a known division, joins two routers; where
the answer is None, `placement.network.loads` tells pair by pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network import channels, next_channel
from placement.network.tree import joined_above

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.network.group_ways import GroupWays
    from placement.network.groups import Groups
    from placement.support.array_types import Floats, Ints


__all__ = ["FOLLOWED", "routes", "walk"]

#: Routings that are followed, by kind of network.
FOLLOWED = {
    "dragonfly": ("minimal",),
    "dragonfly+": ("minimal",),
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
    if kind.startswith("dragonfly"):
        return _on_dragonfly(machine, rows)
    if machine.router.shape[1] > 1 or (kind == "tree" and joined_above(machine)):
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
    while len(message):
        channel = table[at, column[message]].astype(np.int64)
        message, channel = message[channel >= 0], channel[channel >= 0]
        steps.append((message, channel))
        at = entered[channel].astype(np.int64)
    message, channel = (np.concatenate(each) for each in zip(*steps, strict=True))
    return message, channel


def _on_dragonfly(machine: Machine, rows: Ints) -> tuple[Ints, Floats] | None:
    """Return the routes under ``minimal``; None where groups lack a link of their own."""
    from placement.network.group_ways import group_ways_of

    ways = group_ways_of(machine)
    if not ways.whole:
        return None
    attached = machine.router[rows].astype(np.int64)
    routers = np.unique(attached[attached >= 0])
    used, share = _between_routers(ways, routers)
    weight = np.zeros((len(rows), len(routers)))
    node, column = np.nonzero(attached >= 0)
    np.add.at(weight, (node, np.searchsorted(routers, attached[node, column])), 1.0)
    weight /= np.maximum(1, weight.sum(axis=1))[:, None]
    found = np.einsum("ia,jb,abc->ijc", weight, weight, share, optimize=True)
    found[np.arange(len(rows)), np.arange(len(rows))] = 0.0
    return used, found


def _between_routers(ways: GroupWays, routers: Ints) -> tuple[Ints, Floats]:
    """Return the channels that are used, and the share of a message on each, float64 (k, k, c).

    What a router's messages put on the links of its own group depends on the
    group they go to, and what arrives on that group they come from.
    """
    groups, count = ways.groups, len(routers)
    group, place = ways.unit[routers], groups.place[routers]
    home = groups.group[groups.channels.source[groups.inside]]
    ends = [np.isin(end, group) for end in np.divmod(ways.between, ways.count)]
    near = np.flatnonzero(np.isin(home, group))
    across = np.flatnonzero(ends[0] & ends[1])
    channel = np.concatenate([groups.inside[near], ways.channel[across]])
    out = np.zeros((count, count, len(channel)))
    for i, g in enumerate(group.tolist()):
        own = np.flatnonzero(home[near] == g)
        sent, got = (_inside(groups, g, int(place[i]), channel[own], way) for way in (True, False))
        for j, h in enumerate(group.tolist()):
            if g == h:
                out[i, j, own] = sent[place[j]]
                continue
            out[i, j, own] += ways.gates[g, h] @ sent
            out[j, i, own] += ways.gates[g, h] @ got
            links = np.flatnonzero(ways.between[across] == g * ways.count + h)
            out[i, j, len(near) + links] = ways.share[across[links]]
    used = np.flatnonzero(out.any(axis=(0, 1)))
    used = used[np.argsort(channel[used])]
    return channel[used], out[:, :, used]


def _inside(groups: Groups, group: int, at: int, own: Ints, leaving: bool) -> Floats:
    """Return the share on the channels of a group of what goes to, or comes from, each position.

    Of a message from `at` to each position, or (not `leaving`) from each to `at`.

    Returns
    -------
    float64 (positions, channels)
    """
    shape, channels = groups.shape[group], groups.channels
    ways, length = groups.local.ways[shape], groups.local.length[shape].astype(np.int64)
    u, v = groups.place[channels.source[own]], groups.place[channels.target[own]]
    near, far = (u, v) if leaving else (v, u)
    on = length[at, near] + 1 + length[:, far] == length[at][:, None]
    paths = ways[at, near] * groups.local.joined[shape, u, v] * ways[:, far]
    return np.asarray(np.where(on, paths, 0.0) / np.maximum(ways[at], 1.0)[:, None])
