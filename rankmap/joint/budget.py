"""How long a search goes on: so much work, never past a deadline, and until somebody stops it.

The work is counted, not timed: the same question has the same answer on any
machine. It is counted in us that the parts of a search take, about
(`rankmap.joint.work`). The deadline is for machines so slow that the work takes
too long; where it cuts a search short, that is said. Where nobody names a
deadline it is one of processor time, so that a machine that is busy with other
things gives the same answer, only later.

`TUNING` has all numbers that the search goes by. Whether one is good is told by
`python -m benchmarks.auto`: none of them is worth anything beyond the time and
the ratios that it shows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from placement.support.array_types import Ints

__all__ = ["DEADLINE", "LONGEST", "TUNING", "Budget", "Moment", "Tuning"]


@dataclass(slots=True)
class Tuning:
    """What a search may spend, and where it changes its way.

    Attributes
    ----------
    budget : float
        us of the whole search. The next five divide it.
    node_sets : float
        Share for node sets with rank r on slot r.
    orders : float
        Share for orders of the ranks on them.
    prices : float
        Share for steps by the prices of links, among all free nodes.
    steps : float
        Share for looking at every step among few nodes.
    finals : float
        Share for predicting the best as was asked, where something quicker
        stood in; spent beyond the budget, as all planners' nodes are.
    followed : float
        Share for exchanges of nodes that are judged by ranks that are followed; beyond it, too.
    every : float
        Share for looking at every order of few ranks on given nodes.
    quick, listed, by_node, boxes, graph : float
        Shares of the part of the orders: those that take milliseconds; sets
        listed in other orders of their nodes; graphs mapped node by node;
        order boxes; graphs mapped as they are.
    stand_in : float
        Share of the budget: a predictor that takes longer looks at fewer
        steps of a stepwise algorithm.
    dearest : float
        us that making one order may take.
    least_sets, least_steps, least_finals : int
        Node sets, steps by prices and final predictions that there is
        always time for; also the fewest steps of an algorithm that are
        looked at.
    next_fastest : int
        States after the fastest whose gain is worked out where the fastest
        may lose more than it likely gains.
    counts : int
        Numbers of groups, chassis, leaves … that a job is spread over, at each level.
    shapes : int
        Boxes of a torus, and ways to lay a process grid on one.
    bricks, inner : int
        Shapes of the bricks of a grid on a node, and of grids of nodes on a router.
    pilots : int
        Node sets that all quick orders are tried on, where not on all.
    ahead : int
        Quick orders that are then tried on the others.
    turned : int
        Node sets that are listed in other orders of their nodes.
    groupings : int
        Ways to put ranks together on nodes that are mapped node by node.
    most_edges : int
        Pairs of nodes that exchange something, up to which they are.
    kept : int
        States that steps begin from.
    anywhere : float
        Share of disturbances that place a small job anywhere.
    stale : int
        Disturbances in a row that win nothing, after which steps end.
    fewest_free, most_free : int
        Free nodes up to which every step is looked at: the first on any
        machine, the second where the table of routes has room.
    spare : int
        Nodes more than the job has that such a table must have.
    table : int
        Numbers in that table, at most.
    figures : int
        Costs between nodes that are worked out for one bill, at most.
    step_figures : int
        Costs between nodes that are worked out for one step of a large job, at most: a second or
        two, after which a search can be told to end.
    payers : int
        Places with the largest bills, for which free nodes are looked for.
    singles : int
        Moves that are tried one by one where many at once win nothing.
    patience : int
        Rounds of such steps without a better state, after which they end.
    busy : float
        A link that comes this near to the busiest, as a share of its time, is
        looked at in every step.
    at_once : float
        Multiplications of looking at steps once, beyond which only some
        places are looked at.
    looks : int
        Looks at some places that win nothing, after which a descent ends.
    moves : int
        Steps that are taken after one look, at most.
    won, won_exactly : float
        Share of the time that a step has to win, by prices and by the table.
    clearly : float
        Slurm's own choice is kept unless another is faster by this share.
    """

    budget: float = 4e6
    node_sets: float = 0.1
    orders: float = 0.4
    prices: float = 0.25
    steps: float = 0.25
    finals: float = 0.1
    followed: float = 0.75
    every: float = 0.5
    quick: float = 0.4
    listed: float = 0.2
    by_node: float = 0.25
    boxes: float = 0.5
    graph: float = 0.8
    stand_in: float = 0.01
    dearest: float = 1.5e6
    least_sets: int = 12
    least_steps: int = 12
    least_finals: int = 2
    next_fastest: int = 3
    counts: int = 10
    shapes: int = 16
    bricks: int = 6
    inner: int = 3
    pilots: int = 3
    ahead: int = 4
    turned: int = 4
    groupings: int = 3
    most_edges: int = 1 << 14
    kept: int = 6
    anywhere: float = 0.15
    stale: int = 100
    fewest_free: int = 20
    most_free: int = 64
    spare: int = 8
    table: int = 1 << 24
    figures: int = 1 << 20
    step_figures: int = 1 << 25
    payers: int = 4
    singles: int = 5
    patience: int = 4
    busy: float = 0.5
    at_once: float = 4e6
    looks: int = 3
    moves: int = 6
    won: float = 1e-6
    won_exactly: float = 1e-9
    clearly: float = 0.002


TUNING = Tuning()


#: Seconds of processor time after which a search ends, where nobody says a deadline.
DEADLINE = 8.0

#: Seconds by the clock after which it does in any case.
LONGEST = 60.0


class Moment(NamedTuple):
    """What a watcher of a search is told.

    Attributes
    ----------
    share : float
        Of the work that is done, 0 to 1; it never falls.
    text : str
        What is going on.
    best_s : float
        Least predicted time so far; inf before the first.
    best : int64 (n,) or None
        The nodes that have it, as rows of the machine.
    """

    share: float
    text: str
    best_s: float
    best: Ints | None


class Budget:
    """What a search may still spend.

    Parameters
    ----------
    deadline : float or None
        Seconds from now by the clock; None: `DEADLINE` seconds of processor
        time, `LONGEST` by the clock.
    seconds : float
        Of processor time that there are at most, and no more work than is done in them.
    watch : callable or None
        Is told each `Moment`; where it returns True the search ends, and the
        best so far is its answer.

    Attributes
    ----------
    work : float
        us of the whole search.
    late, stopped : bool
        Whether the deadline, or the watcher, came before the work was done.

    Examples
    --------
    >>> one = Budget(60.0)
    >>> one.part(0.5, "node sets")
    >>> half = TUNING.budget / 2
    >>> one.spend(half), one.spend(1), one.late
    (True, False, False)
    """

    def __init__(
        self,
        deadline: float | None = None,
        watch: Callable[[Moment], bool | None] | None = None,
        seconds: float = math.inf,
    ) -> None:
        self.end = time.monotonic() + (LONGEST if deadline is None else deadline)
        usual = DEADLINE if deadline is None else math.inf
        self.end_cpu = time.thread_time() + min(usual, seconds)
        self.work = min(TUNING.budget, seconds * 1e6)
        self.watch = watch
        self.late = self.stopped = False
        self.best_s = math.inf
        self.best: Ints | None = None
        self.text = ""
        self.done = self.limit = self.look = 0.0
        self.begun = self.share = 0.0

    def part(self, share: float, text: str, least: float = 0.0) -> None:
        """Begin a part that may spend a share of the whole, and at least so many us."""
        self.begun += self.share
        self.share, self.text = share, text
        self.done, self.limit, self.look = 0.0, max(share * self.work, least), 0.0
        self._tell()

    def spend(self, us: float, text: str = "") -> bool:
        """Count some work; return whether there was enough left for it."""
        self.done += us
        if self.done >= self.look:
            self.look = self.done + self.limit / 100  # processor time is a system call
            late = time.monotonic() > self.end or time.thread_time() > self.end_cpu
            self.late = self.late or late
        if self.ended:
            return False
        self.text = text or self.text
        self._tell()
        return self.done <= self.limit

    @property
    def ended(self) -> bool:
        """Whether the deadline or the watcher has ended the search."""
        return self.late or self.stopped

    def note(self, seconds: float, rows: Ints) -> None:
        """Remember the best so far."""
        self.best_s, self.best = seconds, rows

    def _tell(self) -> None:
        if self.watch is not None and not self.stopped:
            part = min(1.0, self.done / self.limit) if self.limit else 1.0
            share = min(1.0, self.begun + self.share * part)
            now = Moment(share, self.text, self.best_s, self.best)
            self.stopped = bool(self.watch(now))
