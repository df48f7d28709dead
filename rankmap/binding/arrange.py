# SPDX-License-Identifier: Apache-2.0
"""The cores of each rank within its node: places of equal size, partners close together.

Every rank has as many cores as the others, but for one. Cores are dealt from the
outside in: to sockets, in each to its NUMA domains, in each to its caches, so that
no rank lies across two of them where equal shares allow that. On a node with GPUs
whose ranks can share them evenly, each rank gets cores near its GPU instead: on
Frontier the ranks on cores 1-7, 9-15, … get the GPUs 4, 5, 2, 3, 6, 7, 0, 1.

For the ranks of one node, on places p, the sum over pairs of weight times
`costs_between` their places and over ranks of what they send elsewhere times `costs_to_nics`
is made small: a quadratic assignment, of few ranks by trying all ways, else by steepest
exchanges of two ranks from the given order and from a greedy one. Which node a rank is
on never changes, so everything between nodes stays as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise, permutations, product
from typing import NamedTuple, TypeVar

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import CORE_LEVELS, NodeHardware
from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.structured import Lines

T = TypeVar("T")


class Place(NamedTuple):
    """Cores, GPUs and NIC of one rank within its node."""

    cores: tuple[int, ...]  # as indices of `NodeHardware.cores`, ascending
    # The hardware threads to bind to, by the operating system's numbers: the first of each core, or
    # some of one core where ranks outnumber the cores
    pus: tuple[int, ...]
    # Numbers of the GPUs that are its own; () where the node has none, or ranks cannot share them
    # evenly
    gpus: tuple[int, ...] = ()
    nic: int = -1  # number of the NIC that it uses; -1 where the node's are not known


def places_on(hardware: NodeHardware, ranks: int) -> list[Place]:
    """Return the places on a node, in the order of their cores.

    `ranks`: ranks on the node, at least 1.
    """
    usable = [k for k in range(len(hardware.cores)) if k not in hardware.reserved]
    threads = _thread_count(hardware, usable)
    if ranks > threads:
        kept = (
            f", {len(hardware.reserved)} cores reserved for the system" if hardware.reserved else ""
        )
        raise UsageError(
            f"{ranks} ranks for the {threads} hardware threads of a node{kept} ({hardware.source})"
        )
    places = _near_gpus(hardware, usable, ranks) or _on_cores(hardware, usable, ranks)
    return _with_nics(sorted(places), hardware)


def costs_between(places: Sequence[Place], hardware: NodeHardware) -> Floats:
    """Return the seconds per GB between two places, float64 (k, k); 0 on the diagonal.

    The reciprocal of the bandwidth of the level at which their cores meet, or
    of the link between their GPUs where there is one.
    """
    levels = _meeting_levels(places, hardware)[:, [place.cores[0] for place in places]]
    costs = 1 / np.array(hardware.bandwidth)[levels]
    links = {frozenset(ends): gbs for *ends, gbs in hardware.gpu_links}
    for (a, place), (b, partner) in product(enumerate(places), repeat=2):
        pairs = map(frozenset, product(place.gpus, partner.gpus))
        fastest = max((links.get(pair, 0.0) for pair in pairs), default=0.0)
        if fastest:
            costs[a, b] = 1 / fastest
    np.fill_diagonal(costs, 0)
    return np.asarray(costs)


def costs_to_nics(places: Sequence[Place], hardware: NodeHardware) -> Floats:
    """Return the seconds per GB from each place to its NIC, float64 (k,); 0 without NICs."""
    costs = 1 / np.array(hardware.bandwidth)[_nic_levels(places, hardware)]
    return np.array(
        [costs[place.nic, k] if place.nic >= 0 else 0.0 for k, place in enumerate(places)]
    )


def _meeting_levels(places: Sequence[Place], hardware: NodeHardware) -> Ints:
    """Return the level of `CORE_LEVELS` at which each place meets each core, int64 (k, cores)."""
    nested = np.array([core.nested for core in hardware.cores])
    alike = nested[[place.cores[0] for place in places], None] == nested
    return np.asarray(alike.argmax(axis=2))


def _nic_levels(places: Sequence[Place], hardware: NodeHardware) -> Ints:
    """Return the level of `CORE_LEVELS` at which each NIC meets each place, int64 (nics, k)."""
    levels = _meeting_levels(places, hardware)
    nearest = [levels[:, [*nic.near]].min(axis=1) for nic in hardware.nics]
    return np.array(nearest, np.int64).reshape(len(nearest), len(places))


def _deal_cores(
    hardware: NodeHardware, cores: Sequence[int], ranks: int, level: int
) -> list[tuple[int, ...]]:
    """Deal out cores to ranks at a level of `CORE_LEVELS` and below.

    There are at least as many cores as ranks.
    """
    if ranks <= 1 or level == 0:
        return _equal_slices(cores, ranks)
    groups: dict[int, list[int]] = {}
    for core in cores:
        groups.setdefault(hardware.cores[core].nested[level - 1], []).append(core)
    parts = [*groups.values()]
    if ranks < len(parts):
        dealt = [tuple(sorted(chain(*run))) for run in _equal_slices(parts, ranks)]
    else:  # to each part as many ranks as its share of the cores, to the nearest
        before = accumulate(map(len, parts), initial=0)
        ends = [(2 * count * ranks + len(cores)) // (2 * len(cores)) for count in before]
        shares = zip(parts, pairwise(ends), strict=True)
        dealt = [
            cores_of_rank
            for part, (begin, end) in shares
            for cores_of_rank in _deal_cores(hardware, part, end - begin, level - 1)
        ]
    sizes = [*map(len, dealt)]
    even = sum(sizes) == len(cores) and max(sizes) - min(sizes) <= 1
    return dealt if even else _equal_slices(cores, ranks)


def _equal_slices(things: Sequence[T], parts: int) -> list[tuple[T, ...]]:
    """Cut a list into this many slices, as equal in length as possible."""
    n = len(things)
    return [tuple(things[k * n // parts : (k + 1) * n // parts]) for k in range(parts)]


def _on_cores(hardware: NodeHardware, cores: Sequence[int], ranks: int) -> list[Place]:
    """Return places on cores: one thread per core, or all threads if cores are too few."""
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


def _near_gpus(hardware: NodeHardware, usable: Sequence[int], ranks: int) -> list[Place]:
    """Return places near GPUs; none if ranks and GPUs cannot share evenly.

    Where the cores near the GPUs are too few, or lie across those of others, the GPUs
    are dealt over all cores.
    """
    count = len(hardware.gpus)
    if not count or (ranks % count and count % ranks):
        return []
    near_cores = [tuple(k for k in gpu.near if k in usable) for gpu in hardware.gpus]
    ranks_a_gpu = max(1, ranks // count)
    for near in (near_cores, [tuple(usable)] * count):
        by_core = sorted(range(count), key=lambda gpu: (near[gpu], gpu))
        sharing: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for bundle in _equal_slices(by_core, min(ranks, count)):
            cores = tuple(sorted({core for gpu in bundle for core in near[gpu]}))
            sharing.setdefault(cores, []).append(bundle)
        apart = max(Counter(chain(*sharing)).values(), default=1) == 1
        room = [_thread_count(hardware, c) >= len(b) * ranks_a_gpu for c, b in sharing.items()]
        if apart and all(room):
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
    """Return the places with their nearest NICs, the NICs evenly used."""
    everywhere = all(len(nic.near) == len(hardware.cores) for nic in hardware.nics)
    if not hardware.nics or (everywhere and len(hardware.nics) > 1):
        return [*places]  # their proximity to cores is not known
    used = [0] * len(hardware.nics)
    nics = []
    for levels in _nic_levels(places, hardware).T.tolist():
        nics.append(min(range(len(used)), key=lambda nic: (levels[nic], used[nic])))
        used[nics[-1]] += 1
    return [place._replace(nic=nic) for place, nic in zip(places, nics, strict=True)]


#: Number of ranks up to which all permutations are tried (6! = 720).
_FEW = 6


class NodeArrangement(NamedTuple):
    """A node's ranks and places, and the cost of assigning one to the other."""

    inside: Floats  # (k, k), weight between two ranks of the node, symmetric, 0 on the diagonal
    outside: Floats  # (k,), weight between each rank and those on other nodes
    # between, to_nic: (k, k), see `costs_between` and `costs_to_nics`
    between: Floats
    to_nic: Floats

    def cost(self, places: Ints) -> float:
        """Return the total copy cost with the ranks at these places, int64 (k,)."""
        pairs = float((self.inside * self.between[np.ix_(places, places)]).sum()) / 2
        return pairs + float(self.outside @ self.to_nic[places])

    def best_places(self) -> Ints:
        """Return the place of each rank, int64 (k,), at the lowest copy cost found.

        Never worse than ranks in turn; that where all are alike.
        """
        turn = np.arange(len(self.outside))
        if len(turn) <= _FEW:
            ways = np.array([*permutations(range(len(turn)))])
            pairs = self.inside * self.between[ways[:, :, None], ways[:, None, :]]
            costs = pairs.sum(axis=(1, 2)) / 2 + self.to_nic[ways] @ self.outside
            return np.asarray(ways[int(np.argmax(costs <= costs.min() * (1 + 1e-12)))])
        better = min(map(self._exchange_ranks, (turn, self._place_greedily())), key=self.cost)
        return turn if self.cost(turn) <= self.cost(better) * (1 + 1e-12) else better

    def _place_greedily(self) -> Ints:
        """Return places assigned to rank after rank, each the cheapest left.

        Next comes the rank that talks most to those placed already.
        """
        k = len(self.inside)
        places = np.full(k, -1)
        free, waiting = np.ones(k, bool), np.ones(k, bool)
        to_placed = 1e-9 * self.inside.sum(axis=1)
        for _ in range(k):
            rank = int(np.argmax(np.where(waiting, to_placed, -np.inf)))
            placed = np.flatnonzero(places >= 0)
            far = self.between[:, places[placed]] @ self.inside[placed, rank]
            place = int(np.argmin(np.where(free, far, np.inf)))
            places[rank], free[place], waiting[rank] = place, False, False
            to_placed += self.inside[rank]
        return places

    def _exchange_ranks(self, places: Ints) -> Ints:
        """Exchange the best pair of ranks until no exchange improves the cost."""
        places, inside = places.copy(), self.inside
        apart = self.between[np.ix_(places, places)]
        pays = inside @ apart  # cost of rank i at the place of rank j, with all others unchanged
        outside_gap = self.outside[:, None] - self.outside[None, :]
        for _ in range(10 * len(places)):
            paid, nic = np.diagonal(pays), self.to_nic[places]
            gain = paid[:, None] + paid[None, :] - pays - pays.T - 2 * inside * apart
            gain += outside_gap * (nic[:, None] - nic[None, :])
            i, j = divmod(int(np.argmax(gain)), len(places))
            if gain[i, j] <= 1e-9 * max(1e-30, float(np.abs(pays).max(initial=0.0))):
                break
            pays += np.outer(inside[:, j] - inside[:, i], apart[i] - apart[j])
            pays[:, [i, j]] = pays[:, [j, i]]
            apart[[i, j]] = apart[[j, i]]
            apart[:, [i, j]] = apart[:, [j, i]]
            places[[i, j]] = places[[j, i]]
        return places


