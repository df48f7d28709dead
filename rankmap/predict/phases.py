"""Phases: what of a pattern is sent at once, and what only after something else.

A pattern and an order become a few phases, each a demand on the network from
node to node and the messages it is made of. Structured patterns are never
expanded into pairs of ranks: an all-to-all is so many ranks on each node, a
stencil the grid of nodes against itself, shifted.

Of a collective each part of an algorithm is a phase, its steps follow each other; a step is
as long as its own busiest link. Combining what arrives costs nothing here.

A training iteration sends along one axis after the other: collectives of tensor,
context and data parallelism are rings in rank order, experts' exchanges all-to-alls,
pipeline stages chains both ways (`rankmap.pattern.training` has the bytes and what
they were checked on). Real programs overlap some of the axes with each other and with
computation: what is added up here is what the network has to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from placement.support.arrays import sample_evenly
from placement.traffic import Traffic, join_traffic
from rankmap.collectives import Part, collective_parts
from rankmap.pattern import Pattern
from rankmap.pattern.collective import Collective
from rankmap.pattern.structured import Lines
from rankmap.pattern.training import Training
from rankmap.placement import Placement
from rankmap.predict import lines, neighbours
from rankmap.predict.algorithms import algorithms
from rankmap.predict.phase import Phase, RankStep, Sends, between_nodes


def phases(
    pattern: Pattern, placement: Placement, size: float, algorithm: str, steps: int | None = None
) -> Iterator[Phase]:
    """Yield the phases of a pattern, which follow each other.

    Parameters
    ----------
    pattern : Pattern
        Fitted to the ranks.
    placement : Placement
    size : float
        ``--bytes``.
    algorithm : str
        As `algorithm_of` returns it.
    steps : int or None
        Steps of an algorithm that are looked at, at most; None: all.
    """
    in_order: Iterable[Phase]
    mpi = placement.known_machine.topology.parameters.get("mpi", "")
    if isinstance(pattern, Collective):
        (algorithm_used,) = algorithms(pattern, algorithm, size, mpi)
        parts = collective_parts(pattern.name, algorithm_used, placement.ranks, pattern.root, size)
        in_order = (_collective_phase(part, placement, steps) for part in parts if part.steps)
    elif isinstance(pattern, Lines):
        by_line = algorithms(pattern, algorithm, size, mpi)
        in_order = lines.phases(pattern, placement, size, by_line, steps)
    elif isinstance(pattern, Training):
        in_order = _training_phases(pattern, placement, size)
    else:
        in_order = [neighbours.neighbour_phase(pattern, placement, size, steps)]
    before: tuple[Phase, ...] = ()
    for phase in in_order:
        phase.before = before
        yield phase
        before = (*before, phase)


def _training_phases(pattern: Training, placement: Placement, size: float) -> Iterator[Phase]:
    """Yield a phase for each axis that sends something."""
    nodes, in_turn = len(placement.rows), pattern.in_turn()
    for axis, sent, groups in pattern.sending_groups():
        turns, node, size_sent = in_turn[axis], placement.node_of_rank[groups], sent * size
        members = groups.shape[1]
        others = [np.roll(node, -1, axis=1)]
        if axis == "ep":  # to all others directly
            others = [np.roll(node, -shift, axis=1) for shift in range(1, members)]
        elif axis == "pp":  # no stage comes behind the last
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
    """Return a part of an algorithm, as a phase.

    Parameters
    ----------
    part : Part
    placement : Placement
    most : int or None
        Steps that are looked at, at most, where they are much alike; None: all.
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
        sends=lambda: Sends.in_turn(rank_steps((k, 1.0) for k in range(part.steps))),
    )


def _sampled_steps(part: Part, most: int | None) -> list[tuple[int, float]]:
    """Return the steps that are looked at, and how many each stands for."""
    if part.alike:
        return [(k, float(times)) for k, times in part.alike]
    if not part.even or most is None:
        return [(k, 1.0) for k in range(part.steps)]
    at, times = sample_evenly(part.steps, most)
    return [(k - 1, t) for k, t in zip(at, times, strict=True)]
