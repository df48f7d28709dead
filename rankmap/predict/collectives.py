"""Collectives as phases: each part of an algorithm is one, its steps follow each other.

A step is as long as its own busiest link. Combining what arrives costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.support.array_types import Floats
from placement.support.arrays import sample_evenly
from placement.traffic import Traffic, join_traffic
from rankmap.collectives import BlockStep, Part, collective_parts
from rankmap.pattern.collective import Collective
from rankmap.placement import Placement
from rankmap.predict.phase import Phase, Sends


def phases(
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
