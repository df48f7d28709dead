"""Steps from a placement: a place takes a free node, or two places exchange theirs.

Every link has a price: what a byte more on it adds to the predicted time (the
gradient of `rankmap.joint.judge.norm`, and what a hop costs). So every place
has a bill, what its traffic pays for the links it takes, and every other node
one that it would pay there. The steps that save most are taken, many at once;
the predictor judges what comes of it, and if it is no better, fewer are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from placement.network.path_costs import path_costs
from rankmap.joint import work
from rankmap.joint.budget import TUNING
from rankmap.joint.judge import POWER, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement.network.path_costs import PathCosts
    from placement.support.array_types import Floats, Ints, Mask
    from rankmap.joint.budget import Budget
    from rankmap.joint.judge import Exchange, Judge, Score

    Bills: TypeAlias = "_Listed | _Alike"

    #: Own place, partner's place and bytes, in both directions.
    Way = tuple[Ints, Ints, Floats]
    Ways = tuple[Way, Way]

__all__ = ["Steps"]


class _Listed:
    """Bills of an exchange whose messages are listed by pairs of places."""

    def __init__(self, cost: PathCosts, ways: Ways) -> None:
        self.cost, self.ways, self.flows = cost, ways, len(ways[0][0])

    def now(self, rows: Ints) -> Floats:
        """Return the bill of each place, float64 (n,)."""
        source, target, weight = self.ways[0]
        paid = weight * self.cost(rows[source], rows[target])
        sent = np.bincount(source, paid, minlength=len(rows))
        return np.asarray(sent + np.bincount(target, paid, minlength=len(rows)))

    def figures(self, places: int, rows: int) -> float:
        """Return how many costs the bills of so many places take on one node, about."""
        return 1 + places * 2 * self.flows / rows

    def bills(self, rows: Ints, places: Ints, nodes: Ints) -> Floats:
        """Return the bill of places on other nodes, all others where they are, (places, nodes)."""
        out = np.zeros((len(places), len(nodes)))
        for leaving, (ends, others, weight) in zip((True, False), self.ways, strict=True):
            low, high = np.searchsorted(ends, places), np.searchsorted(ends, places + 1)
            many = high - low
            busy = np.flatnonzero(many)
            if not len(busy):
                continue
            first = np.cumsum(many[busy]) - many[busy]
            entry = np.repeat(low[busy] - first, many[busy]) + np.arange(int(many.sum()))
            here, there = nodes[None, :], rows[others[entry]][:, None]
            each = self.cost(here, there) if leaving else self.cost(there, here)
            each = each * (weight[entry][:, None] * (here != there))
            out[busy] += np.add.reduceat(each, first, axis=0)
        return out


def _ways(one: Exchange) -> Ways:
    """Return what places send, by sender, and what they get, by receiver."""
    sums = one.flows()
    order = np.lexsort((sums.target, sums.source))
    source, target = sums.source[order], sums.target[order]
    weight = sums.weight[order] * one.times
    into = np.argsort(target, kind="stable")
    return (source, target, weight), (target[into], source[into], weight[into])


class _Alike:
    """Bills of an all-to-all of as many ranks a node: a node's bill is the same for every place.

    Nodes that are routed alike (those of a router) have the same bill.
    """

    def __init__(self, cost: PathCosts, one: Exchange, alike: Ints) -> None:
        rows = one.phase.job.rows
        _, first, many = np.unique(alike[rows], return_index=True, return_counts=True)
        self.cost, self.alike = cost, alike
        self.partners, self.many = rows[first], many.astype(np.float64)
        self.weight = one.phase.total.total / max(1, len(rows)) ** 2

    def now(self, rows: Ints) -> Floats:
        """Return the bill of each place, float64 (n,)."""
        return self._bill(rows)

    def figures(self, places: int, rows: int) -> float:
        """Return how many costs the bills take on one node."""
        return 2.0 * len(self.partners)

    def bills(self, rows: Ints, places: Ints, nodes: Ints) -> Floats:
        """Return the bill of places on other nodes, (places, nodes)."""
        return np.broadcast_to(self._bill(nodes), (len(places), len(nodes)))

    def _bill(self, nodes: Ints) -> Floats:
        _, first, kind = np.unique(self.alike[nodes], return_index=True, return_inverse=True)
        here, there = nodes[first][:, None], self.partners[None, :]
        both = self.cost(here, there) + self.cost(there, here)
        return np.asarray(self.weight * (both * self.many).sum(axis=1)[kind])


class _Offers(NamedTuple):
    """What steps save, as prices have it, the largest saving first.

    Attributes
    ----------
    place, to : int64 (k,)
        A place and its new node, or -1 - another place to exchange nodes with.
    saving : float64 (k,)
        In ns.
    """

    place: Ints
    to: Ints
    saving: Floats

    def apart(self) -> Ints:
        """Return which of the steps that save do not touch each other."""
        used: set[int] = set()
        taken: list[int] = []
        for k in range(int((self.saving > 0).sum())):
            both = {-1 - int(self.place[k]), int(self.to[k])}
            if not used & both:
                used |= both
                taken.append(k)
        return np.array(taken, dtype=np.int64)

    def taken(self, rows: Ints, some: Ints) -> Ints:
        """Return the nodes of all places after some steps that do not touch each other."""
        out = rows.copy()
        place, to = self.place[some], self.to[some]
        free, other = to >= 0, -1 - to[to < 0]
        out[place[free]] = to[free]
        out[place[~free]], out[other] = rows[other], rows[place[~free]]
        return out


class Steps:
    """Steps from one state after another.

    Parameters
    ----------
    judge : Judge
    free : bool (n,)
        Rows of the machine that may be chosen.
    must : int64 (k,)
        Rows that must be chosen.
    swaps : bool
        Whether exchanging two places can change anything.
    rng : numpy.random.Generator
    budget : Budget
        In the part that may be spent.
    """

    def __init__(
        self,
        judge: Judge,
        free: Mask,
        must: Ints,
        swaps: bool,
        rng: np.random.Generator,
        budget: Budget,
    ) -> None:
        self.judge, self.free, self.must, self.swaps = judge, free, must, swaps
        self.rng, self.budget = rng, budget
        self.few = int(free.sum()) <= TUNING.few_free
        self.ways: dict[int, Ways] = {}  # of the exchanges of one descent, whose order is the same
        machine = judge.asked.machine
        single = machine.router.shape[1] == 1 and machine.topology.kind != "fattree"
        self.alike = machine.router[:, 0].astype(np.int64) if single else np.arange(len(machine))

    def descend(self, state: State) -> tuple[State, Score]:
        """Return a state that no step tried makes better, and what it is worth."""
        rows, us = state.rows, self.judge.us
        self.budget.spend(us)
        score, found = self.judge.score(rows, state.slots)
        self.ways, won = {}, True
        while won and self.budget.spend(2 * us + self._bills_us()):
            offers, won = self._offers(found, rows), False
            for some in _fewer(offers):
                if won or not self.budget.spend(us):
                    break
                after = offers.taken(rows, some)
                judged, sent = self.judge.score(after, state.slots)
                if judged.soft < score.soft * (1 - TUNING.won):
                    rows, score, found, won = after, judged, sent, True
        return State(rows, state.slots, state.name), score

    def idle(self, state: State) -> bool:
        """Return whether no link binds in a state, and too many nodes are free to look at hops."""
        found = self.judge.score(state.rows, state.slots)[1]
        return not self.few and not any(_binds(one) for one in found)

    def _bills_us(self) -> float:
        return work.bills(sum(len(way[0]) for way, _ in self.ways.values()))

    def disturb(self, state: State) -> State:
        """Return a copy of a state after a few steps drawn by lot, or a small job anywhere."""
        at, rng = state.rows.copy(), self.rng
        stays = np.isin(at, self.must)
        spare = self._spare(at)
        if self.few and rng.random() < TUNING.anywhere:
            at[~stays] = rng.permutation(np.append(at[~stays], spare))[: int((~stays).sum())]
            return State(rng.permutation(at), state.slots, state.name)
        drawn = rng.permutation(spare).tolist()
        for _ in range(int(rng.integers(1, 4 + len(at) // 32))):
            place, other = rng.integers(len(at), size=2).tolist()
            if drawn and not stays[place] and (not self.swaps or rng.random() < 0.5):
                at[place] = drawn.pop()
            else:
                at[[place, other]] = at[[other, place]]
                stays[[place, other]] = stays[[other, place]]
        return State(at, state.slots, state.name)

    def _spare(self, rows: Ints) -> Ints:
        spare = self.free.copy()
        spare[rows] = False
        return np.flatnonzero(spare)

    def _offers(self, found: list[Exchange], rows: Ints) -> _Offers:
        """Return the steps of the places with the largest bills, and what each saves.

        Free nodes are drawn by lot where they are many. There are none where
        neither links nor hops make the job slower.
        """
        prices = [self._prices(one) for one in found]
        if not any(price.any() for price in prices):
            return _Offers(rows[:0], rows[:0], np.zeros(0))
        billed = list(self._billed(found, prices))
        count, nodes = len(rows), self._spare(rows)
        now = np.zeros(count) + sum(one.now(rows) for one in billed)
        figures = 1 + sum(one.figures(count, count) for one in billed)
        most = min(max(TUNING.payers, count // 4), 1 + int(TUNING.figures / figures))
        places = np.argsort(-now, kind="stable")[:most]
        room = max(2 * most, int(TUNING.figures * count / (figures * len(places))))
        if len(nodes) > room:
            nodes = np.sort(self.rng.choice(nodes, room, replace=False))
        to, others = nodes, np.arange(count)
        saving = np.tile(now[places][:, None], len(nodes))
        saving -= sum(one.bills(rows, places, nodes) for one in billed)
        saving[np.isin(rows[places], self.must)] = -np.inf
        if self.swaps:
            swapped = now[places][:, None] + now
            for one in billed:
                swapped -= one.bills(rows, places, rows) + one.bills(rows, others, rows[places]).T
            swapped[np.arange(len(places)), places] = -np.inf
            saving, to = np.hstack([saving, swapped]), np.append(nodes, -1 - others)
        saving -= self.rng.random(saving.shape) * (1e-9 * now.max() or 1.0)  # of equals, any
        order = np.argsort(-saving, axis=None, kind="stable")[: 16 * max(saving.shape)]
        order = order[np.isfinite(saving.flat[order])]
        place, other = np.divmod(order, max(1, len(to)))
        return _Offers(places[place], to[other], saving.flat[order])

    def _billed(self, found: list[Exchange], prices: list[Floats]) -> Iterator[Bills]:
        """Yield what makes bills at these prices; nothing on a network that is not regular."""
        asked = self.judge.asked
        for k, (one, price) in enumerate(zip(found, prices, strict=True)):
            cost = path_costs(asked.machine, price, asked.routing) if price.any() else None
            if cost is not None and not self.swaps:
                yield _Alike(cost, one, self.alike)
            elif cost is not None:
                if k not in self.ways:
                    self.ways[k] = _ways(one)
                yield _Listed(cost, self.ways[k])

    def _prices(self, one: Exchange) -> Floats:
        """Return what a byte more on each channel adds to the time, links counted a little, in ns.

        Where the nodes' own links take longer nothing, or with few nodes what a hop takes.
        """
        seconds, gbs = one.loads.seconds(), one.loads.channels.bandwidth
        total = one.phase.total.total if one.phase.a_node and self.few else 0.0
        hop_ns = self.judge.asked.constants.hop_ns
        price = np.full(len(gbs), one.phase.in_turn * hop_ns / total if total else 0.0)
        if _binds(one):
            share = seconds / seconds.max()
            steep = np.where(share > 0.5, share ** (POWER - 1), 0.0)
            whole = float((share * steep).sum()) ** (1 - 1 / POWER)
            price += np.where(np.isfinite(gbs), steep / gbs, 0.0) / whole
        return price


def _binds(one: Exchange) -> bool:
    """Return whether no node's own links take longer than the busiest link between routers."""
    most = float(one.loads.seconds().max(initial=0.0))
    ends = [one.loads.nodes(kind).max(initial=0.0) for kind in ("injection", "ejection")]
    return 0 < most >= float(max(ends)) * (1 - TUNING.won)


def _fewer(offers: _Offers) -> Iterator[Ints]:
    """Yield all steps that save, the first quarter of them and so on, then one step at a time."""
    apart = offers.apart()
    width = len(apart)
    while width > 1:
        yield apart[:width]
        width //= 4
    yield from np.arange(min(len(offers.place), TUNING.singles))[:, None]
