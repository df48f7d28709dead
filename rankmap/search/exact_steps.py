# SPDX-License-Identifier: Apache-2.0
"""Few free nodes, non-adaptive routing: all single moves are evaluated by a route table.

A move puts a free node in the place of a chosen one, or exchanges the nodes of two places. Loads
are linear in the bytes, so what each move changes on every link are products of small arrays, and
a round over hundreds of moves takes as long as a few judgements. Where all placements are few,
all of them are worked out instead, and none is better than the best of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nidmap.placement.network import Demand, loads_of_each
from nidmap.placement.network.routes import walk_paths
from nidmap.placement.planners import Request
from nidmap.placement.support.array_types import Array, Floats, Ints, Mask
from nidmap.placement.support.arrays import product
from nidmap.placement.support.quantities import GB
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.search.budget import Budget
from nidmap.rankmap.search.cost import Candidate, TimeCost, p_norm
from nidmap.rankmap.search.priced_steps import ROUNDING, bound_longest, move_nodes, stepped_name

#: Free nodes at most, next hops of all routers towards them, figures in the table of their routes.
NODES, NEXT_HOPS, FIGURES = 256, 1 << 21, 1 << 24

#: Free nodes at most where a pair's bytes are shared by several paths.
SHARING_NODES = 24

#: Links with more than this share of the busiest's seconds are considered when comparing moves.
BUSY = 0.5

#: Exchanges whose moves are worked out in the time of a judgement.
ROUND = 2

#: Figures up to which all placements are worked out, and placements that are at once.
EVERY, AT_ONCE = 1 << 26, 1 << 10

#: Number of moves per round that are evaluated on all links, the most promising first.
TRIED = 8


def route_table(model: Predictor, nodes: Ints) -> Array | None:
    """Return the load of a byte between each two of some nodes on every link.

    `model`: whose routers do not adapt; what other jobs leave of the links counts. `nodes` (f,).
    Returns (f, f, links): seconds, of the links that any of them uses; None where the table would
    be too large.
    """
    walked = _walk_pairs(model, nodes) if model.single_path else _share_pairs(model, nodes)
    if walked is None:
        return None
    count, (pair, channel, share) = len(nodes), walked
    used, link = np.unique(channel, return_inverse=True)
    if count**2 * len(used) > FIGURES:
        return None
    table = np.zeros((count**2, len(used)), dtype=np.float32)
    left = model.left(model.place(nodes[:1])) or model.channels
    table[pair, link] = share / (left.bandwidth[used[link]] * GB)
    return table.reshape(count, count, -1)


def _walk_pairs(model: Predictor, nodes: Ints) -> tuple[Ints, Ints, Floats] | None:
    """Return each pair's number, a channel of its one path, and 1; None for too many nodes."""
    count, routers = len(nodes), int(model.machine.router.max()) + 1
    if count > NODES or count * routers > NEXT_HOPS:
        return None
    ends = np.repeat(nodes, count), np.tile(nodes, count)
    pair, channel = walk_paths(model.machine, *ends, model.routing)
    return pair, channel, np.ones(len(pair))


def _share_pairs(model: Predictor, nodes: Ints) -> tuple[Ints, Ints, Floats] | None:
    """Return each pair's number, a channel and its share of a byte; None for too many nodes."""
    if len(nodes) > SHARING_NODES or model.routing == "adaptive":
        return None
    pairs = [divmod(pair, len(nodes)) for pair in range(len(nodes) ** 2)]
    bytes_of = [Traffic.of(nodes[[a]], nodes[[b]], 1.0 * (a != b)) for a, b in pairs]
    demands = [Demand.of(model.machine, traffic) for traffic in bytes_of]
    loads = list(loads_of_each(model.machine, demands, model.routing))
    pair = np.repeat(np.arange(len(pairs)), [len(loads_of_step.used) for loads_of_step in loads])
    channel, share = (
        np.concatenate([getattr(loads_of_step, part) for loads_of_step in loads])
        for part in ("used", "carried")
    )
    return pair, channel, share


