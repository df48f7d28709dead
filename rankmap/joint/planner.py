"""Strategy ``auto``: the nodes and the order of the ranks that are predicted fastest together.

What is said of the answer is one sentence: what the plan is expected to win
against the scheduler's own choice, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from placement.errors import UsageError
from placement.machine import Machine
from placement.network.connected import connected_nodes
from placement.request import Choice, Request
from placement.support.array_types import Floats
from placement.support.quantities import size_text, time_text
from rankmap.binding import copies_inside
from rankmap.emit import emit, format_of
from rankmap.joint import work
from rankmap.joint.auto_order import without_time
from rankmap.joint.budget import TUNING, Budget
from rankmap.joint.followed import exchange_nodes
from rankmap.joint.job import predictor, stand_in
from rankmap.joint.judge import State
from rankmap.joint.node_sets import default
from rankmap.joint.rank_orders import ready
from rankmap.joint.search import Found, cheapest, cost, search
from rankmap.joint.segments import Segments, whole_segments
from rankmap.order import Order
from rankmap.predict import Prediction, Predictor
from rankmap.predict.gain import Gain, Gains, Placed
from rankmap.predict.job_pattern import fit_pattern
from rankmap.predict.prediction import PhaseTime, worst_document
from rankmap.score import plain
from rankmap.short_orders import fit_format

__all__ = ["auto", "reason", "why"]


def auto(machine: Machine, request: Request) -> Choice:
    """Choose the nodes, and the order of the ranks on them, with the least predicted time.

    Starts are what all planners choose, families between packed and spread,
    and all orders on the best of these. From there nodes are exchanged with
    free ones, and with each other, as far as the prediction gets better. The
    answer is never worse, as predicted, than any start or Slurm's own choice.

    Parameters
    ----------
    machine : Machine
    request : Request
        ``request.job`` says what the job sends (see `rankmap.joint.job`),
        with ``deadline`` (seconds of search; default 8 of processor time) and ``progress``
        (is told each `rankmap.joint.budget.Moment`, and ends the search by
        returning True). Without a pattern an all-to-all of 1 rank a node is
        assumed, and said.

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
    free, note = connected_nodes(machine, request.free, request.include)
    if note:
        request, assumed = replace(request, free=free), (*assumed, note)
        request.rows()  # too few are an answer too
    ready(asked.pattern)
    deadline = request.job.get("deadline")
    if deadline is not None and not 0 <= deadline < np.inf:
        raise UsageError(f"deadline {deadline:g} s: it must be 0 or more")
    budget = Budget(deadline, request.job.get("progress"))
    rows, base = request.rows()[: request.count], request.baseline
    timeless = without_time(asked.slots(rows), asked.routing)
    quick = asked if timeless else stand_in(asked, rows)
    look = cheapest if timeless else search

    def worth(state: State) -> float:
        return cost(quick, state) if timeless else quick.time(state.rows, state.slots)

    segments = None
    if request.segment is None:
        found = look(quick, request, budget)
    else:
        segments = whole_segments(quick, request, worth)
        found = look(quick, segments.narrowed(request), budget)
        found = segments.only(found, worth, default(machine, request), base.strategy)
        assumed = (*assumed, segments.note)
    answer = _Answer(asked, quick, found, budget, assumed, request, worth, timeless, segments)
    return answer.choice()


