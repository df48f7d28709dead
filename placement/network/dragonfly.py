# SPDX-License-Identifier: Apache-2.0
"""Dragonflies, Aries, Slingshot and DragonFly+: all routings except ``adaptive``.

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
the links are those of `nidmap.placement.topologies.links`.
"""

from __future__ import annotations

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network import shortest_paths, single
from nidmap.placement.network.channel_loads import Channels
from nidmap.placement.network.demand import Demand
from nidmap.placement.network.groups import Groups, groups_of
from nidmap.placement.network.touched import GroupTraffic, touched_tables
from nidmap.placement.support.array_types import Floats, Ints, Mask

FEW = "fewer than three groups: valiant is the same as minimal"


def channels(machine: Machine) -> Channels:
    """Return two channels per row of the machine's links, equal for every routing."""
    return groups_of(machine).channels


def notes(machine: Machine, routing: str) -> tuple[str, ...]:
    """Return remarks on the routes, one sentence each."""
    groups = groups_of(machine)
    if routing == "valiant":
        return () if groups.count > 2 else (FEW,)
    if groups.complete:
        return ()
    pairs = groups.count * (groups.count - 1) // 2
    what = "groups" if groups.count == groups.named else "parts of groups"
    return (
        f"{pairs - int(groups.linked.sum()) // 2} of {pairs} pairs of {what} have no link of their "
        "own: between them traffic takes the fewest global hops, and of these paths all the "
        "shortest",
    )


def loads(machine: Machine, demand: Demand, routing: str) -> Floats:
    """Return the bytes on every channel, float64 (c,)."""
    groups = groups_of(machine)
    if routing == "single":
        return np.maximum(single.loads(groups, demand), 0)
    tables = touched_tables(machine, demand.routers_used())
    touched = tables.every if routing == "valiant" else tables.minimal
    units = np.ix_(touched.routers.units, touched.routers.units)
    over = groups.valiant if routing == "valiant" else np.zeros_like(groups.linked)
    joined = groups.linked | over
    traffic = GroupTraffic(*(table[0] for table in touched.routers.traffic([demand])))
    far = traffic.away.sum(axis=1)[~joined[units]].any()
    minimal = traffic.between((joined & ~over)[units])
    detoured = None
    if touched.detours:
        detoured = traffic.between(over[units])._replace(inner=np.zeros_like(traffic.inner))
    load = touched.channel_loads(touched.load(minimal, detoured))
    if far:
        load += groups.far_loads(demand, ~(joined | groups.same))
    return np.maximum(load, 0)  # what is subtracted for nodes of several switches may round


def hops(machine: Machine, source: Ints, target: Ints, routing: str) -> Floats:
    """Return the expected channels of each class between routers, float64 (m, classes)."""
    groups = groups_of(machine)
    source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
    if routing == "single":
        return single.hops(groups, source, target)
    over = groups.valiant if routing == "valiant" else np.zeros_like(groups.linked)
    return path_hops(groups, source, target, over)


def path_hops(groups: Groups, source: Ints, target: Ints, over: Mask) -> Floats:
    """Return the expected channels of each class on minimal paths, or via a third group.

    A channel's price is 1 in its class: what a path costs is the hops it has.

    `source`, `target` (m,): routers. `over` (count, count): groups between which traffic goes
    over a third group.
    """
    g, h = groups.group[source], groups.group[target]
    turns = over[g, h] & (g != h)
    tables = touched_tables(groups.channels.machine, np.unique(np.concatenate([source, target])))
    touched = tables.every if turns.any() else tables.minimal
    rows = touched.routers.row[source], touched.routers.row[target]
    out = np.zeros((len(source), len(groups.channels.kinds)))
    for kind in range(out.shape[1]):
        price = touched.price_tables((groups.channels.kind == kind).astype(np.float64))
        minimal, *detours = (paths.between(*rows) for paths in touched.prices(price))
        out[:, kind] = np.where(turns, detours[0], minimal) if detours else minimal
    far = np.flatnonzero(~(groups.linked | groups.same | over)[g, h])
    if len(far):
        ends = source[far], target[far]
        out[far] = shortest_paths.mean_hops(groups.graph, *ends, out.shape[1])
    return out


def next_channel(machine: Machine, routing: str, nodes: Ints) -> Ints:
    """Return the channel by which a router forwards to nodes; -1 if one is attached.

    Returns (routers, nodes).
    """
    return single.next_channel(groups_of(machine), machine, nodes)
