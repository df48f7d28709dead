"""Phases: what of a pattern is sent at once, and what only after something else.

A pattern and an order become a few phases, each a demand on the network from
node to node and the messages it is made of. Structured patterns are never
expanded into pairs of ranks: an all-to-all is so many ranks on each node, a
stencil the grid of nodes against itself, shifted.

A training iteration sends along one axis after the other: collectives of tensor,
context and data parallelism are rings in rank order, experts' exchanges all-to-alls,
pipeline stages chains both ways (`rankmap.pattern.training` has the bytes and what
they were checked on). Real programs overlap some of the axes with each other and with
computation: what is added up here is what the network has to do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.support.array_types import Ints
from placement.traffic import Traffic, join_traffic
from rankmap.pattern import Pattern
from rankmap.pattern.collective import Collective
from rankmap.pattern.structured import Lines
from rankmap.pattern.training import Training
from rankmap.placement import Placement
from rankmap.predict import collectives, lines, neighbours
from rankmap.predict.algorithms import algorithms
from rankmap.predict.phase import Phase


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
    mpi = placement.known_machine.topology.parameters.get("mpi", "")
    if isinstance(pattern, Collective):
        (algorithm_used,) = algorithms(pattern, algorithm, size, mpi)
        in_order = collectives.phases(pattern, placement, size, algorithm_used, steps)
    elif isinstance(pattern, Lines):
        by_line = algorithms(pattern, algorithm, size, mpi)
        in_order = lines.phases(pattern, placement, size, by_line, steps)
    elif isinstance(pattern, Training):
        in_order = _training_phases(pattern, placement, size)
    else:
        in_order = iter([neighbours.neighbour_phase(pattern, placement, size, steps)])
    before: tuple[Phase, ...] = ()
    for phase in in_order:
        phase.before = before
        yield phase
        before = (*before, phase)


def _training_phases(pattern: Training, placement: Placement, size: float) -> Iterator[Phase]:
    """Yield a phase for each axis that sends something."""
    nodes = len(placement.rows)
    for axis, sent in pattern.sent().items():
        groups = pattern.groups("dp-cp" if axis == "dp" else axis)
        if not sent or groups.shape[1] < 2:
            continue
        in_turn, at_once = _axis_messages(pattern, axis, groups.shape[1])
        traffic = _axis_traffic(axis, placement.node_of_rank[groups], sent * size, in_turn, nodes)
        yield Phase(
            axis,
            placement,
            traffic,
            in_turn=in_turn,
            a_rank=at_once * in_turn if at_once > 1 else 0.0,
            sent=sent * size * (2 if axis == "pp" else 1),
        )


def _axis_traffic(axis: str, node: Ints, sent: float, turns: float, nodes: int) -> Traffic:
    """Return what goes between nodes along one axis (`node`: groups x members), in all turns."""
    if axis == "ep":
        members = node.shape[1]
        shifts = (np.roll(node, -d, axis=1).ravel() for d in range(1, members))
        share = sent / (members - 1)
        return join_traffic(
            Traffic.of(node.ravel(), there, share, turns).by_pair(nodes) for there in shifts
        )
    if axis == "pp":
        forward = Traffic.of(node[:, :-1].ravel(), node[:, 1:].ravel(), sent, turns).by_pair(nodes)
        return forward + forward.reversed()
    return Traffic.of(node.ravel(), np.roll(node, -1, axis=1).ravel(), sent, turns).by_pair(nodes)


def _axis_messages(pattern: Training, axis: str, members: int) -> tuple[float, float]:
    """Return how many messages of a rank wait for each other, and how many it posts at once."""
    z = pattern.sizes
    layers = z.layers / pattern.pp * z.microbatches
    moe = (z.moe or z.layers) / pattern.pp * z.microbatches
    in_turn = {
        "tp": (10 if z.sp else 8) * (members - 1) * layers,
        "cp": 3 * (members - 1) * layers,
        "ep": 4 * moe,
        "dp": 2.0 * (members - 1),
        "pp": 2.0 * (z.microbatches + members - 2),
    }[axis]
    return in_turn, members - 1.0 if axis == "ep" else 1.0
