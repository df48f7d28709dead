"""Which order of the ranks is tried on which node set: first that from which most is expected.

Of an order is expected what it made, on average, of the best times of the sets
that it was tried on; so every order is tried on the best set, and those that do
well there on the next ones. Orders that take milliseconds come first, then those
that are searched for. How ranks are put together on nodes matters more than which
nodes these are, so for a graph the best ways to do that are mapped on further
sets node by node.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from placement import planners
from placement.errors import NidmapError
from rankmap.joint import work
from rankmap.joint.budget import TUNING
from rankmap.joint.judge import State, canonical
from rankmap.joint.rank_orders import node_by_node, quick_orders, searched_orders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from placement.request import Request
    from placement.support.array_types import Floats, Ints
    from rankmap.joint.budget import Budget
    from rankmap.joint.rank_orders import Make
    from rankmap.pattern import Pattern
    from rankmap.predict import Predictor

    #: By the name of an order: the us that it takes, about, and what makes it.
    Makes = dict[str, tuple[float, Make]]

__all__ = ["Pairing"]

#: What an order that does not fit a set counts for, in best times.
MISFIT = 2.0

first = itemgetter(0)


class Pairing:
    """Tries orders of the ranks on node sets.

    Parameters
    ----------
    asked : Predictor
    pattern : Pattern
        Fitted to the job's slots.
    request : Request
    sets : list of (State, float)
        Node sets in one order each, and their times.
    budget : Budget
        In the part that may be spent.
    us : float
        What judging a state takes.
    judged : callable
        Takes a state and returns its time.
    """

    def __init__(
        self,
        asked: Predictor,
        pattern: Pattern,
        request: Request,
        sets: list[tuple[State, float]],
        budget: Budget,
        us: float,
        judged: Callable[[State], float],
    ) -> None:
        self.asked, self.pattern, self.request = asked, pattern, request
        self.budget, self.us, self.judged = budget, us, judged
        self.sets = [state for state, _ in sets]
        self.best = [time for _, time in sets]
        self.tried: dict[tuple[int, str], float] = {}
        self.on = asked.slots(self.sets[0].rows)
        self.groupings: dict[bytes, tuple[float, Ints | None]] = {}

    def try_orders(self) -> None:
        """Try the orders that take milliseconds, then those that are searched for."""
        us = work.quick_order(len(self.on))
        quick = {name: (us, make) for name, make in quick_orders(self.pattern, self.on).items()}
        self._try(quick, range(len(self.sets)), TUNING.quick)
        self._list_otherwise()
        self._try(quick, range(len(self.sets)), TUNING.quick + TUNING.listed)
        dearest = TUNING.dearest * self.budget.work / TUNING.budget
        searched = searched_orders(self.pattern, self.on, dearest)
        self._try(searched, self._distinct(), 0.0, len(searched))
        if "graph" in searched:
            self._try(self._by_node(), self._distinct(), TUNING.by_node)
        self._try(searched, self._distinct(), 1.0)

    def _try(self, makes: Makes, sets: Sequence[int], share: float, least: int = 0) -> None:
        """Judge orders on sets while a share of the budget lasts, so many in any case."""
        names, best = list(makes), np.array(self.best)[sets]
        costs = np.array([us for us, _ in makes.values()]) + self.us
        times = np.array([[self.tried.get((at, name), np.nan) for name in names] for at in sets])
        while times.size and not self.budget.ended:
            expected = _expected(times, best)
            if least <= 0:
                expected[:, self.budget.done + costs > share * self.budget.limit] = np.inf
            row, k = divmod(int(expected.argmin()), len(names))
            if expected[row, k] == np.inf:
                return
            self.budget.spend(costs[k], f"{self.sets[sets[row]].name}, {names[k]}")
            times[row, k] = self._judge(sets[row], names[k], makes[names[k]][1])
            best[row], least = min(best[row], times[row, k]), least - 1

    def _judge(self, at: int, name: str, make: Make) -> float:
        """Return the time of an order on a set; inf where it does not fit."""
        one = self.sets[at]
        try:
            slots = make(self.asked.slots(one.rows))
        except NidmapError:
            return self.tried.setdefault((at, name), np.inf)
        state = State(one.rows, slots, one.name if name == "row-major" else f"{one.name}, {name}")
        time = self.tried[at, name] = self.judged(state)
        self.best[at] = min(self.best[at], time)
        slots = canonical(state, self.on.ppn).slots
        key = b"" if slots is None else slots.tobytes()
        self.groupings[key] = min((time, slots), self.groupings.get(key, (np.inf, None)), key=first)
        return time

    def _ranked(self) -> list[int]:
        return sorted(range(len(self.sets)), key=self.best.__getitem__)

    def _distinct(self) -> list[int]:
        """Return the sets, the best first, each once whatever the order of its nodes."""
        once: dict[bytes, int] = {}
        for at in self._ranked():
            once.setdefault(np.sort(self.sets[at].rows).tobytes(), at)
        return list(once.values())

    def _list_otherwise(self) -> None:
        """Add the best sets in the order of the machine and along a curve, where they differ."""
        for at in self._ranked()[: TUNING.turned]:
            one = self.sets[at]
            free = np.zeros(len(self.asked.machine), dtype=bool)
            free[one.rows] = True
            lists = [np.flatnonzero(free)]
            with contextlib.suppress(NidmapError):  # no curve on this machine
                request = replace(self.request, free=free, include=one.rows[:0])
                lists.append(planners.find("hilbert")(self.asked.machine, request))
            for rows in lists:
                if not any(np.array_equal(rows, other.rows) for other in self.sets):
                    self.sets.append(one._replace(rows=rows))
                    self.best.append(self.best[at])

    def _by_node(self) -> Makes:
        """Return how the best ways to put ranks together are mapped node by node."""
        best = sorted(self.groupings.values(), key=first)[: TUNING.groupings]
        maps = [node_by_node(self.asked, self.pattern, self.on, slots) for _, slots in best]
        return {f"graph by node {k}": one for k, one in enumerate(maps, 1) if one}


def _expected(times: Floats, best: Floats) -> Floats:
    """Return what orders are expected to take on sets, inf where they have been tried.

    Parameters
    ----------
    times : float64 (sets, orders)
        Of those tried, inf where an order does not fit; nan elsewhere.
    best : float64 (sets,)
        Least time of each set.

    Examples
    --------
    >>> _expected(np.array([[2.0, np.nan], [np.nan, np.nan]]), np.array([1.0, 1.5])).tolist()
    [[inf, 0.0], [3.0, 0.0]]
    """
    tried = ~np.isnan(times)
    ratio = np.where(np.isfinite(times), times / np.maximum(best, 1e-300)[:, None], MISFIT)
    many = tried.sum(axis=0)
    worth = np.where(tried, ratio, 0.0).sum(axis=0) / np.maximum(many, 1)
    return np.where(tried, np.inf, best[:, None] * worth)
