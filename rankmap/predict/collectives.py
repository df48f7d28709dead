"""Collectives as phases: each part of an algorithm is one, its steps follow each other.

A step is as long as its own busiest link. Combining what arrives costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placement.support.array_types import Floats
from rankmap.collectives import Part, Step, parts
from rankmap.pattern.collective import Collective
from rankmap.predict.lines import spread
from rankmap.predict.phase import Phase, Seating, Sends
from rankmap.predict.summing import Summed, join_sums, sum_messages

__all__ = ["phases"]


def phases(
    pattern: Collective, job: Seating, size: float, algorithm: str, steps: int | None
) -> Iterator[Phase]:
    """Yield a phase for each part of an algorithm.

    Parameters
    ----------
    pattern : Collective
        Fitted to the ranks.
    job : Seating
    size : float
        ``--bytes``.
    algorithm : str
        Its name.
    steps : int or None
        Steps that are looked at, at most, where they are much alike; None: all.
    """
    for part in parts(pattern.name, algorithm, pattern.ranks or 0, pattern.root, size):
        if part.steps:
            yield _Sums(part, job, steps).phase()


class _Sums:
    """What the steps of a part come to on a job's nodes."""

    def __init__(self, part: Part, job: Seating, most: int | None) -> None:
        self.part, self.job = part, job
        self.sent: Floats = np.zeros(len(job.node))
        self.posted = 0.0
        self.inside: Floats = np.zeros(len(job.rows))
        self.steps: list[tuple[Summed, float]] = []
        for k, times in _looks(part, most):
            step = part.step(k)
            self._count(step, times)
            self._look(step, times)

    def _count(self, step: Step, times: float) -> None:
        """Add what a step's ranks send, and what stays inside nodes."""
        node, source = self.job.node, step.source
        size = times * self.part.block * np.broadcast_to(step.blocks, source.shape)
        self.sent += np.bincount(source, size, minlength=len(self.sent))
        self.posted += times * float(np.bincount(source).max(initial=0))
        stays = node[source] == node[step.target]
        self.inside += np.bincount(node[source[stays]], size[stays], minlength=len(self.inside))

    def _look(self, step: Step, times: float) -> None:
        """Add what goes between nodes in a step that stands for so many."""
        size = step.blocks * self.part.block
        node = self.job.node
        found = sum_messages(node[step.source], node[step.target], size, len(self.inside))
        self.steps.append((found, times))

    def phase(self) -> Phase:
        """Return the part as a phase."""
        part, job = self.part, self.job
        total = join_sums([_scale_sum(found, times) for found, times in self.steps], len(job.rows))
        leaving = np.bincount(total.source, total.messages, minlength=len(job.rows))
        alone = part.steps == 1
        in_turn = sum(times for found, times in self.steps if len(found.source))
        sampled = not part.alike and in_turn > len(self.steps)
        return Phase(
            part.name,
            job.demand(total),
            job,
            lambda: total,
            None if alone else lambda: iter(self.steps),
            in_turn=in_turn,
            a_rank=self.posted if alone else 0.0,
            a_node=float(leaving.max(initial=0.0)),
            inside=float(self.inside.max(initial=0.0)),
            a_pair=sum(times * found.a_pair() for found, times in self.steps),
            sent=float(self.sent.max(initial=0.0)),
            shown=len(self.steps) if sampled else 0,
            sends=self._sends,
        )

    def _sends(self) -> Sends:
        """Return the messages of all steps."""
        part = self.part
        every = ((k, part.step(k)) for k in range(part.steps))
        return Sends.of((k, s.source, s.target, s.blocks * part.block) for k, s in every)


def _looks(part: Part, most: int | None) -> list[tuple[int, float]]:
    """Return the steps that are looked at, and how many each stands for."""
    if part.alike:
        return [(k, float(times)) for k, times in part.alike]
    if not part.even or most is None:
        return [(k, 1.0) for k in range(part.steps)]
    at, times = spread(part.steps, most)
    return [(k - 1, t) for k, t in zip(at, times, strict=True)]


def _scale_sum(found: Summed, times: float) -> Summed:
    """Return what so many of a step come to."""
    return found._replace(
        messages=found.messages * times, weight=found.weight * times, inside=found.inside * times
    )
