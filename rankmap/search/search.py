"""The search: node choices with orders of the ranks on them, most promising first, then steps.

One list of candidates for everybody: what all planners choose with their options, the families
between packed and spread, and the orders of the ranks on each. They are judged by the cost that
the answer is told by, until they certainly are no better than the best so far. Where there are
more pairs than judgements, those come first that promise most.

With nodes that are given there is no other node to go to, and the same search orders the ranks.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from nidmap.placement.errors import NidmapError
from nidmap.placement.placement import Placement
from nidmap.placement.planners import Request
from nidmap.placement.support.array_types import Ints
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.predict.job import fit_pattern
from nidmap.rankmap.predict.model import Guess
from nidmap.rankmap.search.budget import LIMITS, Budget
from nidmap.rankmap.search.cost import ROW_MAJOR, Candidate, Cost, Ranking, TimeCost, divides_steps
from nidmap.rankmap.search.exact_steps import ExactSteps
from nidmap.rankmap.search.node_sets import grid_on_boxes
from nidmap.rankmap.search.priced_steps import PricedSteps
from nidmap.rankmap.search.rank_orders import Make, node_by_node, quick_orders, ranks_alike
from nidmap.rankmap.search.segments import Segments


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The request, the node choices and the segments that a search keeps to.

    Attributes
    ----------
    request : Request
        Which nodes may be chosen, and which must be.
    choices : iterable of (str, int64 (n,))
        What chooses nodes, and the nodes; none where only orders are sought.
    base : int64 (n,) or None
        The baseline's nodes, rank r on slot r; None where the scheduler would take none.
    segments : Segments or None
        What the answer has to keep to; the baseline need not.
    """

    request: Request
    choices: Iterable[tuple[str, Ints]] = ()
    base: Ints | None = None
    segments: Segments | None = None

    def allows(self, placement: Placement) -> bool:
        """Return whether a placement keeps to the free nodes and the segments."""
        free = bool(self.request.free[placement.rows].all())
        return free and (self.segments is None or self.segments.hold(placement))


def search(cost: Cost, space: Space, budget: Budget) -> Ranking:
    """Search nodes and an order of the ranks that cost least.

    Parameters
    ----------
    cost : Cost
    space : Space
    budget : Budget

    Returns
    -------
    Ranking

    Raises
    ------
    UsageError
        A pattern whose ranks are not the slots.
    """
    enumeration = Enumeration(cost, space, budget)
    enumeration.judge_all()
    if isinstance(cost, TimeCost):
        enumeration.take_steps(cost)
    return enumeration.ranking()


@dataclass(slots=True, eq=False)
class _NodeChoice:
    """Nodes in one order, and what the orders of the ranks cost on them."""

    name: str
    rows: Ints
    costs: dict[str, float] = field(default_factory=dict)

    @property
    def best(self) -> float:
        """The least cost so far."""
        return min(self.costs.values(), default=np.inf)


#: A node choice and the name of an order.
_Pair = tuple[_NodeChoice, str]


@dataclass(slots=True)
class _Promises:
    """What pairs of a node choice and an order are expected to cost.

    Attributes
    ----------
    cost : dict of _Pair to float
        Of those that were judged or guessed.
    links_s : dict of _Pair to float
        Seconds of the busiest links of those that were guessed.
    gains : dict of str to float
        What an order makes of a choice's cost with rank r on slot r, at best.
    """

    cost: dict[_Pair, float] = field(default_factory=dict)
    links_s: dict[_Pair, float] = field(default_factory=dict)
    gains: dict[str, float] = field(default_factory=dict)

    def of(self, pair: _Pair) -> float:
        """Return what a pair costs; before that is known, what its order makes of its choice."""
        choice, order = pair
        return self.cost.get(pair, self.cost[choice, ROW_MAJOR] * self.gains.get(order, 1.0))

    def with_links(self, pair: _Pair) -> float:
        """Return the same with what links take that may have to be waited for as well."""
        seconds = self.of(pair)
        return seconds + LIMITS.links * self.links_s.get(pair, seconds)

    def learn_gains(self, pilots: list[_NodeChoice], names: list[str], complete: bool) -> None:
        """Learn from some choices what each order makes of them.

        Where all of them were looked at, an order without a cost fits none.
        """
        for name in names:
            known = [pilot for pilot in pilots if self.cost[pilot, name] < np.inf]
            shares = (
                self.cost[pilot, name] / (self.cost[pilot, ROW_MAJOR] or 1) for pilot in known
            )
            self.gains[name] = min(shares, default=np.inf if complete else 1.0)


