# SPDX-License-Identifier: Apache-2.0
"""How long jobs communicate on a network that they share: links that carry several jobs.

A job's *footprint* is what it puts on the links, phase by phase. Where packets have one way to each
node (`SINGLE_PATH`), and on a torus, it has every link, with the bytes that the predictor routes
over it. Elsewhere nothing is routed, as in `nidmap.rankmap.past_jobs.quick_cost`: it has the links
that leave each group, chassis, router …, and those that join two of them. Links are shared as the
predictor shares them (`nidmap.rankmap.predict.background`): the other jobs take what they send on
the average, but at least an equal share is left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.network import SINGLE_PATH, channels
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.arrays import add_by_key
from nidmap.placement.support.quantities import GB
from nidmap.rankmap.past_jobs import quick_choices
from nidmap.rankmap.past_jobs.quick_cost import (
    QuickCost,
    QuickPhase,
    diverted_time,
    unit_bandwidths,
    unit_loads,
)
from nidmap.rankmap.predict import Job, Predictor

#: Links that take a smaller part of the time of a phase's busiest one are never waited for.
_SLACK = 1 / 8

_ANY = "stencil:auto"


class Application(NamedTuple):
    """What a job sends: pattern, ranks a node, bytes of a message, share of its time."""

    pattern: str
    ppn: int
    bytes: float | None
    share: float

    def pace(self, slowdown: float) -> float:
        """Return how many times as long it runs as alone on the best nodes."""
        return 1 - self.share + self.share * slowdown

    def rounds(self, best: float, slowdown: float) -> float:
        """Return the rounds of its pattern a second; `best`: seconds of one on the best nodes."""
        return self.share / (best * self.pace(slowdown)) if best else 0.0


class Footprint(NamedTuple):
    """The load of one job on links."""

    # links: (k,) links that may be waited for, segment by segment; two segments a phase, the first
    # of links that leave units, the second of links that join two, each after `Network.nowhere`
    links: Ints
    # load: (2, k) GB over each in one round of the pattern, and in all phases together
    load: Floats
    size: Ints  # (2 p,), links of each segment
    # phases: (3, p) seconds of each on any network, those that come on top, `meeting` as of a
    # `QuickPhase`
    phases: Floats
    # all_links, all_loads: (m,), all of them, once each, for the others that share them
    all_links: Ints
    all_loads: Floats
    best: float  # seconds of a round alone on the best nodes of an empty machine


class Network:
    """Makes footprints of jobs on one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._costs: dict[tuple[str, int, float | None], QuickCost] = {}
        self._best: dict[tuple[int, QuickCost], float] = {}
        cost = self.cost(Application(_ANY, 1, None, 0.0))
        if cost.timeless:
            raise UsageError(
                f"no time can be told on {machine.name}: {cost.timeless}",
                "state them in a site file (docs/howto/new-site.md), or compare waits alone: "
                "--shares 0 --policies slurm,tree",
            )
        self.routed = machine.topology.kind == "torus" or cost.model.routing in SINGLE_PATH
        self.loss = cost.model.values.loss
        self.adaptive = cost.model.routing == "adaptive" and not self.routed
        bandwidth = channels(machine).bandwidth if self.routed else unit_bandwidths(machine)
        self.bandwidth: Floats = np.append(bandwidth, np.inf)
        self.nowhere = len(bandwidth)  # a link that takes no time
        self._idle = Sharing(self)

    def cost(self, app: Application) -> QuickCost:
        """Return the function that gives the time of a job alone."""
        key = app.pattern, app.ppn, app.bytes
        if key not in self._costs:
            self._costs[key] = QuickCost(Predictor(self.machine, Job(*key)))
        return self._costs[key]

    def best(self, app: Application, count: int) -> float:
        """Return the seconds of a round on the best nodes of an empty machine."""
        cost = self.cost(app)
        if (count, cost) not in self._best:
            choices = quick_choices(self.machine, self.machine.compute, count)
            self._best[count, cost] = 1.0  # while the choices are compared with it
            times = [self._idle.slowdown(self.footprint(app, rows)) for _, rows in choices]
            self._best[count, cost] = max(min(times), 1e-300)  # 0: nothing takes time
        return self._best[count, cost]

    def footprint(self, app: Application, rows: Ints) -> Footprint:
        """Return the load of a job on the links from these nodes."""
        cost = self.cost(app)
        phases = cost.phases(rows)
        segments = [part for phase in phases for part in self._segments(cost, phase, rows)]
        all_links, all_loads = map(np.concatenate, zip(*segments, strict=True))
        together = all_loads
        if len(phases) > 1:
            all_links, place = np.unique(all_links, return_inverse=True)
            all_loads = add_by_key(place, all_loads)
            together = all_loads[place]
        pieces, end = [], 0
        for k, (where, amount) in enumerate(segments):
            begin, end = end, end + len(where)
            seconds = amount / self.bandwidth[where]
            kept = seconds >= max(phases[k // 2].least, seconds.max(initial=0.0)) * _SLACK
            pieces.append(np.array([[self.nowhere], [0.0], [0.0]]))
            pieces.append(np.stack([where, amount, together[begin:end]])[:, kept])
        table = np.concatenate(pieces, axis=1)
        return Footprint(
            table[0].astype(np.int64), table[1:],
            np.array([1 + piece.shape[1] for piece in pieces[1::2]]),
            np.array([(phase.least, phase.posted, phase.meeting) for phase in phases]).T,
            all_links, all_loads, self.best(app, len(rows)),
        )  # fmt: skip

    def _segments(
        self, cost: QuickCost, phase: QuickPhase, rows: Ints
    ) -> list[tuple[Ints, Floats]]:
        """Return links and GB of a phase: those that leave units, those that join two."""
        if self.routed:
            placement = cost.model.place(rows)
            links = cost.model.loads(placement.demand(phase.traffic), None)
            return [(links.used, links.carried / GB), (links.used[:0], links.carried[:0])]
        loads = unit_loads(self.machine, rows, phase.traffic)
        return [(loads.cut, loads.leaving / GB), (loads.direct, loads.between / GB)]


class Sharing:
    """The jobs that communicate now, and what is left of the links for each."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.rate: Floats = np.zeros(len(network.bandwidth))
        self.users: Ints = np.zeros(len(network.bandwidth), dtype=np.int64)
        self.jobs: dict[int, tuple[Footprint, float]] = {}  # with rounds a second

    def add(self, job: int, footprint: Footprint, rounds: float) -> bool:
        """Let a job send this many rounds of its pattern a second; return whether others wait."""
        links = footprint.all_links
        self.jobs[job] = footprint, rounds
        self.rate[links] += footprint.all_loads * rounds
        shared = bool(self.users[links].any())
        self.users[links] += 1
        return shared

    def remove(self, job: int) -> bool:
        """Take a job away; return whether others have more of the links now."""
        if job not in self.jobs:
            return False
        footprint, rounds = self.jobs.pop(job)
        links = footprint.all_links
        self.users[links] -= 1
        users = self.users[links]
        self.rate[links] = np.where(users, self.rate[links] - footprint.all_loads * rounds, 0.0)
        return bool(users.any())

    def slowdowns(self) -> Floats:
        """Return how many times as long each of `jobs` communicates as alone on the best nodes."""
        return self._times(list(self.jobs.values()))

    def slowdown(self, footprint: Footprint) -> float:
        """Return the same for one more job, next to all that are there."""
        return float(self._times([(footprint, 0.0)], more=1)[0])

    def _times(self, jobs: list[tuple[Footprint, float]], more: int = 0) -> Floats:
        prints, rounds = zip(*jobs, strict=True)
        columns: Any = zip(*prints, strict=True)
        links, load, size, phases = (np.concatenate(next(columns), axis=-1) for _ in range(4))
        first = np.cumsum(size) - size
        owner = np.repeat(rounds, [len(footprint.links) for footprint in prints])
        bandwidth = self.network.bandwidth[links]
        others = self.rate[links] - load[1] * owner
        left = np.maximum(bandwidth - others, bandwidth / np.maximum(self.users[links] + more, 1))
        busiest = np.maximum.reduceat(load[0] / left, first)
        cut, direct = busiest[0::2], busiest[1::2]
        least = np.maximum(cut, phases[0])
        seconds: Floats = np.maximum(direct, least)
        if self.network.adaptive:
            seconds = diverted_time(cut, least, direct, self.network.loss, phases[2])
        job = np.repeat(np.arange(len(prints)), [footprint.phases.shape[1] for footprint in prints])
        best = np.array([footprint.best for footprint in prints])
        times: Floats = add_by_key(job, seconds + phases[1]) / best
        return times
