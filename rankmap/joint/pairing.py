"""Which orders of the ranks are tried on which node sets.

All on all, while that is little work. Else the quick orders are tried on the
best few sets, and those that do best there on the others; the orders that are
searched for are made on the sets that are best by then. How ranks are put
together on nodes matters more than which nodes these are, so for a graph the
best ways to do that are mapped on further sets node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from placement import planners
from placement.errors import NidmapError
from placement.request import Request
from placement.support.array_types import Ints
from rankmap.joint import work
from rankmap.joint.budget import TUNING, Budget
from rankmap.joint.judge import Judge, State, canonical
from rankmap.joint.rank_orders import Make, node_by_node, quick_orders, searched_orders
from rankmap.pattern import Pattern

Pair = tuple["NodeSet", str, Make, float]

__all__ = ["NodeSet", "Pairing"]


@dataclass(slots=True, eq=False)
class NodeSet:
    """Nodes in one order, and what has been tried on them.

    Attributes
    ----------
    name : str
    rows : int64 (n,)
    best : float
        Least time so far.
    tried : dict of str to float
        Time with each order that was made; inf where it does not fit.
    """

    name: str
    rows: Ints
    best: float = np.inf
    tried: dict[str, float] = field(default_factory=dict)


class Pairing:
    """Tries orders of the ranks on node sets.

    Parameters
    ----------
    judge : Judge
        Of states by the predictor that the search goes by.
    pattern : Pattern
        Fitted to the job's slots.
    request : Request
    sets : list of NodeSet
        Judged with rank r on slot r already.
    budget : Budget
        In the part that may be spent.
    judged : callable
        Takes a state and returns its time.
    """

    def __init__(
        self,
        judge: Judge,
        pattern: Pattern,
        request: Request,
        sets: list[NodeSet],
        budget: Budget,
        judged: Callable[[State], float],
    ) -> None:
        self.asked, self.us, self.pattern, self.request = judge.asked, judge.us, pattern, request
        self.sets, self.budget, self.judged = sets, budget, judged
        self.on = self.asked.slots(sets[0].rows)
        self.quick_us = work.quick_order(len(self.on))
        self.orders = quick_orders(pattern, self.on)
        self.groupings: dict[bytes, tuple[float, Ints | None]] = {}

    def quick(self) -> None:
        """Try the orders that take milliseconds: all on the best sets, the best of them on all."""
        ranked = self._ranked()
        many = TUNING.quick * self.budget.limit / (self.us + self.quick_us)
        if len(ranked) * len(self.orders) <= many:
            self._try(self._pairs(ranked, self.orders), TUNING.quick)
            return
        pilots = ranked[: TUNING.pilots]
        others = ranked[TUNING.pilots :]
        self._try(self._pairs(pilots, self.orders), TUNING.quick)
        share = max(0.0, TUNING.quick - self.budget.done / self.budget.limit)
        self._try(self._pairs(others, self._leaders(pilots)), share)

    def listed_otherwise(self) -> None:
        """Try the orders that lead on the best sets on other orders of their nodes."""
        for one in self._ranked()[: TUNING.turned]:
            leaders = sorted((n for n in one.tried if n in self.orders), key=one.tried.__getitem__)
            for rows in self._lists(one.rows):
                other = NodeSet(one.name, rows)
                self.sets.append(other)
                names = dict.fromkeys(["row-major", *leaders[: 2 * TUNING.ahead]])
                self._try(self._pairs([other], names), TUNING.listed / (2 * TUNING.turned))

    def searched(self) -> None:
        """Make the orders that are searched for on the best sets, at least on one."""
        dearest = TUNING.dearest * self.budget.work / TUNING.budget
        for name, (us, make) in searched_orders(self.pattern, self.on, dearest).items():
            sets = self._distinct()
            self._try([(sets[0], name, make, us)], np.inf)
            if name == "graph":
                self._node_by_node()
            pairs = [(one, name, make, us) for one in self._distinct() if name not in one.tried]
            self._try(pairs, TUNING.graph if name == "graph" else TUNING.boxes)

    def _node_by_node(self) -> None:
        """Map the best ways to put ranks together on the best sets, node by node."""
        best = sorted(self.groupings.values(), key=lambda one: one[0])[: TUNING.groupings]
        maps = [node_by_node(self.asked, self.on, slots) for _, slots in best]
        pairs: list[Pair] = []
        for one in self._distinct():
            pairs += [(one, f"graph by node {k}", *m) for k, m in enumerate(maps, 1) if m]
        self._try(pairs, TUNING.by_node)

    def _pairs(self, sets: list[NodeSet], names: Iterable[str]) -> list[Pair]:
        some = [(one, name) for one in sets for name in names if name not in one.tried]
        return [(one, name, self.orders[name], self.quick_us) for one, name in some]

    def _try(self, pairs: Iterable[Pair], share: float) -> None:
        """Make orders on sets and judge them, while a share of the budget lasts."""
        end = min(self.budget.done + share * self.budget.limit, self.budget.limit)
        for one, name, make, us in pairs:
            if share < np.inf and self.budget.done + us + self.us > end:
                return
            title = one.name if name == "row-major" else f"{one.name}, {name}"
            self.budget.spend(us + self.us, title)
            if self.budget.ended:
                return
            try:
                slots = make(self.asked.slots(one.rows))
            except NidmapError:
                one.tried[name] = np.inf  # does not fit this pattern or these nodes
                continue
            self._note(one, name, State(one.rows, slots, title))

    def _note(self, one: NodeSet, name: str, state: State) -> None:
        time = one.tried[name] = self.judged(state)
        one.best = min(one.best, time)
        slots = canonical(state, self.on.ppn).slots
        key = b"" if slots is None else slots.tobytes()
        if key not in self.groupings or time < self.groupings[key][0]:
            self.groupings[key] = time, slots

    def _ranked(self) -> list[NodeSet]:
        return sorted(self.sets, key=lambda one: one.best)

    def _distinct(self) -> list[NodeSet]:
        """Return the sets, the best first, each once whatever the order of its nodes."""
        once: dict[bytes, NodeSet] = {}
        for one in self._ranked():
            once.setdefault(np.sort(one.rows).tobytes(), one)
        return list(once.values())

    def _leaders(self, sets: list[NodeSet]) -> list[str]:
        """Return the quick orders that do best on some sets, relative to the best there."""
        worth = {
            name: min(one.tried.get(name, np.inf) / max(one.best, 1e-300) for one in sets)
            for name in self.orders
        }
        return sorted(worth, key=worth.__getitem__)[: TUNING.ahead]

    def _lists(self, rows: Ints) -> Iterator[Ints]:
        """Yield a set in the order of the machine and along a curve, where they differ."""
        free = np.zeros(len(self.asked.machine), dtype=bool)
        free[rows] = True
        found = [np.flatnonzero(free)]
        try:
            request = replace(self.request, free=free, include=rows[:0])
            found.append(planners.find("hilbert")(self.asked.machine, request))
        except NidmapError:
            pass  # no curve on this machine
        once = {other.tobytes(): other for other in found}
        once.pop(rows.tobytes(), None)
        yield from once.values()
