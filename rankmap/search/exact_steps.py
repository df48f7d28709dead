# SPDX-License-Identifier: Apache-2.0
"""Few free nodes, single paths: every single move is worked out from a table of all routes.

A move puts a free node in the place of a chosen one, or exchanges the nodes of two places. Loads
are linear in the bytes, so what each move changes on every link are products of small arrays, and
a round over hundreds of moves takes as long as a few judgements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nidmap.placement.network.routes import walk_paths
from nidmap.placement.planners import Request
from nidmap.placement.support.array_types import Array, Floats, Ints, Mask
from nidmap.placement.support.arrays import product
from nidmap.placement.support.quantities import GB
from nidmap.rankmap.predict import Predictor
from nidmap.rankmap.search.budget import Budget
from nidmap.rankmap.search.cost import Candidate, TimeCost, p_norm
from nidmap.rankmap.search.priced_steps import ROUNDING, bound_longest, move_nodes, stepped_name

#: Free nodes at most, next hops of all routers towards them, figures in the table of their routes.
NODES, NEXT_HOPS, FIGURES = 256, 1 << 21, 1 << 24

#: Links with more than this share of the busiest's seconds are looked at when moves are compared.
BUSY = 0.5

#: Exchanges whose moves are worked out in the time of a judgement.
ROUND = 2

#: Moves of a round that are looked at on all links, those first that promise most.
TRIED = 8


def route_table(model: Predictor, nodes: Ints) -> Array | None:
    """Return what a byte from each of some nodes to each other takes of every link.

    Parameters
    ----------
    model : Predictor
        Whose routing has one path a pair; what other jobs leave of the links counts.
    nodes : int64 (f,)

    Returns
    -------
    float32 (f, f, links) or None
        Seconds, of the links that any of them uses; None where the table would be too large.

    Examples
    --------
    >>> import nidmap
    >>> from nidmap.rankmap.predict import Job
    >>> model = Predictor(nidmap.load_machine("torus:4,bw=1"), Job("alltoall"))
    >>> (route_table(model, np.array([0, 1, 3])) > 0).sum(axis=2).tolist()
    [[0, 1, 1], [1, 0, 2], [1, 2, 0]]
    """
    count, routers = len(nodes), int(model.machine.router.max()) + 1
    if count > NODES or count * routers > NEXT_HOPS:
        return None
    pair, channel = walk_paths(
        model.machine, np.repeat(nodes, count), np.tile(nodes, count), model.routing
    )
    used, link = np.unique(channel, return_inverse=True)
    if count**2 * len(used) > FIGURES:
        return None
    table = np.zeros((count**2, len(used)), dtype=np.float32)
    left = model.left(model.place(nodes[:1])) or model.channels
    table[pair, link] = 1 / (left.bandwidth[used[link]] * GB)
    return table.reshape(count, count, -1)


class _Sent(NamedTuple):
    """An exchange.

    Attributes
    ----------
    bytes : float32 (n, n)
        From place to place.
    own_s : float
        Seconds of the busiest node's own link, whatever the nodes.
    times : float
        Steps that it stands for.
    """

    bytes: Array
    own_s: float
    times: float


class ExactSteps:
    """Descends from one placement after another by the best of all single moves.

    Parameters
    ----------
    cost : TimeCost
    request : Request
        Which rows may, and which must, be chosen.
    swaps : bool
        Whether exchanging two places can change anything.
    budget : Budget
        A round counts as a judgement, one over many exchanges as some.

    Attributes
    ----------
    works : bool
        Whether the table of routes is small enough, and each pair has one path.
    """

    def __init__(self, cost: TimeCost, request: Request, swaps: bool, budget: Budget) -> None:
        self.cost, self.swaps, self.budget = cost, swaps, budget
        self.nodes = np.flatnonzero(request.free)
        self.must = np.isin(self.nodes, request.include)
        single = cost.model.single_path and request.count > 1
        self.table = route_table(cost.model, self.nodes) if single else None
        self.works = self.table is not None

    def descend(self, start: Candidate) -> Candidate | None:
        """Return what no single move makes better any more; None where nothing may be tried."""
        if self.table is None or not self.budget.spend(start.nodes):
            return None
        exchanges = self._exchanges(start)
        places = np.searchsorted(self.nodes, start.placement.rows)
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
        placement = start.placement.on_nodes(self.nodes[places])
        cost = self.cost.of(placement)
        return replace(start, placement=placement, cost=cost, nodes=stepped_name(start.nodes))

    def _exchanges(self, start: Candidate) -> list[_Sent]:
        """Return the exchanges that links bind longest, as bytes from place to place."""
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
        """Return the seconds of all links, the busiest counted most, and which links are busy."""
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
            # What each place puts on every link on any node, the others where they are.
            on = product(sent, outward) + product(sent.T, inward)
            on = on.reshape(count, len(self.nodes), links)
            home = on[np.arange(count), places]  # where it is
            load = home.sum(axis=0) / 2  # each flow is its sender's and its receiver's
            without = (load - home)[leaving][:, None]
            replaced += times * np.maximum(own_s, p_norm(without + on[np.ix_(leaving, spare)]))
            mutual = (sent + sent.T)[i, j][:, None] * both_ways
            exchanged = load - home[i] - home[j] + on[i, places[j]] + on[j, places[i]] + mutual
            swapped += times * np.maximum(own_s, p_norm(exchanged))
        moves = [(int(place), int(node)) for place in leaving for node in spare]
        moves += list(zip(i.tolist(), (-1 - j).tolist(), strict=True))
        return np.concatenate([replaced.ravel(), swapped]), moves
