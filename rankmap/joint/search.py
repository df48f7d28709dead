"""The search: node sets, orders of the ranks on them, then steps from the best of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rankmap.joint.budget import TUNING
from rankmap.joint.judge import Judge, State, canonical
from rankmap.joint.node_sets import boxes, default, grid_on_boxes, levels, planned
from rankmap.joint.pairing import Pairing
from rankmap.joint.rank_orders import indifferent
from rankmap.joint.steps import Steps
from rankmap.predict.asked import fitted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement.request import Request
    from placement.support.array_types import Ints
    from rankmap.joint.budget import Budget
    from rankmap.joint.judge import Score
    from rankmap.predict import Predictor


__all__ = ["Found", "search"]


@dataclass(slots=True)
class Found:
    """What a search has found.

    Attributes
    ----------
    default : State or None
        Slurm's own nodes with rank r on slot r; None where it takes none.
    states : list of State
        The best, the fastest first; never empty.
    starts : list of State
        Every node set with rank r on slot r, the planners' first.
    tried : dict of str to float
        Least time of each start.
    judged : int
        States that the predictor was asked for.
    """

    default: State | None
    states: list[State]
    starts: list[State]
    tried: dict[str, float] = field(default_factory=dict)
    judged: int = 0


def search(asked: Predictor, request: Request, budget: Budget) -> Found:
    """Search nodes and an order of the ranks with the least predicted time.

    Parameters
    ----------
    asked : Predictor
    request : Request
    budget : Budget

    Raises
    ------
    UsageError
        A pattern whose ranks are not the slots.
    """
    one = _Search(asked, request, budget)
    sets = one.judge_node_sets()
    if one.ordered:
        one.judge_orders(sets)
    elif one.at_the_limit():
        return one.found()
    one.take_steps()
    return one.found()


class _Search:
    """The best states so far, and what they are looked for with.

    Attributes
    ----------
    ordered : bool
        Whether the order of the ranks makes a difference.
    kept : list of (float, float, int, State)
        The best states: what they are worth, their time, their number.
    times : dict of int to float
        Time of every state that was judged, by a hash of it.
    """

    def __init__(self, asked: Predictor, request: Request, budget: Budget) -> None:
        self.asked, self.request, self.budget = asked, request, budget
        self.rng = np.random.default_rng(request.seed)
        self.rows = request.rows()
        self.default = default(asked.machine, request)
        first = self.rows[: request.count] if self.default is None else self.default
        on = asked.slots(first)
        self.pattern, self.ppn = fitted(asked.pattern, on), on.ppn
        self.ordered = not indifferent(self.pattern, on, asked.algorithms(self.pattern))
        self.judge = Judge(asked, first)
        self.kept: list[tuple[float, float, int, State]] = []
        self.fastest: tuple[float, State] | None = None
        self.times: dict[int, float] = {}
        self.starts: list[State] = []
        self.tried: dict[str, float] = {}

    def offer(self, state: State, score: Score | None = None) -> float:
        """Judge a state, unless its score is known, and keep it if it is among the best."""
        state = canonical(state, self.ppn)
        order = b"" if state.slots is None else state.slots.tobytes()
        rows = state.rows if self.ordered else np.sort(state.rows)
        key = hash((rows.tobytes(), order))
        if key in self.times:
            return self.times[key]
        score = score or self.judge.score(state.rows, state.slots)[0]
        self.times[key] = score.time
        self.kept.append((score.soft, score.time, len(self.times), state))
        self.kept.sort(key=lambda one: one[:3])
        del self.kept[TUNING.kept :]
        if self.fastest is None or score.time < self.fastest[0]:
            self.fastest = score.time, state
            self.budget.note(score.time, state.rows)
        return score.time

    def start(self, state: State) -> float:
        """Offer a beginning; return its time."""
        time = self.offer(state)
        name = state.name.partition(",")[0]
        self.tried[name] = min(time, self.tried.get(name, np.inf))
        return time

    def judge_node_sets(self) -> list[tuple[State, float]]:
        """Judge every node set with rank r on slot r; return them with their times."""
        least = TUNING.least_sets * self.judge.us
        self.budget.part(TUNING.node_sets, "node sets", least)
        sets: dict[bytes, tuple[State, float]] = {}
        for name, rows, needed in self._node_sets():
            key = (rows if self.ordered else np.sort(rows)).tobytes()
            if key in sets:
                continue
            enough = self.budget.spend(self.judge.us, name)
            if sets and (self.budget.ended or not (enough or needed)):
                break
            state = State(rows, None, name)
            self.starts.append(state)
            sets[key] = state, self.start(state)
        return list(sets.values())

    def _node_sets(self) -> Iterator[tuple[str, Ints, bool]]:
        """Yield name and nodes of every node set, and whether it is judged in any case."""
        machine, request = self.asked.machine, self.request
        if self.default is not None:
            yield self.request.baseline.strategy, self.default, True
        for name, rows in planned(machine, request):
            yield name, rows, True
        torus = machine.topology.kind == "torus"
        for name, rows in boxes(machine, request) if torus else levels(machine, request):
            yield name, rows, False

    def judge_orders(self, sets: list[tuple[State, float]]) -> None:
        """Judge orders of the ranks on node sets, and the process grid laid on boxes of a torus."""
        self.budget.part(TUNING.orders, "orders")
        if self.pattern.dims is not None and self.ppn is not None:
            machine, dims = self.asked.machine, self.pattern.dims
            for name, rows, slots in grid_on_boxes(machine, self.request, dims, self.ppn):
                if not self.budget.spend(self.judge.us, name):
                    break
                time = self.start(State(rows, slots, f"{name}, as the grid lies"))
                sets.append((State(rows, None, name), time))
        us = self.judge.us
        Pairing(
            self.asked, self.pattern, self.request, sets, self.budget, us, self.start
        ).try_orders()

    def at_the_limit(self) -> bool:
        """Return whether the best is as good as any nodes could be for its order of the ranks."""
        _, time, _, state = self.kept[0]
        best = self.asked.predict(state.rows, state.slots)
        rest = sum(term.seconds for term in best.terms if term.name != "bandwidth")
        return time <= best.bound_s * (1 + TUNING.won) + rest

    def take_steps(self) -> None:
        """Step from the best states, then from disturbed copies of them, while that wins."""
        if self.budget.ended or len(self.rows) == 1:
            return
        if len(self.rows) == self.request.count and not self.ordered:
            return
        self.budget.part(TUNING.steps, "steps", TUNING.least_steps * self.judge.us)
        free, must = self.request.free, self.request.include
        steps = Steps(self.judge, free, must, self.ordered, self.rng, self.budget)
        for *_, state in list(self.kept):
            self.offer(*steps.descend(state))
        stale = TUNING.stale if steps.idle(self.kept[0][3]) else 0
        while stale < TUNING.stale and self.budget.spend(0):
            before = self.kept[0][0]
            some = self.kept[0 if stale % 3 else stale // 3 % len(self.kept)][3]
            self.offer(*steps.descend(steps.disturb(some)))
            stale = 0 if self.kept[0][0] < before * (1 - TUNING.won) else stale + 1

    def found(self) -> Found:
        """Return what was found."""
        assert self.fastest is not None
        ranked = sorted(self.kept, key=lambda one: one[1])
        states = [self.fastest[1], *(state for *_, state in ranked)]
        base = (
            None
            if self.default is None
            else State(self.default, None, self.request.baseline.strategy)
        )
        return Found(base, states, self.starts, self.tried, self.judge.judged)
