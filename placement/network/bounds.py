"""The least time that traffic can take, whatever the routing, and whatever the placement.

*This placement* (`bound_demand`). Bytes that leave a part of the network cross the
channels that leave it, by any routing. So for every part the bytes out over
the bandwidth out is a lower bound, and so are a node's own bytes over its own
links. The parts: single routers; the subtrees, groups, chassis … that the
coordinates name; on a torus every slab between two planes.

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
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from placement.all_to_alls import AllToAlls
from placement.errors import UsageError
from placement.machine import Machine, once
from placement.network import channels
from placement.network.demand import Demand
from placement.network.model import injection_bandwidth
from placement.support.array_types import Floats, Ints, Mask
from placement.support.arrays import add_by_key, sum_by_pair
from placement.support.quantities import GB
from placement.topologies import router_coords, router_names

#: On axes longer than this only some thicknesses of slabs are looked at …
ALL_SLABS = 64

#: … from so many first planes each.
SHIFTS = 8

#: Halvings of the interval of times; 2**-60 of it is less than rounding.
HALVINGS = 60


class Bound(NamedTuple):
    """A time that nothing can beat.

    Attributes
    ----------
    seconds : float
        0.0 where no link is limited.
    kind : str
        ``injection``, ``ejection``, ``cut`` or ''.
    why : str
        One phrase for the reader.
    """

    seconds: float
    kind: str
    why: str


class DisjointParts(NamedTuple):
    """Disjoint parts of the network.

    Attributes
    ----------
    name : str
        What one part is called.
    label : int64 (units,)
        Part of each unit.
    out, into : float64 (parts,)
        GB/s of the channels that leave and enter each part.
    shifted : bool
        True for a slab partition that does not begin at plane 0.
    """

    name: str
    label: Ints
    out: Floats
    into: Floats
    shifted: bool = False


class Family(NamedTuple):
    """Partitions that never part some routers: those of a unit (a plane of a torus).

    Attributes
    ----------
    unit : int64 (routers,)
    partitions : tuple of DisjointParts
        Of the units.
    """

    unit: Ints
    partitions: tuple[DisjointParts, ...]


NOTHING = Bound(0.0, "", "no link is limited")


def bound_demand(machine: Machine, demand: Demand) -> Bound:
    """Return the least time of a demand where its nodes are, by any routing.

    Parameters
    ----------
    machine : Machine
    demand : Demand
        Its split over several NICs of a node is taken as given.

    Returns
    -------
    Bound

    Examples
    --------
    >>> import numpy as np
    >>> from placement.network.demand import Demand
    >>> from placement.traffic import Traffic
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("fattree:leaf=4,leaves=2,spines=1,bw=1")
    >>> bound_demand(m, Demand.of(m, Traffic.everyone(np.arange(8), 1, 1e9)))
    Bound(seconds=16.0, kind='cut', why='16 GB leave leaf0 over 1 GB/s')
    """
    limits = [NOTHING, *_own_links(machine, demand)]
    for family in partition_families(machine):
        folded = _fold_demand(demand, family.unit)
        limits += [_bound_cut(machine, folded, family.unit, parts) for parts in family.partitions]
    return max(limits, key=lambda bound: bound.seconds)


def best_bound(
    machine: Machine,
    count: int,
    *,
    out: float,
    pair: float,
    busiest: float = 0.0,
    among: Mask | None = None,
) -> Bound:
    """Return the least time of any placement of some nodes, by any routing.

    Parameters
    ----------
    machine : Machine
    count : int
        Nodes to place.
    out : float
        Bytes that every node sends to the others at least (their least; in
        an all-to-all of k ranks a node and b bytes: (count - 1) k² b).
    pair : float
        Bytes that one node sends to another at most (k² b).
    busiest : float
        Bytes that the busiest node sends, if more than `out`.
    among : bool (n,) or None
        Nodes that may be taken; None: all compute nodes.

    Returns
    -------
    Bound

    Raises
    ------
    UsageError
        Where there are fewer such nodes, or a number is negative.

    Examples
    --------
    Sixteen nodes on four leaves of four: each node sends to 12 others over
    its leaf's two links.

    >>> from placement.specs import parse_spec
    >>> m = parse_spec("fattree:leaf=4,leaves=4,spines=2,bw=1")
    >>> found = best_bound(m, 16, out=15e9, pair=1e9)
    >>> found.kind, round(found.seconds, 9)
    ('cut', 24.0)
    """
    eligible = machine.compute if among is None else np.asarray(among)
    if min(out, pair, busiest) < 0 or not 0 < count <= int(eligible.sum()):
        raise UsageError(f"cannot bound {count} of {int(eligible.sum())} nodes")
    limits = [NOTHING, _best_own(machine, count, eligible, out, max(out, busiest))]
    chosen = ((f, p) for f in partition_families(machine) for p in f.partitions if not p.shifted)
    for family, parts in chosen:
        room = _eligible_room(machine, parts.label[family.unit], len(parts.out), eligible)
        if room is not None:
            seconds = _least_time(count, out, pair, room, parts.out)
            text = f"any {count} nodes, whichever {parts.name} each is on"
            limits.append(Bound(seconds, "cut", text))
    return max(limits, key=lambda bound: bound.seconds)


def _own_links(machine: Machine, demand: Demand) -> Iterator[Bound]:
    gbs = injection_bandwidth(machine)
    for kind, verb, load in (
        ("injection", "sends", demand.out),
        ("ejection", "receives", demand.into),
    ):
        seconds = load / (gbs * GB)
        if len(seconds):
            row = int(np.argmax(seconds))
            amount, name = load[row] / GB, machine.names[row]
            why = f"{name} {verb} {amount:.3g} GB at {gbs[row]:.3g} GB/s"
            yield Bound(float(seconds[row]), kind, why)


def _best_own(machine: Machine, count: int, eligible: Mask, out: float, busiest: float) -> Bound:
    """Return what the nodes' own links allow the fastest nodes."""
    fast = np.sort(injection_bandwidth(machine)[eligible])[::-1]
    seconds = max(out / (fast[count - 1] * GB), busiest / (fast[0] * GB))
    why = f"a node sends {max(out, busiest) / GB:.3g} GB at {fast[0]:.3g} GB/s"
    return Bound(float(seconds), "injection", why)


