"""Dragonflies, Aries and Slingshot: routings ``minimal``, ``shortest`` and ``single``.

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

from typing import TYPE_CHECKING

import numpy as np

from placement.network import minimal, unlinked_groups
from placement.network.groups import channels_of, groups_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.demand import Demand
    from placement.network.groups import Groups
    from placement.network.model import Channels

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["channels", "hops", "loads", "next_channel", "notes"]


def channels(machine: Machine, routing: str) -> Channels:
    """Return two channels a row of the machine's links; the same for every routing.

    Raises
    ------
    UsageError
        Where the links are unknown.
    """
    return channels_of(machine)


def notes(machine: Machine, routing: str) -> tuple[str, ...]:
    """Return what has to be said of the routes, one sentence each."""
    said = unlinked_groups.note(groups_of(machine))
    return (said,) if said else ()


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
    groups = groups_of(machine)
    if routing == "single":
        from placement.network import single

        return single.loads(groups, demand)
    load = _direct(groups, demand, routing)
    far = unlinked_groups.left_out(groups, demand)
    if len(far[0]):
        load += unlinked_groups.FewestGlobalHops(groups).loads(*far)
    return np.maximum(load, 0)  # what is subtracted for nodes of several switches may round


def _direct(groups: Groups, demand: Demand, routing: str) -> Floats:
    """Return the loads of all that goes by at most one global hop."""
    if routing == "minimal" and minimal.applies(groups):
        return minimal.loads(groups, demand)
    from placement.network import shortest

    return shortest.loads(groups, demand, routing)


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
    groups = groups_of(machine)
    source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
    if routing == "single":
        from placement.network import single

        return single.hops(groups, source, target)
    if routing == "minimal" and minimal.applies(groups):
        return minimal.hops(groups, source, target)
    from placement.network import mean_hops

    near = unlinked_groups.direct(groups, source, target)
    out = np.zeros((len(source), len(groups.channels.kinds)))
    out[near] = mean_hops.hops(groups, source[near], target[near], routing)
    if not near.all():
        out[~near] = unlinked_groups.FewestGlobalHops(groups).hops(source[~near], target[~near])
    return out


def next_channel(machine: Machine, routing: str = "") -> NDArray[np.int32]:
    """Return the channel by which a router forwards to a node, -1 where it is attached.

    Returns
    -------
    int32 (routers, nodes)
    """
    from placement.network import single

    return single.next_channel(groups_of(machine), machine)
