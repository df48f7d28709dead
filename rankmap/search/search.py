# SPDX-License-Identifier: Apache-2.0
"""The search: node choices with rank orders on them by increasing bound, then exchanges.

One list of candidates for everybody: what all planners choose with their options, the families
between packed and spread, and the orders of the ranks on each. Every candidate has a bound, seconds
that its nodes' own links, its ranks and the cuts of the network need by any routing. Candidates are
judged by the cost that the answer is told by, those of the least bound first, until no bound is
below the best so far.

With nodes that are given there is no other node to go to, and the same search orders the ranks.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from nidmap.placement import planners
from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.placement import Placement
from nidmap.placement.planners import Request
from nidmap.placement.support.array_types import Ints
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import ROW_MAJOR, Candidate, Cost, Ranking, TimeCost, divides_steps
from nidmap.rankmap.search.exchanges import MOST_NODES, Exchanges
from nidmap.rankmap.search.node_sets import grid_on_boxes
from nidmap.rankmap.search.rank_orders import Make, quick_orders, ranks_alike
from nidmap.rankmap.search.segments import Segments
from nidmap.rankmap.search.ties import spread_of

#: A placement replaces the best so far where it is faster by more than rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The request, node choices and segments that constrain a search."""

    request: Request  # which nodes may be chosen, and which must be
    # (n,), the planners of node choices, and the nodes; none if only orders are sought
    choices: Iterable[tuple[str, Ints]] = ()
    # (n,), the baseline's nodes, rank r on slot r; None where the scheduler would take none
    base: Ints | None = None
    segments: Segments | None = None  # constraints on the answer, but not on the baseline

    def allows(self, placement: Placement) -> bool:
        """Return whether a placement keeps to the free nodes and the segments."""
        free = bool(self.request.free[placement.rows].all())
        return free and (self.segments is None or self.segments.hold(placement))


def search(cost: Cost, space: Space, budget: Budget) -> Ranking:
    """Search for nodes and a rank order of least cost."""
    enumeration = Enumeration(cost, space, budget)
    enumeration.judge_all()
    if isinstance(cost, TimeCost):
        enumeration.take_steps(cost)
    return enumeration.ranking()


@dataclass(slots=True, eq=False)
class _NodeChoice:
    """Nodes in one order, and the costs of rank orders on them."""

    name: str
    rows: Ints
    costs: dict[str, float] = field(default_factory=dict)

    @property
    def best(self) -> float:
        """The least cost so far."""
        return min(self.costs.values(), default=np.inf)


