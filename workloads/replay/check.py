# SPDX-License-Identifier: Apache-2.0
"""A check of a replay's quick times against full predictions, with every link routed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nidmap.placement.machine import Machine
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.quantities import GB
from nidmap.rankmap.past_jobs import quick_choices
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.background import Other
from nidmap.workloads.replay.engine import Outcome
from nidmap.workloads.replay.sharing import (
    JobTraffic,
    Network,
    Sharing,
    rounds_per_second,
    stretches,
)
from nidmap.workloads.replay.trace import Trace

#: Turns in which the others' use of channels settles.
_TURNS = 8


class Sample(NamedTuple):
    """How many times as long a job communicated as alone, when it started next to others."""

    job: int
    neighbours: int  # jobs that communicated at that time
    quick: float
    routed: float

    @property
    def error(self) -> float:
        """The relative error of the quick one."""
        return abs(self.quick - self.routed) / self.routed


@dataclass(frozen=True, slots=True, eq=False)
class _Neighbour(Other):
    """Another job that sends its own pattern."""

    where: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    rate: Floats = field(default_factory=lambda: np.empty(0))  # GB/s on the channels `where`

    def sent(self, machine: object, routing: str) -> tuple[Ints, Floats]:
        """Return the channels that it uses, and GB/s on each."""
        return self.where, self.rate


class Routed:
    """Predicts jobs next to others that send their own patterns, with every link routed."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._models: dict[tuple[str, int, float | None], Predictor] = {}
        self._best: dict[tuple[int, Predictor], float] = {}

    def slowdown(
        self, app: JobTraffic, rows: Ints, others: Sequence[tuple[JobTraffic, Ints, float]],
        rounds: float = 0.0,
    ) -> float:  # fmt: skip
        """Return how many times as long a job communicates as alone on the best nodes.

        `others`: their applications, nodes, and rounds per second. `rounds`: its own per second; 0
        where the others have not met it yet.
        """
        background = self._neighbours(others, (app, rows, rounds))
        model = Predictor(self.machine, Job(*app[:3], background=background))
        return model.time(model.place(rows)) / self.best(app, len(rows))

    def best(self, app: JobTraffic, count: int) -> float:
        """Return the seconds of a round on the best nodes of an empty machine."""
        model = self._model(app)
        if (count, model) not in self._best:
            choices = quick_choices(self.machine, self.machine.compute, count)
            self._best[count, model] = min(model.time(model.place(rows)) for _, rows in choices)
        return self._best[count, model]

    def _model(self, app: JobTraffic) -> Predictor:
        key = app[:3]
        if key not in self._models:
            self._models[key] = Predictor(self.machine, Job(*key))
        return self._models[key]

    def _neighbours(
        self, jobs: Sequence[tuple[JobTraffic, Ints, float]], own: tuple[JobTraffic, Ints, float]
    ) -> list[_Neighbour]:
        """Return jobs with rates of which the predictor leaves as much of each channel as they."""
        busy = [self._busy(app, rows) * rounds for app, rows, rounds in (*jobs, own)]
        bandwidth = self._model(own[0]).channels.bandwidth
        owner, where = np.nonzero(busy)
        rate = np.array(busy)[owner, where]
        presence = np.minimum(rate, 1)
        for _ in range(_TURNS):
            presence = np.minimum(rate * stretches(where, presence, len(bandwidth)), 1)
        others = owner < len(jobs)
        present = np.bincount(where[others], presence[others], len(bandwidth))
        taken = (bandwidth / (1 + present))[where] * presence
        return [
            _Neighbour(rows, 1.0, where=where[owner == k], rate=taken[owner == k])
            for k, (_, rows, _) in enumerate(jobs)
        ]

    def _busy(self, app: JobTraffic, rows: Ints) -> Floats:
        """Return the seconds of each channel in a round of a job."""
        model = self._model(app)
        bandwidth = model.channels.bandwidth
        busy = np.zeros(len(bandwidth))
        for phase in model.phases(model.place(rows)):
            carried = model.loads(phase.total, None)
            busy[carried.used] += carried.carried / GB / bandwidth[carried.used]
        return busy


class Checker:
    """Compares both times for a sample of the jobs of a replay."""

    def __init__(self, network: Network, trace: Trace, apps: list[JobTraffic]) -> None:
        self.network, self.trace, self.apps = network, trace, apps
        self.routed = Routed(network.machine)

    def samples(self, outcome: Outcome, count: int, seed: int = 0) -> list[Sample]:
        """Return `count` multi-node jobs drawn by a seed, in the order of the trace."""
        fit = np.flatnonzero((self.trace.nodes > 1) & ([app.share > 0 for app in self.apps]))
        rng = np.random.default_rng(seed)
        drawn = rng.choice(fit, min(count, len(fit)), replace=False)
        return [self._sample(outcome, job) for job in np.sort(drawn).tolist()]

    def _sample(self, outcome: Outcome, job: int) -> Sample:
        when = outcome.start[job]
        running = (outcome.start < when) & (outcome.end > when) & (self.trace.nodes > 1)
        others = [k for k in np.flatnonzero(running).tolist() if self.apps[k].share]
        sharing, sent = Sharing(self.network), []
        for other in others:
            footprint = self.network.footprint(self.apps[other], outcome.of(other))
            sharing.add(other, footprint, self.apps[other].share)
        slow = sharing.slowdowns() if others else ()
        for other, slowdown in zip(others, slow, strict=True):
            app, rows = self.apps[other], outcome.of(other)
            best = self.network.best(app, len(rows))
            sent.append((app, rows, rounds_per_second(app.share, best, slowdown)))
        app, rows = self.apps[job], outcome.of(job)
        quick = sharing.slowdown(self.network.footprint(app, rows))
        return Sample(job, len(others), quick, self.routed.slowdown(app, rows, sent))


def check_words(samples: list[Sample]) -> str:
    """Say in one sentence how far the quick times are off."""
    errors = np.array([sample.error for sample in samples])
    quick, routed = (np.log([sample[k] for sample in samples]) for k in (2, 3))
    a, b = np.triu_indices(len(samples), 1)
    apart = np.abs(routed[a] - routed[b]) > np.log(1.1)
    same = np.sign(quick[a] - quick[b]) == np.sign(routed[a] - routed[b])
    order = f"; {same[apart].mean():.0%} of unequal pairs ordered alike" if apart.any() else ""
    others = np.median([sample.neighbours for sample in samples])
    return (
        f"quick times of {len(samples)} jobs with {others:.0f} neighbours against predictions with "
        f"every link routed: median error {np.median(errors):.1%}, "
        f"90th percentile {np.percentile(errors, 90):.1%}{order}".replace("%", " %")
    )