def _fold_demand(demand: Demand, unit: Ints) -> Demand:
    """Return the demand between units; itself where each router is one."""
    count = int(unit.max(initial=-1)) + 1
    if count == len(unit):
        return demand
    source, target, amount = sum_by_pair(
        unit[demand.source], unit[demand.target], demand.amount, count
    )
    lines = demand.within
    entries = sum_by_pair(lines.line, unit[lines.end], lines.weight, count)
    within = AllToAlls(*entries, lines.scale)
    return replace(
        demand, routers=count, source=source, target=target, amount=amount, within=within
    )


def _bound_cut(machine: Machine, demand: Demand, unit: Ints, parts: DisjointParts) -> Bound:
    """Return the bound of the part of a partition that takes longest."""
    out, into = demand.leaving(parts.label, len(parts.out))
    after, before = _crossing_time(out, parts.out), _crossing_time(into, parts.into)
    seconds = np.maximum(after, before)
    if not seconds.any():
        return NOTHING
    row = int(np.argmax(seconds))
    leaves = bool(after[row] >= before[row])
    amount, gbs = (out[row], parts.out[row]) if leaves else (into[row], parts.into[row])
    name = _part_name(machine, parts.name, np.flatnonzero(parts.label[unit] == row))
    verb = "leave" if leaves else "enter"
    why = f"{amount / GB:.3g} GB {verb} {name} over {gbs:.4g} GB/s"
    return Bound(float(seconds[row]), "cut", why)


def _crossing_time(amount: Floats, gbs: Floats) -> Floats:
    """Return bytes over GB/s; 0 where no channel is known (it then cannot be crossed)."""
    known = np.where(gbs > 0, gbs, np.inf)
    seconds: Floats = amount / (known * GB)
    return seconds


def _part_name(machine: Machine, name: str, inside: Ints) -> str:
    """Return a part's name: of a single router its own."""
    if len(inside) == 1:
        return str(router_names(machine)[inside[0]])
    return f"a {name} of {len(inside)} routers"