class Arranged(NamedTuple):
    """An order with its ranks arranged within the nodes."""

    order: Placement
    places: dict[int, list[Place]]  # those of a node, by its count of ranks
    # cost, before: the sum that was made small, weight times seconds a GB: now, and in the order
    # given
    cost: float
    before: float

    def words(self) -> str:
        """Return the benefit of the arrangement in words."""
        if self.cost < 0.995 * self.before:
            return f"copies cost {self.cost / self.before:.2f} x what they cost with ranks in order"
        return "ranks stay in order: no cheaper arrangement was found"


def arrange_inside(
    order: Placement, pattern: Pattern, hardware: NodeHardware, alike: bool = False
) -> Arranged:
    """Rearrange ranks within each node; every rank stays on its node.

    `pattern`: fitted to the order's slots. `hardware`: of every node. `alike`: True where the
    ranks of every node have to take the places in the same turn, as they do for a launcher that
    counts them by rank: then one arrangement is made for the sum of all nodes' traffic. Only
    where all nodes have equally many ranks.
    """
    places_of = {ranks: places_on(hardware, ranks) for ranks in np.unique(order.counts).tolist()}
    costs = {
        ranks: (costs_between(places, hardware), costs_to_nics(places, hardware))
        for ranks, places in places_of.items()
    }
    by_rank = order.with_ranks_on(order.node_of_rank) if alike else order
    nodes = [*_traffic_of_nodes(by_rank, pattern)]
    if alike:
        _, inside, outside = (sum(column) for column in zip(*nodes, strict=True))
        common = NodeArrangement(inside, outside, *costs[len(outside)]).best_places()
    slots = order.slot_of_rank.copy()
    known: dict[bytes, Ints] = {}
    cost = before = 0.0
    for low, (members, inside, outside) in zip(order.first_slot.tolist(), nodes, strict=True):
        arrangement = NodeArrangement(inside, outside, *costs[len(members)])
        key = inside.tobytes() + outside.tobytes()
        if key not in known:
            known[key] = common if alike else arrangement.best_places()
        cost += arrangement.cost(known[key])
        before += arrangement.cost(np.arange(len(members)))
        slots[members] = low + known[key]
    return Arranged(order.with_order(slots, order.origin), places_of, cost, before)


