# SPDX-License-Identifier: Apache-2.0
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

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nidmap.placement.placement import Placement
from nidmap.placement.support.arrays import sample_evenly
from nidmap.placement.traffic import NO_TRAFFIC, Traffic, join_traffic
from nidmap.rankmap.collectives.libraries import LIBRARIES
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.pattern.structured import Ring, Stencil
from nidmap.rankmap.pattern.sweep import Sweep, waves
from nidmap.rankmap.predict.job import asked_library
from nidmap.rankmap.predict.phase import Phase, RankStep, between_nodes
from nidmap.rankmap.recognition.steps import recorded_run
from nidmap.rankmap.recording import Recording
from nidmap.rankmap.score.traffic import pairs_of_nodes


def neighbour_phase(
    pattern: Pattern,
    placement: Placement,
    size: float,
    most_steps: int | None = None,
    algorithm: str = "",
) -> Phase:
    """Return the single phase of a pattern that is not an all-to-all.

    `most_steps`: waves of a sweep that are looked at, at most; None means all. `algorithm`: the
    library whose rules a recording's collectives go by; another word: the machine's.
    """
    if isinstance(pattern, Sweep):
        return _sweep_phase(pattern, placement, size, most_steps)
    if isinstance(pattern, Graph):
        if pattern.recording is not None:
            return _recorded_phase(pattern.recording, placement, size, algorithm)
        traffic, most, sent = _graph_traffic(pattern, placement, size)
        return Phase("exchange", placement, traffic, a_rank=most, sent=sent)
    if isinstance(pattern, Ring):
        several = placement.ranks > 1
        ring = RankStep(np.arange(placement.ranks), np.roll(np.arange(placement.ranks), -1), size)
        (traffic, _), *_ = between_nodes([ring], placement)
        traffic = traffic if several else NO_TRAFFIC
        return Phase("exchange", placement, traffic, a_rank=float(several), sent=several * size)
    return _two_way_phase(pattern, placement, size)


def _two_way_phase(pattern: Pattern, placement: Placement, size: float) -> Phase:
    """Return an exchange in which equally much is sent in both directions of every edge."""
    directions: list[Traffic] = []
    for a, b, weight in pairs_of_nodes(pattern, placement.node_of_rank):
        forward = Traffic.of(a, b, weight * size).by_pair(len(placement.rows))
        directions += [forward, forward.reversed()]
    timing: dict[str, Any] = {}
    if isinstance(pattern, Stencil) and pattern.staged:
        timing = {
            "steps": lambda: iter([(direction, 1.0) for direction in directions]),
            "in_turn": float(len(directions)),
        }
    return Phase(
        "exchange",
        placement,
        join_traffic(directions),
        a_rank=_busiest_partners(pattern),
        sent=size * _busiest_partners(pattern, weighted=True),
        **timing,
    )


def _sweep_phase(pattern: Sweep, placement: Placement, size: float, most: int | None) -> Phase:
    """Return a sweep, whose waves follow each other because messages wait for others."""
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
    )


def _recorded_phase(
    recording: Recording, placement: Placement, size: float, algorithm: str
) -> Phase:
    """Return all messages of a program: in total, and step by step with repeat counts.

    Messages have headers. Ranks run ahead of each other from step to step, but where each message
    waits for others.
    """
    known = placement.known_machine.topology.parameters
    library = (
        algorithm if algorithm in LIBRARIES else asked_library("library", known.get("mpi", ""))
    )
    run, header, nodes = (
        recorded_run(recording, library),
        known.get("header", 0.0),
        len(placement.rows),
    )

    def between(sent: Traffic, times: float = 1.0) -> Traffic:
        wire = replace(sent, bytes=(sent.bytes * size + sent.messages * header) / times)
        once = replace(wire, messages=sent.messages / times)
        return once.by_node(placement.node_of_rank, nodes)

    def steps() -> Iterator[tuple[Traffic, float]]:
        for step in run.steps:
            yield between(step.sent, step.times), step.times

    in_turn = sum(step.times for step in run.steps)
    posted = np.bincount(run.sent.source, run.sent.messages, minlength=1).max()
    return Phase(
        "exchange",
        placement,
        between(run.sent),
        steps=steps if len(run.steps) > 1 else None,
        in_turn=in_turn,
        a_rank=max(0.0, float(posted) - in_turn),
        sent=float(np.bincount(run.sent.source, run.sent.bytes, minlength=1).max()) * size,
        dependent=run.dependent,
    )


def _busiest_partners(pattern: Pattern, weighted: bool = False) -> float:
    """Return the number of messages of the busiest rank, or their total weight."""
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
    """Return traffic between nodes, and the busiest rank's message count and bytes."""
    if pattern.directed is not None:
        a, b, weight, _ = pattern.directed.columns
        most = float(np.bincount(a, minlength=1).max(initial=0))
        sent = float(np.bincount(a, weight).max(initial=0.0)) * size
        traffic = Traffic.of(a, b, weight * size).by_node(
            placement.node_of_rank, len(placement.rows)
        )
        return traffic, most, sent
    if pattern.spec.startswith(("matrix:", "measured:")):
        size *= 0.5  # an edge's weight is the sum of both directions
    a, b, weight = pattern.upper()  # each edge once: both directions carry equally much
    ends = placement.node_of_rank[a], placement.node_of_rank[b]
    forward = Traffic.undirected(*ends, weight * size).by_pair(len(placement.rows))
    most = float(np.diff(pattern.indptr).max(initial=0))
    sent = float(np.bincount(pattern.row, pattern.weights).max(initial=0.0)) * size
    return forward + forward.reversed(), most, sent
