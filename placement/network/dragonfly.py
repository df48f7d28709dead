"""Dragonflies, Aries, Slingshot and DragonFly+: ``minimal``, ``shortest`` and ``single``.

All take at most one global (blue) hop. A black bundle counts as one link,
parallel blue links count one by one:

``shortest``
    the fewest router-to-router hops, split equally over all such paths;
``minimal``
    a group pair's traffic split equally over every blue link of the pair,
    then, inside both groups, over all shortest paths (green then black, and
    black then green);
``single``
    one of the paths of ``shortest``, the next hop by (router, destination).

Where no path with one global hop joins two routers (groups without a link of
their own, a group in pieces), all three take the fewest global hops and of
such paths the shortest; `notes` says so. Whatever the wiring rule or the link
list, and whatever routers are missing, the links are those of
`placement.topologies.links`.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from placement.machine import Machine
from placement.network import few_pairs
from placement.network.demand import Demand
from placement.network.group_ways import group_ways_of
from placement.network.groups import groups_of
from placement.network.model import Channels
from placement.support.array_types import Floats, Ints
from placement.topologies import router_coords

__all__ = ["channels", "hops", "loads", "next_channel", "notes", "routings"]


#: Of a DragonFly+; where a leaf lacks all cables to a spine the last comes first.
ON_SPINES = ("minimal", "single", "valiant", "adaptive", "shortest")


def routings(machine: Machine) -> tuple[str, ...]:
    """Return the routings of a DragonFly+, the default first.

    Where every leaf reaches every spine of its group ``minimal`` and
    ``shortest`` are the same; where not, ``minimal`` goes over another leaf to
    spines that ``shortest`` and the routing tables of InfiniBand leave alone.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> routings(parse_spec("dragonfly+:groups=2,leaves=2,spines=2,nodes=1"))
    ('minimal', 'single', 'valiant', 'adaptive', 'shortest')
    """
    groups, leaf = groups_of(machine), router_coords(machine)[:, 1] >= 0
    leaves = np.bincount(groups.group, leaf, groups.count)
    whole = (leaves * (np.bincount(groups.group, minlength=groups.count) - leaves)).sum()
    return ON_SPINES if len(groups.inside) == 2 * whole else (ON_SPINES[-1], *ON_SPINES[:-1])


def channels(machine: Machine, routing: str = "") -> Channels:
    """Return two channels a row of the machine's links; the same for every routing.

    Raises
    ------
    UsageError
        Where the links are unknown.
    """
    return groups_of(machine).channels


def notes(machine: Machine, routing: str) -> tuple[str, ...]:
    """Return what has to be said of the routes, one sentence each."""
    ways = group_ways_of(machine)
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
        ``minimal``, ``shortest`` or ``single``.

    Raises
    ------
    UsageError
        Where the links are unknown.
    NidmapError
        Where no path joins two routers that exchange bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.network import Demand
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=1,chassis=2,blades=2,nodes=1")
    >>> loads(m, Demand.pairs(m, np.array([0]), np.array([3]), 8.0), "minimal").tolist()
    [4.0, 4.0, 4.0, 4.0, 0.0, 0.0, 0.0, 0.0]
    """
    ways = group_ways_of(machine)
    few = few_pairs.loads(ways, demand, routing) if routing != "single" else None
    if few is not None:
        load = few
    elif routing == "minimal":
        every, inner, far = ways.bytes(demand, ways.linked)
        load = far + ways.load(every, None, inner)
    else:
        found: Floats = import_module(f"placement.network.{routing}").loads(ways, demand)
        load = found
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
    >>> hops(m, np.array([3, 0]), np.array([4, 3]), "shortest").tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]
    """
    ways = group_ways_of(machine)
    source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
    if routing == "minimal":
        return ways.hops(source, target)
    found: Floats = import_module(f"placement.network.{routing}").hops(ways, source, target)
    return found


def next_channel(machine: Machine, routing: str, nodes: Ints) -> Ints:
    """Return the channel by which a router forwards to some nodes, -1 where one is attached.

    Returns
    -------
    int64 (routers, nodes)
    """
    from placement.network import single

    return single.next_channel(group_ways_of(machine), machine, nodes)