class _Sent(NamedTuple):
    """An exchange."""

    bytes: Array  # (n, n), from place to place
    own_s: float  # seconds of the busiest node's own link, whatever the nodes
    times: float  # number of steps that it represents


class ExactSteps:
    """Descends from each of several placements by the best of all single moves.

    `request`: which rows may, and which must, be chosen. `swaps`: whether exchanging two places
    can change anything. `budget`: a round counts as a judgement, one over many exchanges as some.
    `works`: whether there is a table of routes that is small enough. `complete`: whether all
    placements of what was descended from last have been worked out.
    """

    def __init__(self, cost: TimeCost, request: Request, swaps: bool, budget: Budget) -> None:
        self.cost, self.swaps, self.budget = cost, swaps, budget
        self.nodes = np.flatnonzero(request.free)
        self.must = np.isin(self.nodes, request.include)
        self.table = route_table(cost.model, self.nodes) if request.count > 1 else None
        self.works, self.complete = self.table is not None, False
        self._every: set[bytes] = set()

    def descend(self, start: Candidate) -> Candidate | None:
        """Return a local optimum under single moves; None if nothing may be tried."""
        if self.table is None or not self.budget.spend(start.nodes):
            return None
        exchanges = self._exchanges(start)
        places = np.searchsorted(self.nodes, start.placement.rows)
        self.complete = self._count_figures(exchanges, len(places)) <= EVERY
        if self.complete:
            return self._best_of_all(start, exchanges)
        places = self._descend(exchanges, places)
        return self._moved(start, places)

    def _moved(self, start: Candidate, places: Ints) -> Candidate:
        """Return a candidate on other nodes."""
        placement = start.placement.on_nodes(self.nodes[places])
        cost = self.cost.of(placement)
        return replace(start, placement=placement, cost=cost, nodes=stepped_name(start.nodes))

    def _descend(self, exchanges: list[_Sent], places: Ints) -> Ints:
        """Return places that no single move improves."""
        assert self.table is not None
        now, busy = self._seconds(exchanges, places)
        grown = bool(busy.any())
        while grown and self.budget.spend(judgements=max(1, len(exchanges) // ROUND)):
            costs, moves = self._after_moves(exchanges, places, self.table[:, :, busy])
            known, grown = busy, False
            for k in np.argsort(costs, kind="stable")[:TRIED].tolist():
                if not costs[k] < now * (1 - ROUNDING):
                    break
                after = move_nodes(places, [moves[k]])
                seconds, busy_after = self._seconds(exchanges, after)
                busy = busy | busy_after
                if seconds < now * (1 - ROUNDING):
                    now, places, grown = seconds, after, True
                    break
            grown = grown or bool((busy & ~known).any())
        return places

    def _count_figures(self, exchanges: list[_Sent], count: int) -> float:
        """Return how many link seconds are added up to evaluate all placements."""
        assert self.table is not None
        free, must = len(self.nodes), int(self.must.sum())
        placements = math.comb(free - must, count - must)
        placements *= math.factorial(count) if self.swaps else 1
        flows = sum(int(np.count_nonzero(sent.bytes)) for sent in exchanges)
        return float(placements * flows * self.table.shape[2])

    def _best_of_all(self, start: Candidate, exchanges: list[_Sent]) -> Candidate | None:
        """Return the best of all placements; None if ranks are grouped as once before."""
        assert self.table is not None
        node = start.placement.node_of_rank
        _, first, inverse = np.unique(node, return_index=True, return_inverse=True)
        together = np.argsort(np.argsort(first))[inverse].tobytes()
        if together in self._every:
            return None
        self._every.add(together)
        best_s, best = math.inf, np.zeros(0, dtype=np.int64)
        walk = self._placements(len(start.placement.rows))
        while chunk := list(itertools.islice(walk, AT_ONCE)):
            places, seconds = np.array(chunk), np.zeros(len(chunk))
            for sent, own_s, times in exchanges:
                source, target = np.nonzero(sent)
                load = np.zeros((len(chunk), self.table.shape[2]), dtype=np.float32)
                for a, b, size in zip(source, target, sent[source, target], strict=True):
                    load += size * self.table[places[:, a], places[:, b]]
                seconds += times * np.maximum(own_s, load.max(axis=1, initial=0.0))
            if seconds.min() < best_s:
                best_s, best = float(seconds.min()), places[int(seconds.argmin())]
        return self._moved(start, best)

    def _placements(self, count: int) -> Iterator[tuple[int, ...]]:
        """Yield all choices of nodes with the required ones, in all orders if these matter."""
        must = tuple(np.flatnonzero(self.must).tolist())
        others = np.flatnonzero(~self.must).tolist()
        for some in itertools.combinations(others, count - len(must)):
            yield from itertools.permutations(must + some) if self.swaps else [must + some]

    def _exchanges(self, start: Candidate) -> list[_Sent]:
        """Return the exchanges for which links are the longest bottleneck, as bytes by places."""
        exchanges = []
        for exchange in bound_longest(self.cost.exchanges(start.placement)):
            flows, loads = exchange.flows(), exchange.loads
            size = len(start.placement.rows)
            sent = np.zeros((size, size), dtype=np.float32)
            np.add.at(sent, (flows.source, flows.target), flows.bytes)
            own_s = self.cost.model.own_link_s(loads, start.placement.rows)
            exchanges.append(_Sent(sent, own_s, exchange.times))
        return exchanges

    def _seconds(self, exchanges: list[_Sent], places: Ints) -> tuple[float, Mask]:
        """Return the seconds of all links, the busiest weighted most, and which are busy."""
        assert self.table is not None
        seconds, busy = 0.0, np.zeros(self.table.shape[2], dtype=bool)
        for sent, own_s, times in exchanges:
            source, target = np.nonzero(sent)
            ways = self.table[places[source], places[target]]
            load = sent[source, target] @ ways
            seconds += times * max(own_s, float(p_norm(load)))
            busy |= load > BUSY * load.max(initial=0.0)
        return seconds, busy

    def _after_moves(
        self, exchanges: list[_Sent], places: Ints, table: Array
    ) -> tuple[Floats, list[tuple[int, int]]]:
        """Return the seconds of some links after each move, and the moves."""
        count, links = len(places), table.shape[2]
        spare = np.setdiff1d(np.arange(len(self.nodes)), places)
        leaving = np.flatnonzero(~self.must[places])
        i, j = np.triu_indices(count if self.swaps else 0, 1)
        both_ways = table[places[i], places[j]] + table[places[j], places[i]]
        inward = table[places].reshape(count, -1)
        outward = table[:, places].transpose(1, 0, 2).reshape(count, -1)
        replaced, swapped = np.zeros((len(leaving), len(spare))), np.zeros(len(i))
        for sent, own_s, times in exchanges:
            # The load of each place on every link from any node, with all others fixed.
            load_at = product(sent, outward) + product(sent.T, inward)
            load_at = load_at.reshape(count, len(self.nodes), links)
            home = load_at[np.arange(count), places]  # where it is
            load = home.sum(axis=0) / 2  # each flow is its sender's and its receiver's
            without = (load - home)[leaving][:, None]
            replaced += times * np.maximum(own_s, p_norm(without + load_at[np.ix_(leaving, spare)]))
            mutual = (sent + sent.T)[i, j][:, None] * both_ways
            exchanged = (
                load - home[i] - home[j] + load_at[i, places[j]] + load_at[j, places[i]] + mutual
            )
            swapped += times * np.maximum(own_s, p_norm(exchanged))
        moves = [(int(place), int(node)) for place in leaving for node in spare]
        moves += list(zip(i.tolist(), (-1 - j).tolist(), strict=True))
        return np.concatenate([replaced.ravel(), swapped]), moves
