# SPDX-License-Identifier: Apache-2.0
"""Strategies side by side: their nodes, their orders, and the predicted times."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.network.connected import connected_nodes
from nidmap.placement.node_request import NodeRequest
from nidmap.placement.plan import choose_nodes, describe, request_for
from nidmap.placement.planners import PREDICTING, Baseline, Choice, Plan, Request, Watch
from nidmap.placement.scheduler.baseline import scheduler_choice
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.quantities import time_text, times_text
from nidmap.rankmap.predict import Job, Prediction, Predictor
from nidmap.rankmap.predict.gain import Gain, Gains
from nidmap.rankmap.predict.prediction import worst_document
from nidmap.rankmap.search.auto import SearchAnswer, search_answer
from nidmap.rankmap.search.auto_order import AUTO, order_by_strategy
from nidmap.rankmap.search.budget import LIMITS
from nidmap.rankmap.search.cost import ROW_MAJOR, Candidate, Ranking

#: The order of every launcher by default.
DEFAULT_ORDER = ROW_MAJOR

SCHEMA = "nidmap.compare/1"


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One strategy with one order."""

    strategy: str
    order: str
    plan: Plan  # the nodes
    found: Prediction
    ratio: float  # time over the default's time
    gain: Gain  # how many times as fast as the default, as a range over all unknowns
    default: bool  # whether this is the default choice of scheduler and launcher

    def document(self) -> dict[str, Any]:
        """Return the entry as JSON."""
        return {
            "strategy": self.strategy,
            "order": self.order,
            "default": self.default,
            "time_s": self.found.time_s,
            "between": self.found.between.document() if self.found.between else None,
            "ratio": self.ratio,
            "gain": self.gain.document(),
            "limited_by": self.found.limited_by,
            "limited_by_text": self.found.limited_by_text,
            "spent": self.found.spent,
            "bottleneck": worst_document(self.found.bottleneck),
            "by_class": self.found.by_class,
            "terms": {term.name: term.seconds for term in self.found.terms},
            "hop_bytes": self.found.hop_bytes,
            "touches": self.plan.facts["touches"],
            "bound_s": self.found.bound_s,
            "percent_of_bound": 100 * self.found.share,
            "nodelist": self.plan.nodes.fold(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Entries, ``auto`` first, then the fastest; ties in the order requested."""

    entries: tuple[Entry, ...]
    asked: dict[str, Any]  # the question: machine, pattern, nodes, ranks, bytes, routing …
    notes: tuple[str, ...]  # assumptions and omissions
    baseline: Baseline  # the scheduler's own choice

    @property
    def best(self) -> Entry:
        """The fastest entry."""
        return self.entries[0]

    @property
    def default(self) -> Entry:
        """The default nodes and order of scheduler and launcher."""
        return next(entry for entry in self.entries if entry.default)

    @property
    def sentence(self) -> str:
        """One sentence that compares the fastest entry with the default."""
        best, default = self.best, self.default
        job = f"{self.asked['pattern']} on {self.asked['words']}"
        base, faster = self.baseline.words, self._faster_words()
        if best.found.time_s >= default.found.time_s * (1 - 1e-9):
            head = f"no clear gain over {base}" if faster else f"nothing beats {base}"
            return f"{head} for {job}: {_ranged_time(default.found)}{faster}"
        unsure = f"; largest uncertainty: {best.gain.most_unsure}" if best.gain.unknowns else ""
        return (
            f"{best.gain.untold}{best.strategy} with order {best.order} is predicted"
            f" {_times_as_fast(best.gain)}"
            f" as {base} for {job}: likely"
            f" {times_text(best.found.time_s, default.found.time_s)}{unsure}"
            f"{faster}"
        )

    def _faster_words(self) -> str:
        """Name a row likely faster than the more compact choice of `auto`; '' if there is none."""
        first, fastest = self.best, min(self.entries, key=lambda entry: entry.found.time_s)
        if not fastest.found.time_s < first.found.time_s * (1 - LIMITS.clearly):
            return ""
        times = f"{first.found.time_s / fastest.found.time_s:.2f} times as fast"
        sure = (
            f", {_times(fastest.gain)}" if first.found.time_s >= self.default.found.time_s else ""
        )
        ours, theirs = (tuple(x.plan.facts["touches"].values()) for x in (first, fastest))
        further = " and it touches more of the machine" if theirs > ours else ""
        return (
            f"; {fastest.strategy} with order {fastest.order} is likely {times}{sure},"
            f" but that gain is not certain{further}"
        )

    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        loads = self.best.found.loads
        return {
            "schema": SCHEMA,
            **{key: value for key, value in self.asked.items() if key != "words"},
            "routing": loads.routing,
            "wiring": loads.wiring,
            "default": {
                "strategy": self.baseline.strategy,
                "words": self.baseline.words,
                "order": DEFAULT_ORDER,
            },
            "rows": [entry.document() for entry in self.entries],
            "sentence": self.sentence,
            "notes": list(self.notes),
        }


def _times_as_fast(gain: Gain) -> str:
    """Return a gain in words: ``1.1 to 1.3 times as fast``."""
    return "as fast" if gain.range_text == "1 x" else f"{_times(gain)} as fast"


def _times(gain: Gain) -> str:
    """Return a gain in words: ``1.1 to 1.3 times``."""
    return re.sub(r" x$", " times", gain.range_text)


def _ranged_time(found: Prediction) -> str:
    """Return a time with its range, where it has one."""
    ends = [] if found.between is None else [found.between.low, found.between.high]
    low_and_high = [time_text(end) for end in ends]
    range_text = f" ({' to '.join(low_and_high)})" if len(set(low_and_high)) == 2 else ""
    return f"{time_text(found.time_s)}{range_text}"


def compare(
    machine: Machine,
    count: int,
    job: Job,
    *,
    strategies: Sequence[str] = (),
    orders: Sequence[str] = (),
) -> Comparison:
    """Predict a job's time for each strategy and order, and for the default.

    Parameters
    ----------
    machine : Machine
        Where the job is to run; its states say which nodes are free.
    count : int
        Nodes wanted.
    job : Job
        What the job sends.
    strategies : sequence of str
        Planners; empty: the candidates of strategy ``auto``, and ``auto`` itself.
    orders : sequence of str
        Orderings of the ranks; empty: the best quick one of each strategy.

    Returns
    -------
    Comparison

    Raises
    ------
    PlanError, UsageError
        As `compare_strategies`.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:4x4x4,bw=1")
    >>> compare(m, 8, nidmap.Job("alltoall"), strategies=["hilbert"]).best.strategy
    'hilbert'
    """
    return compare_strategies(Predictor(machine, job), NodeRequest(count), strategies, orders)


def compare_strategies(
    model: Predictor,
    nodes: NodeRequest,
    strategies: Sequence[str] = (),
    orders: Sequence[str] = (),
    told: Callable[[float, str], None] | None = None,
    progress: Watch | None = None,
) -> Comparison:
    """Predict every strategy with every order by one model; see `compare`.

    `model`: machine, pattern, ranks per node and how to predict. `nodes`: the nodes wanted. Those
    that are promised to pending jobs are taken where too few are free without them. `strategies`:
    planners; empty: the candidates of strategy ``auto``, and ``auto`` itself. `orders`: orders of
    the ranks (`nidmap.rankmap.orders`); empty: the best quick one of each strategy. `told`: is
    told before each row how much is done (0 to 1), and which row it is. `progress`: is told how
    far a search has come, and ends it by returning True (`nidmap.rankmap.search.budget.Budget`).
    No row of the candidates of ``auto`` is faster than ``auto`` itself.
    """
    free = model.machine.free if nodes.candidates is None else nodes.candidates
    free, note = connected_nodes(model.machine, free)
    notes = [note] if note else []
    promised = nodes.promised
    if promised is not None and int((free & ~promised).sum()) < nodes.count:
        promised = None
    nodes = replace(nodes, candidates=free, promised=promised)
    wanted = request_for(model.machine, nodes)
    nodes = replace(nodes, baseline=wanted.baseline)
    notes += wanted.notes
    idle = replace(nodes, promised=None)  # Slurm's own choice is one of all idle nodes
    default = _default_plan(model.machine, idle, wanted.baseline)
    rows = [_OrderedPlan(default, DEFAULT_ORDER)]
    if strategies:
        for chosen in (default, *_named_plans(model, nodes, strategies, progress)):
            rows += _ordered_rows(model, chosen, orders or [DEFAULT_ORDER], notes)
    else:
        job_request = replace(wanted, job=model.job, progress=progress)
        answer = search_answer(model.machine, job_request)
        chosen = describe(model.machine, wanted, answer.choice(), AUTO)
        rows += _ordered_rows(model, chosen, orders, notes)
        rows += _candidate_rows(model, wanted, answer.ranking, orders, notes)
    once: dict[tuple[str, str], _OrderedPlan] = {}
    for row in rows:
        once.setdefault((row.plan.strategy, row.order), row)
    entries = _predict_rows(model, list(once.values()), told)
    # Rows that are likely faster than auto spread the job further, for an uncertain gain.
    entries.sort(key=lambda entry: (entry.strategy != AUTO, entry.found.time_s))
    # How one row's bytes are routed says nothing of the others.
    routed = Counter(note for entry in entries for note in set(entry.found.loads.notes))
    every = [note for entry in entries for note in entry.found.notes]
    notes += [note for note in every if routed.get(note, len(entries)) == len(entries)]
    common = entries[0].found.asked.items()
    document = {key: value for key, value in common if key not in ("order", "nodelist")}
    return Comparison(tuple(entries), document, tuple(dict.fromkeys(notes)), wanted.baseline)


def _default_plan(machine: Machine, nodes: NodeRequest, baseline: Baseline) -> Plan:
    """Return the scheduler's own choice as a plan."""
    plan = choose_nodes(machine, nodes, baseline.strategy)
    if plan.request is None or nodes.segment is not None:
        return plan
    rows = scheduler_choice(machine, plan.request)  # not always that of the strategy of its name
    if np.array_equal(rows, plan.rows):
        return plan
    return describe(machine, plan.request, Choice(rows), baseline.strategy)


class _OrderedPlan(NamedTuple):
    """A plan with a rank order, not yet predicted."""

    plan: Plan
    order: str
    slot_of_rank: Ints | None = None


def _predict_rows(
    model: Predictor, rows: list[_OrderedPlan], tell: Callable[[float, str], None] | None
) -> list[Entry]:
    """Return rows with their figures; the first is the default."""
    gains = Gains(model, model.place(rows[0].plan.rows))
    entries: list[Entry] = []
    for k, row in enumerate(rows):
        if tell is not None:
            row_words = f"{k + 1} of {len(rows)} rows: {row.plan.strategy}, {row.order}"
            tell(k / len(rows), row_words)
        entries.append(_predict_row(model, gains, row, entries[:1]))
    for k, row in enumerate(rows):
        again = _chosen_among(model, rows, entries, row)
        if again is not None:
            entries[k] = _predict_row(model, gains, again, entries[:1])
    return entries


def _predict_row(model: Predictor, gains: Gains, row: _OrderedPlan, default: list[Entry]) -> Entry:
    """Return a row with its figures; `default` is the default row's, or none for itself."""
    placement = model.place(row.plan.rows, row.slot_of_rank)
    prediction = model.ranged(placement)
    gain = gains.of(placement)  # after it: both have the same steps
    base = default[0].found.time_s if default else prediction.time_s
    ratio = prediction.time_s / base if base else 1.0
    return Entry(row.plan.strategy, row.order, row.plan, prediction, ratio, gain, not default)


def _chosen_among(
    model: Predictor, rows: list[_OrderedPlan], entries: list[Entry], auto: _OrderedPlan
) -> _OrderedPlan | None:
    """Return the answer of `auto` given the other rows; None if they change nothing.

    Its search may have ended before it judged them, and does not try every order.
    """
    answer, request = auto.plan.outlook, auto.plan.request
    if auto.plan.strategy != AUTO or not isinstance(answer, SearchAnswer) or request is None:
        return None
    others = [
        Candidate(
            row.plan.strategy, row.order, model.place(row.plan.rows, row.slot_of_rank),
            entry.found.time_s,
        )
        for row, entry in zip(rows, entries, strict=True)
        if row.plan.strategy != AUTO
    ]  # fmt: skip
    again = answer.among(others)
    if again is answer:
        return None
    chosen = describe(model.machine, request, again.choice(), AUTO)
    return next(_ordered_rows(model, chosen, (), []))


def _named_plans(
    model: Predictor, nodes: NodeRequest, strategies: Sequence[str], progress: Watch | None
) -> Iterator[Plan]:
    """Yield the plans of strategies by name."""
    for strategy in dict.fromkeys(strategies):
        # A predicting strategy has to search by the criterion that is compared here.
        searches = strategy in PREDICTING
        job, watch = (model.job, progress) if searches else (None, None)
        yield choose_nodes(model.machine, nodes, strategy, job, progress=watch)


def _ordered_rows(
    model: Predictor, chosen: Plan, orders: Sequence[str], notes: list[str]
) -> Iterator[_OrderedPlan]:
    """Yield a plan with named orders, or with the one chosen together with its nodes."""
    if chosen.order is not None:
        slots = chosen.order.order
        if slots is None:
            yield _OrderedPlan(chosen, DEFAULT_ORDER)
        else:
            yield _OrderedPlan(chosen, chosen.facts["predicted"]["order"]["strategy"], slots)
        return
    for name in orders:
        if name == DEFAULT_ORDER:
            yield _OrderedPlan(chosen, name)
            continue
        placement = model.place(chosen.rows)
        order = order_by_strategy(placement, model.job, name)
        if order.origin.optimised:
            optimised = order.origin.optimised
            word = "predicted time" if optimised["by"] == "time" else f"J ({optimised['why']})"
            notes.append(f"order {name}: chosen by {word}")
        yield _OrderedPlan(chosen, name, order.slot_of_rank)


def _candidate_rows(
    model: Predictor, wanted: Request, ranking: Ranking, orders: Sequence[str], notes: list[str]
) -> Iterator[_OrderedPlan]:
    """Yield the candidates of `auto`: every planner, and the best of each family."""
    choices, machine = ranking.choices, model.machine
    if orders:
        for name, rows in choices.items():
            chosen = describe(machine, wanted, Choice(rows), name)
            yield from _ordered_rows(model, chosen, orders, notes)
        return
    best = _best_of_families(model, ranking)
    notes.append(
        f"{len(ranking.candidates)} candidates, {len(choices)} choices of nodes with their orders:"
        " the best of each planner and of each family is shown"
    )
    missing = len({_family_name(name) for name in choices} - best.keys())
    if missing:
        notes.append(f"{missing} planners and families are not shown: the search was cut short")
    for candidate in best.values():
        placement = candidate.placement
        chosen = describe(machine, wanted, Choice(placement.rows), candidate.nodes)
        yield _OrderedPlan(chosen, candidate.order, placement.order)


def _best_of_families(model: Predictor, ranking: Ranking) -> dict[str, Candidate]:
    """Return the best candidate of each planner and of each family.

    A search stops judging what certainly is not the best. Of that, rank r on slot r and the order
    that is the best of all are judged to their end here.
    """
    usual = {DEFAULT_ORDER, ranking.best.order}
    best: dict[str, Candidate] = {}
    for candidate in ranking.candidates:
        if candidate.nodes not in ranking.choices:
            continue
        if candidate.cost == math.inf and candidate.order in usual:
            candidate = replace(candidate, cost=model.time(candidate.placement))
        kept = best.setdefault(_family_name(candidate.nodes), candidate)
        if candidate.cost < kept.cost:
            best[_family_name(candidate.nodes)] = candidate
    return best


def _family_name(name: str) -> str:
    """Return the common part of names of node choices that differ only in size."""
    if name[0].isdigit():
        return name.partition(" ")[2].removesuffix("s")
    return "box" if name.startswith("box ") else name