class Enumeration:
    """Judges candidates, each placement once, and keeps what they cost.

    Attributes
    ----------
    ordered : bool
        Whether the order of the ranks makes a difference.
    pruned : bool
        Whether judgements end where they certainly cannot win: not where what candidates cost
        says which others are judged.
    """

    def __init__(self, cost: Cost, space: Space, budget: Budget) -> None:
        self.cost, self.space, self.budget = cost, space, budget
        self.request = request = space.request
        segments, base = space.segments, space.base
        first = request.rows()[: request.count] if base is None else base
        self.placement = cost.model.place(first)
        self.pattern = fit_pattern(cost.model.pattern, self.placement)
        alike = ranks_alike(self.pattern, cost.model.algorithms(self.pattern))
        self.ordered = self.placement.ppn is None or not alike
        self.orders = quick_orders(self.pattern, self.placement) if self.ordered else {}
        self.first: tuple[str, Ints] | None = None
        if segments is not None and segments.slots is not None:
            self.first = "replica by replica", segments.slots  # row-major may tear replicas apart
        self.costs: dict[bytes, float] = {}
        self.candidates: list[Candidate] = []
        self._stepped: list[Candidate] = []
        self._floors: dict[bytes, float] = {}
        self._guesses: dict[bytes, Guess] = {}
        self._guessed_as: dict[_Pair, bytes] = {}
        self.promises = _Promises()
        self._plain: Candidate | None = None
        stepwise = divides_steps(cost.model, self.placement)
        self.guess = cost.model.guess if isinstance(cost, TimeCost) and stepwise else None
        self.best: Candidate | None = None
        self.default: Candidate | None = None
        self.pruned = True
        self.choices: list[_NodeChoice] = []
        if base is not None:
            self.default = self._judge_default(base)

    def judge_all(self) -> None:
        """Judge the node choices and the orders of the ranks on them."""
        by_rows = {self._key(choice.rows): choice for choice in self.choices}
        nodes_given = int(self.request.free.sum()) == self.request.count
        first = self.ordered and nodes_given and isinstance(self.pattern, Graph)
        if first:  # it wins most, and later there may be no time for it
            self._judge_searched_orders()
        for name, rows in self.space.choices:
            if self.budget.past:
                break
            by_rows.setdefault(self._key(rows), _NodeChoice(name, rows))
        self.choices = list(by_rows.values())
        self._judge_grids()
        self._judge_orders()
        if self.ordered and not first:
            self._judge_searched_orders()

    def _judge_orders(self) -> None:
        """Judge pairs of a node choice and an order, those first that promise most.

        Where routers adapt in steps a judgement takes so long that costs are guessed before one
        is judged.
        """
        names = list(self.orders or (ROW_MAJOR,))
        all_fit = self.guess is None and len(names) * len(self.choices) <= self.budget.left
        self.pruned = all_fit or self.guess is not None
        promises = self.promises
        look = self._judge_order if self.guess is None else self._guess
        for choice in self.choices:
            promises.cost[choice, ROW_MAJOR] = look(choice, ROW_MAJOR)
        ranked = sorted(self.choices, key=lambda choice: promises.with_links((choice, ROW_MAJOR)))
        pilots = [] if all_fit else self._pilots(ranked)
        for pair in itertools.product(pilots, names):
            if pair not in promises.cost:
                promises.cost[pair] = look(*pair)
        self.pruned = True
        complete = bool(pilots and self.budget.left) and not self.budget.hurried
        promises.learn_gains(pilots, names, complete)
        pairs = list(itertools.product(ranked, names))
        first = [] if self.guess is None else self._guess_best(pairs)
        if not self.budget.hurried:  # what was not guessed promises no more, and compare shows each
            first += itertools.product(ranked, [ROW_MAJOR])
        spare = 0 if all_fit else self.budget.left // 2  # steps want judgements too
        for pair in dict.fromkeys([*first, *sorted(pairs, key=promises.of)]):
            if self.budget.left > spare:
                self._judge_order(*pair)

    def _guess_best(self, pairs: list[_Pair]) -> list[_Pair]:
        """Return the pairs that are worth a judgement, as far as can be guessed, the best first.

        What promises most is guessed until nothing unguessed promises more. A few steps say little
        of the links in the others, so those with the least busy links are looked at in turn with
        those that take least.
        """
        promises = self.promises
        while True:
            best = dict.fromkeys([*self._distinct_pairs(pairs, promises.of),
                                  *self._distinct_pairs(pairs, promises.with_links)])  # fmt: skip
            unknown = [pair for pair in best if pair not in promises.cost]
            if not unknown or self.budget.hurried:
                break
            promises.cost.update({pair: self._guess(*pair) for pair in unknown})
        turns = zip(*(sorted(best, key=by) for by in (promises.of, promises.with_links)),
                    strict=True)  # fmt: skip
        return list(dict.fromkeys(itertools.chain.from_iterable(turns)))

    def _pilots(self, ranked: list[_NodeChoice]) -> list[_NodeChoice]:
        """Return the choices on which all orders are looked at: the best, judged ones of all too.

        What is guessed on choices that are far from the best says little of those near it.
        """
        places = set(range(min(LIMITS.pilots, len(ranked))))
        if self.guess is None:
            places |= set(np.linspace(0, len(ranked) - 1, LIMITS.pilots).astype(int).tolist())
        return [ranked[place] for place in sorted(places)]

    def _distinct_pairs(self, pairs: list[_Pair], by: Callable[[_Pair], float]) -> list[_Pair]:
        """Return the pairs with the least of a figure, of those that place ranks alike one."""
        distinct: dict[bytes | _Pair, _Pair] = {}
        for pair in sorted(pairs, key=by):
            distinct.setdefault(self._guessed_as.get(pair, pair), pair)
            if len(distinct) == LIMITS.guessed:
                break
        return list(distinct.values())

    def _key(self, rows: Ints) -> bytes:
        """Return what tells a choice of nodes from others."""
        return (rows if self.ordered else np.sort(rows)).tobytes()

    def _judge_default(self, rows: Ints) -> Candidate:
        """Judge the baseline's nodes, which are a choice like others; return what they cost."""
        name = self.request.baseline.strategy
        choice = _NodeChoice(name, rows)
        placement = self._placed(choice, None)
        self._judge(choice, ROW_MAJOR, None)
        self.choices.append(choice)
        return Candidate(name, ROW_MAJOR, placement, self._cost_of(placement))

    def take_steps(self, cost: TimeCost) -> None:
        """Exchange nodes with free ones and with each other as long as that wins."""
        if self.placement.ppn is None or not self.budget.left or self.budget.past:
            return
        steps = PricedSteps(cost, self.request, self.ordered, self.budget, self.space.allows)
        exact = ExactSteps(cost, self.request, self.ordered, self.budget)
        descend = exact.descend if exact.works and self.space.segments is None else steps.descend
        for candidate in self._starts(cost, each_order=True):
            self._offer(descend(candidate), candidate)
        stale = 0
        while steps.works and stale < LIMITS.stale and self.budget.left:
            starts = self._starts(cost)
            if not starts:
                return
            start = starts[0 if stale % 3 else stale // 3 % len(starts)]
            disturbed, stale = steps.disturb(start.placement), stale + 1
            if not self.space.allows(disturbed):
                continue
            stepped = self._offer(descend(replace(start, placement=disturbed)), start)
            if stepped is not None and stepped.cost < starts[0].cost:
                stale = 0

    def _starts(self, cost: TimeCost, each_order: bool = False) -> list[Candidate]:
        """Return the best placements from which steps may still win, each once.

        What limits an order on any nodes limits what steps make of it.

        Parameters
        ----------
        cost : TimeCost
        each_order : bool
            Whether every order has its best nodes among them.
        """
        assert self.best is not None
        starts: dict[bytes, Candidate] = {}
        orders: set[bytes] = set()
        for candidate in sorted([*self.candidates, *self._stepped], key=lambda start: start.cost):
            placement = candidate.placement
            order = b"" if placement.order is None else placement.order.tobytes()
            if order not in self._floors:
                self._floors[order] = cost.floor(placement)
            more = len(starts) < LIMITS.kept or (each_order and order not in orders)
            if more and self._floors[order] < self.best.cost * (1 - LIMITS.clearly):
                starts.setdefault(placement.key, candidate)
                orders.add(order)
        return list(starts.values())

    def ranking(self) -> Ranking:
        """Return all that was judged, the best of it and the default."""
        assert self.best is not None
        best, base = self.best, self.default
        if base is not None and base.cost <= best.cost and self.space.allows(base.placement):
            best = base
        choices = {choice.name: choice.rows for choice in self.choices}
        return Ranking(base, self.candidates, best, self.budget.judged, choices)

    def _judge_grids(self) -> None:
        """Judge the process grid laid on free boxes of a torus as it is."""
        if (
            self.pattern.dims is None
            or self.placement.ppn is None
            or self.space.segments is not None
        ):
            return
        machine, dims, ppn = self.cost.model.machine, self.pattern.dims, self.placement.ppn
        for name, rows, slots in grid_on_boxes(machine, self.request, dims, ppn):
            choice = _NodeChoice(name, rows)
            self._judge(choice, "as the grid lies", slots)
            self.choices.append(choice)

    def _guess(self, choice: _NodeChoice, order: str) -> float:
        """Return about what an order on a choice costs; inf where that cannot be said."""
        assert self.guess is not None
        if not self.budget.may_guess():
            return np.inf
        try:
            make = self.orders.get(order)
            slots = None if make is None else make(self.cost.model.place(choice.rows))
        except NidmapError:
            return np.inf
        placement = self._placed(choice, slots).canonical()
        self._guessed_as[choice, order] = key = placement.key
        if key not in self._guesses:
            self._guesses[key] = self.guess(placement)
        seconds, self.promises.links_s[choice, order] = self._guesses[key]
        return seconds

    def _placed(self, choice: _NodeChoice, slots: Ints | None) -> Placement:
        return Placement.on_rows(self.cost.model.machine, choice.rows, self.placement.counts, slots)

    def _judge_searched_orders(self) -> None:
        """Judge orders that are searched for on the best distinct choices."""
        for name, make in self.cost.orders(
            self.pattern, self.placement, self.budget.seconds
        ).items():
            for choice in self._distinct()[: LIMITS.searched]:
                self._judge_order(choice, name, make)
        if self.pattern.dims is None and isinstance(self.cost, TimeCost):
            for k, make in enumerate(self._mapped_groupings(), 1):
                for choice in self._distinct()[: LIMITS.searched]:
                    self._judge_order(choice, f"graph by node {k}", make)

    def _mapped_groupings(self) -> Iterator[Make]:
        """Yield how to map node by node the best ways to put ranks together on nodes."""
        groupings: dict[bytes, Ints | None] = {}
        for candidate in sorted(self.candidates, key=lambda candidate: candidate.cost):
            slots = candidate.placement.canonical().order
            groupings.setdefault(b"" if slots is None else slots.tobytes(), slots)
        for slots in list(groupings.values())[: LIMITS.groupings]:
            if self.budget.past:
                return
            make = node_by_node(self.cost.model, self.placement, slots, self.budget.seconds)
            if make is not None:
                yield make

    def _judge_order(self, choice: _NodeChoice, name: str, make: Make | None = None) -> float:
        """Judge an order on a choice, and return its cost; inf where it does not fit, or too late.

        An order that `make` has searched for is judged also where that took all the time.
        """
        if name in choice.costs or not (self.budget.left or self.best is None):
            return choice.costs.get(name, np.inf)
        if self.first is not None:
            self._judge(choice, *self.first)
        searched = make is not None
        make = make or self.orders.get(name)
        try:
            slots = None if make is None else make(self.cost.model.place(choice.rows))
        except NidmapError:
            return np.inf
        self._judge(choice, name, slots, searched)
        return choice.costs.get(name, np.inf)

    def _judge(
        self, choice: _NodeChoice, order: str, slots: Ints | None, searched: bool = False
    ) -> None:
        """Judge a placement, unless its like is known, and keep it among the candidates.

        An order that was `searched` for is judged also where that took all the time.

        What certainly costs no less than the best so far counts as infinite; with rank r on
        slot r the best so far of these, so that the best of them is known.
        """
        placement = self._placed(choice, slots).canonical()
        if not self.space.allows(placement):
            return
        known = placement.key in self.costs
        may = known or self.budget.spend(choice.name) or searched
        if not may and self.best is not None:
            return
        below = np.inf
        if self.pruned:
            rivals = self._plain if order == ROW_MAJOR else self.best
            below = np.inf if rivals is None else rivals.cost
        choice.costs[order] = cost = self._cost_of(placement, below)
        candidate = Candidate(choice.name, order, placement, cost)
        self.candidates.append(candidate)
        if order == ROW_MAJOR and (self._plain is None or cost < self._plain.cost):
            self._plain = candidate
        self._keep(candidate)

    def _cost_of(self, placement: Placement, below: float = np.inf) -> float:
        """Return what a placement costs, working it out once."""
        key = placement.key
        if key not in self.costs:
            began = time.thread_time()
            self.costs[key] = cost = self.cost.of(placement, below)
            if cost < np.inf:
                self.budget.note_length(time.thread_time() - began)
        return self.costs[key]

    def _keep(self, candidate: Candidate) -> None:
        if self.best is None or candidate.cost < self.best.cost:
            self.best = candidate
            self.budget.note(candidate.cost, candidate.placement.rows)

    def _offer(self, stepped: Candidate | None, start: Candidate) -> Candidate | None:
        """Keep and return what steps have made of a candidate, where it is better than that."""
        if stepped is None or stepped.cost >= start.cost:
            return None
        self._stepped.append(stepped)
        self._keep(stepped)
        return stepped

    def _ranked(self) -> list[_NodeChoice]:
        return sorted(self.choices, key=lambda choice: choice.best)

    def _distinct(self) -> list[_NodeChoice]:
        """Return the choices, the best first, each once whatever the order of its nodes."""
        once: dict[bytes, _NodeChoice] = {}
        for choice in self._ranked():
            once.setdefault(np.sort(choice.rows).tobytes(), choice)
        return list(once.values())
