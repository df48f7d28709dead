# SPDX-License-Identifier: Apache-2.0
"""Lower bounds on the time of traffic, for any routing and any placement.

*This placement* (`cut_time`). Bytes that leave a part of the network cross the
channels that leave it, by any routing. So for every part the bytes out over
the bandwidth out is a lower bound. The parts: single routers; the subtrees,
groups, chassis … that the coordinates name; on a torus slabs between two planes.

*Any placement* (`best_bound`). Let N nodes be chosen so that every node sends
at least `out` bytes to the others and no node more than `pair` to any single
one. A part that holds n of them keeps inside at most n (n - 1) pair bytes, so
at least

    f(n) = n out - n (n - 1) pair

leave it (in an all-to-all exactly n (N - n) pair). Partition the network into
parts i with room for c_i nodes and B_i GB/s out. A placement that takes the
time t has f(n_i) <= t B_i for all i, n_i <= c_i and sum n_i = N. Let m_i(t)
be the largest n <= min(c_i, N) with f(n) <= t B_i: then sum m_i(t) >= N. So
every t with sum m_i(t) < N is out of reach of any placement and any routing;
m_i grows with t, and the largest such t is found by bisection. (It is not
always reached: that all n_i fit together is more than that their largest
values do.) The bound is the largest over all partitions, and over the nodes'
own links: the N-th fastest of those eligible is as fast as the slowest used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine, once
from nidmap.placement.network import channels
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.network.demand import Demand
from nidmap.placement.support.array_types import Floats, Ints, Mask
from nidmap.placement.support.arrays import add_by_key
from nidmap.placement.support.quantities import GB
from nidmap.placement.topologies import router_coords

#: On axes longer than this only some thicknesses of slabs are considered.
ALL_SLABS = 64

#: Number of bisection steps on the interval of times; 2**-60 of it is less than rounding.
HALVINGS = 60


class Bound(NamedTuple):
    """A lower bound on time."""

    seconds: float  # 0.0 where no link is limited
    why: str  # one phrase for the reader


class NetworkParts(NamedTuple):
    """Disjoint parts of the network."""

    name: str  # noun for a part
    label: Ints  # (routers,), part of each router
    # out, into: (parts,), GB/s of the channels that leave and enter each part
    out: Floats
    into: Floats


def cut_time(machine: Machine, demand: Demand) -> float:
    """Return a lower bound in seconds on a demand's time between its nodes, for any routing.

    What nodes' own links need is not looked at.
    """
    seconds = 0.0
    for parts in partitions(machine):
        leaving = demand.leaving(parts.label, len(parts.out))
        for amount, gbs in zip(leaving, (parts.out, parts.into), strict=True):
            seconds = max(seconds, float(_crossing_time(amount, gbs).max(initial=0.0)))
    return seconds


def best_bound(
    machine: Machine,
    count: int,
    *,
    out: float,
    pair: float,
    busiest: float = 0.0,
    among: Mask | None = None,
) -> Bound:
    """Return a lower bound on the time of any placement of some nodes, for any routing.

    `count`: nodes to place. `out`: bytes that every node sends to the others at least (their
    least; in an all-to-all of k ranks per node and b bytes: (count - 1) k² b). `pair`: bytes that
    one node sends to another at most (k² b). `busiest`: bytes that the busiest node sends, if
    more than `out`. `among` (n,): nodes that may be taken; None means all compute nodes.
    """
    eligible = machine.compute if among is None else np.asarray(among)
    if min(out, pair, busiest) < 0 or not 0 < count <= int(eligible.sum()):
        raise UsageError(f"no bound for {count} of {int(eligible.sum())} nodes")
    limits = [
        Bound(0.0, "no link is limited"),
        _best_own(machine, count, eligible, out, max(out, busiest)),
    ]
    for parts in partitions(machine):
        room = _eligible_room(machine, parts.label, len(parts.out), eligible)
        if room is not None:
            seconds = _least_time(count, out, pair, room, parts.out)
            limits.append(Bound(seconds, f"any {count} nodes, whichever {parts.name} each is on"))
    return max(limits, key=lambda bound: bound.seconds)


def _best_own(machine: Machine, count: int, eligible: Mask, out: float, busiest: float) -> Bound:
    """Return the time allowed by nodes' own links, for the fastest nodes."""
    fast = np.sort(injection_bandwidth(machine)[eligible])[::-1]
    seconds = max(out / (fast[count - 1] * GB), busiest / (fast[0] * GB))
    why = f"a node sends {max(out, busiest) / GB:.3g} GB at {fast[0]:.3g} GB/s"
    return Bound(float(seconds), why)


