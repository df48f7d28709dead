# SPDX-License-Identifier: Apache-2.0
"""A check of a replay's quick times against full predictions, with every link routed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

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

    def __init__(self, network: Network) -> None:
        self.network, self.machine = network, network.machine
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
        model = self.network.cost(app).model
        if (count, model) not in self._best:
            choices = quick_choices(self.machine, self.machine.compute, count)
            self._best[count, model] = min(model.time(model.place(rows)) for _, rows in choices)
        return self._best[count, model]

    def _neighbours(
        self, jobs: Sequence[tuple[JobTraffic, Ints, float]], own: tuple[JobTraffic, Ints, float]
    ) -> list[_Neighbour]:
        """Return jobs with rates of which the predictor leaves as much of each channel as they."""
        busy = [self._busy(app, rows) * rounds for app, rows, rounds in (*jobs, own)]
        bandwidth = self.network.cost(own[0]).model.channels.bandwidth
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
        model = self.network.cost(app).model
        bandwidth = model.channels.bandwidth
        busy = np.zeros(len(bandwidth))
        for phase in model.phases(model.place(rows)):
            carried = model.loads(phase.total, None)
            busy[carried.used] += carried.carried / GB / bandwidth[carried.used]
        return busy


def check_text(
    network: Network, trace: Trace, apps: list[JobTraffic], outcome: Outcome, count: int
) -> str:
    """Say in one sentence how far the quick times are off for `count` multi-node jobs."""
    routed, rng = Routed(network), np.random.default_rng(0)
    sends = (trace.nodes > 1) & ([app.share > 0 for app in apps])
    fit = np.flatnonzero(sends)
    slowdowns = []  # of each: its neighbours, how many times as long as alone, quick and routed
    for job in np.sort(rng.choice(fit, min(count, len(fit)), replace=False)).tolist():
        when, rows = outcome.start[job], outcome.of(job)
        others = np.flatnonzero(sends & (outcome.start < when) & (outcome.end > when)).tolist()
        sharing, sent = Sharing(network), []
        for k in others:
            sharing.add(k, network.footprint(apps[k], outcome.of(k)), apps[k].share)
        for k, slowdown in zip(others, sharing.slowdowns() if others else (), strict=True):
            best = network.best(apps[k], len(outcome.of(k)))
            rounds = rounds_per_second(apps[k].share, best, slowdown)
            sent.append((apps[k], outcome.of(k), rounds))
        quick = sharing.slowdown(network.footprint(apps[job], rows))
        slowdowns.append((len(others), quick, routed.slowdown(apps[job], rows, sent)))
    return _error_text(*np.array(slowdowns).reshape(-1, 3).T)


def _error_text(neighbours: Floats, quick: Floats, routed: Floats) -> str:
    errors = np.abs(quick - routed) / routed
    a, b = np.triu_indices(len(errors), 1)
    ahead, due = (np.log(times[a]) - np.log(times[b]) for times in (quick, routed))
    apart = np.abs(due) > np.log(1.1)
    same = np.sign(ahead) == np.sign(due)
    order = f"; {same[apart].mean():.0%} of unequal pairs ordered alike" if apart.any() else ""
    return (
        f"quick times of {len(errors)} jobs with {np.median(neighbours):.0f} neighbours against "
        f"predictions with every link routed: median error {np.median(errors):.1%}, "
        f"90th percentile {np.percentile(errors, 90):.1%}{order}".replace("%", " %")
    )
