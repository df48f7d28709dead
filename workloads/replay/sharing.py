# SPDX-License-Identifier: Apache-2.0
"""How long jobs communicate on a network that they share: links that carry several jobs.

A job's *footprint* is what it puts on the links, phase by phase. As in
`nidmap.rankmap.past_jobs.quick_cost` nothing is routed: it has the links that leave each group,
chassis, router …, and those that join two of them; on a torus every link, with the bytes that the
predictor routes over it. Links are shared as the predictor shares them
(`nidmap.rankmap.predict.background`): the other jobs take what they send on the average, but at
least an equal share is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nidmap.placement.errors import UsageError
from nidmap.placement.machine import Machine
from nidmap.placement.network import channels
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.placement.support.quantities import GB
from nidmap.rankmap.past_jobs import quick_choices
from nidmap.rankmap.past_jobs.quick_cost import (
    PhaseCost,
    QuickCost,
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


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """The load of one job on links."""

    # links: (k,) links that may be waited for, segment by segment; two segments a phase, the first
    # of links that leave units, the second of links that join two
    links: Ints
    amount: Floats  # (k,) GB over each in one round of the pattern
    first: Ints  # (2 p,) where each segment begins
    whole: Floats  # (k,) GB over each link in all phases together
    # least, posted: (p,) seconds of a phase on any network, and those that come on top
    least: Floats
    posted: Floats
    meeting: Floats  # (p,), as of a `PhaseCost`
    # all_links, all_amounts: (m,), float64 (m,) All of them, once each, for the others that share
    # them
    all_links: Ints
    all_amounts: Floats
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
                "a replay needs bandwidths, as in -m MACHINE,bw=10",
            )
        self.routed = machine.topology.kind == "torus"
        self.loss = cost.model.values.loss
        self.adaptive = cost.model.routing == "adaptive" and not self.routed
        bandwidth = channels(machine).bandwidth if self.routed else unit_bandwidths(machine)
        self.bandwidth: Floats = np.append(bandwidth, np.inf)  # the last one: no link at all
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
        links, amounts, first, at = [], [], [], 0
        phases = cost.phases(rows)
        segments = [self._segments(cost, phase, rows) for phase in phases]
        for phase, pairs in zip(phases, segments, strict=True):
            for where, amount in pairs:
                limit = max(phase.least, float((amount / self.bandwidth[where]).max(initial=0.0)))
                kept = amount >= limit * _SLACK * self.bandwidth[where]
                pair = (where[kept], amount[kept]) if kept.any() else self._none()
                first.append(at)
                at += len(pair[0])
                links.append(pair[0])
                amounts.append(pair[1])
        everything = [pair for pairs in segments for pair in pairs]
        where = np.concatenate([part[0] for part in everything])
        used, place = np.unique(where, return_inverse=True)
        total = np.zeros(len(used))
        np.add.at(total, place, np.concatenate([part[1] for part in everything]))
        entries = np.concatenate(links)
        return Footprint(
            entries, np.concatenate(amounts), np.array(first),
            np.append(total, 0.0)[np.searchsorted(used, entries)],
            np.array([phase.least for phase in phases]),
            np.array([phase.posted for phase in phases]),
            np.array([phase.meeting for phase in phases]),
            used, total, self.best(app, len(rows)),
        )  # fmt: skip

    def _segments(self, cost: QuickCost, phase: PhaseCost, rows: Ints) -> list[tuple[Ints, Floats]]:
        """Return links and GB of a phase: those that leave units, those that join two."""
        if self.routed:
            placement = cost.model.place(rows)
            links = cost.model.loads(placement.demand(phase.traffic), None)
            return [(links.used, links.carried / GB), self._none()]
        loads = unit_loads(self.machine, rows, phase.traffic)
        return [(loads.cut, loads.leaving / GB), (loads.direct, loads.between / GB)]

    def _none(self) -> tuple[Ints, Floats]:
        return np.array([len(self.bandwidth) - 1]), np.zeros(1)


class Sharing:
    """The jobs that communicate now, and what is left of the links for each."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.rate: Floats = np.zeros(len(network.bandwidth))
        self.users: Ints = np.zeros(len(network.bandwidth), dtype=np.int32)
        self.prints: dict[int, tuple[Footprint, float, Floats]] = {}
        self._joined: _Joined | None = None

    @property
    def jobs(self) -> list[int]:
        """Jobs in the order of their `slowdowns`."""
        return list(self.prints)

    def add(self, job: int, footprint: Footprint, rounds: float) -> None:
        """Let a job send this many rounds of its pattern a second on the average."""
        self.prints[job] = footprint, rounds, footprint.whole * rounds
        self.rate[footprint.all_links] += footprint.all_amounts * rounds
        self.users[footprint.all_links] += 1
        self._joined = None

    def remove(self, job: int) -> bool:
        """Take a job away; return whether it was there."""
        if job not in self.prints:
            return False
        footprint, rounds, _ = self.prints.pop(job)
        self.users[footprint.all_links] -= 1
        self.rate[footprint.all_links] -= footprint.all_amounts * rounds
        self.rate[footprint.all_links[self.users[footprint.all_links] == 0]] = 0.0
        self._joined = None
        return True

    def slowdowns(self) -> Floats:
        """Return how many times as long each job communicates as alone on the best nodes."""
        if self._joined is None:
            self._joined = _join([(footprint, own) for footprint, _, own in self.prints.values()])
        return self._times(self._joined)

    def slowdown(self, footprint: Footprint) -> float:
        """Return the same for one more job, next to all that are there."""
        joined = _join([(footprint, np.zeros(len(footprint.links)))])
        return float(self._times(joined, more=1)[0])

    def _times(self, joined: _Joined, more: int = 0) -> Floats:
        links = joined.links
        bandwidth = self.network.bandwidth[links]
        others = self.rate[links] - joined.own
        left = np.maximum(bandwidth - others, bandwidth / np.maximum(self.users[links] + more, 1))
        busiest = np.maximum.reduceat(joined.amount / left, joined.first)
        cut, direct = busiest[0::2], busiest[1::2]
        least = np.maximum(cut, joined.least)
        seconds = np.maximum(direct, least)
        if self.network.adaptive:
            seconds = diverted_time(cut, least, direct, self.network.loss, joined.meeting)
        seconds = seconds + joined.posted
        times: Floats = np.bincount(joined.job, seconds) / joined.best
        return times


class _Joined(NamedTuple):
    """Footprints after each other: `job` of each phase, `own` GB/s of each link's job."""

    links: Ints
    amount: Floats
    own: Floats
    first: Ints
    least: Floats
    posted: Floats
    meeting: Floats
    job: Ints
    best: Floats


def _join(prints: Sequence[tuple[Footprint, Floats]]) -> _Joined:
    sizes = np.cumsum([0, *(len(footprint.links) for footprint, _ in prints)])
    phases = np.array([len(footprint.least) for footprint, _ in prints])
    columns = zip(*((f.links, f.amount, own, f.first + at, f.least, f.posted, f.meeting)
                    for (f, own), at in zip(prints, sizes, strict=False)), strict=True)  # fmt: skip
    best = np.array([footprint.best for footprint, _ in prints])
    parts: list[Any] = [np.concatenate(column) for column in columns]
    parts += [np.repeat(np.arange(len(prints)), phases), best]
    return _Joined(*parts)