def _crossing_time(amount: Floats, gbs: Floats) -> Floats:
    """Return bytes over GB/s; 0 if no channel is known (it cannot be crossed then)."""
    known = np.where(gbs > 0, gbs, np.inf)
    seconds: Floats = amount / (known * GB)
    return seconds


@once
def partitions(machine: Machine) -> list[NetworkParts]:
    """Return a machine's partitions, cached: of routers, and from the outside in."""
    coords, links = router_coords(machine).astype(np.int64), channels(machine)
    labels = [("router", np.arange(len(coords)))]
    torus = machine.topology.kind == "torus"
    labels += _list_slabs(machine, coords) if torus else _list_subtrees(machine, coords)
    parts = []
    for name, label in labels:
        source, target = label[links.source], label[links.target]
        count, apart = int(label.max(initial=-1)) + 1, source != target
        out, into = (
            add_by_key(end[apart], links.bandwidth[apart], count) for end in (source, target)
        )
        parts.append(NetworkParts(name, label, out, into))
    return parts


def _list_subtrees(machine: Machine, coords: Ints) -> Iterator[tuple[str, Ints]]:
    """Yield groups, chassis … or the subtrees of each level."""
    for level in range(1, machine.topology.router_levels + 1):
        inside: Mask = np.asarray((coords[:, :level] >= 0).all(axis=1))
        alone = -1 - np.arange(len(coords))  # a switch above the parts is one of its own
        table = np.where(inside[:, None], coords[:, :level], alone[:, None])
        _, label = np.unique(table, axis=0, return_inverse=True)
        yield machine.topology.levels[level - 1], label.ravel()


def _list_slabs(machine: Machine, coords: Ints) -> Iterator[tuple[str, Ints]]:
    """Yield the slabs of each thickness along each axis, sampled on long axes."""
    for axis, extent in enumerate(machine.topology.extents[: coords.shape[1]]):
        widths = {extent // 2 >> k for k in range(extent.bit_length())} - {0}
        for width in range(1, extent // 2 + 1) if extent <= ALL_SLABS else sorted(widths):
            yield f"slab of {width} in {machine.topology.levels[axis]}", coords[:, axis] // width


def _eligible_room(machine: Machine, part: Ints, parts: int, eligible: Mask) -> Ints | None:
    """Return each part's number of eligible nodes; None if a node is in two parts."""
    table = machine.router[eligible]
    label: Ints = np.where(table >= 0, part[table], -1)
    first = label[:, 0]
    apart = (label != first[:, None]) & (label >= 0)
    if bool((first < 0).any()) or bool(apart.any()):
        return None
    return np.bincount(first, minlength=parts)


def _least_time(count: int, out: float, pair: float, room: Ints, gbs: Floats) -> float:
    """Return the largest time at which the parts cannot hold `count` nodes together."""
    most = np.minimum(room, count)
    some = most > 0
    most, gbs = most[some].astype(np.float64), gbs[some]
    unlimited = np.isinf(gbs)  # such parts hold all that have room in them at any time
    held = float(most[unlimited].sum())
    most, gbs = most[~unlimited], gbs[~unlimited]

    def fits(seconds: float) -> bool:
        return held + float(_most_within(most, out, pair, seconds * gbs * GB).sum()) >= count

    high = float(np.max(_crossing_time(_bytes_leaving(most, out, pair), gbs), initial=0.0))
    if fits(0.0) or not fits(high * (1 + 1e-9)):
        return 0.0
    low = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return low


def _bytes_leaving(inside: Floats, out: float, pair: float) -> Floats:
    """Return f(n) of the module's docstring, at least 0."""
    return np.maximum(inside * out - inside * (inside - 1) * pair, 0.0)


def _most_within(most: Floats, out: float, pair: float, budget: Floats) -> Floats:
    """Return m(t): the largest n up to `most` that sends at most `budget` bytes out."""
    fits = _bytes_leaving(most, out, pair) <= budget
    b = out + pair
    root = np.sqrt(np.maximum(b * b - 4 * pair * budget, 0.0))
    nodes = 2 * budget / np.maximum(b + root, np.finfo(float).tiny)  # the smaller root, stable
    nodes = np.where(np.isinf(budget), most, nodes)
    return np.where(fits, most, np.minimum(np.floor(nodes * (1 + 1e-12)), most))
