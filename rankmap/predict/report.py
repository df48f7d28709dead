"""A whole prediction: the figures of a `Model` with all that they rest on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from placement.network import Channels, Loads
from placement.network.bounds import best_bound
from placement.nodelist import NodeList
from placement.plan import overfull
from placement.support.quantities import size_text
from placement.traffic import NO_TRAFFIC
from rankmap.pattern import Pattern
from rankmap.pattern.collective import Collective
from rankmap.pattern.graph import Graph
from rankmap.pattern.structured import Lines, Stencil
from rankmap.pattern.sweep import Sweep
from rankmap.placement import Placement
from rankmap.predict.algorithms import asked_library
from rankmap.predict.constants import PROBES, ROUNDS, Constants
from rankmap.predict.job_pattern import fit_pattern
from rankmap.predict.model import Model
from rankmap.predict.phase import Phase
from rankmap.predict.prediction import PhaseTime, Prediction, Term
from rankmap.predict.terms import hops_by_class

__all__ = ["limit", "report"]

#: Rounding that sums of many loads may have, as a share.
ROUNDING = 1e-9


def report(asked: Model, placement: Placement, strategy: str) -> Prediction:
    """Return the prediction for a placement whose ranks a strategy has ordered."""
    pattern = fit_pattern(asked.pattern, placement.on)
    found = list(asked.phases(placement, pattern))
    if not found:  # nothing is sent at all
        found = [Phase("exchange", placement, NO_TRAFFIC, in_turn=0.0)]
    left = asked.left(placement)
    timed: list[PhaseTime] = []
    for phase in found:
        loads = asked.loads(phase.total, left)
        timed.append(_time_phase(asked, phase, loads, left))
    whole = timed[0].loads
    for one in timed[1:]:
        whole = whole + one.loads
    terms = tuple(_terms(asked, pattern, timed, found, asked.histogram(placement)))
    return Prediction(
        time_s=sum(term.seconds for term in terms),
        terms=terms,
        phases=tuple(timed),
        loads=whole,
        bottleneck=whole.worst(),
        by_class=whole.by_class(),
        bound_s=sum(one.bound_s for one in timed),
        bound_why="; ".join(dict.fromkeys(one.bound_why for one in timed)),
        notes=tuple(dict.fromkeys(_notes(asked, pattern, placement, found, whole))),
        asked=_question_document(asked, pattern, placement, strategy),
    )


def _time_phase(asked: Model, phase: Phase, loads: Loads, left: Channels | None) -> PhaseTime:
    """Return a phase with its seconds, and what they are spent on."""
    limits = asked.limits(phase, loads, left)
    bandwidth = max(limits.values())
    memory, latency, messages = asked.beyond(phase, loads, bandwidth)
    longest = (name for name, s in limits.items() if s >= bandwidth * (1 - ROUNDING))
    bound, why = limit(phase, bandwidth)
    return PhaseTime(
        name=phase.name,
        demand=phase.total,
        loads=loads,
        bandwidth_s=bandwidth,
        memory_s=memory,
        latency_s=latency,
        messages_s=messages,
        bound_s=bound,
        bound_why=why,
        hops=hops_by_class(loads, phase.total.total),
        in_turn=phase.in_turn,
        sent=phase.sent,
        transfer="memory" if memory else next(longest, "link"),  # no number is none of them
    )


def limit(phase: Phase, seconds: float) -> tuple[float, str]:
    """Return the seconds that a phase's bytes need on any nodes of the machine, and why.

    Parameters
    ----------
    phase : Phase
    seconds : float
        What the bytes take as they are placed: a bound that exceeds it by
        rounding is taken for equal.

    Notes
    -----
    Only so much of the phase is used: what its nodes send at least, what the
    busiest sends or receives, and what one node sends to another at most
    (`placement.network.bounds.best_bound`). Any order of the ranks with the
    same three figures has the same limit.
    """
    machine, rows, demand = phase.placement.machine, phase.placement.rows, phase.total
    sent, received = demand.out[rows], demand.into[rows]
    among = machine.compute
    if not among[rows].all():
        among = among.copy()
        among[rows] = True
    found = best_bound(
        machine,
        len(rows),
        out=float(sent.min()),
        pair=phase.traffic.largest_pair(len(rows)),
        busiest=float(np.maximum(sent, received).max()),
        among=among,
    )
    bound = found.seconds
    if seconds < bound <= seconds * (1 + ROUNDING):
        bound = seconds
    return bound, found.why


def _algorithms(asked: Model, pattern: Pattern) -> str:
    """Return the algorithms of a pattern's all-to-alls, rows first, as one word."""
    found = [
        how
        for how, ranks in zip(asked.algorithms(pattern), pattern.dims or (), strict=True)
        if ranks > 1
    ]
    return ", ".join(dict.fromkeys(reversed(found))) or asked.algorithm