@dataclass(slots=True)
class _Answer:
    """From what was found to what is said of it.

    Attributes
    ----------
    worth : callable
        Returns the seconds of a state that the search has gone by, or J.
    timeless : str
        Why no time can be told, so that J was gone by; '' where it can.
    """

    asked: Predictor
    quick: Predictor
    found: Found
    budget: Budget
    assumed: tuple[str, ...]
    request: Request
    worth: Callable[[State], float]
    timeless: str = ""
    segments: Segments | None = None
    _known: dict[bytes, Prediction] = field(default_factory=dict)

    def choice(self) -> Choice:
        """Return the plan: the best state, or the default where nothing is clearly faster."""
        base = self.found.default
        default = None if base is None else self._predicted(base)
        state, best = self._fastest()
        gain = None if base is None else self._gain(state, base)
        if base is not None and default is not None and self._allowed(base):
            others = self._next_fastest(state, default.time_s)
            while state is not base and not self._better(state, best, gain):
                state = next(others, base)
                best, gain = self._predicted(state), self._gain(state, base)
        on = self.asked.slots(state.rows)
        slots = np.arange(len(on)) if state.slots is None else state.slots
        order = Order(slots, on, f"auto: {state.name}", best.asked["pattern"])
        same = base is not None and np.array_equal(np.sort(base.rows), np.sort(state.rows))
        if self.timeless and base is not None:
            said = self._by_j(state, base)
        else:
            said = why(best, default, gain, same, self.request.baseline.words)

        def written(form: str | None, path: str | None, limit: str | None) -> tuple[str, str]:
            """Return the order as text of a format, and how its library is told it."""
            form = form or format_of(path)
            fitted, told = fit_format(order, form, "sorted", limit, {"predictor": self.asked})
            return emit(fitted, form), told

        return Choice(
            rows=state.rows,
            why=said,
            facts=self._facts(state, best, default, gain),
            warnings=tuple(self._warnings(order, gain)),
            order=order,
            written=written,
        )

    def _better(self, state: State, best: Prediction, gain: Gain | None) -> bool:
        """Return whether a state is worth leaving the baseline for: faster, and not unlikely so."""
        base = self.found.default
        assert base is not None
        if self.timeless:
            return self.worth(state) < self.worth(base) * (1 - 1e-9)
        if gain is None or best.time_s >= self._predicted(base).time_s * (1 - TUNING.clearly):
            return False
        return gain.pays(TUNING.clearly)

    def _by_j(self, state: State, base: State) -> str:
        """Return the sentence where J was gone by."""
        least, usual = self.worth(state), self.worth(base)
        own, by = self.request.baseline.words, f"chosen by J ({self.timeless})"
        if state is base:
            return f"{own} is kept, {by}: J = {plain(usual):,}"
        change = f"{abs(1 - least / usual):.1%} {'less' if least < usual else 'more'}"
        return f"{by}: J = {plain(least):,}, {change} than the {plain(usual):,} of {own}"

    def _allowed(self, state: State) -> bool:
        """Return whether a state keeps to the segments that were asked for."""
        return self.segments is None or self.segments.hold(state)

    def _gain(self, state: State, base: State) -> Gain | None:
        """Return what a state wins over the baseline; None where it is the baseline."""
        if _key(state) == _key(base):
            return None
        gains = Gains(self.asked, Placed(base.rows, base.slots))
        return gains.of(Placed(state.rows, state.slots))

    def _fastest(self) -> tuple[State, Prediction]:
        """Return the fastest of the finalists, in Slurm's order where that is as fast."""
        found = [(state, self._predicted(state)) for state in self._finalists()]
        state, best = min(found, key=lambda one: one[1].time_s)
        if self.quick is not self.asked and self.asked.following and self.segments is None:
            spare = np.setdiff1d(self.request.rows(), state.rows)
            fixed = np.array(self.request.include, dtype=np.int64)
            state = exchange_nodes(self.asked, state, spare, fixed, self.budget)
            best = self._predicted(state)
        listed = self._in_slurms_order(state)
        if not self._allowed(listed) or self.worth(listed) > self.worth(state) * (1 + 1e-9):
            return state, best
        other = self._predicted(listed)
        same = self.timeless or other.time_s <= best.time_s * (1 + 1e-9)
        return (listed, other) if same else (state, best)

    def _next_fastest(self, first: State, slower: float) -> Iterator[State]:
        """Yield a few states to look at where the fastest may lose more than it likely gains.

        They are the starts, and what else was predicted, as far as they are clearly faster
        than the baseline, which takes `slower` seconds.
        """
        most = slower * (1 - TUNING.clearly)
        if self.timeless or self._predicted(first).time_s >= most:
            return
        quick = self.quick is self.asked
        several = self.found.starts if quick else (*self.found.states, *self.found.starts)
        once = {_key(one): one for one in several if quick or _key(one) in self._known}
        once.pop(_key(first), None)
        by_time = sorted(once.values(), key=lambda one: self._predicted(one).time_s)
        for one in by_time[: TUNING.next_fastest]:
            if self._predicted(one).time_s < most:
                yield one

    def _finalists(self) -> Iterator[State]:
        """Yield the states to predict as was asked.

        The best alone, where it was found by the very predictor; else the
        best few and every start, as long as the budget lasts.
        """
        if self.quick is self.asked:
            yield self.found.states[0]
            return
        us = work.judging(self.asked, self.found.states[0].rows)
        self.budget.part(TUNING.finals, "as asked", TUNING.least_finals * us)
        once = {_key(one): one for one in (*self.found.states, *self.found.starts)}
        for k, state in enumerate(once.values()):
            if not self.budget.spend(us) and k:
                return
            yield state

    def _in_slurms_order(self, state: State) -> State:
        rows = state.rows[self.asked.slots(state.rows).sorting()]
        return State(rows, None, state.name)

    def _predicted(self, state: State) -> Prediction:
        key = _key(state)
        if key not in self._known:
            self._known[key] = self.asked.predict(state.rows, state.slots)
        return self._known[key]

    def _facts(
        self, state: State, best: Prediction, default: Prediction | None, gain: Gain | None
    ) -> dict[str, Any]:
        """Return the figures, the default's beside them."""
        # What a launcher does that is told nothing: nodes in Slurm's order, rank r on slot r.
        ignored = self._in_slurms_order(state)
        ignored_s = self._predicted(ignored).time_s
        needed = ignored_s > best.time_s * (1 + 1e-6)
        if self.timeless:
            needed = self.worth(ignored) > self.worth(state)
        before = None if default is None else default.time_s
        same = ("pattern", "ranks", "ppn", "bytes", "algorithm", "background")
        return {
            **{key: best.asked[key] for key in same},
            "routing": best.loads.routing,
            "time_s": best.time_s,
            "default_time_s": before,
            "gain": None if default is None else (gain or Gain(1.0, 1.0, 1.0)).document(),
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
                "sorted_time_s": ignored_s,
                "needed": needed,
            },
            "chosen": self._chosen(state),
            "search": {
                "from": state.name,
                "starts": self.found.tried,
                "judged": self.found.judged,
                "finished": not self.budget.ended,
            },
            "rests_on": list(best.notes),
        }

    def _chosen(self, state: State) -> dict[str, Any]:
        """Return what the plan was chosen by, as the orders' ``optimised`` has it."""
        if not self.timeless:
            return {"by": "time"}
        base = self.found.default
        usual = None if base is None else plain(self.worth(base))
        costs = {"cost": plain(self.worth(state)), "default_cost": usual}
        return {"by": "J", "why": self.timeless, **costs}

    def _warnings(self, order: Order, gain: Gain | None) -> Iterator[str]:
        """Yield what a user should know before trusting the plan."""
        yield from self.assumed
        if self.budget.stopped:
            yield "the search was stopped: this is the best until then"
        elif self.budget.late:
            yield "the search was cut short by its deadline: --deadline gives it more seconds"
        if gain is not None and not self.timeless and gain.low < 1 - TUNING.clearly:
            yield (
                f"this may be slower than {self.request.baseline.words}: {gain.low:.2f} x as fast"
                f" at worst (most unsure: {gain.most_unsure})"
            )
        pattern = fit_pattern(self.asked.pattern, order.on)
        copies = copies_inside(order, pattern, self.asked.size)
        if copies:
            yield copies.sentence()


