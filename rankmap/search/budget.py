# SPDX-License-Identifier: Apache-2.0
"""How long a search continues: a number of evaluations, a deadline, or until it is stopped.

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
    """The limits of a search, tuned with ``benchmarks.questions``."""

    # Placements that are judged at most, of a job of up to `nodes` nodes; of larger ones fewer, in
    # proportion
    judgements: int = 800
    nodes: int = 256
    least: int = 100  # judgements of the largest jobs
    # adapting, divided: how many times longer than usual a judgement takes where routers adapt, and
    # where they do so step by step
    adapting: int = 2
    divided: int = 12
    # Judgements where routers adapt step by step: so many end within the usual deadline, and an
    # answer that the deadline does not cut short is the same on any computer
    stepwise: int = 20
    searched: int = 2  # node choices, the best ones, on which orders are made that are searched for
    kept: int = 6  # placements that exchanges begin from
    # Numbers of groups, chassis, leaves … that a job is spread over, at each level
    counts: int = 10
    shapes: int = 16  # boxes of a torus, and ways to lay a process grid on one
    # bricks, inner: shapes of the bricks of a grid on a node, and of grids of nodes on a router
    bricks: int = 6
    inner: int = 3
    most_ranks: int = 1 << 14  # ranks up to which order ``boxes`` is made
    exchanges: int = 8  # phases, or steps of one, the longest, of which exchanges relieve the links
    stale: int = 100  # unsuccessful disturbances in a row after which exchanges end
    # Choices of nodes closer together that are compared with the best by their ranges
    rivals: int = 3
    # A smaller relative gain counts as none: the default is kept, and candidates are not evaluated
    # if their bound promises no more
    clearly: float = 5e-3

    def budget_of(
        self,
        nodes: int,
        effort: int,
        deadline: float | None,
        watch: Watch | None = None,
    ) -> Budget:
        """Return the budget of a search for a job of this many nodes.

        `effort`: how many times longer than usual a judgement takes, about. `deadline`: processor
        seconds in which there is to be an answer; None means the usual ones.
        """
        usual = DEADLINE if nodes <= LARGE else DEADLINE_OF_LARGE
        return Budget(
            self.judgements_of(nodes, effort),
            usual if deadline is None else deadline,
            watch,
            SAID_OF_STEPS if effort >= self.divided else SAID,
        )

    def judgements_of(self, nodes: int, effort: int = 1) -> int:
        """Return the maximum number of evaluations for a job of this many nodes.

        `effort`: how many times longer than usual a judgement takes, about.
        """
        if effort >= self.divided:
            return self.stepwise
        judgements = self.judgements // effort
        return max(self.least, judgements * self.nodes // max(self.nodes, nodes))


LIMITS = Limits()

#: Default deadline in seconds of processor time: for jobs of up to `LARGE` nodes, and for larger
#: ones.
DEADLINE, LARGE, DEADLINE_OF_LARGE = 4.5, 512, 7.0

#: Time reserved for describing the answer: some seconds, plus about this many evaluations (fewer
#: for exchanges split in steps, as ranges sample them), but at most this share of the deadline.
SAID_S, SAID, SAID_OF_STEPS, MOST_SAID = 0.2, 20, 16, 0.4

#: The part of a judgement that one takes which a bound ends.
PRUNED = 0.25

#: The part of the seconds that are left which the search for one order may take.
SEARCHED = 0.85


class Budget:
    """What a search may still spend.

    `judgements`: placements that may be judged. `deadline`: processor seconds from now on in
    which the search and what is stated about its answer are to end. `watch`: is told each `Moment`;
    where it returns True the search ends, and the best so far is its answer. `answer_judgements`:
    how many take as long as what is stated about the answer. `judged`: placements that were judged.
    `spent`: judgements that they took as long as.
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
        self.judged, self.spent, self.share = 0, 0.0, 0.0
        # late, stopped: whether the deadline, or the watcher, has ended the search
        self.late = self.stopped = False
        self.best_s = math.inf
        self.best: Ints | None = None
        self.text = ""

    def spend(self, text: str = "", judgements: int = 1) -> bool:
        """Count an evaluation about to be made; return whether it may be made.

        `text`: what is going on. `judgements`: how many it takes as long as.
        """
        self.late = self.late or self.past
        if self.ended or self.left <= 0:
            return False
        self.text = text or self.text
        self._tell()
        if not self.ended:
            self.judged += judgements
            self.spent += judgements
        return not self.ended

    def refund(self) -> None:
        """Give back most of the last judgement, which a bound has ended."""
        self.spent -= 1 - PRUNED

    def note_length(self, seconds: float) -> None:
        """Remember the duration of a completed evaluation.

        The text of the answer takes as long as `answer_judgements` such judgements on average.
        The first one is left out, since it makes what all others use.
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
        """Whether there is time to judge what users may ask for, and to compare ranges.

        A quarter of the seconds that are kept for the answer.
        """
        return not self.stopped and time.thread_time() < (3 * self.end + self._last) / 4

    @property
    def ended(self) -> bool:
        """Whether the deadline or the watcher has ended the search."""
        return self.late or self.stopped

    def seconds(self) -> float:
        """Return the processor time for the search of one order."""
        return max(SEARCHED * (self.end - time.thread_time()), 0.0)

    @property
    def left(self) -> int:
        """Number of evaluations that may still be made."""
        return 0 if self.ended else max(0, math.ceil(self.judgements - self.spent))

    def note(self, seconds: float, rows: Ints) -> None:
        """Remember the best so far."""
        self.best_s, self.best = seconds, rows

    def _tell(self) -> None:
        if self.watch is not None and not self.stopped:
            spent = (time.thread_time() - self._began) / max(self.end - self._began, 1e-9)
            self.share = max(self.share, min(self.spent / self.judgements, 1.0), min(spent, 1.0))
            self.stopped = bool(self.watch(Moment(self.share, self.text, self.best_s, self.best)))
