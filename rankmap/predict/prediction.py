# SPDX-License-Identifier: Apache-2.0
"""The content of a prediction: a time, its terms, its bottleneck, and its assumptions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.network import Channels, Demand, Loads, Worst
from nidmap.placement.network.bounds import Bound, best_bound
from nidmap.placement.nodelist import NodeList
from nidmap.placement.placement import Placement
from nidmap.placement.plan import overfull
from nidmap.placement.support.quantities import size_text, time_text
from nidmap.placement.traffic import NO_TRAFFIC
from nidmap.rankmap.collectives.libraries import LIBRARIES
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.collective import Collective
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.pattern.structured import Lines, Stencil
from nidmap.rankmap.pattern.sweep import Sweep
from nidmap.rankmap.predict.constants import PROBES, ROUNDS, Constants
from nidmap.rankmap.predict.gain import Gain
from nidmap.rankmap.predict.job import asked_library, fit_pattern, size_of
from nidmap.rankmap.predict.model import Model
from nidmap.rankmap.predict.phase import Phase
from nidmap.rankmap.predict.phase_cost import ROUNDING, PhaseCost, phase_cost

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
        """What most of the time is spent on, in words, with its time."""
        limit = self.limited_by
        if not limit:
            return "nothing takes any time"
        if limit == "link":
            return _link_words(self.bottleneck)
        slowest = [phase for phase in self.phases if phase.cost.bottleneck == limit]
        spent = time_text(self.spent[limit])
        if limit == "process":
            sent = size_text(sum(phase.sent for phase in slowest))
            return f"limited by what one rank can send ({sent} from the busiest in {spent})"
        if limit == "steps":
            steps = sum(phase.in_turn for phase in slowest)
            return f"limited by {steps:,.0f} successive steps ({spent} of it)"
        return f"limited by {limit} ({spent} of it)"

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


def report(model: Model, placement: Placement, strategy: str) -> Prediction:
    """Return the prediction for a placement whose ranks a strategy has ordered."""
    pattern = fit_pattern(model.pattern, placement)
    phases = list(model.phases(placement))
    if not phases:  # nothing is sent at all
        phases = [Phase("exchange", placement, NO_TRAFFIC, in_turn=0.0)]
    left = model.left(placement)
    timed = tuple(_time_phase(model, phase, left) for phase in phases)
    terms = _terms_of(model, pattern, timed, phases, model.histogram(placement))
    question = _question(model, pattern, placement, strategy)
    prediction = Prediction(tuple(terms), timed, asked=question)
    notes = _what_is_assumed(model, pattern, placement, phases, prediction.loads)
    return replace(prediction, notes=tuple(dict.fromkeys(notes)))


def _time_phase(model: Model, phase: Phase, left: Channels | None) -> PhaseTime:
    """Return a phase with its seconds, split by what they are spent on."""
    loads = model.phase_loads(phase, left)
    cost = phase_cost(loads, model.constants)
    assert loads.together.loads is not None
    return PhaseTime(
        phase.name, phase.total, loads.together.loads, cost, phase_limit(phase, cost.bandwidth),
        loads.hops, phase.in_turn, phase.sent,
    )  # fmt: skip


def phase_limit(phase: Phase, seconds: float) -> Bound:
    """Return the seconds that a phase's bytes need on any nodes of the machine, and why.

    Only this much of the phase is used: what its nodes send at least, what the
    busiest sends or receives, and what one node sends to another at most
    (`nidmap.placement.network.bounds.best_bound`). Any order of the ranks with the
    same three figures has the same limit.

    `seconds`: what the bytes take as they are placed: a bound that exceeds it by rounding is
    taken for equal.
    """
    machine, rows, demand = phase.placement.known_machine, phase.placement.rows, phase.total
    sent, received = demand.out[rows], demand.into[rows]
    among = machine.compute.copy()
    among[rows] = True
    lower = best_bound(
        machine,
        len(rows),
        out=float(sent.min()),
        pair=phase.traffic.largest_pair(len(rows)),
        busiest=float(np.maximum(sent, received).max()),
        among=among,
    )
    equal = seconds < lower.seconds <= seconds * (1 + ROUNDING)
    return lower._replace(seconds=seconds) if equal else lower


def _algorithm_words(model: Model, pattern: Pattern) -> str:
    """Return the algorithms of a pattern's all-to-alls, rows first, as one word."""
    names = [
        algorithm
        for algorithm, ranks in zip(model.algorithms(pattern), pattern.dims or (), strict=True)
        if ranks > 1
    ]
    return ", ".join(dict.fromkeys(reversed(names))) or model.algorithm