def _key(state: State) -> bytes:
    slots = b"" if state.slots is None else state.slots.tobytes()
    return state.rows.tobytes() + b"|" + slots


#: Links that carry less than this share of the busiest of their class are not counted as used.
USED = 1e-6


def why(
    best: Prediction, default: Prediction | None, gain: Gain | None, same: bool, base: str
) -> str:
    """Return the sentence.

    Parameters
    ----------
    best : Prediction
        Of the plan.
    default : Prediction or None
        Of the baseline; None where the scheduler would start nothing.
    gain : Gain or None
        Of the plan over the baseline; None where it is the baseline.
    same : bool
        Whether both are the same nodes.
    base : str
        What the baseline is called.
    """
    if default is None:
        return f"{time_text(best.time_s)} expected; {base} would start no such job"
    if gain is None:
        return _kept_sentence(best, base)
    if not default.time_s:
        return "no placement is faster than another: what is sent takes no time here"
    times = f"{time_text(best.time_s)} against {time_text(default.time_s)}"
    here = " on the same nodes by the order of the ranks" if same else ""
    unsure = f"; most unsure: {gain.most_unsure}" if gain.unknowns else ""
    unsure += f"; {gain.loses_if}" if gain.loses_if else ""
    likely = f", likely {gain.likely:.2f} x" if gain.unknowns else ""
    head = f"{gain.range_text} as fast as {base}{here}{likely} ({times}{unsure})"
    return f"{head}: {reason(best, default)}"


