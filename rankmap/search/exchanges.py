# SPDX-License-Identifier: Apache-2.0
"""Exchanges: from a good placement on, nodes are exchanged with free ones and with each other.

Where every message has one path, loads are linear in the bytes: what every single exchange does to
the links that are nearly the busiest are products of small arrays. The best of them are made, many
at once and then fewer, as long as all links together get better, and the predictor judges where
that ends. Elsewhere, and where nodes differ in their ranks, exchanges drawn by lot are judged one
by one, and none is kept that loses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from heapq import nlargest
from typing import NamedTuple

import numpy as np

from nidmap.placement.network.routes import walk_paths
from nidmap.placement.placement import Placement
from nidmap.placement.planners import Request
from nidmap.placement.support.array_types import Array, Floats, Ints
from nidmap.placement.support.arrays import add_by_key, product, ragged_ranges
from nidmap.placement.support.quantities import GB
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import Candidate, TimeCost

#: Suffix of the name of nodes that exchanges have changed.
EXCHANGED = ", then exchanges"

#: Nodes of the largest job. Nodes whose paths to each other are looked up, the job's and free ones:
#: at least, and free ones of larger jobs.
MOST_NODES, NODES, SPARE_NODES = 256, 256, 64

#: How much the busiest link counts above others: of two links, one with nine
#: tenths of the other's load counts as a twelfth of it, one with half of it as nothing.
POWER = 24

#: Links with more than this share of the busiest's seconds are looked at when exchanges are
#: compared, and bytes' seconds on them between all nodes, at most.
BUSY, FIGURES = 0.5, 1 << 21

#: Exchanges among which those that are made at once are sought, and those that are tried singly.
MOVES, SINGLES = 1 << 12, 12

#: Exchanges that are tried by lot before another start, and how near free nodes are sought, in the
#: machine's order.
LOTS, NEAR = 48, 8

#: A descent has to win more than rounding.
ROUNDING = 1e-6


class Sent(NamedTuple):
    """What is sent at the same time: in a phase, or in a step of one."""

    bytes: Array  # (n, n), from place to place
    times: float  # how many steps it stands for
    own_s: float  # seconds of the busiest node's own link


class Paths(NamedTuple):
    """The links between some nodes."""

    nodes: Ints  # (N,), rows of the machine, ascending
    # (N * N + 1,), where the links of each pair begin in `link`: sender's index times N plus
    # receiver's
    first: Ints
    link: Ints  # (z,), links that messages pass
    gbs: Floats  # (links,)


class Exchanges:
    """Improves placements by exchanges.

    `request`: which nodes may, and which must, be chosen. `swaps`: whether it changes anything
    that two places exchange their nodes. `allows`: whether a placement may be an answer.
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
        self.free, self.must = np.flatnonzero(request.free), request.include
        self.rng = np.random.default_rng(request.seed)
        # Whether what exchanges do to each link can be added up
        self.adds_up = cost.model.single_path and request.count > 1

    def improve(self, start: Candidate, disturb: bool = False) -> Candidate:
        """Return what exchanges make of a candidate, or what a few by lot make of it before.

        Its cost is infinite where it is not below the candidate's.
        """
        name = start.nodes.removesuffix(EXCHANGED) + EXCHANGED
        if not self.adds_up or start.placement.ppn is None:
            return replace(self._try_by_lot(start), nodes=name)
        placement = start.placement
        paths = self.paths(placement.rows)
        sent = self.longest(placement, paths)
        if disturb:
            for _ in range(int(self.rng.integers(1, 4 + len(placement.rows) // 32))):
                placement = self._exchanged_by_lot(placement)
        placement = self._descend(placement, sent, paths)
        cost = self.cost.of(placement, start.cost * (1 - ROUNDING))
        return replace(start, nodes=name, placement=placement, cost=cost)

    def _try_by_lot(self, now: Candidate) -> Candidate:
        """Return a candidate after exchanges by lot, of which none made it slower."""
        for _ in range(LOTS):
            after = self._exchanged_by_lot(now.placement)
            if self.allows(after) and self.budget.spend("exchanges"):
                cost = self.cost.of(after, now.cost * (1 + ROUNDING))
                if cost < np.inf:
                    now = replace(now, placement=after, cost=cost)
        return now

    def _exchanged_by_lot(self, placement: Placement) -> Placement:
        """Return a placement after one exchange."""
        rng, rows = self.rng, placement.rows.copy()
        a, b = rng.integers(len(rows), size=2).tolist()
        if placement.ppn is None:
            return self._ranks_exchanged(placement)
        spare = np.setdiff1d(self.free, rows)
        if len(spare) and rows[a] not in self.must and not (self.swaps and rng.random() < 0.5):
            near = int(np.searchsorted(spare, rows[b]) + rng.integers(-NEAR, NEAR))
            rows[a] = spare[near % len(spare)] if rng.random() < 0.5 else rng.choice(spare)
        else:
            rows[[a, b]] = rows[[b, a]]
        return placement.on_nodes(rows)

    def _ranks_exchanged(self, placement: Placement) -> Placement:
        """Return a placement after an exchange of two ranks, or of all of two nodes' ranks."""
        node, counts = placement.node_of_rank.copy(), placement.counts
        a, b = self.rng.integers(placement.ranks, size=2).tolist()
        on_a, on_b = node == node[a], node == node[b]
        if self.rng.random() < 0.5:
            node[[a, b]] = node[[b, a]]
        elif counts[node[a]] == counts[node[b]]:
            node[on_a], node[on_b] = node[b], node[a]
        return placement.with_ranks_on(node)

    def _descend(self, placement: Placement, sent: list[Sent], paths: Paths) -> Placement:
        """Return a placement of which no exchange that was tried relieves the busiest links."""
        most, better = max(1, len(placement.rows) // 4), True
        while better and self.budget.spend("exchanges"):
            at, better = np.searchsorted(paths.nodes, placement.rows), False
            before, saving = self.savings(at, sent, paths)
            for batch in _batches(saving, at, most):
                after = _exchanged(at, batch)
                if _norm(after, sent, paths) < before * (1 - ROUNDING):
                    placed = placement.on_nodes(paths.nodes[after])
                    if self.allows(placed):
                        placement, better, most = placed, True, 2 * len(batch)
                        break
        return placement

    def savings(self, at: Ints, sent: list[Sent], paths: Paths) -> tuple[float, Floats]:
        """Return the norm, and what it saves to exchange each place's node for each, (n, N).

        The savings are of the links that are nearly the busiest.
        """
        count, n = len(paths.nodes), len(at)
        loads = [_loads(at, exchange, paths) for exchange in sent]
        share = np.max([load / max(load.max(initial=0.0), 1e-300) for load in loads], axis=0)
        most = max(1, FIGURES // count**2)
        busy = np.argsort(-share, kind="stable")[: min(most, int((share > BUSY).sum()))]
        ways = _ways(busy, paths)
        outward = ways[:, at].transpose(1, 0, 2).reshape(n, -1)
        inward = ways[at].reshape(n, -1)
        there_and_back = ways[at[:, None], at] + ways[at, at[:, None]]
        every, norm = np.arange(n), 0.0
        before, after, both = 0.0, np.zeros((n, count)), np.zeros((n, n))
        for (size, times, own_s), load in zip(sent, loads, strict=True):
            norm += times * max(own_s, float(p_norm(load)))
            before += times * max(own_s, float(p_norm(load[busy])))
            # The load of each place on every link from any node, with all others fixed
            here = product(size, outward) + product(size.T, inward)
            here = here.reshape(n, count, -1)
            home = here[every, at]
            left = load[busy] - home
            after += times * np.maximum(own_s, p_norm(left[:, None] + here))
            if self.swaps:
                changed = left[:, None] - home + here[:, at] + here[:, at].transpose(1, 0, 2)
                changed += (size + size.T)[:, :, None] * there_and_back
                both += times * np.maximum(own_s, p_norm(changed))
        saving = before - after
        saving[np.isin(paths.nodes[at], self.must)] = -np.inf
        saving[:, at] = before - both if self.swaps else -np.inf
        saving[every, at] = -np.inf
        return norm, saving

    def paths(self, rows: Ints) -> Paths:
        """Return the paths between a job's nodes and some free ones."""
        model = self.cost.model
        nodes = self._offers(rows)
        left = model.left(model.place(rows)) or model.channels
        pair, channel = walk_paths(
            model.machine, np.repeat(nodes, len(nodes)), np.tile(nodes, len(nodes)), model.routing
        )
        used, link = np.unique(channel[np.argsort(pair, kind="stable")], return_inverse=True)
        first = np.concatenate([[0], np.cumsum(np.bincount(pair, minlength=len(nodes) ** 2))])
        return Paths(nodes, first, link, left.bandwidth[used])

    def _offers(self, rows: Ints) -> Ints:
        """Return the job's nodes and free ones: half of them near in the machine's order."""
        room = max(NODES - len(rows), SPARE_NODES)
        spare = np.setdiff1d(self.free, rows)
        if room < len(spare):
            near = np.searchsorted(spare, rows)[:, None] + np.arange(-NEAR, NEAR)
            near = np.unique(np.clip(near, 0, len(spare) - 1))
            near = self.rng.permutation(near)[: room // 2]
            others = np.delete(np.arange(len(spare)), near)
            drawn = self.rng.permutation(others)[: room - len(near)]
            spare = spare[np.concatenate([near, drawn])]
        return np.union1d(rows, spare)

    def longest(self, placement: Placement, paths: Paths) -> list[Sent]:
        """Return what is sent in the exchanges that links bind longest."""
        at = np.searchsorted(paths.nodes, placement.rows)

        def seconds(sent: Sent) -> float:
            return sent.times * float(_loads(at, sent, paths).max(initial=0.0))

        return nlargest(LIMITS.exchanges, self._every_sent(placement), seconds)

    def _every_sent(self, placement: Placement) -> Iterator[Sent]:
        """Yield what is sent in every exchange."""
        model, n = self.cost.model, len(placement.rows)
        for phase in model.phases(placement):
            steps = [(phase.traffic, 1.0)] if phase.steps is None else phase.steps()
            for traffic, times in steps:
                size, flows = np.zeros((n, n), dtype=np.float32), traffic.listed()
                np.add.at(size, (flows.source, flows.target), flows.bytes)
                own_s = model.own_s(*flows.sent_and_received(n), placement.rows)
                yield Sent(size, times, own_s)


def _loads(at: Ints, sent: Sent, paths: Paths) -> Floats:
    """Return the seconds of every link, (links,)."""
    source, target = np.nonzero(sent.bytes)
    pair = at[source] * len(paths.nodes) + at[target]
    flow, passed = ragged_ranges(paths.first[pair], paths.first[pair + 1] - paths.first[pair])
    load = add_by_key(paths.link[passed], sent.bytes[source, target][flow], len(paths.gbs))
    return np.asarray(load / (paths.gbs * GB))


def _ways(links: Ints, paths: Paths) -> Array:
    """Return the seconds of a byte from each node to each on some links, (N, N, links)."""
    count, turn = len(paths.nodes), np.full(len(paths.gbs), -1)
    turn[links] = np.arange(len(links))
    passed = np.flatnonzero(turn[paths.link] >= 0)
    link = paths.link[passed]
    ways = np.zeros((count * count, len(links)), dtype=np.float32)
    pair = np.searchsorted(paths.first, passed, side="right") - 1
    ways[pair, turn[link]] = 1 / (paths.gbs[link] * GB)
    return ways.reshape(count, count, -1)


def _norm(at: Ints, sent: list[Sent], paths: Paths) -> float:
    """Return the seconds of all exchanges, with every link counted a little."""
    return sum(x.times * max(x.own_s, float(p_norm(_loads(at, x, paths)))) for x in sent)


def p_norm(seconds: Floats) -> Floats:
    """Return the p-norm of times along the last axis, slightly more than the largest.

    The second largest counts a little, so that what relieves one of two equal links is seen to
    win.
    """
    most = np.maximum(seconds.max(axis=-1, initial=0.0), 1e-300)
    share = np.maximum(seconds / most[..., None], 0.0)  # rounding leaves differences below 0
    eighth = share**2
    eighth *= eighth
    eighth *= eighth
    return np.asarray(most * (eighth * eighth * eighth).sum(axis=-1) ** (1 / POWER))


def _batches(saving: Floats, at: Ints, most: int) -> Iterator[list[tuple[int, int]]]:
    """Yield exchanges of a place and a node: many at once, then fewer, then the best singly."""
    count = min(saving.size, MOVES)
    best = np.argpartition(-saving, count - 1, axis=None)[:count]
    best = best[np.argsort(-saving.ravel()[best], kind="stable")]
    best = best[saving.ravel()[best] > 0]
    moves = list(zip(*(part.tolist() for part in np.divmod(best, saving.shape[1])), strict=True))
    used: set[int] = set()
    apart = []
    for place, node in moves:
        if used.isdisjoint((int(at[place]), node)):
            used |= {int(at[place]), node}
            apart.append((place, node))
    width = min(len(apart), most)
    while width:
        yield apart[:width]
        width //= 4
    yield from ([move] for move in moves[1:SINGLES])


def _exchanged(at: Ints, moves: list[tuple[int, int]]) -> Ints:
    """Return the nodes of all places after some exchanges."""
    after = at.copy()
    for place, node in moves:
        after[after == node] = after[place]
        after[place] = node
    return after