def _traffic_of_nodes(order: Placement, pattern: Pattern) -> Iterator[tuple[Ints, Floats, Floats]]:
    """Yield each node's ranks by slot, the weights between them, and to other nodes."""
    first, counts, ranks = order.first_slot, order.counts, order.rank_at_slot
    if isinstance(pattern, Lines):  # too many edges to go through, and no need to
        degree_of_all = pattern.weight * sum(extent - 1 for extent in pattern.dims or ())
        for members in np.split(ranks, first[1:]):
            coords = np.stack(np.unravel_index(members, pattern.dims or ()))
            lines_apart = (coords[:, :, None] != coords[:, None, :]).sum(axis=0)
            inside = np.where(lines_apart == 1, pattern.weight, 0.0)
            yield members, inside, degree_of_all - inside.sum(axis=1)
        return
    node = order.node_of_rank
    place = order.slot_of_rank - first[node]
    begin = np.cumsum(counts**2) - counts**2  # of each node's square of weights
    weights, degree = np.zeros(int((counts**2).sum())), np.zeros(order.ranks)
    for block in pattern.edges():
        for ends in (block.source, block.target):
            degree += np.bincount(ends, block.bytes, len(degree))
        within = block.some(node[block.source] == node[block.target])
        a, b, at = within.source, within.target, node[within.source]
        np.add.at(weights, begin[at] + counts[at] * place[a] + place[b], within.bytes)
    for members, square in zip(
        np.split(ranks, first[1:]), np.split(weights, begin[1:]), strict=True
    ):
        one_way = square.reshape(len(members), -1)
        inside = one_way + one_way.T
        yield members, inside, degree[members] - inside.sum(axis=1)
