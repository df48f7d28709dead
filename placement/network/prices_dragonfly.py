"""Costs on dragonflies under ``minimal``: to a gate of the group, over the link, and on.

The gate at one end says nothing of the way inside the other group, and the
costs of the three stretches add. So a table of the ways inside each group
and one of the ways from each router to each group hold all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.network import minimal
from placement.network.groups import groups_of
from placement.network.sums import product, summed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.network.groups import Groups
    from placement.network.prices import Costs

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["between"]


def between(machine: Machine, price: Floats) -> Costs | None:
    """Return the cost of a byte between nodes; None where groups lack a link of their own."""
    groups = groups_of(machine)
    if not minimal.applies(groups):
        return None
    inside = _inside(groups, price)
    gates = _gates(machine, groups)
    across = _across(groups, price)
    out = product(inside, np.swapaxes(gates, 1, 2))  # [g, p, h]: from p in g to its gate to h
    out = (out + across[:, None, :]).ravel()
    into = product(gates, inside).ravel()  # [h, g, q]: from the gate from g to q in h
    home = inside.ravel()
    one = machine.router.shape[1] == 1
    own = machine.router[:, 0] if one else np.arange(groups.routers)
    group, slot = groups.group[own], groups.slot[own]
    place, count, width = groups.place[own], groups.count, groups.width
    far, near = group * (count * width) + place, group * width

    def cost(a: Ints, b: Ints) -> Floats:
        there, here = group[b], group[a]
        found = out[slot[a] * count + there] + into[near[a] + far[b]]
        same: Floats = np.where(here == there, home[slot[a] * width + place[b]], found)
        return same

    return cost


def _gates(machine: Machine, groups: Groups) -> Floats:
    """Return `minimal.gates`, made once a machine."""
    key = "network gates"
    if key not in machine._cache:
        machine._cache[key] = minimal.gates(groups)
    found: Floats = machine._cache[key]
    return found


def _inside(groups: Groups, price: Floats) -> Floats:
    """Return the cost between the positions of each group, float64 (groups, q, q)."""
    count, width = groups.count, groups.width
    out = np.zeros((count, width, width))
    each = price[groups.inside] * groups.ways
    source, target = (
        x[groups.inside].astype(np.int64) for x in (groups.channels.source, groups.channels.target)
    )
    key = (groups.group[source] * width + groups.place[source]) * width + groups.place[target]
    priced = summed(key, each, out.size).reshape(out.shape)
    busy = np.flatnonzero(priced.any(axis=(1, 2)))
    out[busy] = groups.local.priced(groups.shape[busy], priced[busy])
    return out


def _across(groups: Groups, price: Floats) -> Floats:
    """Return the mean price of the links from group to group, float64 (groups, groups)."""
    found = groups.bundles
    pair = found.pair
    share = found.times / summed(pair, found.times)[pair]
    size = groups.count**2
    low, high = found.low[pair], found.high[pair]
    out = summed(low * groups.count + high, share * price[found.up], size)
    out += summed(high * groups.count + low, share * price[found.down], size)
    return out.reshape(groups.count, groups.count)
