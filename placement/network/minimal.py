"""Routing ``minimal``: every link of a group pair has an equal share of the pair's traffic.

What a router sends to another group depends on that group alone, and not on
the router there, so bytes by (router, group) tell all loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network.arrays import product, summed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.network.demand import Demand
    from placement.network.groups import Groups

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["applies", "gates", "hops", "inner_demand", "kind_ways", "loads", "weights"]

#: So many lines are multiplied out one by one; more are put into tables.
FEW_LINES = 4


def applies(groups: Groups) -> bool:
    """Return whether every two groups are linked and each is in one piece.

    Then no path is missing and this module's products are all there is to
    do; else the shares depend on the router (`placement.network.global_links`).
    """
    pairs = groups.count * (groups.count - 1) // 2
    return len(groups.bundles.low) == pairs and groups.parts == groups.count


def gates(groups: Groups) -> Floats:
    """Return the share of a group pair's links that each position of the first group has.

    Returns
    -------
    float64 (groups, groups, positions)
        ``[g, h, p]``: of the traffic between g and h, what crosses at p of g.

    Examples
    --------
    >>> from placement.network.groups import groups_of
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=2,chassis=1,blades=4,nodes=1,global=2")
    >>> gates(groups_of(m))[0, 1].tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    found = groups.bundles
    pair = found.pair
    share = found.times / summed(pair, found.times)[pair]
    low, high = found.low[pair], found.high[pair]
    size = groups.count**2 * groups.width
    out = summed((low * groups.count + high) * groups.width + found.a, share, size)
    out += summed((high * groups.count + low) * groups.width + found.b, share, size)
    return out.reshape(groups.count, groups.count, groups.width)


def loads(groups: Groups, demand: Demand) -> Floats:
    """Return the bytes on every channel, float64 (c,)."""
    away, home = _by_group(groups, demand)
    share = gates(groups)
    inside = inner_demand(groups, demand)
    inside += product(away, share) + np.swapaxes(product(home, share), 1, 2)
    load = np.zeros(len(groups.channels))
    load[groups.inside] = groups.inner(groups.local.carry(groups.shape, inside))
    _cross(groups, away.sum(axis=1), load)
    return load


def _by_group(groups: Groups, demand: Demand) -> tuple[Floats, Floats]:
    """Return the bytes from each position to each group, and to it from each group.

    What is sent inside the own group is in it, but no share of a gate is its.
    """
    count, shape = groups.count, (groups.count, groups.width, groups.count)
    away = np.zeros((count * groups.width, count))
    away[groups.slot] = demand.within.fold(groups.group, count, 0, groups.routers)
    home = away
    if len(demand.source):
        ends = (demand.source, demand.target), (demand.target, demand.source)
        away, home = (
            away
            + summed(groups.slot[s] * count + groups.group[t], demand.amount, away.size).reshape(
                away.shape
            )
            for s, t in ends
        )
    return away.reshape(shape), home.reshape(shape)


def inner_demand(groups: Groups, demand: Demand) -> Floats:
    """Return the bytes between the positions of each group, float64 (groups, q, q).

    The diagonal, what a router sends itself, has no meaning.
    """
    count, width = groups.count, groups.width
    inner = groups.group[demand.source] == groups.group[demand.target]
    key = groups.slot[demand.source[inner]] * width + groups.place[demand.target[inner]]
    out = summed(key, demand.amount[inner], count * width * width)
    out = out.reshape(count, width, width)
    lines = demand.within
    for scale, weight in weights(groups, demand) if len(lines) <= FEW_LINES else ():
        out += scale * weight[:, :, None] * weight[:, None, :]
    if len(lines) > FEW_LINES:
        group = groups.group[lines.router]
        for g in range(count):
            out[g] += lines.among(group == g, groups.place, width)
    return out


def weights(groups: Groups, demand: Demand) -> list[tuple[float, Floats]]:
    """Return the scale of each line and its weights by position, float64 (groups, q)."""
    lines = demand.within
    ends = np.searchsorted(lines.line, np.arange(len(lines) + 1))
    found = []
    for k in range(len(lines)):
        some = slice(ends[k], ends[k + 1])
        each = summed(lines.router[some], lines.weight[some], groups.routers)
        found.append((float(lines.scale[k]), groups.spread(each)))
    return found


def _cross(groups: Groups, between: Floats, load: Floats) -> None:
    """Put the bytes from group to group on the channels that join them."""
    found = groups.bundles
    pair = found.pair
    share = found.times / summed(pair, found.times)[pair]
    load[found.up] = share * between[found.low, found.high][pair]
    load[found.down] = share * between[found.high, found.low][pair]


def hops(groups: Groups, source: Ints, target: Ints) -> Floats:
    """Return the expected channels of each class between routers, float64 (m, classes)."""
    inside = kind_ways(groups)
    share = gates(groups)
    before = product(inside[:, groups.shape], np.swapaxes(share, 1, 2))
    crossed = _crossed(groups)
    g, h = groups.group[source], groups.group[target]
    p, q = groups.place[source], groups.place[target]
    out = before[:, g, p, h] + before[:, h, q, g] + crossed[:, g, h]
    same = g == h
    out[:, same] = inside[:, groups.shape[g[same]], p[same], q[same]]
    return np.ascontiguousarray(out.T)


def kind_ways(groups: Groups) -> Floats:
    """Return the mean channels of each class inside groups, float64 (classes, wirings, q, q)."""
    channels = groups.channels
    source, target, kind = (
        x[groups.inside].astype(np.int64) for x in (channels.source, channels.target, channels.kind)
    )
    tables = groups.local.joined.shape
    joined = np.zeros((len(channels.kinds), *tables))
    _, first = np.unique(groups.shape, return_index=True)
    of_first = first[groups.shape[groups.group[source]]] == groups.group[source]
    shape = groups.shape[groups.group[source]]
    at = kind, shape, groups.place[source], groups.place[target]
    np.add.at(joined, tuple(x[of_first] for x in at), groups.ways[of_first])
    return groups.local.expected(joined)


def _crossed(groups: Groups) -> Floats:
    """Return the share of each class among the links of a group pair, float64 (classes, g, g)."""
    found, channels = groups.bundles, groups.channels
    pair = found.pair
    share = found.times / summed(pair, found.times)[pair]
    size = len(channels.kinds), groups.count, groups.count
    kind = channels.kind[found.up].astype(np.int64)
    key = (kind * groups.count + found.low[pair]) * groups.count
    out = summed(key + found.high[pair], share, int(np.prod(size))).reshape(size)
    return out + np.swapaxes(out, 1, 2)