def _terms_of(
    model: Model,
    pattern: Pattern,
    timed: Sequence[PhaseTime],
    phases: list[Phase],
    histogram: float,
) -> Iterator[Term]:
    """Yield the terms that add up to the time."""
    figures = model.constants
    basis = f"load over bandwidth of the busiest link, routing {timed[0].loads.routing}"
    if any(phase.steps is not None for phase in phases):
        steps = _algorithm_words(model, pattern)
        if isinstance(pattern, Stencil):
            steps = "staged"
        elif isinstance(pattern, Graph):
            steps = "as recorded"
        elif isinstance(pattern, Sweep):
            steps = "each wave after those it waits for"
        basis += f", step by step ({steps})"
    if figures.process_gbs:
        basis += f", a rank sends at most {figures.process_gbs:g} GB/s"
    if figures.payload != 1:
        basis += f", {figures.payload:.0%} of the wire between routers is payload"
    inside = f"costs nothing, {figures.memory_source}"
    if figures.memory_gbs:
        gbs = f"{figures.memory_gbs:g} GB/s per node {figures.memory_source}"
        inside = f"{gbs}, beyond the time that the network takes"
    words = basis, inside, _latency_words(figures, timed), _message_words(figures, phases)
    seconds = (sum(part) for part in zip(*(phase.cost[:4] for phase in timed), strict=True))
    yield from map(Term, ("bandwidth", "memory", "latency", "messages"), seconds, words)
    if model.pattern.spec == "sort":
        rounds = f"{ROUNDS} rounds of {PROBES} counters per splitter, assumed"
        yield Term("histogram", histogram, "switched off" if figures.timeless else rounds)


def _latency_words(figures: Constants, timed: Sequence[PhaseTime]) -> str:
    if figures.timeless:
        return "switched off"
    turns = sum(phase.in_turn for phase in timed)
    word = "message" if turns == 1 else "messages"
    hops = {kind: 0.0 for phase in timed for kind in phase.hops}
    for phase in timed:
        for kind, mean in phase.hops.items():
            hops[kind] += mean * phase.in_turn / (turns or 1)
    hops_text = ", ".join(f"{mean:.2f} {kind}" for kind, mean in hops.items() if mean)
    return (
        f"{turns:g} {word} in turn, {figures.mpi_us:g} us each and {figures.hop_ns:g} ns per hop"
        f" ({hops_text or 'no hop'}): {figures.source}"
    )


def _message_words(figures: Constants, phases: list[Phase]) -> str:
    if figures.timeless:
        return "switched off"
    rank, node = sum(p.a_rank for p in phases), sum(p.a_node for p in phases)
    return (
        f"at most {rank:g} posted by a rank at {figures.message_us:g} us each, {node:g} leaving a"
        f" node at {figures.nic_us:g} us each: {_posting_note(figures)}"
    )


def _posting_note(figures: Constants) -> str:
    """Say where the time between messages of a rank and of a node comes from."""
    names = ("message_us", "nic_us")
    words = ["stated" if name in figures.measured else "assumed" for name in names]
    return words[0] if words[0] == words[1] else f"{words[0]} and {words[1]}"


