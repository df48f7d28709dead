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

from collections.abc import Iterator

import numpy as np

from placement.support.array_types import Floats, Ints
from placement.support.arrays import sample_evenly
from placement.traffic import Traffic, join_traffic
from rankmap.collectives import BlockStep, Part, collective_parts
from rankmap.pattern import Pattern
from rankmap.pattern.collective import Collective
from rankmap.pattern.structured import Lines
from rankmap.pattern.training import Training
from rankmap.placement import Placement
from rankmap.predict import lines, neighbours
from rankmap.predict.algorithms import algorithms
from rankmap.predict.phase import Phase, Sends


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
        in_order = _collective_phases(pattern, placement, size, algorithm_used, steps)
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


def _collective_phases(
    pattern: Collective, placement: Placement, size: float, algorithm: str, steps: int | None
) -> Iterator[Phase]:
    """Yield a phase for each part of an algorithm.

    Parameters
    ----------
    pattern : Collective
        Fitted to the ranks.
    placement : Placement
    size : float
        ``--bytes``.
    algorithm : str
        Its name.
    steps : int or None
        Steps that are looked at, at most, where they are much alike; None: all.
    """
    for part in collective_parts(pattern.name, algorithm, pattern.ranks or 0, pattern.root, size):
        if part.steps:
            yield _StepSums(part, placement, steps).phase()


class _StepSums:
    """The traffic, bytes and messages of the steps of a collective's part on a job's nodes."""

    def __init__(self, part: Part, placement: Placement, most: int | None) -> None:
        self.part, self.placement = part, placement
        self.sent: Floats = np.zeros(len(placement.node_of_rank))
        self.posted = 0.0
        self.steps: list[tuple[Traffic, float]] = []
        for k, times in _sampled_steps(part, most):
            self._add(part.step(k), times)

    def _add(self, step: BlockStep, times: float) -> None:
        """Add a step that stands for so many."""
        node = self.placement.node_of_rank
        sent = Traffic.of(step.source, step.target, step.blocks * self.part.block)
        self.sent += times * np.bincount(sent.source, sent.bytes, minlength=len(node))
        self.posted += times * float(np.bincount(sent.source).max(initial=0))
        self.steps.append((sent.by_node(node, len(self.placement.rows)), times))

    def phase(self) -> Phase:
        """Return the part as a phase."""
        part = self.part
        alone = part.steps == 1
        in_turn = sum(times for step, times in self.steps if len(step.away()))
        sampled = not part.alike and in_turn > len(self.steps)
        return Phase(
            part.name,
            self.placement,
            join_traffic(step * times for step, times in self.steps),
            None if alone else lambda: iter(self.steps),
            in_turn=in_turn,
            a_rank=self.posted if alone else 0.0,
            sent=float(self.sent.max(initial=0.0)),
            shown=len(self.steps) if sampled else 0,
            sends=self._sends,
        )

    def _sends(self) -> Sends:
        """Return the messages of all steps."""
        part = self.part
        steps = ((k, part.step(k)) for k in range(part.steps))
        return Sends.of((k, s.source, s.target, s.blocks * part.block) for k, s in steps)


def _sampled_steps(part: Part, most: int | None) -> list[tuple[int, float]]:
    """Return the steps that are looked at, and how many each stands for."""
    if part.alike:
        return [(k, float(times)) for k, times in part.alike]
    if not part.even or most is None:
        return [(k, 1.0) for k in range(part.steps)]
    at, times = sample_evenly(part.steps, most)
    return [(k - 1, t) for k, t in zip(at, times, strict=True)]
