"""The search: node sets, orders of the ranks on them, then steps from the best of both.

Where no bandwidth is known the least J is sought, among the planners' nodes alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from placement.request import Request
from placement.support.array_types import Ints
from rankmap.joint.budget import TUNING, Budget
from rankmap.joint.exact_steps import ExactSteps, route_table
from rankmap.joint.judge import Judge, Score, State, canonical
from rankmap.joint.node_sets import boxes, default, grid_on_boxes, levels, planner_sets
from rankmap.joint.pairing import NodeSet, Pairing
from rankmap.joint.priced_steps import PricedSteps
from rankmap.joint.rank_orders import ranks_alike
from rankmap.orders.auto import choose
from rankmap.predict import Predictor
from rankmap.predict.job_pattern import fit_pattern
from rankmap.score.distance import job_distance
from rankmap.score.traffic import cost_of

__all__ = ["Found", "cheapest", "cost", "search"]

#: Node sets, those of the least J with rank r on slot r, on which orders are made by J.
CHEAPEST = 4


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
    rows = one.rows
    if len(rows) > one.room() and not budget.ended:
        rows = one.step_by_prices()
    if len(rows) and not budget.ended:
        one.look_at_every_step(rows)
    return one.found()


def cost(asked: Predictor, state: State) -> float:
    """Return J of a state.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.predict import Predictor
    >>> asked = Predictor(nidmap.load_machine("tree:2x2,dist=1:3"), "ring")
    >>> [cost(asked, State(np.array(rows), None, "")) for rows in ([0, 2, 1, 3], [0, 1, 2, 3])]
    [12.0, 8.0]
    """
    slots = asked.slots(state.rows)
    node = slots.node if state.slots is None else slots.node[state.slots]
    return cost_of(fit_pattern(asked.pattern, slots), node, job_distance(slots))


def cheapest(asked: Predictor, request: Request, budget: Budget) -> Found:
    """Return the nodes and the order with the least J among the planners' nodes.

    That is for machines of which no bandwidth is known: predicted time would tell of
    latency alone there, and the order of given nodes goes by J then
    (`rankmap.joint.auto_order`).

    Parameters
    ----------
    asked : Predictor
    request : Request
    budget : Budget

    Returns
    -------
    Found
        Never of a higher J than the scheduler's own choice.
    """
    machine, own = asked.machine, default(asked.machine, request)
    base = None if own is None else State(own, None, request.baseline.strategy)
    sets = [*planner_sets(machine, request), *levels(machine, request)]
    first = [base] if base and bool(request.free[base.rows].all()) else []
    starts = [*first, *(State(rows, None, name) for name, rows in sets)]
    once: dict[bytes, State] = {}
    for one in starts:
        once.setdefault(one.rows.tobytes(), one)
    plain = sorted(once.values(), key=lambda one: cost(asked, one))
    budget.part(1.0, "orders by J")
    ordered = []
    for one in plain[:CHEAPEST]:
        if not budget.spend(budget.work / CHEAPEST, one.name):
            break
        slots = asked.slots(one.rows)
        found = choose(fit_pattern(asked.pattern, slots), slots, budget.work / 1e6 / CHEAPEST)
        if found.cost < found.default_cost:
            ordered.append(State(one.rows, found.order.slots, f"{one.name}, {found.strategy}"))
    states = sorted([*plain, *ordered], key=lambda one: cost(asked, one))
    return Found(base, states, starts, judged=len(states))


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
        self.pattern, self.ppn = fit_pattern(asked.pattern, on), on.ppn
        alike = ranks_alike(self.pattern, asked.algorithms(self.pattern))
        self.ordered = self.ppn is None or not alike
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

    def judge_node_sets(self) -> list[NodeSet]:
        """Judge every node set with rank r on slot r; return the sets."""
        least = TUNING.least_sets * self.judge.us
        self.budget.part(TUNING.node_sets, "node sets", least)
        sets: dict[bytes, NodeSet] = {}
        for name, rows, needed in self._node_sets():
            key = (rows if self.ordered else np.sort(rows)).tobytes()
            if key in sets:
                continue
            enough = self.budget.spend(self.judge.us, name)
            if sets and (self.budget.ended or not (enough or needed)):
                break
            state = State(rows, None, name)
            self.starts.append(state)
            time = self.start(state)
            sets[key] = NodeSet(name, rows, time, {"row-major": time})
        return list(sets.values())

    def _node_sets(self) -> Iterator[tuple[str, Ints, bool]]:
        """Yield name and nodes of every node set, and whether it is judged in any case."""
        machine, request = self.asked.machine, self.request
        if self.default is not None and bool(request.free[self.default].all()):
            yield self.request.baseline.strategy, self.default, True
        for name, rows in planner_sets(machine, request):
            yield name, rows, True
        torus = machine.topology.kind == "torus"
        for name, rows in boxes(machine, request) if torus else levels(machine, request):
            yield name, rows, False

    def judge_orders(self, sets: list[NodeSet]) -> None:
        """Judge orders of the ranks on node sets, and the process grid laid on boxes of a torus."""
        self.budget.part(TUNING.orders, "orders")
        if self.pattern.dims is not None and self.ppn is not None:
            machine, dims = self.asked.machine, self.pattern.dims
            for name, rows, slots in grid_on_boxes(machine, self.request, dims, self.ppn):
                if not self.budget.spend(self.judge.us, name):
                    break
                time = self.start(State(rows, slots, f"{name}, as the grid lies"))
                sets.append(NodeSet(name, rows, time))
        one = Pairing(self.judge, self.pattern, self.request, sets, self.budget, self.start)
        one.quick()
        one.listed_otherwise()
        one.searched()

    def at_the_limit(self) -> bool:
        """Return whether the best is as good as any nodes could be for its order of the ranks."""
        _, time, _, state = self.kept[0]
        best = self.asked.predict(state.rows, state.slots)
        rest = sum(term.seconds for term in best.terms if term.name != "bandwidth")
        return time <= best.bound_s * (1 + TUNING.won) + rest

    def room(self) -> int:
        """Return how many nodes' routes may be put into a table."""
        size = len(self.asked.channels)
        if self.asked.routing == "valiant" and size > 4000:
            return 0  # sent pair by pair, over almost all channels
        most = (TUNING.table / max(1, size)) ** 0.5
        return int(np.clip(most, TUNING.fewest_free, TUNING.most_free))

    def step_by_prices(self) -> Ints:
        """Step among all free nodes; return those among which to look at every step."""
        swaps, must = self.ordered, self.request.include
        least = TUNING.least_steps * self.judge.us
        self.budget.part(TUNING.prices, "steps", least)
        free = self.request.free
        steps = PricedSteps(self.judge, free, must, swaps, self.rng, self.budget.spend)
        for *_, state in list(self.kept):
            self.offer(*steps.descend(state))
        if not steps.works or steps.idle(self.kept[0][3]):
            return self.rows[:0]
        self._again_and_again(steps, self.rows)
        room = self.room()
        if self.request.count + TUNING.spare > room:
            return self.rows[:0]
        return self._window(steps, room)

    def _window(self, steps: PricedSteps, room: int) -> Ints:
        """Return the nodes of the best states, and free ones that would pay least, ascending."""
        best = self.kept[0][3]
        most = max(TUNING.spare, (room - self.request.count) // 2)
        found = [best.rows, steps.cheapest(best, most)]
        rows = np.concatenate([*found, *(state.rows for *_, state in self.kept[1:])])
        _, first = np.unique(rows, return_index=True)
        return np.sort(rows[np.sort(first)[:room]])

    def look_at_every_step(self, rows: Ints) -> None:
        """Step among some nodes with all their routes in a table; the best state is on them."""
        self.budget.part(TUNING.steps, "every step")
        if len(rows) == 1 or (len(rows) == self.request.count and not self.ordered):
            return
        table = route_table(self.asked, rows)
        must = np.isin(rows, self.request.include)
        steps = ExactSteps(self.asked, table, must, self.ordered, self.rng, self.budget.spend)
        for *_, state in list(self.kept):
            if np.isin(state.rows, rows).all():
                named = state._replace(name=f"{state.name}, then every step")
                self.offer(*steps.descend(named))
        self._again_and_again(steps, rows)

    def _again_and_again(self, steps: PricedSteps | ExactSteps, rows: Ints) -> None:
        """Step from disturbed copies of the best states until nothing has been won for long."""
        stale = 0
        while stale < TUNING.stale and self.budget.spend(0):
            before = self.kept[0][0]
            on = [state for *_, state in self.kept if np.isin(state.rows, rows).all()]
            some = on[0 if stale % 3 else stale // 3 % len(on)]
            anywhere = isinstance(steps, ExactSteps) and self.rng.random() < TUNING.anywhere
            self.offer(*steps.descend(self._disturbed(some, rows, anywhere)))
            stale = 0 if self.kept[0][0] < before * (1 - TUNING.won) else stale + 1

    def _disturbed(self, state: State, rows: Ints, anywhere: bool) -> State:
        """Return a copy of a state after a few steps drawn by lot, or placed anywhere."""
        at, rng = state.rows.copy(), self.rng
        stays = np.isin(at, self.request.include)
        if anywhere:
            spare = np.setdiff1d(rows, at[stays])
            at[~stays] = rng.permutation(spare)[: int((~stays).sum())]
            at = rng.permutation(at)
            return State(at, state.slots, state.name)
        spare = rng.permutation(np.setdiff1d(rows, at)).tolist()
        for _ in range(int(rng.integers(1, 4 + len(at) // 32))):
            place, other = rng.integers(len(at), size=2).tolist()
            if spare and not stays[place] and (not self.ordered or rng.random() < 0.5):
                at[place] = spare.pop()
            else:
                at[[place, other]] = at[[other, place]]
                stays[[place, other]] = stays[[other, place]]
        return State(at, state.slots, state.name)

    def found(self) -> Found:
        """Return what was found."""
        assert self.fastest is not None
        ranked = sorted(self.kept, key=lambda one: one[1])
        states = [self.fastest[1], *(state for *_, state in ranked)]
        strategy = self.request.baseline.strategy
        base = None if self.default is None else State(self.default, None, strategy)
        return Found(base, states, self.starts, self.tried, self.judge.judged)
