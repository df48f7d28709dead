"""Loads of a few listed router pairs of a dragonfly, link by link.

A step of a stepwise exchange is a message a node: tables of all routers by
all groups would be empty almost everywhere. Here each pair looks at the links
between its own two groups, and at the paths that lead to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.support.arrays import ragged_ranges, summed

if TYPE_CHECKING:
    from placement.network.demand import Demand
    from placement.network.group_ways import GroupWays
    from placement.support.array_types import Floats, Ints


__all__ = ["loads"]

#: Pairs times the links between their groups, at most: `shortest` goes through tables link by
#: link, `minimal` through so many numbers of them for each.
MOST, NUMBERS = 1_000_000, 20


def loads(ways: GroupWays, demand: Demand, routing: str) -> Floats | None:
    """Return the bytes on every channel, or None where tables of all routers are needed.

    Parameters
    ----------
    ways : GroupWays
    demand : Demand
    routing : str
        ``minimal`` or ``shortest``.

    Returns
    -------
    float64 (c,) or None
        None for all-to-alls and for many pairs, where no link joins the two
        groups of a pair, and where a path inside a group has three hops.

    Examples
    --------
    >>> from placement.network.demand import Demand
    >>> from placement.network.group_ways import group_ways_of
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=9,chassis=1,blades=9,nodes=1,global=1")
    >>> one = Demand.pairs(m, np.array([3]), np.array([9]), 8.0)
    >>> found = loads(group_ways_of(m), one, "minimal")
    >>> found[found > 0].tolist()
    [8.0, 8.0]
    """
    groups, unit = ways.groups, ways.unit
    if len(demand.within) or not groups.local.listed:
        return None
    g, h = unit[demand.source], unit[demand.target]
    far, near = np.flatnonzero(g != h), np.flatnonzero(g == h)
    pair = g[far] * ways.count + h[far]
    first, many = ways.first[pair], np.diff(ways.first)[pair]
    tables = groups.count * groups.width**2
    if not many.all() or many.sum() > (MOST if routing == "shortest" else tables / NUMBERS):
        return None
    one, row = ragged_ranges(first, many)
    channel, message = ways.channel[row], far[one]
    s, t = demand.source[message], demand.target[message]
    a, b = (x[channel].astype(np.int64) for x in (groups.channels.source, groups.channels.target))
    share = ways.share[row]
    if routing == "shortest":
        share = share * _on_shortest(ways, (s, a), (b, t), np.cumsum(many) - many)
        share /= summed(one, share, len(far))[one]
    sent = share * demand.amount[message]
    out = summed(channel, sent, len(groups.channels))
    out[groups.inside] = groups.inner(
        groups.carry(
            np.concatenate([demand.source[near], s, b]),
            np.concatenate([demand.target[near], a, t]),
            np.concatenate([demand.amount[near], sent, sent]),
        )
    )
    return out


def _on_shortest(
    ways: GroupWays, before: tuple[Ints, Ints], after: tuple[Ints, Ints], first: Ints
) -> Floats:
    """Return the number of paths over each pair's links; 0 where another link is nearer.

    Parameters
    ----------
    ways : GroupWays
    before, after : two int64 (m,)
        Routers on both sides of each link, between which paths lie.
    first : int64 (p,)
        Where the links of each pair begin.
    """
    groups, local = ways.groups, ways.groups.local
    here, there = (
        (groups.shape[groups.group[u]], groups.place[u], groups.place[v])
        for u, v in (before, after)
    )
    hops = local.length[here].astype(np.int64) + local.length[there]
    least = np.minimum.reduceat(hops, first) if len(first) else hops
    nearest = hops == np.repeat(least, np.diff(np.append(first, len(hops))))
    return np.where(nearest, local.ways[here] * local.ways[there], 0.0)
