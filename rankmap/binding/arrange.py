"""Who sits where inside each node: the places that its cores make, and ranks near their partners.

Every rank has as many cores as the others, but for one. Cores are dealt from the
outside in: to sockets, in each to its NUMA domains, in each to its caches, so that
no rank lies across two of them where equal shares allow that. On a node with GPUs
whose ranks can share them evenly, each rank gets cores beside its GPU instead: on
Frontier the ranks that stand on cores 1-7, 9-15, … get the GPUs 4, 5, 2, 3, 6, 7, 0, 1.

For the ranks of one node, on places p, the sum over pairs of weight times
`costs_between` their places and over ranks of what they send elsewhere times `costs_to_nics`
is made small: a quadratic assignment, of few ranks by trying all ways, else by steepest
exchanges of two ranks from the given order and from a greedy one. Which node a rank is
on never changes, so everything between nodes stays as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, permutations
from typing import NamedTuple, TypeVar

import numpy as np

from placement.errors import UsageError
from placement.machine import CORE_LEVELS, Device, NodeHardware
from placement.support.array_types import Array, Floats, Ints
from rankmap.pattern import Pattern
from rankmap.pattern.structured import Lines
from rankmap.placement import Placement

T = TypeVar("T")


class Place(NamedTuple):
    """Where one rank of a node runs.

    Attributes
    ----------
    cores : tuple of int
        As indices of `NodeHardware.cores`, ascending.
    pus : tuple of int
        The hardware threads to bind to, by the operating system's numbers: the
        first of each core, or some of one core where ranks outnumber the cores.
    gpus : tuple of int
        Numbers of the GPUs that are its own; () where the node has none, or ranks cannot
        share them evenly.
    nic : int
        Number of the NIC that it uses; -1 where the node's are not known.
    """

    cores: tuple[int, ...]
    pus: tuple[int, ...]
    gpus: tuple[int, ...] = ()
    nic: int = -1


def places_on(hardware: NodeHardware, ranks: int) -> list[Place]:
    """Return the places of a node, in the order of their cores.

    Parameters
    ----------
    hardware : NodeHardware
    ranks : int
        Ranks on the node, at least 1.

    Raises
    ------
    UsageError
        More ranks than the node has hardware threads for them.

    Examples
    --------
    >>> from placement.machine import Core, Device, NodeHardware
    >>> cores = tuple(Core((k,), k // 2, k // 4, 0) for k in range(8))
    >>> gpus = Device("gpu0", (4, 5, 6, 7)), Device("gpu1", (0, 1, 2, 3))
    >>> node = NodeHardware(cores, gpus)
    >>> [(place.pus, place.gpus) for place in places_on(node, 2)]
    [((0, 1, 2, 3), (1,)), ((4, 5, 6, 7), (0,))]
    >>> [place.pus for place in places_on(node, 3)]
    [(0, 1), (2, 3, 4), (5, 6, 7)]
    """
    usable = [k for k in range(len(hardware.cores)) if k not in hardware.reserved]
    threads = _thread_count(hardware, usable)
    if ranks > threads:
        kept = f", {len(hardware.reserved)} cores kept by the system" if hardware.reserved else ""
        raise UsageError(
            f"{ranks} ranks for the {threads} hardware threads of a node{kept} ({hardware.source})"
        )
    places = _beside_gpus(hardware, usable, ranks) or _on_cores(hardware, usable, ranks)
    return _with_nics(sorted(places), hardware)


def costs_between(places: Sequence[Place], hardware: NodeHardware) -> Floats:
    """Return what a GB between two places costs, seconds, float64 (k, k); 0 on the diagonal.

    The reciprocal of the bandwidth of the level at which their cores meet, or
    of the link between their GPUs where there is one.
    """
    nested = np.array([hardware.cores[place.cores[0]].nested for place in places])
    meet = (nested[:, None, :] != nested[None, :, :]).sum(axis=2)
    costs = 1 / np.array(hardware.bandwidth)[np.minimum(meet, len(CORE_LEVELS) - 1)]
    links = {(a, b): gbs for a, b, gbs in hardware.gpu_links}
    for a, place in enumerate(places):
        for b, partner in enumerate(places):
            pairs = [(min(g, h), max(g, h)) for g in place.gpus for h in partner.gpus]
            best = max((links.get(pair, 0.0) for pair in pairs), default=0.0)
            if best:
                costs[a, b] = 1 / best
    np.fill_diagonal(costs, 0)
    return np.asarray(costs)


def costs_to_nics(places: Sequence[Place], hardware: NodeHardware) -> Floats:
    """Return what a GB from each place to its NIC costs, seconds, float64 (k,); 0 without NICs."""
    costs = np.zeros(len(places))
    for k, place in enumerate(places):
        if place.nic >= 0:
            costs[k] = (
                1 / hardware.bandwidth[_meeting_level(hardware, place, hardware.nics[place.nic])]
            )
    return costs


def _meeting_level(hardware: NodeHardware, place: Place, device: Device) -> int:
    """Return the level of `CORE_LEVELS` at which a place and a device meet."""
    place_nested = hardware.cores[place.cores[0]].nested
    near = [hardware.cores[core].nested for core in device.near]
    return next(
        k for k in range(len(CORE_LEVELS)) if any(nested[k] == place_nested[k] for nested in near)
    )


def _deal_cores(
    hardware: NodeHardware, cores: Sequence[int], ranks: int, level: int
) -> list[tuple[int, ...]]:
    """Return the cores of each of some ranks, dealt at a level of `CORE_LEVELS` and below.

    There are at least as many cores as ranks.
    """
    if ranks == 1 or level == 0:
        return _equal_slices([*cores], ranks)
    groups: dict[int, list[int]] = {}
    for core in cores:
        groups.setdefault(hardware.cores[core].nested[level - 1], []).append(core)
    parts = [*groups.values()]
    if ranks < len(parts):
        dealt_parts = [
            tuple(sorted(chain.from_iterable(run))) for run in _equal_slices(parts, ranks)
        ]
        sizes = [len(cores_of_rank) for cores_of_rank in dealt_parts]
        return dealt_parts if max(sizes) - min(sizes) <= 1 else _equal_slices([*cores], ranks)
    shares: list[int] = []
    before = 0
    for part in parts:  # as many ranks as its share of the cores, to the nearest
        before += len(part)
        shares.append((2 * before * ranks + len(cores)) // (2 * len(cores)) - sum(shares))
    least, most = len(cores) // ranks, -(-len(cores) // ranks)
    even = (least * n <= len(part) <= most * n for part, n in zip(parts, shares, strict=True))
    if not all(even):
        return _equal_slices([*cores], ranks)
    dealt = (_deal_cores(hardware, *pair, level - 1) for pair in zip(parts, shares, strict=True))
    return [*chain.from_iterable(dealt)]


def _equal_slices(things: Sequence[T], parts: int) -> list[tuple[T, ...]]:
    """Cut a list into so many runs, as equal in length as can be."""
    n = len(things)
    return [tuple(things[k * n // parts : (k + 1) * n // parts]) for k in range(parts)]


def _on_cores(hardware: NodeHardware, cores: Sequence[int], ranks: int) -> list[Place]:
    """Return places on some cores: the first thread of each, or threads where cores are too few."""
    if ranks <= len(cores):
        dealt = _deal_cores(hardware, cores, ranks, len(CORE_LEVELS) - 1)
        return [
            Place(rank_cores, tuple(hardware.cores[k].pus[0] for k in rank_cores))
            for rank_cores in dealt
        ]
    spare = [core for core in cores for _ in hardware.cores[core].pus[1:]]
    beyond = ranks - len(cores)
    more = Counter(spare[k * len(spare) // beyond] for k in range(beyond))
    return [
        Place((core,), pus)
        for core in cores
        for pus in _equal_slices(hardware.cores[core].pus, 1 + more[core])
    ]


def _beside_gpus(hardware: NodeHardware, usable: Sequence[int], ranks: int) -> list[Place]:
    """Return places beside GPUs; none where ranks and GPUs do not share evenly.

    Where the cores beside the GPUs are too few, or lie across those of others, the GPUs
    are dealt over all cores.
    """
    count = len(hardware.gpus)
    if not count or (ranks % count and count % ranks):
        return []
    beside = [tuple(k for k in gpu.near if k in set(usable)) for gpu in hardware.gpus]
    ranks_a_gpu = max(1, ranks // count)
    for near in (beside, [tuple(usable)] * count):
        by_core = sorted(range(count), key=lambda gpu: (near[gpu], gpu))
        sharing: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for bundle in _equal_slices(by_core, min(ranks, count)):
            cores = tuple(sorted({core for gpu in bundle for core in near[gpu]}))
            sharing.setdefault(cores, []).append(bundle)
        apart = len(set(chain(*sharing))) == len([*chain(*sharing)])
        if apart and all(
            _thread_count(hardware, c) >= len(b) * ranks_a_gpu for c, b in sharing.items()
        ):
            break
    return [
        place._replace(gpus=bundles[k // ranks_a_gpu])
        for cores, bundles in sharing.items()
        for k, place in enumerate(_on_cores(hardware, cores, len(bundles) * ranks_a_gpu))
    ]


def _thread_count(hardware: NodeHardware, cores: Sequence[int]) -> int:
    """Return how many hardware threads some cores have."""
    return sum(len(hardware.cores[k].pus) for k in cores)


def _with_nics(places: Sequence[Place], hardware: NodeHardware) -> list[Place]:
    """Return the places with the nearest NICs, each NIC for as many of them as the others."""
    everywhere = all(len(nic.near) == len(hardware.cores) for nic in hardware.nics)
    if everywhere and len(hardware.nics) > 1:
        return [*places]  # which one is near what is not known
    used = [0] * len(hardware.nics)
    with_nics = []
    for place in places:
        ways = [
            (_meeting_level(hardware, place, nic), used[k], k)
            for k, nic in enumerate(hardware.nics)
        ]
        best = min(ways, default=(0, 0, -1))[2]
        if best >= 0:
            used[best] += 1
        with_nics.append(place._replace(nic=best))
    return with_nics


#: Ranks of which all ways are tried: 720 of six.
_FEW = 6


class Arranged(NamedTuple):
    """An order with its ranks arranged inside the nodes.

    Attributes
    ----------
    order : Placement
    cost, before : float
        The sum that was made small, weight times seconds a GB: now, and in the order given.
    """

    order: Placement
    cost: float
    before: float


def arrange_inside(
    order: Placement, pattern: Pattern, hardware: NodeHardware, alike: bool = False
) -> Arranged:
    """Return an order whose ranks are arranged inside each node; nodes stay as they are.

    Parameters
    ----------
    order : Placement
    pattern : Pattern
        Fitted to the order's slots.
    hardware : NodeHardware
        Of every node.
    alike : bool
        True where the ranks of every node have to take the places in the same
        turn, as they do for a launcher that counts them by rank: then one
        arrangement is made for the sum of all nodes' traffic. Only where all
        nodes have as many ranks.

    Raises
    ------
    UsageError
        More ranks on a node than it has hardware threads.
    """
    costs = {}
    for ranks in np.unique(order.counts).tolist():
        places = places_on(hardware, ranks)
        costs[ranks] = costs_between(places, hardware), costs_to_nics(places, hardware)
    nodes = [
        *_traffic_of_nodes(order.with_ranks_on(order.node_of_rank) if alike else order, pattern)
    ]
    if alike:
        inside = np.sum([weights[1] for weights in nodes], axis=0)
        outside = np.sum([weights[2] for weights in nodes], axis=0)
        common = best_seats(inside, outside, *costs[len(outside)])
    slots = order.slot_of_rank.copy()
    seen: dict[bytes, Ints] = {}
    total = before = 0.0
    for low, (members, inside, outside) in zip(order.first_slot.tolist(), nodes, strict=True):
        between, to_nic = costs[len(members)]
        key = inside.tobytes() + outside.tobytes()
        if key not in seen:
            seen[key] = common if alike else best_seats(inside, outside, between, to_nic)
        turn = np.arange(len(members))
        total += seating_cost(seen[key], inside, outside, between, to_nic)
        before += seating_cost(turn, inside, outside, between, to_nic)
        slots[members] = low + seen[key]
    return Arranged(order.with_order(slots, order.origin), total, before)


def seating_cost(
    seats: Ints, inside: Floats, outside: Floats, between: Floats, to_nic: Floats
) -> float:
    """Return what all copies of a node's ranks cost with the ranks at these places.

    Parameters
    ----------
    seats : int64 (k,)
        The place of each rank.
    inside : float64 (k, k)
        Weight between two ranks of the node, symmetric, 0 on the diagonal.
    outside : float64 (k,)
        Weight between each rank and those on other nodes.
    between, to_nic : float64 (k, k), (k,)
        See `costs_between` and `costs_to_nics`.
    """
    pairs = float((inside * between[np.ix_(seats, seats)]).sum()) / 2
    return pairs + float(outside @ to_nic[seats])


def best_seats(inside: Floats, outside: Floats, between: Floats, to_nic: Floats) -> Ints:
    """Return the place of each rank, int64 (k,), at which copies cost least; see `seating_cost`.

    Never worse than ranks in turn; that where all are alike.

    Examples
    --------
    >>> talk = np.array([[0, 0, 9.0, 0], [0, 0, 0, 9.0], [9.0, 0, 0, 0], [0, 9.0, 0, 0]])
    >>> apart = np.array([[0, 1.0, 4, 4], [1, 0, 4, 4], [4, 4, 0, 1], [4, 4, 1, 0]])
    >>> seats = best_seats(talk, np.zeros(4), apart, np.zeros(4))
    >>> seating_cost(seats, talk, np.zeros(4), apart, np.zeros(4))
    18.0
    """
    turn = np.arange(len(outside))
    if len(turn) <= _FEW:
        ways = np.array([*permutations(range(len(turn)))])
        pairs = inside * between[ways[:, :, None], ways[:, None, :]]
        costs_of_ways = pairs.sum(axis=(1, 2)) / 2 + to_nic[ways] @ outside
        return np.asarray(ways[int(np.argmax(costs_of_ways <= costs_of_ways.min() * (1 + 1e-12)))])
    starts = [turn, _place_greedily(inside, between)]
    seatings = [_exchange_ranks(start, inside, outside, between, to_nic) for start in starts]
    costs = [seating_cost(seats, inside, outside, between, to_nic) for seats in (*seatings, turn)]
    least = min(costs)
    return turn if costs[-1] <= least * (1 + 1e-12) else seatings[int(np.argmin(costs[:-1]))]


def _place_greedily(inside: Floats, between: Floats) -> Ints:
    """Return places given one by one: to the rank that talks most to those who sit, the nearest."""
    k = len(inside)
    seats = np.full(k, -1)
    free, waiting = np.ones(k, bool), np.ones(k, bool)
    to_seated = np.zeros(k)
    for _ in range(k):
        rank = int(np.argmax(np.where(waiting, to_seated + 1e-9 * inside.sum(axis=1), -np.inf)))
        sat = np.flatnonzero(seats >= 0)
        far = between[:, seats[sat]] @ inside[sat, rank]
        place = int(np.argmin(np.where(free, far, np.inf)))
        seats[rank], free[place], waiting[rank] = place, False, False
        to_seated += inside[rank]
    return seats


def _exchange_ranks(
    seats: Ints, inside: Floats, outside: Floats, between: Floats, to_nic: Floats
) -> Ints:
    """Return the places after the best exchanges of two ranks, until none is a gain."""
    seats = seats.copy()
    apart = between[np.ix_(seats, seats)]
    pays = inside @ apart  # what rank i pays at the place of rank j, the others where they are
    sent = outside[:, None] - outside[None, :]
    for _ in range(10 * len(seats)):
        paid, nic = np.diagonal(pays), to_nic[seats]
        gain = paid[:, None] + paid[None, :] - pays - pays.T - 2 * inside * apart
        gain += sent * (nic[:, None] - nic[None, :])
        i, j = divmod(int(np.argmax(gain)), len(seats))
        if gain[i, j] <= 1e-9 * max(1e-30, float(np.abs(pays).max(initial=0.0))):
            break
        pays += np.outer(inside[:, j] - inside[:, i], apart[i] - apart[j])
        pays[:, [i, j]] = pays[:, [j, i]]
        apart[[i, j]] = apart[[j, i]]
        apart[:, [i, j]] = apart[:, [j, i]]
        seats[[i, j]] = seats[[j, i]]
    return seats


def _traffic_of_nodes(order: Placement, pattern: Pattern) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Yield each node's ranks by slot, the weights between them, and those to other nodes."""
    first, counts, ranks = order.first_slot, order.counts, order.rank_at_slot
    if isinstance(pattern, Lines):  # too many edges to go through, and no need to
        degree_of_all = pattern.weight * sum(extent - 1 for extent in pattern.dims or ())
        for low, count in zip(first.tolist(), counts.tolist(), strict=True):
            members = ranks[low : low + count]
            coords = np.stack(np.unravel_index(members, pattern.dims or ()))
            lines_apart = (coords[:, :, None] != coords[:, None, :]).sum(axis=0)
            inside = np.where(lines_apart == 1, pattern.weight, 0.0)
            yield members, inside, degree_of_all - inside.sum(axis=1)
        return
    (node, a, b, weight), degree = _edges_inside(pattern, order)
    ends = np.searchsorted(node, np.arange(len(counts) + 1))
    for at, (low, count) in enumerate(zip(first.tolist(), counts.tolist(), strict=True)):
        members = ranks[low : low + count]
        inside = np.zeros((count, count))
        node_edges = slice(ends[at], ends[at + 1])
        places = order.slot_of_rank[a[node_edges]] - low, order.slot_of_rank[b[node_edges]] - low
        np.add.at(inside, places, weight[node_edges])
        inside += inside.T
        yield members, inside, degree[members] - inside.sum(axis=1)


def _edges_inside(pattern: Pattern, order: Placement) -> tuple[list[Array], Floats]:
    """Return the edges within nodes, and the weight of all edges of each rank.

    The edges are node, both ranks and weight, (m,) each, node by node.
    """
    node, degree = order.node_of_rank, np.zeros(order.ranks)
    kept = []
    for block in pattern.edges():
        for ends in (block.source, block.target):
            degree += np.bincount(ends, block.bytes, len(degree))
        inside = block.some(node[block.source] == node[block.target])
        kept.append((node[inside.source], inside.source, inside.target, inside.bytes))
    none = np.zeros(0, np.int64)
    columns = [np.concatenate([none, *column]) for column in zip(*kept, strict=True)] or [none] * 4
    by_node = np.argsort(columns[0], kind="stable")
    return [column[by_node] for column in columns], degree
