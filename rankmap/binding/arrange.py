"""Who sits where inside each node: ranks that talk much close together, talkers near the NIC.

For the ranks of one node, on places p, the sum over pairs of weight times
`costs_between` their places and over ranks of what they send elsewhere times `costs_to_nics`
is made small: a quadratic assignment, of few ranks by trying all ways, else by steepest
exchanges of two ranks from the given order and from a greedy one. Which node a rank is
on never changes, so everything between nodes stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import numpy as np

from placement.hardware.model import NodeHardware
from placement.support.array_types import Array, Floats, Ints
from rankmap.binding.places import costs_between, costs_to_nics, places_on
from rankmap.pattern import Pattern
from rankmap.pattern.structured import Lines
from rankmap.placement import Placement

__all__ = ["Arranged", "arrange_inside", "best_seats", "seating_cost"]


#: Ranks of which all ways are tried: 720 of six.
_FEW = 6


class Arranged(NamedTuple):
    """An order with its ranks arranged inside the nodes.

    Attributes
    ----------
    order : Placement
    cost, before : float
        The sum that was made small, weight times seconds a GB: now, and in the order given.
    busiest, busiest_before : float
        The same of what one rank sends to others of its node, the longest of all ranks.
    """

    order: Placement
    cost: float
    before: float
    busiest: float
    busiest_before: float


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
    nodes = [*_traffic(order.with_ranks_on(order.node_of_rank) if alike else order, pattern)]
    if alike:
        inside = np.sum([weights[1] for weights in nodes], axis=0)
        outside = np.sum([weights[2] for weights in nodes], axis=0)
        common = best_seats(inside, outside, *costs[len(outside)])
    slots = order.slot_of_rank.copy()
    seen: dict[bytes, Ints] = {}
    total = before = busiest = busiest_before = 0.0
    for low, (members, inside, outside) in zip(order.first_slot.tolist(), nodes, strict=True):
        between, to_nic = costs[len(members)]
        key = inside.tobytes() + outside.tobytes()
        if key not in seen:
            seen[key] = common if alike else best_seats(inside, outside, between, to_nic)
        turn = np.arange(len(members))
        total += seating_cost(seen[key], inside, outside, between, to_nic)
        before += seating_cost(turn, inside, outside, between, to_nic)
        busiest = max(busiest, _longest(seen[key], inside, between))
        busiest_before = max(busiest_before, _longest(turn, inside, between))
        slots[members] = low + seen[key]
    return Arranged(order.with_order(slots, order.origin), total, before, busiest, busiest_before)


def _longest(seats: Ints, inside: Floats, between: Floats) -> float:
    """Return the weight times seconds a GB of the rank that sends longest inside its node."""
    return float((inside * between[np.ix_(seats, seats)]).sum(axis=1).max(initial=0.0))


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
        See `rankmap.binding.places`.
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
    starts = [turn, _greedy(inside, between)]
    seatings = [_exchange_ranks(start, inside, outside, between, to_nic) for start in starts]
    costs = [seating_cost(seats, inside, outside, between, to_nic) for seats in (*seatings, turn)]
    least = min(costs)
    return turn if costs[-1] <= least * (1 + 1e-12) else seatings[int(np.argmin(costs[:-1]))]


def _greedy(inside: Floats, between: Floats) -> Ints:
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


def _traffic(order: Placement, pattern: Pattern) -> Iterator[tuple[Ints, Floats, Floats]]:
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
