"""Which orders of the ranks are made on which node sets.

All on all, while that is little work. Else the quick orders race: all of them
on the best few sets, those that do best there on the others; and the dear
ones, which are searched for, go to the sets that are best by then. How ranks
are put together on nodes matters more than which nodes these are, so the best
ways to do that are mapped on further sets node by node.

Work is counted in us by what each thing is known to take, never by a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from placement import planners
from placement.errors import NidmapError
from rankmap.joint.judge import State
from rankmap.joint.ranks import dear_orders, quick_orders

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from placement.request import Request
    from rankmap.graph import Graph
    from rankmap.joint.ranks import Make
    from rankmap.pattern import Pattern
    from rankmap.predict import Predictor

    Ints = NDArray[np.int64]
    Offer = Callable[[State, float], float | None]

__all__ = ["Nodes", "Race"]

#: us that quick orders and those that are searched for may take.
QUICK_WORK, DEAR_WORK = 6e5, 8e5

#: us that mapping a graph may take: before it is mapped node by node, that, and all together.
FIRST_WORK, NODE_WORK, GRAPH_WORK = 2e5, 4e5, 1.1e6

#: Sets that all quick orders are made on, where not on all.
PILOTS = 3

#: Quick orders that are made on the other sets then.
AHEAD = 4

#: Sets that are listed in other orders of their nodes too.
TURNED = 4

#: Ways to put ranks together that are mapped node by node.
GROUPINGS = 3

#: Edges between nodes up to which they are.
MOST_EDGES = 1 << 14


@dataclass(slots=True, eq=False)
class Nodes:
    """A node set in one order of its nodes.

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