def _what_is_assumed(
    model: Model, pattern: Pattern, placement: Placement, phases: list[Phase], loads: Loads
) -> Iterator[str]:
    """Yield the assumptions, one sentence each."""
    figures = model.constants
    yield from _algorithm_notes(model, pattern)
    yield from model.machine.notes
    yield from loads.notes
    yield from getattr(pattern, "notes", ())
    yield from filter(None, (size_of(model.pattern, model.job.bytes)[1], *model.job.notes))
    if np.isinf(model.injection).any():
        yield "injection is unlimited: the machine states no bandwidth for it"
    wires = loads.channels
    unlimited = loads.used[np.isinf(wires.bandwidth[loads.used])]
    free = np.flatnonzero(np.bincount(wires.kind[unlimited]))
    if len(free):
        classes = ", ".join(wires.kinds[k] for k in free.tolist())
        yield f"no bandwidth is stated for links of class {classes}: they take no time"
    if model.may_adapt:
        yield (
            f"routing {model.routing} is the model's default; the machine's own may be adaptive"
            " (-m MACHINE,routing=adaptive)"
        )
    if figures.timeless:
        yield "latency and message terms are switched off"
    else:
        yield f"latency {figures.mpi_us:g} us, {figures.hop_ns:g} ns per hop: {figures.source}"
        yield (
            f"{figures.message_us:g} us to post a message, {figures.nic_us:g} us between two on the"
            f" same NIC: {_posting_note(figures)}"
        )
    if full := overfull(model.machine, placement.rows, placement.counts):
        yield full
    if figures.memory_source == "assumed" and any(phase.inside for phase in phases):
        yield (
            f"what stays inside a node is copied at {figures.memory_gbs:g} GB/s: assumed"
            " (-m MACHINE,memory=GBS)"
        )
    for phase in phases:
        if phase.shown:
            yield f"{phase.name}: {phase.shown} of {phase.in_turn:.0f} steps represent all"
    if model.job.others:
        loads_gbs = [job.load for job in model.job.others]
        ends = dict.fromkeys((min(loads_gbs), max(loads_gbs)))
        load_text = " to ".join(f"{load:g}" for load in ends)
        count = len(model.job.others)
        jobs = "1 other job is" if count == 1 else f"each of {count} other jobs is"
        yield (
            f"{jobs} assumed to send {load_text} GB/s per node, evenly to all of"
            " its own nodes; a shared link leaves this job at least an equal share"
        )


def _algorithm_notes(model: Model, pattern: Pattern) -> Iterator[str]:
    """Yield who chose a collective's algorithm, if it was not specified."""
    library = asked_library(model.algorithm, model.mpi)
    if library and isinstance(pattern, Lines):
        size, name = size_text(model.size * pattern.weight), LIBRARIES[library].name
        yield (
            f"messages of {size} between ranks: {_algorithm_words(model, pattern)}, as in {name}"
            " (--algorithm chooses another)"
        )
    if isinstance(pattern, Collective) and model.algorithm == "library":
        usual = _algorithm_words(model, pattern)
        yield f"libraries usually use {usual} (--algorithm chooses another)"


def _question(
    model: Model, pattern: Pattern, placement: Placement, strategy: str
) -> dict[str, Any]:
    """Return the question as JSON."""
    algorithm = _algorithm_words(model, pattern)
    background = [
        {"job": job.name, "nodes": len(job.rows), "load_gbs": job.load} for job in model.job.others
    ]
    return {
        "machine": model.machine.name,
        "topology": model.machine.topology.kind,
        "pattern": pattern.spec,
        "order": strategy or ("row-major" if placement.order is None else "given"),
        "nodes": len(placement.counts),
        "nodelist": NodeList(placement.names.tolist()).fold(),
        "ranks": placement.ranks,
        "ppn": placement.counts.tolist() if placement.ppn is None else placement.ppn,
        "bytes": model.size,
        "algorithm": algorithm,
        "background": background,
        "words": placement.words(),
        "how": f" ({algorithm})" if isinstance(pattern, Collective) else "",
    }
