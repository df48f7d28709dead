"""Strategies side by side: which nodes and which order, and what each is predicted to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from placement.errors import PlanError, UsageError
from placement.network.connected import connected_nodes
from placement.plan import DEFAULT, plan
from placement.planners import PREDICTING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from placement.machine import Machine
    from placement.request import Plan
    from rankmap.order import Order
    from rankmap.pattern import Pattern
    from rankmap.predict import Prediction, Predictor

__all__ = ["DEFAULT_ORDER", "Comparison", "Entry", "compare", "compared"]

#: The order that every launcher makes where nobody says another.
DEFAULT_ORDER = "row-major"

#: Planners that are tried where none are named.
STRATEGIES = (
    DEFAULT, "slurm-tree", "slurm-dragonfly", "compact", "blades", "blades-linked", "hilbert",
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
    """

    strategy: str
    order: str
    plan: Plan
    found: Prediction
    ratio: float

    @property
    def default(self) -> bool:
        """Whether this is what Slurm and the launcher do by themselves."""
        return self.strategy == DEFAULT and self.order == DEFAULT_ORDER

    def document(self) -> dict[str, Any]:
        """Return the entry as JSON takes it."""
        from rankmap.predict.prediction import worst_document

        return {
            "strategy": self.strategy,
            "order": self.order,
            "default": self.default,
            "time_s": self.found.time_s,
            "ratio": self.ratio,
            "binds": self.found.binds,
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
    """

    entries: tuple[Entry, ...]
    asked: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def best(self) -> Entry:
        """The fastest."""
        return self.entries[0]

    @property
    def default(self) -> Entry:
        """What Slurm and the launcher do by themselves."""
        return next(entry for entry in self.entries if entry.default)

    @property
    def sentence(self) -> str:
        """What comes of it, in one sentence."""
        from placement.quantities import time_text

        best, default = self.best, self.default
        job = f"{self.asked['pattern']} on {self.asked['words']}"
        if best.found.time_s >= default.found.time_s * (1 - 1e-9):
            return f"nothing beats the default for {job}: {time_text(default.found.time_s)}"
        gain = default.found.time_s / best.found.time_s if best.found.time_s else float("inf")
        return (
            f"{best.strategy} with order {best.order} is predicted {gain:.2f} x as fast as the"
            f" default for {job}: {time_text(best.found.time_s)} against"
            f" {time_text(default.found.time_s)}"
        )

    def document(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        loads = self.best.found.loads
        return {
            "schema": SCHEMA,
            **{key: value for key, value in self.asked.items() if key != "words"},
            "routing": loads.routing,
            "wiring": loads.wiring,
            "default": {"strategy": DEFAULT, "order": DEFAULT_ORDER},
            "rows": [entry.document() for entry in self.entries],
            "sentence": self.sentence,
            "notes": list(self.notes),
        }


def compare(
    machine: Machine,
    count: int,
    pattern: str | Pattern,
    *,
    ppn: int | str | Sequence[int] = 1,
    bytes: float | None = None,  # noqa: A002 - the name of the command's option
    routing: str = "",
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
    ppn : int, str or sequence of int
        Ranks on each node.
    bytes : float or None
        Payload of one message, see `rankmap.predict.predict`.
    routing : str
        '' is the machine's default.
    strategies : sequence of str
        Planners; empty: all that apply.
    orders : sequence of str
        Orderings of the ranks.
    **model
        More of what `rankmap.predict.Predictor` takes: algorithm, latency,
        background …

    Returns
    -------
    Comparison

    Raises
    ------
    PlanError, UsageError
        As `compared`.

    Examples
    --------
    >>> import nidmap
    >>> m = nidmap.load_machine("torus:4x4x4,bw=1")
    >>> compare(m, 8, "alltoall", strategies=["hilbert"]).best.strategy
    'hilbert'
    """
    from rankmap.predict import Predictor

    asked = Predictor(machine, pattern, ppn, bytes, routing, **model)
    return compared(asked, count, strategies, orders)


def compared(
    asked: Predictor,
    count: int,
    strategies: Sequence[str] = (),
    orders: Sequence[str] = (DEFAULT_ORDER,),
    told: Callable[[str], None] | None = None,
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
        Is told before each row which one it is.
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
    >>> found = compared(Predictor(m, "alltoall", 1, 1e6), 8, ["hilbert"])
    >>> [(entry.strategy, round(entry.ratio, 2)) for entry in found.entries]
    [('hilbert', 0.67), ('slurm-none', 1.0)]
    """
    if not orders:
        raise UsageError("no order to compare", "name one, as row-major")
    free = request.get("candidates")
    free, note = connected_nodes(asked.machine, asked.machine.free if free is None else free)
    request["candidates"] = free
    notes = [note] if note else []
    plans = _plans(asked, count, strategies, request, notes)
    found = [
        one
        for k, chosen in enumerate(plans)
        for one in _entries(asked, chosen, orders, _telling(told, k, len(plans)))
    ]
    base = next(p.time_s for s, o, _, p in found if (s, o) == (DEFAULT, DEFAULT_ORDER))
    entries = [
        Entry(strategy, order, chosen, one, one.time_s / base if base else 1.0)
        for strategy, order, chosen, one in found
    ]
    entries.sort(key=lambda entry: entry.found.time_s)
    said = dict.fromkeys((*notes, *(note for e in entries for note in e.found.notes)))
    return Comparison(tuple(entries), _asked(entries[0]), tuple(said))


def _plans(
    asked: Predictor,
    count: int,
    strategies: Sequence[str],
    request: Mapping[str, Any],
    notes: list[str],
) -> list[Plan]:
    """Return the default's plan and those of the strategies; what does not apply is noted."""
    found = [plan(asked.machine, count, strategy=DEFAULT, **request)]
    for strategy in dict.fromkeys(strategies or STRATEGIES):
        if strategy == DEFAULT:
            continue
        # A strategy that predicts has to look for what is compared here.
        wanted = {**request, "predictor": asked} if strategy in PREDICTING else request
        try:
            found.append(plan(asked.machine, count, strategy=strategy, **wanted))
        except (UsageError, PlanError) as error:
            if strategies:
                raise
            notes.append(f"{strategy} is left out: {error.message}")
    return found


def _telling(told: Callable[[str], None] | None, k: int, count: int) -> Callable[[str], None]:
    """Return what is told of each row of strategy number k."""
    return lambda what: told(f"{k + 1} of {count} strategies: {what}") if told else None


def _entries(
    asked: Predictor, chosen: Plan, orders: Sequence[str], told: Callable[[str], None]
) -> Iterator[tuple[str, str, Plan, Prediction]]:
    """Yield (strategy, order, plan, prediction) for each order; the default has its own too.

    Nodes that were chosen together with an order are predicted in that order alone.
    """
    slots = asked.slots(chosen.rows)
    if chosen.order is not None:
        order = cast("Order", chosen.order)
        told(f"{chosen.strategy}, its own order")
        plain = np.array_equal(order.slots, np.arange(len(order.slots)))
        name = DEFAULT_ORDER if plain else chosen.facts["predicted"]["order"]["strategy"]
        yield chosen.strategy, name, chosen, asked.on(slots, None if plain else order)
        return
    wanted = list(dict.fromkeys(orders))
    if chosen.strategy == DEFAULT and DEFAULT_ORDER not in wanted:
        wanted.append(DEFAULT_ORDER)
    for name in wanted:
        told(f"{chosen.strategy}, {name}")
        yield chosen.strategy, name, chosen, asked.on(slots, _order(asked, slots, name))


def _order(asked: Predictor, slots: Any, name: str) -> Order | None:
    if name == DEFAULT_ORDER:
        return None
    from rankmap.orders import arrange
    from rankmap.predict.asked import fitted

    return arrange(slots, fitted(asked.pattern, slots), name)


def _asked(entry: Entry) -> dict[str, Any]:
    """Return what is the same for all entries."""
    apart = {"order", "nodelist"}
    return {key: value for key, value in entry.found.asked.items() if key not in apart}
