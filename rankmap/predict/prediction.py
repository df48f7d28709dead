# SPDX-License-Identifier: Apache-2.0
"""The content of a prediction: a time, its terms, its bottleneck, and its assumptions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from typing import Any, NamedTuple

from nidmap.placement.network import Demand, Loads, Worst
from nidmap.placement.network.bounds import Bound
from nidmap.placement.support.quantities import size_text, time_text
from nidmap.rankmap.predict.gain import Gain
from nidmap.rankmap.predict.phase_cost import PhaseCost

SCHEMA = "nidmap.predict/1"


class Term(NamedTuple):
    """One part of a time."""

    name: str
    seconds: float
    rests_on: str  # description of its basis


@dataclass(frozen=True, slots=True, eq=False)
class PhaseTime:
    """The prediction of one phase of a pattern."""

    name: str
    demand: Demand
    loads: Loads  # with the bandwidths that background traffic leaves
    cost: PhaseCost
    bound: Bound  # for any placement
    hops: dict[str, float]  # mean channels of each class on the way of a byte
    in_turn: float  # messages that wait for each other
    sent: float  # bytes that the busiest rank sends

    @property
    def limited_by(self) -> str:
        """What the phase spends most time on: its bottleneck, ``latency`` or ``messages``."""
        cost = self.cost
        spent = {cost.bottleneck: cost.moved, "latency": cost.latency, "messages": cost.messages}
        return longest_name(spent)

    @property
    def seconds(self) -> float:
        """The whole phase."""
        return self.cost.seconds

    def document(self) -> dict[str, Any]:
        """Return the phase as JSON."""
        return {
            "name": self.name,
            "time_s": self.seconds,
            "bandwidth_s": self.cost.bandwidth,
            "memory_s": self.cost.memory,
            "latency_s": self.cost.latency,
            "messages_s": self.cost.messages,
            "bound_s": self.bound.seconds,
            "limited_by": self.limited_by,
            "bottleneck": worst_document(self.loads.worst()),
            "by_class": self.loads.by_class(),
            "hops": self.hops,
            "messages_in_turn": self.in_turn,
            "bytes_off_node": self.demand.total,
        }


@dataclass(frozen=True, eq=False)
class Prediction:
    """The prediction of a pattern on a job's nodes."""

    terms: tuple[Term, ...]  # which add up to the time
    phases: tuple[PhaseTime, ...]  # which follow each other
    notes: tuple[str, ...] = ()  # assumptions
    # The question: machine, pattern, nodes, ranks, bytes, routing …
    asked: dict[str, Any] = field(default_factory=dict)
    # The seconds as a range over all unknowns; None if not requested
    between: Gain | None = None

    @property
    def time_s(self) -> float:
        """Seconds: the sum of the terms."""
        return sum(term.seconds for term in self.terms)

    @cached_property
    def loads(self) -> Loads:
        """Bytes of all phases on every channel."""
        return reduce(add, (phase.loads for phase in self.phases))

    @cached_property
    def bottleneck(self) -> Worst:
        """The channel, or node's own link, that the bytes of all phases keep busy longest."""
        return self.loads.worst()

    @property
    def by_class(self) -> dict[str, float]:
        """The same for each link class: seconds."""
        return self.loads.by_class()

    @property
    def bound_s(self) -> float:
        """A lower bound for any placement of this many nodes on this machine."""
        return sum(phase.bound.seconds for phase in self.phases)

    @property
    def bound_why(self) -> str:
        """What the bound follows from."""
        return "; ".join(dict.fromkeys(phase.bound.why for phase in self.phases))

    @property
    def share(self) -> float:
        """Share of the limit that is reached: bound over time, 0 to 1; 1 if nothing takes time."""
        return min(1.0, self.bound_s / self.time_s) if self.time_s > 0 else 1.0

    @property
    def spent(self) -> dict[str, float]:
        """Seconds by what they are spent on, named as bottlenecks of phases and the terms."""
        spent: dict[str, float] = {}
        for cost in (phase.cost for phase in self.phases):
            spent[cost.bottleneck] = spent.get(cost.bottleneck, 0.0) + cost.moved
        others = ("latency", "messages", "histogram")
        return spent | {term.name: term.seconds for term in self.terms if term.name in others}

    @property
    def limited_by(self) -> str:
        """What most of the time is spent on; '' where there is none."""
        return longest_name(self.spent)

    @property
    def limited_by_text(self) -> str:
        """What limits it, in words, with its time."""
        return _bottleneck_words(self)

    @property
    def hop_bytes(self) -> float:
        """Bytes times channels between routers."""
        return float(self.loads.carried.sum())

    @property
    def sentence(self) -> str:
        """The prediction in one sentence, as text."""
        question = self.asked
        sized = question["bytes"] != 1 and question["pattern"] != "barrier"
        size = f" of {size_text(question['bytes'])}" if sized else ""
        head = (
            f"{time_text(self.time_s)} for {question['pattern']}{size}"
            f" on {question['words']}{question['how']}"
        )
        return f"{head}: {self.limited_by_text}; {_limit_words(self)}"

    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "schema": SCHEMA,
            **{key: value for key, value in self.asked.items() if key not in ("words", "how")},
            "routing": self.loads.routing,
            "wiring": self.loads.wiring,
            "time_s": self.time_s,
            "between": None if self.between is None else self.between.document(),
            "limited_by": self.limited_by,
            "limited_by_text": self.limited_by_text,
            "spent": self.spent,
            "bottleneck": worst_document(self.bottleneck),
            "by_class": self.by_class,
            "terms": {t.name: {"seconds": t.seconds, "rests_on": t.rests_on} for t in self.terms},
            "bound_s": self.bound_s,
            "bound": self.bound_why,
            "percent_of_bound": 100 * self.share,
            "hop_bytes": self.hop_bytes,
            "phases": [phase.document() for phase in self.phases],
            "sentence": self.sentence,
            "notes": list(self.notes),
        }