class Enumeration:
    """Evaluates candidates, each placement once, and records their costs."""

    def __init__(self, cost: Cost, space: Space, budget: Budget) -> None:
        self.cost, self.space, self.budget = cost, space, budget
        self.request = request = space.request
        segments, base = space.segments, space.base
        first = request.rows()[: request.count] if base is None else base
        self.placement = cost.model.place(first)
        self.pattern = fit_pattern(cost.model.pattern, self.placement)
        alike = ranks_alike(self.pattern, cost.model.algorithms(self.pattern))
        # Whether the order of the ranks makes a difference
        self.ordered = self.placement.ppn is None or not alike
        self.orders = quick_orders(self.pattern, self.placement) if self.ordered else {}
        self.first: tuple[str, Ints] | None = None
        if segments is not None and segments.slots is not None:
            self.first = "replica by replica", segments.slots  # row-major may tear replicas apart
        self.costs: dict[tuple[int, int], float] = {}
        self.candidates: list[Candidate] = []
        self._stepped: list[Candidate] = []
        self._floors: dict[int, float] = {}
        self._plain: Candidate | None = None
        self.best: Candidate | None = None
        self.default: Candidate | None = None
        self.choices: list[_NodeChoice] = []
        if base is not None:
            self.default = self._judge_default(base)

    def judge_all(self) -> None:
        """Evaluate the node choices and the rank orders on them."""
        self._list_choices()
        nodes_given = int(self.request.free.sum()) == self.request.count
        first = self.ordered and nodes_given and isinstance(self.pattern, Graph)
        if first:  # it wins most, and later there may be no time for it
            self._judge_searched_orders()
        self._judge_grids()
        for choice in self._promising():
            self._judge_order(choice, ROW_MAJOR)
        self._judge_orders()
        if self.ordered and not first:
            self._judge_searched_orders()

    def _list_choices(self) -> None:
        """List the choices of nodes, each once, those that touch the fewest units first."""
        by_rows = {self._key(choice.rows): choice for choice in self.choices}
        for name, rows in self.space.choices:
            if self.budget.past and not (_by_name(name) and self.budget.may_compare):
                break
            by_rows.setdefault(self._key(rows), _NodeChoice(name, rows))
        machine, before = self.cost.model.machine, len(self.choices)
        choices = list(by_rows.values())
        compact = sorted(choices[before:], key=lambda choice: spread_of(machine, choice.rows))
        self.choices = choices[:before] + compact

    def _promising(self) -> list[_NodeChoice]:
        """Return the choices in the order in which they are evaluated.

        Where steps of an exchange are divided one after the other, those first whose bytes take
        least all at once, which is known soon.
        """
        cost = self.cost
        if not (isinstance(cost, TimeCost) and divides_steps(cost.model, self.placement)):
            return self.choices

        def at_once(choice: _NodeChoice) -> float:
            try:
                return np.inf if self.budget.past else cost.at_once(self._placed(choice, None))
            except UsageError:  # its nodes touch too many groups to evaluate
                return np.inf

        return sorted(self.choices, key=at_once)

    def _judge_orders(self) -> None:
        """Evaluate other orders on all choices, until no bound is clearly below the best."""
        pairs = sorted(self._bounded_pairs(), key=lambda pair: pair[:2])
        steps_too = self.budget.left // 2  # they want judgements as well
        if len(pairs) <= self.budget.left or self.cost.model.routing == "adaptive":
            steps_too = 0
        for bound, _, choice, name, placement in pairs:
            if self.budget.left <= steps_too:
                return
            if self.best is not None and bound >= self.best.cost * (1 - LIMITS.clearly):
                choice.costs[name] = np.inf
                self.candidates.append(Candidate(choice.name, name, placement, np.inf))
            else:
                self._judge(choice, name, placement)

    def _bounded_pairs(self) -> Iterator[tuple[float, int, _NodeChoice, str, Placement]]:
        """Yield each order on each choice with its lower bound, and its turn.

        Early turns have the first orders on the best choices.
        """
        ranked = sorted(self.choices, key=lambda choice: choice.best)
        for turn, name in enumerate(self.orders):
            for place, choice in enumerate(ranked):
                if self.budget.past:
                    return
                placement = None if name in choice.costs else self._ordered(choice, name)
                if placement is not None:
                    yield self._floor(placement), turn + place, choice, name, placement

    def _floor(self, placement: Placement) -> float:
        """Return a lower bound on the cost of a rank order, on any nodes."""
        order = placement.order_key
        if order not in self._floors:
            self._floors[order] = self.cost.floor(placement)
        return self._floors[order]

    def _ordered(
        self, choice: _NodeChoice, name: str, make: Make | None = None
    ) -> Placement | None:
        """Return an order on a choice of nodes; None if it does not fit."""
        make = make or self.orders.get(name)
        try:
            slots = None if make is None else make(self.cost.model.place(choice.rows))
        except NidmapError:
            return None
        return self._placed(choice, slots)

    def _key(self, rows: Ints) -> bytes:
        """Return a key that distinguishes choices of nodes."""
        return (rows if self.ordered else np.sort(rows)).tobytes()

    def _judge_default(self, rows: Ints) -> Candidate:
        """Evaluate the baseline's nodes like any other choice; return their cost."""
        name = self.request.baseline.strategy
        choice = _NodeChoice(name, rows)
        placement = self.cost.model.place(rows)
        self._judge(choice, ROW_MAJOR, self._placed(choice, None))
        self.choices.append(choice)
        return Candidate(name, ROW_MAJOR, placement, self._cost_of(placement.canonical()))

    def take_steps(self, cost: TimeCost) -> None:
        """Exchange nodes with free ones and with each other as long as that pays.

        Routers that adapt leave a step nothing to win: they send around the links that it relieves.
        """
        even = self.placement.ppn is not None
        settled = even and not self.ordered and self.request.free.sum() == self.request.count
        hopeless = settled or (even and cost.model.routing == "adaptive")
        if self.budget.past or hopeless or self.request.count > MOST_NODES:
            return
        exchanges = Exchanges(cost, self.request, self.ordered, self.budget, self.space.allows)
        for start in self._starts(each_order=True):
            if self.budget.left and not self.budget.past:
                self._offer(exchanges.improve(start), start)
        stale = 0
        while stale < LIMITS.stale and self.budget.left and not self.budget.past:
            if not (starts := self._starts()):
                return
            start = starts[0 if stale % 3 else stale // 3 % len(starts)]
            stale += 1
            if self._offer(exchanges.improve(start, disturb=True), starts[0]):
                stale = 0

    def _starts(self, each_order: bool = False) -> list[Candidate]:
        """Return the best placements from which exchanges may still pay, each once.

        What limits an order on any nodes limits what exchanges make of it.

        `each_order`: whether every order has its best nodes among them.
        """
        assert self.best is not None
        starts: dict[tuple[int, int], Candidate] = {}
        orders: set[int] = set()
        for candidate in sorted([*self.candidates, *self._stepped], key=lambda start: start.cost):
            placement = candidate.placement
            order = placement.order_key
            more = len(starts) < LIMITS.kept or (each_order and order not in orders)
            if more and self._floor(placement) < self.best.cost * (1 - LIMITS.clearly):
                starts.setdefault(placement.key, candidate)
                orders.add(order)
        return list(starts.values())

    def ranking(self) -> Ranking:
        """Return all evaluated candidates, the best of them and the default."""
        assert self.best is not None
        best, base = self.best, self.default
        if base is not None and base.cost <= best.cost and self.space.allows(base.placement):
            best = base
        choices = {choice.name: choice.rows for choice in self.choices}
        return Ranking(base, self.candidates, best, self.budget.judged, choices)

    def _judge_grids(self) -> None:
        """Evaluate the process grid laid unchanged on free boxes of a torus."""
        if (
            self.pattern.dims is None
            or self.placement.ppn is None
            or self.space.segments is not None
        ):
            return
        machine, dims, ppn = self.cost.model.machine, self.pattern.dims, self.placement.ppn
        for name, rows, slots in grid_on_boxes(machine, self.request, dims, ppn):
            choice = _NodeChoice(name, rows)
            self._judge(choice, "as the grid lies", self._placed(choice, slots))
            self.choices.append(choice)

    def _placed(self, choice: _NodeChoice, slots: Ints | None) -> Placement:
        machine, counts = self.cost.model.machine, self.placement.counts
        return Placement.on_rows(machine, choice.rows, counts, slots).canonical()

    def _judge_searched_orders(self) -> None:
        """Evaluate orders that need a search on the best distinct choices."""
        orders = self.cost.orders(self.pattern, self.placement, self.budget.seconds)
        for name, make in orders.items():
            for choice in self._distinct()[: LIMITS.searched]:
                self._judge_order(choice, name, make)

    def _judge_order(self, choice: _NodeChoice, name: str, make: Make | None = None) -> None:
        """Evaluate an order on a choice, unless known, unsuitable or too late.

        An order that `make` has searched for is judged also where that took all the time, and
        nodes that can be asked for by name in the seconds that are kept for the answer.
        """
        named = name == ROW_MAJOR and _by_name(choice.name) and self.budget.may_compare
        if name in choice.costs or not (named or self.budget.left or self.best is None):
            return
        if self.first is not None:
            self._judge(choice, self.first[0], self._placed(choice, self.first[1]))
        placement = self._ordered(choice, name, make)
        if placement is not None:
            self._judge(choice, name, placement, named or make is not None)

    def _judge(
        self, choice: _NodeChoice, order: str, placement: Placement, searched: bool = False
    ) -> None:
        """Evaluate a placement, unless an equivalent is known, and record it as a candidate.

        `searched`: whether it is judged even if no judgement is left.

        What certainly costs no less than the best so far counts as infinite; with rank r on
        slot r the best so far of these, so that the best of them is known.
        """
        if not self.space.allows(placement):
            return
        known = placement.key in self.costs
        may = known or self.budget.spend(choice.name) or searched
        if not may and self.best is not None:
            return
        rival = self._plain if order == ROW_MAJOR else self.best
        below = np.inf if rival is None else rival.cost * (1 - LIMITS.clearly)
        try:
            cost = self._cost_of(placement, below)
        except UsageError:  # its nodes touch too many groups to evaluate
            if self.best is None:
                raise
            return
        choice.costs[order] = cost
        candidate = Candidate(choice.name, order, placement, cost)
        self.candidates.append(candidate)
        if order == ROW_MAJOR and (self._plain is None or cost < self._plain.cost):
            self._plain = candidate
        self._keep(candidate)

    def _cost_of(self, placement: Placement, below: float = np.inf) -> float:
        """Return the cost of a placement, computing it only once."""
        key = placement.key
        if key not in self.costs:
            began = time.thread_time()
            self.costs[key] = cost = self.cost.of(placement, below)
            if cost < np.inf:
                self.budget.note_length(time.thread_time() - began)
            else:
                self.budget.refund()
        return self.costs[key]

    def _keep(self, candidate: Candidate) -> None:
        if self.best is None or candidate.cost < self.best.cost * (1 - ROUNDING):
            self.best = candidate
            self.budget.note(candidate.cost, candidate.placement.rows)

    def _offer(self, stepped: Candidate | None, start: Candidate) -> Candidate | None:
        """Record and return the result of a candidate's descent, if it is better."""
        if stepped is None or stepped.cost >= start.cost:
            return None
        self._stepped.append(stepped)
        self._keep(stepped)
        return stepped

    def _distinct(self) -> list[_NodeChoice]:
        """Return the choices, best first, each once regardless of its node order."""
        once: dict[bytes, _NodeChoice] = {}
        for choice in sorted(self.choices, key=lambda choice: choice.best):
            once.setdefault(np.sort(choice.rows).tobytes(), choice)
        return list(once.values())


def _by_name(choice: str) -> bool:
    """Return whether a planner, perhaps with options, chose the nodes, which users may ask for."""
    return choice.partition(" ")[0] in planners.names()
