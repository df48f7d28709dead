# SPDX-License-Identifier: Apache-2.0
"""A full prediction: the figures of a `Model` with all their assumptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nidmap.placement.network import Channels, Loads
from nidmap.placement.network.bounds import Bound, best_bound
from nidmap.placement.nodelist import NodeList
from nidmap.placement.placement import Placement
from nidmap.placement.plan import overfull
from nidmap.placement.support.quantities import size_text
from nidmap.placement.traffic import NO_TRAFFIC
from nidmap.rankmap.collectives.libraries import LIBRARIES
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.collective import Collective
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.pattern.structured import Lines, Stencil
from nidmap.rankmap.pattern.sweep import Sweep
from nidmap.rankmap.predict.constants import PROBES, ROUNDS, Constants
from nidmap.rankmap.predict.job import asked_library, fit_pattern, size_of
from nidmap.rankmap.predict.model import Model
from nidmap.rankmap.predict.phase import Phase
from nidmap.rankmap.predict.phase_cost import ROUNDING, phase_cost
from nidmap.rankmap.predict.prediction import PhaseTime, Prediction, Term


def report(model: Model, placement: Placement, strategy: str) -> Prediction:
    """Return the prediction for a placement whose ranks a strategy has ordered."""
    pattern = fit_pattern(model.pattern, placement)
    phases = list(model.phases(placement))
    if not phases:  # nothing is sent at all
        phases = [Phase("exchange", placement, NO_TRAFFIC, in_turn=0.0)]
    left = model.left(placement)
    timed = tuple(_time_phase(model, phase, left) for phase in phases)
    terms = _terms_of(model, pattern, timed, phases, model.histogram(placement))
    found = Prediction(tuple(terms), timed, asked=_question(model, pattern, placement, strategy))
    notes = _what_is_assumed(model, pattern, placement, phases, found.loads)
    return replace(found, notes=tuple(dict.fromkeys(notes)))


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
    yield Term("bandwidth", sum(phase.cost.bandwidth for phase in timed), basis)
    inside = f"costs nothing, {figures.memory_source}"
    if figures.memory_gbs:
        gbs = f"{figures.memory_gbs:g} GB/s per node {figures.memory_source}"
        inside = f"{gbs}, beyond the time that the network takes"
    yield Term("memory", sum(phase.cost.memory for phase in timed), inside)
    latency_s = sum(phase.cost.latency for phase in timed)
    yield Term("latency", latency_s, _latency_words(figures, timed))
    messages_s = sum(phase.cost.messages for phase in timed)
    yield Term("messages", messages_s, _message_words(figures, phases))
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