def worst_document(worst: Worst) -> dict[str, Any]:
    """Return the busiest link as JSON: bytes, GB/s (None if unlimited), seconds."""
    return {
        "class": worst.kind,
        "link": worst.name,
        "load": worst.load,
        "bandwidth": worst.bandwidth if math.isfinite(worst.bandwidth) else None,
        "seconds": worst.seconds,
    }


def longest_name(seconds: dict[str, float]) -> str:
    """Return the name of the longest time, the first in a tie; '' if nothing takes any."""
    most = max(seconds, key=lambda name: seconds[name])
    return most if seconds[most] > 0 else ""


def _bottleneck_words(prediction: Prediction) -> str:
    """Name what most of the time is spent on."""
    transfer, worst = prediction.limited_by, prediction.bottleneck
    if not transfer:
        return "nothing takes any time"
    if transfer == "link":
        return _link_words(worst)
    slowest = [phase for phase in prediction.phases if phase.cost.bottleneck == transfer]
    spent = time_text(prediction.spent[transfer])
    if transfer == "process":
        sent = size_text(sum(phase.sent for phase in slowest))
        return f"limited by what one rank can send ({sent} from the busiest in {spent})"
    if transfer == "steps":
        steps = sum(phase.in_turn for phase in slowest)
        return f"limited by {steps:,.0f} successive steps ({spent} of it)"
    return f"limited by {transfer} ({spent} of it)"


def _link_words(worst: Worst) -> str:
    """Say which link is the bottleneck."""
    if worst.kind in ("injection", "ejection"):
        link_words = f"limited by the {worst.kind} of {worst.name}"
    else:
        article = "an" if worst.kind[0] in "aeioux" else "a"
        link_words = f"limited by {article} {worst.kind} link, {worst.name.rpartition(' ')[0]}"
    return f"{link_words} ({size_text(worst.load)} at {worst.bandwidth:.4g} GB/s)"


def _limit_words(prediction: Prediction) -> str:
    """Say how close a prediction is to the least time on any nodes."""
    if not prediction.bound_s:
        return "no lower bound known"
    percent = math.floor(1000 * prediction.share) / 10
    nodes = prediction.asked["nodes"]
    return f"{percent:.3g} % of the limit for any {nodes} nodes ({time_text(prediction.bound_s)})"
