# SPDX-License-Identifier: Apache-2.0
"""How long a search goes on: so many judgements, never past a deadline, until somebody stops it.

Judgements are counted, not timed, so that the same question has the same answer on any machine.
The cap in processor seconds is for questions whose single judgements are slow; where it ends a
search, that is said.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from nidmap.placement.planners import Moment, Watch
from nidmap.placement.support.array_types import Ints


@dataclass(slots=True)
class Limits:
    """How far a search goes: every number that it goes by, found with ``benchmarks.questions``.

    Attributes
    ----------
    judgements : int
        Placements that are judged at most, of a job of up to `nodes` nodes; of larger ones
        fewer, in proportion.
    nodes : int
    least : int
        Judgements of the largest jobs.
    adapting, divided : int
        How many times fewer they are where routers adapt, where they do so step by step.
    searched : int
        Node choices, the best ones, on which orders are made that are searched for.
    kept : int
        Placements that steps begin from.
    counts : int
        Numbers of groups, chassis, leaves … that a job is spread over, at each level.
    shapes : int
        Boxes of a torus, and ways to lay a process grid on one.
    bricks, inner : int
        Shapes of the bricks of a grid on a node, and of grids of nodes on a router.
    groupings : int
        Ways to put ranks together on nodes that are mapped node by node.
    most_edges : int
        Pairs of nodes that exchange something, up to which they are.
    most_ranks : int
        Ranks up to which order ``boxes`` is made.
    offers : int
        Free nodes that steps look at at once, of jobs of so many; of larger ones more.
    figures : int
        Costs between nodes that are worked out for one step, at most.
    exchanges : int
        Steps of an exchange that get prices, those that take longest.
    patience : int
        Rounds of steps without a better placement, after which a descent ends.
    stale : int
        Disturbances in a row that win nothing, after which steps end.
    rivals : int
        Choices of nodes closer together that are compared with the best by their ranges.
    clearly : float
        What is faster by no larger share is as good: the default is kept, and nothing is judged
        whose bound says that it wins no more.
    """

    judgements: int = 800
    nodes: int = 256
    least: int = 100
    adapting: int = 2
    divided: int = 12
    searched: int = 4
    kept: int = 6
    counts: int = 10
    shapes: int = 16
    bricks: int = 6
    inner: int = 3
    groupings: int = 3
    most_edges: int = 1 << 14
    most_ranks: int = 1 << 14
    offers: int = 256
    figures: int = 1 << 22
    exchanges: int = 8
    patience: int = 4
    stale: int = 50
    rivals: int = 3
    clearly: float = 5e-3

    def budget_of(
        self,
        nodes: int,
        effort: int,
        deadline: float | None,
        watch: Watch | None = None,
    ) -> Budget:
        """Return what the search for a job of so many nodes may spend.

        Parameters
        ----------
        nodes : int
        effort : int
            How many times longer than usual a judgement takes, about.
        deadline : float or None
            Processor seconds in which there is to be an answer; None: the usual ones.
        watch : callable or None
            As for `Budget`.
        """
        usual = DEADLINE if nodes <= LARGE else DEADLINE_OF_LARGE
        return Budget(
            self.judgements_of(nodes, effort),
            usual if deadline is None else deadline,
            watch,
            SAID_OF_STEPS if effort >= self.divided else SAID,
        )

    def judgements_of(self, nodes: int, effort: int = 1) -> int:
        """Return how many placements of a job of so many nodes are judged at most.

        Parameters
        ----------
        nodes : int
        effort : int
            How many times longer than usual a judgement takes, about.
        """
        judgements = self.judgements // effort
        return max(self.least, judgements * self.nodes // max(self.nodes, nodes))


LIMITS = Limits()

#: Seconds of processor time in which there is an answer, where nobody says a deadline: of jobs of
#: up to `LARGE` nodes, and of larger ones.
DEADLINE, LARGE, DEADLINE_OF_LARGE = 4.5, 512, 8.0

#: What is said of the answer takes some seconds and as long as so many judgements, about, of
#: exchanges divided in steps fewer, since ranges look at some of these; of the seconds at most
#: this part is kept for it.
SAID_S, SAID, SAID_OF_STEPS, MOST_SAID = 0.2, 20, 16, 0.5

#: The part of the seconds that are left which the search for one order may take.
SEARCHED = 0.85


class Budget:
    """What a search may still spend.

    Parameters
    ----------
    judgements : int
        Placements that may be judged.
    deadline : float
        Processor seconds from now on in which the search and what is said of its answer are to end.
    watch : callable or None
        Is told each `Moment`; where it returns True the search ends, and the
        best so far is its answer.
    answer_judgements : int
        How many take as long as what is said of the answer.

    Attributes
    ----------
    judged : int
        Placements that were judged.
    late, stopped : bool
        Whether the deadline, or the watcher, has ended the search.

    Examples
    --------
    >>> two = Budget(2)
    >>> two.spend(), two.spend(), two.spend(), two.late
    (True, True, False, False)
    """

    def __init__(
        self,
        judgements: int,
        deadline: float = DEADLINE,
        watch: Watch | None = None,
        answer_judgements: int = SAID,
    ) -> None:
        self.judgements, self.watch = judgements, watch
        self._answer_judgements = answer_judgements
        self.deadline = deadline
        self._began = time.thread_time()
        self.end = self._last = self._began + deadline
        self._lengths: list[float] = []
        self.judged, self.share = 0, 0.0
        self.late = self.stopped = False
        self.best_s = math.inf
        self.best: Ints | None = None
        self.text = ""

    def spend(self, text: str = "", judgements: int = 1) -> bool:
        """Count a judgement that is about to be made; return whether it may be.

        Parameters
        ----------
        text : str
            What is going on.
        judgements : int
            How many it takes as long as.
        """
        self.late = self.late or self.past
        if self.ended or self.judged >= self.judgements:
            return False
        self.text = text or self.text
        self._tell()
        if not self.ended:
            self.judged = min(self.judgements, self.judged + judgements)
        return not self.ended

    def note_length(self, seconds: float) -> None:
        """Remember how long a judgement took that was made to its end.

        What is said of the answer takes as long as `answer_judgements` such judgements in the mean.
        The first one is left out, since it makes what all others use.

        Examples
        --------
        >>> budget = Budget(9, 10.0)
        >>> [budget.note_length(seconds) for seconds in (5.0, 0.5)]
        [None, None]
        >>> 4.9 < budget.seconds() / SEARCHED < 5.1
        True
        """
        self._lengths.append(seconds)
        usual = sum(self._lengths[1:]) / max(1, len(self._lengths) - 1)
        answer_s = SAID_S + self._answer_judgements * usual
        self.end = self._last - min(answer_s, MOST_SAID * self.deadline)

    @property
    def past(self) -> bool:
        """Whether the deadline has passed."""
        return time.thread_time() > self.end

    @property
    def may_compare(self) -> bool:
        """Whether there is time to compare the best with others by their ranges."""
        return time.thread_time() < (self.end + self._last) / 2

    @property
    def ended(self) -> bool:
        """Whether the deadline or the watcher has ended the search."""
        return self.late or self.stopped

    def seconds(self) -> float:
        """Return the processor time that one order may be searched for, so that it can be judged.

        Examples
        --------
        >>> 0 < Budget(2, 5.0).seconds() < 5
        True
        """
        return max(SEARCHED * (self.end - time.thread_time()), 0.0)

    @property
    def left(self) -> int:
        """Judgements that may still be made."""
        return 0 if self.ended else self.judgements - self.judged

    def note(self, seconds: float, rows: Ints) -> None:
        """Remember the best so far."""
        self.best_s, self.best = seconds, rows

    def _tell(self) -> None:
        if self.watch is not None and not self.stopped:
            spent = (time.thread_time() - self._began) / max(self.end - self._began, 1e-9)
            self.share = max(self.share, self.judged / self.judgements, min(spent, 1.0))
            self.stopped = bool(self.watch(Moment(self.share, self.text, self.best_s, self.best)))
