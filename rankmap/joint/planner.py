"""Strategy ``auto``: the nodes and the order of the ranks that are predicted fastest together."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError
from placement.network import channels
from placement.request import Choice
from rankmap.joint.effort import Effort
from rankmap.joint.job import predictor
from rankmap.joint.judge import State
from rankmap.joint.ranks import indifferent, ready
from rankmap.joint.search import search
from rankmap.joint.why import why
from rankmap.order import Order
from rankmap.predict.asked import fitted
from rankmap.predict.lines import most_steps
from rankmap.predict.phases import ALGORITHMS
from rankmap.slots import parse_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine
    from placement.request import Request
    from rankmap.joint.search import Found
    from rankmap.predict import Prediction, Predictor

    Ints = NDArray[np.int64]

__all__ = ["CLEARLY", "auto"]

#: Slurm's own choice is kept unless another is faster by more than this share.
CLEARLY = 0.002

#: Routings that are too slow to search with, and the one that stands in for them.
SLOW = {"adaptive": "minimal"}

#: Channels times steps up to which a stepwise algorithm is searched with; else ``at-once`` is.
STEPWISE = 200_000

#: Of what was found with a stand-in for a stepwise algorithm so many are predicted as was asked;
#: for a slow routing one.
JUDGED_AGAIN = 2


def auto(machine: Machine, request: Request) -> Choice:
    """Choose the nodes, and the order of the ranks on them, with the least predicted time.

    Starts are what all planners choose, families between packed and spread,
    and all orders on the best of these. From there nodes are exchanged with
    free ones, and with each other, as far as the prediction gets better. The
    answer is never worse, as predicted, than Slurm's own choice.

    Parameters
    ----------
    machine : Machine
    request : Request
        ``request.job`` says what the job sends (see `rankmap.joint.job`),
        with ``deadline`` (seconds of search; default 8 of processor time) and ``progress``
        (is told the share done and what is going on). Without a pattern an
        all-to-all of 1 rank a node is assumed, and said.

    Returns
    -------
    Choice
        With the order, and the figures that it rests on beside the default's.

    Raises
    ------
    PlanError
        Too few nodes are free.
    UsageError
        A pattern whose ranks are not the nodes' slots, an unknown routing …

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:4x4,bw=1")
    >>> found = nidmap.plan(m, 4, strategy="auto", pattern="alltoall", latency=0)
    >>> found.nodes.fold(), found.facts["predicted"]["ratio"]
    ('nid[00000-00001,00004-00005]', 0.666...)
    """
    if len(request.include) > request.count:
        raise UsageError(
            f"{len(request.include)} nodes are included, but only {request.count} wanted"
        )
    asked, assumed = predictor(machine, request.job)
    ready(asked.pattern)
    effort = Effort(_deadline(request.job.get("deadline")), request.job.get("progress"))
    quick = _quick(asked, request.count)
    found = search(quick, request, effort)
    return _Answer(asked, quick, found, effort, assumed).choice()


def _deadline(given: float | None) -> float | None:
    if given is not None and not 0 <= given < np.inf:
        raise UsageError(f"deadline {given:g} s: it must be 0 or more")
    return given


def _quick(asked: Predictor, count: int) -> Predictor:
    """Return the predictor to search with: where that is slow, one that stands in for it."""
    routing = SLOW.get(asked.routing, asked.routing)
    ranks = int(parse_counts(asked.ppn, count).sum())
    most = min(ranks, most_steps(asked.machine, ranks))
    steps = asked.algorithm != ALGORITHMS[0] and most * len(asked.channels)
    algorithm = ALGORITHMS[0] if steps > STEPWISE else asked.algorithm
    if (routing, algorithm) == (asked.routing, asked.algorithm):
        return asked
    found = channels(asked.machine, routing)
    usable = found.bandwidth * asked.constants.payload
    quick = copy(asked)
    quick.routing, quick.algorithm, quick._all = routing, algorithm, None
    quick.channels = replace(found, bandwidth=usable)
    return quick


@dataclass(slots=True)
class _Answer:
    """From what was found to what is said of it."""

    asked: Predictor
    quick: Predictor
    found: Found
    effort: Effort
    assumed: tuple[str, ...]
    _known: dict[bytes, Prediction] = field(default_factory=dict)

    def choice(self) -> Choice:
        """Return the plan: the best state, or the default where nothing is clearly faster."""
        state, best, default = self._decided()
        state, best = self._plain(state, best)
        on = self.asked.slots(state.rows)
        slots = np.arange(len(on)) if state.slots is None else state.slots
        order = Order(slots, on, f"auto: {state.name}", best.asked["pattern"])
        base = self.found.default
        same = base is not None and _same(base.rows, state.rows)
        said = why(best, default, same, "" if state.slots is None else state.name)
        return Choice(
            rows=state.rows,
            why=said,
            facts=self._facts(state, best, default),
            warnings=self._warnings(),
            order=order,
            written=lambda form, path: _written(order, form, path),
        )

    def _decided(self) -> tuple[State, Prediction, Prediction | None]:
        base = self.found.default
        default = None if base is None else self._predicted(base)
        state = self._fastest()
        best = self._predicted(state)
        if base is None or default is None:
            return state, best, default
        if best.time_s < default.time_s * (1 - CLEARLY):
            return state, best, default
        return base, default, default

    def _fastest(self) -> State:
        """Return the state with the least time as was asked, not by what stood in for it."""
        times = [(time, self._sorted(state)) for time, state in self.found.states]
        if self.quick is not self.asked:
            some = {_key(state): state for _, state in times}
            few = 1 if self.asked.routing in SLOW else JUDGED_AGAIN
            least = list(some.values())[:few]
            times = [(self._predicted(state).time_s, state) for state in least]
        return min(times, key=lambda one: one[0])[1]

    def _sorted(self, state: State) -> State:
        """Return a state with its nodes in Slurm's order, where any order of them is the same."""
        on = self.asked.slots(state.rows)
        if state.slots is not None or not indifferent(fitted(self.asked.pattern, on), on):
            return state
        return State(state.rows[on.sorting()], None, state.name)

    def _plain(self, state: State, best: Prediction) -> tuple[State, Prediction]:
        """Return the nodes in Slurm's order with rank r on slot r, where that is as fast."""
        if best is (self._known.get(_key(self.found.default)) if self.found.default else None):
            return state, best
        rows = state.rows[self.asked.slots(state.rows).sorting()]
        plain = State(rows, None, state.name)
        if state.slots is None and np.array_equal(rows, state.rows):
            return state, best
        if self._quickly(plain) > self._quickly(state) * (1 + 1e-9):
            return state, best
        other = self._predicted(plain)
        return (plain, other) if other.time_s <= best.time_s * (1 + 1e-9) else (state, best)

    def _quickly(self, state: State) -> float:
        return self.quick.time(state.rows, state.slots)

    def _predicted(self, state: State) -> Prediction:
        key = _key(state)
        if key not in self._known:
            self._known[key] = self.asked.predict(state.rows, state.slots)
        return self._known[key]

    def _facts(self, state: State, best: Prediction, default: Prediction | None) -> dict[str, Any]:
        """Return the figures, the default's beside them."""
        from rankmap.predict.prediction import worst_document

        ignored = self._ignored(state)
        before = None if default is None else default.time_s
        same = ("pattern", "ranks", "ppn", "bytes", "algorithm", "background")
        return {
            **{key: best.asked[key] for key in same},
            "routing": best.loads.routing,
            "time_s": best.time_s,
            "default_time_s": before,
            "ratio": best.time_s / before if before else (1.0 if before == 0 else None),
            "bound_s": best.bound_s,
            "percent_of_bound": 100 * best.share,
            "bottleneck": worst_document(best.bottleneck),
            "default_bottleneck": None if default is None else worst_document(default.bottleneck),
            "by_class": best.by_class,
            "terms": {term.name: term.seconds for term in best.terms},
            "order": {
                "strategy": "row-major" if state.slots is None else state.name,
                "slots": None if state.slots is None else state.slots.tolist(),
                "sorted_time_s": ignored,
                "needed": ignored > best.time_s * (1 + 1e-6),
            },
            "search": {
                "from": state.name,
                "starts": self.found.tried,
                "judged": self.found.judged,
                "finished": not self.effort.late,
            },
            "rests_on": list(best.notes),
        }

    def _ignored(self, state: State) -> float:
        """Return the time on the same nodes if nothing is said of the ranks.

        The launcher then takes the nodes in Slurm's order, with rank r on slot r.
        """
        rows = state.rows[self.asked.slots(state.rows).sorting()]
        return self._predicted(State(rows, None, "")).time_s

    def _warnings(self) -> tuple[str, ...]:
        late = "the search was cut short by its deadline: --deadline gives it more seconds"
        return (*self.assumed, *((late,) if self.effort.late else ()))


def _key(state: State) -> bytes:
    slots = b"" if state.slots is None else state.slots.tobytes()
    return state.rows.tobytes() + b"|" + slots


def _same(a: Ints, b: Ints) -> bool:
    return np.array_equal(np.sort(a), np.sort(b))


def _written(order: Order, form: str, path: str) -> str:
    """Return an order as text of a format, or of the one that a file's name asks for."""
    from rankmap.emit import emit, format_of

    return emit(order, form or format_of(path))