def _terms(
    asked: Model, pattern: Pattern, timed: list[PhaseTime], found: list[Phase], histogram: float
) -> Iterator[Term]:
    """Yield the terms that the time is the sum of."""
    known = asked.constants
    how = f"load over bandwidth of the busiest link, routing {timed[0].loads.routing}"
    if any(phase.steps is not None for phase in found):
        steps = _algorithms(asked, pattern)
        if isinstance(pattern, Stencil):
            steps = "staged"
        elif isinstance(pattern, Graph):
            steps = "as recorded"
        elif isinstance(pattern, Sweep):
            steps = "each wave after those it waits for"
        how += f", step by step ({steps})"
    if known.process_gbs:
        how += f", a rank sends at most {known.process_gbs:g} GB/s"
    if known.payload != 1:
        how += f", {known.payload:.0%} of the wire between routers is payload"
    yield Term("bandwidth", sum(one.bandwidth_s for one in timed), how)
    inside = f"costs nothing, {known.memory_source}"
    if known.memory_gbs:
        inside = (
            f"{known.memory_gbs:g} GB/s a node {known.memory_source}, beyond what the network takes"
        )
    yield Term("memory", sum(one.memory_s for one in timed), inside)
    yield Term("latency", sum(one.latency_s for one in timed), _latency(known, timed))
    yield Term("messages", sum(one.messages_s for one in timed), _messages(known, found))
    if asked.pattern.spec == "sort":
        rounds = f"{ROUNDS} rounds of {PROBES} counters a splitter, assumed"
        yield Term("histogram", histogram, "switched off" if known.timeless else rounds)


def _latency(known: Constants, timed: list[PhaseTime]) -> str:
    if known.timeless:
        return "switched off"
    turns = sum(one.in_turn for one in timed)
    word = "message" if turns == 1 else "messages"
    hops = {kind: 0.0 for one in timed for kind in one.hops}
    for one in timed:
        for kind, mean in one.hops.items():
            hops[kind] += mean * one.in_turn / (turns or 1)
    ways = ", ".join(f"{mean:.2f} {kind}" for kind, mean in hops.items() if mean)
    return (
        f"{turns:g} {word} in turn of {known.mpi_us:g} us and {known.hop_ns:g} ns a hop"
        f" ({ways or 'no hop'}): {known.source}"
    )


def _messages(known: Constants, found: list[Phase]) -> str:
    if known.timeless:
        return "switched off"
    rank, node = sum(p.a_rank for p in found), sum(p.a_node for p in found)
    return (
        f"at most {rank:g} posted by a rank at {known.message_us:g} us, {node:g} leaving a node"
        f" at {known.nic_us:g} us: {_posting(known)}"
    )


def _posting(known: Constants) -> str:
    """Say how the time between messages of a rank and of a node is known."""
    both = ("message_us", "nic_us")
    words = ["stated" if name in known.measured else "assumed" for name in both]
    return words[0] if words[0] == words[1] else f"{words[0]} and {words[1]}"


