"""Strategies side by side: which nodes and which order, and what each is predicted to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from placement.errors import PlanError, UsageError
from placement.machine import Machine
from placement.network.connected import connected_nodes
from placement.plan import plan
from placement.planners import PREDICTING, refusal
from placement.request import Baseline, Plan
from placement.scheduler.baseline import baseline_of
from placement.support.quantities import time_text
from rankmap.order import Order
from rankmap.pattern import Pattern
from rankmap.predict import Prediction, Predictor
from rankmap.predict.gain import Gain, Gains, Placed
from rankmap.predict.prediction import worst_document
from rankmap.slots import Slots

Row = tuple[Plan, str, Prediction, Gain]

__all__ = ["DEFAULT_ORDER", "Comparison", "Entry", "compare", "compare_strategies"]

#: The order that every launcher makes where nobody says another.
DEFAULT_ORDER = "row-major"

#: Planners that are tried where none are named.
STRATEGIES = (
    "slurm-none", "slurm-tree", "slurm-dragonfly", "compact", "blades", "blades-linked", "hilbert",
    "morton", "level-spread", "spread", "random",
)  # fmt: skip

SCHEMA = "nidmap.compare/1"


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One strategy with one order.

    Attributes
    ----------
    strategy, order : str
    plan : Plan
        The nodes.
    found : Prediction
    ratio : float
        Time over the default's time.
    gain : Gain
        How many times as fast as the default, as a range over what is not known.
    default : bool
        Whether this is what the scheduler and the launcher do by themselves.
    """

    strategy: str
    order: str
    plan: Plan
    found: Prediction
    ratio: float
    gain: Gain
    default: bool

    def document(self) -> dict[str, Any]:
        """Return the entry as JSON takes it."""
        return {
            "strategy": self.strategy,
            "order": self.order,
            "default": self.default,
            "time_s": self.found.time_s,
            "ratio": self.ratio,
            "gain": self.gain.document(),
            "binds": self.found.binds,
            "binding": self.found.binding,
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
    """Entries, the fastest first; of equals the one that was asked for first.

    Attributes
    ----------
    entries : tuple of Entry
    asked : dict
        What was asked: machine, pattern, nodes, ranks, bytes, routing …
    notes : tuple of str
        What was assumed, and what was left out.
    baseline : Baseline
        What the scheduler does by itself.
    """

    entries: tuple[Entry, ...]
    asked: dict[str, Any]
    notes: tuple[str, ...]
    baseline: Baseline

    @property
    def best(self) -> Entry:
        """The fastest."""
        return self.entries[0]

    @property
    def default(self) -> Entry:
        """What the scheduler and the launcher do by themselves."""
        return next(entry for entry in self.entries if entry.default)

    @property
    def sentence(self) -> str:
        """What comes of it, in one sentence."""
        best, default = self.best, self.default
        job = f"{self.asked['pattern']} on {self.asked['words']}"
        base = self.baseline.words
        if best.found.time_s >= default.found.time_s * (1 - 1e-9):
            return f"nothing beats {base} for {job}: {time_text(default.found.time_s)}"
        unsure = f"; most unsure: {best.gain.most_unsure}" if best.gain.unknowns else ""
        return (
            f"{best.strategy} with order {best.order} is predicted {best.gain.range_text} as fast"
            f" as {base} for {job}: {time_text(best.found.time_s)} against"
            f" {time_text(default.found.time_s)}{unsure}"
        )

    def document(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
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


def compare(
    machine: Machine,
    count: int,
    pattern: str | Pattern,
    *,
    strategies: Sequence[str] = (),
    orders: Sequence[str] = (DEFAULT_ORDER,),
    **model: Any,
) -> Comparison:
    """Predict what each strategy and order make of a job, and the default beside them.

    Parameters
    ----------
    machine : Machine
    count : int
        Nodes wanted.
    pattern : str or Pattern
    strategies : sequence of str
        Planners; empty: all that apply.
    orders : sequence of str
        Orderings of the ranks.
    **model
        More of what `rankmap.predict.Predictor` takes: ppn, bytes, routing, algorithm,
        latency, background …

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
    >>> compare(m, 8, "alltoall", strategies=["hilbert"]).best.strategy
    'hilbert'
    """
    return compare_strategies(Predictor(machine, pattern, **model), count, strategies, orders)


def compare_strategies(
    asked: Predictor,
    count: int,
    strategies: Sequence[str] = (),
    orders: Sequence[str] = (DEFAULT_ORDER,),
    told: Callable[[float, str], None] | None = None,
    baseline: Baseline | str = "",
    progress: Callable[[Any], bool | None] | None = None,
    **request: Any,
) -> Comparison:
    """Predict every strategy with every order by one model; see `compare`.

    Parameters
    ----------
    asked : Predictor
        Machine, pattern, ranks a node and how to predict.
    count : int
        Nodes wanted.
    strategies : sequence of str
        Planners; empty: all that apply.
    orders : sequence of str
        Orderings of the ranks (`rankmap.orders`).
    told : callable or None
        Is told before each row how much is done (0 to 1), and which row it is.
    baseline : Baseline or str
        What is compared with, or a planner's name; '': what the machine's
        scheduler does by itself.
    progress : callable or None
        Is told how far a strategy that searches has come, and ends its search by
        returning True (`rankmap.joint.budget.Budget`).
    **request
        More of what `placement.plan.plan` takes: candidates, exclude, per_blade, seed …

    Returns
    -------
    Comparison

    Raises
    ------
    PlanError
        Too few nodes are free.
    UsageError
        A strategy or an order that is named but does not apply.

    Examples
    --------
    >>> import nidmap
    >>> from rankmap.predict import Predictor
    >>> m = nidmap.load_machine("torus:4x4x4,bw=1")
    >>> found = compare_strategies(Predictor(m, "alltoall", 1, 1e6), 8, ["hilbert"])
    >>> [(entry.strategy, round(entry.ratio, 2)) for entry in found.entries]
    [('hilbert', 0.67), ('slurm-none', 1.0)]
    """
    if not orders:
        raise UsageError("no order to compare", "name one, as row-major")
    free = request.get("candidates")
    free, note = connected_nodes(asked.machine, asked.machine.free if free is None else free)
    request["candidates"] = free
    notes = [note] if note else []
    own = baseline_of(asked.machine, baseline) if isinstance(baseline, str) else baseline
    request["baseline"] = own
    plans = _plans(asked, count, strategies, request, progress, notes)
    notes += plans[0].warnings
    gains = Gains(asked, Placed(plans[0].rows))
    rows: list[Row] = []
    for k, chosen in enumerate(plans):
        on = asked.slots(chosen.rows)
        for name in _orders_of(chosen, orders, own.strategy):
            if told is not None:
                which = f"{k + 1} of {len(plans)} strategies: {chosen.strategy}, {name}"
                told(k / len(plans), which)
            order, placed = _order(asked, chosen, on, name)
            found = asked.on(on, placed)  # its gain comes behind it: both have the same steps
            rows.append((chosen, order, found, gains.of(Placed(chosen.rows, placed))))
            if placed is not None and placed.optimised:
                said = placed.optimised
                how = "predicted time" if said["by"] == "time" else f"J ({said['why']})"
                notes.append(f"order {order}: chosen by {how}")
    first = next(one for one in rows if (one[0].strategy, one[1]) == (own.strategy, DEFAULT_ORDER))
    base = first[2].time_s
    entries = []
    for one in rows:
        chosen, order, found, gain = one
        ratio = found.time_s / base if base else 1.0
        entries.append(Entry(chosen.strategy, order, chosen, found, ratio, gain, one is first))
    entries.sort(key=lambda entry: entry.found.time_s)
    every = dict.fromkeys((*notes, *(note for e in entries for note in e.found.notes)))
    common = entries[0].found.asked.items()
    document = {key: value for key, value in common if key not in ("order", "nodelist")}
    return Comparison(tuple(entries), document, tuple(every), own)


def _plans(
    asked: Predictor,
    count: int,
    strategies: Sequence[str],
    request: Mapping[str, Any],
    progress: Callable[[Any], bool | None] | None,
    notes: list[str],
) -> list[Plan]:
    """Return the default's plan and those of the strategies; what does not apply is noted."""
    default = request["baseline"].strategy
    found = [plan(asked.machine, count, strategy=default, **request)]
    for strategy in dict.fromkeys(strategies or STRATEGIES):
        if strategy == default:
            continue
        unfit = refusal(asked.machine, strategy)
        if unfit is not None:
            if strategies:
                raise unfit
            notes.append(f"{strategy} is left out: {unfit.message}")
            continue
        # A strategy that predicts has to look for what is compared here.
        searching = {"predictor": asked, "progress": progress} if strategy in PREDICTING else {}
        try:
            found.append(plan(asked.machine, count, strategy=strategy, **{**request, **searching}))
        except PlanError as error:
            if strategies:
                raise
            notes.append(f"{strategy} is left out: {error.message}")
    return found


def _orders_of(chosen: Plan, orders: Sequence[str], default: str) -> list[str]:
    """Return the names of the orders on a plan's nodes; the default has its own order too.

    Nodes that were chosen together with an order are predicted in that order alone.
    """
    if chosen.order is not None:
        return ["its own order"]
    own = [DEFAULT_ORDER] if chosen.strategy == default else []
    return list(dict.fromkeys([*orders, *own]))


def _order(asked: Predictor, chosen: Plan, on: Slots, name: str) -> tuple[str, Order | None]:
    """Return what an order on a plan's nodes is called, and the order; None for the default."""
    if chosen.order is not None:
        order = cast("Order", chosen.order)
        if np.array_equal(order.slots, np.arange(len(order.slots))):
            return DEFAULT_ORDER, None
        return chosen.facts["predicted"]["order"]["strategy"], order
    if name == DEFAULT_ORDER:
        return name, None
    from rankmap.joint.by_strategy import order_by_strategy

    return name, order_by_strategy(on, asked.pattern, name, {"predictor": asked})
