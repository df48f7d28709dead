# SPDX-License-Identifier: Apache-2.0
"""Phases: which parts of a pattern are sent at once, and which only after others.

A pattern and an order become a few phases, each a demand on the network from
node to node and the messages it is made of. Structured patterns are never
expanded into pairs of ranks: an all-to-all is this many ranks on each node, a
stencil the grid of nodes against itself, shifted.

All-to-alls along the lines of a process grid, all lines of a direction doing the same step at the
same time, go one of these ways:

==========  ====================================================================
at-once     everything is posted at once (MPI's linear algorithm)
scattered   rank r sends to r + 1, r + 2 …, `POSTED` messages at once, and waits for these
pairwise    step i: rank r exchanges with r XOR i where a line's ranks are a power
            of two, else it sends to r + i (MPICH's and Open MPI's pairwise)
ring        step i: rank r sends to r + i (the name that STAR-MPI and SimGrid use)
bruck       round k: rank r sends to r + 2^k all blocks whose distance has bit k:
            fewest messages, more bytes
==========  ====================================================================

Exchanges with few partners (stencils, rings, graphs, measured matrices) are one phase.
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

Of a collective each part of an algorithm is a phase, its steps follow each other; a step is
as long as its own busiest link. Combining what arrives costs nothing here.

A training iteration sends along one axis after the other: collectives of tensor,
context and data parallelism are rings in rank order, experts' exchanges all-to-alls,
pipeline stages chains both ways (`nidmap.rankmap.pattern.training` has the bytes and what
they were checked on). Real programs overlap some of the axes with each other and with
computation: what is added up here is what the network has to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.arrays import sample_evenly
from nidmap.placement.traffic import Traffic, join_traffic
from nidmap.rankmap.collectives import Part, partner_in_turn
from nidmap.rankmap.collectives.algorithms import collective_parts
from nidmap.rankmap.collectives.libraries import LIBRARIES
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.collective import Collective
from nidmap.rankmap.pattern.graph import Graph
from nidmap.rankmap.pattern.structured import Lines, Ring, Stencil
from nidmap.rankmap.pattern.sweep import Sweep, waves
from nidmap.rankmap.pattern.training import Training
from nidmap.rankmap.predict.job import algorithms, asked_library
from nidmap.rankmap.predict.phase import Phase, RankStep, between_nodes, by_node
from nidmap.rankmap.recognition.steps import RecordedRun, recorded_run
from nidmap.rankmap.score.traffic import pairs_of_nodes

#: us that computing all steps of a stepwise algorithm may take; if it is more, an even sample is
#: computed, of at least this many.
MOST_US, LEAST_STEPS = 3e5, 6

#: Maximum number of steps whose bytes are split individually: more change a time by 0.3 % at most
#: on random jobs, and take 1 ms each.
MOST_DIVIDED = 16

#: Messages that a rank posts before it waits for all of them (MPIR_CVAR_ALLTOALL_THROTTLE of
#: MPICH), and the number of all ranks' messages up to which each is considered; beyond, an even
#: sample.
POSTED, LISTED = 32, 1 << 17

#: Approximate us per step and channel of the network, for slow routings.
US_A_CHANNEL = {"single": 1.0, "adaptive": 0.45}


def phases(
    pattern: Pattern, placement: Placement, size: float, algorithm: str, steps: int | None = None
) -> Iterator[Phase]:
    """Yield the consecutive phases of a pattern.

    `pattern`: fitted to the ranks. `algorithm`: as `algorithm_of` returns it. `steps`: steps of
    an algorithm that are looked at, at most; None means all.
    """
    mpi = placement.known_machine.topology.parameters.get("mpi", "")
    if isinstance(pattern, Collective):
        (algorithm_used,) = algorithms(pattern, algorithm, size, mpi)
        parts = collective_parts(pattern.name, algorithm_used, placement.ranks, pattern.root, size)
        yield from (_collective_phase(part, placement, steps) for part in parts if part.steps)
    elif isinstance(pattern, Lines):
        by_line = algorithms(pattern, algorithm, size, mpi)
        yield from _line_phases(pattern, placement, size, by_line, steps)
    elif isinstance(pattern, Training):
        yield from _training_phases(pattern, placement, size)
    elif isinstance(pattern, Sweep):
        yield _sweep_phase(pattern, placement, size, steps)
    elif isinstance(pattern, Graph) and pattern.recording is not None:
        library = algorithm if algorithm in LIBRARIES else asked_library("library", mpi)
        yield _recorded_phase(recorded_run(pattern.recording, library), placement, size)
    elif isinstance(pattern, Graph) and pattern.directed is not None:
        yield _listed_phase(pattern.directed, placement, size)
    elif isinstance(pattern, Ring):
        rank = np.arange(placement.ranks)
        yield _listed_phase(Traffic.of(rank, np.roll(rank, -1), 1.0).away(), placement, size)
    else:
        yield _two_way_phase(pattern, placement, size)


def _training_phases(pattern: Training, placement: Placement, size: float) -> Iterator[Phase]:
    """Yield a phase for each axis with traffic."""
    nodes, in_turn = len(placement.rows), pattern.in_turn()
    for axis, sent, groups in pattern.sending_groups():
        turns, node, size_sent = in_turn[axis], placement.node_of_rank[groups], sent * size
        members = groups.shape[1]
        others = [np.roll(node, -1, axis=1)]
        if axis == "ep":  # to all others directly
            others = [np.roll(node, -shift, axis=1) for shift in range(1, members)]
        elif axis == "pp":  # no stage comes after the last
            node, others = node[:, :-1], [node[:, 1:]]
        share = size_sent / len(others)
        traffic = join_traffic(
            Traffic.of(node.ravel(), other.ravel(), share, turns).by_pair(nodes) for other in others
        )
        yield Phase(
            axis,
            placement,
            traffic + traffic.reversed() if axis == "pp" else traffic,
            in_turn=turns,
            a_rank=turns * len(others) if len(others) > 1 else 0.0,
            sent=size_sent * (2 if axis == "pp" else 1),
        )


def _collective_phase(part: Part, placement: Placement, most: int | None) -> Phase:
    """Return part of an algorithm as a phase.

    `most`: steps that are looked at, at most, where they are much alike; None means all.
    """

    def rank_steps(sample: Iterable[tuple[int, float]]) -> Iterator[RankStep]:
        for k, times in sample:
            step = part.step(k)
            yield RankStep(step.source, step.target, step.blocks * part.block, times)

    steps = list(rank_steps(_sampled_steps(part, most)))
    flows = list(between_nodes(steps, placement))
    sent, posted = np.zeros(placement.ranks), 0.0
    for step in steps:
        size = np.broadcast_to(step.size, step.source.shape)
        sent += step.times * np.bincount(step.source, size, minlength=len(sent))
        posted += step.times * float(np.bincount(step.source).max(initial=0))
    in_turn = sum(times for flow, times in flows if len(flow.away()))
    sampled = not part.alike and in_turn > len(steps)
    alone = part.steps == 1
    return Phase(
        part.name,
        placement,
        join_traffic(flow * times for flow, times in flows),
        None if alone else lambda: iter(flows),
        in_turn=in_turn,
        a_rank=posted if alone else 0.0,
        sent=float(sent.max(initial=0.0)),
        shown=len(steps) if sampled else 0,
    )


def _sampled_steps(part: Part, most: int | None) -> list[tuple[int, float]]:
    """Return the steps to consider, and how many each represents."""
    if part.alike:
        return [(k, float(times)) for k, times in part.alike]
    if not part.even or most is None:
        return [(k, 1.0) for k in range(part.steps)]
    at, times = sample_evenly(part.steps, most)
    return [(k - 1, t) for k, t in zip(at, times, strict=True)]


def _line_phases(
    pattern: Lines, placement: Placement, size: float, algorithms: list[str], most: int | None
) -> Iterator[Phase]:
    """Yield the all-to-all along each dimension, rows (the last dimension) first."""
    dims = pattern.dims or ()
    ranks = np.arange(placement.ranks).reshape(dims)
    for axis, extent in reversed(list(enumerate(dims))):
        if extent < 2:
            continue
        name = "exchange" if len(dims) == 1 else ("column", "row")[axis]
        lines = np.moveaxis(ranks, axis, -1).reshape(-1, extent)
        block = size * pattern.weight
        how, several = algorithms[axis], extent - 1 > POSTED
        if how == "at-once" or (how == "scattered" and not several):
            yield _posted_at_once(name, placement, lines, block)
        else:
            yield _sent_in_turn(name, placement, lines, block, how, most or extent)


def _posted_at_once(name: str, placement: Placement, lines: Ints, block: float) -> Phase:
    """Return the all-to-all of each row of ranks, with everything posted at once."""
    count = lines.shape[1] - 1
    traffic = _line_traffic(placement, lines, block)
    return Phase(name, placement, traffic, a_rank=float(count), sent=count * block, everyone=True)


def _sent_in_turn(
    name: str, placement: Placement, lines: Ints, block: float, algorithm: str, most: int
) -> Phase:
    """Return the all-to-all of each row of ranks, step by step."""
    several = algorithm == "scattered"
    walk = _scattered_steps(lines, most) if several else _line_steps(lines, algorithm, most)
    steps = [step._replace(size=step.size * block) for step in walk]
    count = lines.shape[1] - 1
    traffic, sent = _line_traffic(placement, lines, block), count * block
    if algorithm == "bruck":  # each block goes a part of its way in each of several steps
        traffic = join_traffic(sent * times for sent, times in between_nodes(steps, placement))
        sent = sum(step.size * step.times for step in steps)
    a_rank = float(count) if several else 0.0
    return _step_by_step(
        name, placement, traffic, steps, sent=sent, a_rank=a_rank, everyone=True, several=several
    )


def _step_by_step(
    name: str, placement: Placement, traffic: Traffic, steps: list[RankStep], **more: Any
) -> Phase:
    """Return messages that ranks send step by step, all steps or an even sample of them.

    `more`: other fields of the phase.
    """
    return Phase(
        name,
        placement,
        traffic,
        lambda: between_nodes(steps, placement),
        in_turn=float(sum(step.times for step in steps)),
        shown=0 if all(step.times == 1 for step in steps) else len(steps),
        **more,
    )


def _line_traffic(placement: Placement, lines: Ints, block: float) -> Traffic:
    """Return the traffic between nodes when the ranks of each row send to each other."""
    if len(lines) == 1:
        return Traffic.everyone(np.arange(len(placement.rows)), placement.counts, block)
    line = np.repeat(np.arange(len(lines)), lines.shape[1])
    return Traffic.lines(line, placement.node_of_rank[lines].ravel(), 1, block)


def _line_steps(lines: Ints, algorithm: str, most: int) -> Iterator[RankStep]:
    """Yield the steps of an all-to-all, or an even sample of them; sizes are in blocks."""
    extent = lines.shape[1]
    place = np.arange(extent)
    turns, times = sample_evenly(extent - 1, most)
    if algorithm == "bruck":
        turns = [1 << k for k in range((extent - 1).bit_length())]
        times = [1.0] * len(turns)
    for turn, stands_for in zip(turns, times, strict=True):
        partner = partner_in_turn(place, turn, extent, algorithm == "pairwise")
        blocks = float((place & turn > 0).sum()) if algorithm == "bruck" else 1.0
        yield RankStep(lines.ravel(), lines[:, partner].ravel(), blocks, stands_for)


def _scattered_steps(lines: Ints, most: int) -> Iterator[RankStep]:
    """Yield the rounds posted together in a scattered all-to-all, or an even sample."""
    extent = lines.shape[1]
    turns, times = sample_evenly(math.ceil((extent - 1) / POSTED), most)
    for turn, stands_for in zip(turns, times, strict=True):
        first, last = (turn - 1) * POSTED, min(turn * POSTED, extent - 1)
        shifts, each = sample_evenly(last - first, max(4, LISTED // lines.size))
        partner = (np.arange(extent) + first + np.array(shifts)[:, None]) % extent
        target = lines[:, partner]
        source = np.broadcast_to(lines[:, None, :], target.shape)
        size = np.broadcast_to(np.array(each)[:, None], target.shape)
        yield RankStep(source.ravel(), target.ravel(), size.ravel(), stands_for)


def _listed_phase(sent: Traffic, placement: Placement, size: float) -> Phase:
    """Return messages between ranks that are all sent at once."""
    most = np.bincount(sent.source, minlength=1).max()
    most_bytes = np.bincount(sent.source, sent.bytes, minlength=1).max()
    traffic = by_node(sent.sized(size), placement)
    return Phase("exchange", placement, traffic, a_rank=float(most), sent=float(most_bytes) * size)


def _two_way_phase(pattern: Pattern, placement: Placement, size: float) -> Phase:
    """Return an exchange in which equally much is sent in both directions of every edge."""
    if pattern.spec.startswith(("matrix:", "measured:")):
        size *= 0.5  # an edge's weight is the sum of both directions
    directions: list[Traffic] = []
    for a, b, weight in pairs_of_nodes(pattern, placement.node_of_rank):
        forward = Traffic.of(a, b, weight * size).by_pair(len(placement.rows))
        directions += [forward, forward.reversed()]
    most, most_bytes = (_busiest_partners(pattern, weighted) for weighted in (False, True))
    traffic = join_traffic(directions)
    phase = Phase("exchange", placement, traffic, a_rank=most, sent=size * most_bytes)
    if not (isinstance(pattern, Stencil) and pattern.staged):
        return phase
    steps = [(direction, 1.0) for direction in directions]
    return replace(phase, steps=lambda: iter(steps), in_turn=float(len(steps)))


def _busiest_partners(pattern: Pattern, weighted: bool = False) -> float:
    """Return the number of messages of the busiest rank, or their total weight."""
    if isinstance(pattern, Stencil):  # in the middle of a grid all ranks send alike
        pattern = replace(pattern, dims=tuple(min(extent, 3) for extent in pattern.dims))
    degree = np.zeros(pattern.ranks or 0)
    for edges in pattern.edges():
        for end in (edges.source, edges.target):
            degree += np.bincount(end, edges.bytes if weighted else None, minlength=len(degree))
    return float(degree.max(initial=0))


def _sweep_phase(pattern: Sweep, placement: Placement, size: float, most: int | None) -> Phase:
    """Return a sweep, whose waves follow each other because messages wait for others."""
    wave, source, target = waves(pattern.dims, pattern.messages)
    count = int(wave[-1]) + 1 if len(wave) else 0
    begins = np.searchsorted(wave, np.arange(count + 1))
    steps = []
    for number, times in zip(*sample_evenly(count, most or max(1, count)), strict=True):
        sent = slice(begins[number - 1], begins[number])
        steps.append(RankStep(source[sent], target[sent], size, times))
    traffic = by_node(Traffic.of(source, target, size), placement)
    most_bytes = float(np.bincount(source, minlength=1).max()) * size
    return _step_by_step("exchange", placement, traffic, steps, sent=most_bytes, dependent=True)


def _recorded_phase(run: RecordedRun, placement: Placement, size: float) -> Phase:
    """Return all messages of a program: in total, and step by step with repeat counts.

    Messages have headers. Ranks run ahead of each other from step to step, but where each message
    waits for others.
    """
    header = placement.known_machine.topology.parameters.get("header", 0.0)

    def between(sent: Traffic, times: float = 1.0) -> Traffic:
        wire = replace(sent, bytes=(sent.bytes * size + sent.messages * header) / times)
        return by_node(replace(wire, messages=sent.messages / times), placement)

    in_turn = sum(step.times for step in run.steps)
    posted = np.bincount(run.sent.source, run.sent.messages, minlength=1).max()
    most_bytes = np.bincount(run.sent.source, run.sent.bytes, minlength=1).max()
    return Phase(
        "exchange",
        placement,
        between(run.sent),
        steps=(
            (lambda: ((between(step.sent, step.times), step.times) for step in run.steps))
            if len(run.steps) > 1
            else None
        ),
        in_turn=in_turn,
        a_rank=max(0.0, float(posted) - in_turn),
        sent=float(most_bytes) * size,
        dependent=run.dependent,
    )


def most_steps(channels: int, ranks: int, routing: str) -> int:
    """Return how many steps of an all-to-all to consider, given the approximate cost of one."""
    us = 300 + US_A_CHANNEL.get(routing, 0.15) * channels + 0.12 * ranks
    most = max(LEAST_STEPS, int(MOST_US / us))
    return min(most, MOST_DIVIDED) if routing == "adaptive" else most
