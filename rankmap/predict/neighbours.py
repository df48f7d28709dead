"""Exchanges with few partners: stencils, rings, graphs and measured matrices.

All of them are sent at once, but a staged stencil, which goes one way along one
dimension after the other, a sweep, wave after wave, and a recording, whose steps follow each
other as they were seen to. Who sends what in which direction:

=========  ====================================================================
stencil    ``--bytes`` times the dimension's weight, both ways
sweep      ``--bytes`` to the next ranks downstream, piece by piece, from each corner
ring       ``--bytes`` to the next rank only
sends      ``--bytes`` times what each line of the list says; a permutation and a
           transposition are ``--bytes`` from each rank to one other
graph      ``--bytes`` times the edge's weight, both ways
matrix     ``--bytes`` times what the file says of that very direction
measured   the same
=========  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import sample_evenly
from nidmap.placement.traffic import NO_TRAFFIC, Traffic, join_traffic
from nidmap.rankmap.collectives import LIBRARIES, partner_in_turn
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.pattern.structured import Ring, Stencil
from nidmap.rankmap.pattern.sweep import Sweep, waves
from nidmap.rankmap.predict.job import asked_library
from nidmap.rankmap.predict.phase import Phase, RankStep, Sends, Stretches, between_nodes
from nidmap.rankmap.predict.recorded import cheap_stretches, messages_in_waves, wave_steps
from nidmap.rankmap.recognition.steps import steps_in
from nidmap.rankmap.recording import Recording
from nidmap.rankmap.score.traffic import pairs_of_nodes

#: Turns of an all-to-all in a recording that are looked at: of more an even sample.
MOST_TURNS = 16


def neighbour_phase(
    pattern: Pattern, placement: Placement, size: float, most_steps: int | None = None
) -> Phase:
    """Return the one phase of a pattern that is no all-to-all.

    Parameters
    ----------
    pattern : Pattern
    placement : Placement
    size : float
        ``--bytes``.
    most_steps : int or None
        Waves of a sweep that are looked at, at most; None: all.
    """
    if isinstance(pattern, Sweep):
        return _sweep_phase(pattern, placement, size, most_steps)
    if isinstance(pattern, Graph):
        traffic, most, sent = _graph_traffic(pattern, placement, size)
        timing: dict[str, Any] = {}
        if pattern.recording is not None:
            timing = _recorded_timing(pattern.recording, placement, size)
        return Phase("exchange", placement, traffic, a_rank=most, sent=sent, **timing)
    if isinstance(pattern, Ring):
        several = placement.ranks > 1
        ring = RankStep(np.arange(placement.ranks), np.roll(np.arange(placement.ranks), -1), size)
        (traffic, _), *_ = between_nodes([ring], placement)
        traffic = traffic if several else NO_TRAFFIC
        return Phase("exchange", placement, traffic, a_rank=float(several), sent=several * size)
    return _two_way_phase(pattern, placement, size)


def _two_way_phase(pattern: Pattern, placement: Placement, size: float) -> Phase:
    """Return an exchange in which as much comes back along every edge."""
    directions: list[Traffic] = []
    for a, b, weight in pairs_of_nodes(pattern, placement.node_of_rank):
        forward = Traffic.of(a, b, weight * size).by_pair(len(placement.rows))
        directions += [forward, forward.reversed()]
    timing: dict[str, Any] = {}
    if isinstance(pattern, Stencil) and pattern.staged:
        timing = {
            "steps": lambda: iter([(direction, 1.0) for direction in directions]),
            "in_turn": float(len(directions)),
            "sends": partial(_staged_sends, pattern, placement.ranks, size),
        }
    return Phase(
        "exchange",
        placement,
        join_traffic(directions),
        a_rank=_busiest_partners(pattern),
        sent=size * _busiest_partners(pattern, weighted=True),
        **timing,
    )


def _staged_sends(pattern: Stencil, ranks: int, size: float) -> Sends:
    """Return the messages of a staged stencil: there and back along each dimension in order."""
    edges = [RankStep(a, b, weight * size)
             for a, b, weight in pairs_of_nodes(pattern, np.arange(ranks))]  # fmt: skip
    both = ((step, RankStep(step.target, step.source, step.size)) for step in reversed(edges))
    return Sends.in_turn(step for pair in both for step in pair)


def _sweep_phase(pattern: Sweep, placement: Placement, size: float, most: int | None) -> Phase:
    """Return a sweep: its waves follow each other, as each message waits for others."""
    wave, source, target = waves(pattern.dims, pattern.messages)
    count = int(wave[-1]) + 1 if len(wave) else 0
    chosen, times = sample_evenly(count, most or max(1, count))
    begins = np.searchsorted(wave, np.arange(count + 1))
    steps = []
    for number, stands_for in zip(chosen, times, strict=True):
        sent = slice(begins[number - 1], begins[number])
        steps.append(RankStep(source[sent], target[sent], size, stands_for))
    (traffic, _), *_ = between_nodes([RankStep(source, target, size)], placement)
    return Phase(
        "exchange",
        placement,
        traffic,
        steps=lambda: between_nodes(steps, placement),
        in_turn=float(count),
        sent=float(np.bincount(source, minlength=1).max()) * size,
        shown=0 if len(chosen) == count else len(chosen),
        dependent=True,
        sends=(lambda: Sends.of([(wave, source, target, size)])) if len(chosen) == count else None,
    )


def _recorded_timing(recording: Recording, placement: Placement, size: float) -> dict[str, Any]:
    """Return what a phase says of steps: wave after wave where the ranks' order is known."""
    library = asked_library("library", placement.known_machine.topology.parameters.get("mpi", ""))
    run = messages_in_waves(recording, library) if placement.ranks else None
    if run is not None:
        recorded_sends, sent_in, times = run
        sends = recorded_sends._replace(size=recorded_sends.size * size)

        def stretches(cost: Callable[[Floats], Floats | Ints], room: int) -> Stretches:
            parts = cheap_stretches(sends, sent_in, cost, room)
            return parts._replace(stand_for=parts.stand_for * times)

        return {
            "steps": lambda: between_nodes(wave_steps(sends, sent_in, times), placement),
            "in_turn": times * (int(sent_in.wave.max()) + 1),
            "stretches": stretches,
        }
    recorded = steps_in(recording)
    if not recorded:
        return {}
    if len(recorded) == 1 and recorded[0].place is None:
        passes = float(max(1, recorded[0].times))
        return {"in_turn": passes, "passes": passes}
    turns = _recorded_turns(recording, size, library)
    timing: dict[str, Any] = {
        "steps": lambda: between_nodes((turn for turn, _ in turns), placement),
        "in_turn": sum(turn.times * times for turn, times in turns),
    }
    if all(turn.times == 1 for turn, _ in turns):
        _, passes = max(turns, key=lambda turn: float(turn[0].size.sum()))
        once = [turn._replace(size=turn.size / passes) for turn, _ in turns]
        timing |= {"passes": passes, "sends": lambda: Sends.in_turn(once)}
    return timing


