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

from typing import TYPE_CHECKING

import numpy as np

from placement.network.third_groups import bytes_of, third_groups_of
from placement.network.unlinked_groups import FewestGlobalHops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.demand import Demand
    from placement.network.model import Channels
    from placement.network.third_groups import ThirdGroups

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["channels", "hops", "loads", "notes", "way_hops"]

FEW = "fewer than three groups: valiant and adaptive are the same as minimal"


def channels(machine: Machine, routing: str = "valiant") -> Channels:
    """Return the channels of a dragonfly: two a row of its links."""
    return third_groups_of(machine).groups.channels


def notes(machine: Machine, routing: str = "valiant") -> tuple[str, ...]:
    """Return what a reader of the loads should know.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> notes(parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=1"))
    ('fewer than three groups: valiant and adaptive are the same as minimal',)
    """
    return () if third_groups_of(machine).count > 2 else (FEW,)


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
    thirds = third_groups_of(machine)
    every, inner, far = bytes_of(thirds, demand)
    over = thirds.valiant
    return far + thirds.load(every.times(~over), every.times(over), inner)


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
    thirds = third_groups_of(machine)
    source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
    minimal, valiant = way_hops(thirds, source, target)
    over = thirds.valiant[thirds.unit[source], thirds.unit[target]]
    return np.where(over[:, None], valiant, minimal)


def way_hops(thirds: ThirdGroups, source: Ints, target: Ints) -> tuple[Floats, Floats]:
    """Return the expected channels of each class on the minimal ways and over a third group.

    A channel's price is 1 in its class: what a way costs is the hops it has.

    Returns
    -------
    minimal, valiant : float64 (m, classes)
        Without meaning where there is no such way; both are those inside the
        group where a pair is in one.

    Raises
    ------
    NidmapError
        Where no path joins a pair.
    """
    channels = thirds.groups.channels
    found = [
        _cost(thirds, (channels.kind == kind).astype(np.float64), source, target)
        for kind in range(len(channels.kinds))
    ]
    minimal, valiant = (np.stack(columns, axis=1) for columns in zip(*found, strict=True))
    lost = thirds.lost[thirds.unit[source], thirds.unit[target]]
    if lost.any():
        search = FewestGlobalHops(thirds.groups)
        minimal[lost] = valiant[lost] = search.hops(source[lost], target[lost])
    return minimal, valiant


def _cost(thirds: ThirdGroups, price: Floats, source: Ints, target: Ints) -> tuple[Floats, Floats]:
    """Return the price of both kinds of way between routers, float64 (m,) each."""
    groups = thirds.groups
    g, h = thirds.unit[source], thirds.unit[target]
    s, t = groups.place[source], groups.place[target]
    inside = thirds._priced(price)[g, s, t]
    same = g == h
    minimal, valiant = (
        np.where(same, inside, way.away[g, s, h] + way.home[h, t, g] + way.across[g, h])
        for way in thirds.prices(price)
    )
    return minimal, valiant