def _notes(
    asked: Model, pattern: Pattern, placement: Placement, found: list[Phase], loads: Loads
) -> Iterator[str]:
    """Yield what was assumed, a sentence each."""
    known = asked.constants
    yield from _algorithm_notes(asked, pattern)
    yield from asked.machine.notes
    yield from loads.notes
    yield from getattr(pattern, "notes", ())
    yield from asked.assumed
    if np.isinf(asked.injection).any():
        yield "injection is unlimited: the machine states no bandwidth for it"
    wires = loads.channels
    free = np.flatnonzero(np.bincount(wires.kind[np.isinf(wires.bandwidth) & (loads.load > 0)]))
    if len(free):
        classes = ", ".join(wires.kinds[k] for k in free.tolist())
        yield f"no bandwidth is stated for links of class {classes}: they take no time"
    if asked.spread_by_default:
        yield (
            f"routing {asked.routing} is the model's default; the machine's own may be adaptive"
            " (-m MACHINE,routing=adaptive)"
        )
    if known.timeless:
        yield "latency and message terms are switched off"
    else:
        yield f"latency {known.mpi_us:g} us, {known.hop_ns:g} ns a hop: {known.source}"
        yield (
            f"{known.message_us:g} us to post a message, {known.nic_us:g} us between two of an"
            f" interface: {_posting(known)}"
        )
    if full := overfull(asked.machine, placement.rows, placement.counts):
        yield full
    if known.memory_source == "assumed" and any(phase.inside for phase in found):
        yield (
            f"what stays inside a node is copied at {known.memory_gbs:g} GB/s: assumed"
            " (-m MACHINE,memory=GBS)"
        )
    for phase in found:
        if phase.shown:
            yield f"{phase.name}: {phase.shown} of {phase.in_turn:.0f} steps stand for all"
    if asked.background:
        loads_gbs = sorted({one.load for one in asked.background})
        each = " to ".join(f"{load:g}" for load in dict.fromkeys((loads_gbs[0], loads_gbs[-1])))
        count = len(asked.background)
        jobs = "1 other job is" if count == 1 else f"each of {count} other jobs is"
        yield (
            f"{jobs} assumed to send {each} GB/s a node, alike to all of"
            " its own nodes; a shared link leaves this job at least an equal share"
        )


def _algorithm_notes(asked: Model, pattern: Pattern) -> Iterator[str]:
    """Yield who chose the algorithm of a collective where nobody named it."""
    library = asked_library(asked.algorithm, asked.mpi)
    if library is not None and isinstance(pattern, Lines):
        size = size_text(asked.size * pattern.weight)
        yield (
            f"{size} from rank to rank go {_algorithms(asked, pattern)}, as {library.name}"
            " sends them (--algorithm says another way)"
        )
    if isinstance(pattern, Collective) and asked.algorithm == "library":
        yield f"libraries usually take {_algorithms(asked, pattern)} (--algorithm says another)"


def _question_document(
    asked: Model, pattern: Pattern, placement: Placement, strategy: str
) -> dict[str, Any]:
    """Return what was asked, as JSON takes it."""
    slots = placement.on
    background = [
        {"job": one.name, "nodes": len(one.rows), "load_gbs": one.load} for one in asked.background
    ]
    return {
        "machine": asked.machine.name,
        "topology": asked.machine.topology.kind,
        "pattern": pattern.spec,
        "order": strategy or ("row-major" if placement.slots is None else "given"),
        "nodes": len(slots.counts),
        "nodelist": NodeList(slots.names.tolist()).fold(),
        "ranks": len(slots),
        "ppn": slots.counts.tolist() if slots.ppn is None else slots.ppn,
        "bytes": asked.size,
        "algorithm": _algorithms(asked, pattern),
        "background": background,
        "words": slots.words(),
        "how": _how(asked, pattern),
    }


def _how(asked: Model, pattern: Pattern) -> str:
    """Return which algorithm a collective is done by; '' for other patterns."""
    return f" ({_algorithms(asked, pattern)})" if isinstance(pattern, Collective) else ""