def _recorded_turns(
    recording: Recording, size: float, library: str
) -> list[tuple[RankStep, float]]:
    """Return what of a recording is sent at once, all times together, and how often.

    An all-to-all goes as this library does it, if one is known.
    """
    turns: list[tuple[RankStep, float]] = []
    for step in steps_in(recording):
        sent, ranks = step.sent.away().sized(size), 0
        times = float(step.times)
        if (place := step.place) is not None and library:
            ranks = int(place.max()) + 1
            block = sent.bytes.sum() / max(1, sent.messages.sum())
            if LIBRARIES[library].choose("alltoall", block, ranks) != "pairwise":
                ranks = 0
        if place is None or not ranks:
            turns.append((RankStep(sent.source, sent.target, sent.bytes, step.alike), times))
            continue
        a, b = place[sent.source], place[sent.target]
        for turn, stands_for in zip(*sample_evenly(ranks - 1, MOST_TURNS), strict=True):
            part = sent.some(partner_in_turn(a, turn, ranks, exchange=True) == b)
            turns.append((RankStep(part.source, part.target, part.bytes, stands_for), times))
    return turns


def _busiest_partners(pattern: Pattern, weighted: bool = False) -> float:
    """Return the messages that the busiest rank sends, or what they weigh together.

    Examples
    --------
    >>> from nidmap.rankmap.pattern.structured import Stencil
    >>> _busiest_partners(Stencil((4, 4, 2))), _busiest_partners(Stencil((4, 4), reach=2))
    (5.0, 8.0)
    >>> _busiest_partners(Stencil((4, 4, 2), weights=(1.0, 2.0, 4.0)), weighted=True)
    10.0
    """
    if isinstance(pattern, Stencil):  # in the middle of a grid all ranks send alike
        pattern = replace(pattern, dims=tuple(min(extent, 3) for extent in pattern.dims))
    degree = np.zeros(pattern.ranks or 0)
    for edges in pattern.edges():
        weight = edges.bytes if weighted else None
        degree += np.bincount(edges.source, weight, minlength=len(degree))
        degree += np.bincount(edges.target, weight, minlength=len(degree))
    return float(degree.max(initial=0))


def _graph_traffic(
    pattern: Graph, placement: Placement, size: float
) -> tuple[Traffic, float, float]:
    """Return what goes between nodes, the messages of the busiest rank and the most it sends."""
    if pattern.directed is not None:
        a, b, weight, _ = pattern.directed.columns
        most = float(np.bincount(a, minlength=1).max(initial=0))
        sent = float(np.bincount(a, weight).max(initial=0.0)) * size
        traffic = Traffic.of(a, b, weight * size).by_node(
            placement.node_of_rank, len(placement.rows)
        )
        return traffic, most, sent
    if pattern.spec.startswith(("matrix:", "measured:")):
        size *= 0.5  # an edge's weight is what goes both ways together
    a, b, weight = pattern.upper()  # each edge once: as much goes both ways
    ends = placement.node_of_rank[a], placement.node_of_rank[b]
    forward = Traffic.undirected(*ends, weight * size).by_pair(len(placement.rows))
    most = float(np.diff(pattern.indptr).max(initial=0))
    sent = float(np.bincount(pattern.row, pattern.weights).max(initial=0.0)) * size
    return forward + forward.reversed(), most, sent