@once
def partition_families(machine: Machine) -> list[Family]:
    """Return the partitions of a machine, made once: of routers, and from the outside in.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("dragonfly:groups=3,chassis=1,blades=2,nodes=2")
    >>> [part.name for part in partition_families(m)[0].partitions]
    ['router', 'group', 'chassis', 'blade']
    """
    return list(_make_families(machine))


def _make_families(machine: Machine) -> Iterator[Family]:
    coords = router_coords(machine).astype(np.int64)
    router = np.arange(len(coords))
    links = _between_units(machine, router)
    if machine.topology.kind != "torus":
        labels = [("router", router), *_list_subtrees(machine, coords)]
        yield Family(router, tuple(_weigh_partition(links, *labelling) for labelling in labels))
        return
    yield Family(router, (_weigh_partition(links, "router", router),))
    for axis, extent in enumerate(machine.topology.extents[: coords.shape[1]]):
        unit, word = coords[:, axis], machine.topology.levels[axis]
        links = _between_units(machine, unit)
        slabs = tuple(
            _weigh_partition(links, f"slab of {width} in {word}", label, first > 0)
            for width, first, label in _list_slabs(extent)
        )
        yield Family(unit, slabs)


def _list_subtrees(machine: Machine, coords: Ints) -> Iterator[tuple[str, Ints]]:
    """Yield groups, chassis … or the subtrees of each level."""
    for level in range(1, machine.topology.router_levels + 1):
        inside: Mask = np.asarray((coords[:, :level] >= 0).all(axis=1))
        alone = -1 - np.arange(len(coords))  # a switch above the parts is one of its own
        table = np.where(inside[:, None], coords[:, :level], alone[:, None])
        _, label = np.unique(table, axis=0, return_inverse=True)
        yield machine.topology.levels[level - 1], label.ravel()


def _list_slabs(extent: int) -> Iterator[tuple[int, int, Ints]]:
    """Yield thickness, first plane and the slab of each plane; of long axes some of all."""
    widths = {extent // 2 >> k for k in range(extent.bit_length())} - {0}
    complete = extent <= ALL_SLABS
    for width in range(1, extent // 2 + 1) if complete else sorted(widths):
        for first in range(0, width, 1 if complete else max(1, width // SHIFTS)):
            yield width, first, (np.arange(extent) - first) % extent // width


def _weigh_partition(
    links: tuple[Ints, Ints, Floats], name: str, label: Ints, shifted: bool = False
) -> DisjointParts:
    source, target, gbs = links
    count = int(label.max(initial=-1)) + 1
    crosses = np.flatnonzero(label[source] != label[target])
    some = gbs[crosses]
    out, into = (add_by_key(label[end[crosses]], some, count) for end in (source, target))
    return DisjointParts(name, label, out, into, shifted)


def _between_units(machine: Machine, unit: Ints) -> tuple[Ints, Ints, Floats]:
    """Return the bandwidth of all channels between each two units."""
    links = channels(machine)
    count = int(unit.max(initial=-1)) + 1
    if count == len(unit):
        return links.source.astype(np.int64), links.target.astype(np.int64), links.bandwidth
    return sum_by_pair(unit[links.source], unit[links.target], links.bandwidth, count)


def _eligible_room(machine: Machine, part: Ints, parts: int, eligible: Mask) -> Ints | None:
    """Return how many eligible nodes each part has; None where a node is in two parts."""
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

    high = float(np.max(_crossing_time(_out_of(most, out, pair), gbs), initial=0.0))
    if fits(0.0) or not fits(high * (1 + 1e-9)):
        return 0.0
    low = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return low


def _out_of(inside: Floats, out: float, pair: float) -> Floats:
    """Return f(n) of the module's text, at least 0."""
    return np.maximum(inside * out - inside * (inside - 1) * pair, 0.0)


def _most_within(most: Floats, out: float, pair: float, budget: Floats) -> Floats:
    """Return m(t): the largest n up to `most` that sends at most `budget` bytes out."""
    fits = _out_of(most, out, pair) <= budget
    b = out + pair
    root = np.sqrt(np.maximum(b * b - 4 * pair * budget, 0.0))
    nodes = 2 * budget / np.maximum(b + root, np.finfo(float).tiny)  # the smaller root, stable
    nodes = np.where(np.isinf(budget), most, nodes)
    return np.where(fits, most, np.minimum(np.floor(nodes * (1 + 1e-12)), most))
