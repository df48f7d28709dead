"""Routing ``valiant``: over a random third group, minimal to it and from it.

Each pair's traffic is split equally over all third groups: those that are
neither the source's nor the destination's and have links to both (one that
lacks links to either end is left out). To the third group it takes the
``minimal`` routing, split equally over every link of the two groups and
then over all shortest paths inside the source's group, and it has arrived
there at the router where the link ends. From that router it takes the
``minimal`` routing on: again every link between the third group and the
destination's has an equal share, whichever link it came by, and so bytes go
from every entering router to every leaving one over all shortest paths inside
the third group (none where the two are one router).

A pair inside one group is routed minimally, as ``val_dragonflynew`` and
``ugal_dragonflynew`` do it in BookSim, the simulator of the dragonfly's own
authors (Kim, Dally, Scott and Abts, ISCA 2008): there is no link between
groups to relieve. SST's and CODES' Valiant would take another router of the
same group; none leaves the group. Where there is no third group (fewer than
three groups, or none linked to both ends) the pair is routed minimally too.
Two groups without a link of their own are joined over third groups alone, and
where there is none either as ``minimal`` joins them, by the fewest links
between groups.
"""

from __future__ import annotations

import numpy as np

from placement.machine import Machine
from placement.network.demand import Demand
from placement.network.dragonfly import channels
from placement.network.group_ways import group_ways_of
from placement.support.array_types import Floats, Ints

__all__ = ["channels", "hops", "loads", "notes"]

FEW = "fewer than three groups: valiant is the same as minimal"


def notes(machine: Machine, routing: str = "valiant") -> tuple[str, ...]:
    """Return what a reader of the loads should know.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> notes(parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=1"))
    ('fewer than three groups: valiant is the same as minimal',)
    """
    return () if group_ways_of(machine).count > 2 else (FEW,)


def loads(machine: Machine, demand: Demand, routing: str = "valiant") -> Floats:
    """Return the bytes on every channel.

    Returns
    -------
    float64 (c,)

    Raises
    ------
    UsageError
        Where the links are unknown, or there are too many groups.
    NidmapError
        Where no way joins two routers that exchange bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.network.demand import Demand
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=4,chassis=1,blades=1,nodes=1,global=1")
    >>> found = loads(m, Demand.pairs(m, np.array([0]), np.array([1]), 1.0))
    >>> {str(n): float(x) for n, x in zip(channels(m).names(), found) if x}
    {'g0c0b0->g2c0b0 blue': 0.5, 'g0c0b0->g3c0b0 blue': 0.5, 'g2c0b0->g1c0b0 blue': 0.5, \
'g3c0b0->g1c0b0 blue': 0.5}
    """
    ways = group_ways_of(machine)
    over = ways.valiant
    every, inner, far = ways.bytes(demand, ways.linked | over)
    return far + ways.load(every.times(~over), every.times(over), inner)


def hops(machine: Machine, source: Ints, target: Ints, routing: str = "valiant") -> Floats:
    """Return the expected channels of each class between routers, float64 (m, classes).

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=4,chassis=1,blades=4,nodes=1,global=1")
    >>> hops(m, np.array([0]), np.array([9])).tolist()
    [[2.0, 0.0, 2.0]]
    """
    ways = group_ways_of(machine)
    return ways.hops(np.asarray(source), np.asarray(target), ways.valiant)
