# SPDX-License-Identifier: Apache-2.0
"""Many free nodes: moves are chosen by the traffic that feeds the bottleneck links.

Each round puts a price on every link, high on those that are nearly the
busiest (the gradient of `nidmap.rankmap.search.cost.p_norm`). Every place then has a
bill, what its traffic pays for the links it takes, and every free node what
it would pay there. The places with the largest savings change nodes, many at
once; the predictor judges what comes of it, and if it is no better, fewer do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from nidmap.placement.network import Loads, hops
from nidmap.placement.network.path_costs import PathCosts, path_costs
from nidmap.placement.placement import Placement
from nidmap.placement.planners import Request
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import product
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import POWER, Candidate, Exchange, Judged, TimeCost

Moves = list[tuple[int, int]]

#: Suffix of the name of nodes that moves have changed.
STEPPED = ", then steps"

#: Approximate number of the job's nodes near which free ones are sought.
NEAR = 8

#: Approximate number of products of bytes and costs per step.
PRODUCTS = 1 << 28

#: Number of moves evaluated singly in every round in which many at once gain nothing.
SINGLES = 12

#: A step has to win more than rounding.
ROUNDING = 1e-6


class _Bills:
    """The price that each place pays for the bytes it sends and receives in an exchange.

    `cost`: of a byte between nodes. `size`: number of places.
    """

    def __init__(self, cost: PathCosts, exchange: Exchange, size: int) -> None:
        flows = exchange.flows()
        self.cost, self.bytes = cost, np.zeros((size, size))
        np.add.at(self.bytes, (flows.source, flows.target), flows.bytes * exchange.times)

    def now(self, rows: Ints) -> Floats:
        """Return the bill of each place, float64 (n,)."""
        paid = self.bytes * self._costs(rows, rows)
        return np.asarray(paid.sum(axis=0) + paid.sum(axis=1))

    def bills(self, rows: Ints, places: Ints, nodes: Ints) -> Floats:
        """Return the bills of places on other nodes, with all others fixed, (places, nodes)."""
        sent = product(self.bytes[places], self._costs(nodes, rows).T)
        return sent + product(self.bytes[:, places].T, self._costs(rows, nodes))

    def _costs(self, a: Ints, b: Ints) -> Floats:
        costs = self.cost(a[:, None], b[None, :])
        return np.where(a[:, None] == b[None, :], 0.0, costs)


class PricedSteps:
    """Descends from each of several placements.

    `request`: which rows may, and which must, be chosen. `swaps`: whether exchanging two places
    can change anything. `allows`: returns whether a placement may be an answer.
    """

    def __init__(
        self,
        cost: TimeCost,
        request: Request,
        swaps: bool,
        budget: Budget,
        allows: Callable[[Placement], bool],
    ) -> None:
        self.cost, self.swaps, self.budget, self.allows = cost, swaps, budget, allows
        self.free, self.must = request.free, request.include
        self.rng = np.random.default_rng(request.seed)
        self._near: dict[str, Ints] = {}
        spare = int(request.free.sum()) - request.count
        has_room = request.count**2 * cost.model.machine.router.shape[1] ** 2 <= LIMITS.figures
        # False once the network has turned out to have no prices
        self.works = request.count > 1 and has_room and (swaps or spare > 0)

    def descend(self, start: Candidate) -> Candidate | None:
        """Return a candidate that no tried move improves; None if nothing may be tried."""
        if not self.works or not self.budget.spend(start.nodes):
            return None
        placement = start.placement
        judged, near = self.cost.judge(placement), self._free_near(start)
        most, still, turn = max(1, len(placement.rows) // 4), 0, 0
        while still < LIMITS.patience and self.budget.left:
            bills = list(self._bills(judged, len(placement.rows)))
            if not bills:
                break
            step = self._exchanged if self.swaps and turn % 2 else self._replaced
            batches = _shrinking_moves(list(step(bills, placement.rows, near, most)))
            turn += 1
            better = self._try_moves(placement, judged, batches)
            if better is None:
                still, most = still + 1, max(1, most // 2)
                continue
            placement, judged, width = better
            still, most = 0, max(1, min(2 * width, len(placement.rows) // 4))
        return replace(
            start, placement=placement, cost=judged.time, nodes=stepped_name(start.nodes)
        )

    def _try_moves(
        self, placement: Placement, judged: Judged, batches: Iterator[Moves]
    ) -> tuple[Placement, Judged, int] | None:
        """Return a better placement after some moves; None if there is none.

        A move is (place, row) for a free row, or (place, -1 - other place). Of several links that
        are equally full one move relieves one alone: what counts is the norm of all.
        """
        for batch in batches:
            after = placement.on_nodes(move_nodes(placement.rows, batch))
            if not self.allows(after):
                continue
            if not self.budget.spend():
                return None
            new = self.cost.judge(after)
            if new.soft < judged.soft * (1 - ROUNDING):
                return after, new, len(batch)
        return None

    def disturb(self, placement: Placement) -> Placement:
        """Return a copy of a placement after a few random moves."""
        rows, rng = placement.rows.copy(), self.rng
        stays = np.isin(rows, self.must)
        spare = rng.permutation(self._spare(rows)).tolist()
        for _ in range(int(rng.integers(1, 4 + len(rows) // 32))):
            place, other = rng.integers(len(rows), size=2).tolist()
            if spare and not stays[place] and (not self.swaps or rng.random() < 0.5):
                rows[place] = spare.pop()
            else:
                rows[[place, other]] = rows[[other, place]]
                stays[[place, other]] = stays[[other, place]]
        return placement.on_nodes(rows)

    def _spare(self, rows: Ints) -> Ints:
        spare = self.free.copy()
        spare[rows] = False
        return np.flatnonzero(spare)

    def _offers(self, rows: Ints, near: Ints, most: int) -> Ints:
        """Return free nodes as targets for places: some near the job, others random."""
        nodes, attachments = self._spare(rows), self.cost.model.machine.router.shape[1]
        lookups = 2 * len(rows) * attachments**2  # of each node, to and from all of the job's
        room = max(1, min(max(2 * most, LIMITS.offers), LIMITS.figures // lookups))
        if len(nodes) <= room:
            return nodes
        close = near[~np.isin(near, rows)][:room]
        drawn = self.rng.choice(close, min(len(close), room // 2), replace=False)
        return np.union1d(drawn, self.rng.choice(nodes, room - len(drawn), replace=False))

    def _free_near(self, start: Candidate) -> Ints:
        """Return free nodes by their distance from some of a start's nodes."""
        if start.nodes not in self._near:
            free, rows = np.flatnonzero(self.free), start.placement.rows
            router = self.cost.model.machine.router[:, 0].astype(np.int64)
            some = rows[:: max(1, len(rows) // NEAR)]
            far = np.zeros(len(free))
            for node in some.tolist():
                ends = router[free], np.full(len(free), router[node])
                far += hops(self.cost.model.machine, *ends, self.cost.model.routing).sum(axis=1)
            order = np.argsort(far, kind="stable")[: 4 * LIMITS.offers + len(rows)]
            self._near[start.nodes] = free[order]
        return self._near[start.nodes]

    def _bills(self, judged: Judged, size: int) -> Iterator[_Bills]:
        """Yield the exchanges for which links are the longest bottleneck, with prices."""
        for exchange in bound_longest(judged.exchanges):
            loads, most = exchange.loads, _busiest_link_s(exchange.loads)
            if not most:
                return
            price = _price_channels(loads.seconds() / most, loads)
            costs = path_costs(self.cost.model.machine, price)
            if costs is None:
                self.works = False
                return
            yield _Bills(costs, exchange, size)

    def _replaced(
        self, billed: list[_Bills], rows: Ints, near: Ints, most: int
    ) -> Iterator[tuple[int, int]]:
        """Yield places that move to a free node, with the node, the largest saving first."""
        now = _sum_bills(exchange.now(rows) for exchange in billed)
        movable = ~np.isin(rows, self.must)
        rank = np.argsort(-np.where(movable, now, -np.inf), kind="stable")
        most = min(most, _affordable_places(len(billed) * len(rows) * LIMITS.offers))
        places = rank[: min(most, int(movable.sum()))]
        if len(places) and self.free.sum() > len(rows):
            nodes = self._offers(rows, near, most)
            bills = _sum_bills(exchange.bills(rows, places, nodes) for exchange in billed)
            yield from _match_savings(now[places][:, None] - bills, places, nodes)

    def _exchanged(
        self, billed: list[_Bills], rows: Ints, near: Ints, most: int
    ) -> Iterator[tuple[int, int]]:
        """Yield pairs of places that exchange their nodes, the largest saving first."""
        now = _sum_bills(exchange.now(rows) for exchange in billed)
        count = _affordable_places(len(billed) * len(rows) ** 2)
        places, every = np.argsort(-now, kind="stable")[: min(most, count)], np.arange(len(rows))
        gone = _sum_bills(exchange.bills(rows, places, rows) for exchange in billed)
        come = _sum_bills(exchange.bills(rows, every, rows[places]) for exchange in billed)
        saving = now[places][:, None] + now[None, :] - gone - come.T
        saving[np.arange(len(places)), places] = -np.inf
        used: set[int] = set()
        for flat in np.argsort(-saving, axis=None, kind="stable")[: 8 * len(rows)].tolist():
            i, j = int(places[flat // len(rows)]), flat % len(rows)
            if saving.flat[flat] <= 0:
                return
            if i not in used and j not in used:
                used |= {i, j}
                yield i, -1 - j


def _affordable_places(products: int) -> int:
    """Return how many places can be considered per step, given the products for each."""
    return max(1, PRODUCTS // max(1, products))


def _sum_bills(parts: Iterator[Floats]) -> Floats:
    """Return the sum of at least one array."""
    return np.asarray(sum(parts))


def move_nodes(rows: Ints, moves: Moves) -> Ints:
    """Return the nodes of all places after some moves.

    `rows` (n,). `moves`: a place and its new node, or -1 - another place to exchange nodes with.
    """
    after = rows.copy()
    for place, to in moves:
        if to >= 0:
            after[place] = to
        else:
            after[place], after[-1 - to] = after[-1 - to], after[place]
    return after


def stepped_name(nodes: str) -> str:
    """Return the name of nodes that moves have changed."""
    return nodes if nodes.endswith(STEPPED) else nodes + STEPPED


def bound_longest(exchanges: Iterable[Exchange]) -> list[Exchange]:
    """Return the exchanges with the longest link bottleneck, at most `LIMITS.exchanges`."""

    def seconds(exchange: Exchange) -> float:
        return exchange.times * _busiest_link_s(exchange.loads)

    return sorted(exchanges, key=seconds, reverse=True)[: LIMITS.exchanges]


def _busiest_link_s(loads: Loads) -> float:
    """Return the seconds of the busiest link; 0 if nodes' own links take longer."""
    most = float(loads.used_seconds().max(initial=0.0))
    ends = [loads.nodes(kind).max(initial=0.0) for kind in ("injection", "ejection")]
    return most if most >= float(max(ends)) * (1 - ROUNDING) else 0.0


def _price_channels(share: Floats, loads: Loads) -> Floats:
    """Return the effect of one more byte per channel on the norm of the times, in ns."""
    full = np.flatnonzero(share > 0.5)
    steep, gbs = share[full] ** (POWER - 1), loads.channels.bandwidth[full]
    norm = float((share[full] * steep).sum()) ** (1 - 1 / POWER)
    out = np.zeros(len(share))
    out[full] = np.where(np.isfinite(gbs), steep / gbs, 0.0) / norm
    return out


def _match_savings(saving: Floats, places: Ints, nodes: Ints) -> Iterator[tuple[int, int]]:
    """Yield (place, node) by decreasing positive savings, each place and node once."""
    left, taken = set(range(len(places))), set()
    order = np.argsort(-saving, axis=None, kind="stable")
    width = saving.shape[1]
    for flat in order[: 64 * max(saving.shape)].tolist():
        i, j = divmod(flat, width)
        if saving[i, j] <= 0 or not left:
            return
        if i in left and j not in taken:
            left.remove(i)
            taken.add(j)
            yield int(places[i]), int(nodes[j])


def _shrinking_moves(moves: Moves) -> Iterator[Moves]:
    """Yield all moves, then the first quarter of them and so on, then single ones."""
    width = len(moves)
    while width:
        yield moves[:width]
        width //= 4
    yield from ([move] for move in moves[1:SINGLES])
