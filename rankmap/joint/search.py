"""The search: starts, then steps from the best of them, few nodes by table, many by prices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from placement.plan import DEFAULT
from rankmap.joint import table
from rankmap.joint.guided import Guided
from rankmap.joint.judge import Judge, State, canonical
from rankmap.joint.laid import laid
from rankmap.joint.race import Nodes, Race
from rankmap.joint.ranks import indifferent
from rankmap.joint.small import Small, traffic
from rankmap.joint.starts import default, starts
from rankmap.predict.asked import fitted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.request import Request
    from rankmap.joint.effort import Effort
    from rankmap.joint.judge import Score
    from rankmap.predict import Predictor

    Ints = NDArray[np.int64]

__all__ = ["Found", "search"]

#: Free nodes whose routes are put into a table, at least and at most.
LEAST, FEW = 20, 64

#: A table has to have so many nodes more than the job.
SPARE = 8

#: Numbers in such a table, at most.
TABLE_SIZE = 1 << 24

#: Multiplications of the search over a table.
TABLE_WORK = 1.2e9

#: Disturbances in a row that win nothing, after which such a search ends.
STALE = 100

#: What judging node sets, what orders on them, and what steps may take, in us on the machine
#: that these were set on.
SETS, ORDERS, STEPS = 4e5, 1.6e6, 1e6

#: us that a rank of many all-to-alls takes on a torus, where their ranks are scattered.
SCATTERED = 2.0

#: Node sets that are judged, and steps, at least.
LEAST_SETS, LEAST_STEPS = 12, 12

#: States that the search goes on from.
KEPT = 6

#: Groupings of the ranks that a table's search goes on with.
GROUPINGS = 4

#: Closer to the limit than this share, nothing is left to win.
CLOSE = 1e-6


@dataclass(slots=True)
class Found:
    """What a search has found.

    Attributes
    ----------
    default : State or None
        Slurm's own nodes with rank r on slot r; None where it takes none.
    states : list of (float, State)
        The best, with their times; never empty.
    tried : dict of str to float
        Least time of each start.
    judged : int
        States that the predictor was asked for.
    """

    default: State | None
    states: list[tuple[float, State]]
    tried: dict[str, float] = field(default_factory=dict)
    judged: int = 0


def search(asked: Predictor, request: Request, effort: Effort) -> Found:
    """Search nodes and an order of the ranks with the least predicted time.

    Parameters
    ----------
    asked : Predictor
    request : Request
    effort : Effort

    Returns
    -------
    Found

    Raises
    ------
    UsageError
        A pattern whose ranks are not the slots.
    """
    one = _Search(asked, request, effort)
    one.begin()
    if one.at_the_limit():
        return one.found()
    if len(one.rows) <= one.room():
        one.by_table(one.rows, (0.4, 1.0))
        return one.found()
    guided = one.by_prices()
    if guided is not None and request.count + SPARE <= one.room():
        one.by_table(one.window(guided), (0.7, 1.0))
    return one.found()


class _Search:
    def __init__(self, asked: Predictor, request: Request, effort: Effort) -> None:
        self.asked, self.request, self.effort = asked, request, effort
        self.judge = Judge(asked)
        self.rows = request.rows()
        self.default = default(asked.machine, request)
        first = self.rows[: request.count] if self.default is None else self.default
        on = asked.slots(first)
        self.pattern, self.ppn = fitted(asked.pattern, on), on.ppn
        self.alike = indifferent(self.pattern, on)
        self.kept: list[tuple[float, float, int, State]] = []
        self.fastest: tuple[float, State] | None = None
        self.tried: dict[str, float] = {}
        self.times: dict[int, float] = {}
        self.us = self._a_judgement(len(on))

    def _a_judgement(self, ranks: int) -> float:
        """Return the us that judging a state takes, about: a number that no clock decides."""
        details = self.judge.details(self.rows[: self.request.count])
        size = len(self.asked.channels)
        pairs = [min(len(phase.total.source), 1 << 20) for phase, _ in details]
        us = 400 + 0.15 * ranks + sum(200 + 0.12 * size + 0.1 * many for many in pairs)
        if self.asked.machine.topology.kind == "torus":  # lines are looked at router by router
            us += SCATTERED * ranks * sum(len(phase.total.within) > 1 for phase, _ in details)
        if self.asked.routing == "single" and self.asked.machine.topology.kind == "dragonfly":
            whole = sum(len(phase.total.within) > 0 for phase, _ in details)
            us += (0.003 + 0.012 * whole) * details[0][0].total.routers ** 2 if details else 0
        return us

    def offer(self, state: State, score: Score | None = None) -> float:
        """Judge a state unless its score is known, and keep it where it is among the best."""
        state = canonical(state, self.ppn)
        order = b"" if state.slots is None else state.slots.tobytes()
        rows = np.sort(state.rows) if self.alike else state.rows
        key = hash((rows.tobytes(), order))
        if key in self.times:
            return self.times[key]
        score = score or self.judge.score(state.rows, state.slots)
        self.times[key] = score.time
        self.kept.append((score.soft, score.time, len(self.times), state))
        self.kept.sort(key=lambda one: one[:3])
        del self.kept[KEPT:]
        if self.fastest is None or score.time < self.fastest[0]:
            self.fastest = score.time, state
        return score.time

    def start(self, state: State) -> float:
        """Offer a beginning; return its time."""
        time = self.offer(state)
        name = state.name.partition(",")[0]
        self.tried[name] = min(time, self.tried.get(name, np.inf))
        return time

    def begin(self) -> None:
        """Judge all beginnings: every node set, and orders on them."""
        self.effort.begin(max(SETS, LEAST_SETS * self.us), "node sets", (0.0, 0.1))
        sets = []
        if self.default is not None:
            sets.append(self._set(DEFAULT, self.default))
        for name, rows in starts(self.asked.machine, self.request):
            if not self.effort.spend(self.us, name) and sets:
                break
            sets.append(self._set(name, rows))
        if self.alike:
            return
        self.effort.begin(ORDERS, "orders", (0.1, 0.4))
        sets += self._laid()
        Race(self.asked, self.pattern, self.request, sets, self.us, self._raced).run()

    def _set(self, name: str, rows: Ints) -> Nodes:
        time = self.start(State(rows, None, name))
        return Nodes(name, rows, time, {"row-major": time})

    def _laid(self) -> list[Nodes]:
        """Judge boxes of a torus that the process grid fits; return their nodes."""
        found: list[Nodes] = []
        if self.pattern.dims is None or self.ppn is None:
            return found
        ways = laid(self.asked.machine, self.request, self.pattern.dims, self.ppn)
        for name, rows, slots in ways:
            if not self.effort.spend(self.us, name):
                break
            time = self.start(State(rows, slots, f"{name}, as the grid lies"))
            found.append(Nodes(name, rows, time))
        return found

    def _raced(self, state: State, us: float) -> float | None:
        """Judge a state that took so many us to make; None where there may be no more."""
        enough = self.effort.spend(us + self.us, state.name)
        return self.start(state) if enough else None

    def at_the_limit(self) -> bool:
        """Return whether the best is as good as any nodes could be for its order of the ranks."""
        if not self.alike:
            return False
        _, time, _, state = self.kept[0]
        best = self.asked.predict(state.rows, state.slots)
        return time <= best.bound_s * (1 + CLOSE) + sum(
            term.seconds for term in best.terms if term.name != "bandwidth"
        )

    def room(self) -> int:
        """Return how many nodes' routes may be put into a table."""
        size = len(self.asked.channels)
        if self.asked.routing == "valiant" and size > 4000:
            return 0  # sent pair by pair, over almost all channels
        return int(np.clip((TABLE_SIZE / max(1, size)) ** 0.5, LEAST, FEW))

    def window(self, guided: Guided) -> Ints:
        """Return the nodes of the best states, and free ones that would pay least, ascending."""
        room = self.room()
        best = self.kept[0][3]
        rows = [best.rows, guided.cheapest(best, max(SPARE, (room - self.request.count) // 2))]
        rows += [state.rows for *_, state in self.kept[1:]]
        found = np.concatenate(rows)
        _, first = np.unique(found, return_index=True)
        return np.sort(found[np.sort(first)[:room]])

    def by_table(self, rows: Ints, span: tuple[float, float]) -> None:
        """Search among some rows with all their routes in a table."""
        routes = table.made(self.asked, rows)
        self.effort.begin(TABLE_WORK, "every step", span)
        must = np.isin(rows, self.request.include)
        groups = [
            _Grouping(self, routes, must, states, np.random.default_rng(self.request.seed))
            for states in self._groupings(rows)
        ]
        for group in groups:
            group.first()
        groups = [group for group in groups if group.works] or groups[:1]
        turn = stale = 0
        while stale < STALE and groups[0].works and self.effort.spend(0):
            groups.sort(key=lambda group: group.value)
            before = groups[0].value
            groups[0 if turn % 3 else turn // 3 % len(groups)].disturbed()
            won = min(group.value for group in groups) < before * (1 - CLOSE)
            turn, stale = turn + 1, 0 if won else stale + 1
        for group in groups:
            group.offer()

    def _groupings(self, rows: Ints) -> list[list[State]]:
        """Return the states kept that are on some rows, those with the same ranks a place together.

        The best state's nodes are always among the rows.
        """
        found: dict[bytes, list[State]] = {}
        for *_, state in self.kept:
            if not np.isin(state.rows, rows).all():
                continue
            key = b"" if state.slots is None else state.slots.tobytes()
            found.setdefault(key, []).append(state)
        return list(found.values())[:GROUPINGS]

    def by_prices(self) -> Guided | None:
        """Search with what the binding links are fed by; return the search if it can go on."""
        guided = Guided(
            self.judge, self.request.free, self.request.include, not self.alike, self.request.seed
        )
        self.effort.begin(max(STEPS, LEAST_STEPS * self.us), "steps", (0.4, 0.7))
        for *_, state in list(self.kept):
            after, score = guided.descend(state, lambda: self.effort.spend(self.us))
            self.offer(after, score)
        stale = 0
        going = guided.works and not guided.idle(self.kept[0][3])
        while going and stale < STALE and self.effort.spend(0):
            before = self.kept[0][0]
            some = self.kept[0 if stale % 3 else stale // 3 % len(self.kept)][3]
            after, score = guided.descend(
                guided.disturbed(some), lambda: self.effort.spend(self.us)
            )
            self.offer(after, score)
            stale = 0 if self.kept[0][0] < before * (1 - CLOSE) else stale + 1
        return guided if going else None

    def found(self) -> Found:
        """Return what was found."""
        states = [(time, state) for _, time, _, state in self.kept]
        states += [self.fastest] if self.fastest is not None else []
        states.sort(key=lambda one: one[0])
        base = None if self.default is None else State(self.default, None, DEFAULT)
        return Found(base, states, self.tried, self.judge.judged)


class _Grouping:
    """The search over a table for one way to put ranks together on nodes."""

    def __init__(
        self,
        whole: _Search,
        routes: table.Table,
        must: NDArray[np.bool_],
        states: list[State],
        rng: np.random.Generator,
    ) -> None:
        self.whole, self.states, self.rng = whole, states, rng
        self.slots = states[0].slots
        self.rows = routes.rows
        carried = traffic(whole.asked, states[0].rows, self.slots)
        self.small = Small(routes, carried, must, not whole.alike, rng)
        self.free = np.flatnonzero(~must)
        self.best, self.value = np.searchsorted(self.rows, states[0].rows), np.inf
        self.works = len(self.rows) > 1 and (not whole.alike or len(self.rows) > len(self.best))

    def first(self) -> None:
        """Descend from the states that are known."""
        for state in self.states:
            self._from(np.searchsorted(self.rows, state.rows))

    def disturbed(self) -> None:
        """Descend from a disturbed copy of the best, and now and then from anywhere."""
        at = self.best.copy()
        if self.rng.random() < 0.15:
            at = self._anywhere()
        for _ in range(int(self.rng.integers(2, 5))):
            at = self._nudged(at)
        self._from(at)

    def _from(self, at: Ints) -> None:
        at = self.small.descend(at, lambda work: self.whole.effort.spend(work))
        value = self.small.time(at)
        if value < self.value:
            self.best, self.value = at, value

    def _anywhere(self) -> Ints:
        """Return a placement drawn by lot, all nodes in it that must be."""
        must = np.flatnonzero(self.small.kept)
        drawn = self.rng.permutation(self.free)[: len(self.best) - len(must)]
        return np.asarray(self.rng.permutation(np.concatenate([must, drawn])))

    def _nudged(self, at: Ints) -> Ints:
        """Return a placement after one step drawn by lot."""
        out = at.copy()
        place = int(self.rng.integers(len(at)))
        spare = np.setdiff1d(self.free, at)
        leaves = len(spare) and not self.small.kept[at[place]]
        if leaves and (self.whole.alike or self.rng.random() < 0.5):
            out[place] = self.rng.choice(spare)
        else:
            other = int(self.rng.integers(len(at)))
            out[[place, other]] = at[[other, place]]
        return out

    def offer(self) -> None:
        """Let the predictor judge the best."""
        name = f"{self.states[0].name}, then every step"
        self.whole.offer(State(self.rows[self.best], self.slots, name))
