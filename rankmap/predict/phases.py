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

import numpy as np

from nidmap.placement.placement import Placement
from nidmap.placement.support.array_types import Ints
from nidmap.placement.support.arrays import sample_evenly
from nidmap.placement.traffic import Traffic, join_traffic
from nidmap.rankmap.collectives import Part, partner_in_turn
from nidmap.rankmap.collectives.algorithms import collective_parts
from nidmap.rankmap.pattern import Pattern
from nidmap.rankmap.pattern.collective import Collective
from nidmap.rankmap.pattern.structured import Lines
from nidmap.rankmap.pattern.training import Training
from nidmap.rankmap.predict import neighbours
from nidmap.rankmap.predict.job import algorithms
from nidmap.rankmap.predict.phase import Phase, RankStep, between_nodes

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
    in_order: Iterable[Phase]
    mpi = placement.known_machine.topology.parameters.get("mpi", "")
    if isinstance(pattern, Collective):
        (algorithm_used,) = algorithms(pattern, algorithm, size, mpi)
        parts = collective_parts(pattern.name, algorithm_used, placement.ranks, pattern.root, size)
        in_order = (_collective_phase(part, placement, steps) for part in parts if part.steps)
    elif isinstance(pattern, Lines):
        by_line = algorithms(pattern, algorithm, size, mpi)
        in_order = _line_phases(pattern, placement, size, by_line, steps)
    elif isinstance(pattern, Training):
        in_order = _training_phases(pattern, placement, size)
    else:
        in_order = [neighbours.neighbour_phase(pattern, placement, size, steps, algorithm)]
    yield from in_order


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
    traffic, sent = _line_traffic(placement, lines, block), (lines.shape[1] - 1) * block
    if algorithm == "bruck":  # each block goes a part of its way in each of several steps
        traffic = join_traffic(sent * times for sent, times in between_nodes(steps, placement))
        sent = sum(step.size * step.times for step in steps)
    return Phase(
        name,
        placement,
        traffic,
        lambda: between_nodes(steps, placement),
        in_turn=float(sum(step.times for step in steps)),
        a_rank=float(lines.shape[1] - 1) if several else 0.0,
        sent=sent,
        shown=0 if all(step.times == 1 for step in steps) else len(steps),
        everyone=True,
        several=several,
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


def most_steps(channels: int, ranks: int, routing: str) -> int:
    """Return how many steps of an all-to-all to consider, given the approximate cost of one."""
    us = 300 + US_A_CHANNEL.get(routing, 0.15) * channels + 0.12 * ranks
    most = max(LEAST_STEPS, int(MOST_US / us))
    return min(most, MOST_DIVIDED) if routing == "adaptive" else most
