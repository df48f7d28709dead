"""What a few listed router pairs of a dragonfly put on its links, link by link.

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

    Links = tuple[Ints, Ints, Floats]
    Stretches = tuple[Ints, Ints, Ints, Floats]


__all__ = ["follow", "loads"]

#: Numbers of tables of all routers for each link that a pair looks at.
NUMBERS = 20


def loads(ways: GroupWays, demand: Demand) -> Floats | None:
    """Return the bytes on every channel, or None where tables of all routers are needed.

    Parameters
    ----------
    ways : GroupWays
    demand : Demand

    Returns
    -------
    float64 (c,) or None
        None for all-to-alls and for many pairs, where no link joins the two
        groups of a pair, and where a path inside a group has three hops.

    Examples
    --------
    >>> from placement.network.demand import Demand
    >>> from placement.traffic import Traffic
    >>> from placement.network.group_ways import group_ways_of
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=9,chassis=1,blades=9,nodes=1,global=1")
    >>> one = Demand.of(m, Traffic.of(np.array([3]), np.array([9]), 8.0))
    >>> found = loads(group_ways_of(m), one)
    >>> found[found > 0].tolist()
    [8.0, 8.0]
    """
    groups, unit = ways.groups, ways.unit
    if len(demand.within) or not groups.local.listed:
        return None
    g, h = unit[demand.source], unit[demand.target]
    links_of_pair = np.diff(ways.first)[g * ways.count + h]
    tables = groups.count * groups.width**2
    if not links_of_pair[g != h].all() or links_of_pair.sum() > tables / NUMBERS:
        return None
    links, stretches = follow(ways, demand.source, demand.target)
    pair, channel, share = links
    out = summed(channel, share * demand.amount[pair], len(groups.channels))
    pair, start, end, share = stretches
    _, lane, sent = groups.spots(start, end, share * demand.amount[pair])
    out[groups.inside] = groups.inner(summed(lane, sent, int(np.prod(groups.lanes))))
    return out


def follow(ways: GroupWays, source: Ints, target: Ints) -> tuple[Links, Stretches]:
    """Return which links between groups router pairs take, and where they go inside groups.

    Parameters
    ----------
    ways : GroupWays
    source, target : int64 (p,)
        Routers of one group, or of two that a link joins.

    Returns
    -------
    pair, channel : int64 (m,)
        Place of the pair, and a link.
    share : float64 (m,)
        Of the pair's bytes.
    pair, start, end : int64 (n,)
        Place of the pair, and two routers of a group between which its bytes take all
        shortest paths.
    share : float64 (n,)
    """
    groups, unit = ways.groups, ways.unit
    between = unit[source] * ways.count + unit[target]
    pair, row = ragged_ranges(ways.first[between], np.diff(ways.first)[between])
    channel, share = ways.channel[row], ways.share[row]
    leave, enter = groups.channels.source[channel], groups.channels.target[channel]
    near = np.flatnonzero(unit[source] == unit[target])
    start = np.concatenate([source[near], source[pair], enter])
    end = np.concatenate([target[near], leave, target[pair]])
    shares = np.concatenate([np.ones(len(near)), share, share])
    return (pair, channel, share), (np.concatenate([near, pair, pair]), start, end, shares)