def _kept_sentence(found: Prediction, base: str) -> str:
    if found.share > 0.999:
        return (
            f"{base} is already best: {time_text(found.time_s)},"
            f" {np.floor(1000 * found.share) / 10:.3g} % of the limit for any nodes"
        )
    return f"{base} is kept: nothing tried is clearly faster ({time_text(found.time_s)})"


def reason(best: Prediction, default: Prediction) -> str:
    """Return why one placement is faster than another.

    Goes by the phase in which most is won and the link that binds there in
    the slower one: how uneven the load of its class is, and what becomes of it.
    """
    pairs = list(zip(default.phases, best.phases, strict=True))
    before, after = max(pairs, key=lambda pair: pair[0].seconds - pair[1].seconds)
    if before.bandwidth_s - after.bandwidth_s < (before.seconds - after.seconds) / 2:
        return _latency(best, default)
    worst = before.loads.worst()
    if worst.kind in ("injection", "ejection"):
        return _own_links(before, after)
    then, now = (_loads(one, worst.kind) for one in (before, after))
    top = float(then.max())
    uneven = top / then.mean()
    if uneven >= 1.05:
        what = f"one {worst.kind} link carries {uneven:.1f} x the mean"
    elif len(then) > 1:
        what = f"{len(then)} {worst.kind} links carry {size_text(top)} each"
    else:
        what = f"one {worst.kind} link carries {size_text(top)}"
    return f"there {what}; {_becomes(then, now, worst.kind)}"


def _becomes(before: Floats, after: Floats, kind: str) -> str:
    """Say what the plan makes of the load of the class that binds in the default.

    The busiest link's load is all bytes over the links that carry them, times
    how much more than the mean it has: what of the three changes most is named.
    """
    if not len(after):
        return f"the plan takes no {kind} link"
    fewer = before.sum() / after.sum()
    wider = len(after) / len(before)
    uneven = after.max() / after.mean()
    evener = before.max() / before.mean() / uneven
    most = max(fewer, wider, evener)
    if most < 1.01:
        return "the plan's have more bandwidth left"
    if wider == most:
        return f"the plan spreads it over {len(after)} (there {len(before)})"
    if fewer == most:
        return f"the plan sends {100 * (1 - 1 / fewer):.0f} % less over {kind} links"
    if uneven < 1.05:
        return "the plan's carry about the same each"
    return f"the plan's busiest carries {uneven:.1f} x its mean"


def _own_links(before: PhaseTime, after: PhaseTime) -> str:
    worst = before.loads.worst()
    less = 1 - after.loads.by_class()[worst.kind] / worst.seconds
    share = f"here {100 * less:.0f} % less"
    return f"there a node sends {size_text(worst.load)} over its own link, {share}"


def _latency(best: Prediction, default: Prediction) -> str:
    """Say which of the other terms is less."""
    after = {one.name: one.seconds for one in best.terms}
    saved = {one.name: one.seconds - after.get(one.name, 0.0) for one in default.terms}
    name = max(saved, key=lambda one: saved[one])
    words = {
        "latency": "messages pass fewer links",
        "messages": "fewer messages leave a node",
        "bandwidth": "the busiest links carry less",
    }
    return f"{words.get(name, f'less {name}')} (saves {time_text(saved[name])})"


def _loads(found: PhaseTime, kind: str) -> Floats:
    """Return the bytes on the links of a class that carry any."""
    channels = found.loads.channels
    if kind not in channels.kinds:
        return np.zeros(0)
    own = found.loads.load[channels.kind == channels.kinds.index(kind)]
    return np.asarray(own[own > USED * own.max(initial=0.0)])
