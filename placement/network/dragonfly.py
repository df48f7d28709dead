"""Dragonflies, Aries, Slingshot and DragonFly+: all routings but ``adaptive``.

Most take at most one global (blue) hop. A black bundle counts as one link,
parallel blue links count one by one:

``minimal``
    a group pair's traffic split equally over every blue link of the pair,
    then, inside both groups, over all shortest paths (green then black, and
    black then green);
``single``
    one path of the fewest hops, the next hop by (router, destination);
``valiant``
    over a random third group, minimal to it and from it. Each pair's traffic is
    split equally over all third groups: those that are neither the source's
    nor the destination's and have links to both. To the third group it takes
    the ``minimal`` routing, and it has arrived there at the router where the
    link ends. From that router it takes the ``minimal`` routing on: again every
    link between the third group and the destination's has an equal share,
    whichever link it came by, and so bytes go from every entering router to
    every leaving one over all shortest paths inside the third group (none where
    the two are one router).

Under ``valiant`` a pair inside one group is routed minimally, as
``val_dragonflynew`` and ``ugal_dragonflynew`` do it in BookSim, the simulator of
the dragonfly's own authors (Kim, Dally, Scott and Abts, ISCA 2008): there is no
link between groups to relieve. SST's and CODES' Valiant would take another
router of the same group; none leaves the group. Where there is no third group
(fewer than three groups, or none linked to both ends) the pair is routed
minimally too.

Where no path with one global hop joins two routers (groups without a link of
their own, a group in pieces), all take the fewest global hops and of such paths
the shortest, but ``valiant`` a third group where there is one; `notes` says so.
Whatever the wiring rule or the link list, and whatever routers are missing,
the links are those of `placement.topologies.links`.
"""

from __future__ import annotations

import numpy as np

from placement.machine import Machine
from placement.network import few_pairs
from placement.network.demand import Demand
from placement.network.group_ways import group_ways_of
from placement.network.groups import groups_of
from placement.network.model import Channels
from placement.support.array_types import Floats, Ints

__all__ = ["channels", "hops", "loads", "next_channel", "notes"]


FEW = "fewer than three groups: valiant is the same as minimal"


def channels(machine: Machine, routing: str = "") -> Channels:
    """Return two channels a row of the machine's links; the same for every routing.

    Raises
    ------
    UsageError
        Where the links are unknown.
    """
    return groups_of(machine).channels


def notes(machine: Machine, routing: str) -> tuple[str, ...]:
    """Return what has to be said of the routes, one sentence each.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> notes(parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=1"), "valiant")
    ('fewer than three groups: valiant is the same as minimal',)
    """
    ways = group_ways_of(machine)
    if routing == "valiant":
        return () if ways.count > 2 else (FEW,)
    if ways.whole:
        return ()
    pairs = ways.count * (ways.count - 1) // 2
    what = "groups" if ways.count == ways.groups.count else "parts of groups"
    return (
        f"{pairs - int(ways.linked.sum()) // 2} of {pairs} pairs of {what} have no link of their "
        "own: between them traffic takes the fewest global hops, and of these paths all the "
        "shortest",
    )


def loads(machine: Machine, demand: Demand, routing: str) -> Floats:
    """Return the bytes on every channel, float64 (c,).

    Parameters
    ----------
    machine : Machine
    demand : Demand
    routing : str
        ``minimal``, ``single`` or ``valiant``.

    Raises
    ------
    UsageError
        Where the links are unknown, or there are too many groups.
    NidmapError
        Where no path joins two routers that exchange bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.network import Demand
    >>> from placement.traffic import Traffic
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=1,chassis=2,blades=2,nodes=1")
    >>> loads(m, Demand.of(m, Traffic.of(np.array([0]), np.array([3]), 8.0)), "minimal").tolist()
    [4.0, 4.0, 4.0, 4.0, 0.0, 0.0, 0.0, 0.0]
    >>> m = parse_spec("dragonfly:groups=4,chassis=1,blades=1,nodes=1,global=1")
    >>> load = loads(m, Demand.of(m, Traffic.of(np.array([0]), np.array([1]), 1.0)), "valiant")
    >>> {str(n): float(x) for n, x in zip(channels(m).names(), load) if x}
    {'g0c0b0->g2c0b0 blue': 0.5, 'g0c0b0->g3c0b0 blue': 0.5, 'g2c0b0->g1c0b0 blue': 0.5, \
'g3c0b0->g1c0b0 blue': 0.5}
    """
    ways = group_ways_of(machine)
    if routing == "valiant":
        over = ways.valiant
        amount, inner, far = ways.bytes(demand, ways.linked | over)
        return far + ways.load(amount.times(~over), amount.times(over), inner)
    if routing == "single":
        from placement.network import single

        return np.maximum(single.loads(ways, demand), 0)
    load = few_pairs.loads(ways, demand)
    if load is None:
        amount, inner, far = ways.bytes(demand, ways.linked)
        load = far + ways.load(amount, None, inner)
    return np.maximum(load, 0)  # what is subtracted for nodes of several switches may round


def hops(machine: Machine, source: Ints, target: Ints, routing: str) -> Floats:
    """Return the expected channels of each class between routers, float64 (m, classes).

    Raises
    ------
    UsageError
        Where the links are unknown.
    NidmapError
        Where no path joins two of the routers.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=2,chassis=2,blades=2,nodes=1,global=1")
    >>> hops(m, np.array([3, 0]), np.array([4, 3]), "minimal").tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]
    """
    from placement.network import single

    ways = group_ways_of(machine)
    source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
    if routing in ("minimal", "valiant"):
        return ways.hops(source, target, ways.valiant if routing == "valiant" else None)
    return single.hops(ways, source, target)


def next_channel(machine: Machine, routing: str, nodes: Ints) -> Ints:
    """Return the channel by which a router forwards to some nodes, -1 where one is attached.

    Returns
    -------
    int64 (routers, nodes)
    """
    from placement.network import single

    return single.next_channel(group_ways_of(machine), machine, nodes)