class Race:
    """Makes orders on node sets and offers them.

    Parameters
    ----------
    asked : Predictor
    pattern : Pattern
        Fitted to the job's slots.
    request : Request
    sets : list of Nodes
        Judged with row-major already.
    us : float
        What judging a state takes.
    offer : callable
        Takes a state and the us of making it; returns its time, or None
        where the whole search may do no more.
    """

    def __init__(
        self,
        asked: Predictor,
        pattern: Pattern,
        request: Request,
        sets: list[Nodes],
        us: float,
        offer: Offer,
    ) -> None:
        self.asked, self.pattern, self.request = asked, pattern, request
        self.sets, self.us, self.offer = sets, us, offer
        on = asked.slots(sets[0].rows)
        self.ppn, self.ranks = on.ppn, len(on)
        self.quick = quick_orders(pattern, on)
        self.dear = dear_orders(pattern, on)
        self.groupings: dict[bytes, tuple[float, Ints | None]] = {}
        self.over = False

    def run(self) -> None:
        """Make and offer what there is work for."""
        self._quick()
        self._turned()
        if "graph" in self.dear:
            self._dear(FIRST_WORK)  # says how ranks are put together
            self._by_node()
            self._dear(GRAPH_WORK)
        self._dear(DEAR_WORK)

    def _ranked(self) -> list[Nodes]:
        """Return the sets, the best first."""
        return sorted(self.sets, key=lambda one: one.best)

    def _quick(self) -> None:
        each = self.us + 0.2 * self.ranks
        many = int(QUICK_WORK / each)
        ranked = self._ranked()
        pilots = len(ranked) if len(ranked) * len(self.quick) <= many else PILOTS
        pairs = [(one, name) for one in ranked[:pilots] for name in self.quick]
        self._all(pairs, many)
        many -= len(pairs)
        ahead = self._leaders(ranked[:pilots])
        self._all([(one, name) for one in ranked[pilots:] for name in ahead], many)

    def _leaders(self, sets: list[Nodes]) -> list[str]:
        """Return the quick orders that do best on some sets, relative to the best there."""
        floor = [max(one.best, 1e-300) for one in sets]
        worth = {
            name: min(one.tried.get(name, np.inf) / f for one, f in zip(sets, floor, strict=True))
            for name in self.quick
        }
        return sorted(worth, key=lambda name: worth[name])[:AHEAD]

    def _all(self, pairs: list[tuple[Nodes, str]], most: int) -> None:
        for one, name in pairs[: max(0, most)]:
            if name not in one.tried:
                self._made(one, name, self.quick[name], 0.2 * self.ranks)

    def _turned(self) -> None:
        """List the best sets in other orders of their nodes, with the orders that lead there."""
        each = self.us + 0.2 * self.ranks
        left = int(QUICK_WORK / 2 / each)
        for one in self._ranked()[:TURNED]:
            for rows in self._lists(one.rows):
                other = Nodes(one.name, rows)
                leaders = sorted(
                    (name for name in one.tried if name in self.quick), key=one.tried.__getitem__
                )
                some = leaders[: max(2, min(2 * AHEAD, left // (2 * TURNED)))]
                self._all([(other, name) for name in dict.fromkeys(["row-major", *some])], left)
                left -= len(some) + 1
                self.sets.append(other)

    def _lists(self, rows: Ints) -> list[Ints]:
        """Return a set in the order of the machine and along a curve, where they differ."""
        free = np.zeros(len(self.asked.machine), dtype=bool)
        free[rows] = True
        found = [np.flatnonzero(free)]
        request = replace(self.request, free=free, include=rows[:0])
        try:
            found.append(planners.find("hilbert")(self.asked.machine, request))
        except NidmapError:
            pass  # no curve on this machine
        once = {other.tobytes(): other for other in found}
        once.pop(rows.tobytes(), None)
        return list(once.values())

    def _dear(self, work: float) -> None:
        """Make the orders that are searched for on the best sets."""
        for name, (us, make) in self.dear.items():
            many = int(work / (us + self.us))
            for one in self._distinct()[: max(1, many)]:
                if name not in one.tried:
                    self._made(one, name, make, us)

    def _distinct(self) -> list[Nodes]:
        """Return the sets, the best first, each once whatever the order of its nodes."""
        once: dict[bytes, Nodes] = {}
        for one in self._ranked():
            once.setdefault(np.sort(one.rows).tobytes(), one)
        return list(once.values())

    def _made(self, one: Nodes, name: str, make: Make, us: float) -> None:
        if self.over:
            return
        try:
            slots = make(self.asked.slots(one.rows))
        except NidmapError:
            one.tried[name] = np.inf  # does not fit this pattern or these nodes
            return
        title = one.name if name == "row-major" else f"{one.name}, {name}"
        self._offered(one, name, State(one.rows, slots, title), us)

    def _offered(self, one: Nodes, name: str, state: State, us: float) -> None:
        time = self.offer(state, us)
        if time is None:
            self.over = True
            return
        one.tried[name] = time
        one.best = min(one.best, time)
        self._grouped(state, time)

    def _grouped(self, state: State, time: float) -> None:
        """Keep how the ranks are put together."""
        from rankmap.joint.judge import canonical

        slots = canonical(state, self.ppn).slots
        key = b"" if slots is None else slots.tobytes()
        if key not in self.groupings or time < self.groupings[key][0]:
            self.groupings[key] = time, slots

    def _by_node(self) -> None:
        """Map the best ways to put ranks together on the best sets, node by node."""
        if self.ppn is None or "graph" not in self.dear:
            return
        best = sorted(self.groupings.values(), key=lambda one: one[0])[:GROUPINGS]
        graphs = [(slots, self._graph(slots)) for _, slots in best]
        fit = [(slots, found) for slots, found in graphs if found is not None]
        left = NODE_WORK
        for one in self._distinct():
            for slots, found in fit:
                us = 5_000 + 100.0 * len(one.rows) + 4.0 * len(found.indices)
                left -= us + self.us
                if left < 0 or self.over:
                    return
                rows = self._mapped(one.rows, found)
                state = State(rows, slots, f"{one.name}, graph by node")
                self._offered(one, "graph by node", state, us)

    def _graph(self, slots: Ints | None) -> Graph | None:
        """Return what nodes exchange, as a graph; None where that has too many edges."""
        from rankmap.graph import from_edges
        from rankmap.predict.summing import joined

        rows = self.sets[0].rows
        on = self.asked.slots(rows)
        phases = self.asked.phases(self.pattern, on, slots)
        sums = joined([phase.flows() for phase in phases], len(rows))
        found = from_edges(len(rows), sums.source, sums.target, sums.weight)
        return found if 0 < len(found.indices) <= 2 * MOST_EDGES else None

    def _mapped(self, rows: Ints, graph: Graph) -> Ints:
        """Return the rows in the order of the places that are mapped on them."""
        from rankmap.distance import job_distance
        from rankmap.refine.mapping import map_ranks
        from rankmap.slots import Slots

        machine = self.asked.machine
        ones = np.ones(len(rows), dtype=np.int64)
        on = Slots(machine.names[rows], ones, machine, rows)
        return np.asarray(rows[map_ranks(graph, ones, job_distance(on))])
